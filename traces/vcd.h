// Value change dump (IEEE 1364-2001, clause 18): the signals of a run (signals.h) for GTKWave, Surfer and others.
//
// Only changes are written. The timescale is the coarsest unit of which a cycle is a whole number, or a picosecond
// (timebase.h), as a comment says. No date: the same run gives the same bytes.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
  Bytes head() const override {
    return head_;
  }
  bool shows_any() const override {
    return !signals_.tree().signals().empty();
  }
  Result<TraceSize> finish(const TraceEnd& end) override;

 private:
  // What stands for a signal in the changes: up to seven characters, and how many.
  struct Code {
    std::array<char, 7> text{};
    std::uint8_t size = 0;
  };
  VcdWriter(FileWriter file, const Roster& roster, TraceScope scope, std::string rdusim);
  void declare(const SignalTree& tree, const std::vector<std::uint64_t>& values, Cycle from) override;
  void change(Cycle at, std::uint32_t signal, std::uint64_t value) override;
  static Code code_of(std::uint32_t n);
  void value(std::uint32_t signal, std::uint64_t v);
  void put(std::string_view words);
  void put(const Code& code);
  void room();
  void measure();
  void flush();

  FileWriter file_;
  const Roster& roster_;
  TraceScope scope_;
  std::string rdusim_;
  Timebase time_;
  Signals signals_;
  std::vector<Code> codes_;
  std::vector<bool> wide_;  // of more than one bit
  std::vector<char> text_;  // not written yet
  std::size_t used_ = 0;    // of it
  Bytes head_ = 0;
  bool measuring_ = false;  // the head, which is not written
  Cycle at_ = 0;            // of the last time that stands in the file
  bool full_ = false;
  std::uint64_t left_out_ = 0;  // changes, after the limit
};

}  // namespace rdusim
