// Perfetto's trace format, for ui.perfetto.dev: the slices of a run (slices.h) as track events.
//
// A cycle is shown as a nanosecond, whatever the clock: viewers know whole nanoseconds only, and cycles are what is
// counted. The names of processes say so. Field numbers are those of Perfetto's published schema
// (protos/perfetto/trace/*.proto).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/support/file_stream.h"
#include "traces/protobuf.h"
#include "traces/slices.h"

namespace rdusim {

class PerfettoWriter final : public TraceWriter, private SliceSink {
 public:
  // `roster` is indexed and outlives this. Errors: RDU5008.
  static Result<std::unique_ptr<PerfettoWriter>> create(const std::string& path, const Roster& roster, TraceScope scope,
                                                        const std::string& rdusim);

#define RDU_FORWARD(Event)           \
  void on(const Event& e) override { \
    slices_.on(e);                   \
  }
  RDU_EVENTS(RDU_FORWARD)
#undef RDU_FORWARD
  Bytes head() const override {
    return head_;
  }
  bool shows_any() const override {
    return !slices_.tracks().empty() || !slices_.counters().empty();
  }
  Result<TraceSize> finish(const TraceEnd& end) override;

 private:
  PerfettoWriter(FileWriter file, const Roster& roster, TraceScope scope);
  void slice(const Slice& s) override;
  void counter(std::uint32_t counter, Cycle at, std::uint64_t value) override;
  void describe(const std::string& rdusim);
  // Of the event that is being put together.
  void annotation(std::uint64_t name, std::uint64_t value);
  void tell_dropped(const LeftOut& dropped, const TraceEnd& end);
  // Its sequence is added.
  void packet(Message& packet);
  std::uint64_t process(std::uint32_t chip) const {
    return std::uint64_t{chip} + 1;
  }
  std::uint64_t track(std::uint32_t n) const {
    return (std::uint64_t{1} << 32U) + n;
  }
  std::uint64_t counter_track(std::uint32_t n) const {
    return (std::uint64_t{2} << 32U) + n;
  }

  static constexpr std::uint64_t left_out_track = std::uint64_t{3} << 32U;

  FileWriter file_;
  const Roster& roster_;
  TraceScope scope_;
  Slices slices_;
  std::string bytes_;  // not written yet
  Message event_, packet_, part_;
  Bytes head_ = 0;
  bool full_ = false;
  std::uint64_t left_out_ = 0;  // slices and counts, after the limit
};

}  // namespace rdusim
