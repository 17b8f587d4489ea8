// Where the cycles and bytes of a run went: a fold over events.
//
// law   for every stage instance, over [start of its section, its last completion): total = busy + stalled (by cause) +
//       idle, none negative. `idle` is what is left after the last firing of a launch left the engine: the tail of the
//       pipeline, and of a relaunched section the time to its next launch.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/target/target.h"
#include "models/events/events.h"
#include "models/units/serial_resource.h"
#include "sim/instances.h"

namespace rdusim {

struct StageStatistics {
  std::uint64_t firings = 0;
  Cycles busy = 0;
  std::array<Cycles, stall_causes> stall{};
  bool fired = false;          // in the present launch
  Cycle engine_free = 0;       // end of what the last firing occupied
  Cycle last = 0;              // last completion
  std::optional<Cycle> first;  // start of the first firing
  // Of the first firing of each launch: from the start of the section, summed, and what of it is stall.
  Cycles before_first = 0;
  std::array<Cycles, stall_causes> first_stall{};

  Cycles stalled() const;
  // From `section_start` to the last completion, and what of it is neither busy nor stalled. 0 where it never fired.
  Cycles total(Cycle section_start) const;
  Cycles idle(Cycle section_start) const;
};

// A link decides ahead when it will carry what is offered, and rounds the times of a transfer outwards: cycles that two
// transfers share count once, and cycles after the end of a run that was stopped do not count.
struct LinkStatistics {
  Bytes bytes = 0;
  std::uint64_t broken = 0;  // transfers that came broken
  Cycles busy = 0;           // in the spans that are over
  std::vector<Slot> spans;   // [begin, end) that the link is taken, apart from each other, rising: not over yet
  Cycles busy_until(Cycle end) const;
};

struct MemoryStatistics {
  Bytes read = 0;
  Bytes written = 0;
  Cycles busy = 0;  // summed over channels
  // Of its reads, so that they say how long operands stream; of its writes where nothing is read.
  std::optional<Cycle> first;
  Cycle last = 0;
};

struct SectionSpan {
  std::optional<Cycle> start;  // of the first launch
  std::optional<Cycle> end;    // of the last that ended
  Cycle launched = 0;          // start of the last launch
  Cycles over = 0;             // cycles of the launches that ended
  bool runs = false;           // launched, and not ended
  // Cycles up to `until` in which it ran.
  Cycles ran(Cycle until) const { return over + (runs && until > launched ? until - launched : 0); }
};

class Statistics final : public EventSink {
 public:
  // `reached` follows the cycle for a progress line; may be null.
  Statistics(const Instances& instances, const Target& target, std::atomic<Cycle>* reached);

  void on(const SectionStarted& e) override;
  void on(const SectionEnded& e) override;
  void on(const FiringStarted& e) override;
  void on(const FiringCompleted& e) override;
  void on(const LinkUsed& e) override;
  void on(const MemoryUsed& e) override;
  void repeated(const Repetition& r) override;

  const StageStatistics& stage(std::uint32_t instance) const { return stages_[instance]; }
  const LinkStatistics& link(LinkId l) const { return links_[l.value]; }
  const MemoryStatistics& memory(ChipId chip, MemorySpace space) const {
    return memories_[chip.value * spaces + static_cast<std::size_t>(space)];
  }
  const std::vector<SectionSpan>& sections() const { return sections_; }
  Cycle section_start(StageId s) const;

  // The instance of a stage that completed last; the first of them where several did.
  std::uint32_t slowest_instance(StageId s) const;

 private:
  // What there was when the present launch of a relaunched section began.
  struct Before {
    std::vector<StageStatistics> stages;  // by stage instance
    std::vector<LinkStatistics> links;
    std::vector<MemoryStatistics> memories;
  };
  void begin_launch(SectionId section);

  static constexpr std::size_t spaces = 3;

  const Instances& instances_;
  std::atomic<Cycle>* reached_;
  std::vector<StageStatistics> stages_;  // by stage instance
  std::vector<LinkStatistics> links_;
  std::vector<MemoryStatistics> memories_;  // by chip and memory space
  std::vector<SectionSpan> sections_;
  Before before_;
};

std::string_view name_of(StallCause cause);

}  // namespace rdusim
