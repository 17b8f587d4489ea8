// Traces as users meet them: written beside a run, asked, converted, judged again.
#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <thread>

#include "compiler/support/json.h"
#include "tests/system/json_path.h"
#include "tests/system/scenario.h"
#include "traces/fst.h"

namespace rdusim::test::traces_test {
namespace {

TEST_CASE("tracing changes no cycle and no value, and the log says what the report says") {
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "4"});
  const Json plain = run(folder);
  const Json traced =
      run(folder, {"--trace", "a.rdulog", "--trace", "a.pftrace", "--trace", "a.json", "--vcd", "a.vcd"});
  CHECK(without_host(plain) == without_host(traced));
  check_exact_pass(traced);
  const Json* rows = traced.find("host")->find("traces");
  REQUIRE(rows->as_array() != nullptr);
  CHECK(rows->as_array()->size() == 4);
  for (const Json& row : *rows->as_array())
    CHECK(row.find("bytes")->as_uint64() == folder.read(*row.find("file")->as_string()).size());
  // Nothing is left beside them.
  for (const std::string& name : folder.names()) CHECK(name.find(".tmp") == std::string::npos);

  const auto summary =
      parse_json(rdusim_ok({"trace", "summary", "a.rdulog", "--json"}, folder).out, "summary", Code::RDU8001);
  REQUIRE(summary.ok());
  CHECK(summary->find("cycles")->as_uint64() == traced.find("cycles")->find("simulated")->as_uint64());
  const auto path =
      parse_json(rdusim_ok({"trace", "critical-path", "a.rdulog", "--json"}, folder).out, "path", Code::RDU8001);
  REQUIRE(path.ok());
  CHECK(path->find("sum")->as_uint64() == path->find("cycles")->as_uint64());
  CHECK(rdusim_ok({"trace", "hot", "a.rdulog"}, folder).out.find("input_starvation") != std::string::npos);
  const Outcome replay = rdusim_ok({"trace", "replay", "a.rdulog"}, folder);
  CHECK(replay.out.find("verdict     pass") == 0);
  CHECK(replay.err.find("RDU8020") != std::string::npos);

  // A log gives what the run itself wrote, byte for byte.
  for (const char* name : {"pftrace", "json", "vcd"}) {
    rdusim_ok({"trace", "convert", "a.rdulog", "-o", std::string("b.") + name}, folder);
    CHECK(folder.read(std::string("b.") + name) == folder.read(std::string("a.") + name));
  }
  CHECK(rdusim_ok({"trace", "diff", "a.rdulog", "a.rdulog"}, folder).status == 0);
  CHECK(rdusim({"trace", "at", "a.rdulog", "soon"}, folder).status == 2);
  CHECK(rdusim({"trace", "page", "a.rdulog", "nobody:0"}, folder).status == 2);
  CHECK(rdusim({"trace", "summary", "prog.bin"}, folder).err.find("RDU8010") != std::string::npos);
}

TEST_CASE("what a log left out is left out of what it is converted to, and its path is refused") {
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "4"});
  run(folder, {"--trace", "all.rdulog"});
  run(folder, {"--trace", "a.rdulog", "--trace-filter", "chip=1"});
  rdusim_ok({"trace", "convert", "a.rdulog", "-o", "b.rdulog", "--filter", "kind=firing"}, folder);
  const auto summary = [&](const std::string& log) {
    const Outcome told = rdusim_ok({"trace", "summary", log, "--json"}, folder);
    CHECK((told.err.find("RDU8015") != std::string::npos) == (log != "all.rdulog"));
    const auto json = parse_json(told.out, "summary", Code::RDU8001);
    REQUIRE(json.ok());
    return *json;
  };
  const auto events = [](const Json& j) { return *j.find("events")->as_uint64(); };
  const auto left_out = [](const Json& j) { return *j.find("dropped")->find("filter")->as_uint64(); };
  const Json all = summary("all.rdulog"), a = summary("a.rdulog"), b = summary("b.rdulog");
  CHECK(events(b) < events(a));
  CHECK(events(a) < events(all));
  for (const Json* part : {&a, &b}) CHECK(events(*part) + left_out(*part) == events(all));
  CHECK(*b.find("filter")->as_string() == "chip=1 kind=firing");
  const Outcome path = rdusim({"trace", "critical-path", "b.rdulog"}, folder);
  CHECK(path.status == 2);
  CHECK(path.err.find("RDU8015") != std::string::npos);
}

