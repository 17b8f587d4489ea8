// The flight recorder as users meet it: in the report of a run that did not end well, and in its diagnosis.
#include <doctest/doctest.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::flight_test {
namespace {

// A run with a fault, and its report; whatever its status.
Json faulty(const Folder& folder, const std::string& fault, std::string& err) {
  const Outcome outcome = rdusim({"run", "prog.bin", "--report", "report.json", "--inject", fault}, folder);
  CHECK(outcome.status == 1);
  err = outcome.err;
  return parsed(folder.read("report.json"));
}

void check_flight(const Json& report) {
  const JsonArray& events = list(report, "flight");
  REQUIRE_FALSE(events.empty());
  CHECK(events.size() <= 200);
  std::int64_t before = 0;
  for (const Json& e : events) {
    CHECK(number(e, "cycle") >= before);
    before = number(e, "cycle");
    CHECK(text(e, "unit").find("chip") != std::string::npos);
    CHECK_FALSE(text(e, "event").empty());
  }
  CHECK(before <= number(report, "cycles", "simulated"));
}

TEST_CASE("a run that passes has no flight to tell") {
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "4", "--shard", "row"});
  CHECK(at(run(folder), "flight").is_null());
}

TEST_CASE("where a check fires the report has what went before, up to that cycle") {
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "4", "--shard", "row"});
  std::string err;
  const Json report = faulty(folder, "partial_skip@matmul0.all_reduce.fold_c0:1", err);
  CHECK(text(report, "verdict") == "check-failed");
  check_flight(report);
  const JsonArray& events = list(report, "flight");
  CHECK(number(events.back(), "cycle") + 1 >= number(report, "cycles", "simulated"));
}

TEST_CASE("a run that is stuck says of each that waits what it did last") {
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "4", "--shard", "row", "--collective", "ring"});
  // The last page of the first hand-off from chip to chip: nothing after it could tell.
  const Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  std::string fault;
  for (const Json& e : list(program, "edges")) {
    if (text(e, "handshake") != "token") continue;
    const auto last = number(program, "stages", static_cast<int>(number(e, "to", 0)), "firings") - 1;
    fault = "page_drop@edge" + std::to_string(number(e, "id")) + ":" + std::to_string(last);
    break;
  }
  std::string err;
  const Json report = faulty(folder, fault, err);
  CHECK(text(report, "verdict") == "lost-token");
  check_flight(report);
  // The hand-off that lost it, and who waits.
  CHECK(err.find(" landed; before that cycle ") != std::string::npos);
  CHECK(err.find("; before that cycle ") != std::string::npos);
  CHECK(err.find(" started, cycle ") != std::string::npos);
}

}  // namespace
}  // namespace rdusim::test::flight_test
