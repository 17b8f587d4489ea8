// Where a machine stands after an event: pages of every buffer, credits and pages under way of every channel,
// semaphores, barriers, firings. What counters, signals and `rdusim trace at` show.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "traces/roster.h"

namespace rdusim {

class MachineState final : public EventSink {
 public:
  explicit MachineState(const Roster& roster);

  struct Buffer {
    std::uint64_t reserved = 0;  // initial pages included, as in the others
    std::uint64_t pushed = 0;
    std::uint64_t popped = 0;  // by the slowest consumer
    std::uint64_t held() const { return pushed - std::min(pushed, popped); }
    std::uint64_t claimed() const { return reserved - std::min(reserved, popped); }
  };
  struct Channel {
    std::uint64_t credits = 0;    // Token: at the sender
    std::uint64_t under_way = 0;  // pages that left and did not land
    std::uint64_t sent = 0, landed = 0;
  };
  struct Sender {
    std::uint32_t ready = 0;    // Semaphore
    std::uint32_t waiting = 0;  // Barrier: members that arrived and did not leave
  };
  struct Stage {
    std::uint64_t started = 0, completed = 0;  // firings
    Cycle busy_until = 0;                      // of the last firing
    Cycle last_start = 0, last_completion = 0;
    StallCause cause{};  // of the last start
    Cycles stall = 0;    // of the last start
  };

  const Buffer& buffer(std::uint32_t n) const { return buffers_[n]; }
  const Channel& channel(std::uint32_t n) const { return channels_[n]; }
  const Sender& sender(std::uint32_t n) const { return senders_[n]; }
  const Stage& stage(std::uint32_t n) const { return stages_[n]; }
  std::uint32_t valid(std::uint32_t buffer) const { return valid_[buffer]; }  // Semaphore, of a landing buffer

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

 private:
  const Roster& roster_;
  std::vector<Buffer> buffers_;
  std::vector<std::uint32_t> first_consumer_;  // by buffer instance
  std::vector<std::uint64_t> popped_;          // by consumer
  std::vector<Channel> channels_;
  std::vector<Sender> senders_;
  std::vector<Stage> stages_;
  std::vector<std::uint32_t> valid_;
};

}  // namespace rdusim
