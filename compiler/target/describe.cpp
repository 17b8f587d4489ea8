#include "compiler/target/describe.h"

#include <fmt/format.h>

#include <algorithm>

namespace rdusim {
namespace {

std::string_view name_of(LocalHandshake h) {
  return h == LocalHandshake::valid_ready ? "valid_ready" : "circular_buffer";
}

std::string_view name_of(CrossingHandshake h) {
  switch (h) {
    case CrossingHandshake::token:
      return "token";
    case CrossingHandshake::semaphore:
      return "semaphore";
    case CrossingHandshake::barrier:
      return "barrier";
  }
  return "?";
}

void put(std::string& out, std::string_view what, std::string_view value) {
  out += fmt::format("  {:<20} {}\n", what, value);
}

std::string memory_line(const Target& t, const MemoryParameters& m) {
  const double peak = peak_gb_per_s(t, m);
  const double sustainable = sustainable_gb_per_s(t, m);
  return fmt::format("{}: {}, {:.1f} GB/s peak, {:.1f} GB/s sustainable when streaming ({:.1f} %)", m.technology,
                     format_bytes(m.capacity_bytes), peak, sustainable, 100 * sustainable / peak);
}

std::string handshakes_line(const Target& t) {
  std::string crossing;
  for (CrossingHandshake h : t.crossing) crossing += (crossing.empty() ? "" : ", ") + std::string(name_of(h));
  return fmt::format("within a site {}, between sites {}", name_of(t.local), crossing.empty() ? "none" : crossing);
}

}  // namespace

double peak_tflops(const Target& target, DType operands) {
  return 2.0 * target.pcu.macs(operands) * target.sites() * to_double(target.clock_ghz) / 1000;
}

Bytes sram_bytes(const Target& target) {
  return Bytes{target.sites()} * target.pmu.capacity_bytes;
}

double peak_gb_per_s(const Target& target, const MemoryParameters& memory) {
  return to_double(memory.peak_bytes_per_cycle()) * to_double(target.clock_ghz);
}

double sustainable_gb_per_s(const Target& target, const MemoryParameters& memory) {
  return to_double(memory.sustainable_bytes_per_cycle()) * to_double(target.clock_ghz);
}

double link_gb_per_s(const Target& target, ChipId from) {
  double sum = 0;
  for (const ChipLinkParameters& l : target.links) {
    if (l.from == from) sum += to_double(l.bytes_per_cycle) * to_double(target.clock_ghz);
  }
  return sum;
}

std::string describe(const Target& t) {
  std::string out = fmt::format("{}: {}\n\nwhat follows from the numbers, a chip\n", t.name, t.summary);
  put(out, "chips", fmt::format("{}", t.chips));
  put(out, "sites",
      fmt::format("{} ({} x {}), each a PCU and a PMU", with_commas(t.sites()), t.mesh.width, t.mesh.height));
  put(out, "clock", fmt::format("{} GHz", to_double(t.clock_ghz)));
  for (DType d : all_dtypes) {
    if (t.pcu.macs(d) == 0) continue;
    put(out, fmt::format("{} peak", name_of(d)),
        fmt::format("{:.1f} T{}OP/s", peak_tflops(t, d), is_integer(d) ? "" : "FL"));
  }
  put(out, "SRAM", format_bytes(sram_bytes(t)));
  put(out, "memory", memory_line(t, t.hbm));
  if (t.ddr) put(out, "second memory", memory_line(t, *t.ddr));
  put(out, "AGCUs",
      fmt::format("{}, {:.1f} GB/s together each way", t.agcu.at.size(),
                  to_double(t.agcu.bytes_per_cycle) * static_cast<double>(t.agcu.at.size()) * to_double(t.clock_ghz)));
  const auto links = static_cast<std::size_t>(
      std::count_if(t.links.begin(), t.links.end(), [](const ChipLinkParameters& l) { return l.from == ChipId{}; }));
  put(out, "links",
      fmt::format("{} out of a chip, {} GB/s together each way; {} directed links in all", links,
                  link_gb_per_s(t, ChipId{}), with_commas(t.links.size())));
  if (t.switches != 0) put(out, "switches", fmt::format("{} between the chips", t.switches));
  put(out, "hand-offs", handshakes_line(t));

  out += "\nthe numbers\n";
  std::size_t key_width = 0;
  std::size_t value_width = 0;
  for (const Provenance& n : t.numbers) {
    key_width = std::max(key_width, n.key.size());
    value_width = std::max(value_width, n.value.size());
  }
  for (const Provenance& n : t.numbers) {
    const std::string range = n.range ? fmt::format(" {} to {}", n.range->first, n.range->second) : "";
    out += fmt::format("  {:<{}}  {:>{}}  {}{}: {}\n", n.key, key_width, n.value, value_width,
                       n.published ? "published" : "assumed", range, n.source);
  }
  out += fmt::format("\nsha256 {}\n", t.sha256);
  return out;
}

}  // namespace rdusim
