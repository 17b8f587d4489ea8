#include "models/units/memory.h"

#include <doctest/doctest.h>

#include <map>
#include <vector>

namespace rdusim::memory_test {
namespace {

struct Burst {
  std::uint32_t channel;
  Cycle begin, end;
  Bytes bytes;
};

struct Rig {
  explicit Rig(const MemoryParameters& p) : memory(p) {}
  Cycle read(Cycle now, Bytes address, Bytes bytes) { return go(now, address, bytes, false); }
  Cycle write(Cycle now, Bytes address, Bytes bytes) { return go(now, address, bytes, true); }
  Cycle go(Cycle now, Bytes address, Bytes bytes, bool w) {
    last.clear();
    return memory.access(now, address, bytes, w, [&](std::uint32_t c, Cycle b, Cycle e, Bytes n) {
      last.push_back({c, b, e, n});
    });
  }
  Memory memory;
  std::vector<Burst> last;
};

MemoryParameters parameters() {
  MemoryParameters p;
  p.channels = 4;
  p.channel_bytes_per_cycle = {16, 1};
  p.interleave_bytes = 64;
  p.latency_cycles = 100;
  p.row_bytes = 256;
  return p;
}

TEST_CASE("an unloaded read takes its transfer and the latency, a write its transfer") {
  Rig r(parameters());
  CHECK(r.read(1000, 0, 64) == 1000 + 4 + 100);
  CHECK(r.last.size() == 1);
  Rig w(parameters());
  CHECK(w.write(1000, 0, 64) == 1000 + 4);
}

TEST_CASE("a page goes round the channels by the interleave") {
  Rig r(parameters());
  CHECK(r.read(0, 0, 1024) == 16 + 100);  // four chunks a channel
  REQUIRE(r.last.size() == 4);
  for (std::uint32_t c = 0; c < 4; ++c) {
    CHECK(r.last[c].channel == c);
    CHECK(r.last[c].bytes == 256);
  }
}

TEST_CASE("a page that begins and ends inside a chunk loses nothing and gains nothing") {
  const MemoryParameters p = parameters();
  for (Bytes address : {0u, 1u, 63u, 64u, 200u, 255u, 256u, 1000u})
    for (Bytes bytes : {1u, 63u, 64u, 65u, 256u, 257u, 1000u, 4096u}) {
      Rig r(p);
      r.read(0, address, bytes);
      Bytes sum = 0;
      std::map<std::uint32_t, Bytes> expected;
      for (Bytes b = address; b < address + bytes; ++b) ++expected[b / 64 % 4];
      for (const Burst& b : r.last) {
        sum += b.bytes;
        CHECK(expected[b.channel] == b.bytes);
      }
      CHECK(sum == bytes);
      CHECK(r.last.size() == expected.size());
    }
}

TEST_CASE("a channel serves one burst after the other, others are not delayed") {
  Rig r(parameters());
  r.read(0, 0, 64);
  r.read(0, 0, 64);
  CHECK(r.last[0].begin == 4);
  r.read(3, 64, 64);
  CHECK(r.last[0].begin == 3);
}

TEST_CASE("opening a row costs a miss, staying in it costs nothing") {
  MemoryParameters p = parameters();
  p.row_miss_cycles = 7;
  Rig r(p);
  CHECK(r.read(0, 0, 64) == 7 + 4 + 100);
  CHECK(r.read(50, 256, 64) == 50 + 4 + 100);             // the same row of channel 0
  CHECK(r.read(100, 256 * 4, 64) == 100 + 7 + 4 + 100);   // the next one
  CHECK(r.read(200, 0, 64) == 200 + 7 + 4 + 100);         // and back
  CHECK(r.read(300, 0, 4096) == 300 + 4 * 7 + 64 + 100);  // four rows a channel; only channel 0 had one of them open
}

TEST_CASE("turning the bus round costs, in both directions") {
  MemoryParameters p = parameters();
  p.turnaround_cycles = 5;
  Rig r(p);
  r.read(0, 0, 64);
  CHECK(r.write(10, 0, 64) == 10 + 5 + 4);
  CHECK(r.write(20, 0, 64) == 20 + 4);
  CHECK(r.read(30, 0, 64) == 30 + 5 + 4 + 100);
}

TEST_CASE("a burst that meets a refresh waits for its end, one that it falls into takes longer") {
  MemoryParameters p = parameters();
  p.channels = 1;
  p.refresh_interval_cycles = 1000;
  p.refresh_cycles = 50;
  CHECK(Rig(p).read(995, 0, 64) == 999 + 100);        // done before it
  CHECK(Rig(p).read(999, 0, 64) == 1003 + 50 + 100);  // it falls into the burst
  CHECK(Rig(p).read(1000, 0, 64) == 1050 + 4 + 100);  // under way
  CHECK(Rig(p).read(1049, 0, 64) == 1050 + 4 + 100);
  CHECK(Rig(p).read(1050, 0, 64) == 1050 + 4 + 100);  // over
  CHECK(Rig(p).read(5020, 0, 64) == 5050 + 4 + 100);  // idle channels are refreshed as well
}

TEST_CASE("a long stream loses the refresh's share and no more") {
  MemoryParameters p = parameters();
  p.channels = 1;
  p.refresh_interval_cycles = 1000;
  p.refresh_cycles = 50;
  Rig r(p);
  Cycle end = 0;
  for (int i = 0; i < 10000; ++i) end = r.read(0, 0, 160);  // 100,000 cycles of transfer
  CHECK(end > 100000 / 0.95 - 60 + 100);
  CHECK(end < 100000 / 0.95 + 60 + 100);
}

TEST_CASE("rows and refresh leave a stream what the target says it can sustain") {
  MemoryParameters p = parameters();
  p.channels = 4;
  p.row_miss_cycles = 2;
  p.refresh_interval_cycles = 2000;
  p.refresh_cycles = 100;
  Rig r(p);
  Cycle end = 0;
  const Bytes page = 4096;
  for (Bytes i = 0; i < 1000; ++i) end = r.read(0, i * page, page);
  const double rate = 1000.0 * page / static_cast<double>(end - 100);
  CHECK(rate == doctest::Approx(to_double(p.sustainable_bytes_per_cycle())).epsilon(0.01));
}

TEST_CASE("a section starts with closed rows, free channels and a whole interval to the first refresh") {
  MemoryParameters p = parameters();
  p.row_miss_cycles = 7;
  p.refresh_interval_cycles = 1000;
  p.refresh_cycles = 50;
  Rig r(p);
  const Cycle fresh = r.read(0, 0, 64);
  r.read(0, 0, 100000);
  r.memory.reset(20000);
  CHECK(r.read(20000, 0, 64) - 20000 == fresh);
}

// One channel of 16 bytes a cycle, four banks of rows of 256 bytes.
MemoryParameters banked() {
  MemoryParameters p = parameters();
  p.channels = 1;
  p.banks = 4;
  p.row_cycle_cycles = 50;
  p.activation_cycles = {10, 1};
  p.access_bytes = 32;
  p.queue_requests = 8;
  return p;
}

TEST_CASE("rows of different banks are opened an activation apart, and their bytes come no sooner") {
  Rig r(banked());
  CHECK(r.read(1000, 0, 32) == 1000 + 2 + 100);
  CHECK(r.read(1000, 256, 32) == 1010 + 2 + 100);
  CHECK(r.read(1000, 512, 32) == 1020 + 2 + 100);
  CHECK(r.read(1029, 768, 32) == 1030 + 2 + 100);  // not a cycle earlier
}

TEST_CASE("activations may take a fraction of a cycle, and keep it") {
  MemoryParameters p = banked();
  p.banks = 64;
  p.activation_cycles = {18, 5};
  Rig r(p);
  Cycle end = 0;
  for (Bytes i = 0; i < 51; ++i) end = r.read(1000, i * 256, 32);
  CHECK(end == 1000 + 50 * 18 / 5 + 2 + 100);
}

TEST_CASE("the next row of a bank waits for the row cycle, and keeps nobody else waiting") {
  Rig r(banked());
  r.read(1000, 0, 32);
  CHECK(r.read(1001, 5 * 256, 32) == 1050 + 2 + 100);  // rows 0 and 5 lie in bank 0
  CHECK(r.last[0].end == 1004);                        // the bus was not kept
  CHECK(r.read(1005, 2 * 256, 32) == 1020 + 2 + 100);  // only the activation before it
  CHECK(r.read(1100, 5 * 256 + 64, 32) == 1100 + 2 + 100);
}

TEST_CASE("every bank keeps its row open until a refresh closes them all") {
  MemoryParameters p = banked();
  p.refresh_interval_cycles = 1000;
  p.refresh_cycles = 50;
  Rig r(p);
  r.read(0, 0, 32);
  r.read(100, 256, 32);
  const Cycle again = r.read(200, 0, 32);
  CHECK(again == 200 + 2 + 100);
  CHECK(r.read(200, 256, 32) == 202 + 2 + 100);  // behind the bus only
  r.read(1100, 0, 32);
  CHECK(r.read(1100, 256, 32) == 1110 + 2 + 100);  // both had to be opened again
}

TEST_CASE("streams that lie a power of two apart do not share a bank") {
  Rig r(banked());
  r.read(1000, 0, 32);
  CHECK(r.read(1002, 4 * 256, 32) == 1010 + 2 + 100);  // row 4 is in bank 1
}

TEST_CASE("what is asked of a memory is whole accesses") {
  Rig r(banked());
  CHECK(r.read(1000, 0, 1) == 1000 + 2 + 100);
  CHECK(r.last[0].bytes == 1);
  CHECK(r.read(1500, 31, 2) == 1500 + 4 + 100);
}

TEST_CASE("reads and writes that wait are grouped, one turn in so many accesses, and what does not wait is not") {
  MemoryParameters p = banked();
  p.turnaround_cycles = 20;
  p.activation_cycles = {0, 1};
  Rig r(p);
  Cycle end = 0;
  for (int i = 0; i < 64; ++i) end = r.go(0, 0, 32, i % 2 == 1);
  CHECK(end == 64 * 2 + 64 / 8 * 20);
  Rig slow(p);
  slow.read(0, 0, 32);
  for (Cycle t = 1000; t < 9000; t += 1000) {
    CHECK(slow.write(t, 0, 32) == t + 20 + 2);
    CHECK(slow.read(t + 500, 0, 32) == t + 500 + 20 + 2 + 100);
  }
  // A page that is more than the queue holds is a group of its own.
  Rig pages(p);
  pages.read(0, 0, 320);
  CHECK(pages.write(0, 320, 320) == 20 + 20 + 20);
  CHECK(pages.read(0, 640, 320) == 60 + 20 + 20 + 100);
}

TEST_CASE("a stream of pages is as fast with banks as without, but for a last row that comes late") {
  MemoryParameters with = banked(), without = parameters();
  without.channels = 1;
  Rig a(with), b(without);
  for (Bytes i = 0; i < 200; ++i) {
    const Cycle late = a.read(0, i * 1024, 1024), ideal = b.read(0, i * 1024, 1024);
    CHECK(late >= ideal);
    CHECK(late <= ideal + with.row_cycle_cycles);
  }
  CHECK(a.last[0].end == b.last[0].end);  // the bus is never kept waiting
}

TEST_CASE("a memory that the target leaves empty still answers") {
  CHECK(Rig(MemoryParameters{}).read(5, 123, 10) == 15);
}

}  // namespace
}  // namespace rdusim::memory_test
