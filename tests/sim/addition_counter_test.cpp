#include "sim/addition_counter.h"

#include <doctest/doctest.h>

#include "tests/sim/small_program.h"

namespace rdusim::addition_counter_test {
namespace {

using namespace test;

struct Bench {
  explicit Bench(SpatialProgram p = small_program())
      : program(std::move(p)), instances(program), violations(stop, true), counter(instances, violations) {
    counter.use(table);
    events = good_run(program, table);
  }
  // Tells the counter what it listens to; the first violation's code, or 0.
  int first(const std::vector<AnyEvent>& sequence) {
    for (const AnyEvent& event : sequence)
      std::visit(
          [&](const auto& e) {
            if constexpr (requires { counter.on(e); }) counter.on(e);
          },
          event);
    return violations.any() ? static_cast<int>(violations.diagnostics().list().front().code) : 0;
  }
  std::string where() const { return violations.diagnostics().list().front().where; }

  SpatialProgram program;
  std::atomic<bool> stop{false};
  Instances instances;
  Violations violations;
  AdditionCounter counter;
  ProvenanceTable table;
  std::vector<AnyEvent> events;
};

std::size_t fold_of(const std::vector<AnyEvent>& events, std::size_t nth) {
  return find_event<PartialFolded>(
      events, [](const PartialFolded&) { return true; }, nth);
}
std::size_t start_of(const std::vector<AnyEvent>& events, std::uint32_t stage) {
  return find_event<FiringStarted>(events, [&](const FiringStarted& e) { return e.stage.stage.value == stage; });
}

TEST_CASE("a fold of two that adds two is right, and so are matmuls that push what they multiplied") {
  Bench b;
  CHECK(b.first(b.events) == 0);
}

TEST_CASE("an operand that is left out is missing in the cycle in which the firing starts, whichever it is") {
  for (const std::size_t nth : {0u, 1u}) {
    Bench b;
    const auto events = without(b.events, fold_of(b.events, nth));
    CHECK(b.first(events) == 7009);
    const auto& start = std::get<FiringStarted>(events[start_of(events, fold)]);
    CHECK(b.where().find(fmt::format("cycle {},", start.at)) == 0);
    const std::string text = to_text(b.violations.diagnostics().list().front());
    CHECK(text.find("takes 1 operands towards its result, and its body has 2") != std::string::npos);
  }
}

TEST_CASE("an operand that is added twice is one too many, though it may be zeros") {
  Bench b;
  CHECK(b.first(doubled(b.events, fold_of(b.events, 1))) == 7010);
}

TEST_CASE("what one firing leaves out another does not make up for") {
  Bench b;
  auto events = b.events;
  const auto start = start_of(events, fold);
  std::swap(events[fold_of(events, 1)], events[start]);  // told after the firing that it belongs to
  CHECK(b.first(events) == 7009);
}

TEST_CASE("a matmul pushes just what it multiplied: less is missing, more is doubled") {
  const auto joined = [](const std::vector<AnyEvent>& events) { return find_event<OperandsJoined>(events); };
  Bench more;
  CHECK(more.first(doubled(more.events, joined(more.events))) == 0);  // of the next block, for all that is known
  Bench less;
  auto shorter = less.events;
  std::get<OperandsJoined>(shorter[joined(shorter)]).a.cols = 16;
  CHECK(less.first(shorter) == 7010);
  Bench longer;
  auto events = longer.events;
  std::get<OperandsJoined>(events[joined(events)]).a.cols = 48;
  CHECK(longer.first(events) == 7009);
  Bench none;
  auto empty = none.events;
  std::get<PagePushed>(
      empty[find_event<PagePushed>(empty, [](const PagePushed& e) { return e.buffer.buffer.value == partial0; })])
      .tag.provenance = 0;
  CHECK(none.first(empty) == 7009);
}

TEST_CASE("a page that nobody made is for other checkers, and a stage that adds nothing is not counted") {
  Bench b;
  CHECK(b.first(without(b.events, find_event<OperandsJoined>(b.events))) == 0);
  Bench c;
  CHECK(c.first({FiringStarted{3, {StageId{std::uint32_t{load_x0}}, 0}, 0, 1, 0, StallCause::memory}}) == 0);
}

// max(x, 1) of whole values: a line for each port that the body takes, however often it does.
TEST_CASE("a body that makes values says of each port that it takes once") {
  SpatialProgram p = small_program();
  auto& body = std::get<Generic>(p.stages[fold].kind);
  body.bodies = {{1,
                  {{ExprOp::operand, 0, 0},
                   {ExprOp::operand, 1, 0},
                   {ExprOp::multiply, 0, 0},
                   {ExprOp::operand, 0, 0},
                   {ExprOp::maximum, 0, 0}}}};
  REQUIRE(makes_values(body));
  Bench right(p);
  CHECK(right.first(right.events) == 0);
  Bench missing(p);
  CHECK(missing.first(without(missing.events, fold_of(missing.events, 0))) == 7009);
  Bench twice(p);
  CHECK(twice.first(doubled(twice.events, fold_of(twice.events, 0))) == 7010);
}

}  // namespace
}  // namespace rdusim::addition_counter_test
