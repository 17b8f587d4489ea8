// What every unit did over a run, folded into bins of time: small enough to be drawn in a page whatever the run's
// length.
//
// A run of `cycles` is cut into bins of `width` cycles, the last one shorter where it does not divide. A stage
// instance's bin is one symbol of 64: eight levels of how much of it the instance was busy (0: not at all; else
// sevenths, rounded up) times what it mainly did with the rest (0: nothing it waited for; else 1 + the StallCause with
// most cycles, the first of equals). A link's and a memory's bin is its level alone. A row is its symbols, each
// followed by how often it repeats where that is more than once: "A12Hb3". Rows that are alike are kept once.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/events/events.h"
#include "traces/roster.h"

namespace rdusim {

inline constexpr std::string_view life_symbols = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+,-.";

// Time that one unit spent, in cycles; spans are told in rising order, and what overlaps an earlier one counts once.
struct LifeTotals {
  std::uint64_t firings = 0;
  Cycles busy = 0;
  std::array<Cycles, stall_causes> stall{};
  friend auto operator<=>(const LifeTotals&, const LifeTotals&) = default;
};

class Lives final : public EventSink {
 public:
  // `roster` is indexed and outlives this.
  Lives(const Roster& roster, Cycle cycles);

  using EventSink::on;
  void on(const FiringStarted& e) override;
  void on(const LinkUsed& e) override;
  void on(const MemoryUsed& e) override;
  // After the last event.
  void finish();

  Cycle cycles() const { return cycles_; }
  Cycles width() const { return width_; }
  std::uint32_t bins() const { return bins_; }

  struct Life {
    std::string row;
    LifeTotals totals;
    friend auto operator<=>(const Life&, const Life&) = default;
  };
  // Valid after finish().
  const std::vector<Life>& lives() const { return lives_; }
  std::uint32_t life_of(std::uint32_t stage_instance) const { return life_of_[stage_instance]; }
  struct Load {
    std::string row;
    Bytes bytes = 0;
    Cycles busy = 0;  // of a memory: the mean of its channels, rounded down
  };
  Load link(LinkId l) const;
  // Of all channels of a chip's HBM, or its DDR.
  Load memory(ChipId chip, std::uint8_t space) const;

 private:
  static constexpr std::size_t fates = stall_causes + 1;  // busy, then stalled by cause
  struct Open {
    Cycle reached = 0;  // before it everything is told
    std::uint32_t bin = 0;
    std::array<Cycles, fates> spent{};  // of that bin
    LifeTotals totals;
    std::string row;
    char last = 0;  // symbol not written yet, and how often
    std::uint32_t times = 0;
  };
  struct Taken {
    Cycle reached = 0;
    Bytes bytes = 0;
    Cycles busy = 0;
    std::vector<Cycles> spent;  // by bin; empty: never used
  };

  Cycles width_of(std::uint32_t bin) const;
  void spend(Open& o, Cycle from, Cycle to, std::size_t fate);
  void close_bins(Open& o, std::uint32_t until);
  void take(Taken& t, Cycle from, Cycle to) const;
  std::string row_of(const std::vector<Cycles>& spent, Cycles each) const;

  const Roster& roster_;
  Cycle cycles_;
  std::uint32_t bins_;
  Cycles width_;
  std::vector<Open> open_;  // by stage instance
  std::vector<Taken> links_;
  std::vector<Taken> memories_;  // by channel, as Roster numbers them
  std::vector<Life> lives_;
  std::vector<std::uint32_t> life_of_;
};

}  // namespace rdusim
