#include "sim/view/view.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/file.h"
#include "sim/compare/read_report.h"
#include "sim/page/html_page.h"
#include "sim/run.h"
#include "sim/view/lives.h"
#include "traces/critical_path.h"
#include "traces/event_log.h"
#include "traces/event_log_blocks.h"

namespace rdusim {

namespace {

constexpr std::string_view page_script =
#include "view_js.inc"
    ;
constexpr std::string_view page_style =
#include "view_css.inc"
    ;
constexpr std::size_t path_steps = 300;  // of the critical path, the longest

Json without_bulk(const Json& report) {
  JsonObject kept;
  const JsonObject* members = report.as_object();
  for (const auto& [key, value] : members == nullptr ? JsonObject() : *members)
    if (key != "host" && key != "decisions" && key != "proved" && key != "buffers") kept.emplace_back(key, value);
  return kept;
}

Json stages_of(const Roster& r, const Lives& lives) {
  JsonArray stages;
  for (std::uint32_t s = 0; s < r.stages.size(); ++s) {
    const RosterStage& stage = r.stages[s];
    JsonArray list;
    for (std::uint32_t i = 0; i < r.instances(StageId{s}); ++i)
      list.emplace_back(lives.life_of(r.of(StageAt{StageId{s}, i})));
    const bool anywhere = r.instances(StageId{s}) != 0;
    stages.push_back(Json()
                         .set("name", stage.name)
                         .set("kind", stage.kind)
                         .set("unit", anywhere ? r.unit(StageAt{StageId{s}, 0}) : "")
                         .set("group", stage.group)
                         .set("lives", std::move(list)));
  }
  return stages;
}

Json time_of(const Roster& r, const Lives& lives) {
  JsonArray sites;
  for (const std::vector<Site>& group : r.groups) {
    JsonArray list{Json(group.empty() ? 0 : group.front().chip.value)};
    for (const Site& s : group) {
      list.emplace_back(s.at.x);
      list.emplace_back(s.at.y);
    }
    sites.push_back(std::move(list));
  }
  JsonArray rows;
  for (const Lives::Life& life : lives.lives()) {
    JsonArray row{Json(life.row), Json(life.totals.firings), Json(life.totals.busy)};
    for (const Cycles c : life.totals.stall) row.emplace_back(c);
    rows.push_back(std::move(row));
  }
  JsonArray links;
  for (std::uint32_t l = 0; l < r.links.size(); ++l) {
    if (!r.links[l].used) continue;
    Lives::Load load = lives.link(LinkId{l});
    links.push_back(JsonArray{Json(r.links[l].from), Json(r.links[l].to), Json(r.link_name(LinkId{l})),
                              Json(load.bytes), Json(load.busy), Json(std::move(load.row))});
  }
  JsonArray memories;
  for (std::uint32_t chip = 0; chip < r.chips; ++chip) {
    for (const MemorySpace space : {MemorySpace::hbm, MemorySpace::ddr}) {
      Lives::Load load = lives.memory(ChipId{chip}, static_cast<std::uint8_t>(space));
      if (load.bytes == 0) continue;
      memories.push_back(JsonArray{Json(chip), Json(space == MemorySpace::hbm ? "hbm" : "ddr"), Json(load.bytes),
                                   Json(load.busy), Json(std::move(load.row))});
    }
  }
  return Json()
      .set("width", lives.width())
      .set("bins", lives.bins())
      .set("symbols", life_symbols)
      .set("sites", std::move(sites))
      .set("stages", stages_of(r, lives))
      .set("lives", std::move(rows))
      .set("links", std::move(links))
      .set("memories", std::move(memories));
}

Json head(JsonArray notes, Json report, std::uint32_t chips, std::uint32_t width, std::uint32_t height, Cycle cycles) {
  return Json()
      .set("schema", "rdusim.view/1")
      .set("notes", std::move(notes))
      .set("report", std::move(report))
      .set("machine", Json().set("chips", chips).set("width", width).set("height", height))
      .set("cycles", cycles);
}

Result<Json> of_log(const std::string& path, EventLogReader first) {
  JsonArray notes;
  Json report;
  if (auto replayed = replay_run(first, {})) {
    report = without_bulk(to_json(replayed->report));
  } else {
    if (!replayed.diagnostics().contains(Code::RDU8015)) return replayed.diagnostics();
    notes.emplace_back(
        "The log does not hold every event of the run and how it ended, so there is no verdict, no table of causes and "
        "no roofline.");
  }
  auto log = EventLogReader::open(path);
  if (!log) return log.diagnostics();
  auto chain = critical_path(*log, path_steps);
  Json steps;
  Cycle cycles = 0;
  if (chain) {
    cycles = chain->answer.find("cycles")->as_uint64().value_or(0);
    if (!chain->notes.empty()) notes.emplace_back("The log was cut: what came after the cut is not here.");
    steps = std::move(chain->answer);
  } else {
    if (!chain.diagnostics().contains(Code::RDU8015)) return chain.diagnostics();
    notes.emplace_back(
        "Events were left out of the log, and what set the total may be among them, so there is no critical path.");
    log = EventLogReader::open(path);
    if (!log) return log.diagnostics();
    const auto told = inspect_summary(*log);
    if (!told) return told.diagnostics();
    cycles = told->answer.find("cycles")->as_uint64().value_or(0);
  }
  log = EventLogReader::open(path);
  if (!log) return log.diagnostics();
  Lives lives(log->roster(), cycles);
  const auto end = log->read(lives);
  if (!end) return end.diagnostics();
  lives.finish();
  const Roster& r = log->roster();
  Json data = head(std::move(notes), std::move(report), r.chips, r.width, r.height, cycles);
  data.set("program", r.program).set("target", r.target);
  return std::move(data.set("time", time_of(r, lives)).set("path", std::move(steps)));
}

// The number that follows `before` in a text.
std::optional<std::uint32_t> number_after(std::string_view text, std::string_view before) {
  const std::size_t at = text.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint32_t n = 0;
  std::size_t digits = 0;
  for (std::size_t i = at + before.size(); i < text.size() && text[i] >= '0' && text[i] <= '9' && digits < 6;
       ++i, ++digits)
    n = n * 10 + static_cast<std::uint32_t>(text[i] - '0');
  return digits == 0 ? std::nullopt : std::optional(n);
}

Result<Json> of_report(const std::string& path) {
  const auto text = read_file(path, report_bytes_limit);
  if (!text) return text.diagnostics();
  if (text->starts_with(log_block::magic)) {
    Diagnostics d;
    d.error(Code::RDU6005, "rdusim view", "a log is read more than once: name a file instead of standard input");
    return d;
  }
  // Both: the one reader of reports checks it, and the page shows it as it is.
  const auto checked = parse_report(*text, path);
  if (!checked) return checked.diagnostics();
  const auto json = parse_json(*text, path, Code::RDU8001);
  if (!json) return json.diagnostics();
  std::uint32_t width = 1, height = 1;
  const Json* stages = json->find("stages");
  const JsonArray* rows = stages == nullptr ? nullptr : stages->as_array();
  for (const Json& row : rows == nullptr ? JsonArray() : *rows) {
    const Json* site = row.find("site");
    if (site == nullptr || site->as_string() == nullptr) continue;
    const std::string_view place = *site->as_string();
    width = std::max(width, number_after(place, "(").value_or(0) + 1);
    height = std::max(height, number_after(place, ",").value_or(0) + 1);
  }
  const Json* cycles = json->find("cycles");
  const Json* simulated = cycles == nullptr ? nullptr : cycles->find("simulated");
  JsonArray notes{
      Json("Made of a report: of every stage the slowest instance, over the whole run. A page made of an event log "
           "(rdusim run "
           "--trace run.rdulog) has every site, the time, and the critical path.")};
  Json data = head(std::move(notes), without_bulk(*json), checked->chips, std::min(width, 256U), std::min(height, 256U),
                   simulated == nullptr ? 0 : simulated->as_uint64().value_or(0));
  data.set("program", checked->program).set("target", checked->target);
  return std::move(data.set("time", Json()).set("path", Json()));
}

}  // namespace

Result<Json> view_data(const std::string& path) {
  if (path == "-") return of_report(path);
  auto log = EventLogReader::open(path);
  if (log) return of_log(path, std::move(log).value());
  return log.diagnostics().contains(Code::RDU8010) ? of_report(path) : Result<Json>(log.diagnostics());
}

std::string view_html(const Json& data, const std::optional<std::string>& echarts) {
  HtmlPage page;
  page.title = "rdusim: a run";
  page.style = page_style;
  page.script = page_script;
  page.header = "<span id=\"run\"></span>";
  page.data = to_text(data, true);
  return html_page(page, echarts);
}

}  // namespace rdusim
