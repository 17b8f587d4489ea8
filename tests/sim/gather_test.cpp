// Gathers on the real machine, under the checkers: a receiver that takes its senders' pages in turn, whether or not
// they divide the depth of its landing buffer, and whether or not pages lie there at the start.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "models/systemc/machine.h"
#include "sim/barrier_checker.h"
#include "sim/handshake_checker.h"
#include "sim/semaphore_checker.h"
#include "sim/token_checker.h"
#include "tests/models/systemc/hand_built.h"

namespace rdusim::gather_test {
namespace {

using namespace test;

struct Gather {
  Handshake handshake = Handshake::token;
  std::uint32_t senders = 2;
  std::uint64_t depth = 2;
  std::uint64_t initial = 0;
};

constexpr std::uint64_t pages = 12;  // of each sender

SpatialProgram gather(const Target& t, const Gather& g) {
  Builder b(t);
  const TensorId x = b.tensor("x", {8, 24}, DType::int32, TensorRole::input);
  std::vector<Position> at;
  for (std::uint32_t i = 0; i < g.senders; ++i) at.push_back({i, 0});
  const GroupId from = b.group(0, at);
  const GroupId to = b.group(1, {{0, 3}}, 1);
  const std::uint64_t all = pages * g.senders;
  const BufferId source = b.buffer(from, 2, 64, DType::int32);
  const BufferId landing = b.buffer(to, g.depth, 64, DType::int32, g.initial);
  const StageId load =
      b.stage("load", Load{x, b.walk(x, 1, 1, g.senders), {}}, from, {Builder::out(source)}, pages, move(0));
  const StageId recv = b.stage("recv", Recv{}, to, {Builder::out(landing)}, all, move(0));
  const TensorId y = b.tensor("y", {4, static_cast<std::int64_t>(4 * all)}, DType::int32, TensorRole::output, 1);
  AccessPattern a = b.walk(y, 1, 1);
  a.loops = {all};
  a.stride = {{0, 1}};
  const StageId store = b.stage("store", Store{y, a, {}}, to, {Builder::in(landing)}, all, move(1));
  b.crossing(load, source, {recv}, g.handshake,
             {PageMapKind::gather, std::vector<std::vector<std::uint32_t>>(g.senders, {0})});
  b.local(recv, landing, {store});
  if (g.handshake == Handshake::semaphore) {
    b.p.semaphores = {{SemaphoreId{0}, from, 0, 8}, {SemaphoreId{1}, to, 0, 8}};
    b.p.edges[0].semaphores = SemaphorePair{SemaphoreId{0}, {SemaphoreId{1}}};
  }
  return b.p;
}

// Violations of a whole run; less than 0 where it did not finish. In a process of its own, as every simulation.
int violations_of(const Gather& g) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const Target t = small_target(2);
    const SpatialProgram p = gather(t, g);
    const Instances instances(p);
    std::atomic<bool> stop{false};
    Violations violations(stop, true);
    HandshakeChecker handshakes(instances, violations);
    TokenChecker tokens(instances, violations);
    SemaphoreChecker semaphores(instances, violations);
    BarrierChecker barriers(instances, violations);
    EventSink* const sinks[] = {&handshakes, &tokens, &semaphores, &barriers};
    FanOut sink(sinks);
    TensorImages images = blank_images(p);
    Machine machine(p, t, {}, images, sink);
    const MachineOutcome out = machine.run();
    if (out.end != MachineOutcome::End::finished) _exit(100);
    tokens.finish(out.cycles), semaphores.finish(out.cycles), barriers.finish(out.cycles),
        handshakes.finish(out.cycles);
    _exit(static_cast<int>(std::min<std::uint64_t>(violations.total(), 99)));
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 100) return -1;
  return WEXITSTATUS(status);
}

TEST_CASE("a gather raises no alarm at any depth, be it a multiple of its senders or less than they are") {
  for (const Handshake h : {Handshake::token, Handshake::semaphore, Handshake::barrier})
    for (const std::uint32_t senders : {2u, 3u, 4u})
      for (const std::uint64_t depth : {1u, 2u, 3u, 5u, 7u}) {
        CAPTURE(static_cast<int>(h));
        CAPTURE(senders);
        CAPTURE(depth);
        CHECK(violations_of({h, senders, depth}) == 0);
      }
}

TEST_CASE("pages that lie in a landing buffer from the start are not taken for pages that landed") {
  for (const std::uint64_t initial : {1u, 2u})
    for (const std::uint64_t depth : {3u, 4u}) {
      CAPTURE(initial);
      CAPTURE(depth);
      CHECK(violations_of({Handshake::token, 3, depth, initial}) == 0);
    }
}

}  // namespace
}  // namespace rdusim::gather_test
