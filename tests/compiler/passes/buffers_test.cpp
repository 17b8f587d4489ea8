// The passes that complete a placed program: size, handshake, memory.
#include <map>

#include "compiler/compile.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::buffers_test {
using namespace rdusim::test;

namespace {

SpatialProgram compiled(const OperatorGraph& g, const Target& t, const std::string& until = "memory") {
  CompileOptions options;
  options.stop_after = until;
  auto p = compile(g, t, options);
  REQUIRE_MESSAGE(p.ok(), p.diagnostics().to_text());
  return std::move(p).value();
}

}  // namespace

TEST_CASE("every buffer is at least a double buffer, and an operand's covers its load's journey") {
  const SpatialProgram p = compiled(one_matmul(1, 4096, 4096), sn40l(), "size");
  for (const Buffer& b : p.buffers) CHECK(b.depth_pages >= 2);
}

TEST_CASE("sizing by minimum depths refuses a program that no depths bring to its end") {
  SpatialProgram p = compiled(one_matmul(32, 512, 64), sn40l(), "collective");
  CHECK(size_by_minimum(p).ok());
  for (Stage& s : p.stages)
    if (std::holds_alternative<Load>(s.kind)) --s.firings;
  CHECK(size_by_minimum(p).diagnostics().contains(Code::RDU4119));
}

TEST_CASE("a pinned depth is obeyed") {
  OperatorGraph g = one_matmul(32, 512, 64);
  SchedulePin pin;
  pin.op = OperatorId(0);
  pin.depth = 5;
  g.pins.push_back(pin);
  const SpatialProgram p = compiled(g, sn40l(), "size");
  CHECK(p.buffers[0].depth_pages == 5);
  CHECK(p.buffers[1].depth_pages == 5);
}

// a times b, element by element: m x 1 by 1 x n, or both whole.
OperatorGraph product_of(std::vector<std::int64_t> a, std::vector<std::int64_t> b, std::vector<std::int64_t> c) {
  OperatorGraph g;
  g.name = "outer";
  const auto x = operand(g, "x", TensorRole::input, std::move(a), DType::fp32, PatternFill{61, 30});
  const auto y = operand(g, "y", TensorRole::input, std::move(b), DType::fp32, PatternFill{53, 26});
  const auto z = operand(g, "z", TensorRole::output, std::move(c), DType::fp32);
  matmul(g, "outer", x.id, y.id, z.id);
  g.operators[0].kind = OperatorKind::multiply;
  SchedulePin pin;
  pin.op = OperatorId(0);
  pin.sites = 1;
  g.pins.push_back(pin);
  return g;
}

TEST_CASE("what streams to an element-wise stage is deep enough for the way of a page from memory") {
  const Target t = sn40l();
  const SpatialProgram p = compiled(product_of({32, 32 * 64}, {32, 32 * 64}, {32, 32 * 64}), t, "size");
  OperatorGraph few = product_of({32, 32 * 64}, {32, 32 * 64}, {32, 32 * 64});
  few.pins[0].block_n = 1;
  const SpatialProgram small = compiled(few, t, "size");
  // A page of 32 x 32 takes 64 cycles of 16 lanes and comes from more than 150 away.
  for (std::size_t b = 0; b < 2; ++b) {
    CHECK(small.buffers[b].depth_pages > 3);
    CHECK(small.buffers[b].depth_pages > p.buffers[b].depth_pages);
  }
}

TEST_CASE("a result is stored from a buffer that is deep enough for the time that a page stays in it") {
  // A page of 4 tiles by 2 takes 512 cycles to compute, 256 to write and as many to read.
  OperatorGraph g = product_of({128, 1}, {1, 512}, {128, 512});
  g.pins[0].block_m = 4;
  g.pins[0].block_n = 2;
  Target t = sn40l();
  CHECK(compiled(g, t, "size").buffers.back().depth_pages == 3);
  t.pmu.write_bytes_per_cycle = t.pmu.read_bytes_per_cycle = {1024, 1};
  CHECK(compiled(g, t, "size").buffers.back().depth_pages == 2);
}

