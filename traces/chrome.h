// Chrome's trace-event JSON, for speedscope, chrome://tracing and whoever reads it: the slices of a run (slices.h).
//
// Times are whole numbers: a cycle is shown as a microsecond, the format's unit, since fractions break the nesting in
// readers that round.
#pragma once

#include <memory>
#include <string>

#include "compiler/support/file_stream.h"
#include "traces/slices.h"

namespace rdusim {

class ChromeWriter final : public TraceWriter, private SliceSink {
 public:
  // `roster` is indexed and outlives this. Errors: RDU5008.
  static Result<std::unique_ptr<ChromeWriter>> create(const std::string& path, const Roster& roster, TraceScope scope,
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
  ChromeWriter(FileWriter file, const Roster& roster, TraceScope scope);
  void slice(const Slice& s) override;
  void counter(std::uint32_t counter, Cycle at, std::uint64_t value) override;
  void describe(const std::string& rdusim);
  bool room(std::size_t bytes);
  void flush();

  FileWriter file_;
  const Roster& roster_;
  TraceScope scope_;
  Slices slices_;
  std::vector<std::string> names_;  // of slices, as JSON
  std::string text_;                // not written yet
  Bytes head_ = 0;
  bool full_ = false;
  std::uint64_t left_out_ = 0;
};

}  // namespace rdusim
