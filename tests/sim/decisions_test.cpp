#include "sim/decisions.h"

#include <doctest/doctest.h>

#include "tests/sim/small_program.h"

namespace rdusim::test::decisions_test {
namespace {

std::string text(const SpatialProgram& p) {
  return to_text(decisions_of(p), true);
}

TEST_CASE("decisions are those of the program, chips that were given the same in one row") {
  const SpatialProgram p = small_program();
  const Json j = decisions_of(p);
  CHECK(j.find("tile")->as_uint64() == p.header.native_tile);
  CHECK(j.find("shard")->find("chips")->as_uint64() == 2);
  const JsonArray& placement = *j.find("placement")->as_array();
  std::size_t stages = 0;
  for (const Json& row : placement) {
    const std::string& name = *row.find("name")->as_string();
    CAPTURE(name);
    CHECK(name.find("_c0") == std::string::npos);
    CHECK(row.find("sites")->as_uint64() >= 1);
    ++stages;
  }
  CHECK(stages < p.stages.size());
}

TEST_CASE("a decision that is taken otherwise shows") {
  const std::string before = text(small_program());
  SpatialProgram p = small_program();
  CHECK(text(p) == before);
  REQUIRE(p.placement);
  p.placement->groups[p.stages[matmul1].group.value].sites[0].at.x += 1;
  CHECK(text(p) != before);
  p = small_program();
  p.header.plan.kind = ShardKind::column;
  CHECK(text(p) != before);
  p = small_program();
  p.sections.at(0).trips += 1;
  CHECK(text(p) != before);
}

}  // namespace
}  // namespace rdusim::test::decisions_test
