// What every format of a trace has in common: it listens to a run, and is closed whatever ended it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "compiler/support/result.h"
#include "models/events/events.h"
#include "models/events/provenance.h"

namespace rdusim {

// Events that a trace does not hold, and why.
struct LeftOut {
  std::uint64_t filter = 0;  // left out by --trace-filter
  std::uint64_t window = 0;  // outside --trace-from and --trace-to
  std::uint64_t limit = 0;   // after --trace-limit was reached
  LeftOut& operator+=(const LeftOut& other) {
    filter += other.filter, window += other.window, limit += other.limit;
    return *this;
  }
  std::uint64_t total() const { return filter + window + limit; }
  friend bool operator==(const LeftOut&, const LeftOut&) = default;
};

// How a run ended.
struct TraceEnd {
  std::string reason;  // "finished", "quiescent", "stopped", "max-cycles"; "cut": of a log that was, and is converted
  bool cut() const { return reason == "cut"; }
  Cycle cycles = 0;
  std::string outcome;  // JSON, for a replay
  LeftOut lost{};       // before the writer was told: by the log that is converted
};

// What was written.
struct TraceSize {
  std::uint64_t bytes = 0;
  std::uint64_t events = 0;
  LeftOut dropped;
};

// What a count of what was left out takes at most, and the last time; where it stands behind the events, a limit keeps room.
inline constexpr Bytes left_out_bytes = 256;

class TraceWriter : public EventSink {
 public:
  // The contributions that events name by number; before the first event.
  virtual void use(const ProvenanceTable&) {}
  // Of the file, what is written whatever is left out: no limit can be less.
  virtual Bytes head() const = 0;
  // Whether it has any unit to tell of: signals, tracks.
  virtual bool shows_any() const { return true; }
  // After the last event. Errors: RDU5008.
  virtual Result<TraceSize> finish(const TraceEnd& end) = 0;
};

}  // namespace rdusim
