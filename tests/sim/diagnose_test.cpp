#include <doctest/doctest.h>

#include "sim/diagnose.h"
#include "tests/sim/small_program.h"

namespace rdusim::diagnose_test {
namespace {

using namespace test;

struct Stuck {
  explicit Stuck(Handshake h = Handshake::token)
      : program(small_program(h)),
        instances(program),
        violations(stop, true),
        handshakes(instances, violations),
        tokens(instances, violations),
        semaphores(instances, violations),
        barriers(instances, violations),
        collectives(instances, violations),
        statistics(instances, target(), nullptr),
        flight(instances) {
    outcome.end = MachineOutcome::End::quiescent;
    outcome.cycles = 5000;
    events = good_run(program, table);
  }

  // Plays the events before position `end`.
  void until(std::size_t end) {
    events.resize(end);
    for (EventSink* s : std::initializer_list<EventSink*>{&handshakes, &tokens, &semaphores, &barriers, &collectives,
                                                          &statistics, &flight})
      replay(events, *s);
  }
  void waits(StageNumber s, Waiting::For what, BufferNumber b, std::uint64_t have = 0, std::uint64_t want = 1) {
    Waiting w;
    w.what = what;
    w.stage = StageAt{StageId{s}, 0};
    w.buffer = BufferAt{BufferId{b}, 0};
    w.have = have;
    w.want = want;
    outcome.waiting.push_back(w);
  }
  Diagnosis diagnosis() {
    return diagnose(outcome, {instances, handshakes, tokens, semaphores, barriers, collectives, statistics, flight});
  }
  static Target target() {
    Target t;
    t.chips = 2;
    t.links.resize(2);
    return t;
  }

