// What ends a run from outside it: a time, a memory, or a computer that has none left. What was learnt so far is
// reported; there is no verdict on the program.
//
// A thread looks fifty times a second, at some ten microseconds a look: at the clock, at what the process holds
// (resident, /proc/self/statm, but for files that are mapped: the system takes that back when it needs it), and at what the computer has left (MemAvailable of /proc/meminfo; in a control group
// with a limit what is left of that, page cache not counted). What a run takes within one look is seen at the next one:
// a limit is exceeded by what can be touched in 20 ms, some tens of megabytes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "compiler/support/units.h"

namespace rdusim {

enum class Limit : std::uint8_t {
  none,
  seconds,   // --max-seconds
  memory,    // --max-memory
  computer,  // a thirty-second part of the computer's memory, or less, is left
};
std::string_view name_of(Limit limit);  // "none", "seconds", "memory", "computer"
std::optional<Limit> limit_of(std::string_view name);

// What this process holds now; 0 where the system does not say.
Bytes resident_bytes();

// What the computer (or the control group) has, and has left.
struct ComputerMemory {
  Bytes total = ~Bytes{0};
  Bytes left = ~Bytes{0};
};
ComputerMemory computer_memory();

struct Limits {
  std::optional<double> seconds;  // beyond what the clock can add up: never reached
  std::optional<Bytes> memory;
  std::function<Bytes()> held = resident_bytes;  // what the run holds
  std::function<void()> each_look;               // called by the thread that looks; may be empty
};

// Raises `stop` at the first limit that is reached, unless it is finished before.
class LimitWatch {
 public:
  LimitWatch(Limits limits, std::atomic<bool>& stop);
  ~LimitWatch() { finish(); }
  LimitWatch(const LimitWatch&) = delete;
  LimitWatch& operator=(const LimitWatch&) = delete;

  void finish();
  Limit reached() const { return reached_.load(); }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool finished_ = false;
  std::atomic<Limit> reached_{Limit::none};
  std::thread thread_;
};

}  // namespace rdusim
