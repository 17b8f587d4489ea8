// The last events of every unit, always at hand: what led up to a check that fired, a run that is stuck, or an
// interrupt.
//
// A unit is a stage instance, a buffer instance or a channel. Of each the last four events are kept, 16 bytes each: a
// unit is one cache line, the newest event first, so that taking one down touches that line and nothing else. Left out
// is what another event of the same moment says already (reservations, operands joined, pages loaded and stored), and
// what no unit waits for (links, memory, sections). Of a barrier, the sender's steps stand with its first channel.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/support/json.h"
#include "models/events/events.h"
#include "sim/instances.h"

namespace rdusim {

class FlightRecorder final : public EventSink {
 public:
  static constexpr std::size_t kept = 4;

  enum class What : std::uint8_t {
    nothing,
    started,  // a firing
    completed,
    pushed,
    popped,  // by consumer `detail`
    sent,
    landed,
    credit_returned,
    credit_arrived,
    ready_raised,
    ready_consumed,
    valid_raised,
    valid_consumed,
    barrier_arrived,  // member `detail`, 255 and above as 255
    barrier_left,
  };
  struct Event {
    std::uint64_t at : 48 = 0;  // beyond 2^48 cycles (two days at 1.8 GHz) the low bits
    std::uint64_t what : 8 = 0;
    std::uint64_t detail : 8 = 0;
    std::uint64_t number = 0;  // of the firing, page or generation

    What kind() const { return static_cast<What>(what); }
  };

  // `instances` outlives this.
  explicit FlightRecorder(const Instances& instances);

  using EventSink::on;
  void on(const FiringStarted& e) override;
  void on(const FiringCompleted& e) override;
  void on(const PagePushed& e) override;
  void on(const PagePopped& e) override;
  void on(const PageLanded& e) override;
  void on(const CreditReturned& e) override;
  void on(const CreditArrived& e) override;
  void on(const PageSent& e) override;
  void on(const ReadyRaised& e) override;
  void on(const ReadyConsumed& e) override;
  void on(const ValidRaised& e) override;
  void on(const ValidConsumed& e) override;
  void on(const BarrierArrived& e) override;
  void on(const BarrierLeft& e) override;

  // Oldest first.
  std::vector<Event> of(const StageAt& s) const { return events(instances_.of(s)); }
  std::vector<Event> of(const BufferAt& b) const { return events(buffers_from_ + instances_.of(b)); }
  std::vector<Event> of(const ChannelAt& c) const { return events(channels_from_ + instances_.of(c)); }

  // "cycle 812: firing 3 started, cycle 830: firing 3 completed"; empty where nothing happened.
  static std::string text(const std::vector<Event>& events);

  // The `most` latest events of all units: [{cycle, unit, event}], rising by cycle, then by unit.
  Json to_json(std::size_t most = 200) const;

 private:
  struct alignas(64) Unit {
    std::array<Event, kept> last;  // newest first
  };
  void take(std::uint32_t unit, Cycle at, What what, std::uint64_t number, std::uint64_t detail = 0) {
    std::array<Event, kept>& last = units_[unit].last;
    last[3] = last[2];
    last[2] = last[1];
    last[1] = last[0];
    last[0].at = at & ((std::uint64_t{1} << 48U) - 1);
    last[0].what = static_cast<std::uint8_t>(what);
    last[0].detail = static_cast<std::uint8_t>(detail < 255 ? detail : 255);
    last[0].number = number;
  }
  std::uint32_t channel(const ChannelAt& c) const { return channels_from_ + instances_.of(c); }
  std::uint32_t first_channel(EdgeId e, std::uint32_t from) const {
    return channels_from_ + instances_.first_channel(e, from);
  }
  std::vector<Event> events(std::size_t unit) const;
  std::string name(std::size_t unit) const;

  const Instances& instances_;
  std::uint32_t buffers_from_ = 0, channels_from_ = 0;
  std::vector<Unit> units_;  // stages, buffers, channels
};

}  // namespace rdusim
