#include "compiler/cost/link_rate.h"

#include <doctest/doctest.h>

#include "compiler/cost/exact.h"

namespace rdusim::link_rate_test {

TEST_CASE("a link carries what does not come broken, as often as it is sent") {
  ChipLinkParameters link;
  link.bytes_per_cycle = {7, 2};
  CHECK(cost::carried_rate(link) == Fraction{7, 2});
  link.error_rate = {1, 5};
  // 14 bytes take 4 cycles, and a fifth of the transfers again, and again: 4 / (1 - 1/5).
  CHECK(cost::time_of(14, cost::carried_rate(link)) == 5);
  CHECK(cost::time_of(14000, cost::carried_rate(link)) == 5000);
  // Most come broken; and numbers too large for a fraction count as none.
  link.error_rate = {999999, 1000000};
  CHECK(cost::time_of(14, cost::carried_rate(link)) == 4000000);
  link.bytes_per_cycle = {(std::uint64_t{1} << 61) - 1, 3};
  link.error_rate = {1, 1000000007};
  CHECK(cost::carried_rate(link) == link.bytes_per_cycle);
}

}  // namespace rdusim::link_rate_test
