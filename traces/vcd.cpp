#include "traces/vcd.h"

#include <fmt/format.h>

#include <algorithm>

namespace rdusim {

namespace {

// The shortest codes first: printable characters from '!' to '~'.
std::string code_of(std::uint32_t n) {
  std::string code;
  do {
    code += static_cast<char>('!' + n % 94);
    n /= 94;
  } while (n-- != 0);
  return code;
}

}  // namespace

VcdWriter::VcdWriter(FileWriter file, const Roster& roster, TraceScope scope, std::string rdusim)
    : file_(std::move(file)),
      roster_(roster),
      scope_(std::move(scope)),
      rdusim_(std::move(rdusim)),
      time_(timebase_of(roster.clock_ghz)),
      signals_(roster, scope_, *this) {}

Result<std::unique_ptr<VcdWriter>> VcdWriter::create(const std::string& path, const Roster& roster, TraceScope scope,
                                                     const std::string& rdusim) {
  auto file = FileWriter::create(path);
  if (!file) return file.diagnostics();
  return std::unique_ptr<VcdWriter>(new VcdWriter(std::move(file).value(), roster, std::move(scope), rdusim));
}

void VcdWriter::flush() {
  file_.write(text_);
  text_.clear();
}

void VcdWriter::declare(const std::vector<Signal>& signals, const std::vector<std::uint64_t>& values, Cycle from) {
  text_ += fmt::format("$comment {} on {}, program sha256 {}: {} $end\n", roster_.program, roster_.target,
                       roster_.program_sha256, time_.note);
  text_ += fmt::format("$version rdusim {} $end\n$timescale {} $end\n", rdusim_, time_.unit);
  codes_.resize(signals.size());
  for (std::uint32_t i = 0; i < signals.size(); ++i) {
    codes_[i] = code_of(i);
    bits_.push_back(signals[i].bits);
  }
  for_each_in_scopes(
      signals, [&](const std::string& scope) { text_ += fmt::format("$scope module {} $end\n", scope); },
      [&] { text_ += "$upscope $end\n"; },
      [&](std::uint32_t i) {
        const Signal& s = signals[i];
        text_ += s.bits == 1 ? fmt::format("$var wire 1 {} {} $end\n", codes_[i], s.name)
                             : fmt::format("$var wire {} {} {} [{}:0] $end\n", s.bits, codes_[i], s.name, s.bits - 1);
        if (text_.size() >= flush_bytes) flush();
      });
  text_ += fmt::format("$enddefinitions $end\n#{}\n$dumpvars\n", from * time_.ticks_per_cycle);
  at_ = from;
  for (std::uint32_t i = 0; i < signals.size(); ++i) value(i, values[i]);
  text_ += "$end\n";
}

void VcdWriter::value(std::uint32_t signal, std::uint64_t v) {
  if (bits_[signal] == 1) {
    text_ += v == 0 ? '0' : '1';
  } else {
    text_ += 'b';
    char digits[64];
    std::size_t n = 0;
    do digits[n++] = static_cast<char>('0' + (v & 1U));
    while ((v >>= 1U) != 0);
    while (n != 0) text_ += digits[--n];
    text_ += ' ';
  }
  text_ += codes_[signal];
  text_ += '\n';
  if (text_.size() >= flush_bytes) flush();
}

void VcdWriter::change(Cycle at, std::uint32_t signal, std::uint64_t v) {
  constexpr std::size_t longest = 256;
  full_ = full_ || (scope_.limit && file_.size() + text_.size() + longest > *scope_.limit);
  if (full_) {
    ++left_out_;
    return;
  }
  if (at != at_) {
    text_ += fmt::format("#{}\n", at * time_.ticks_per_cycle);
    at_ = at;
  }
  value(signal, v);
}

Result<TraceSize> VcdWriter::finish(const TraceEnd& end) {
  signals_.finish(std::min(end.cycles, scope_.to));
  TraceSize size;
  size.events = signals_.events();
  size.dropped = signals_.dropped();
  size.dropped.limit = left_out_;
  if (!full_ && end.cycles > at_ && end.cycles <= scope_.to)
    text_ += fmt::format("#{}\n", end.cycles * time_.ticks_per_cycle);
  if (size.dropped.total() != 0)
    text_ += fmt::format("$comment left out: {} events by the filter, {} by the window, {} changes by the limit $end\n",
                         size.dropped.filter, size.dropped.window, size.dropped.limit);
  flush();
  size.bytes = file_.size();
  const auto written = file_.commit();
  if (!written) return written.diagnostics();
  return size;
}

}  // namespace rdusim