  SpatialProgram program;
  std::atomic<bool> stop{false};
  Instances instances;
  Violations violations;
  HandshakeChecker handshakes;
  TokenChecker tokens;
  SemaphoreChecker semaphores;
  BarrierChecker barriers;
  CollectiveChecker collectives;
  Statistics statistics;
  FlightRecorder flight;
  ProvenanceTable table;
  std::vector<AnyEvent> events;
  MachineOutcome outcome;
};

TEST_CASE("a consumer whose producer has finished starves, and the chain names both") {
  Stuck s;
  s.until(0);
  s.waits(matmul0, Waiting::For::page, x0);
  s.waits(load_w0, Waiting::For::room, w0);
  s.waits(matmul1, Waiting::For::page, x1);  // chip 1 has work of its own to do, so it is not missing
  const Diagnosis d = s.diagnosis();
  // load_x0 is not among those that wait: it is done, and matmul0 has no page.
  CHECK(d.kind == StuckKind::starvation);
  CHECK(d.diagnostic.code == Code::RDU7019);
  CHECK(d.diagnostic.message.find("load_x_c0") != std::string::npos);
  CHECK(to_text(d.diagnostic).find("'matmul_c0' waits for a page in 'x_c0.pages'") != std::string::npos);
  CHECK(d.dot.find("digraph") == 0);
  CHECK(d.dot.find("color=red") != std::string::npos);
}

TEST_CASE("stages that wait for each other in a cycle are named in order, with the depth to try") {
  Stuck s;
  s.until(0);
  // The fold waits for the partial, the matmul for room before it, the load for room before that, and so on in a ring
  // that this program does not have: room in the sum's buffer and a page from the store close it.
  s.waits(fold, Waiting::For::room, sum, 0, 1);
  s.waits(store, Waiting::For::page, sum, 0, 1);
  const Diagnosis d = s.diagnosis();
  CHECK(d.kind == StuckKind::circular_wait);
  CHECK(d.diagnostic.code == Code::RDU7018);
  REQUIRE(d.chain.size() == 2);
  CHECK(to_text(d.diagnostic).find("'sum_c0' has depth 2") != std::string::npos);
  CHECK(to_text(d.diagnostic).find("try depth 3") != std::string::npos);
}

TEST_CASE("a page that was sent and did not land is a lost token, although everyone waits") {
  Stuck s;
  s.until(find_event<PageLanded>(s.events));
  s.waits(fold, Waiting::For::page, landing);
  s.waits(store, Waiting::For::page, sum);
  const Diagnosis d = s.diagnosis();
  CHECK(d.kind == StuckKind::lost_token);
  CHECK(d.diagnostic.code == Code::RDU7020);
  CHECK(d.diagnostic.message.find("1 pages were sent and 0 landed") != std::string::npos);
}

TEST_CASE("a page that left between two generations of a barrier, or after a ready, and did not land is lost") {
  for (const Handshake h : {Handshake::barrier, Handshake::semaphore}) {
    Stuck s(h);
    s.until(find_event<PageLanded>(s.events));
    s.waits(recv, Waiting::For::page, landing);
    s.waits(fold, Waiting::For::page, landing);
    const Diagnosis d = s.diagnosis();
    CHECK(d.kind == StuckKind::lost_token);
    CHECK(d.diagnostic.message.find("1 pages were sent and 0 landed") != std::string::npos);
  }
}

TEST_CASE(
    "a barrier that every member arrived for and nobody left, or that one was not told to leave, has lost a signal") {
  Stuck s(Handshake::barrier);
  s.until(find_event<BarrierLeft>(s.events));
  s.waits(fold, Waiting::For::page, landing);
  Diagnosis d = s.diagnosis();
  CHECK(d.kind == StuckKind::lost_token);
  CHECK(d.diagnostic.message.find("every member arrived for generation 0") != std::string::npos);
  Stuck t(Handshake::barrier);
  t.until(find_event<BarrierLeft>(t.events, [](const BarrierLeft& e) { return e.member != 0; }));
  t.waits(fold, Waiting::For::page, landing);
  d = t.diagnosis();
  CHECK(d.kind == StuckKind::lost_token);
}

TEST_CASE("a page that was reserved by a stage that has finished and was not pushed is lost") {
  Stuck s;
  s.until(find_event<PagePushed>(s.events));
  s.waits(matmul0, Waiting::For::page, x0);
  const Diagnosis d = s.diagnosis();
  CHECK(d.kind == StuckKind::lost_token);
  CHECK(d.diagnostic.message.find("'load_x_c0' has finished; it reserved 1 pages and pushed 0") != std::string::npos);
}

TEST_CASE("a page that was reserved and not pushed is lost, although its producer waits for room that it took") {
  Stuck s;
  s.until(find_event<PagePushed>(s.events));
  s.waits(load_x0, Waiting::For::room, x0);
  s.outcome.waiting.back().firing = 1;
  s.waits(matmul0, Waiting::For::page, x0);
  const Diagnosis d = s.diagnosis();
  CHECK(d.kind == StuckKind::lost_token);
  CHECK(d.diagnostic.message.find("'load_x_c0' waits with firing 1; it reserved 1 pages and pushed 0") !=
        std::string::npos);
}

TEST_CASE("a credit that was returned and did not arrive is a lost token") {
  Stuck s;
  s.until(find_event<CreditArrived>(s.events));
  Waiting w;
  w.what = Waiting::For::credit;
  w.channel = ChannelAt{EdgeId{crossing_edge}, 0, 0, 0};
  s.outcome.waiting.push_back(w);
  const Diagnosis d = s.diagnosis();
  CHECK(d.kind == StuckKind::lost_token);
  CHECK(d.diagnostic.message.find("1 credits were returned and 0 arrived") != std::string::npos);
}

TEST_CASE("a member of a collective that finished without its part is missing") {
  Stuck s;
  // Chip 1's matmul finished and pushed nothing.
  s.until(find_event<PageReserved>(s.events, [](const PageReserved& e) { return e.buffer.buffer.value == partial1; }));
  s.waits(fold, Waiting::For::page, landing);
  s.waits(store, Waiting::For::page, sum);
  const Diagnosis d = s.diagnosis();
  CHECK(d.kind == StuckKind::missing_participant);
  CHECK(d.diagnostic.code == Code::RDU7021);
  CHECK(d.diagnostic.message.find("chip1 contributed 0 of 4096 bytes") != std::string::npos);
}

TEST_CASE("sites that differ along an axis are folded to a range") {
  const Site a{ChipId{0u}, {1, 2}};
  const Site b{ChipId{0u}, {2, 2}};
  const Site c{ChipId{0u}, {3, 2}};
  const Site d{ChipId{1u}, {9, 9}};
  CHECK(fold_sites({c, a, b}) == "chip0.site(1..3,2)");
  CHECK(fold_sites({a}) == "chip0.site(1,2)");
  CHECK(fold_sites({a, d}) == "chip0.site(1,2), chip1.site(9,9)");
  CHECK(fold_sites({a, c, d}, 2) == "chip0.site(1,2), chip0.site(3,2) and 1 more");
}

}  // namespace
}  // namespace rdusim::diagnose_test
