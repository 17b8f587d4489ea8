#include <doctest/doctest.h>

#include "compiler/compile.h"
#include "compiler/cost/cost.h"
#include "tests/compiler/ir/sample_program.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::certify_test {
namespace {

Certificate certified(SpatialProgram p, const Target& t) {
  auto done = certify(std::move(p), t);
  INFO(done.diagnostics().to_text());
  REQUIRE(done.ok());
  REQUIRE(done->certificate.has_value());
  return *done->certificate;
}

TEST_CASE("all eleven obligations are there, in order, proved for every schedule") {
  const Certificate c = certified(sample::program({.chips = 2}), sample::target());
  REQUIRE(c.obligations.size() == obligation_kinds);
  for (std::size_t i = 0; i < obligation_kinds; ++i) {
    CHECK(static_cast<std::size_t>(c.obligations[i].kind) == i);
    CHECK(c.obligations[i].status == ProofStatus::proved);
    CHECK(c.obligations[i].scope == ProofScope::every_schedule);
    CHECK(c.obligations[i].reason.empty());
  }
}

TEST_CASE("a buffer's claim counts one instance's pages") {
  const SpatialProgram p = sample::program({.chips = 2});
  const Certificate c = certified(p, sample::target());
  REQUIRE(c.buffers.size() == p.buffers.size());
  // x's slice of 8 tiles, 4 a page.
  CHECK(c.buffers[0] == BufferClaim{BufferId{0u}, 2, 2, {2}, 2, 1});
  // Chip 0's partial goes to the fold, chip 1's to the crossing edge.
  CHECK(c.buffers[2] == BufferClaim{BufferId{2u}, 1, 1, {1}, 2, 1});
  CHECK(c.buffers[5] == BufferClaim{BufferId{5u}, 1, 1, {1}, 2, 1});
}

TEST_CASE("counters, outputs and edges are counted") {
  const Certificate token = certified(sample::program({.chips = 4}), sample::target());
  REQUIRE(token.counters.size() == 3);
  for (const CounterClaim& claim : token.counters) {
    CHECK(claim.initial == 2);  // a credit a page of the landing
    CHECK(claim.greatest == 2);
    CHECK(claim.width_bits == 8);
  }
  REQUIRE(token.outputs.size() == 1);
  CHECK(token.outputs[0].elements == 32 * 64);
  CHECK(token.outputs[0].replicas == 1);
  CHECK(token.outputs[0].contributions == 4);
  CHECK(token.crossing_edges == 3);
  CHECK(token.local_edges == 4 * 2 + 4 + 1);
  const Certificate semaphore =
      certified(sample::program({.chips = 2, .crossing = Handshake::semaphore}), sample::target());
  CHECK(semaphore.counters[0].initial == 0);
  CHECK(semaphore.counters[0].greatest == 1);
}

TEST_CASE("the busiest site and chip are summed") {
  const SpatialProgram p = sample::program();
  const Certificate c = certified(p, sample::target());
  // Two pages each of a and b (4 KiB) and c (4 KiB), and an accumulator of one int32 tile.
  CHECK(c.memory.busiest_site_bytes == 3 * 2 * 4096 + 4096);
  CHECK(c.memory.site_capacity_bytes == 256 * 1024);
  CHECK(c.memory.busiest_chip_bytes == 32 * 512 + 512 * 64 + 32 * 64 * 4);
  CHECK(c.memory.chip_capacity_bytes == Bytes{1} << 30);
}

TEST_CASE("the cycle bounds are the cost model's, and the circle's where that is longer") {
  SpatialProgram p = sample::program({.chips = 2});
  const Certificate c = certified(p, sample::target());
  const Costs without = estimate(p, sample::target());
  p.certificate = c;
  const Costs costs = estimate(p, sample::target());
  CHECK(c.lower_bound_cycles == costs.lower_bound_cycles);
  CHECK(c.predicted_cycles == costs.predicted_cycles);
  CHECK(c.lower_bound_cycles <= c.predicted_cycles);
  REQUIRE(c.circles.size() == 1);
  CHECK(c.lower_bound_cycles == std::max(without.lower_bound_cycles, sample::target().host.section_launch_cycles +
                                                                         c.circles[0].bound().value_or(0)));
  CHECK(c.lower_bound_cycles > without.lower_bound_cycles);
}

TEST_CASE("least depths are not above those given, and one less does not run") {
  SpatialProgram p = sample::program();
  // The matmul looks at three pages of x before it takes the first.
  Stage& matmul = sample::stage(p, "down.matmul");
  matmul.ports[0].need = {{1, 3}, {1, 3}, {1, 2}, {1, 1}};
  sample::buffer(p, "down.a").depth_pages = 4;
  p.memory->buffers[0] = {192 * 1024, 3};
  const Certificate c = certified(p, sample::target());
  CHECK(c.buffers[0].depth == 4);
  CHECK(c.buffers[0].least_depth == 3);
  sample::buffer(p, "down.a").depth_pages = 2;
  CHECK(!certify(p, sample::target()).ok());
}

TEST_CASE("a program that breaks a rule gets no certificate") {
  SpatialProgram p = sample::program({.chips = 2});
  sample::stage(p, "down.fold").firings = 4;
  const auto c = certify(p, sample::target());
  CHECK(!c.ok());
  CHECK(c.diagnostics().contains(Code::RDU3008));
}

TEST_CASE("a certificate that is there is left alone") {
  SpatialProgram p = sample::program();
  p.certificate = Certificate{};
  const auto c = certify(p, sample::target());
  REQUIRE(c.ok());
  CHECK(*c->certificate == Certificate{});
}

}  // namespace
}  // namespace rdusim::certify_test