TEST_CASE("a pinned depth is obeyed by an element-wise operator too") {
  OperatorGraph g = product_of({128, 1}, {1, 512}, {128, 512});
  g.pins[0].depth = 7;
  const SpatialProgram p = compiled(g, sn40l(), "size");
  CHECK(p.buffers[0].depth_pages == 7);
  CHECK(p.buffers[1].depth_pages == 7);
}

TEST_CASE(
    "hand-offs become the target's: valid-ready or circular buffers at home, tokens, semaphores or barriers across") {
  for (const auto& [target, local, crossing] :
       {std::tuple(sn40l(), Handshake::valid_ready, Handshake::token),
        std::tuple(wormhole(), Handshake::circular_buffer, Handshake::semaphore),
        std::tuple(barrier_machine(), Handshake::valid_ready, Handshake::barrier)}) {
    CAPTURE(target.name);
    OperatorGraph g = one_matmul(32, 512, 32);
    SchedulePin pin;
    pin.op = OperatorId(0);
    pin.unroll_k = 4;
    g.pins.push_back(pin);
    const SpatialProgram p = compiled(g, target, "handshake");
    std::size_t crossings = 0;
    for (const Edge& e : p.edges) {
      const bool same_site = p.stage(e.from).group == p.stage(e.to[0]).group;
      CHECK(e.handshake == (same_site ? local : crossing));
      if (same_site) continue;
      ++crossings;
      // A barrier is wires: it counts nothing.
      CHECK((e.counter_bits > 0) == (crossing != Handshake::barrier));
      CHECK(e.semaphores.has_value() == (crossing == Handshake::semaphore));
      CHECK(e.routes.size() == e.to.size());
    }
    CHECK(crossings == 3);
    // Each crossing edge owns its own pair.
    CHECK(p.semaphores.size() == (crossing == Handshake::semaphore ? 6 : 0));
  }
}

TEST_CASE("addresses of a site's buffers and accumulators do not overlap and stay within the PMU") {
  const Target target = sn40l();
  OperatorGraph g = one_matmul(32, 512, 64);
  SchedulePin pin;
  pin.op = OperatorId(0);
  pin.unroll_k = 4;
  g.pins.push_back(pin);
  const SpatialProgram p = compiled(g, target);
  std::map<Site, std::vector<std::pair<Bytes, Bytes>>> taken;
  const auto take = [&](GroupId group, Bytes address, Bytes bytes) {
    CHECK(address + bytes <= target.pmu.capacity_bytes);
    for (const Site& s : p.group(group).sites) {
      for (const auto& [begin, end] : taken[s]) CHECK((address >= end || address + bytes <= begin));
      taken[s].emplace_back(address, address + bytes);
    }
  };
  for (const Buffer& b : p.buffers) take(b.group, p.memory->buffers[b.id.value].address, b.depth_pages * b.page_bytes);
  for (const AccumulatorPlace& a : p.memory->accumulators) take(p.stage(a.stage).group, a.address, a.bytes);
}

TEST_CASE("weights that exceed the chip's memory are refused with the table of what takes the room") {
  Target target = sn40l();
  target.hbm.capacity_bytes = 100'000;
  CompileOptions options;
  const auto p = compile(one_matmul(32, 512, 256), target, options);
  REQUIRE_FALSE(p.ok());
  CHECK(p.diagnostics().contains(Code::RDU3017));
  const std::string text = p.diagnostics().to_text();
  CHECK(text.find("w: note: 131,072 B, 131.07 kB (128.00 KiB), weight") != std::string::npos);
  CHECK(text.find("kB") != std::string::npos);
  CHECK(text.find("KiB") != std::string::npos);
}

TEST_CASE("an unknown pass to stop after is refused") {
  CompileOptions options;
  options.stop_after = "plaice";
  const auto p = compile(one_matmul(32, 64, 32), sn40l(), options);
  REQUIRE_FALSE(p.ok());
  CHECK(p.diagnostics().contains(Code::RDU4115));
}

}  // namespace rdusim::buffers_test
