// The event log gives back what was written, says where it is cut or damaged, and takes nothing on a file's word.
#include <doctest/doctest.h>

#include <random>

#include "models/systemc/machine.h"
#include "sim/operands.h"
#include "tests/traces/traced_run.h"
#include "traces/event_log.h"
#include "traces/event_log_blocks.h"
#include "traces/wire.h"

namespace rdusim::event_log_test {
namespace {

using namespace test;

// A run of the small matmul, heard by a recorder and written to `path` side by side.
struct Written {
  LoadedProgram loaded = small_matmul();
  Roster roster = roster_of(loaded.program, loaded.target, loaded.sha256);
  std::unique_ptr<Recorder> heard;
  TraceSize size;
};

Written write_log(const std::string& path, TraceScope scope = {}) {
  Written w;
  REQUIRE(w.roster.index());
  LogHead head;
  head.rdusim = "test";
  head.run = "{}";
  auto writer = EventLogWriter::create(path, w.roster, head, "not a program", std::move(scope));
  REQUIRE(writer.ok());
  FanOut both(std::span<EventSink* const>{});
  TensorImages images(w.loaded.program.tensors.size());
  MachineOptions options;
  options.values = false;
  Machine machine(w.loaded.program, w.loaded.target, options, images, both);
  w.heard = std::make_unique<Recorder>(w.roster, &machine.provenance());
  EventSink* const sinks[] = {w.heard.get(), writer.value().get()};
  both = FanOut(sinks);
  writer.value()->use(machine.provenance());
  const MachineOutcome outcome = machine.run();
  REQUIRE(outcome.end == MachineOutcome::End::finished);
  auto size = writer.value()->finish({"finished", outcome.cycles, "{}"});
  REQUIRE(size.ok());
  w.size = *size;
  return w;
}

struct Read {
  std::vector<Recorder::Record> events;
  std::optional<LogEnd> end;
  Diagnostics wrong;
};

Read read_log(const std::string& path, const LogWindow& window = {}) {
  Read r;
  auto log = EventLogReader::open(path);
  if (!log) {
    r.wrong = log.diagnostics();
    return r;
  }
  Recorder recorder(log->roster(), &log->provenance());
  auto end = log->read(recorder, window);
  r.events = std::move(recorder.events);
  if (end)
    r.end = *end;
  else
    r.wrong = end.diagnostics();
  return r;
}

TEST_CASE("numbers of any size survive as varints and zigzags") {
  for (std::uint64_t n : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{127}, std::uint64_t{128},
                          std::uint64_t{1} << 32U, ~std::uint64_t{0}, ~std::uint64_t{0} - 1}) {
    std::string out;
    put_varint(out, n);
    put_varint(out, zigzag(n));
    WireReader in(out);
    CHECK(in.varint() == n);
    CHECK(unzigzag(in.varint()) == n);
    CHECK(in.done());
    CHECK_FALSE(in.failed());
  }
  WireReader endless("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
  CHECK(endless.varint() == 0);
  CHECK(endless.failed());
}

TEST_CASE("an event log gives back every event of a run, in order, and ends as the run did") {
  const Scratch folder;
  const Written w = write_log(folder / "a.rdulog");
  CHECK(w.heard->events.size() > 1000);
  CHECK(w.size.events == w.heard->events.size());
  const Read r = read_log(folder / "a.rdulog");
  INFO(r.wrong.to_text());
  REQUIRE(r.end);
  CHECK(r.end->notes.empty());
  REQUIRE(r.end->end);
  CHECK(r.end->end->reason == "finished");
  CHECK(r.end->events == w.size.events);
  std::uint64_t counted = 0;
  for (std::uint64_t n : r.end->counts) counted += n;
  CHECK(counted == w.size.events);
  CHECK(r.events == w.heard->events);
  CHECK(w.size.bytes == file_bytes(folder / "a.rdulog").size());
}

TEST_CASE("numbers beyond 32 bits survive, and what goes on as it went takes a byte, however large") {
  const Scratch folder;
  const LoadedProgram loaded = small_matmul();
  Roster roster = roster_of(loaded.program, loaded.target, loaded.sha256);
  REQUIRE(roster.index());
  Recorder told(roster, nullptr);
  const auto bytes_of = [&](std::uint64_t first, std::uint64_t step, std::size_t more, bool back) {
    auto writer = EventLogWriter::create(folder / "a.rdulog", roster, LogHead{"test", "{}", ""}, "", {});
    REQUIRE(writer.ok());
    const auto tell = [&](const auto& e) {
      told.on(e);
      writer.value()->on(e);
    };
    const StageAt one = roster.stage_at(0), other = roster.stage_at(1);
    tell(FiringCompleted{1, one, 3});
    tell(FiringCompleted{1, other, 7});
    tell(FiringCompleted{2, one, first});
    for (std::size_t i = 1; i <= more; ++i) tell(FiringCompleted{2, one, first + i * step});
    tell(FiringCompleted{3, other, 8});
    if (back) tell(FiringCompleted{3, one, 9}), tell(FiringCompleted{3, one, 10});
    const auto size = writer.value()->finish({"finished", 3, "{}"});
    REQUIRE(size.ok());
    return size->bytes;
  };
  for (const std::uint64_t first :
       {std::uint64_t{20}, ~std::uint64_t{0} >> 32U, std::uint64_t{1} << 32U, std::uint64_t{1} << 61U}) {
    INFO(first);
    // Of those that follow by the same step each has a head and the way back to its subject.
    const std::uint64_t step = first - 3;
    const Bytes few = bytes_of(first, step, 1, false);
    CHECK(bytes_of(first, step, 4, false) - few == 6);
    told.events.clear();
    bytes_of(first, std::uint64_t{1} << 33U, 3, true);
    const Read r = read_log(folder / "a.rdulog");
    INFO(r.wrong.to_text());
    REQUIRE(r.end);
    CHECK(r.events == told.events);
  }
}

TEST_CASE("the roster survives the log, and lists what the program has") {
  const LoadedProgram loaded = small_matmul();
  Roster roster = roster_of(loaded.program, loaded.target, loaded.sha256);
  REQUIRE(roster.index());
  const auto back = decode_roster(encode(roster));
  REQUIRE(back);
  CHECK(back->same_as(roster));
  CHECK(back->program_sha256 == loaded.sha256);
  CHECK(back->channels() == roster.channels());
  for (std::uint32_t n = 0; n < roster.stage_instances(); ++n) CHECK(roster.of(roster.stage_at(n)) == n);
  for (std::uint32_t n = 0; n < roster.buffer_instances(); ++n) CHECK(roster.of(roster.buffer_at(n)) == n);
  for (std::uint32_t n = 0; n < roster.channels(); ++n) CHECK(roster.of(roster.channel_at(n)) == n);
  for (std::uint32_t n = 0; n < roster.members(); ++n) {
    const auto m = roster.member_at(n);
    CHECK(roster.member(m.edge, m.from, m.member) == n);
  }
}

TEST_CASE("a log cut at any byte is read up to the cut, with a note") {
  const Scratch folder;
  const Written w = write_log(folder / "whole.rdulog");
  const std::string whole = file_bytes(folder / "whole.rdulog");
  std::mt19937 random(7);
  std::size_t last = 0;
  std::vector<std::size_t> cuts = {0, 1, 7, 8, 11, 12, 31, 32, 33, whole.size() - 1, whole.size() - 17};
  for (int i = 0; i < 300; ++i) cuts.push_back(random() % whole.size());
  std::sort(cuts.begin(), cuts.end());
  std::size_t noted = 0;
  for (const std::size_t cut : cuts) {
    put_file(folder / "cut.rdulog", std::string_view(whole).substr(0, cut));
    const Read r = read_log(folder / "cut.rdulog");
    INFO(cut);
    if (!r.end) {
      CHECK(r.events.empty());
      CHECK(r.wrong.list().size() == 1);
      continue;
    }
    CHECK(r.events.size() >= last);
    last = r.events.size();
    CHECK(std::equal(r.events.begin(), r.events.end(), w.heard->events.begin()));
    if (!r.end->end) {
      ++noted;
      CHECK(r.end->notes.contains(Code::RDU8014));
    }
  }
  CHECK(noted > 100);
  CHECK(last == w.heard->events.size());
}

TEST_CASE("the events in front of a cut are all there, to the last whole one") {
  const Scratch folder;
  const Written w = write_log(folder / "whole.rdulog");
  const std::string whole = file_bytes(folder / "whole.rdulog");
  // In the middle of the only block of events: half of them or so.
  put_file(folder / "cut.rdulog", std::string_view(whole).substr(0, whole.size() - w.size.events));
  const Read r = read_log(folder / "cut.rdulog");
  REQUIRE(r.end);
  CHECK(r.events.size() > w.size.events / 4);
  CHECK(r.events.size() < w.size.events);
}

TEST_CASE("a byte that was changed is found, wherever it lies") {
  const Scratch folder;
  const Written w = write_log(folder / "whole.rdulog");
  const std::string whole = file_bytes(folder / "whole.rdulog");
  std::mt19937 random(11);
  std::size_t damaged = 0;
  for (int i = 0; i < 200; ++i) {
    std::string bad = whole;
    const std::size_t at = random() % bad.size();
    bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
    put_file(folder / "bad.rdulog", bad);
    const Read r = read_log(folder / "bad.rdulog");
    INFO(at);
    for (const Diagnostic& d : r.wrong.list()) damaged += d.code == Code::RDU8012 ? 1 : 0;
    // The index and what points to it are not looked at where all is read.
    const bool found = !r.end || !r.end->end;
    if (!found) CHECK(r.events == w.heard->events);
    if (at + 200 < whole.size()) CHECK(found);
    CHECK(std::equal(r.events.begin(), r.events.end(), w.heard->events.begin()));
  }
  CHECK(damaged > 100);
}

TEST_CASE("what is no event log, or of another version, is refused in one line") {
  const Scratch folder;
  const auto refusal = [&](std::string_view bytes) {
    put_file(folder / "x.rdulog", bytes);
    const auto log = EventLogReader::open(folder / "x.rdulog");
    REQUIRE_FALSE(log.ok());
    REQUIRE(log.diagnostics().list().size() == 1);
    return log.diagnostics().list().front().code;
  };
  CHECK(refusal("") == Code::RDU8010);
  CHECK(refusal("PK\x03\x04 something else altogether") == Code::RDU8010);
  CHECK(refusal(std::string(log_block::magic) + std::string("\x01\x00\x00\x00", 4)) == Code::RDU8011);
  CHECK(refusal(std::string(log_block::magic) + std::string("\x03\x00\x00\x00", 4)) == Code::RDU8013);
}

// Under a checksum that is right.
std::string block(std::uint32_t type, std::uint32_t records, const std::string& payload) {
  std::string out;
  put_u32(out, type);
  put_u32(out, static_cast<std::uint32_t>(payload.size()));
  put_u32(out, records);
  put_u64(out, log_block::sum_of(type, records, payload));
  return out + payload;
}

TEST_CASE("whatever bytes stand under a good checksum, the reader says so and goes no further") {
  const Scratch folder;
  const LoadedProgram loaded = small_matmul();
  Roster roster = roster_of(loaded.program, loaded.target, loaded.sha256);
  REQUIRE(roster.index());
  std::string head;
  put_text(head, "test");
  put_text(head, "{}");
  put_text(head, "");
  put_text(head, encode(roster));
  std::string start(log_block::magic);
  put_u32(start, event_log_version);
  start += block(log_block::head, 0, head);
  std::mt19937 random(3);
  std::size_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string payload("\x01\x05", 2);
    const std::size_t n = random() % 60;
    for (std::size_t k = 0; k < n; ++k) {
      // Heads of events that go on as expected are frequent, so that the reader gets somewhere.
      const std::uint32_t r = random();
      payload += static_cast<char>(r % 3 == 0 ? 0xE0U | (r >> 8U) % 24 : r >> 16U);
    }
    put_file(folder / "x.rdulog", start + block(log_block::events, static_cast<std::uint32_t>(random() % 8), payload));
    const Read r = read_log(folder / "x.rdulog");
    if (!r.end) {
      ++refused;
      CHECK(r.wrong.list().front().code == Code::RDU8013);
    }
  }
  CHECK(refused > 2000);
  // A roster that is not one.
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = encode(roster);
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto back = decode_roster(bytes);
    if (back) CHECK(back->stage_instances() <= Roster::most_instances);
  }
}

