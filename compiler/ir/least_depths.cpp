#include "compiler/ir/least_depths.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "compiler/ir/clusters.h"
#include "compiler/ir/rates.h"
#include "compiler/ir/token_run.h"

namespace rdusim {
namespace {

class Search {
 public:
  Search(const SpatialProgram& p, std::uint64_t most_steps)
      : p_(p), floor_(depth_floors(p)), given_(p.buffers.size()), least_(p.buffers.size(), 0), left_(most_steps) {
    for (const Buffer& b : p.buffers) given_[b.id.value] = b.depth_pages;
  }

  void look_at(const Cluster& c) {
    take_up(c);
    const std::vector<BufferId> buffers = buffers_of(c);
    if (ends_with(given_).value_or(false))
      split(buffers, 0, buffers.size());
    else
      for (const BufferId b : buffers) deepen(b, given_);
  }

  // Depths with which all clusters end together, none of which can be less with the others as they are then; `fixed`
  // keeps its own. Nothing where there are none, or where it would take too long.
  bool look_at_all(const Cluster& c, const std::vector<bool>& fixed, std::vector<std::uint64_t>& depths) {
    take_up(c);
    std::vector<BufferId> free;
    for (const BufferId b : buffers_of(c))
      if (!fixed[b.value]) free.push_back(b);
    std::vector<std::uint64_t> tried = depths;
    for (const BufferId b : free) tried[b.value] = floor_[b.value];
    const auto ends = ends_with(tried);
    if (!ends) return false;
    if (!*ends) {
      // One after the other, with those that follow of any depth.
      for (const BufferId b : free) tried[b.value] = 0;
      for (const BufferId b : free) {
        deepen(b, tried);
        if (least_[b.value] == 0) return false;
        tried[b.value] = least_[b.value];
      }
    }
    for (const BufferId b : free) depths[b.value] = tried[b.value];
    return true;
  }

  std::vector<std::uint64_t> found() && { return std::move(least_); }

 private:
  void take_up(const Cluster& c) {
    run_ = std::make_unique<TokenRun>(p_, c);
    parts_ = c.repeats;
    steps_ = std::max<std::uint64_t>(steps_of(p_, c) / parts_, 1);
    one_to_one_ = c.one_to_one;
    const bool alike =
        std::all_of(c.stages.begin(), c.stages.end(), [&](StageId s) { return counts_alike(p_, p_.stage(s)); });
    instances_ = c.one_to_one && !alike ? static_cast<std::uint32_t>(c.instances) : 1;
  }
  std::vector<BufferId> buffers_of(const Cluster& c) const {
    std::vector<BufferId> buffers;
    std::vector<bool> seen(p_.buffers.size(), false);
    for (const StageId s : c.stages)
      for (const Port& port : p_.stage(s).ports) {
        if (!seen[port.buffer.value]) buffers.push_back(port.buffer);
        seen[port.buffer.value] = true;
      }
    return buffers;
  }
  void begin(std::uint32_t instance, const std::vector<std::uint64_t>& depths) {
    run_->start(parts_, one_to_one_ ? std::optional(instance) : std::nullopt, &depths);
  }
  bool afford() {
    if (steps_ > left_) return false;
    left_ -= steps_;
    return true;
  }
  // Nothing where it would take too long.
  std::optional<bool> ends_with(const std::vector<std::uint64_t>& depths) {
    for (std::uint32_t i = 0; i < instances_; ++i) {
      if (!afford()) return std::nullopt;
      begin(i, depths);
      if (!run_->run_to_end()) return false;
    }
    return true;
  }

  // buffers[first, last): at their floors together, or in halves.
  void split(const std::vector<BufferId>& buffers, std::size_t first, std::size_t last) {
    if (first == last) return;
    if (last - first == 1) return deepen(buffers[first], given_);
    std::vector<std::uint64_t> depths = given_;
    for (std::size_t i = first; i < last; ++i) depths[buffers[i].value] = floor_[buffers[i].value];
    const auto ends = ends_with(depths);
    if (!ends) return;
    if (*ends) {
      for (std::size_t i = first; i < last; ++i) least_[buffers[i].value] = floor_[buffers[i].value];
      return;
    }
    const std::size_t middle = first + (last - first) / 2;
    split(buffers, first, middle);
    split(buffers, middle, last);
  }

  // `depths` but for b's.
  void deepen(BufferId b, std::vector<std::uint64_t> depths) {
    depths[b.value] = floor_[b.value];
    for (std::uint32_t i = 0; i < instances_; ++i) {
      if (!afford()) return;
      begin(i, depths);
      while (!run_->run_to_end()) {
        const auto wanted = run_->wanted_depth(b);
        if (!wanted) return;  // no depth of this buffer alone lets it end
        depths[b.value] = *wanted;
        run_->deepen(b, *wanted);
      }
    }
    least_[b.value] = depths[b.value];
  }

  const SpatialProgram& p_;
  std::vector<std::uint64_t> floor_, given_, least_;
  std::uint64_t left_;
  std::unique_ptr<TokenRun> run_;
  std::uint64_t parts_ = 1, steps_ = 1;
  std::uint32_t instances_ = 1;
  bool one_to_one_ = false;
};

}  // namespace

std::vector<std::uint64_t> depth_floors(const SpatialProgram& p) {
  std::vector<std::uint64_t> floor(p.buffers.size(), 1);
  for (const Buffer& b : p.buffers) floor[b.id.value] = std::max<std::uint64_t>(1, b.initial_pages);
  for (const Stage& s : p.stages)
    for (const Port& port : s.ports) {
      std::uint64_t& f = floor[port.buffer.value];
      f = std::max<std::uint64_t>(f, greatest(port.direction == Direction::input ? port.need : port.reserve));
    }
  return floor;
}

std::vector<std::uint64_t> least_depths(const SpatialProgram& p, std::uint64_t most_steps) {
  Search search(p, most_steps);
  for (const Cluster& c : clusters_of(p)) search.look_at(c);
  return std::move(search).found();
}

std::optional<std::vector<std::uint64_t>> depths_together(const SpatialProgram& p, std::uint64_t most_steps) {
  Search search(p, most_steps);
  std::vector<std::uint64_t> depths;
  std::vector<bool> fixed;
  for (const Buffer& b : p.buffers) {
    depths.push_back(b.depth_pages);
    fixed.push_back(b.depth_pages != 0);
  }
  for (const Cluster& c : clusters_of(p))
    if (!search.look_at_all(c, fixed, depths)) return std::nullopt;
  return depths;
}

}  // namespace rdusim
