#include "compiler/ir/circle_bound.h"

#include <doctest/doctest.h>

#include "compiler/ir/circle_text.h"
#include "tests/compiler/ir/rate_programs.h"

namespace rdusim::circle_bound_test {
namespace {

// 'split' takes ten cycles until its pages are seen, 'merge' five until their room is; four firings each a trip, two of
// which are a part.
struct Timed {
  SpatialProgram p = sample::pair_of({1, 1, 1, 1});
  std::vector<StageTiming> least = {{1, 1, 1}, {1, 10, 1}, {1, 1, 5}};

  CircleClaim claim(std::uint64_t depth, std::uint64_t trips) {
    sample::buffer(p, "first").depth_pages = depth;
    sample::buffer(p, "second").depth_pages = 100;
    const auto clusters = clusters_of(p);
    REQUIRE(clusters.size() == 1);
    const auto found = circle_bound(p, clusters[0], least, trips);
    REQUIRE(found.has_value());
    return *found;
  }
};

TEST_CASE("a buffer of two pages lets its ends go round once for two pages, and no faster") {
  Timed t;
  // Two parts a trip, two pages a part: fifteen cycles for each part.
  const CircleClaim c = t.claim(2, 100);
  CHECK(c.cycles == 15 * c.parts);
  CHECK(c.rounds == (200 - 1) / c.parts);
  CHECK(c.buffers == std::vector{sample::buffer(t.p, "first").id});
  REQUIRE(c.bound().has_value());
  CHECK(*c.bound() == c.cycles * c.rounds + c.way);
  // Of 400 pages, the last two parts' worth may overlap: what lies before and after is within two rounds.
  CHECK(*c.bound() >= 15 * 199);
  CHECK(*c.bound() <= 15 * 201 + 10);
  CHECK(circle_text(t.p, c).find("through 'first' (depth 2) takes") != std::string::npos);
}

TEST_CASE("a shallower buffer has the greater bound, by what a round of its pages takes, and more trips never less") {
  Timed t;
  // 200 pages, fifteen cycles a page, two, three; at depth 100 a cycle a page and the way through.
  CHECK(*t.claim(1, 50).bound() >= 15 * 199);
  CHECK(*t.claim(2, 50).bound() >= 15 * 99);
  CHECK(*t.claim(3, 50).bound() >= 15 * 65);
  CHECK(*t.claim(100, 50).bound() >= 199);
  CHECK(*t.claim(100, 50).bound() <= 200 + 16);
  Cycles less = 0;
  for (const std::uint64_t trips : {1u, 2u, 3u, 10u, 1000u}) {
    const Cycles now = *t.claim(2, trips).bound();
    CHECK(now >= less);
    less = now;
  }
}

TEST_CASE("of a part that the run makes once, the longest way through its firings is the bound") {
  Timed t;
  for (Stage& s : t.p.stages) s.firings = 2;
  std::get<Load>(t.p.stages[0].kind).pattern.loops = {2};
  std::get<Load>(t.p.stages[0].kind).pattern.stride = {{0, 0}};
  const CircleClaim c = t.claim(100, 1);
  CHECK(c.rounds == 0);
  CHECK(c.cycles == 0);
  // load 1, load again 1, split's pages 10, merge's room 5.
  CHECK(*c.bound() == 1 + 1 + 10 + 5);
  std::vector<std::string> names;
  for (const StageId id : c.stages) names.push_back(t.p.stage(id).name);
  REQUIRE_FALSE(names.empty());
  CHECK(names.front() == t.p.stages[0].name);
  CHECK(names.back() == "merge");
  CHECK(circle_text(t.p, c).find("so long is the way of firings of '") != std::string::npos);
}

TEST_CASE("a claim too great to count has no bound, and one of ids that there are not is still a sentence") {
  CircleClaim c;
  c.cycles = ~Cycles{0};
  c.rounds = 2;
  CHECK_FALSE(c.bound().has_value());
  c = {SectionId{77u}, {StageId{99u}}, {BufferId{99u}}, 1, 1, 1, 1};
  CHECK_FALSE(circle_text(Timed{}.p, c).empty());
}

}  // namespace
}  // namespace rdusim::circle_bound_test
