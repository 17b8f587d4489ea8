#include "compiler/passes/sites.h"

#include <algorithm>
#include <utility>

#include "compiler/passes/attention.h"

namespace rdusim {
namespace {

std::uint64_t apart(std::uint32_t a, std::uint32_t b) {
  return a < b ? b - a : a - b;
}

}  // namespace

std::uint64_t sites_wanted(const OperatorGraph& graph, const Work& work, const Target& target) {
  const BlockPlan& plan = *work.plan;
  if (graph.operators[work.op.value].kind != OperatorKind::attention) {
    const SchedulePin pin = pin_of(graph, work.op);
    const std::uint64_t folds = pin.fold_apart && plan.sites_k > 1 ? 1 : 0;
    return plan.sites_m * plan.sites_n * (plan.sites_k + folds) * pin.pmus.value_or(1);
  }
  const AttentionExtents extents = attention_extents(graph, work);
  const AttentionSites parts = attention_sites(extents, plan, target);
  const std::uint64_t passes = score_passes(graph, work, plan, target);
  return plan.sites_m * parts.heads *
         (passes * (score_groups(extents) * parts.scores + 1) + parts.values * parts.slices);
}

SiteAllocator::SiteAllocator(const Target& target, ChipId chip)
    : target_(target), chip_(chip), taken_(target.sites(), false), free_(target.sites()) {}

std::uint64_t SiteAllocator::distance(Position a, AgcuId agcu) const {
  const Position b = target_.agcu.at[agcu.value];
  return apart(a.x, b.x) + apart(a.y, b.y);
}

Position SiteAllocator::take(std::size_t index) {
  taken_[index] = true;
  --free_;
  return {static_cast<std::uint32_t>(index % target_.mesh.width),
          static_cast<std::uint32_t>(index / target_.mesh.width)};
}

void SiteAllocator::lend_memory(std::size_t count) {
  for (std::size_t s = taken_.size(); s > 0 && count > 0; --s)
    if (!taken_[s - 1]) {
      take(s - 1);
      --count;
    }
}

Group SiteAllocator::near_agcus(std::size_t count) {
  Group group;
  for (std::size_t i = 0; i < count; ++i) {
    const AgcuId agcu(next_agcu_);
    next_agcu_ = (next_agcu_ + 1) % target_.agcu.at.size();
    std::size_t best = taken_.size();
    std::uint64_t best_distance = 0;
    for (std::size_t s = 0; s < taken_.size(); ++s) {
      if (taken_[s]) continue;
      const Position at{static_cast<std::uint32_t>(s % target_.mesh.width),
                        static_cast<std::uint32_t>(s / target_.mesh.width)};
      const std::uint64_t d = distance(at, agcu);
      if (best == taken_.size() || d < best_distance) {
        best = s;
        best_distance = d;
      }
    }
    group.sites.push_back({chip_, take(best)});
    group.agcus.push_back(agcu);
  }
  return group;
}

bool SiteAllocator::free_block(Position at, std::size_t rows, std::size_t columns) const {
  for (std::size_t y = at.y; y < at.y + rows; ++y)
    for (std::size_t x = at.x; x < at.x + columns; ++x)
      if (taken_[y * target_.mesh.width + x]) return false;
  return true;
}

std::optional<std::vector<std::size_t>> SiteAllocator::rectangle(std::size_t rows, std::size_t columns) const {
  const auto [width, height] = target_.mesh;
  for (std::uint32_t y = 0; y + rows <= height; ++y)
    for (std::uint32_t x = 0; x + columns <= width; ++x) {
      if (!free_block({x, y}, rows, columns)) continue;
      std::vector<std::size_t> sites;
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) sites.push_back((y + i) * width + x + j);
      return sites;
    }
  return std::nullopt;
}

std::optional<std::vector<std::size_t>> SiteAllocator::folded(std::size_t rows, std::size_t columns) const {
  const auto [width, height] = target_.mesh;
  if (columns > width || !free_block({0, 0}, height, width)) return std::nullopt;
  const std::size_t beside = width / columns, left = width % columns;
  const std::size_t whole = std::min(rows, beside * height);
  const std::size_t deep = left == 0 ? 0 : (columns + left - 1) / left;  // mesh rows that one of the others takes
  if ((rows - whole) * deep > height || (whole < rows && left == 0)) return std::nullopt;
  std::vector<std::size_t> sites;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      sites.push_back(i < whole ? i % height * width + i / height * columns + j
                                : ((i - whole) * deep + j / left) * width + beside * columns + j % left);
  return sites;
}

