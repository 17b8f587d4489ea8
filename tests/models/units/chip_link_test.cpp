#include "models/units/chip_link.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <vector>

namespace rdusim::chip_link_test {
namespace {

ChipLink link(Fraction error_rate, std::uint64_t seed = 1, std::uint32_t id = 0) {
  return ChipLink({LinkId{id}, ChipId{0}, ChipId{1}, {64, 1}, 1200, 32, 0, error_rate, 5, seed});
}
std::vector<bool> drawn(ChipLink l, int count) {
  std::vector<bool> all;
  for (int i = 0; i < count; ++i) all.push_back(l.breaks());
  return all;
}

TEST_CASE("a page arrives at serialisation plus latency, and not one cycle earlier") {
  ChipLink l = link({0, 1});
  CHECK(l.arrival(10, 4096) == 10 + 64 + 1200);
  CHECK(l.send(10, 4096).arrival == 10 + 64 + 1200);
  CHECK(l.send(10, 4096).slot.begin == 10 + 64);
  CHECK(l.span(65) == 2);
}

TEST_CASE("a link without errors breaks nothing, one with a rate of 1 everything") {
  for (const bool b : drawn(link({0, 1}), 1000)) CHECK_FALSE(b);
  for (const bool b : drawn(link({1, 1}), 1000)) CHECK(b);
}

TEST_CASE("a link breaks the share of its transfers that its rate says") {
  for (const Fraction rate : {Fraction{1, 2}, Fraction{1, 10}, Fraction{999, 1000}, Fraction{1, 1000000000000}}) {
    const double p = to_double(rate);
    constexpr int n = 20000;
    int broken = 0;
    for (const bool b : drawn(link(rate), n)) broken += b ? 1 : 0;
    CAPTURE(p);
    CHECK(std::abs(broken - n * p) <= 5 * std::sqrt(n * p * (1 - p)) + 1);
  }
}

TEST_CASE("what breaks depends on the seed and the link, and a section's start changes nothing of it") {
  const Fraction half{1, 2};
  CHECK(drawn(link(half), 100) == drawn(link(half), 100));
  const std::set<std::vector<bool>> different = {drawn(link(half, 1, 0), 100), drawn(link(half, 2, 0), 100),
                                                 drawn(link(half, 1, 1), 100), drawn(link(half, 0, 0), 100)};
  CHECK(different.size() == 4);
  ChipLink l = link(half);
  std::vector<bool> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(l.breaks());
    if (i % 10 == 0) l.reset();
  }
  CHECK(all == drawn(link(half), 100));
}

}  // namespace
}  // namespace rdusim::chip_link_test
