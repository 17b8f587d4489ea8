#include "sim/cli/history_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "compiler/support/file.h"
#include "compiler/support/units.h"
#include "compiler/support/utf8.h"
#include "sim/cli/commands.h"
#include "sim/cli/terminal.h"
#include "sim/history/blame.h"
#include "sim/history/export.h"
#include "sim/history/gate.h"
#include "sim/history/origin.h"

namespace rdusim::cli {

CommandWords words(HistoryRequest& r) {
  const OptionWords db = {"--db", "the history, one file", &r.db, true};
  const OptionWords program = {"--program", "only the series of this name", &r.program};
  const OptionWords json = {"--json", "as JSON", &r.json};
  CommandWords add = {"add",
                      "adds the runs of reports, or of folders of them",
                      "rdusim history add report.json --db history.db\n  rdusim history add reports/ --db history.db",
                      {{"reports", "reports, or folders in which every .json file is one", &r.reports, true},
                       db,
                       {"--name", "what the series is called (default: the program; in a folder, the file)", &r.name},
                       {"--commit", "default: what git says here", &r.commit},
                       {"--parent", "the commit before it; default: what git says here", &r.parent},
                       {"--branch", "default: what git says here", &r.branch},
                       {"--time", "seconds since 1970, or 2026-11-29T19:45:00Z (default: now)", &r.time},
                       {"--host", "default: the name of this computer", &r.host}}};
  CommandWords list = {"list",
                       "the runs, newest last",
                       "rdusim history list --db history.db --limit 20",
                       {db, program, {"--limit", "only the newest N", &r.limit}, json}};
  CommandWords accept = {"accept",
                         "accepts the newest commit's runs as what is right from now on",
                         "rdusim history accept --db history.db --reason 'tiles of 64 halve the fill'",
                         {db,
                          {"--reason", "why it is right", &r.reason, true},
                          program,
                          {"--commit", "the runs of this commit instead of the newest", &r.commit},
                          {"--run", "just this run", &r.run},
                          {"--metric", "only this metric of them", &r.metric},
                          {"--author", "who accepts it", &r.author},
                          {"--retire", "the series of --program is not run any more", &r.retire}}};
  CommandWords gate = {"gate",
                       "judges the newest commit's runs against what was accepted",
                       "rdusim history gate --db history.db --junit gate.xml",
                       {db,
                        {"--commit", "the runs of this commit instead of the newest", &r.commit},
                        {"--dry-run", "does not note in the history what passed", &r.dry_run},
                        {"--junit", "writes the answer as JUnit XML too", &r.junit},
                        json}};
  CommandWords blame = {
      "blame",
      "names the commits at which a metric moved",
      "rdusim history blame cycles --db history.db --program down-proj",
      {{"metric", "cycles, stages.NAME.cycles, host.wall_s, ...", &r.metric, true}, db, program, json}};
  CommandWords save = {"export",
                       "in the forms that other tools read",
                       "rdusim history export --db history.db --format openmetrics -o rdusim.prom",
                       {db,
                        {"--format", "jsonl, openmetrics, benchmark (github-action-benchmark), junit", &r.form},
                        {"--metric", "only metrics of this pattern ('*' is anything)", &r.metric},
                        {"-o,--output", "default: standard output", &r.output}}};
  return {"history",
          "keeps reports of many runs, and says where they became worse",
          "rdusim history add report.json --db history.db && rdusim history gate --db history.db",
          {},
          {add, list, accept, gate, blame, save},
          &r.action};
}

namespace {

Result<Origin> origin_of(const HistoryRequest& r) {
  Origin o = origin_of_here();
  // A commit that was given says nothing of this repository's parent and branch.
  if (!r.commit.empty()) o.commit = r.commit, o.parent.clear(), o.branch.clear();
  if (!r.parent.empty()) o.parent = r.parent;
  if (!r.branch.empty()) o.branch = r.branch;
  if (!r.host.empty()) o.host = r.host;
  if (!r.time.empty()) {
    const auto seconds = utc_seconds(r.time);
    if (!seconds) return usage(fmt::format("--time: '{}' is neither seconds nor such as 2026-11-29T19:45:00Z", r.time));
    o.time = *seconds;
  }
  for (const std::string& text : {o.commit, o.parent, o.branch, o.host, r.name}) {
    if (!is_plain(text) || text.size() > 255)
      return usage("a name or commit is not printable, or longer than 255 bytes");
  }
  return o;
}

ExitStatus add(const HistoryRequest& r) {
  const auto origin = origin_of(r);
  if (!origin) return fail(origin.diagnostics());
  std::vector<History::Addition> additions;
  Diagnostics problems;
  const auto one = [&](const std::string& path, const std::string& name) {
    auto report = read_report(path);
    problems.append(report.diagnostics());
    if (report) additions.push_back({name, *std::move(report), *origin});
  };
  for (const std::string& path : r.reports) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      one(path, r.name);
      continue;
    }
    const auto names = report_names(path);
    problems.append(names.diagnostics());
    if (!names) continue;
    if (!r.name.empty()) return fail(usage("--name is of one report; a folder's series are called as its files"));
    for (const std::string& name : *names) one(path + "/" + name, name.substr(0, name.size() - 5));
  }
  if (problems.has_errors()) return fail(problems);
  if (!r.name.empty() && additions.size() > 1) return fail(usage("--name is of one report"));
  if (additions.empty()) {
    problems.error(Code::RDU8033, r.reports.front(), "no .json file stands in it");
    return fail(problems);
  }
  auto history = History::open(r.db, History::Open::create);
  if (!history) return fail(history.diagnostics());
  const auto added = history->add(additions);
  if (!added) return fail(added.diagnostics());
  std::string text;
  for (std::size_t i = 0; i < additions.size(); ++i) {
    const auto& [name, report, where] = additions[i];
    text += fmt::format("run {}  {} on {}, {} chip{}: {}{}\n", (*added)[i].run, name.empty() ? report.program : name,
                        report.target, report.chips, report.chips == 1 ? "" : "s", report.verdict,
                        (*added)[i].fresh ? "" : " (was there)");
  }
  return print_result(text, ExitStatus::done);
}

