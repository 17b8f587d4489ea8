#include "traces/vcd.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace rdusim {

namespace {

constexpr std::size_t longest_change = 128;  // a time, a value of 64 bits and a code

}  // namespace

// The shortest first: printable characters from '!' to '~'.
VcdWriter::Code VcdWriter::code_of(std::uint32_t n) {
  Code code;
  do {
    code.text[code.size++] = static_cast<char>('!' + n % 94);
    n /= 94;
  } while (n-- != 0);
  return code;
}

VcdWriter::VcdWriter(FileWriter file, const Roster& roster, TraceScope scope, std::string rdusim)
    : file_(std::move(file)),
      roster_(roster),
      scope_(std::move(scope)),
      rdusim_(std::move(rdusim)),
      time_(timebase_of(roster.clock_ghz)),
      signals_(roster, scope_, *this),
      text_(flush_bytes) {}

Result<std::unique_ptr<VcdWriter>> VcdWriter::create(const std::string& path, const Roster& roster, TraceScope scope,
                                                     const std::string& rdusim) {
  auto file = FileWriter::create(path);
  if (!file) return file.diagnostics();
  std::unique_ptr<VcdWriter> w(new VcdWriter(std::move(file).value(), roster, std::move(scope), rdusim));
  if (w->scope_.limit) w->measure();
  return w;
}

// Its declarations are written when the window begins, with the values of then.
void VcdWriter::measure() {
  measuring_ = true;
  std::vector<std::uint64_t> values = signals_.values();
  if (scope_.from != 0) std::fill(values.begin(), values.end(), ~std::uint64_t{0});  // not known yet, and no longer
  declare(signals_.tree(), values, scope_.from);
  flush();
  measuring_ = false;
  head_ += left_out_bytes;
  codes_.clear();
  wide_.clear();
}

void VcdWriter::flush() {
  if (measuring_)
    head_ += used_;
  else
    file_.write({text_.data(), used_});
  used_ = 0;
}

// Makes room for a change.
void VcdWriter::room() {
  if (text_.size() - used_ < longest_change) flush();
}

void VcdWriter::put(std::string_view words) {
  while (!words.empty()) {
    if (used_ == text_.size()) flush();
    const std::size_t n = std::min(words.size(), text_.size() - used_);
    std::memcpy(text_.data() + used_, words.data(), n);
    used_ += n;
    words.remove_prefix(n);
  }
}

void VcdWriter::put(const Code& code) {
  std::memcpy(text_.data() + used_, code.text.data(), code.text.size());
  used_ += code.size;
}

void VcdWriter::declare(const SignalTree& tree, const std::vector<std::uint64_t>& values, Cycle from) {
  put(fmt::format("$comment {} on {}, program sha256 {}: {} $end\n", roster_.program, roster_.target,
                  roster_.program_sha256, time_.note));
  put(fmt::format("$version rdusim {} $end\n$timescale {} $end\n", rdusim_, time_.unit));
  const std::vector<Signal>& signals = tree.signals();
  codes_.reserve(signals.size());
  wide_.reserve(signals.size());
  for (std::uint32_t i = 0; i < signals.size(); ++i) {
    codes_.push_back(code_of(i));
    wide_.push_back(signals[i].bits > 1);
  }
  // What stands around a code and a name, by the number of bits.
  struct Words {
    std::string before, after;
  };
  std::array<Words, 65> words;
  words[1] = {"$var wire 1 ", " $end\n"};
  for (std::uint32_t bits = 2; bits < words.size(); ++bits)
    words[bits] = {fmt::format("$var wire {} ", bits), fmt::format(" [{}:0] $end\n", bits - 1)};
  tree.visit(
      [&](std::string_view scope) {
        put("$scope module ");
        put(scope);
        put(" $end\n");
      },
      [&] { put("$upscope $end\n"); },
      [&](std::uint32_t i) {
        const Signal& s = signals[i];
        put(words[s.bits].before);
        put(std::string_view(codes_[i].text.data(), codes_[i].size));
        put(" ");
        put(s.name);
        put(words[s.bits].after);
      });
  put(fmt::format("$enddefinitions $end\n#{}\n$dumpvars\n", time_.tick(from)));
  at_ = from;
  for (std::uint32_t i = 0; i < signals.size(); ++i) {
    room();
    value(i, values[i]);
  }
  put("$end\n");
}

// Requires room().
void VcdWriter::value(std::uint32_t signal, std::uint64_t v) {
  char* to = text_.data() + used_;
  if (wide_[signal]) {
    *to++ = 'b';
    for (auto bit = std::max<std::uint32_t>(static_cast<std::uint32_t>(std::bit_width(v)), 1); bit-- > 0;)
      *to++ = static_cast<char>('0' + ((v >> bit) & 1U));
    *to++ = ' ';
  } else {
    *to++ = v == 0 ? '0' : '1';
  }
  used_ = static_cast<std::size_t>(to - text_.data());
  put(codes_[signal]);
  text_[used_++] = '\n';
}

void VcdWriter::change(Cycle at, std::uint32_t signal, std::uint64_t v) {
  full_ = full_ || (scope_.limit && file_.size() + used_ + longest_change + left_out_bytes > *scope_.limit);
  if (full_) {
    ++left_out_;
    return;
  }
  room();
  if (at != at_) {
    char* const to = text_.data() + used_;
    used_ += static_cast<std::size_t>(fmt::format_to(to, "#{}\n", time_.tick(at)) - to);
    at_ = at;
  }
  value(signal, v);
}

Result<TraceSize> VcdWriter::finish(const TraceEnd& end) {
  TraceSize size = signals_.finish(end);
  size.dropped.limit = left_out_;
  if (!full_ && end.cycles > at_ && end.cycles <= scope_.to) put(fmt::format("#{}\n", time_.tick(end.cycles)));
  if (size.dropped.total() != 0)
    put(fmt::format("$comment left out: {} events by the filter, {} by the window, {} changes by the limit $end\n",
                    size.dropped.filter, size.dropped.window, size.dropped.limit));
  if (end.cut()) put("$comment the log that it was made of was cut: the run went on $end\n");
  flush();
  size.bytes = file_.size();
  const auto written = file_.commit();
  if (!written) return written.diagnostics();
  return size;
}

}  // namespace rdusim
