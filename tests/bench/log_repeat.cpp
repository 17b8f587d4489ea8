// An event log of any length, to be read: the events of a given one over and over, each time after the last.
//
//   log_repeat IN.rdulog OUT.rdulog BYTES     repeats until the repetitions of IN, whole, come to BYTES
//
// OUT is smaller: what stands in front of IN's events stands in it once.
//
// What is counted within a run (firings, pages) begins anew in every repetition, so no checker can follow; whoever only
// counts and lists can. Contributions are left out.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "traces/event_log.h"
#include "traces/inspect_common.h"

using namespace rdusim;

namespace {

template <class E>
E later(E e, Cycle by) {
  e.at += by;
  if constexpr (requires { e.begin; }) e.begin += by, e.end += by;
  if constexpr (requires { e.tag; }) e.tag.provenance = 0;
  if constexpr (requires { e.held; }) e.held.provenance = e.added.provenance = e.sum.provenance = 0;
  return e;
}

int fail(const Diagnostics& d) {
  fmt::print(stderr, "{}", d.to_text());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  auto first = EventLogReader::open(argv[1]);
  if (!first) return fail(first.diagnostics());
  const auto program = first->program();
  if (!program) return fail(program.diagnostics());
  const Roster& roster = first->roster();
  auto writer = EventLogWriter::create(argv[2], roster, first->head(), *program, {});
  if (!writer) return fail(writer.diagnostics());
  const std::uint64_t wanted = std::strtoull(argv[3], nullptr, 10), one = std::filesystem::file_size(argv[1]);
  Cycle base = 0;
  TraceEnd end;
  for (std::uint64_t written = 0; written < wanted; written += one) {
    auto log = EventLogReader::open(argv[1]);
    if (!log) return fail(log.diagnostics());
    Each each([&](const auto& e) { (*writer)->on(later(e, base)); });
    const auto read = log->read(each);
    if (!read) return fail(read.diagnostics());
    end = read->end.value_or(TraceEnd{"stopped", read->last, "null"});
    base += end.cycles;
  }
  end.cycles = base;
  const auto size = (*writer)->finish(end);
  if (!size) return fail(size.diagnostics());
  fmt::print("{} events, {} bytes\n", size->events, size->bytes);
  return 0;
}
