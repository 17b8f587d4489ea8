// What `rdusim trace` says is what the events say.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <limits>

#include "sim/trace_estimate.h"
#include "sim/trace_hot.h"
#include "tests/traces/traced_run.h"
#include "traces/critical_path.h"
#include "traces/event_log.h"
#include "traces/fst.h"
#include "traces/inspect.h"
#include "traces/inspect_common.h"
#include "traces/named_units.h"
#include "traces/table.h"

namespace rdusim::inspect_test {
namespace {

using namespace test;

EventLogReader opened(const std::string& path) {
  auto log = EventLogReader::open(path);
  REQUIRE(log.ok());
  return std::move(log).value();
}

RunResult run_log(const LoadedProgram& loaded, const std::string& path) {
  RunOptions options;
  options.values = false;
  return traced(loaded, {path}, options);
}

Json answer(Result<Inspected> inspected) {
  INFO(inspected.diagnostics().to_text());
  REQUIRE(inspected.ok());
  CHECK(inspected->notes.empty());
  CHECK_FALSE(to_table(inspected->answer).empty());
  return inspected->answer;
}

std::uint64_t number(const Json& j, std::string_view key) {
  REQUIRE(j.find(key) != nullptr);
  return j.find(key)->as_uint64().value();
}

TEST_CASE("what transfers waited for a link, and how long a buffer was full, is what the events say") {
  const Scratch folder;
  run_log(small_matmul(), folder / "a.rdulog");
  EventLogReader log = opened(folder / "a.rdulog");
  const Roster& r = log.roster();
  std::vector<Cycles> waited(r.links.size());
  Each each([&](const auto& e) {
    using E = std::remove_cvref_t<decltype(e)>;
    if constexpr (std::is_same_v<E, LinkUsed>) waited[e.link.value] += e.begin - e.at;
  });
  REQUIRE(log.read(each).ok());
  EventLogReader again = opened(folder / "a.rdulog");
  const Json hot = answer(hottest(again, 1000));
  Cycles sum = 0, expected = 0;
  for (const Json& row : *hot.find("links")->as_array()) sum += number(row, "waited_for");
  for (const Cycles w : waited) expected += w;
  CHECK(sum == expected);
  for (const Json& row : *hot.find("buffers")->as_array()) {
    CHECK(number(row, "full_cycles") <= number(hot, "cycles"));
    if (number(row, "peak_pages") < number(row, "depth_pages")) CHECK(number(row, "full_cycles") == 0);
  }
  CHECK(number(hot.find("buffers")->as_array()->front(), "full_cycles") > 0);
}

TEST_CASE("at a cycle, the links and memory channels that are taken then are told") {
  const Scratch folder;
  run_log(small_matmul(), folder / "a.rdulog");
  EventLogReader log = opened(folder / "a.rdulog");
  std::optional<LinkUsed> some;
  Each each([&](const auto& e) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(e)>, LinkUsed>) some = e;
  });
  REQUIRE(log.read(each).ok());
  REQUIRE(some);
  const std::string name = fmt::format("link{}", some->link.value);
  for (const auto& [cycle, busy] : {std::pair{some->begin, true}, std::pair{some->end, false}}) {
    EventLogReader again = opened(folder / "a.rdulog");
    const Json there = answer(inspect_at(again, cycle, name));
    CHECK(there.find("resources")->as_array()->empty() == !busy);
  }
  EventLogReader section = opened(folder / "a.rdulog");
  std::string lines;
  REQUIRE(inspect_timeline(section, section.roster().sections.front(), {}, false, [&](std::string_view t) {
            lines += t;
          }).ok());
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 2);
  EventLogReader late = opened(folder / "a.rdulog");
  CHECK(inspect_timeline(late, "chip1", {1'000'000, 2'000'000}, false, [](std::string_view) {})
            .diagnostics()
            .contains(Code::RDU8017));
}

