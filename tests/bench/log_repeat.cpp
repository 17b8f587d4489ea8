// An event log of any length, to be read: the events of a given one over and over, each time after the last.
//
//   log_repeat IN.rdulog OUT.rdulog BYTES     repeats until OUT is that large
//
// What is counted within a run (firings, pages) begins anew in every repetition, so no checker can follow; whoever only
// counts and lists can. Contributions are left out.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

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

Result<TraceSize> repeated(const char* in, const char* out, std::uint64_t wanted) {
  auto first = EventLogReader::open(in);
  if (!first) return first.diagnostics();
  const auto program = first->program();
  if (!program) return program.diagnostics();
  auto writer = EventLogWriter::create(out, first->roster(), first->head(), *program, {});
  if (!writer) return writer.diagnostics();
  Cycle base = 0;
  TraceEnd end;
  while ((*writer)->bytes() < wanted) {
    auto log = EventLogReader::open(in);
    if (!log) return log.diagnostics();
    Each each([&](const auto& e) { (*writer)->on(later(e, base)); });
    const auto read = log->read(each);
    if (!read) return read.diagnostics();
    end = read->end.value_or(TraceEnd{"stopped", read->last, "null", {}});
    base += end.cycles;
  }
  end.cycles = base;
  return (*writer)->finish(end);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto size = repeated(argv[1], argv[2], std::strtoull(argv[3], nullptr, 10));
  if (!size) return fail(size.diagnostics());
  fmt::print("{} events, {} bytes\n", size->events, size->bytes);
  return 0;
}
