// Any bytes as an event log: refused, or read up to where they stop making sense; what was read can be written in every
// other form and asked everything.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "compiler/support/file_stream.h"
#include "traces/critical_path.h"
#include "traces/event_log.h"
#include "traces/event_log_blocks.h"
#include "traces/inspect.h"
#include "traces/signals.h"
#include "traces/slices.h"

using namespace rdusim;

namespace {

// Blocks under checksums made right, so that what is in them is reached.
std::string repaired(std::string bytes) {
  std::size_t at = log_block::magic.size() + 4;
  while (at + log_block::header_bytes <= bytes.size()) {
    WireReader in(std::string_view(bytes).substr(at, 12));
    const auto type = static_cast<std::uint32_t>(in.fixed(4));
    const std::uint64_t length = in.fixed(4);
    const auto records = static_cast<std::uint32_t>(in.fixed(4));
    const std::string_view payload =
        std::string_view(bytes).substr(at + log_block::header_bytes, static_cast<std::size_t>(length));
    std::string sum;
    put_u64(sum, log_block::sum_of(type, records, payload));
    bytes.replace(at + 12, 8, sum);
    at += log_block::header_bytes + static_cast<std::size_t>(length);
  }
  return bytes;
}

struct NoSignals final : SignalSink {
  void declare(const SignalTree&, const std::vector<std::uint64_t>&, Cycle) override {}
  void change(Cycle, std::uint32_t, std::uint64_t) override {}
};
struct NoSlices final : SliceSink {
  void slice(const Slice&) override {}
  void counter(std::uint32_t, Cycle, std::uint64_t) override {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = "/tmp/rdusim-event-log-fuzz-" + std::to_string(::getpid());
  {
    auto file = FileWriter::create(path);
    if (!file) std::abort();
    file->write(repaired(std::string(reinterpret_cast<const char*>(data), size)));
    if (!file->commit()) std::abort();
  }
  const auto with = [&](auto&& use) {
    auto log = EventLogReader::open(path);
    if (log && log->roster().stage_instances() < 100000 && log->roster().buffer_instances() < 100000 &&
        log->roster().channels() < 100000)
      use(*log);
  };
  const TraceScope all;
  with([&](EventLogReader& log) {
    NoSignals none;
    Signals signals(log.roster(), all, none);
    (void)log.read(signals);
  });
  with([&](EventLogReader& log) {
    NoSlices none;
    Slices slices(log.roster(), all, none);
    (void)log.read(slices);
  });
  with([&](EventLogReader& log) { (void)critical_path_of(log, 20); });
  with([&](EventLogReader& log) { (void)inspect_at(log, 100); });
  with([&](EventLogReader& log) { (void)inspect_counts(log, 5); });
  std::remove(path.c_str());
  return 0;
}