TEST_CASE("a name stands for the units that it says, and one that is not there is refused with what is") {
  const Scratch folder;
  run_log(small_matmul(), folder / "a.rdulog");
  EventLogReader log = opened(folder / "a.rdulog");
  const Roster& r = log.roster();
  const auto count = [&](const std::string& name, EventSubject s) {
    const auto units = NamedUnits::find(r, name);
    INFO(units.diagnostics().to_text());
    REQUIRE(units.ok());
    std::size_t n = 0;
    for (std::uint32_t i = 0; i < subjects(r, s); ++i) n += units->hold(s, i) ? 1 : 0;
    return n;
  };
  const std::string stage = r.stages.front().name, buffer = r.buffers.front().name;
  CHECK(count(stage, EventSubject::stage) == r.instances(StageId{0}));
  CHECK(count(buffer + "#0", EventSubject::buffer) == 1);
  CHECK(count("link1", EventSubject::link) == 1);
  CHECK(count(r.link_name(LinkId{1}), EventSubject::link) == 1);
  CHECK(count("chip1.hbm", EventSubject::memory) == r.memory_channels[1]);
  CHECK(count("chip1.hbm channel 2", EventSubject::memory) == 1);
  CHECK(count("chip1.hbm channel 2", EventSubject::stage) == 0);
  std::size_t on_chip = 0, links = 0;
  for (std::uint32_t n = 0; n < r.stage_instances(); ++n) on_chip += r.site(r.stage_at(n)).chip.value == 1 ? 1 : 0;
  for (const auto& l : r.links) links += l.from == 1 || l.to == 1 ? 1 : 0;
  CHECK(on_chip > 0);
  CHECK(count("chip1", EventSubject::stage) == on_chip);
  CHECK(count("chip1", EventSubject::link) == links);

  const auto refused = [&](const std::string& name) {
    const auto units = NamedUnits::find(r, name);
    REQUIRE_FALSE(units.ok());
    CHECK(units.diagnostics().list().front().code == Code::RDU8017);
    return units.diagnostics().to_text();
  };
  CHECK(refused(stage + "x").find("did you mean '" + stage + "'") != std::string::npos);
  CHECK(refused(stage + "#100000").find(fmt::format("it has {} instances", r.instances(StageId{0}))) !=
        std::string::npos);
  CHECK(refused(fmt::format("chip{}", r.chips)).find(fmt::format("{} chips", r.chips)) != std::string::npos);
  CHECK(refused("edge100000").find(fmt::format("{} edges", r.edges.size())) != std::string::npos);
  CHECK(refused("link100000").find(fmt::format("{} links", r.links.size())) != std::string::npos);
  CHECK(refused("chip1.hbm channel 9999").find("no unit") != std::string::npos);
}

TEST_CASE("where time went is told of a log that was cut, up to the cut, and not of one that left events out") {
  const Scratch folder;
  run_log(small_matmul(), folder / "a.rdulog");
  EventLogReader whole = opened(folder / "a.rdulog");
  const auto of_whole = hottest(whole, 1000);
  REQUIRE(of_whole.ok());
  const std::string bytes = file_bytes(folder / "a.rdulog");
  put_file(folder / "cut.rdulog", bytes.substr(0, bytes.size() - 1000));
  EventLogReader cut = opened(folder / "cut.rdulog");
  const auto of_cut = hottest(cut, 1000);
  REQUIRE(of_cut.ok());
  CHECK(of_cut->notes.contains(Code::RDU8014));
  CHECK(number(of_cut->answer, "cycles") <= number(of_whole->answer, "cycles"));
  CHECK(of_cut->answer.find("stages")->as_array()->size() == of_whole->answer.find("stages")->as_array()->size());

  EventLogReader log = opened(folder / "a.rdulog");
  TraceOptions options;
  options.files = {folder / "part.rdulog"};
  options.filters = {"chip=1"};
  REQUIRE(convert_log(log, options).ok());
  EventLogReader part = opened(folder / "part.rdulog");
  CHECK(hottest(part, 5).diagnostics().contains(Code::RDU8015));
}

TEST_CASE("the hottest stages, links and buffers have the report's numbers, to the cycle") {
  const Scratch folder;
  const RunResult run = run_log(small_matmul(), folder / "a.rdulog");
  EventLogReader log = opened(folder / "a.rdulog");
  const Json hot = answer(hottest(log, 1000));
  const JsonArray& stages = *hot.find("stages")->as_array();
  CHECK(stages.size() == run.report.stages.size());
  for (const Json& row : stages) {
    const auto it = std::find_if(run.report.stages.begin(), run.report.stages.end(),
                                 [&](const StageRow& s) { return s.name == *row.find("stage")->as_string(); });
    REQUIRE(it != run.report.stages.end());
    CHECK(number(row, "busy") == it->busy);
    CHECK(number(row, "idle") == it->idle);
    CHECK(number(row, "cycles") == it->cycles);
    CHECK(number(row, "input_starvation") == it->stall[0]);
    CHECK(number(row, "busy") + number(row, "stalled") + number(row, "idle") == it->cycles);
  }
  for (std::size_t i = 1; i < stages.size(); ++i)
    CHECK(number(stages[i], "stalled") <= number(stages[i - 1], "stalled"));
  CHECK(hot.find("links")->as_array()->size() == run.report.links.size());
  CHECK(hot.find("buffers")->as_array()->size() == run.report.buffers.size());
}