std::string_view name_of(GateMark m) {
  return m == GateMark::passed ? "passed" : m == GateMark::failed ? "failed" : "-";
}

ExitStatus list(const HistoryRequest& r, History& history) {
  auto series = history.series();
  auto runs = history.runs();
  auto accepted = history.acceptances();
  if (!series) return fail(series.diagnostics());
  if (!runs) return fail(runs.diagnostics());
  if (!accepted) return fail(accepted.diagnostics());
  std::map<std::int64_t, const Series*> by_id;
  for (const Series& s : *series) by_id.emplace(s.id, &s);
  std::erase_if(*runs,
                [&](const RecordedRun& run) { return !r.program.empty() && by_id[run.series]->name != r.program; });
  if (r.limit && runs->size() > *r.limit)
    runs->erase(runs->begin(), runs->end() - static_cast<std::ptrdiff_t>(*r.limit));
  std::string text =
      fmt::format("{:>5}  {:<20}  {:<12}  {:<7}  {:>14}  {}\n", "run", "time", "commit", "gate", "cycles", "program");
  JsonArray rows;
  for (const RecordedRun& run : *runs) {
    const Series& s = *by_id[run.series];
    const auto metrics = history.metrics(run.id);
    if (!metrics) return fail(metrics.diagnostics());
    std::optional<std::int64_t> cycles;
    for (const Metric& m : *metrics) {
      if (m.name == "cycles.simulated" && std::holds_alternative<std::int64_t>(m.value))
        cycles = std::get<std::int64_t>(m.value);
    }
    std::string reason;
    for (const Acceptance& a : *accepted) {
      if (a.run == run.id) reason = (a.metric.empty() ? "" : a.metric + ": ") + a.reason;
    }
    text += fmt::format("{:>5}  {}  {:<12}  {:<7}  {:>14}  {}{}{}{}\n", run.id, utc_text(run.origin.time),
                        run.origin.commit.substr(0, 12), name_of(run.gate),
                        cycles ? with_commas(static_cast<std::uint64_t>(*cycles)) : "-", to_string(s),
                        run.verdict == "pass" ? "" : ", " + run.verdict, reason.empty() ? "" : "; accepted: ", reason);
    rows.push_back(Json()
                       .set("run", run.id)
                       .set("name", s.name)
                       .set("target", s.target)
                       .set("chips", s.chips)
                       .set("time", utc_text(run.origin.time))
                       .set("commit", run.origin.commit)
                       .set("parent", run.origin.parent)
                       .set("branch", run.origin.branch)
                       .set("host", run.origin.host)
                       .set("verdict", run.verdict)
                       .set("gate", run.gate == GateMark::none ? Json() : Json(name_of(run.gate)))
                       .set("cycles", cycles ? Json(*cycles) : Json())
                       .set("accepted", reason.empty() ? Json() : Json(reason)));
  }
  if (!r.json) return print_result(text, ExitStatus::done);
  return print_result(to_text(Json().set("schema", "rdusim.history/1").set("runs", std::move(rows))), ExitStatus::done);
}

