#include "traces/fst.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#ifdef RDUSIM_FST
#include <gtkwave/fstapi.h>
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
  // It opens the file by its name, and begins it anew.
  w->writer_ = fstWriterCreate(w->file_.beside().c_str(), 1);
  if (w->writer_ == nullptr) {
    d.error(Code::RDU5008, path, "fstapi cannot write it");
    return d;
  }
  return w;
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
  // What is written when it is closed: names, and a value a signal as text of one bit a character, deflated.
  const std::vector<Signal>& signals = tree.signals();
  Bytes bits = 0;
  handles_.resize(signals.size());
  bits_.reserve(signals.size());
  for (const Signal& s : signals) {
    bits += s.bits;
    to_come_ += s.name.size() + 16;
    bits_.push_back(s.bits);
  }
  std::string name;
  tree.visit(
      [&](std::string_view scope) {
        to_come_ += scope.size() / 2 + 4;
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
  to_come_ += bits / 7 + 4096;
  at_ = from;
  fstWriterEmitTimeChange(writer_, from * time_.ticks_per_cycle);
  for (std::uint32_t i = 0; i < signals.size(); ++i)
    fstWriterEmitValueChange64(writer_, handles_[i], bits_[i], values[i]);
}

void FstWriter::change(Cycle at, std::uint32_t signal, std::uint64_t v) {
  // fstapi holds blocks of changes back and packs them, so that what they will take is not known: only that it is no
  // more than their parts. Where that would be too much, they are packed, and counted anew.
  constexpr Bytes change_bytes = 24, block_bytes = 64 << 10;
  if (scope_.limit && !full_ && file_bytes_ + to_come_ + held_bytes_ + change_bytes > *scope_.limit) {
    if (held_bytes_ < block_bytes) {
      full_ = true;
    } else if (at != at_) {
      fstWriterFlushContext(writer_);  // with the next change of time
      fstWriterEmitTimeChange(writer_, at * time_.ticks_per_cycle);
      at_ = at;
      std::error_code error;
      file_bytes_ = std::filesystem::file_size(file_.beside(), error);
      held_bytes_ = 0;
    }
  }
  if (full_) {
    ++left_out_;
    return;
  }
  held_bytes_ += change_bytes;
  if (at != at_) fstWriterEmitTimeChange(writer_, at * time_.ticks_per_cycle);
  at_ = at;
  fstWriterEmitValueChange64(writer_, handles_[signal], bits_[signal], v);
}

void FstWriter::close() {
  if (writer_ != nullptr) fstWriterClose(writer_);
  writer_ = nullptr;
}

Result<TraceSize> FstWriter::finish(const TraceEnd& end) {
  TraceSize size = signals_.finish(end);
  size.dropped.limit = left_out_;
  if (!full_ && end.cycles > at_ && end.cycles <= scope_.to) at_ = end.cycles;
  fstWriterEmitTimeChange(writer_, at_ * time_.ticks_per_cycle);
  // In its head, of 128 bytes: readers stumble over comments that stand behind the signals.
  if (size.dropped.total() != 0)
    fstWriterSetVersion(
        writer_, fmt::format("rdusim {}, left out: {} events by the filter, {} by the window, {} changes by the limit",
                             rdusim_, size.dropped.filter, size.dropped.window, size.dropped.limit)
                     .c_str());
  close();
  Diagnostics d;
  // Its writer tells nothing of a disk that is full: what was written is looked at.
  void* back = fstReaderOpen(file_.beside().c_str());
  const bool whole = back != nullptr && fstReaderGetEndTime(back) == at_ * time_.ticks_per_cycle &&
                     fstReaderGetVarCount(back) == handles_.size();
  if (back != nullptr) fstReaderClose(back);
  if (!whole) {
    d.error(Code::RDU5008, path_, "it was not written whole: is the disk full?");
    return d;
  }
  std::error_code error;
  size.bytes = std::filesystem::file_size(file_.beside(), error);
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
void FstWriter::close() {}
Result<TraceSize> FstWriter::finish(const TraceEnd&) {
  return TraceSize();
}

#endif

}  // namespace rdusim