constexpr std::size_t every_piece = std::numeric_limits<std::size_t>::max();

void check_path(const CriticalPath& path, Cycle cycles) {
  CHECK(path.cycles == cycles);
  CHECK(path.pieces == path.longest.size());
  REQUIRE_FALSE(path.longest.empty());
  CHECK(path.longest.front().from == 0);
  CHECK(path.longest.back().to == cycles);
  for (std::size_t i = 1; i < path.longest.size(); ++i) CHECK(path.longest[i].from == path.longest[i - 1].to);
}

TEST_CASE("the critical path goes from cycle 0 to the last store without a gap") {
  const Scratch folder;
  const RunResult run = run_log(small_matmul(), folder / "a.rdulog");
  EventLogReader log = opened(folder / "a.rdulog");
  const auto path = critical_path_of(log, every_piece);
  REQUIRE(path.ok());
  check_path(*path, run.report.cycles);
  CHECK(path->last.find("store") != std::string::npos);
  CHECK(path->longest.front().piece == PathPiece::launch);
  Cycles crossing = 0;
  for (const CriticalStep& s : path->longest)
    if (s.piece == PathPiece::crossing) crossing += s.to - s.from;
  // A link is a microsecond; a partial sum crosses one, and its result another.
  CHECK(crossing > 2000);
}

// Cycles of a run with every link's latency `by` cycles shorter. In a child: a process has one simulation.
Cycle cycles_with_links(LoadedProgram loaded, Cycles by, const std::string& path) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (ChipLinkParameters& l : loaded.target.links) l.latency_cycles -= std::min(by, l.latency_cycles);
    RunOptions options;
    options.values = false;
    const auto result = run_program(loaded, options);
    put_file(path, result.ok() ? std::to_string(result->report.cycles) : "0");
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return std::stoull(file_bytes(path));
}

TEST_CASE("shortening a piece on the critical path shortens the run") {
  const Scratch folder;
  const LoadedProgram loaded = small_matmul();
  constexpr Cycles by = 500;
  const Cycle shorter = cycles_with_links(loaded, by, folder / "shorter");
  const RunResult run = run_log(loaded, folder / "a.rdulog");
  EventLogReader log = opened(folder / "a.rdulog");
  const auto path = critical_path_of(log, every_piece);
  REQUIRE(path.ok());
  // Links that the path's crossings pass, each with its latency.
  Cycles links = 0;
  for (const CriticalStep& s : path->longest) {
    if (s.piece != PathPiece::crossing && s.piece != PathPiece::signal) continue;
    REQUIRE(s.unit.starts_with("edge "));
    std::size_t hops = 0;
    for (const auto& route : loaded.program.edges[std::stoul(s.unit.substr(5))].routes)
      hops = std::max(hops, route.size());
    links += hops;
  }
  REQUIRE(links > 0);
  // The section ends when the last credit is home, which the path shows as drain.
  CHECK(path->longest.back().piece == PathPiece::drain);
  ++links;
  MESSAGE(run.report.cycles << " cycles, " << shorter << " with links " << by << " shorter, " << links
                            << " on the path");
  CHECK(shorter < run.report.cycles);
  CHECK(run.report.cycles - shorter <= by * links);
  CHECK(run.report.cycles - shorter >= by);
}

TEST_CASE("what is on the critical path has no slack, and something off it has") {
  const Scratch folder;
  run_log(small_matmul(), folder / "a.rdulog");
  EventLogReader log = opened(folder / "a.rdulog");
  const auto path = critical_path_of(log, every_piece);
  REQUIRE(path.ok());
  const auto slack_of = [&](const std::string& unit) -> std::optional<Cycles> {
    for (const CriticalPath::Slack& s : path->slack)
      if (s.unit == unit) return s.least;
    return std::nullopt;
  };
  std::size_t stages = 0;
  for (const CriticalStep& s : path->longest) {
    if (s.piece != PathPiece::compute && s.piece != PathPiece::load && s.piece != PathPiece::store) continue;
    ++stages;
    const std::string stage = s.unit.substr(s.unit.find(' ') + 1);
    CAPTURE(stage);
    CHECK(slack_of(stage) == Cycles{0});
  }
  CHECK(stages > 0);
  CHECK(path->slack.back().least > 0);
  for (std::size_t i = 1; i < path->slack.size(); ++i) CHECK(path->slack[i - 1].least <= path->slack[i].least);
  for (const CriticalPath::Slack& s : path->slack) CHECK(s.least <= s.most);
  EventLogReader again = opened(folder / "a.rdulog");
  const Json told = answer(critical_path(again, 5));
  REQUIRE(told.find("slack")->as_array()->size() <= 5);
  CHECK(number(told.find("slack")->as_array()->front(), "slack") > 0);
}

