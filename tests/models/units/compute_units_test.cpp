// PCU, PMU, AGCU and chip link: each law at its edge.
#include <doctest/doctest.h>

#include "models/units/agcu.h"
#include "models/units/chip_link.h"
#include "models/units/pcu.h"
#include "models/units/pmu.h"

namespace rdusim::compute_units_test {
namespace {

PcuParameters pcu_parameters() {
  PcuParameters p;
  p.macs_per_cycle.fill(512);
  p.macs_per_cycle[static_cast<std::size_t>(DType::fp32)] = 100;
  p.simd_ops_per_cycle.fill(16);
  p.systolic_fill_cycles = 16;
  p.systolic_drain_cycles = 12;
  p.simd_latency_cycles = 14;
  return p;
}

TEST_CASE("a systolic firing keeps the array for its whole tiles' products over the rate") {
  const Pcu pcu(pcu_parameters(), 32);
  const FiringTime one = pcu.systolic(DType::int8, 32, 32, 32);
  CHECK(one.busy == 32 * 32 * 32 / 512);
  CHECK(one.latency == 16 + 12);
  CHECK(pcu.systolic(DType::int8, 32, 64, 96).busy == 6 * one.busy);
}

TEST_CASE("a ragged page costs as much as a full one, and one element more costs a tile more") {
  const Pcu pcu(pcu_parameters(), 32);
  CHECK(pcu.systolic(DType::int8, 1, 1, 1).busy == pcu.systolic(DType::int8, 32, 32, 32).busy);
  CHECK(pcu.systolic(DType::int8, 33, 32, 32).busy == 2 * pcu.systolic(DType::int8, 32, 32, 32).busy);
}

TEST_CASE("an array of 4 x 4 takes rows + columns + depth - 2 cycles") {
  PcuParameters p = pcu_parameters();
  p.macs_per_cycle.fill(4 * 4);
  p.systolic_fill_cycles = 4 - 1;
  p.systolic_drain_cycles = 4 - 1;
  for (const std::uint64_t depth : {1u, 3u, 4u, 100u}) {
    const FiringTime t = Pcu(p, 1).systolic(DType::int8, 4, 4, depth);
    CHECK(t.busy + t.latency == 4 + 4 + depth - 2);
  }
}

TEST_CASE("cycles are rounded up, and a firing takes at least one") {
  const Pcu pcu(pcu_parameters(), 4);
  CHECK(pcu.systolic(DType::fp32, 4, 4, 8).busy == 2);  // 128 products at 100 a cycle
  CHECK(Pcu(pcu_parameters(), 1).systolic(DType::int8, 1, 1, 1).busy == 1);
  CHECK(pcu.simd(DType::fp32, 0, 0).busy == 1);
}

TEST_CASE("a SIMD firing takes elements times operations over the rate") {
  const Pcu pcu(pcu_parameters(), 32);
  CHECK(pcu.simd(DType::fp32, 1024, 1).busy == 64);
  CHECK(pcu.simd(DType::fp32, 1024, 0).busy == 64);  // a copy passes through the lanes as well
  CHECK(pcu.simd(DType::fp32, 1025, 1).busy == 65);
  CHECK(pcu.simd(DType::fp32, 1024, 3).busy == 192);
  CHECK(pcu.simd(DType::fp32, 1024, 1).latency == 14);
}

TEST_CASE("a stage that uses some of the lanes does as much less a cycle") {
  PcuParameters p = pcu_parameters();
  p.lanes = 16;
  const Pcu pcu(p, 32);
  for (const std::uint32_t lanes : {1u, 2u, 16u}) CHECK(pcu.simd(DType::fp32, 1024, 3, lanes).busy == 3 * 1024 / lanes);
  CHECK(pcu.simd(DType::fp32, 1025, 1, 4).busy == 257);
}

TEST_CASE("a product in SIMD lanes takes a cycle for each vector along the contraction, and the tree over its lanes") {
  PcuParameters p = pcu_parameters();
  p.lanes = 16;
  const Pcu pcu(p, 32);
  const FiringTime one = pcu.simd_product(DType::fp32, 1, 1, 64, 16);
  CHECK(one.busy == 4);
  CHECK(one.latency == 14 + 4 + 1);
  CHECK(pcu.simd_product(DType::fp32, 3, 5, 64, 16).busy == 15 * 4);
  CHECK(pcu.simd_product(DType::fp32, 3, 5, 65, 16).busy == 15 * 5);  // a vector that is not whole
  CHECK(pcu.simd_product(DType::fp32, 1, 1, 64, 1).busy == 64);
  CHECK(pcu.simd_product(DType::fp32, 1, 1, 64, 1).latency == 14 + 1);
  p.simd_ops_per_cycle.fill(8);  // two cycles a vector
  CHECK(Pcu(p, 32).simd_product(DType::fp32, 1, 1, 64, 16).busy == 8);
}

TEST_CASE("a dtype that the target gives no rate still comes to an end") {
  PcuParameters p = pcu_parameters();
  p.macs_per_cycle.fill(0);
  CHECK(Pcu(p, 4).systolic(DType::int8, 4, 4, 4).busy == 64);
}

PmuLaw pmu_law() {
  PmuParameters p;
  p.read_bytes_per_cycle = {128, 1};
  p.write_bytes_per_cycle = {64, 1};
  p.access_latency_cycles = 4;
  return PmuLaw(p);
}

TEST_CASE("a page read is out after port time and access latency, its first byte after the latency") {
  Pmu pmu;
  const Pmu::Access a = pmu.read(pmu_law(), 100, 4096);
  CHECK(a.begin == 100);
  CHECK(a.first == 104);
  CHECK(a.last == 136);
}

TEST_CASE("reads serialise at the read port, writes at the write port, and neither delays the other") {
  Pmu pmu;
  pmu.read(pmu_law(), 100, 4096);
  CHECK(pmu.read(pmu_law(), 100, 128).begin == 132);
  CHECK(pmu.write(pmu_law(), 100, 4096).last == 168);
  CHECK(pmu.write(pmu_law(), 163, 64).begin == 164);
  CHECK(pmu.write(pmu_law(), 165, 64).begin == 165);
}

TEST_CASE("rows of a product take time in groups of the array's narrower side, where that divides a tile") {
  PcuParameters p = pcu_parameters();
  p.stages = 8;
  const Pcu pcu(p, 32);
  const Cycles whole = pcu.systolic(DType::int8, 32, 32, 32).busy;
  CHECK(pcu.systolic(DType::int8, 1, 32, 32).busy == ceil_div(whole, std::uint64_t{4}));
  CHECK(pcu.systolic(DType::int8, 8, 32, 32).busy == pcu.systolic(DType::int8, 1, 32, 32).busy);
  CHECK(pcu.systolic(DType::int8, 9, 32, 32).busy == ceil_div(whole, std::uint64_t{2}));
  CHECK(pcu.systolic(DType::int8, 25, 32, 32).busy == whole);
  p.stages = 5;
  CHECK(Pcu(p, 32).systolic(DType::int8, 1, 32, 32).busy == whole);
}

TEST_CASE("an AGCU's two directions are independent, and each serialises") {
  AgcuParameters p;
  p.bytes_per_cycle = {64, 1};
  p.latency_cycles = 20;
  const AgcuLaw law(p);
  Agcu a;
  CHECK(a.inward(law, 0, 6400).end == 100);
  CHECK(a.outward(law, 0, 6400).end == 100);
  CHECK(a.inward(law, 0, 64).begin == 100);
  CHECK(a.load_free_at() == 101);
}

TEST_CASE("streams are as fast as the outstanding bursts allow, and no faster, each way by itself") {
  AgcuParameters p;
  p.bytes_per_cycle = {64, 1};
  p.outstanding_bursts = 8;
  p.burst_bytes = 256;
  const AgcuLaw law(p);
  // 2048 bytes in flight, given from 52 to 100: a burst every 6 cycles, the first at 58.
  Agcu a;
  a.reads(law, 0, 52, 100, 2048);
  CHECK(a.load_free_at() == 58);
  CHECK(a.store_free_at() == 0);
  // Asked for at 58, with seven bursts of the first in flight: all eight of the first are given, and a burst of the
  // second, before there is room for a third page.
  a.reads(law, 58, 110, 158, 2048);
  CHECK(a.load_free_at() == 116);
  // A small page beside: room at once where it does not fill the window.
  Agcu small;
  small.reads(law, 0, 52, 100, 1024);
  CHECK(small.load_free_at() == 0);
  small.reads(law, 10, 62, 110, 800);  // four whole bursts: the first of the two pages makes room
  CHECK(small.load_free_at() == 64);
  small.reads(law, 240, 290, 300, 256);  // all before have ended, the last at 110
  CHECK(small.load_free_at() == 110);
  // Stores likewise.
  a.writes(law, 0, 100, 148, 2048);
  CHECK(a.store_free_at() == 106);
  // A page of four windows: the next may be asked for when a burst less than a window of it is to come.
  Agcu large;
  large.reads(law, 0, 100, 420, 8192);
  CHECK(large.load_free_at() == 350);
  CHECK(law.paced(8192, 100) == 400);
  CHECK(law.paced(2049, 100) == 113);
  // No limit: the port alone.
  p.outstanding_bursts = 0;
  Agcu b;
  b.reads(AgcuLaw(p), 0, 900, 1000, 1 << 20);
  CHECK(b.load_free_at() == 0);
  CHECK(AgcuLaw(p).paced(1 << 20, 100) == 0);
}

ChipLinkParameters link_parameters() {
  ChipLinkParameters p;
  p.bytes_per_cycle = {64, 1};
  p.latency_cycles = 1200;
  p.signal_bytes = 32;
  return p;
}

TEST_CASE("a page arrives at serialisation plus latency, and not one cycle earlier") {
  ChipLink link(link_parameters());
  CHECK(link.arrival(10, 4096) == 10 + 64 + 1200);
  CHECK(link.send(10, 4096).arrival == 10 + 64 + 1200);
}

TEST_CASE("two pages share a link: the second starts where the first ends") {
  ChipLink link(link_parameters());
  link.send(10, 4096);
  CHECK(link.arrival(10, 64) == 75 + 1200);
  CHECK(link.send(73, 64).slot.begin == 74);
  CHECK(link.send(75, 64).slot.begin == 75);
}

TEST_CASE("asking when a page would arrive sends nothing") {
  ChipLink link(link_parameters());
  CHECK(link.arrival(10, 4096) == link.arrival(10, 4096));
  CHECK(link.send(10, 64).slot.begin == 10);
}

TEST_CASE("a link without latency takes a cycle all the same") {
  ChipLinkParameters p = link_parameters();
  p.latency_cycles = 0;
  CHECK(ChipLink(p).arrival(10, 64) == 12);
}

}  // namespace
}  // namespace rdusim::compute_units_test
