// Untimed execution of a section: whoever can fire fires, until nobody can.
//
// An actor is an instance of a stage (the members of a multicast set are one: they fire together), or a *crossing*,
// which takes a page from a source buffer to the landing buffers that it is for. A crossing is one for each pair of
// instances where the hand-off is a Token; where all receivers must agree before a page moves (Semaphore, Barrier, and
// a scatter, whose pages leave in order) it is one for each sender. A firing starts when all its ports can be served,
// as program.h states; it completes at once, which changes no count's order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/certificate/subject.h"

namespace rdusim::certificate {

// Of one execution: what is beyond is not looked at.
inline constexpr std::uint64_t most_firings = std::uint64_t{1} << 26;

// How much of a section to execute.
struct Extent {
  // Those that stand for all, rising (requires Subject::uniform); of a group with fewer, those that it has. Empty: all.
  std::vector<std::uint32_t> instances;
  std::uint64_t divisor = 1;  // each stage's firings of a trip, divided by this
  // Only these stages of the section, by stage id, which hand-offs do not join to others; empty: all of it.
  std::vector<bool> only = {};
};

// A rate by phase, in a table where the cycle is short enough.
class Rate {
 public:
  Rate() = default;
  explicit Rate(const Cyclic<std::uint32_t>& cycle);
  std::uint32_t at(std::uint64_t firing) const {
    if (table_.size() == 1) return table_[0];
    if (!table_.empty()) return table_[firing % table_.size()];
    return at_phase(*cycle_, firing);
  }

 private:
  const Cyclic<std::uint32_t>* cycle_ = nullptr;
  std::vector<std::uint32_t> table_;
};

struct Net {
  static constexpr std::uint32_t nobody = 0xffffffff;

  struct Queue {  // an instance of a buffer
    BufferId buffer;
    std::uint32_t instance = 0;
    std::uint64_t depth = 0, initial = 0;
    std::uint32_t first_consumer = 0, consumers = 0;  // slots
    std::uint32_t producer = nobody;                  // an actor
    std::vector<std::uint32_t> turn;  // landing: crossings that bring pages, in turn; empty: only one does
  };
  struct Use {  // of a queue by an actor
    std::uint32_t queue = 0;
    std::uint32_t slot = nobody;  // consumer slot; nobody: an output
    std::uint32_t port = 0;       // stage: index into its ports
    std::uint32_t rates = 0;      // stage: index into `rates`
  };
  struct Actor {
    bool crossing = false;
    StageId stage;
    EdgeId edge;
    std::uint32_t instance = 0;  // of the stage (a set: its first member's), or of the edge's sender
    std::uint32_t first_use = 0, uses = 0;
    std::uint64_t firings = 0;
    std::uint32_t scatter = 0;  // not 0: so many targets (of each `to`), which take the pages in turn
    // Whether firing f moves pages through use number `u` of its own.
    bool uses_in(std::uint32_t u, std::uint64_t f) const {
      return scatter == 0 || u == 0 || (u - 1) % scatter == f % scatter;
    }
  };
  struct Rates {
    Rate take, free;  // input: need, pop; output: reserve, push
  };

  std::vector<Queue> queues;
  std::vector<Actor> actors;
  std::vector<Use> uses;
  std::vector<Rates> rates;
  std::vector<std::uint32_t> actor_of_slot;  // who consumes there
  std::uint64_t all_firings = 0;             // of all actors; too_many on overflow

  // One trip of the section, or the part of it that `extent` names. Instances are numbered as the program does. Where
  // that would not fit this computer's memory, a net without actors whose all_firings is too_many.
  static Net of(const Subject& subject, SectionId section, const Extent& extent);

  // The nets into which this one falls: actors that queues join, directly or through others, and all instances of a
  // buffer in the same one. What happens in one has no bearing on the others. In the order of their first actors.
  std::vector<Net> parts() const;
};

// After how many firings the rates, chunks and bodies of a stage are at their first phases again; too_many on overflow.
std::uint64_t period_of(const Stage& stage);

// The greatest number by which one trip of the section can be divided such that each part does the same as the first
// and leaves every count as it found it. Requires that the counts balance.
std::uint64_t repeats_of(const Subject& subject, SectionId section);

class Execution {
 public:
  // `depths` by buffer id, in place of those given; empty: those given.
  explicit Execution(const Net& net, const std::vector<std::uint64_t>& depths = {});

  // Calls fire(actor, firing) for each firing before its counts change, in an order that is a function of the net
  // alone. Stops after `most` firings. Returns whether all actors finished.
  template <class Fire>
  bool run(std::uint64_t most, Fire&& fire);
  bool run(std::uint64_t most) {
    return run(most, [](std::uint32_t, std::uint64_t) { return true; });
  }

  // Pages taken so far by a consumer slot, and pushed into a queue: the numbers of the next ones.
  std::uint64_t popped(std::uint32_t slot) const { return popped_[slot]; }
  std::uint64_t pushed(std::uint32_t queue) const { return state_[queue].pushed; }
  std::uint64_t fired() const { return fired_; }

  // After run() gave false: the least depth of `buffer` with which somebody could go on, nothing where its room holds
  // nobody up; and that depth given to all its instances, to run on. What was fired could have been with any depth.
  std::optional<std::uint64_t> wanted(BufferId buffer) const;
  void deepen(BufferId buffer, std::uint64_t depth);

  // After run() gave false: who waits for whom, in words.
  std::string stuck(const Subject& subject) const;

 private:
  struct State {
    std::uint64_t reserved = 0, pushed = 0, least_popped = 0, depth = 0;
    std::uint32_t turn = 0;
  };
  bool can_fire(std::uint32_t actor) const;
  void take(std::uint32_t actor);
  std::optional<std::uint32_t> blocking_use(std::uint32_t actor) const;
  // Who fills a queue next.
  std::uint32_t filler(std::size_t queue) const {
    const Net::Queue& q = net_.queues[queue];
    return q.turn.empty() ? q.producer : q.turn[state_[queue].turn];
  }

  const Net& net_;
  std::vector<State> state_;
  std::vector<std::uint64_t> popped_;
  std::vector<std::uint64_t> done_;  // firings of each actor
  std::vector<std::uint32_t> open_;  // actors to look at
  std::vector<bool> is_open_;
  std::uint64_t fired_ = 0;
};

template <class Fire>
bool Execution::run(std::uint64_t most, Fire&& fire) {
  while (!open_.empty()) {
    const std::uint32_t actor = open_.back();
    open_.pop_back();
    is_open_[actor] = false;
    while (can_fire(actor)) {
      if (fired_ == most || !fire(actor, done_[actor])) return false;
      take(actor);
      ++fired_;
    }
  }
  for (std::size_t a = 0; a < done_.size(); ++a)
    if (done_[a] != net_.actors[a].firings) return false;
  return true;
}

}  // namespace rdusim::certificate
