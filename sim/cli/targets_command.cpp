#include <fmt/format.h>

#include "compiler/support/json.h"
#include "compiler/target/describe.h"
#include "sim/cli/commands.h"

namespace rdusim::cli {

namespace {

std::string one_line(const Target& t) {
  return fmt::format("{:<18} {} chip{}, {} x {} sites, {} GHz, HBM {}, {} links\n", t.name, t.chips,
                     t.chips == 1 ? "" : "s", t.mesh.width, t.mesh.height, to_double(t.clock_ghz),
                     format_bytes(t.hbm.capacity_bytes), t.links.size());
}

Json memory_json(const Target& t, const MemoryParameters& m) {
  return Json()
      .set("technology", m.technology)
      .set("capacity_bytes", m.capacity_bytes)
      .set("peak_gb_per_s", peak_gb_per_s(t, m))
      .set("sustainable_gb_per_s", sustainable_gb_per_s(t, m));
}

// What follows from the numbers, a chip.
Json derived_json(const Target& t) {
  Json peaks;
  for (const DType d : all_dtypes) {
    if (t.pcu.macs(d) != 0) peaks.set(std::string(name_of(d)), peak_tflops(t, d));
  }
  return Json()
      .set("peak_tera_operations_per_s", std::move(peaks))
      .set("sram_bytes", sram_bytes(t))
      .set("hbm", memory_json(t, t.hbm))
      .set("ddr", t.ddr ? memory_json(t, *t.ddr) : Json())
      .set("links_gb_per_s", link_gb_per_s(t, ChipId{}));
}

Json as_json(const Target& t) {
  JsonArray numbers;
  for (const Provenance& n : t.numbers) {
    Json range;
    if (n.range) range.push(n.range->first).push(n.range->second);
    numbers.push_back(Json()
                          .set("key", n.key)
                          .set("value", n.value)
                          .set("source", n.source)
                          .set("published", n.published)
                          .set("range", std::move(range)));
  }
  return Json()
      .set("name", t.name)
      .set("sha256", t.sha256)
      .set("chips", t.chips)
      .set("mesh", Json().set("width", t.mesh.width).set("height", t.mesh.height))
      .set("clock_ghz", to_double(t.clock_ghz))
      .set("native_tile", t.native_tile)
      .set("links", std::uint64_t{t.links.size()})
      .set("switches", t.switches)
      .set("derived", derived_json(t))
      .set("numbers", std::move(numbers));
}

}  // namespace

ExitStatus targets(const TargetsRequest& request) {
  if (!request.name.empty()) {
    const auto target = find_target(request.name);
    if (!target) return fail(target.diagnostics());
    return print_result(request.json ? to_text(as_json(*target)) : describe(*target), ExitStatus::done);
  }
  std::string text;
  JsonArray list;
  for (std::string_view name : shipped_targets()) {
    const auto target = find_target(std::string(name));
    if (!target) return fail(target.diagnostics());
    text += one_line(*target);
    if (request.json) list.push_back(as_json(*target));
  }
  return print_result(request.json ? to_text(Json(std::move(list))) : text, ExitStatus::done);
}

}  // namespace rdusim::cli
