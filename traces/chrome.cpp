#include "traces/chrome.h"

#include <fmt/format.h>

#include <iterator>

#include "compiler/support/json.h"

namespace rdusim {

namespace {

std::string quoted(std::string_view text) {
  return to_text(Json(text), true);
}

}  // namespace

ChromeWriter::ChromeWriter(FileWriter file, const Roster& roster, TraceScope scope)
    : file_(std::move(file)), roster_(roster), scope_(std::move(scope)), slices_(roster, scope_, *this) {}

Result<std::unique_ptr<ChromeWriter>> ChromeWriter::create(const std::string& path, const Roster& roster,
                                                           TraceScope scope, const std::string& rdusim) {
  auto file = FileWriter::create(path);
  if (!file) return file.diagnostics();
  std::unique_ptr<ChromeWriter> w(new ChromeWriter(std::move(file).value(), roster, std::move(scope)));
  w->describe(rdusim);
  w->head_ = w->file_.size() + w->text_.size() + left_out_bytes;
  return w;
}

void ChromeWriter::flush() {
  file_.write(text_);
  text_.clear();
}

bool ChromeWriter::room(std::size_t bytes) {
  full_ = full_ || (scope_.limit && file_.size() + text_.size() + bytes + left_out_bytes > *scope_.limit);
  if (full_) ++left_out_;
  if (text_.size() >= flush_bytes) flush();
  return !full_;
}

void ChromeWriter::describe(const std::string& rdusim) {
  for (const std::string& n : slices_.names()) names_.push_back(quoted(n));
  text_ += fmt::format(
      "{{\"otherData\":{{\"program\":{},\"program_sha256\":{},\"target\":{},\"rdusim\":{},"
      "\"time\":\"1 us here is 1 cycle at {} GHz\"}},\n\"traceEvents\":[\n",
      quoted(roster_.program), quoted(roster_.program_sha256), quoted(roster_.target), quoted(rdusim),
      to_double(roster_.clock_ghz));
  std::vector<bool> used(roster_.chips);
  for (const Track& t : slices_.tracks()) used[t.chip] = true;
  for (const Track& t : slices_.counters()) used[t.chip] = true;
  for (std::uint32_t chip = 0; chip < roster_.chips; ++chip) {
    if (!used[chip]) continue;
    text_ += fmt::format("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":\"chip{}\"}}}},\n",
                         chip + 1, chip);
  }
  for (std::size_t n = 0; n < slices_.tracks().size(); ++n) {
    const Track& t = slices_.tracks()[n];
    text_ += fmt::format("{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}},\n",
                         t.chip + 1, n + 1, quoted(t.name));
    if (text_.size() >= flush_bytes) flush();
  }
}

void ChromeWriter::slice(const Slice& s) {
  if (!room(320 + 200 * (s.flows_in.size() + s.flows_out.size()))) return;
  auto out = std::back_inserter(text_);
  const std::uint32_t pid = slices_.tracks()[s.track].chip + 1;
  fmt::format_to(
      out, "{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{{\"{}\":{}",
      names_[s.name], s.firing ? "firing" : "send", pid, s.track + 1, s.begin, s.end - s.begin,
      s.firing ? "firing" : "page", s.number);
  if (s.firing && s.stall != 0)
    fmt::format_to(out, ",\"stall_cycles\":{},\"waited_for\":\"{}\"", s.stall, cause_name(s.cause));
  if (s.firing && s.completed != 0) fmt::format_to(out, ",\"completed_at\":{}", s.completed);
  text_ += "}},\n";
  const auto flow = [&](char phase, std::uint64_t id) {
    fmt::format_to(
        out,
        "{{\"ph\":\"{}\",\"name\":\"page\",\"cat\":\"page\",\"id\":\"{:x}\",\"pid\":{},\"tid\":{},\"ts\":{}{}}},\n",
        phase, id, pid, s.track + 1, s.begin, phase == 'f' ? ",\"bp\":\"e\"" : "");
  };
  for (const std::uint64_t f : s.flows_out) flow('s', f);
  for (const std::uint64_t f : s.flows_in) flow('f', f);
}

void ChromeWriter::counter(std::uint32_t counter, Cycle at, std::uint64_t value) {
  if (!room(256)) return;
  const Track& t = slices_.counters()[counter];
  fmt::format_to(std::back_inserter(text_),
                 "{{\"ph\":\"C\",\"name\":{},\"pid\":{},\"ts\":{},\"args\":{{\"count\":{}}}}},\n", quoted(t.name),
                 t.chip + 1, at, value);
}

Result<TraceSize> ChromeWriter::finish(const TraceEnd& end) {
  slices_.finish();
  TraceSize size;
  size.events = slices_.events();
  size.dropped = slices_.dropped();
  size.dropped += end.lost;
  size.dropped.limit = left_out_;
  // The last element of the list, so that none of the others need know whether it is.
  text_ += fmt::format(
      "{{\"ph\":\"M\",\"name\":\"left_out\",\"pid\":0,\"args\":{{\"by_filter\":{},\"by_window\":{},\"by_limit\":{},"
      "\"cycles\":{},\"end\":{}}}}}\n]}}\n",
      size.dropped.filter, size.dropped.window, size.dropped.limit, end.cycles, quoted(end.reason));
  flush();
  size.bytes = file_.size();
  const auto written = file_.commit();
  if (!written) return written.diagnostics();
  return size;
}

}  // namespace rdusim
