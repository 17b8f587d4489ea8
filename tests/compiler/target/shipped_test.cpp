// The shipped machines: their derived figures are the published ones.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "compiler/target/describe.h"
#include "compiler/target/target.h"

namespace rdusim::shipped_test {

namespace {

Target shipped(const std::string& name) {
  auto found = find_target(name);
  INFO(found.diagnostics().to_text());
  REQUIRE(found.ok());
  return std::move(found).value();
}

bool within(double value, double of, double part) {
  return std::abs(value - of) <= part * of;
}

}  // namespace

TEST_CASE("the shipped machines are read without a fault, each under its own name") {
  const auto names = shipped_targets();
  for (const char* name : {"plasticine-2019", "plasticine-2020", "sn10", "sn30", "sn40l", "sn50", "wormhole"}) {
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  }
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (std::string_view name : names) {
    const Target t = shipped(std::string(name));
    CHECK(t.name == name);
    CHECK(t.sha256.size() == 64);
    CHECK(read_target(t.text, "again")->sha256 == t.sha256);
  }
}

TEST_CASE("sn40l: 638 TFLOP/s bf16, 520 MiB of SRAM, 1.8 TB/s, sixteen sockets of 250 GB/s") {
  const Target t = shipped("sn40l");
  CHECK(t.sites() == 1040);
  CHECK(t.chips == 16);
  CHECK(within(peak_tflops(t, DType::bf16), 638, 0.005));
  CHECK(sram_bytes(t) == Bytes{520} << 20);
  CHECK(peak_gb_per_s(t, t.hbm) == doctest::Approx(1800));
  // 85 % of the peak is what the papers report of streaming.
  CHECK(within(sustainable_gb_per_s(t, t.hbm), 0.85 * 1800, 0.01));
  for (std::uint32_t chip = 0; chip < t.chips; ++chip) {
    CHECK(link_gb_per_s(t, ChipId{chip}) == doctest::Approx(250));
  }
  CHECK(t.links.size() == 16 * 8);
  CHECK(t.hbm.channel_bytes_per_cycle == Fraction{375, 8});
  CHECK(t.links.front().bytes_per_cycle == Fraction{625, 24});
  CHECK(t.links.front().latency_cycles == 1200);
  CHECK(t.pcu.macs(DType::bf16) == 256);
  CHECK(t.pcu.macs(DType::int8) == 512);
  CHECK(t.pcu.macs(DType::int64) == 32);
  CHECK(t.crossing == std::vector{CrossingHandshake::token});
}

TEST_CASE("sn50: 1600 TFLOP/s bf16, 3200 fp8, 432 MiB of SRAM, 256 sockets") {
  const Target t = shipped("sn50");
  CHECK(t.sites() == 864);
  CHECK(t.chips == 256);
  CHECK(within(peak_tflops(t, DType::bf16), 1600, 0.006));
  CHECK(within(peak_tflops(t, DType::fp8_e4m3), 3200, 0.006));
  CHECK(within(peak_tflops(t, DType::fp8_e5m2), 3200, 0.006));
  CHECK(sram_bytes(t) == Bytes{432} << 20);
  CHECK(within(sustainable_gb_per_s(t, t.hbm), 0.85 * 1840, 0.015));
  CHECK(link_gb_per_s(t, ChipId{255}) == doctest::Approx(900));
}

TEST_CASE("sn10: more than 300 TFLOP/s bf16 and 300 MB of SRAM, four links a socket") {
  const Target t = shipped("sn10");
  CHECK(peak_tflops(t, DType::bf16) > 300);
  CHECK(sram_bytes(t) > Bytes{300'000'000});
  CHECK(t.sites() == 640);
  CHECK(t.links.size() == 8 * 4);
  CHECK(peak_tflops(t, DType::fp8_e4m3) == 0);
}

TEST_CASE("sn30: 688 TFLOP/s bf16, 640 MiB of SRAM, 1 TiB of memory") {
  const Target t = shipped("sn30");
  CHECK(within(peak_tflops(t, DType::bf16), 688, 0.001));
  CHECK(sram_bytes(t) == Bytes{640} << 20);
  CHECK(t.hbm.capacity_bytes == Bytes{1} << 40);
}

// The published chip has 64 PCUs and PMUs; the grids that the public cycle counts are of have more of the same.
TEST_CASE(
    "plasticine: a PCU of 16 lanes and a PMU of 256 KiB at 1 GHz, 64 PMUs of which hold 16 MiB, and four channels of "
    "DDR3") {
  for (const auto& [name, sites] :
       {std::pair{"plasticine-2019", 18u * 18u / 2u}, std::pair{"plasticine-2020", 20u * 20u / 2u}}) {
    CAPTURE(name);
    const Target t = shipped(name);
    CHECK(t.chips == 1);
    CHECK(t.links.empty());
    CHECK(t.sites() == sites);
    CHECK(sram_bytes(t) / sites * 64 == Bytes{16} << 20);
    CHECK(to_double(t.clock_ghz) == 1.0);
    // 16 lanes and 6 stages in each of 64 PCUs, two operations in each: 12.3 TFLOP/s. A matmul uses one product a lane.
    CHECK(within(64.0 * t.pcu.lanes * t.pcu.stages * 2 / 1e3, 12.3, 0.001));
    CHECK(t.pcu.macs(DType::fp32) == t.pcu.lanes);
    CHECK(t.host.section_launch_cycles == 0);
  }
  CHECK(peak_gb_per_s(shipped("plasticine-2019"), shipped("plasticine-2019").hbm) == doctest::Approx(51.2));
}

TEST_CASE("wormhole: 80 cores of 4.096 TFLOP/s, 288 GB/s, circular buffers and semaphores") {
  const Target t = shipped("wormhole");
  CHECK(peak_tflops(t, DType::fp8_e4m3) == doctest::Approx(80 * 4.096));
  CHECK(t.pmu.capacity_bytes == 1464 * 1024);
  CHECK(peak_gb_per_s(t, t.hbm) == doctest::Approx(288));
  CHECK(t.local == LocalHandshake::circular_buffer);
  CHECK(t.crossing == std::vector{CrossingHandshake::semaphore});
  CHECK(t.site.semaphores == 8);
  for (DType d : all_dtypes) CHECK(t.pcu.macs(d) > 0);
}

TEST_CASE("a machine's ports to memory are as wide together as the memory, and hide its latency") {
  for (std::string_view name : shipped_targets()) {
    CAPTURE(name);
    const Target t = shipped(std::string(name));
    const double ports = to_double(t.agcu.bytes_per_cycle) * static_cast<double>(t.agcu.at.size());
    const double memory = to_double(t.hbm.peak_bytes_per_cycle());
    CHECK(ports >= memory);
    const double on_their_way = static_cast<double>(t.agcu.at.size() * t.agcu.outstanding_bursts * t.agcu.burst_bytes);
    CHECK(on_their_way >= memory * static_cast<double>(t.hbm.latency_cycles + t.agcu.latency_cycles));
  }
}

TEST_CASE("the sustainable bandwidth is the peak less rows and refresh, and no more than the peak") {
  MemoryParameters m;
  m.channels = 4;
  m.channel_bytes_per_cycle = {64, 1};
  m.row_bytes = 1024;
  m.row_miss_cycles = 4;
  m.refresh_interval_cycles = 1000;
  m.refresh_cycles = 100;
  // 1024 bytes take 16 cycles and 4 more; nine tenths of the time; four channels.
  CHECK(m.sustainable_bytes_per_cycle() == make_fraction(4 * 1024 * 9, 20 * 10));
  m.row_miss_cycles = 0;
  m.refresh_cycles = 0;
  CHECK(m.sustainable_bytes_per_cycle() == m.peak_bytes_per_cycle());
  m.row_bytes = 0;
  m.refresh_interval_cycles = 0;
  CHECK(m.sustainable_bytes_per_cycle() == m.peak_bytes_per_cycle());
  CHECK(MemoryParameters{}.sustainable_bytes_per_cycle() == Fraction{0, 1});
}

TEST_CASE("a target is found by name first, then as a file, and otherwise refused with the nearest name") {
  CHECK(find_target("sn40l").ok());
  CHECK(find_target(std::string(RDUSIM_SOURCE_DIR) + "/models/targets/sn40l.toml")->sha256 ==
        find_target("sn40l")->sha256);
  const auto misspelt = find_target("sn40");
  REQUIRE_FALSE(misspelt.ok());
  CHECK(misspelt.diagnostics().contains(Code::RDU2001));
  CHECK(misspelt.diagnostics().to_text().find("did you mean 'sn40l'?") != std::string::npos);
  CHECK(find_target("absent.toml").diagnostics().contains(Code::RDU1001));
  CHECK(find_target("/").diagnostics().contains(Code::RDU1001));
  CHECK(find_target("").diagnostics().contains(Code::RDU2001));
}

TEST_CASE("a machine is described with what follows from its numbers, and every number with its source") {
  const Target t = shipped("sn40l");
  const std::string text = describe(t);
  CHECK(text == describe(t));
  for (const char* part : {"bf16 peak            639.0 TFLOP/s", "545.26 MB (520.00 MiB)", "1800.0 GB/s peak",
                           "1533.2 GB/s sustainable when streaming (85.2 %)", "8 out of a chip, 250 GB/s"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
  REQUIRE(t.numbers.size() > 70);
  for (const Provenance& n : t.numbers) {
    CHECK_FALSE(n.source.empty());
    CHECK(text.find(n.key) != std::string::npos);
    CHECK(text.find(n.source) != std::string::npos);
    // Positions have a source and no range; a published number needs none.
    CHECK(n.range.has_value() == (!n.published && n.key != "agcu.at"));
  }
}

}  // namespace rdusim::shipped_test
