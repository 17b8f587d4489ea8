#include "traces/fst.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#ifdef RDUSIM_FST
#include <gtkwave/fstapi.h>

#include <cstring>

#include "traces/fst_files.h"
#endif

namespace rdusim {

FstWriter::FstWriter(FileWriter file, std::string path, const Roster& roster, TraceScope scope, std::string rdusim)
    : file_(std::move(file)),
      path_(std::move(path)),
      roster_(roster),
      scope_(std::move(scope)),
      rdusim_(std::move(rdusim)),
      time_(timebase_of(roster.clock_ghz)),
      signals_(roster, scope_, *this) {}

FstWriter::~FstWriter() {
  close();
}

#ifdef RDUSIM_FST

bool fst_available() {
  return true;
}

Result<std::unique_ptr<FstWriter>> FstWriter::create(const std::string& path, const Roster& roster, TraceScope scope,
                                                     const std::string& rdusim) {
  auto file = FileWriter::create(path);
  if (!file) return file.diagnostics();
  Diagnostics d;
  if (file->beside().empty()) {
    d.error(Code::RDU5008, path, "an .fst is written to a regular file: its writer goes back and forth in it");
    return d;
  }
  std::unique_ptr<FstWriter> w(new FstWriter(std::move(file).value(), path, roster, std::move(scope), rdusim));
  bool begun = w->begin();
  if (begun && w->scope_.limit) {
    w->measure();
    begun = w->begin();
  }
  if (!begun) {
    d.error(Code::RDU5008, path, "fstapi cannot write it");
    return d;
  }
  return w;
}

// It opens the file by its name, and begins it anew.
bool FstWriter::begin() {
  writer_ = fstWriterCreate(file_.beside().c_str(), 1);
  return writer_ != nullptr;
}

// What the file takes without changes, by writing it so. Names and values are packed when it is closed, so that what they
// take is not known before.
void FstWriter::measure() {
  declare(signals_.tree(), signals_.values(), scope_.from);
  fstWriterEmitTimeChange(writer_, time_.tick(at_));
  if (close().has_errors()) return;  // which finish() will meet again
  head_ = rdusim_fst_size(file_.beside().c_str());
  handles_.clear();
  bits_.clear();
}

void FstWriter::declare(const SignalTree& tree, const std::vector<std::uint64_t>& values, Cycle from) {
  fstWriterSetPackType(writer_, FST_WR_PT_LZ4);
  fstWriterSetDate(writer_, "");
  fstWriterSetVersion(writer_, ("rdusim " + rdusim_).c_str());
  std::string unit = time_.unit;
  std::erase(unit, ' ');
  fstWriterSetTimescaleFromString(writer_, unit.c_str());
  fstWriterSetComment(writer_, fmt::format("{} on {}, program sha256 {}: {}", roster_.program, roster_.target,
                                           roster_.program_sha256, time_.note)
                                   .c_str());
  const std::vector<Signal>& signals = tree.signals();
  handles_.resize(signals.size());
  if (scope_.limit) changed_in_.resize(signals.size());
  bits_.reserve(signals.size());
  for (const Signal& s : signals) bits_.push_back(s.bits);
  std::string name;
  tree.visit(
      [&](std::string_view scope) {
        name = scope;
        fstWriterSetScope(writer_, FST_ST_VCD_MODULE, name.c_str(), nullptr);
      },
      [&] { fstWriterSetUpscope(writer_); },
      [&](std::uint32_t i) {
        const Signal& s = signals[i];
        name = s.name;
        if (s.bits != 1) fmt::format_to(std::back_inserter(name), " [{}:0]", s.bits - 1);
        handles_[i] = fstWriterCreateVar(writer_, FST_VT_VCD_WIRE, FST_VD_IMPLICIT, s.bits, name.c_str(), 0);
      });
  at_ = from;
  fstWriterEmitTimeChange(writer_, time_.tick(from));
  for (std::uint32_t i = 0; i < signals.size(); ++i)
    fstWriterEmitValueChange64(writer_, handles_[i], bits_[i], values[i]);
}

// Whether the limit lets a change be. fstapi holds blocks of changes back and packs them, so that what they will take is not
// known: only that it is no more than their parts. Where that would be too much, they are packed, and counted anew. Behind
// the last block comes what stands in the head too, names above all.
bool FstWriter::make_room(Cycle at, std::uint32_t signal) {
  constexpr Bytes time_bytes = 4, in_block_bytes = 3, first_in_block_bytes = 14, least_block_bytes = 64 << 10;
  const Bytes value = (bits_[signal] + 7) / 8;
  const auto bytes = [&] {
    // A signal's first change in a block: where its changes stand in it, and what the next block says of it.
    return in_block_bytes + value + (at != at_ ? time_bytes : 0) +
           (changed_in_[signal] != block_ ? first_in_block_bytes + value : 0);
  };
  const auto in_all = [&] { return file_bytes_ + head_ + held_bytes_ + bytes(); };
  if (at != at_) {
    // Blocks end with a cycle: there is to be room for one as large as the largest so far.
    largest_cycle_ = std::max(largest_cycle_, held_bytes_ - before_cycle_);
    if (in_all() + largest_cycle_ > *scope_.limit && held_bytes_ >= least_block_bytes) {
      fstWriterFlushContext(writer_);  // with the next change of time
      fstWriterEmitTimeChange(writer_, time_.tick(at));
      at_ = at;
      file_bytes_ = rdusim_fst_size(file_.beside().c_str());
      held_bytes_ = 0;
      ++block_;
    }
    before_cycle_ = held_bytes_;
  }
  if (in_all() > *scope_.limit) return false;
  held_bytes_ += bytes();
  changed_in_[signal] = block_;
  return true;
}

void FstWriter::change(Cycle at, std::uint32_t signal, std::uint64_t v) {
  full_ = full_ || (scope_.limit && !make_room(at, signal));
  if (full_) {
    ++left_out_;
    return;
  }
  if (at != at_) fstWriterEmitTimeChange(writer_, time_.tick(at));
  at_ = at;
  fstWriterEmitValueChange64(writer_, handles_[signal], bits_[signal], v);
}

Diagnostics FstWriter::close() {
  Diagnostics d;
  if (writer_ == nullptr) return d;
  fstWriterClose(writer_);
  writer_ = nullptr;
  if (const int error = rdusim_fst_error(file_.beside().c_str()); error != 0)
    d.error(Code::RDU5008, path_, "cannot be written: {}", std::strerror(error));
  return d;
}

Result<TraceSize> FstWriter::finish(const TraceEnd& end) {
  TraceSize size = signals_.finish(end);
  size.dropped.limit = left_out_;
  if (!full_ && end.cycles > at_ && end.cycles <= scope_.to) at_ = end.cycles;
  fstWriterEmitTimeChange(writer_, time_.tick(at_));
  // In its head, of 128 bytes: readers stumble over comments that stand behind the signals.
  if (size.dropped.total() != 0)
    fstWriterSetVersion(
        writer_, fmt::format("rdusim {}, left out: {} events by the filter, {} by the window, {} changes by the limit",
                             rdusim_, size.dropped.filter, size.dropped.window, size.dropped.limit)
                     .c_str());
  else if (end.cut())
    fstWriterSetVersion(writer_, fmt::format("rdusim {}, made of a log that was cut", rdusim_).c_str());
  if (Diagnostics d = close(); d.has_errors()) return d;
  size.bytes = rdusim_fst_size(file_.beside().c_str());
  const auto written = file_.commit();
  if (!written) return written.diagnostics();
  return size;
}

#else

bool fst_available() {
  return false;
}

Result<std::unique_ptr<FstWriter>> FstWriter::create(const std::string& path, const Roster&, TraceScope,
                                                     const std::string&) {
  Diagnostics d;
  d.error(Code::RDU8019, path, "this rdusim was built without fstapi")
      .suggest("write a .vcd, and `vcd2fst` (of GTKWave) makes an FST of it");
  return d;
}

void FstWriter::declare(const SignalTree&, const std::vector<std::uint64_t>&, Cycle) {}
void FstWriter::change(Cycle, std::uint32_t, std::uint64_t) {}
Diagnostics FstWriter::close() {
  return {};
}
Result<TraceSize> FstWriter::finish(const TraceEnd&) {
  return TraceSize();
}

#endif

}  // namespace rdusim
