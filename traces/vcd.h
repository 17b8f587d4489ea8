// Value change dump (IEEE 1364-2001, clause 18): the signals of a run (signals.h) for GTKWave, Surfer and others.
//
// Only changes are written. Times are exact: the timescale is the coarsest unit of which a cycle is a whole number, or
// a tick is a cycle (timebase.h), as a comment says. No date: the same run gives the same bytes.
#pragma once

#include <memory>
#include <string>

#include "compiler/support/file_stream.h"
#include "traces/signals.h"
#include "traces/timebase.h"

namespace rdusim {

class VcdWriter final : public TraceWriter, private SignalSink {
 public:
  // `roster` is indexed and outlives this. Errors: RDU5008.
  static Result<std::unique_ptr<VcdWriter>> create(const std::string& path, const Roster& roster, TraceScope scope,
                                                   const std::string& rdusim);

#define RDU_FORWARD(Event)           \
  void on(const Event& e) override { \
    signals_.on(e);                  \
  }
  RDU_EVENTS(RDU_FORWARD)
#undef RDU_FORWARD
  Result<TraceSize> finish(const TraceEnd& end) override;

 private:
  VcdWriter(FileWriter file, const Roster& roster, TraceScope scope, std::string rdusim);
  void declare(const std::vector<Signal>& signals, const std::vector<std::uint64_t>& values, Cycle from) override;
  void change(Cycle at, std::uint32_t signal, std::uint64_t value) override;
  void value(std::uint32_t signal, std::uint64_t v);
  void flush();

  FileWriter file_;
  const Roster& roster_;
  TraceScope scope_;
  std::string rdusim_;
  Timebase time_;
  Signals signals_;
  std::vector<std::string> codes_;
  std::vector<std::uint32_t> bits_;
  std::string text_;  // not written yet
  Cycle at_ = 0;      // of the last time that stands in the file
  bool full_ = false;
  std::uint64_t left_out_ = 0;  // changes, after the limit
};

}  // namespace rdusim
