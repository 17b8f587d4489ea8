#include "compiler/ir/throughput.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/compiler/ir/rate_programs.h"

namespace rdusim::throughput_test {
namespace {

using sample::pair_of;

// 'split' takes ten cycles until its pages are seen, 'merge' five until their room is.
struct Timed {
  SpatialProgram p;
  std::vector<StageTiming> timing;
  Throughput at(std::uint64_t first, std::uint64_t second) {
    sample::buffer(p, "first").depth_pages = first;
    sample::buffer(p, "second").depth_pages = second;
    const auto clusters = clusters_of(p);
    REQUIRE(clusters.size() == 1);
    return throughput_of(p, clusters[0], timing);
  }
  std::uint64_t full_rate(const Throughput& t, const char* name) {
    return t.full_rate_depth[sample::buffer(p, name).id.value];
  }
};
Timed timed(std::array<std::uint32_t, 4> rates = {1, 1, 1, 1}) {
  Timed t{pair_of(rates), {}};
  t.timing = {{1, 1, 1}, {1, 10, 1}, {1, 1, 5}};
  return t;
}

// 'merge' has two bodies in turn, so that a part of a trip is two firings.
constexpr std::uint64_t firings = 2;

TEST_CASE("two pages that take fifteen cycles to go round pass one in seven and a half") {
  Timed t = timed();
  const Throughput found = t.at(2, 100);
  CHECK(found.looked_at);
  REQUIRE(found.circle.has_value());
  CHECK(found.circle->cycles * 2 == found.circle->parts * firings * 15);
  CHECK(found.circle->buffers == std::vector{sample::buffer(t.p, "first").id});
  REQUIRE(found.circle->stages.size() == 2);
  std::vector<std::string> names;
  for (const StageId id : found.circle->stages) names.push_back(t.p.stage(id).name);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"merge", "split"});
}

TEST_CASE("a buffer is at full rate with a page for every cycle of the way round, and not with one less") {
  Timed t = timed();
  CHECK(t.full_rate(t.at(2, 100), "first") == 15);
  CHECK(t.full_rate(t.at(100, 100), "first") == 15);
  const auto rate = [](const Throughput& x) {
    return static_cast<double>(x.circle->cycles) / static_cast<double>(x.circle->parts * firings);
  };
  CHECK(rate(t.at(15, 100)) == 1);
  CHECK(rate(t.at(14, 100)) > 1);
}

TEST_CASE("a buffer beside a slower one need not be faster than it") {
  Timed t = timed();
  CHECK(t.full_rate(t.at(100, 3), "first") == 3);
  CHECK(t.full_rate(t.at(100, 3), "second") == 15);
}

TEST_CASE("a stage's own interval is a circle, and what keeps up with it is deep enough") {
  Timed t = timed();
  t.timing[2].interval = 8;
  const Throughput found = t.at(2, 2);
  REQUIRE(found.circle.has_value());
  CHECK(found.circle->cycles == 8 * found.circle->parts * firings);
  CHECK(found.circle->buffers.empty());
  REQUIRE(found.circle->stages.size() == 1);
  CHECK(t.p.stage(found.circle->stages[0]).name == "merge");
  CHECK(t.full_rate(found, "first") == 2);
}

TEST_CASE("pages that go round from the start set the pace of a loop") {
  for (const std::uint64_t pages : {1u, 2u, 5u}) {
    Timed t = timed();
    // 'merge' hands a page back to 'split'.
    sample::Builder b({});
    Buffer back = sample::buffer(t.p, "first");
    back.id = BufferId{t.p.buffers.size()};
    back.name = "back";
    back.depth_pages = 50;
    back.initial_pages = pages;
    t.p.buffers.push_back(back);
    Stage& split = sample::stage(t.p, "split");
    Stage& merge = sample::stage(t.p, "merge");
    split.ports.insert(split.ports.begin() + 1, b.input(back.id));
    merge.ports.push_back(b.output(back.id));
    Edge e = t.p.edges.back();
    e.id = EdgeId{t.p.edges.size()};
    e.from = merge.id;
    e.buffer = back.id;
    e.to = {split.id};
    t.p.edges.push_back(e);
    const Throughput found = t.at(50, 50);
    CAPTURE(pages);
    REQUIRE(found.circle.has_value());
    // Ten cycles to merge, one back.
    CHECK(found.circle->cycles * pages == 11 * found.circle->parts * firings);
  }
}

TEST_CASE("a program with more firings than are looked at says so") {
  Timed t = timed();
  for (Stage& s : t.p.stages) s.firings = 10'001;
  std::get<Load>(t.p.stages[0].kind).pattern.loops = {10'001};
  std::get<Load>(t.p.stages[0].kind).pattern.stride = {{0, 0}};
  t.p.stages[1].ports[0].need = t.p.stages[1].ports[0].pop = {{10'001, 1}};  // nothing repeats within the trip
  const Throughput found = t.at(2, 2);
  CHECK_FALSE(found.looked_at);
  CHECK_FALSE(found.circle.has_value());
}

}  // namespace
}  // namespace rdusim::throughput_test
