// What set the time of what, back to the start of a run: nodes, each of which refers to the one that it came last after.
// A node that nobody refers to is freed, and a run of nodes about the same is one, so that what is kept does not grow
// with the length of the run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/support/units.h"
#include "traces/critical_path.h"
#include "traces/event_kinds.h"

namespace rdusim {

// A piece is about a stage instance, a channel, or a section.
struct About {
  PathPiece piece{};
  EventSubject subject = EventSubject::section;
  std::uint32_t unit = 0;
  friend bool operator==(const About&, const About&) = default;
};

class Chain {
 public:
  using Ref = std::uint32_t;  // 0: the start of time

  Chain() { nodes_.push_back({}); }

  Cycle at(Ref n) const { return nodes_[n].at; }
  // `about`: what passed between `before` and `at`. The caller holds it.
  Ref make(Cycle at, Ref before, const About& about) {
    Ref n;
    if (free_.empty()) {
      n = static_cast<Ref>(nodes_.size());
      nodes_.push_back({});
    } else {
      n = free_.back();
      free_.pop_back();
    }
    nodes_[n] = {std::max(at, nodes_[before].at), before, 1, about};
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
      free_.push_back(n);
      n = before;
    }
  }
  void replace(Ref& held, Ref n) {
    const Ref old = held;
    held = n;
    drop(old);
  }
  Ref before(Ref n) const { return nodes_[n].before; }
  const About& about(Ref n) const { return nodes_[n].about; }

 private:
  struct Node {
    Cycle at = 0;
    Ref before = 0;
    std::uint32_t refs = 0;
    About about;
  };
  // Of n's predecessors, those that only the chain itself refers to and that are about the same are joined.
  void squeeze(Ref n) {
    const Ref p = nodes_[n].before;
    if (p == 0) return;
    const Ref q = nodes_[p].before;
    if (q == 0 || nodes_[q].refs != 1 || !(nodes_[q].about == nodes_[p].about)) return;
    nodes_[p].before = nodes_[q].before;
    free_.push_back(q);
  }

  std::vector<Node> nodes_;
  std::vector<Ref> free_;
};

}  // namespace rdusim
