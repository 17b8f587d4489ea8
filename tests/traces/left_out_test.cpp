// What a trace does not hold is counted, in the report and in the file itself, whatever its format.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>

#include "tests/traces/traced_run.h"
#include "traces/critical_path.h"
#include "traces/event_log.h"
#include "traces/fst.h"
#include "traces/inspect.h"

namespace rdusim::left_out_test {
namespace {

using namespace test;

// What another program makes of a file.
std::string told(const Scratch& folder, const std::string& command) {
  const std::string out = folder / "told";
  REQUIRE(std::system((command + " > " + out + " 2>/dev/null").c_str()) == 0);
  return file_bytes(out);
}

TEST_CASE("every format says in the file what the filter, the window and the limit left out, as the report does") {
  const Scratch folder;
  RunOptions options;
  options.values = false;
  options.trace.filters = {"chip=1"};
  options.trace.from = 5500;
  options.trace.limit = 6000;
  std::vector<std::string> files = {folder / "a.rdulog", folder / "a.vcd", folder / "a.pftrace", folder / "a.json"};
  if (fst_available()) files.push_back(folder / "a.fst");
  const RunResult run = traced(small_matmul(), files, options);
  const JsonArray& rows = *run.report.traces.as_array();
  REQUIRE(rows.size() == files.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(files[i]);
    const auto count = [&](const char* key) { return *rows[i].find("dropped")->find(key)->as_uint64(); };
    const std::uint64_t filter = count("filter"), window = count("window"), limit = count("limit");
    CHECK(filter > 0);
    CHECK(window > 0);
    const std::string words = fmt::format(
        "left out: {} events by the filter, {} by the window, {} changes by the limit", filter, window, limit);
    const auto has = [](const std::string& text, const std::string& part) {
      return text.find(part) != std::string::npos;
    };
    if (files[i].ends_with(".rdulog")) {
      auto log = EventLogReader::open(files[i]);
      REQUIRE(log.ok());
      Recorder nothing(log->roster(), nullptr);
      const auto end = log->read(nothing);
      REQUIRE(end.ok());
      CHECK(end->dropped.filter == filter);
      CHECK(end->dropped.window == window);
      CHECK(end->dropped.limit == limit);
    } else if (files[i].ends_with(".vcd")) {
      CHECK(limit > 0);
      CHECK(has(file_bytes(files[i]), words));
    } else if (files[i].ends_with(".fst")) {
      CHECK(has(told(folder, "fst2vcd " + files[i]), words));
    } else if (files[i].ends_with(".json")) {
      CHECK(has(file_bytes(files[i]),
                fmt::format("\"by_filter\":{},\"by_window\":{},\"by_limit\":{}", filter, window, limit)));
    } else {
      const std::string text = told(folder, "protoc --proto_path=" RDUSIM_SOURCE_DIR
                                            "/tests/traces --decode=perfetto.protos.Trace perfetto_subset.proto < " +
                                                files[i]);
      const std::size_t at = text.find("TYPE_INSTANT");
      REQUIRE(at != std::string::npos);
      const std::size_t packet = text.rfind("packet {", at);
      const std::string last = text.substr(packet, text.find("\n}", at) - packet);
      for (const std::uint64_t n : {filter, window, limit}) CHECK(has(last, fmt::format("uint_value: {}\n", n)));
      CHECK(has(text, "\"left out of this trace\""));
    }
  }
}

TEST_CASE("of a log that left events out, what is asked says so, and what would be wrong is refused") {
  const Scratch folder;
  RunOptions options;
  options.values = false;
  options.trace.filters = {"chip=1"};
  traced(small_matmul(), {folder / "a.rdulog"}, options);
  const auto log = [&](const std::string& file) {
    auto opened = EventLogReader::open(folder / file);
    REQUIRE(opened.ok());
    return std::move(opened).value();
  };
  EventLogReader first = log("a.rdulog");
  const auto path = critical_path(first, 5);
  REQUIRE_FALSE(path.ok());
  CHECK(path.diagnostics().list().front().code == Code::RDU8015);
  EventLogReader second = log("a.rdulog");
  const auto counts = inspect_counts(second, 5);
  REQUIRE(counts.ok());
  REQUIRE_FALSE(counts->notes.list().empty());
  CHECK(counts->notes.list().front().code == Code::RDU8015);
  EventLogReader third = log("a.rdulog");
  const auto at = inspect_at(third, 5000);
  REQUIRE(at.ok());
  CHECK(at->notes.to_text().find("chip=1") != std::string::npos);
}

TEST_CASE("an FST keeps its limit, and is whole up to it") {
  if (!fst_available()) return;
  const Scratch folder;
  RunOptions options;
  options.values = false;
  options.trace.filters = {"chip=5"};
  options.trace.limit = 220'000;
  const RunResult run = traced(compiled("llama-3.1-8b-down-proj.toml", 16), {folder / "a.fst"}, options);
  const Json& row = run.report.traces.as_array()->front();
  CHECK(*row.find("dropped")->find("limit")->as_uint64() > 0);
  const Bytes bytes = file_bytes(folder / "a.fst").size();
  CHECK(bytes == *row.find("bytes")->as_uint64());
  CHECK(bytes <= 220'000);
  CHECK(bytes > 50'000);
  CHECK(told(folder, "fst2vcd " + (folder / "a.fst")).size() > 1'000'000);
}

}  // namespace
}  // namespace rdusim::left_out_test
