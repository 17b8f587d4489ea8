// What a trace does not hold is counted, in the report and in the file itself, whatever its format.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>

#include "tests/traces/signal_fold.h"
#include "tests/traces/traced_run.h"
#include "traces/critical_path.h"
#include "traces/event_log.h"
#include "traces/fst.h"
#include "traces/inspect.h"
#include "traces/timebase.h"

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
  options.trace.limit = 80'000;
  std::vector<std::string> files = {folder / "a.rdulog", folder / "a.vcd", folder / "a.pftrace", folder / "a.json"};
  if (fst_available()) files.push_back(folder / "a.fst");
  const RunResult run = traced(small_matmul(), files, options);
  for (const std::string& file : files) CHECK(file_bytes(file).size() <= *options.trace.limit);
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
  const auto at = inspect_at(third, 4000);
  REQUIRE(at.ok());
  CHECK(at->notes.to_text().find("chip=1") != std::string::npos);
}

TEST_CASE("a limit that a format's head does not fit in is refused before the run, and one that it does is kept") {
  const Scratch folder;
  const LoadedProgram loaded = small_matmul();
  std::vector<std::string> formats = {"rdulog", "vcd", "pftrace", "json"};
  if (fst_available()) formats.push_back("fst");
  for (const std::string& format : formats) {
    CAPTURE(format);
    TraceOptions options;
    options.files = {folder / ("a." + format)};
    options.limit = 1000;
    const auto refused = RunTraces::open(loaded, options, "{}");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.diagnostics().list().front().code == Code::RDU8021);
    CHECK_FALSE(std::filesystem::exists(options.files.front()));
    // Without an event, the head is all there is.
    options.limit = 1'000'000;
    auto open = RunTraces::open(loaded, options, "{}");
    REQUIRE(open.ok());
    const auto rows = open->finish({"finished", 0, "null", {}});
    REQUIRE(rows.ok());
    const Bytes head = rows->front().size.bytes;
    options.limit = head - 1;
    CAPTURE(head);
    CHECK_FALSE(RunTraces::open(loaded, options, "{}").ok());
    options.limit = head + (1 << 14) + 256;
    CHECK(RunTraces::open(loaded, options, "{}").ok());
  }
}

TEST_CASE("what is converted keeps its limit in every format, and says what that left out") {
  const Scratch folder;
  const LoadedProgram loaded = small_matmul();
  RunOptions run;
  run.values = false;
  traced(loaded, {folder / "a.rdulog"}, run);
  std::vector<std::string> formats = {"rdulog", "vcd", "pftrace", "json"};
  if (fst_available()) formats.push_back("fst");
  for (const std::string& format : formats) {
    CAPTURE(format);
    auto log = EventLogReader::open(folder / "a.rdulog");
    REQUIRE(log.ok());
    const auto program = log->program();
    REQUIRE(program.ok());
    TraceOptions options;
    options.files = {folder / ("b." + format)};
    auto empty = RunTraces::open(log->roster(), *program, options, log->head().run, "");
    REQUIRE(empty.ok());
    const auto nothing = empty->finish({"finished", 0, "null", {}});
    REQUIRE(nothing.ok());
    // A log keeps room for its end, and fstapi's blocks are larger than their parts.
    const bool roomy = format == "rdulog" || format == "fst";
    options.limit = nothing->front().size.bytes + (roomy ? 1 << 14 : 0) + 3000;
    auto again = EventLogReader::open(folder / "a.rdulog");
    REQUIRE(again.ok());
    const auto converted = convert_log(*again, options);
    REQUIRE(converted.ok());
    const TraceSize& size = converted->size;
    CHECK(size.bytes == file_bytes(options.files.front()).size());
    CHECK(size.bytes <= *options.limit);
    CHECK(size.bytes > nothing->front().size.bytes);
    // All of it takes less as an FST.
    if (format != "fst") CHECK(size.dropped.limit > 0);
  }
}