std::optional<std::vector<std::size_t>> SiteAllocator::in_bands(std::size_t rows, std::size_t columns) const {
  const auto [width, height] = target_.mesh;
  const std::size_t deep = (columns + width - 1) / width;  // mesh rows of a band
  const std::size_t wide = (columns + deep - 1) / deep;
  for (std::uint32_t y = 0; y + rows * deep <= height; ++y)
    for (std::uint32_t x = 0; x + wide <= width; ++x) {
      if (!free_block({x, y}, rows * deep, wide)) continue;
      std::vector<std::size_t> sites;
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) sites.push_back((y + i * deep + j / wide) * width + x + j % wide);
      return sites;
    }
  return std::nullopt;
}

std::vector<std::size_t> SiteAllocator::as_they_come(std::size_t count) const {
  std::vector<std::size_t> sites;
  for (std::size_t s = 0; sites.size() < count; ++s)
    if (!taken_[s]) sites.push_back(s);
  return sites;
}

std::uint64_t SiteAllocator::links_of_tree(AgcuId from, const std::vector<Position>& to) const {
  // Along x first: a trunk in the AGCU's row, and in each column a branch up and a branch down.
  const Position root = target_.agcu.at[from.value];
  struct Branches {
    std::uint64_t up = 0, down = 0;
  };
  std::vector<Branches> columns(target_.mesh.width);
  std::uint32_t least = root.x, most = root.x;
  for (const Position at : to) {
    least = std::min(least, at.x);
    most = std::max(most, at.x);
    std::uint64_t& branch = at.y < root.y ? columns[at.x].up : columns[at.x].down;
    branch = std::max(branch, apart(at.y, root.y));
  }
  std::uint64_t links = most - least;
  for (const Branches& b : columns) links += b.up + b.down;
  return links;
}

void SiteAllocator::share_out(const std::vector<Reader>& readers, std::size_t most, std::vector<std::size_t>& served,
                              Group& group) const {
  struct Offer {
    std::uint64_t links = 0;
    std::size_t reader = 0, agcu = 0;
    auto operator<=>(const Offer&) const = default;
  };
  std::vector<Offer> offers;
  for (std::size_t r = 0; r < readers.size(); ++r)
    for (std::size_t a = 0; a < served.size(); ++a) offers.push_back({links_of_tree(AgcuId(a), readers[r].to), r, a});
  std::sort(offers.begin(), offers.end());
  std::vector<bool> has(readers.size(), false);
  for (const Offer& o : offers) {
    if (has[o.reader] || served[o.agcu] >= most) continue;
    has[o.reader] = true;
    ++served[o.agcu];
    group.agcus[readers[o.reader].instance] = AgcuId(o.agcu);
  }
}

Group SiteAllocator::block(std::size_t rows, std::size_t columns) {
  std::optional<std::vector<std::size_t>> layout = rectangle(rows, columns);
  if (!layout) layout = folded(rows, columns);
  if (!layout) layout = in_bands(rows, columns);
  if (!layout) layout = as_they_come(rows * columns);
  Group group;
  for (const std::size_t s : *layout) group.sites.push_back({chip_, take(s)});
  group.agcus.resize(group.sites.size());
  std::vector<Reader> of_rows, of_columns, others;
  for (std::size_t i = 0; i < group.sites.size(); ++i) {
    const Position at = group.sites[i].at;
    const std::size_t row = i / columns, column = i % columns;
    if (column == 0) of_rows.push_back({i, {}});
    if (row == 0 && column != 0) of_columns.push_back({i, {}});
    if (row != 0 && column != 0) others.push_back({i, {at}});
    of_rows[row].to.push_back(at);
    if (column != 0) of_columns[column - 1].to.push_back(at);
  }
  std::vector<std::size_t> served(target_.agcu.at.size(), 0);
  const auto share = [&](std::size_t readers) { return (readers + served.size() - 1) / served.size(); };
  share_out(of_rows, share(rows), served, group);
  share_out(of_columns, share(rows + columns - 1), served, group);
  share_out(others, share(rows * columns), served, group);
  return group;
}

}  // namespace rdusim
