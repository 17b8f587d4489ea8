#include "compiler/passes/deal.h"

#include <doctest/doctest.h>

#include <set>

namespace rdusim::deal_test {

TEST_CASE("sites are dealt to the innermost axes first, and every one has as many blocks") {
  const auto axes = deal({2, 4, 6}, 12);
  REQUIRE(axes.has_value());
  CHECK(*axes == std::vector<AxisDeal>{{1, 2}, {2, 2}, {6, 1}});
  CHECK(site_at(*axes, 11) == std::vector<std::uint64_t>{0, 1, 5});
  CHECK_FALSE(deal({2, 4, 6}, 4).has_value());   // does not divide 6
  CHECK_FALSE(deal({2, 4, 6}, 18).has_value());  // 6 and 3 of 4
  CHECK_FALSE(deal({2, 4, 6}, 96).has_value());  // more than there are
  CHECK(deal({}, 1).has_value());
}

TEST_CASE("site i works on blocks i, i + sites, and so on, in the order of its rounds") {
  const std::vector<std::uint64_t> extents = {3, 4, 5};
  for (std::uint64_t sites = 1; sites <= 60; ++sites) {
    const auto axes = deal(extents, sites);
    if (!axes) continue;
    for (std::uint64_t i = 0; i < sites; ++i) {
      const std::vector<std::uint64_t> at = site_at(*axes, i);
      std::uint64_t round = 0;
      for (std::uint64_t x = 0; x < (*axes)[0].rounds; ++x)
        for (std::uint64_t y = 0; y < (*axes)[1].rounds; ++y)
          for (std::uint64_t z = 0; z < (*axes)[2].rounds; ++z) {
            const std::uint64_t block =
                ((at[0] + x * (*axes)[0].sites) * 4 + at[1] + y * (*axes)[1].sites) * 5 + at[2] + z * (*axes)[2].sites;
            CHECK(block == i + round++ * sites);
          }
    }
  }
}

}  // namespace rdusim::deal_test
