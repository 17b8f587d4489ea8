// Each checker passes the events of a right run, and each mutation of them is caught by its code.
#include <doctest/doctest.h>

#include "sim/barrier_checker.h"
#include "sim/claims_checker.h"
#include "sim/collective_checker.h"
#include "sim/coverage_checker.h"
#include "sim/handshake_checker.h"
#include "sim/page_checker.h"
#include "sim/provenance_checker.h"
#include "sim/semaphore_checker.h"
#include "sim/token_checker.h"
#include "tests/sim/small_program.h"

namespace rdusim::checkers_test {
namespace {

using namespace test;

// All checkers over one sequence of events.
struct Bench {
  explicit Bench(SpatialProgram p, bool collect = true)
      : program(std::move(p)),
        instances(program),
        matmuls(program),
        violations(stop, collect),
        handshakes(instances, violations),
        tokens(instances, violations),
        semaphores(instances, violations),
        barriers(instances, violations),
        pages(instances, matmuls, violations),
        provenance(instances, matmuls, violations),
        coverage(instances, violations),
        collectives(instances, violations) {
    provenance.use(table);
    events = good_run(program, table);
  }

  void run(const std::vector<AnyEvent>& sequence) {
    for (EventSink* s : std::initializer_list<EventSink*>{&handshakes, &tokens, &semaphores, &barriers, &pages,
                                                          &provenance, &coverage, &collectives}) {
      replay(sequence, *s);
    }
  }
  void finish() {
    handshakes.finish(10000);
    tokens.finish(10000);
    semaphores.finish(10000);
    barriers.finish(10000);
    coverage.finish(10000);
    collectives.finish(10000);
  }
  // Runs to the end; the first violation's code, or 0.
  int first(const std::vector<AnyEvent>& sequence) {
    run(sequence);
    finish();
    return violations.any() ? static_cast<int>(violations.diagnostics().list().front().code) : 0;
  }
  bool caught(Code code) const { return violations.count(code) != 0; }

