#include "compiler/passes/deal.h"

namespace rdusim {

std::optional<std::vector<AxisDeal>> deal(const std::vector<std::uint64_t>& extents, std::uint64_t sites) {
  std::vector<AxisDeal> axes(extents.size());
  for (std::size_t d = extents.size(); d-- > 0;) {
    const std::uint64_t extent = extents[d];
    if (sites >= extent ? sites % extent != 0 : extent % sites != 0) return std::nullopt;
    axes[d].sites = sites >= extent ? extent : sites;
    axes[d].rounds = extent / axes[d].sites;
    sites /= axes[d].sites;
  }
  if (sites != 1) return std::nullopt;
  return axes;
}

std::vector<std::uint64_t> site_at(const std::vector<AxisDeal>& axes, std::uint64_t site) {
  std::vector<std::uint64_t> at(axes.size());
  for (std::size_t d = axes.size(); d-- > 0;) {
    at[d] = site % axes[d].sites;
    site /= axes[d].sites;
  }
  return at;
}

}  // namespace rdusim
