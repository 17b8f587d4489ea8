// Dealing blocks of work out to sites along several axes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rdusim {

// An axis of `sites * rounds` blocks: the site at `s` of it works on blocks s, s + sites, s + 2 sites, ...
struct AxisDeal {
  std::uint64_t sites = 1;
  std::uint64_t rounds = 1;
  friend bool operator==(const AxisDeal&, const AxisDeal&) = default;
};

// `sites` sites over axes of these extents, outermost first: the innermost get sites first, each all that are left or
// as many as it has blocks, and the blocks of every site are as many. Sites are numbered through the axes, the last the
// fastest, and so are blocks: site i works on blocks i, i + sites, ... Nothing where that does not come out even.
std::optional<std::vector<AxisDeal>> deal(const std::vector<std::uint64_t>& extents, std::uint64_t sites);

// Where site `site` lies along each axis.
std::vector<std::uint64_t> site_at(const std::vector<AxisDeal>& axes, std::uint64_t site);

}  // namespace rdusim