  SpatialProgram program;
  std::atomic<bool> stop{false};
  Instances instances;
  MatmulPlaces matmuls;
  Violations violations;
  HandshakeChecker handshakes;
  TokenChecker tokens;
  SemaphoreChecker semaphores;
  BarrierChecker barriers;
  PageChecker pages;
  ProvenanceChecker provenance;
  CoverageChecker coverage;
  CollectiveChecker collectives;
  ProvenanceTable table;
  std::vector<AnyEvent> events;
};

template <class Event>
std::size_t on_buffer(const std::vector<AnyEvent>& events, BufferNumber b) {
  return find_event<Event>(events, [&](const Event& e) { return e.buffer.buffer.value == b; });
}

TEST_CASE("a run that is right violates nothing, whatever the crossing hand-off") {
  for (Handshake h : {Handshake::token, Handshake::semaphore, Handshake::barrier}) {
    Bench b(small_program(h));
    const int code = b.first(b.events);
    CHECK_MESSAGE(code == 0, b.violations.diagnostics().to_text());
    CHECK_FALSE(b.stop);
  }
}

TEST_CASE("a push without a reservation is caught where it happens, with edge, stages, cycle and counts") {
  Bench b(small_program());
  const auto reserve = on_buffer<PageReserved>(b.events, x0);
  const auto events = without(b.events, reserve);
  CHECK(b.first(events) == 7002);
  const Diagnostic& d = b.violations.diagnostics().list().front();
  const auto push = on_buffer<PagePushed>(events, x0);
  CHECK(d.where == "cycle " + std::to_string(std::get<PagePushed>(events[push]).at) + ", chip0.site(1,2).pmu");
  CHECK(d.message.find("reserved 0, pushed 1, popped 0") != std::string::npos);
  CHECK(to_text(d).find("producer 'load_x_c0'") != std::string::npos);
  CHECK(to_text(d).find("'matmul_c0'") != std::string::npos);
}

TEST_CASE("a firing that takes a page that was not pushed is caught as it starts, and as it pops") {
  Bench b(small_program());
  CHECK(b.first(without(b.events, on_buffer<PagePushed>(b.events, x0))) == 7024);
  CHECK(b.caught(Code::RDU7001));
  CHECK(to_text(b.violations.diagnostics().list().front()).find("firing 0 of 'matmul_c0' takes page 0") !=
        std::string::npos);
}

TEST_CASE("a firing that starts before its page is pushed is caught, although the page is there when it is popped") {
  Bench b(small_program());
  auto events = b.events;
  const auto pushed = on_buffer<PagePushed>(events, x0);
  const auto started =
      find_event<FiringStarted>(events, [](const FiringStarted& e) { return e.stage.stage.value == matmul0; });
  REQUIRE(pushed < started);
  const AnyEvent early = events[started];
  events.erase(events.begin() + static_cast<std::ptrdiff_t>(started));
  events.insert(events.begin() + static_cast<std::ptrdiff_t>(pushed), early);
  b.run(events);
  CHECK(b.caught(Code::RDU7024));
  CHECK_FALSE(b.caught(Code::RDU7001));
}

TEST_CASE("more reservations than the depth are caught, and as many as the depth are not") {
  Bench b(small_program(Handshake::token, 2));
  const auto at = on_buffer<PageReserved>(b.events, x0);
  b.run(doubled(b.events, at));
  CHECK_FALSE(b.caught(Code::RDU7003));
  Bench c(small_program(Handshake::token, 2));
  c.run(doubled(doubled(c.events, at), at));
  CHECK(c.caught(Code::RDU7003));
}

TEST_CASE("a page with another number than the next is out of order") {
  Bench b(small_program());
  auto events = b.events;
  std::get<PagePushed>(events[on_buffer<PagePushed>(events, x0)]).page = 1;
  b.run(events);
  CHECK(b.caught(Code::RDU7025));
  Bench c(small_program());
  events = c.events;
  std::get<PagePopped>(events[on_buffer<PagePopped>(events, x0)]).page = 3;
  c.run(events);
  CHECK(c.caught(Code::RDU7025));
}

TEST_CASE("a page left in a buffer at the end unbalances the counts") {
  Bench b(small_program());
  b.run(without(b.events, on_buffer<PagePopped>(b.events, sum)));
  CHECK_FALSE(b.violations.any());
  b.finish();
  CHECK(b.caught(Code::RDU7007));
}

TEST_CASE("the first violation stops the run unless all are collected") {
  Bench b(small_program(), false);
  auto events = without(b.events, on_buffer<PagePushed>(b.events, x0));
  events = without(events, on_buffer<PagePushed>(events, w0));
  b.run(events);
  CHECK(b.stop);
  CHECK(b.violations.diagnostics().error_count() == 1);
  Bench c(small_program(), true);
  c.run(events);
  CHECK_FALSE(c.stop);
  CHECK(c.violations.diagnostics().error_count() > 1);
}

TEST_CASE("tokens: a credit that arrives twice, a page that lands twice and one sent without a credit are caught") {
  for (const auto& [name, mutate] :
       std::vector<std::pair<std::string, std::vector<AnyEvent> (*)(const std::vector<AnyEvent>&)>>{
           {"credit arrives twice",
            [](const std::vector<AnyEvent>& e) { return doubled(e, find_event<CreditArrived>(e)); }},
           {"credit returned twice",
            [](const std::vector<AnyEvent>& e) { return doubled(e, find_event<CreditReturned>(e)); }},
           {"page lands twice",
            [](const std::vector<AnyEvent>& e) { return doubled(e, find_event<PageLanded>(e)); }}}) {
    CAPTURE(name);
    Bench b(small_program());
    b.run(mutate(b.events));
    CHECK(b.caught(Code::RDU7004));
  }
  Bench b(small_program(Handshake::token, 1));
  b.run(doubled(b.events, find_event<CreditTaken>(b.events)));
  CHECK(b.caught(Code::RDU7004));
}

TEST_CASE(
    "tokens: senders that take turns share a landing buffer, and the pop of a page gives the credit to whose turn "
    "comes next") {
  SpatialProgram p = small_program(Handshake::token, 2);
  p.placement->groups[1].sites = {{ChipId{1u}, {0, 0}}, {ChipId{1u}, {1, 0}}, {ChipId{1u}, {2, 0}}};
  p.edges[crossing_edge].map = {PageMapKind::gather, {{0}, {0}, {0}}};
  const Instances instances(p);
  std::atomic<bool> stop{false};
  const auto channel = [](std::uint32_t from) { return ChannelAt{EdgeId{crossing_edge}, from, 0, 0}; };
  std::vector<AnyEvent> events = {
      CreditTaken{1, channel(0), 0},     CreditTaken{1, channel(1), 0},  PageLanded{9, channel(0), 0, {}},
      PageLanded{9, channel(1), 0, {}},  CreditReturned{10, channel(2)}, CreditArrived{11, channel(2)},
      CreditTaken{12, channel(2), 0},    CreditReturned{13, channel(0)}, CreditArrived{14, channel(0)},
      PageLanded{15, channel(2), 0, {}}, CreditReturned{16, channel(1)}, CreditArrived{17, channel(1)}};
  const auto first = [&](const std::vector<AnyEvent>& sequence) {
    Violations violations(stop, true);
    TokenChecker checker(instances, violations);
    replay(sequence, checker);
    checker.finish(20);
    return violations.any() ? static_cast<int>(violations.diagnostics().list().front().code) : 0;
  };
  CHECK(first(events) == 0);
  // The third sender has no share of two pages, so it may not go first.
  CHECK(first({CreditTaken{1, channel(2), 0}}) == 7004);
  CHECK(first(without(events, 5)) == 7004);
  CHECK(first(without(events, 11)) == 7008);
}

TEST_CASE("tokens: a credit lost on its way back is not at rest at the end") {
  Bench b(small_program());
  b.run(without(b.events, find_event<CreditArrived>(b.events)));
  CHECK_FALSE(b.violations.any());
  b.finish();
  CHECK(b.caught(Code::RDU7008));
}

TEST_CASE("semaphores: signals raised twice, consumed before they are raised, or out of their width are caught") {
  const SpatialProgram program = small_program(Handshake::semaphore);
  SUBCASE("ready raised twice") {
    Bench b(program);
    b.run(doubled(b.events, find_event<ReadyRaised>(b.events)));
    CHECK(b.caught(Code::RDU7005));
  }
  SUBCASE("ready consumed without being raised") {
    Bench b(program);
    b.run(without(b.events, find_event<ReadyRaised>(b.events)));
    CHECK(b.caught(Code::RDU7005));
  }
  SUBCASE("valid raised twice") {
    Bench b(program);
    b.run(doubled(b.events, find_event<ValidRaised>(b.events)));
    CHECK(b.caught(Code::RDU7005));
  }
  SUBCASE("valid raised before the sender was ready") {
    Bench b(program);
    b.run(without(b.events, find_event<ReadyConsumed>(b.events)));
    CHECK(b.caught(Code::RDU7005));
  }
  SUBCASE("a value beyond the width") {
    Bench b(program);
    auto events = b.events;
    std::get<ReadyRaised>(events[find_event<ReadyRaised>(events)]).value = 16;
    b.run(events);
    CHECK(b.caught(Code::RDU7005));
  }
  SUBCASE("a page that nobody sent") {
    Bench b(program);
    b.run(doubled(b.events, find_event<PageLanded>(b.events)));
    CHECK(b.caught(Code::RDU7005));
  }
  SUBCASE("valid before its page has landed") {
    Bench b(program);
    auto events = b.events;
    const auto landed = find_event<PageLanded>(events), raised = find_event<ValidRaised>(events);
    REQUIRE(landed < raised);
    const AnyEvent early = events[raised];
    events.erase(events.begin() + static_cast<std::ptrdiff_t>(raised));
    events.insert(events.begin() + static_cast<std::ptrdiff_t>(landed), early);
    b.run(events);
    CHECK(b.caught(Code::RDU7024));
    CHECK_FALSE(b.caught(Code::RDU7005));
  }
  SUBCASE("valid never consumed") {
    Bench b(program);
    b.run(without(b.events, find_event<ValidConsumed>(b.events)));
    CHECK_FALSE(b.violations.any());
    b.finish();
    CHECK(b.caught(Code::RDU7008));
  }
}

TEST_CASE("barriers: a member that leaves before all have arrived, or is a generation ahead, is caught") {
  const SpatialProgram program = small_program(Handshake::barrier);
  SUBCASE("one does not arrive") {
    Bench b(program);
    b.run(
        without(b.events, find_event<BarrierArrived>(b.events, [](const BarrierArrived& e) { return e.member == 1; })));
    CHECK(b.caught(Code::RDU7006));
  }
  SUBCASE("one arrives twice") {
    Bench b(program);
    b.run(doubled(b.events, find_event<BarrierArrived>(b.events)));
    CHECK(b.caught(Code::RDU7006));
  }
  SUBCASE("a stranger") {
    Bench b(program);
    auto events = b.events;
    std::get<BarrierArrived>(events[find_event<BarrierArrived>(events)]).member = 7;
    b.run(events);
    CHECK(b.caught(Code::RDU7006));
  }
  SUBCASE("a page that nobody sent") {
    Bench b(program);
    b.run(doubled(b.events, find_event<PageLanded>(b.events)));
    CHECK(b.caught(Code::RDU7006));
  }
  SUBCASE("one does not leave at the end") {
    Bench b(program);
    b.run(without(b.events, find_event<BarrierLeft>(
                                b.events, [](const BarrierLeft& e) { return e.member == 1 && e.generation == 1; })));
    CHECK_FALSE(b.violations.any());
    b.finish();
    CHECK(b.caught(Code::RDU7008));
  }
}

TEST_CASE("a page that is not the one its place asks for is caught at load, push, landing and store") {
  const auto shifted = [](auto event) {
    event.tag.row += 32;
    return event;
  };
  SUBCASE("load") {
    Bench b(small_program());
    auto events = b.events;
    const auto at = find_event<PageLoaded>(events);
    events[at] = shifted(std::get<PageLoaded>(events[at]));
    b.run(events);
    CHECK(b.caught(Code::RDU7029));
  }
  SUBCASE("push of a load") {
    Bench b(small_program());
    auto events = b.events;
    const auto at = on_buffer<PagePushed>(events, w1);
    events[at] = shifted(std::get<PagePushed>(events[at]));
    b.run(events);
    CHECK(b.caught(Code::RDU7029));
  }
  SUBCASE("push of half a page") {
    Bench b(small_program());
    auto events = b.events;
    std::get<PagePushed>(events[on_buffer<PagePushed>(events, x0)]).bytes /= 2;
    b.run(events);
    CHECK(b.caught(Code::RDU7030));
  }
  SUBCASE("push of a matmul") {
    Bench b(small_program());
    auto events = b.events;
    const auto at = on_buffer<PagePushed>(events, partial0);
    events[at] = shifted(std::get<PagePushed>(events[at]));
    b.run(events);
    CHECK(b.caught(Code::RDU7029));
  }
  SUBCASE("landing") {
    Bench b(small_program());
    auto events = b.events;
    const auto at = find_event<PageLanded>(events);
    std::get<PageLanded>(events[at]).tag.provenance = 0;  // another page of the same place
    b.run(events);
    CHECK(b.caught(Code::RDU7029));
  }
  SUBCASE("push into the landing buffer") {
    Bench b(small_program());
    auto events = b.events;
    std::get<PagePushed>(events[on_buffer<PagePushed>(events, landing)]).tag.provenance = 0;
    b.run(events);
    CHECK(b.caught(Code::RDU7029));
  }
  SUBCASE("push into the buffer that a store takes from") {
    Bench b(small_program());
    auto events = b.events;
    const auto at = on_buffer<PagePushed>(events, sum);
    events[at] = shifted(std::get<PagePushed>(events[at]));
    b.run(events);
    CHECK(b.caught(Code::RDU7029));
  }
  SUBCASE("store") {
    Bench b(small_program());
    auto events = b.events;
    std::get<PageStored>(events[find_event<PageStored>(events)]).tag.chunks = 2;
    b.run(events);
    CHECK(b.caught(Code::RDU7029));
  }
}

TEST_CASE("a matmul must join pages of one contraction range and of its work item") {
  const auto joined = [](const std::vector<AnyEvent>& e, std::size_t nth) {
    return find_event<OperandsJoined>(
        e, [](const OperandsJoined&) { return true; }, nth);
  };
  SUBCASE("ranges that do not meet") {
    Bench b(small_program());
    auto events = b.events;
    std::get<OperandsJoined>(events[joined(events, 0)]).b.row = 32;
    b.run(events);
    CHECK(b.caught(Code::RDU7012));
  }
  SUBCASE("both of the other chip's range") {
    Bench b(small_program());
    auto events = b.events;
    auto& e = std::get<OperandsJoined>(events[joined(events, 1)]);
    e.a.col = 0, e.b.row = 0;
    b.run(events);
    CHECK(b.caught(Code::RDU7012));
  }
  SUBCASE("another block") {
    Bench b(small_program());
    auto events = b.events;
    std::get<OperandsJoined>(events[joined(events, 0)]).b.col = 32;
    b.run(events);
    CHECK(b.caught(Code::RDU7012));
  }
  SUBCASE("another operand") {
    Bench b(small_program());
    auto events = b.events;
    std::get<OperandsJoined>(events[joined(events, 0)]).a.operand = OperandId{1u};
    b.run(events);
    CHECK(b.caught(Code::RDU7012));
  }
}

TEST_CASE("a fold that mixes blocks, trips or chunks is caught, and one that adds a contribution twice") {
  const auto second_fold = [](const std::vector<AnyEvent>& e) {
    return find_event<PartialFolded>(
        e, [](const PartialFolded&) { return true; }, 1);
  };
  for (int which = 0; which < 3; ++which) {
    CAPTURE(which);
    Bench b(small_program());
    auto events = b.events;
    PageTag& added = std::get<PartialFolded>(events[second_fold(events)]).added;
    if (which == 0) added.col += 32;
    if (which == 1) added.trip = 1;
    if (which == 2) added.chunks = 2;
    b.run(events);
    CHECK(b.caught(Code::RDU7011));
  }
  Bench b(small_program());
  auto events = b.events;
  auto& e = std::get<PartialFolded>(events[second_fold(events)]);
  e.added.provenance = e.held.provenance;
  e.sum.provenance = b.table.sum(e.held.provenance, e.held.provenance);
  b.run(events);
  CHECK(b.caught(Code::RDU7010));
}

TEST_CASE("a firing that takes an operand too few or too many is caught as it starts, whatever pages hold") {
  const auto folded = [](const std::vector<AnyEvent>& e) {
    return find_event<PartialFolded>(
        e, [](const PartialFolded&) { return true; }, 1);
  };
  Bench less(small_program());
  CHECK(less.first(without(less.events, folded(less.events))) == 7009);
  CHECK(less.violations.diagnostics().list().front().message.find("takes 1 operands") != std::string::npos);
  Bench more(small_program());
  auto events = more.events;
  // Of pages without provenance nothing else could tell.
  for (AnyEvent& e : events)
    if (auto* f = std::get_if<PartialFolded>(&e)) f->held.provenance = f->added.provenance = f->sum.provenance = 0;
  more.run(doubled(events, folded(events)));
  CHECK(more.caught(Code::RDU7010));
}

TEST_CASE("two chips that compute the same contraction range are a double count") {
  Bench b(small_program());
  auto events = b.events;
  auto& stored = std::get<PageStored>(events[find_event<PageStored>(events)]);
  stored.tag.provenance = b.table.sum(b.table.single({ChipId{0u}, 0, 64}), b.table.single({ChipId{1u}, 32, 64}));
  b.run(events);
  CHECK(b.caught(Code::RDU7010));
}

TEST_CASE("a contribution missing at the store is named") {
  Bench b(small_program());
  auto events = b.events;
  auto& stored = std::get<PageStored>(events[find_event<PageStored>(events)]);
  stored.tag.provenance = b.table.single({ChipId{0u}, 0, 32});
  b.run(events);
  REQUIRE(b.caught(Code::RDU7009));
  CHECK(b.violations.diagnostics().to_text().find("[32, 64)") != std::string::npos);
  CHECK(b.provenance.stored(OperandId{2u}).complete == 0);
  Bench c(small_program());
  events = c.events;
  std::get<PageStored>(events[find_event<PageStored>(events)]).tag.provenance = 0;
  c.run(events);
  CHECK(c.caught(Code::RDU7009));
}

TEST_CASE("a right run's stored pages hold both chips' contributions") {
  Bench b(small_program());
  b.run(b.events);
  CHECK(b.provenance.stored(OperandId{2u}).pages == 1);
  CHECK(b.provenance.stored(OperandId{2u}).complete == 1);
  CHECK(b.provenance.stored(OperandId{2u}).contributions == 2);
}

TEST_CASE("an element written twice is caught at the store, one not written at the end") {
  Bench b(small_program());
  b.run(doubled(b.events, find_event<PageStored>(b.events)));
  CHECK(b.caught(Code::RDU7013));
  Bench c(small_program());
  c.run(without(c.events, find_event<PageStored>(c.events)));
  CHECK_FALSE(c.violations.any());
  c.finish();
  CHECK(c.caught(Code::RDU7014));
}

TEST_CASE("chunks cover a page exactly, and a missing chunk is not covered") {
  SpatialProgram p = small_program();
  const Instances instances(p);
  std::atomic<bool> stop{false};
  const auto store_chunks = [&](std::vector<std::uint32_t> chunks) {
    Violations violations(stop, true);
    CoverageChecker checker(instances, violations);
    for (std::uint32_t c : chunks) {
      PageTag t;
      t.operand = OperandId{2u};
      t.rows = t.cols = 32;
      t.chunk = c, t.chunks = 3;  // 1024 elements do not divide by three
      static_cast<EventSink&>(checker).on(PageStored{1, {StageId{store}, 0}, c, TensorId{4u}, t});
    }
    checker.finish(2);
    return violations.any() ? static_cast<int>(violations.diagnostics().list().front().code) : 0;
  };
  CHECK(store_chunks({0, 1, 2}) == 0);
  CHECK(store_chunks({2, 0, 1}) == 0);
  CHECK(store_chunks({0, 2}) == 7014);
  CHECK(store_chunks({0, 1, 1, 2}) == 7013);
}

TEST_CASE("a member that contributes less than the others agreed on is logged") {
  Bench b(small_program());
  auto events = b.events;
  std::get<PagePushed>(events[on_buffer<PagePushed>(events, partial1)]).bytes = 2048;
  b.run(events);
  b.finish();
  REQUIRE(b.caught(Code::RDU7026));
  CHECK(b.violations.diagnostics().to_text().find("chip1 contributed 2048 bytes") != std::string::npos);
}

TEST_CASE("a collective's cycles run from the first page sent to the last store") {
  Bench b(small_program());
  b.run(b.events);
  const CollectiveId c{0u};
  const auto seen = b.collectives.last_trip(c);
  REQUIRE(seen);
  CHECK(seen->first == std::get<PageSent>(b.events[find_event<PageSent>(b.events)]).at);
  CHECK(seen->second >= std::get<PageStored>(b.events[find_event<PageStored>(b.events)]).at);
  CHECK(b.collectives.cycles(c) == seen->second - seen->first);
  CHECK(b.collectives.sent(c) == 4096);
}

TEST_CASE("what is observed is held against what was proved") {
  const auto claims = [](std::uint64_t depth, std::uint64_t greatest, Cycles bound, std::uint64_t pushed) {
    Bench b(small_program());
    b.run(b.events);
    Certificate c;
    c.buffers = {{BufferId{x0}, pushed, pushed, {pushed}, depth, 1}};
    c.counters = {{EdgeId{crossing_edge}, 0, greatest, 4}};
    c.lower_bound_cycles = bound;
    check_claims(b.instances, c, b.handshakes, b.tokens, b.semaphores, true, 1000, b.violations);
    return b.violations.any() ? static_cast<int>(b.violations.diagnostics().list().front().code) : 0;
  };
  CHECK(claims(2, 2, 1000, 1) == 0);
  CHECK(claims(0, 2, 1000, 1) == 7023);
  CHECK(claims(2, 1, 1000, 1) == 7023);
  CHECK(claims(2, 2, 1001, 1) == 7022);
  CHECK(claims(2, 2, 1000, 2) == 7007);
}

}  // namespace
}  // namespace rdusim::checkers_test
