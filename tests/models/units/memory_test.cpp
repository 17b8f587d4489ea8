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

TEST_CASE("a memory that the target leaves empty still answers") {
  CHECK(Rig(MemoryParameters{}).read(5, 123, 10) == 15);
}

}  // namespace
}  // namespace rdusim::memory_test
