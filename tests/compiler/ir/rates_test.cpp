#include "compiler/ir/rates.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "tests/compiler/ir/sample_program.h"

namespace rdusim::rates_test {
namespace {

TEST_CASE("a sum over phases takes whole cycles and the part that is left") {
  const Cyclic<std::uint32_t> rate = {{2, 1}, {1, 0}, {1, 5}};
  CHECK(sum_over(rate, 0) == 0);
  CHECK(sum_over(rate, 3) == 2);
  CHECK(sum_over(rate, 4) == 7);
  CHECK(sum_over(rate, 10) == 16);
}

TEST_CASE("a sum that does not fit is none") {
  CHECK(sum_over(always(~0u), std::uint64_t{1} << 32) == (std::uint64_t{1} << 32) * ~0u);
  CHECK_FALSE(sum_over(always(~0u), std::uint64_t{1} << 33).has_value());
}

TEST_CASE("law: a sum over phases is what a cursor steps through and at_phase says") {
  CHECK(rc::check("sum_over = stepping", [] {
    Cyclic<std::uint32_t> rate;
    for (std::size_t i = *rc::gen::inRange<std::size_t>(1, 5); i > 0; --i)
      rate.push_back({*rc::gen::inRange<std::uint32_t>(1, 4), *rc::gen::inRange<std::uint32_t>(0, 9)});
    const auto phases = *rc::gen::inRange<std::uint64_t>(0, 60);
    CyclicCursor cursor(rate);
    std::uint64_t sum = 0;
    for (std::uint64_t f = 0; f < phases; ++f) {
      RC_ASSERT(cursor.value() == at_phase(rate, f));
      sum += cursor.value();
      cursor.advance();
    }
    RC_ASSERT(sum_over(rate, phases) == std::optional(sum));
  }));
}

TEST_CASE("counts follow from firings, trips and rates") {
  SpatialProgram p = sample::program();
  p.sections[0].trips = 3;
  CHECK(count_pages(p, p.stages[0], 0, 0) == PortCounts{0, 0, 12, 12});
  CHECK(count_pages(p, p.stages[2], 1, 0) == PortCounts{12, 12, 0, 0});
  CHECK(count_pages(p, p.stages[2], 2, 1) == PortCounts{0, 0, 3, 3});
  p.sections[0].trips = ~std::uint64_t{0};
  CHECK_FALSE(count_pages(p, p.stages[0], 0, 0).has_value());
}

TEST_CASE("a firing whose page cannot be moved moves nothing, and instances may differ in that") {
  SpatialProgram p = sample::program();
  CHECK(counts_alike(p, p.stages[1]));
  p.tensors[1].tiles = {16, 1};  // the second instance's column is gone
  CHECK_FALSE(counts_alike(p, p.stages[1]));
  CHECK(count_pages(p, p.stages[1], 0, 0) == PortCounts{0, 0, 4, 4});
  CHECK(count_pages(p, p.stages[1], 0, 1) == PortCounts{0, 0, 0, 0});
  p.tensors[1].tiles = {8, 2};
  CHECK(count_pages(p, p.stages[1], 0, 1) == PortCounts{0, 0, 2, 2});
}

TEST_CASE("a hyperperiod brings every port and body back to its first phase") {
  SpatialProgram p = sample::program();
  CHECK(hyperperiod(p.stages[0]) == 1);
  CHECK(hyperperiod(p.stages[2]) == 4);
  p.stages[2].ports[0].need = {{6, 1}};
  CHECK(hyperperiod(p.stages[2]) == 12);
}

Edge crossing(PageMapKind kind, std::vector<std::vector<std::uint32_t>> targets) {
  Edge e;
  e.map = {kind, std::move(targets)};
  return e;
}

TEST_CASE("a receiver takes its senders' pages in rising sender") {
  using Senders = std::vector<std::vector<std::uint32_t>>;
  CHECK(senders_by_receiver(crossing(PageMapKind::one_to_one, {}), 2) == Senders{{0}, {1}});
  CHECK(senders_by_receiver(crossing(PageMapKind::gather, {{1}, {0}, {1}}), 2) == Senders{{1}, {0, 2}});
  CHECK(senders_by_receiver(crossing(PageMapKind::multicast, {{0, 1}, {1}}), 2) == Senders{{0}, {0, 1}});
}

TEST_CASE("a scatter gives the pages out in turn") {
  const Edge e = crossing(PageMapKind::scatter, {{2, 0, 1}});
  CHECK(pages_sent(e, 0, 2, 7) == 3);
  CHECK(pages_sent(e, 0, 0, 7) == 2);
  CHECK(pages_sent(e, 0, 1, 7) == 2);
  CHECK(pages_sent(crossing(PageMapKind::multicast, {{0, 1}}), 0, 1, 7) == 7);
}

}  // namespace
}  // namespace rdusim::rates_test
