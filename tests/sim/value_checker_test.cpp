// What stages make values of, event by event: a fold made into a product of pages, and into a sum of each row.
#include "sim/value_checker.h"

#include <doctest/doctest.h>

#include "tests/sim/small_program.h"

namespace rdusim::value_checker_test {
namespace {

using namespace test;

SpatialProgram with_body(Generic g) {
  SpatialProgram p = small_program();
  std::get<Generic>(p.stages[fold].kind) = std::move(g);
  return p;
}

// Both pages multiplied, element by element.
SpatialProgram product() {
  Generic g;
  g.iterators = {IteratorKind::parallel};
  g.maps = {{{1, 0}}, {{1, 0}}, {{1, 0}}};
  g.bodies = always(Expr{{ExprOp::operand, 0, 0}, {ExprOp::operand, 1, 0}, {ExprOp::multiply, 0, 0}});
  g.accumulator = g.result = DType::int32;
  return with_body(g);
}

// Rows of two pages joined, from a page a firing.
SpatialProgram row_sums() {
  Generic g;
  g.iterators = {IteratorKind::parallel, IteratorKind::reduction};
  const AffineMap all = {{1, 0, 0}, {0, 1, 0}};
  g.maps = {all, all, {{1, 0, 0}, {0, 0, 0}}};
  g.bodies = {{2, Expr{{ExprOp::operand, 0, 0}}}};
  g.join = ExprOp::add;
  g.accumulator = g.result = DType::int32;
  return with_body(g);
}

PageTag page(OperandId operand, std::uint64_t col, std::uint32_t cols, ProvenanceId holds) {
  PageTag t;
  t.operand = operand;
  t.col = col;
  t.rows = 32;
  t.cols = cols;
  t.provenance = holds;
  return t;
}

struct Bench {
  explicit Bench(SpatialProgram p) : program(std::move(p)), instances(program), violations(stop, true) {
    checker.emplace(instances, violations);
    checker->use(table);
    whole = table.sum(table.single({ChipId{0u}, 0, 32}), table.single({ChipId{1u}, 32, 64}));
  }
  // The code that a firing's page is caught with, or 0.
  int takes(std::uint64_t firing, const PageTag& added, const PageTag& sum) {
    const std::size_t before = violations.diagnostics().list().size();
    static_cast<EventSink&>(*checker).on(PartialFolded{10 + firing, {StageId{fold}, 0}, firing, PageTag{}, added, sum});
    const auto& list = violations.diagnostics().list();
    return list.size() == before ? 0 : static_cast<int>(list.back().code);
  }

  SpatialProgram program;
  Instances instances;
  std::atomic<bool> stop{false};
  Violations violations;
  ProvenanceTable table;
  std::optional<ValueChecker> checker;
  ProvenanceId whole = 0;
};

constexpr OperandId y{2u};
const OperandId made = value_of(StageId{fold});

TEST_CASE("a program of sums alone concerns the checker of values not at all") {
  Bench b(small_program());
  CHECK_FALSE(b.checker->watches());
  CHECK(Bench(product()).checker->watches());
}

TEST_CASE("a value made of pages that belong together is right") {
  Bench b(product());
  CHECK(b.takes(0, page(y, 0, 32, b.whole), page(made, 0, 32, 0)) == 0);
}

TEST_CASE("a value made of a page of another block, chunk, trip or stage is caught") {
  Bench b(product());
  CHECK(b.takes(0, page(y, 32, 32, b.whole), page(made, 0, 32, 0)) == 7029);
  PageTag late = page(y, 0, 32, b.whole);
  late.trip = 1;
  CHECK(b.takes(0, late, page(made, 0, 32, 0)) == 7029);
  PageTag cut = page(y, 0, 32, b.whole);
  cut.chunks = 2;
  CHECK(b.takes(0, cut, page(made, 0, 32, 0)) == 7029);
  CHECK(b.takes(0, page(y, 0, 32, b.whole), page(value_of(StageId{store}), 0, 32, 0)) == 7029);
}

TEST_CASE("a value made of a sum that lacks a contribution is caught") {
  Bench b(product());
  CHECK(b.takes(0, page(y, 0, 32, b.table.single({ChipId{0u}, 0, 32})), page(made, 0, 32, 0)) == 7009);
}

TEST_CASE("a row is joined from its first column to its last, without a gap") {
  const auto joined = [](Bench& b, std::uint64_t firing, std::uint64_t col) {
    return b.takes(firing, page(y, col, 16, b.whole), page(made, 0, 1, 0));
  };
  Bench right(row_sums());
  CHECK(joined(right, 0, 0) == 0);
  CHECK(joined(right, 1, 16) == 0);
  CHECK(joined(right, 2, 0) == 0);
  Bench again(row_sums());
  CHECK(joined(again, 0, 0) == 0);
  CHECK(joined(again, 1, 0) == 7029);
  Bench late(row_sums());
  CHECK(joined(late, 0, 16) == 7029);
}

}  // namespace
}  // namespace rdusim::value_checker_test
