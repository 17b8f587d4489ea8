#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "compiler/cost/cost.h"
#include "tests/compiler/ir/sample_program.h"

namespace rdusim::collective_cost_test {
namespace {

constexpr CollectiveKind all_kinds[] = {CollectiveKind::reduce,         CollectiveKind::all_reduce,
                                        CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
                                        CollectiveKind::broadcast,      CollectiveKind::all_to_all};
constexpr CollectiveAlgorithm all_algorithms[] = {
    CollectiveAlgorithm::automatic,   CollectiveAlgorithm::through_one,      CollectiveAlgorithm::direct,
    CollectiveAlgorithm::ring,        CollectiveAlgorithm::halving_doubling, CollectiveAlgorithm::tree,
    CollectiveAlgorithm::hierarchical};

// Chips of which those that `joined` says have a link each way, 32 bytes a cycle, 100 cycles, signals free.
template <class Joined>
Target machine(std::uint32_t chips, Joined&& joined) {
  Target t = sample::target();
  t.chips = chips;
  t.links.clear();
  for (std::uint32_t a = 0; a < chips; ++a)
    for (std::uint32_t b = 0; b < chips; ++b)
      if (a != b && joined(a, b)) t.links.push_back({LinkId{t.links.size()}, ChipId{a}, ChipId{b}, {32, 1}, 100, 0});
  t.agcu.bytes_per_cycle = {1u << 20, 1};
  t.mesh = {1, 1};
  return t;
}
Target mesh_of(std::uint32_t n) {
  return machine(n, [](std::uint32_t, std::uint32_t) { return true; });
}
Target line_of(std::uint32_t n) {
  return machine(n, [](std::uint32_t a, std::uint32_t b) { return a + 1 == b || b + 1 == a; });
}
Target ring_of(std::uint32_t n) {
  return machine(n, [n](std::uint32_t a, std::uint32_t b) { return (a + 1) % n == b || (b + 1) % n == a; });
}
std::vector<ChipId> first(std::uint32_t n) {
  std::vector<ChipId> m;
  for (std::uint32_t c = 0; c < n; ++c) m.push_back(ChipId{c});
  return m;
}

TEST_CASE("a collective over one chip costs nothing") {
  const Target t = mesh_of(4);
  for (const auto kind : all_kinds)
    for (const auto algorithm : all_algorithms)
      CHECK(estimate_collective(kind, algorithm, 1 << 20, 128, {ChipId{2u}}, t) == CollectiveCost{});
}

TEST_CASE("a ring's all-reduce takes 2 (n - 1) steps of a chunk") {
  const Bytes bytes = 1 << 20;
  for (std::uint32_t n : {2u, 3u, 4u, 7u, 8u}) {
    CAPTURE(n);
    const auto c =
        estimate_collective(CollectiveKind::all_reduce, CollectiveAlgorithm::ring, bytes, 1, first(n), mesh_of(n));
    const Cycles chunk = ceil_div(ceil_div(bytes, std::uint64_t{n}), std::uint64_t{32});
    CHECK(c.cycles == 2 * (n - 1) * (100 + chunk));
    CHECK(c.latency_cycles == 2 * (n - 1) * 100);
    CHECK(c.bytes_per_chip == 2 * (n - 1) * ceil_div(bytes, std::uint64_t{n}));
  }
}

// https://github.com/astra-sim/astra-sim/issues/296: an all-reduce of 100 MB over 8 chips at 50 GB/s and 10 ns took, in a
// ring, 3,500.14 us; directly as long, or a seventh of it: 50 GB/s may be a chip's or a link's. At 1 GHz here.
TEST_CASE("100 MB over 8 chips at 50 GB/s and 10 ns, to the cycle, and a chip's rate is not a link's") {
  const auto with = [](Target t, std::uint64_t bytes_per_cycle_of_a_chip) {
    for (ChipLinkParameters& l : t.links) l.bytes_per_cycle = {50, 1}, l.latency_cycles = 10;
    t.agcu.bytes_per_cycle = {bytes_per_cycle_of_a_chip, t.agcu.at.size()};
    return t;
  };
  constexpr Bytes bytes = 100'000'000;
  constexpr std::uint64_t plenty = std::uint64_t{1} << 30;
  const auto took = [&](CollectiveAlgorithm a, const Target& t) {
    return estimate_collective(CollectiveKind::all_reduce, a, bytes, 1, first(8), t).cycles;
  };
  CHECK(took(CollectiveAlgorithm::ring, with(ring_of(8), plenty)) == 3'500'140);
  CHECK(took(CollectiveAlgorithm::direct, with(mesh_of(8), plenty)) == 500'020);
  CHECK(took(CollectiveAlgorithm::direct, with(mesh_of(8), 50)) == 3'500'020);
}

TEST_CASE("direct takes two steps of a chunk where every pair has a link") {
  const auto c =
      estimate_collective(CollectiveKind::all_reduce, CollectiveAlgorithm::direct, 1 << 20, 1, first(8), mesh_of(8));
  CHECK(c.cycles == 2 * (100 + (1 << 20) / 8 / 32));
}

TEST_CASE("through one, the whole crosses to the first member and back") {
  const auto c = estimate_collective(CollectiveKind::all_reduce, CollectiveAlgorithm::through_one, 1 << 20, 1, first(8),
                                     mesh_of(8));
  CHECK(c.cycles == 2 * (100 + (1 << 20) / 32));
  CHECK(c.bytes_per_chip == 7 * (1 << 20));  // the first sends the result to seven
  const auto reduce =
      estimate_collective(CollectiveKind::reduce, CollectiveAlgorithm::through_one, 1 << 20, 1, first(8), mesh_of(8));
  CHECK(2 * reduce.cycles == c.cycles);
}

TEST_CASE("halving and doubling takes two steps a bit of the members' number, of halves, quarters, ...") {
  const Bytes bytes = 1 << 20;
  const auto cycles = [&](std::uint32_t n, const Target& t) {
    return estimate_collective(CollectiveKind::all_reduce, CollectiveAlgorithm::halving_doubling, bytes, 1, first(n), t)
        .cycles;
  };
  const Cycles all = bytes / 32;
  CHECK(cycles(8, mesh_of(8)) == 2 * (3 * 100 + all / 2 + all / 4 + all / 8));
  // One member too many hands its part over before, and is given the result after.
  CHECK(cycles(9, mesh_of(9)) == cycles(8, mesh_of(8)) + 2 * (100 + all));
  // In a ring, the flows of a step over 2^t links share them: each step takes half the page's time.
  CHECK(cycles(8, ring_of(8)) == 2 * (100 + 200 + 400 + 3 * (all / 2)));
}

TEST_CASE("a tree takes the whole up its levels and down again") {
  const Bytes bytes = 1 << 20;
  const auto cycles = [&](std::uint32_t n) {
    return estimate_collective(CollectiveKind::all_reduce, CollectiveAlgorithm::tree, bytes, 1, first(n), mesh_of(n))
        .cycles;
  };
  CHECK(cycles(2) == 2 * (100 + bytes / 32));
  CHECK(cycles(3) == cycles(2));  // two children have a link each
  CHECK(cycles(7) == 2 * cycles(3));
}

TEST_CASE("a broadcast is sent to all at once, in chunks that go on to the rest, along a line, a tree, or by nodes") {
  const Bytes bytes = 7 * 32 * 1000;
  const auto cycles = [&](CollectiveAlgorithm a, std::uint32_t n, const Target& t) {
    return estimate_collective(CollectiveKind::broadcast, a, bytes, 1, first(n), t).cycles;
  };
  const Target mesh = mesh_of(8);
  CHECK(cycles(CollectiveAlgorithm::through_one, 8, mesh) == 100 + 7000);
  CHECK(cycles(CollectiveAlgorithm::direct, 8, mesh) == 2 * (100 + 1000));
  CHECK(cycles(CollectiveAlgorithm::direct, 2, mesh) == 100 + 7000);
  CHECK(cycles(CollectiveAlgorithm::ring, 8, mesh) == 7 * (100 + 7000));
  CHECK(cycles(CollectiveAlgorithm::tree, 8, mesh) == 3 * (100 + 7000));
  Target nodes = mesh;
  nodes.node_chips = 4;
  CHECK(cycles(CollectiveAlgorithm::hierarchical, 8, nodes) == 2 * (100 + 7000));
  nodes.node_chips = 2;  // of four nodes the last is two below the first, and sends to one of its own
  CHECK(cycles(CollectiveAlgorithm::hierarchical, 8, nodes) == 3 * (100 + 7000));
  // Over a line all share the first link.
  CHECK(cycles(CollectiveAlgorithm::through_one, 4, line_of(4)) == 300 + 3 * 7000);
  const auto sent = [&](CollectiveAlgorithm a) {
    return estimate_collective(CollectiveKind::broadcast, a, bytes, 1, first(8), mesh).bytes_per_chip;
  };
  CHECK(sent(CollectiveAlgorithm::through_one) == 7 * bytes);
  CHECK(sent(CollectiveAlgorithm::direct) == bytes);
  CHECK(sent(CollectiveAlgorithm::ring) == bytes);
}

TEST_CASE("level by level: a chunk within the nodes, between them, and within them again") {
  Target t = mesh_of(8);
  t.node_chips = 4;
  const Bytes bytes = 1 << 20;
  CHECK(estimate_collective(CollectiveKind::all_reduce, CollectiveAlgorithm::hierarchical, bytes, 1, first(8), t)
            .cycles == 3 * (100 + bytes / 4 / 32));
}

TEST_CASE("flows that share a link add up") {
  // On a line of three, chips 1 and 2 both reach chip 0 over the link from 1.
  const auto c =
      estimate_collective(CollectiveKind::reduce, CollectiveAlgorithm::through_one, 3200, 1, first(3), line_of(3));
  CHECK(c.cycles == 2 * 100 + 2 * 3200 / 32);
}

TEST_CASE("lanes round their own chunks up") {
  const auto one =
      estimate_collective(CollectiveKind::all_reduce, CollectiveAlgorithm::ring, 96, 1, first(2), mesh_of(2));
  const auto many =
      estimate_collective(CollectiveKind::all_reduce, CollectiveAlgorithm::ring, 96, 32, first(2), mesh_of(2));
  CHECK(one.bytes_per_chip == 96);
  CHECK(many.bytes_per_chip == 2 * 32 * 2);  // 3 bytes a lane, 2 a chunk
}

// Cycles of an all-reduce of `pages` pages a lane over four chips that are all linked, by hand-off.
Cycles all_reduce(CollectiveAlgorithm algorithm, CrossingHandshake crossing, Bytes bytes, std::uint64_t pages) {
  Target t = mesh_of(4);
  t.crossing = {crossing};
  return estimate_collective(CollectiveKind::all_reduce, algorithm, bytes, 1, first(4), t, pages).cycles;
}

TEST_CASE("a ring takes each page all the way round") {
  const Bytes page = 32 * 4 * 10;  // 10 cycles a chunk
  CHECK(all_reduce(CollectiveAlgorithm::ring, CrossingHandshake::token, page, 1) == 6 * (100 + 10));
  CHECK(all_reduce(CollectiveAlgorithm::ring, CrossingHandshake::token, 5 * page, 5) == 5 * 6 * (100 + 10));
}

TEST_CASE("pages of the other algorithms follow each other as the hand-off lets them") {
  // A byte a chunk: two steps of the way there, and four more pages, two of which share a round trip.
  CHECK(all_reduce(CollectiveAlgorithm::direct, CrossingHandshake::token, 4, 1) == 2 * (100 + 1));
  CHECK(all_reduce(CollectiveAlgorithm::direct, CrossingHandshake::token, 4, 5) == 2 * (100 + 1) + 4 * 200 / 2);
  // Many bytes hide the round trips.
  CHECK(all_reduce(CollectiveAlgorithm::direct, CrossingHandshake::token, 1 << 20, 4) ==
        all_reduce(CollectiveAlgorithm::direct, CrossingHandshake::token, 1 << 20, 1));
  // Through one, the way back of a page runs beside the way there of the next.
  CHECK(all_reduce(CollectiveAlgorithm::through_one, CrossingHandshake::token, 4 * 32000, 4) ==
        2 * (100 + 1000) + 3 * 1000);
}

TEST_CASE("a semaphore moves one page a round trip, a barrier one in two") {
  CHECK(all_reduce(CollectiveAlgorithm::direct, CrossingHandshake::semaphore, 4, 5) == 2 * (100 + 1) + 4 * 200);
  CHECK(all_reduce(CollectiveAlgorithm::direct, CrossingHandshake::barrier, 4, 5) == 2 * (300 + 1) + 4 * 400);
  // Six steps of a ring: the first finds its landing free, the others wait until it is.
  CHECK(all_reduce(CollectiveAlgorithm::ring, CrossingHandshake::semaphore, 4, 1) == 5 * 201 + 101);
  CHECK(all_reduce(CollectiveAlgorithm::ring, CrossingHandshake::barrier, 4, 1) == 5 * 401 + 301);
}

TEST_CASE("lanes of a ring share its links and wait on their own") {
  const auto cycles = [](std::uint64_t lanes, Bytes bytes) {
    return estimate_collective(CollectiveKind::all_reduce, CollectiveAlgorithm::ring, bytes, lanes, first(4),
                               mesh_of(4))
        .cycles;
  };
  // A lane's step: 100 cycles of way and 10 of bytes; the links of all four lanes are busy for 40 of them.
  CHECK(cycles(4, 4 * 4 * 320) == 5 * (100 + 10) + 100 + 40);
  // Busy for 400: the links set the pace.
  CHECK(cycles(4, 4 * 4 * 3200) == 5 * 400 + 100 + 400);
}

TEST_CASE("a ring's reduce passes pages along a line") {
  const Target t = mesh_of(4);
  const auto cycles = [&](std::uint64_t pages) {
    return estimate_collective(CollectiveKind::reduce, CollectiveAlgorithm::ring, 3200 * pages, 1, first(4), t, pages)
        .cycles;
  };
  CHECK(cycles(1) == 3 * (100 + 100));
  CHECK(cycles(5) == 3 * (100 + 100) + 4 * 100);  // one page behind the other
}

TEST_CASE("automatic is the least of the algorithms") {
  CHECK(rc::check([] {
    const auto n = *rc::gen::inRange<std::uint32_t>(2, 9);
    const Bytes bytes = *rc::gen::inRange<Bytes>(1, 1 << 22);
    const auto kind = *rc::gen::elementOf(std::vector<CollectiveKind>(std::begin(all_kinds), std::end(all_kinds)));
    const Target t = *rc::gen::element(mesh_of(n), ring_of(n), line_of(n));
    Cycles least = ~Cycles{0};
    for (const auto a :
         {CollectiveAlgorithm::through_one, CollectiveAlgorithm::direct, CollectiveAlgorithm::ring,
          CollectiveAlgorithm::halving_doubling, CollectiveAlgorithm::tree, CollectiveAlgorithm::hierarchical})
      least = std::min(least, estimate_collective(kind, a, bytes, 4, first(n), t).cycles);
    RC_ASSERT(estimate_collective(kind, CollectiveAlgorithm::automatic, bytes, 4, first(n), t).cycles == least);
  }));
}

TEST_CASE("a line is never faster than a ring, nor a ring than a full mesh") {
  CHECK(rc::check([] {
    const auto n = *rc::gen::inRange<std::uint32_t>(3, 10);
    const Bytes bytes = *rc::gen::inRange<Bytes>(1, 1 << 22);
    const auto kind = *rc::gen::elementOf(std::vector<CollectiveKind>(std::begin(all_kinds), std::end(all_kinds)));
    const auto algorithm =
        *rc::gen::elementOf(std::vector<CollectiveAlgorithm>(std::begin(all_algorithms), std::end(all_algorithms)));
    const auto cycles = [&](const Target& t) {
      return estimate_collective(kind, algorithm, bytes, 4, first(n), t).cycles;
    };
    RC_ASSERT(cycles(line_of(n)) >= cycles(ring_of(n)));
    RC_ASSERT(cycles(ring_of(n)) >= cycles(mesh_of(n)));
  }));
}

TEST_CASE("a ring on a line is slower than on a ring") {
  const auto cycles = [&](const Target& t) {
    return estimate_collective(CollectiveKind::all_reduce, CollectiveAlgorithm::ring, 1 << 20, 1, first(8), t).cycles;
  };
  CHECK(cycles(line_of(8)) > cycles(ring_of(8)));
}

TEST_CASE("more bandwidth, less latency or fewer bytes never cost more") {
  CHECK(rc::check([] {
    const auto n = *rc::gen::inRange<std::uint32_t>(2, 9);
    const Bytes bytes = *rc::gen::inRange<Bytes>(2, 1 << 22);
    const auto kind = *rc::gen::elementOf(std::vector<CollectiveKind>(std::begin(all_kinds), std::end(all_kinds)));
    const auto algorithm =
        *rc::gen::elementOf(std::vector<CollectiveAlgorithm>(std::begin(all_algorithms), std::end(all_algorithms)));
    const Target t = *rc::gen::element(mesh_of(n), ring_of(n), line_of(n));
    const auto cycles = [&](const Target& on, Bytes b) {
      return estimate_collective(kind, algorithm, b, 4, first(n), on).cycles;
    };
    Target faster = t, nearer = t;
    for (auto& link : faster.links) link.bytes_per_cycle = {64, 1};
    for (auto& link : nearer.links) link.latency_cycles = 10;
    RC_ASSERT(cycles(faster, bytes) <= cycles(t, bytes));
    RC_ASSERT(cycles(nearer, bytes) < cycles(t, bytes));
    RC_ASSERT(cycles(t, bytes / 2) <= cycles(t, bytes));
  }));
}

}  // namespace
}  // namespace rdusim::collective_cost_test