TEST_CASE("the answers to other questions hold together") {
  const Scratch folder;
  const LoadedProgram loaded = small_matmul();
  const RunResult run = run_log(loaded, folder / "a.rdulog");
  EventLogReader first = opened(folder / "a.rdulog");
  const Json all = answer(inspect_summary(first));
  CHECK(number(all, "cycles") == run.report.cycles);
  CHECK(*all.find("end")->as_string() == "finished");
  std::uint64_t firings = 0;
  for (const Json& chip : *all.find("chips")->as_array()) firings += number(chip, "firings");
  std::uint64_t reported = 0;
  for (const StageRow& s : run.report.stages) reported += s.firings * s.instances;
  CHECK(firings == reported);

  EventLogReader second = opened(folder / "a.rdulog");
  const Json counts = answer(inspect_counts(second, 5));
  std::uint64_t events = 0;
  for (const Json& kind : *counts.find("kinds")->as_array()) events += number(kind, "events");
  CHECK(events == number(all, "events"));
  CHECK(counts.find("units")->as_array()->size() == 5);

  // At the end everything is at rest; in the middle it is not.
  EventLogReader third = opened(folder / "a.rdulog");
  const Json rest = answer(inspect_at(third, run.report.cycles));
  CHECK(rest.find("stages")->as_array()->empty());
  CHECK(rest.find("buffers")->as_array()->empty());
  EventLogReader fourth = opened(folder / "a.rdulog");
  const Json middle = answer(inspect_at(fourth, run.report.cycles / 2));
  CHECK_FALSE(middle.find("stages")->as_array()->empty());
  EventLogReader beyond = opened(folder / "a.rdulog");
  CHECK(inspect_at(beyond, run.report.cycles + 100'000).diagnostics().contains(Code::RDU8017));
  EventLogReader of_chip = opened(folder / "a.rdulog");
  const Json there = answer(inspect_at(of_chip, run.report.cycles / 2, "chip1"));
  const JsonArray& those = *there.find("stages")->as_array();
  CHECK_FALSE(those.empty());
  CHECK(those.size() < middle.find("stages")->as_array()->size());
  for (const Json& row : those) CHECK(row.find("unit")->as_string()->starts_with("chip1."));

  // The partial sum of chip 1 lands on another chip and is folded there.
  std::string partial;
  for (const Edge& e : loaded.program.edges)
    if (!is_local(e.handshake) && loaded.program.chip_of(loaded.program.stage(e.from)).value == 1 && partial.empty())
      partial = loaded.program.buffer(e.buffer).name;
  EventLogReader fifth = opened(folder / "a.rdulog");
  const Json page = answer(inspect_page(fifth, partial + ":0"));
  std::string what;
  Cycle last = 0;
  for (const Json& step : *page.find("steps")->as_array()) {
    what += *step.find("what")->as_string() + "\n";
    CHECK(number(step, "cycle") >= last);
    last = number(step, "cycle");
  }
  CHECK(what.find("page 0 of " + partial) == 0);
  CHECK(what.find("sent as page") != std::string::npos);
  CHECK(what.find("landed from edge") != std::string::npos);
  CHECK(what.find("taken") != std::string::npos);

  EventLogReader sixth = opened(folder / "a.rdulog");
  const auto svg = inspect_occupancy(sixth, partial);
  REQUIRE(svg.ok());
  CHECK(svg->notes.list().empty());
  CHECK(svg->svg.starts_with("<svg "));
  CHECK(svg->svg.ends_with("</svg>\n"));
  CHECK(svg->svg.find("NaN") == std::string::npos);

  EventLogReader seventh = opened(folder / "a.rdulog");
  std::string lines;
  REQUIRE(inspect_timeline(seventh, partial, {}, true, [&](std::string_view t) { lines += t; }).ok());
  const auto json = parse_json(lines, "timeline", Code::RDU8001);
  REQUIRE(json.ok());
  CHECK(json->as_array()->size() > 2);
  EventLogReader eighth = opened(folder / "a.rdulog");
  CHECK(inspect_timeline(eighth, "nobody", {}, false, [](std::string_view) {}).diagnostics().contains(Code::RDU8017));
  EventLogReader ninth = opened(folder / "a.rdulog");
  CHECK(inspect_page(ninth, partial + ":99999").diagnostics().contains(Code::RDU8017));

  EventLogReader a = opened(folder / "a.rdulog"), b = opened(folder / "a.rdulog"), c = opened(folder / "a.rdulog"),
                 d = opened(folder / "a.rdulog");
  const Json same = answer(inspect_difference(a, b, c, d));
  CHECK(*same.find("equal")->as_bool());
  CHECK(same.find("divergence")->is_null());
}

TEST_CASE("a filter keeps what it names, counts the rest, and refuses what is not there") {
  const Scratch folder;
  const LoadedProgram loaded = small_matmul();
  Roster roster = roster_of(loaded.program, loaded.target, loaded.sha256);
  REQUIRE(roster.index());
  const auto refused = [&](const std::string& filter) {
    const auto s = TraceSelection::parse({filter}, roster);
    REQUIRE_FALSE(s.ok());
    return s.diagnostics().list().front().code;
  };
  CHECK(refused("chip") == Code::RDU8016);
  CHECK(refused("chip=x") == Code::RDU8016);
  CHECK(refused("colour=red") == Code::RDU8016);
  CHECK(refused("kind=fire") == Code::RDU8016);
  CHECK(refused("chip=99") == Code::RDU8017);
  CHECK(refused("site=4000:1") == Code::RDU8017);
  CHECK(refused("stage=nobody") == Code::RDU8017);
  CHECK(matches("down.*fold*", "down.all_reduce.fold_c1"));
  CHECK_FALSE(matches("down.*fold", "down.all_reduce.fold_c1"));

  RunOptions options;
  options.values = false;
  options.trace.filters = {"chip=1", "kind=firing,page"};
  const RunResult run = traced(loaded, {folder / "a.rdulog"}, options);
  auto log = EventLogReader::open(folder / "a.rdulog");
  REQUIRE(log.ok());
  Recorder recorder(log->roster(), nullptr);
  const auto end = log->read(recorder);
  REQUIRE(end.ok());
  CHECK(end->dropped.filter > 0);
  CHECK(end->dropped.window == 0);
  std::size_t of_chip = 0;
  for (const auto& e : recorder.events) {
    const auto kind = static_cast<EventKind>(e[0]);
    if (group_of(kind) == "section") continue;
    CHECK((group_of(kind) == "firing" || group_of(kind) == "page"));
    if (kind != EventKind::FiringStarted) continue;
    ++of_chip;
    CHECK(log->roster().site(log->roster().stage_at(static_cast<std::uint32_t>(e[2]))).chip.value == 1);
  }
  CHECK(of_chip > 10);
  const Json traces = run.report.traces;
  REQUIRE(traces.as_array() != nullptr);
  const Json& row = traces.as_array()->front();
  CHECK(number(*row.find("dropped"), "filter") == end->dropped.filter);
  CHECK(number(row, "events") == end->events);
}

TEST_CASE("a file's name must say a format that this rdusim writes") {
  const Scratch folder;
  const LoadedProgram loaded = small_matmul();
  const auto refused = [&](const std::string& file) {
    RunOptions options;
    options.values = false;
    options.trace.files = {folder / file};
    const auto result = run_program(loaded, options);
    REQUIRE_FALSE(result.ok());
    REQUIRE(result.diagnostics().list().size() == 1);
    return result.diagnostics().list().front().code;
  };
  CHECK(refused("a.trace") == Code::RDU8018);
  CHECK(refused("a") == Code::RDU8018);
  if (!fst_available()) CHECK(refused("a.fst") == Code::RDU8019);
  CHECK(refused("no/such/folder/a.vcd") == Code::RDU5008);
}

TEST_CASE("what a trace will hold is foretold within a fifth") {
  const Scratch folder;
  const LoadedProgram loaded = small_matmul();
  run_log(loaded, folder / "a.rdulog");
  EventLogReader log = opened(folder / "a.rdulog");
  EventSink nobody;
  const auto end = log.read(nobody);
  REQUIRE(end.ok());
  const double foretold = static_cast<double>(estimate_events(loaded.program, loaded.target).events());
  MESSAGE(foretold << " foretold, " << end->events << " told");
  CHECK(foretold > 0.8 * static_cast<double>(end->events));
  CHECK(foretold < 1.2 * static_cast<double>(end->events));
}

}  // namespace
}  // namespace rdusim::inspect_test