TEST_CASE("a block that claims more bytes than there are takes no memory for them") {
  const Scratch folder;
  std::string bytes(log_block::magic);
  put_u32(bytes, event_log_version);
  put_u32(bytes, log_block::head);
  put_u32(bytes, 1U << 30U);
  put_u32(bytes, 0);
  put_u64(bytes, 0);
  put_file(folder / "x.rdulog", bytes + "few");
  CHECK(EventLogReader::open(folder / "x.rdulog").diagnostics().contains(Code::RDU8013));
}

TEST_CASE("a window of a log holds its cycles and no others") {
  const Scratch folder;
  const Written w = write_log(folder / "a.rdulog");
  const Cycle last = w.heard->events.back()[1];
  const LogWindow window{last / 3, last / 2};
  const Read r = read_log(folder / "a.rdulog", window);
  REQUIRE(r.end);
  std::vector<Recorder::Record> expected;
  for (const auto& e : w.heard->events)
    if (e[1] >= window.from && e[1] <= window.to) expected.push_back(e);
  CHECK(expected.size() > 10);
  CHECK(r.events == expected);
}

TEST_CASE("a limit is kept, and what it left out is counted") {
  const Scratch folder;
  const Written whole = write_log(folder / "a.rdulog");
  std::uint64_t events_bytes = 0;
  {
    const std::string bytes = file_bytes(folder / "a.rdulog");
    WireReader in(std::string_view(bytes).substr(log_block::magic.size() + 4));
    while (!in.done()) {
      const auto type = static_cast<std::uint32_t>(in.fixed(4));
      const std::uint64_t length = in.fixed(4);
      in.bytes(12 + length);
      if (type == log_block::events) events_bytes += length;
      if (type == log_block::end) break;
    }
  }
  CHECK(events_bytes > 1000);
  // Writer and reader are processes apart in life; here the second run would be a second simulation, so what the
  // first one heard is told again.
  const auto log = EventLogReader::open(folder / "a.rdulog");
  REQUIRE(log.ok());
  const Bytes limit = whole.size.bytes - events_bytes / 2 + (1 << 14);
  auto again = EventLogReader::open(folder / "a.rdulog");
  auto writer = EventLogWriter::create(folder / "b.rdulog", again->roster(), again->head(), "",
                                       TraceScope{{}, 0, ~Cycle{0}, limit});
  REQUIRE(writer.ok());
  writer.value()->use(again->provenance());
  REQUIRE(again->read(*writer.value()).ok());
  const auto size = writer.value()->finish({"finished", 1, "{}"});
  REQUIRE(size.ok());
  CHECK(size->bytes <= limit);
  CHECK(size->dropped.limit > 0);
  CHECK(size->events + size->dropped.limit == whole.size.events);
  const Read r = read_log(folder / "b.rdulog");
  REQUIRE(r.end);
  CHECK(r.end->dropped.limit == size->dropped.limit);
  CHECK(std::equal(r.events.begin(), r.events.end(), whole.heard->events.begin()));
}

}  // namespace
}  // namespace rdusim::event_log_test
