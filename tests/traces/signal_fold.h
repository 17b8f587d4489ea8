// What a waveform of a run must show, worked out from its events in the plainest way: counters and intervals by name.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "traces/roster.h"

namespace rdusim::test {

// Value from a time on; by name, "chip0.site_1_0.pmu.x.occupancy".
using Waveform = std::map<std::string, std::map<std::uint64_t, std::uint64_t>>;

class SignalFold final : public EventSink {
 public:
  explicit SignalFold(const Roster& roster);
  using EventSink::on;
  void on(const FiringStarted& e) override;
  void on(const FiringCompleted& e) override;
  void on(const PageReserved& e) override;
  void on(const PagePushed& e) override;
  void on(const PagePopped& e) override;
  void on(const CreditTaken& e) override;
  void on(const CreditArrived& e) override;
  void on(const PageSent& e) override;
  void on(const PageLanded& e) override;
  void on(const ReadyRaised& e) override;
  void on(const ReadyConsumed& e) override;
  void on(const ValidRaised& e) override;
  void on(const ValidConsumed& e) override;
  void on(const BarrierArrived& e) override;
  void on(const BarrierLeft& e) override;
  void on(const LinkUsed& e) override;
  void on(const MemoryUsed& e) override;

  // Up to and with `end`, only where a value differs from the one before.
  Waveform finish(Cycle end);

 private:
  std::string stage(const StageAt& s) const;
  std::string buffer(const BufferAt& b) const;
  std::string sender(EdgeId e, std::uint32_t from) const;
  std::string channel(const ChannelAt& c) const;
  void show(const BufferAt& b, Cycle at);

  const Roster& r_;
  Waveform w_;
  std::map<std::string, std::int64_t> count_;
  std::map<BufferAt, std::vector<std::uint64_t>> popped_;
  std::map<std::string, std::vector<std::pair<Cycle, Cycle>>> taken_;  // intervals
  std::map<std::string, Cycle> completed_;
};

// Reads VCD: values by name, at the cycles whose times it has. Fails the test on anything that it does not understand.
Waveform read_vcd(const std::string& text, const Timebase& time);
// Without values that repeat.
Waveform changes_of(Waveform w);

}  // namespace rdusim::test
