#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "sim/fault_matrix.h"
#include "sim/fault_text.h"
#include "tests/sim/small_program.h"

namespace rdusim::fault_matrix_test {
namespace {

using namespace test;

std::vector<FaultKind> all_kinds() {
  std::vector<FaultKind> kinds;
  for (const FaultLaw& l : fault_laws) kinds.push_back(l.kind);
  return kinds;
}

TEST_CASE("planned faults exist, and are the same from plan to plan") {
  for (const Handshake h : {Handshake::token, Handshake::semaphore, Handshake::barrier}) {
    const SpatialProgram p = small_program(h);
    const auto planned = plan_faults(p, all_kinds(), 8);
    const auto again = plan_faults(p, all_kinds(), 8);
    REQUIRE(planned.size() == again.size());
    REQUIRE(!planned.empty());
    for (std::size_t i = 0; i < planned.size(); ++i) {
      CAPTURE(planned[i].text);
      CHECK(planned[i].text == again[i].text);
      const auto read = parse_fault(planned[i].text, p);
      REQUIRE(read);
      CHECK(to_text(*read, p) == planned[i].text);
    }
  }
}

TEST_CASE("a hand-off is planned only with faults of its own signals") {
  const auto planned_on = [](Handshake h, FaultKind k) { return !plan_faults(small_program(h), {k}, 3).empty(); };
  CHECK(planned_on(Handshake::token, FaultKind::credit_drop));
  CHECK_FALSE(planned_on(Handshake::semaphore, FaultKind::credit_drop));
  CHECK(planned_on(Handshake::semaphore, FaultKind::valid_early));
  CHECK_FALSE(planned_on(Handshake::barrier, FaultKind::valid_early));
  CHECK(planned_on(Handshake::barrier, FaultKind::arrive_early));
  CHECK_FALSE(planned_on(Handshake::token, FaultKind::arrive_early));
}

TEST_CASE("what became of a fault follows from what it struck, what was said, and what came out") {
  IsolatedRun whole;
  whole.ended = true;
  whole.outputs = "a", whole.counts = "b";
  IsolatedRun run = whole;
  run.struck = {1};
  const FaultKind kind = FaultKind::partial_skip;  // RDU7009 is meant for it
  CHECK(judge(kind, whole, run) == FaultFate::harmless);
  run.struck = {0};
  CHECK(judge(kind, whole, run) == FaultFate::idle);
  run.struck = {1};
  run.outputs = "c";
  CHECK(judge(kind, whole, run) == FaultFate::missed);
  run.outputs = "a";
  run.counts = "c";
  CHECK(judge(kind, whole, run) == FaultFate::missed);
  run.status = ExitStatus::program_fault;
  run.errors = {Code::RDU7009, Code::RDU7015};
  CHECK(judge(kind, whole, run) == FaultFate::caught);
  run.errors = {Code::RDU7015};
  CHECK(judge(kind, whole, run) == FaultFate::elsewhere);
  run.status = ExitStatus::limit;
  CHECK(judge(kind, whole, run) == FaultFate::missed);
  run.ended = false;
  CHECK(judge(kind, whole, run) == FaultFate::missed);
}

TEST_CASE("the table gives every kind a name of its own and a check, unless it costs time alone") {
  for (const FaultLaw& l : fault_laws) {
    CAPTURE(l.name);
    CHECK(std::count_if(fault_laws.begin(), fault_laws.end(), [&](const FaultLaw& o) { return o.name == l.name; }) ==
          1);
    CHECK_FALSE(l.what.empty());
    if (l.checks.begin() == l.checks.end()) CHECK((l.kind == FaultKind::link_stall || l.kind == FaultKind::link_retry));
  }
}

TEST_CASE("the page about faults has the table's rows") {
  std::ifstream in(std::string(RDUSIM_SOURCE_DIR) + "/sim/faults.md", std::ios::binary);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  for (const FaultLaw& l : fault_laws) {
    const std::string row = fmt::format("| {} | {} | {} | {} |\n", l.name, name_of(l.place), l.what, checks_of(l));
    CAPTURE(row);
    CHECK(page.find(row) != std::string::npos);
  }
}

}  // namespace
}  // namespace rdusim::fault_matrix_test
