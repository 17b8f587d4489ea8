// The signals of a run and the scopes that they stand in: chip, site, unit, part.
//
// A run of many chips has a million of them, so a scope knows its name once and its signals by their numbers, and they
// are visited without being sorted: scopes within a scope, and signals, in the order in which they were added.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rdusim {

struct Signal {
  std::string_view name;  // a literal: "state"
  std::uint32_t bits = 1;
  std::uint64_t initial = 0;
};

class SignalTree {
 public:
  using Scope = std::uint32_t;
  static constexpr Scope top = 0;  // has no name

  SignalTree() : scopes_(1) {}

  // A new scope in another. What a viewer takes for a name is letters, digits and underscores: others become
  // underscores.
  Scope add_scope(Scope outer, std::string_view name);
  // The one of that name, made where it is not there. They are looked through one by one: for scopes of few.
  Scope scope_in(Scope outer, std::string_view name);
  // Its number: they rise. The signals of a scope come one after the other.
  std::uint32_t add(Scope scope, const Signal& signal);

  const std::vector<Signal>& signals() const { return signals_; }
  std::size_t scopes() const { return scopes_.size() - 1; }

  // Depth first: enter(name), its signals by number, the scopes within it, leave().
  template <class Enter, class Leave, class Each>
  void visit(const Enter& enter, const Leave& leave, const Each& each) const {
    Scope at = first_in(top);
    std::vector<Scope> open;
    while (at != top) {
      const Node& n = scopes_[at];
      enter(name_of(n));
      for (std::uint32_t s = 0; s < n.signals; ++s) each(n.first_signal + s);
      open.push_back(at);
      at = n.first;
      while (at == top && !open.empty()) {
        leave();
        at = scopes_[open.back()].next;
        open.pop_back();
      }
    }
  }

 private:
  struct Node {
    std::uint64_t name_at = 0;  // in names_
    std::uint32_t name_size = 0;
    std::uint32_t first_signal = 0, signals = 0;
    Scope first = top, last = top;  // within it; top: none
    Scope next = top;               // beside it
  };
  Scope first_in(Scope outer) const { return scopes_[outer].first; }
  std::string_view name_of(const Node& n) const { return std::string_view(names_).substr(n.name_at, n.name_size); }

  std::vector<Node> scopes_;
  std::vector<Signal> signals_;
  std::string names_;
};

}  // namespace rdusim
