#include "sim/cli/depths.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/cost/cost.h"
#include "compiler/ir/clusters.h"
#include "compiler/ir/throughput.h"

namespace rdusim::cli {

namespace {

std::string or_unknown(std::uint64_t depth) {
  return depth == 0 ? "?" : with_commas(depth);
}

struct Rates {
  std::vector<std::uint64_t> full_rate;  // by buffer; 0: not known
  std::string held_by;                   // what holds the slowest cluster back, in words
};

// As the cost model estimates the firings of each stage.
Rates rates_of(const SpatialProgram& p, const Target& target) {
  const Costs costs = estimate(p, target);
  std::vector<StageTiming> timing;
  for (const StageCost& s : costs.stages)
    timing.push_back({std::max<Cycles>(s.initiation_interval_cycles, 1), std::max<Cycles>(s.latency_cycles, 1),
                      std::max<Cycles>(s.busy_cycles, 1)});
  Rates rates;
  rates.full_rate.assign(p.buffers.size(), 0);
  double slowest = 0;
  for (const Cluster& c : clusters_of(p)) {
    const Throughput t = throughput_of(p, c, timing);
    for (std::size_t b = 0; b < t.full_rate_depth.size(); ++b)
      if (t.full_rate_depth[b] != 0) rates.full_rate[b] = t.full_rate_depth[b];
    if (!t.circle) continue;
    const double trip =
        static_cast<double>(t.circle->cycles) / static_cast<double>(t.circle->parts) * static_cast<double>(c.repeats);
    if (trip <= slowest) continue;
    slowest = trip;
    rates.held_by = fmt::format("estimated: a trip goes round in {} cycles, held by",
                                with_commas(static_cast<std::uint64_t>(trip + 0.5)));
    constexpr std::size_t most = 8;
    for (std::size_t i = 0; i < t.circle->stages.size() && i < most; ++i)
      rates.held_by += fmt::format("{} '{}'", i == 0 ? "" : ",", p.stage(t.circle->stages[i]).name);
    if (t.circle->stages.size() > most) rates.held_by += fmt::format(" and {} more", t.circle->stages.size() - most);
    for (std::size_t i = 0; i < t.circle->buffers.size() && i < most; ++i)
      rates.held_by += fmt::format("{} '{}'", i == 0 ? ", through" : ",", p.buffer(t.circle->buffers[i]).name);
    rates.held_by += "\n";
  }
  return rates;
}

}  // namespace

std::string depths_table(const SpatialProgram& p, const Target& target, const Certificate& c) {
  const Rates rates = rates_of(p, target);
  std::size_t width = 6;
  for (const Buffer& b : p.buffers) width = std::max(width, b.name.size());
  std::string text = fmt::format("{:<{}} {:>9} {:>9} {:>9} {:>12} {:>7}\n", "buffer", width, "depth", "minimum",
                                 "full rate", "spare", "sites");
  Bytes spare_of_all = 0;
  for (const BufferClaim& claim : c.buffers) {
    const Buffer& b = p.buffer(claim.buffer);
    const std::size_t sites = p.placement ? p.group(b.group).sites.size() : 0;
    std::string spare = "?";
    if (claim.least_depth > claim.depth) {
      spare = "too shallow";
    } else if (claim.least_depth != 0) {
      spare = format_bytes((claim.depth - claim.least_depth) * b.page_bytes);
      spare_of_all += (claim.depth - claim.least_depth) * b.page_bytes * sites;
    }
    text +=
        fmt::format("{:<{}} {:>9} {:>9} {:>9} {:>12} {:>7}\n", b.name, width, with_commas(claim.depth),
                    or_unknown(claim.least_depth), or_unknown(rates.full_rate[b.id.value]), spare, with_commas(sites));
  }
  return text +
         fmt::format("each holds for all other depths as they are; spare beyond the minimum in all {}\n",
                     format_bytes(spare_of_all)) +
         rates.held_by;
}

Json depths_json(const SpatialProgram& p, const Target& target, const Certificate& c) {
  const Rates rates = rates_of(p, target);
  JsonArray list;
  for (const BufferClaim& claim : c.buffers) {
    const Buffer& b = p.buffer(claim.buffer);
    list.push_back(
        Json()
            .set("name", b.name)
            .set("depth_pages", claim.depth)
            .set("minimum_pages", claim.least_depth == 0 ? Json() : Json(claim.least_depth))
            .set("full_rate_pages", rates.full_rate[b.id.value] == 0 ? Json() : Json(rates.full_rate[b.id.value]))
            .set("page_bytes", b.page_bytes)
            .set("sites", p.placement ? p.group(b.group).sites.size() : 0));
  }
  return list;
}

}  // namespace rdusim::cli
