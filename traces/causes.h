// What set the time of what, back to the start of a run: nodes, each of which refers to the one that it came last after.
// A node that nobody refers to is freed, and a run of nodes about the same is one. Where many ways lead back to the start
// side by side (every load's own) that does not suffice: then the stretches of a way that no other joins are added up
// (path_tally.h), so that what is kept grows with those who may still ask, not with the length of the run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/support/units.h"
#include "traces/path_tally.h"

namespace rdusim {

class Chain {
 public:
  using Ref = std::uint32_t;  // 0: the start of time

  // `most`: of the longest pieces of a way, how many are told. `nodes`: from how many on stretches are added up.
  explicit Chain(std::size_t most, std::size_t nodes = std::size_t{1} << 21)
      : most_(most), least_limit_(nodes), limit_(nodes) {
    nodes_.push_back({});
  }

  Cycle at(Ref n) const { return nodes_[n].at; }
  // `about`: what passed between `before` and `at`. The caller holds it, and holds `before`.
  Ref make(Cycle at, Ref before, const About& about) {
    Ref n;
    if (free_.empty() && nodes_.size() >= limit_) add_up();
    if (free_.empty()) {
      n = static_cast<Ref>(nodes_.size());
      nodes_.push_back({});
    } else {
      n = free_.back();
      free_.pop_back();
    }
    nodes_[n] = {std::max(at, nodes_[before].at), before, 1, about, false};
    ++nodes_[before].refs;
    squeeze(n);
    return n;
  }
  Ref hold(Ref n) {
    ++nodes_[n].refs;
    return n;
  }
  void drop(Ref n) {
    // The root is never freed.
    while (n != 0 && --nodes_[n].refs == 0) {
      const Ref before = nodes_[n].before;
      free(n);
      n = before;
    }
  }
  void replace(Ref& held, Ref n) {
    const Ref old = held;
    held = n;
    drop(old);
  }
  // Nodes and stretches that there are, beside the start.
  std::size_t nodes() const { return nodes_.size() - 1 - free_.size(); }
  // Of a node that is held: the cycle at which what it came last after was.
  Cycle set_at(Ref n) const { return nodes_[nodes_[n].before].at; }
  const About& about(Ref held) const { return nodes_[held].about; }
  // The pieces of the way from a node back to the start, told to a tally.
  void tell(Ref n, PathTally& tally) const {
    for (; n != 0; n = nodes_[n].before) tell_one(n, tally);
  }

 private:
  struct Node {
    Cycle at = 0;
    Ref before = 0;
    std::uint32_t refs = 0;
    About about;  // a stretch's unit is its number in stretches_
    bool stretch = false;
  };

  void tell_one(Ref n, PathTally& tally) const {
    const Node& node = nodes_[n];
    if (node.stretch)
      tally.add(stretches_[node.about.unit]);
    else
      tally.add(PathStep{nodes_[node.before].at, node.at, node.about});
  }
  void free(Ref n) {
    if (nodes_[n].stretch) {
      stretches_[nodes_[n].about.unit] = PathTally(0);
      free_stretches_.push_back(nodes_[n].about.unit);
    }
    nodes_[n].refs = 0;
    nodes_[n].stretch = false;
    free_.push_back(n);
  }
  // Of n's predecessors, those that only the chain itself refers to and that are about the same are joined.
  void squeeze(Ref n) {
    const Ref p = nodes_[n].before;
    if (p == 0 || nodes_[p].stretch) return;
    const Ref q = nodes_[p].before;
    if (q == 0 || nodes_[q].stretch || nodes_[q].refs != 1 || !(nodes_[q].about == nodes_[p].about)) return;
    nodes_[p].before = nodes_[q].before;
    free(q);
  }
  // Adds up every stretch of nodes of which each has one node after it and no holder.
  void add_up() {
    std::vector<std::uint8_t> after(nodes_.size());  // 2: or more
    for (Ref n = 1; n < nodes_.size(); ++n)
      if (nodes_[n].refs != 0) after[nodes_[n].before] = std::min(after[nodes_[n].before] + 1, 2);
    const auto within = [&](Ref n) { return n != 0 && nodes_[n].refs == 1 && after[n] == 1; };
    for (Ref n = 1; n < nodes_.size(); ++n) {
      if (nodes_[n].refs == 0 || within(n) || !within(nodes_[n].before)) continue;
      const Ref first = nodes_[n].before;
      PathTally tally(most_);
      Ref end = first;
      std::size_t length = 0;
      for (; within(end); end = nodes_[end].before, ++length) tell_one(end, tally);
      if (length < least_stretch) continue;
      for (Ref m = nodes_[first].before; m != end;) {
        const Ref before = nodes_[m].before;
        free(m);
        m = before;
      }
      if (nodes_[first].stretch) {
        stretches_[nodes_[first].about.unit] = std::move(tally);
      } else {
        if (free_stretches_.empty()) {
          free_stretches_.push_back(static_cast<std::uint32_t>(stretches_.size()));
          stretches_.emplace_back(0);
        }
        nodes_[first].about.unit = free_stretches_.back();
        nodes_[first].stretch = true;
        stretches_[free_stretches_.back()] = std::move(tally);
        free_stretches_.pop_back();
      }
      nodes_[first].before = end;
    }
    limit_ = std::max(least_limit_, 2 * (nodes_.size() - free_.size()));
  }

  static constexpr std::size_t least_stretch = 8;
  std::size_t most_, least_limit_, limit_;
  std::vector<Node> nodes_;
  std::vector<Ref> free_;
  std::vector<PathTally> stretches_;
  std::vector<std::uint32_t> free_stretches_;
};

}  // namespace rdusim