TEST_CASE("trace options that cannot be meant are refused") {
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "4"});
  run(folder, {"--trace", "a.rdulog"});
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--trace-filter", "chip=1"},
                                             {"--trace-limit", "1MB"},
                                             {"--trace", "b.vcd", "--trace-from", "10", "--trace-to", "5"},
                                             {"--trace", "b.vcd", "--vcd", "b.vcd"},
                                             {"--trace", "b.json", "--report", "b.json"}}) {
    std::vector<std::string> command = {"run", "prog.bin"};
    command.insert(command.end(), options.begin(), options.end());
    const Outcome refused = rdusim(command, folder);
    CAPTURE(refused.err);
    CHECK(refused.status == 2);
    CHECK(refused.err.find("RDU6005") != std::string::npos);
    CHECK_FALSE(folder.has("b.vcd"));
  }
  CHECK(rdusim({"trace", "diff", "a.rdulog", "-"}, folder).err.find("more than once") != std::string::npos);
  CHECK(rdusim({"trace", "timeline", "a.rdulog", "link0", "--from", "10", "--to", "5"}, folder).status == 2);
}

// By edge, the least slack of its channels, as `rdusim trace critical-path` tells it; 0 where it tells none.
std::map<std::int64_t, std::int64_t> slack_of_edges(const Json& path) {
  std::map<std::int64_t, std::int64_t> slack;
  for (const Json& row : list(path, "slack")) {
    const std::string unit = text(row, "unit");
    if (unit.starts_with("edge ")) slack[std::stoll(unit.substr(5))] = number(row, "slack");
  }
  return slack;
}

TEST_CASE("a link that stands still lengthens a run by no more than what the slack of its crossings leaves of it") {
  constexpr std::int64_t stands_still = 4096;  // cycles: models/units, link_stall
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "4", "--shard", "row", "--collective", "ring"});
  const Json plain = run(folder, {"--trace", "a.rdulog"});
  const std::int64_t cycles = number(plain, "cycles", "simulated");
  const Json path = parsed(rdusim_ok({"trace", "critical-path", "a.rdulog", "--top", "100000", "--json"}, folder).out);
  const auto slack = slack_of_edges(path);
  const Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  std::size_t tried = 0;
  for (const Json& link : list(plain, "links")) {
    const std::string name = text(link, "name");  // "link3 chip0->chip1"
    const std::string id = name.substr(0, name.find(' '));
    // Of the crossings that pass it, and of those whose credits come back on it, the least.
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const Json& edge : list(program, "edges")) {
      if (edge.find("routes") == nullptr) continue;  // within a site
      for (const Json& route : list(edge, "routes")) {
        for (const Json& hop : list(route)) {
          const auto end = std::find_if(list(plain, "links").begin(), list(plain, "links").end(), [&](const Json& l) {
            return text(l, "name").starts_with("link" + std::to_string(*hop.as_int64()) + " ");
          });
          REQUIRE(end != list(plain, "links").end());
          const std::string there = text(*end, "name").substr(text(*end, "name").find(' ') + 1);
          const std::string back = there.substr(there.find('>') + 1) + "->" + there.substr(0, there.find('-'));
          const std::string own = name.substr(name.find(' ') + 1);
          if (own != there && own != back) continue;
          const auto found = slack.find(number(edge, "id"));
          least = std::min(least, found == slack.end() ? 0 : found->second);
        }
      }
    }
    if (least == std::numeric_limits<std::int64_t>::max()) continue;
    CAPTURE(name);
    CAPTURE(least);
    const Json late = run(folder, {"--inject", "link_stall@" + id});
    CHECK(number(late, "cycles", "simulated") <= cycles + std::max<std::int64_t>(0, stands_still - least));
    ++tried;
  }
  CHECK(tried >= 4);
}

TEST_CASE("what a check finds is in the trace that the run leaves, and a replay finds it again") {
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "4"});
  const Outcome run = rdusim(
      {"run", "prog.bin", "--inject", "partial_skip@matmul0.all_reduce.fold_c0:1", "--trace", "a.rdulog"}, folder);
  CHECK(run.status == 1);
  const Outcome replay = rdusim({"trace", "replay", "a.rdulog"}, folder);
  CHECK(replay.status == 1);
  CHECK(errors_of(replay).find("RDU7009") == 0);
  CHECK(errors_of(replay) == errors_of(run));
}