// The runs that an acceptance is of: the newest of each series, of one commit.
Result<std::vector<RecordedRun>> runs_to_accept(const HistoryRequest& r, History& history) {
  auto runs = history.runs();
  auto series = history.series();
  if (!runs) return runs.diagnostics();
  if (!series) return series.diagnostics();
  Diagnostics d;
  if (runs->empty()) {
    d.error(Code::RDU8041, r.db, "it holds no run yet");
    return d;
  }
  std::map<std::int64_t, std::string> names;
  for (const Series& s : *series) names.emplace(s.id, s.name);
  const std::string commit = r.commit.empty() ? runs->back().origin.commit : r.commit;
  std::map<std::int64_t, RecordedRun> chosen;
  for (const RecordedRun& run : *runs) {
    const bool asked = r.run ? run.id == static_cast<std::int64_t>(*r.run) : r.retire || run.origin.commit == commit;
    if (asked && (r.program.empty() || names[run.series] == r.program)) chosen[run.series] = run;
  }
  if (chosen.empty()) d.error(Code::RDU8039, r.db, "it has no run that is asked for");
  if (d.has_errors()) return d;
  std::vector<RecordedRun> out;
  for (auto& [id, run] : chosen) out.push_back(std::move(run));
  return out;
}

ExitStatus accept(const HistoryRequest& r, History& history) {
  Diagnostics d;
  const bool blank = r.reason.find_first_not_of(' ') == std::string::npos;
  if (blank || !is_plain(r.reason) || !is_plain(r.author))
    d.error(Code::RDU8040, "--reason", "{}", blank ? "there is none" : "it is not printable");
  if (r.retire && r.program.empty()) d.append(usage("--retire needs --program"));
  if (r.retire && !r.metric.empty()) d.append(usage("--retire and --metric exclude each other"));
  if (d.has_errors()) return fail(d);
  auto runs = runs_to_accept(r, history);
  if (!runs) return fail(runs.diagnostics());
  const std::string metric = r.metric == "cycles" ? "cycles.simulated" : r.metric;
  std::vector<std::int64_t> ids;
  for (const RecordedRun& run : *runs) {
    const auto metrics = history.metrics(run.id);
    if (!metrics) return fail(metrics.diagnostics());
    if (metric.empty() ||
        std::any_of(metrics->begin(), metrics->end(), [&](const Metric& m) { return m.name == metric; }))
      ids.push_back(run.id);
  }
  if (ids.empty()) {
    d.error(Code::RDU8031, "--metric", "no such run has a metric '{}'", metric);
    return fail(d);
  }
  const std::string author = r.author.empty() ? runs->front().origin.host : r.author;
  const auto done =
      history.accept(ids, r.retire ? std::string(retired) : metric, r.reason, author, origin_of_here().time);
  if (!done) return fail(done.diagnostics());
  return print_result(fmt::format("{} of {} run{}: {}\n", r.retire ? "retired the series" : "accepted", ids.size(),
                                  ids.size() == 1 ? "" : "s", r.reason),
                      ExitStatus::done);
}

ExitStatus gate(const HistoryRequest& r, History& history) {
  const auto result = judge(history, r.commit);
  if (!result) return fail(result.diagnostics());
  if (!r.dry_run) {
    const auto marked = history.mark(marks_of(*result));
    if (!marked) return fail(marked.diagnostics());
  }
  if (!r.junit.empty()) {
    const auto written = write_file(r.junit, gate_junit(*result));
    if (!written) return fail(written.diagnostics());
  }
  const ExitStatus status = result->passed() ? ExitStatus::done : ExitStatus::program_fault;
  return print_result(r.json ? to_text(gate_json(*result)) : gate_text(*result, colour_on(STDOUT_FILENO)), status);
}

ExitStatus save(const HistoryRequest& r, History& history) {
  std::string text;
  if (r.form == "junit") {
    const auto result = judge(history, r.commit);
    if (!result) return fail(result.diagnostics());
    text = gate_junit(*result);
  } else {
    ExportForm form = ExportForm::json_lines;
    if (r.form == "openmetrics")
      form = ExportForm::openmetrics;
    else if (r.form == "benchmark")
      form = ExportForm::benchmark;
    else if (r.form != "jsonl")
      return fail(usage(fmt::format("--format: '{}' is not one of jsonl, openmetrics, benchmark, junit", r.form)));
    auto exported = export_history(history, form, r.metric.empty() ? "*" : r.metric);
    if (!exported) return fail(exported.diagnostics());
    text = *std::move(exported);
  }
  if (r.output == "-") return print_result(text, ExitStatus::done);
  const auto written = write_file(r.output, text);
  return written ? ExitStatus::done : fail(written.diagnostics());
}

}  // namespace

ExitStatus history(const HistoryRequest& r) {
  if (r.action == "add") return add(r);
  const bool writes = r.action == "accept" || (r.action == "gate" && !r.dry_run);
  auto opened = History::open(r.db, writes ? History::Open::write : History::Open::read);
  if (!opened) return fail(opened.diagnostics());
  if (r.action == "list") return list(r, *opened);
  if (r.action == "accept") return accept(r, *opened);
  if (r.action == "gate") return gate(r, *opened);
  if (r.action == "export") return save(r, *opened);
  const auto found = blame(*opened, r.metric, r.program);
  if (!found) return fail(found.diagnostics());
  return print_result(r.json ? to_text(blame_json(*found)) : blame_text(*found), ExitStatus::done);
}

}  // namespace rdusim::cli
