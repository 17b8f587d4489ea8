// Fast signal trace, GTKWave's compressed waveform format (the appendix of GTKWave's manual describes it): the signals
// of a run (signals.h), as the VCD beside it has them, in a fraction of the bytes.
//
// Written by GTKWave's own fstapi, which Debian ships in verilator (/usr/share/verilator/include/gtkwave); where that
// or zlib was not there when rdusim was built, create() refuses. No date: the same run gives the same bytes.
#pragma once

#include <memory>
#include <string>

#include "compiler/support/file_stream.h"
#include "traces/signals.h"
#include "traces/timebase.h"

namespace rdusim {

// Whether this rdusim writes it.
bool fst_available();

class FstWriter final : public TraceWriter, private SignalSink {
 public:
  // `roster` is indexed and outlives this. Errors: RDU8019, RDU5008 (also of what is no regular file).
  static Result<std::unique_ptr<FstWriter>> create(const std::string& path, const Roster& roster, TraceScope scope,
                                                   const std::string& rdusim);
  ~FstWriter() override;

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
  FstWriter(FileWriter file, std::string path, const Roster& roster, TraceScope scope, std::string rdusim);
  void declare(const SignalTree& tree, const std::vector<std::uint64_t>& values, Cycle from) override;
  void change(Cycle at, std::uint32_t signal, std::uint64_t value) override;
  bool make_room(Cycle at, std::uint32_t signal);
  bool begin();
  void measure();
  // Of a file that is complete. Errors: RDU5008.
  Diagnostics close();

  FileWriter file_;
  std::string path_;
  const Roster& roster_;
  TraceScope scope_;
  std::string rdusim_;
  Timebase time_;
  Signals signals_;
  void* writer_ = nullptr;  // fstapi's
  std::vector<std::uint32_t> handles_, bits_;
  Cycle at_ = 0;
  bool full_ = false;
  std::uint64_t left_out_ = 0;  // changes, after the limit
  Bytes head_ = 0;              // of a file without changes; known where there is a limit
  // Of the file so far; of changes that fstapi holds, at most.
  Bytes file_bytes_ = 0, held_bytes_ = 0;
  Bytes before_cycle_ = 0, largest_cycle_ = 0;  // of what is held, what came before this cycle; of a cycle's
  std::uint32_t block_ = 1;                     // that is held
  std::vector<std::uint32_t> changed_in_;       // by signal: the last block
};

}  // namespace rdusim