TEST_CASE("what is made of a log that was cut, or has a window, says so wherever it is read") {
  const Scratch folder;
  RunOptions options;
  options.values = false;
  const RunResult run = traced(small_matmul(), {folder / "a.rdulog"}, options);
  const std::string bytes = file_bytes(folder / "a.rdulog");
  put_file(folder / "cut.rdulog", bytes.substr(0, bytes.size() - 1000));
  put_file(folder / "program.rdulog", bytes.substr(0, bytes.size() / 8));
  const auto opened = [&](const std::string& file) {
    auto log = EventLogReader::open(folder / file);
    REQUIRE(log.ok());
    return std::move(log).value();
  };
  const auto convert = [&](const std::string& from, const std::string& to, std::optional<Cycle> first,
                           std::vector<std::string> filters = {}) {
    EventLogReader log = opened(from);
    TraceOptions to_options;
    to_options.files = {folder / to};
    to_options.from = first;
    to_options.filters = std::move(filters);
    const auto converted = convert_log(log, to_options);
    return converted ? Diagnostics() : converted.diagnostics();
  };
  // The answer stops before the log's end, where what was left out is counted.
  REQUIRE(convert("a.rdulog", "window.rdulog", run.report.cycles - 40).empty());
  EventLogReader window = opened("window.rdulog");
  const auto early = inspect_at(window, run.report.cycles - 20);
  REQUIRE(early.ok());
  CHECK(early->notes.to_text().find(fmt::format("cycle>={}", run.report.cycles - 40)) != std::string::npos);
  EventLogReader of_page = opened("window.rdulog");
  const std::string loaded_first = of_page.roster().buffers.front().name + ":0";
  const Diagnostics page = inspect_page(of_page, loaded_first).diagnostics();
  CHECK(page.contains(Code::RDU8015));
  CHECK(page.to_text().find("was not pushed in what the log has") != std::string::npos);

  REQUIRE(convert("cut.rdulog", "b.rdulog", std::nullopt).empty());
  EventLogReader again = opened("b.rdulog");
  const auto counts = inspect_counts(again, 5);
  REQUIRE(counts.ok());
  CHECK(counts->notes.to_text().find("was cut") != std::string::npos);
  REQUIRE(convert("cut.rdulog", "b.vcd", std::nullopt).empty());
  CHECK(file_bytes(folder / "b.vcd").find("the log that it was made of was cut") != std::string::npos);
  REQUIRE(convert("cut.rdulog", "b.json", std::nullopt).empty());
  CHECK(file_bytes(folder / "b.json").find("\"end\":\"cut\"") != std::string::npos);
  REQUIRE(convert("cut.rdulog", "b.pftrace", std::nullopt).empty());
  CHECK(told(folder, "protoc --proto_path=" RDUSIM_SOURCE_DIR
                     "/tests/traces --decode=perfetto.protos.Trace perfetto_subset.proto < " +
                         (folder / "b.pftrace"))
            .find("string_value: \"cut\"") != std::string::npos);
  if (fst_available()) {
    REQUIRE(convert("cut.rdulog", "b.fst", std::nullopt).empty());
    CHECK(told(folder, "fst2vcd " + (folder / "b.fst")).find("made of a log that was cut") != std::string::npos);
  }

  EventLogReader in_program = opened("program.rdulog");
  CHECK(in_program.program().diagnostics().contains(Code::RDU8014));

  // Timelines have no links; waveforms do.
  CHECK(convert("a.rdulog", "links.json", std::nullopt, {"kind=link"}).contains(Code::RDU8022));
  CHECK_FALSE(std::filesystem::exists(folder / "links.json"));
  CHECK(convert("a.rdulog", "links.vcd", std::nullopt, {"kind=link"}).empty());
}

TEST_CASE("a waveform's values are right whatever kinds of events its filter keeps") {
  const Scratch folder;
  RunOptions options;
  options.values = false;
  options.trace.filters = {"kind=page-pushed", "chip=1"};
  const LoadedProgram loaded = small_matmul();
  const RunResult run = traced(loaded, {folder / "a.vcd"}, options);
  const Waveform shown = read_vcd(file_bytes(folder / "a.vcd"), timebase_of(loaded.target.clock_ghz));
  std::size_t buffers = 0;
  for (const auto& [name, values] : shown) {
    if (!name.ends_with(".occupancy")) continue;
    INFO(name);
    ++buffers;
    CHECK(values.rbegin()->second == 0);  // all pages were taken in the end
  }
  CHECK(buffers > 3);
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