TEST_CASE(
    "of the 16-chip example, hot agrees with the report to the cycle, and the critical path sums to it and ends at a "
    "store") {
  const Folder folder;
  rdusim_ok(
      {"compile", source("examples/llama-3.1-8b-down-proj.toml"), "--chips", "16", "--shard", "row", "-o", "prog.bin"},
      folder);
  const Json report = run(folder, {"--timing-only", "--trace", "a.rdulog"});
  const std::int64_t cycles = number(report, "cycles", "simulated");
  const Json path = parsed(rdusim_ok({"trace", "critical-path", "a.rdulog", "--json"}, folder).out);
  CHECK(number(path, "sum") == cycles);
  CHECK(text(path, "ends_at").find("store") != std::string::npos);
  const Json hot = parsed(rdusim_ok({"trace", "hot", "a.rdulog", "--top", "100000", "--json"}, folder).out);
  std::map<std::string, const Json*> stages;
  for (const Json& s : list(report, "stages")) stages[text(s, "name")] = &s;
  CHECK(list(hot, "stages").size() == stages.size());
  for (const Json& row : list(hot, "stages")) {
    const Json& stage = *stages.at(text(row, "stage"));
    CAPTURE(text(row, "stage"));
    for (const char* figure : {"cycles", "busy", "idle"}) CHECK(number(row, figure) == number(stage, figure));
    for (const auto& [cause, stalled] : *at(stage, "stall").as_object())
      CHECK(number(row, cause) == *stalled.as_int64());
  }
  std::map<std::string, std::int64_t> links;
  for (const Json& l : list(report, "links")) links[text(l, "name")] = number(l, "busy_cycles");
  CHECK(list(hot, "links").size() == links.size());
  for (const Json& row : list(hot, "links")) CHECK(number(row, "busy_cycles") == links.at(text(row, "link")));
}

// Bytes that are written of a file that is not closed yet: it stands beside its name.
std::uintmax_t bytes_so_far(const Folder& folder, const std::string& name) {
  for (const std::string& other : folder.names()) {
    std::error_code error;
    if (!other.starts_with(name)) continue;
    const std::uintmax_t size = std::filesystem::file_size(folder.file(other), error);
    if (!error) return size;
  }
  return 0;
}

TEST_CASE("Ctrl-C in the middle of a run leaves a trace of each form whole, and the flight recorder's last events") {
  const Folder folder;
  compile(folder, matmul(2048, 2048, 2048), {"--chips", "1"});  // tens of seconds, traced so
  std::vector<std::string> words = {"run", "prog.bin", "--report", "report.json", "--check", "none"};
  std::vector<std::string> forms = {"rdulog", "pftrace", "json", "vcd"};
  if (fst_available()) forms.push_back("fst");
  for (const std::string& form : forms) words.insert(words.end(), {"--trace", "a." + form});
  Running running(words, folder);
  for (int i = 0; i < 30000 && bytes_so_far(folder, "a.rdulog") == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  running.send(SIGINT);
  const Outcome outcome = running.finish();
  INFO(outcome.err);
  REQUIRE(outcome.status == 130);
  for (const std::string& name : folder.names()) CHECK(name.find(".tmp") == std::string::npos);
  const Json report = parsed(folder.read("report.json"));
  const std::int64_t cycles = number(report, "cycles", "simulated");
  CHECK(cycles > 0);
  CHECK_FALSE(list(report, "flight").empty());

  // The log says how far it came, and gives what the run wrote in every other form.
  const Json summary = parsed(rdusim_ok({"trace", "summary", "a.rdulog", "--json"}, folder).out);
  CHECK(number(summary, "cycles") == cycles);
  CHECK(text(summary, "end") == "stopped");
  for (const std::string& form : forms) {
    CAPTURE(form);
    rdusim_ok({"trace", "convert", "a.rdulog", "-o", "b." + form}, folder);
    CHECK(folder.read("b." + form) == folder.read("a." + form));
  }
  // Readers of others take them.
  CHECK(shell("set -o pipefail; protoc --proto_path=" + source("tests/traces") +
                  " --decode=perfetto.protos.Trace perfetto_subset.proto <a.pftrace | grep -c 'packet {' >/dev/null",
              folder)
            .status == 0);
  CHECK(shell("python3 -c 'import json; assert json.load(open(\"a.json\"))[\"traceEvents\"]'", folder).status == 0);
  CHECK(shell("vcd2fst a.vcd back.fst && fst2vcd back.fst >vcd.txt", folder).status == 0);
  const auto last_time = [&](const std::string& name) {
    const std::string all = folder.read(name);
    const std::size_t at = all.rfind("\n#") + 1;  // a name may be '#' too
    return all.substr(at, all.find('\n', at) - at);
  };
  CHECK(last_time("vcd.txt") == last_time("a.vcd"));
  if (!fst_available()) return;
  CHECK(shell("fst2vcd a.fst >fst.txt", folder).status == 0);
  CHECK(last_time("fst.txt") == last_time("a.vcd"));
}

}  // namespace
}  // namespace rdusim::test::traces_test
