#include "models/systemc/reuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "compiler/ir/memory_use.h"
#include "compiler/ir/trips.h"

namespace rdusim {
namespace {

std::optional<std::string> share_rows(const SpatialProgram& p, const Target& target, const std::vector<bool>& own) {
  struct Extent {
    ChipId chip;
    MemorySpace space{};
    Bytes begin = 0, end = 0;
    TensorId tensor;
    auto key() const { return std::tuple(chip, space, begin, end, tensor); }
  };
  std::vector<Extent> extents;
  for (const Tensor& t : p.tensors) {
    const TensorPlace& at = p.memory->tensors[t.id.value];
    if (at.bytes == 0) continue;
    const Bytes stripe = memory_of(t, target).stripe_bytes();
    if (own[t.id.value] && at.address % stripe != 0) return fmt::format("'{}' does not begin where rows do", t.name);
    extents.push_back({t.chip, t.space, at.address / stripe, (at.address + at.bytes - 1) / stripe, t.id});
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.key() < b.key(); });
  for (std::size_t i = 1; i < extents.size(); ++i) {
    const Extent &a = extents[i - 1], &b = extents[i];
    if (a.chip != b.chip || a.space != b.space || b.begin > a.end) continue;
    if (own[a.tensor.value] || own[b.tensor.value])
      return fmt::format("'{}' and '{}' lie in the same rows of memory", p.tensor(a.tensor).name,
                         p.tensor(b.tensor).name);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> launches_differ(const SpatialProgram& p, const Target& target, SectionId section) {
  if (!p.memory) return "the program has no memory plan";
  for (const Stage& s : p.stages) {
    if (s.section != section) continue;
    if (const auto* load = std::get_if<Load>(&s.kind); load != nullptr && load->indexed)
      return fmt::format("'{}' reads rows by index", s.name);
  }
  for (const LinkId id : p.links)
    if (id.value < target.links.size() && target.links[id.value].error_rate.num != 0)
      return "transfers of links break at random";
  const std::vector<bool> own = tensors_of_single_trips(p, section);
  for (const Tensor& t : p.tensors)
    if (own[t.id.value] && memory_of(t, target).banks != 0)
      return "in memory with banks, each launch's tensors lie in banks of their own";
  return share_rows(p, target, own);
}

}  // namespace rdusim
