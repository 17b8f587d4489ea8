#include "compiler/cost/least_times.h"

#include <algorithm>
#include <optional>

#include "compiler/cost/exact.h"
#include "compiler/cost/traffic.h"

namespace rdusim::cost {
namespace {

constexpr std::uint64_t most_pages = std::uint64_t{1} << 18;  // of a load, looked at

struct SmallestPage {
  std::uint64_t rows = 1, cols = 1;
};

// The smallest page of a Load's first `instances`, along each axis. Nothing where there are too many to look at.
std::optional<SmallestPage> smallest_page(const SpatialProgram& p, const Stage& stage, std::size_t instances) {
  const auto& load = std::get<Load>(stage.kind);
  if (times(stage.firings, instances) > most_pages) return std::nullopt;
  std::optional<SmallestPage> least;
  for (std::size_t i = 0; i < instances; ++i)
    for (std::uint64_t f = 0; f < stage.firings; ++f) {
      const auto e = page_extents(load.pattern, p.tensor(load.tensor), p.header.native_tile, f, i);
      if (e.empty()) return std::nullopt;
      const SmallestPage page{std::max<std::uint64_t>(e.size() > 1 ? e[e.size() - 2] : 1, 1),
                              std::max<std::uint64_t>(e.back(), 1)};
      if (!least) least = page;
      least->rows = std::min(least->rows, page.rows);
      least->cols = std::min(least->cols, page.cols);
    }
  return least;
}

class LeastTimesOf {
 public:
  LeastTimesOf(const SpatialProgram& p, std::span<const Cluster> clusters, const Target& t)
      : p_(p), t_(t), loads_(p.buffers.size()) {
    for (const Cluster& c : clusters)
      for (const StageId id : c.stages) take_down(p.stage(id), c.one_to_one);
  }

  StageTiming of(const Stage& s) const {
    StageTiming t;
    if (const auto* m = std::get_if<MatmulTiles>(&s.kind)) {
      t.interval = matmul(s, *m);
      t.to_push = t.interval + t_.pcu.product_latency(m->lanes) + pmu();
    } else if (std::holds_alternative<Generic>(s.kind)) {
      t.to_push = t.interval + t_.pcu.simd_latency_cycles + pmu();
    } else if (const auto* load = std::get_if<Load>(&s.kind)) {
      const Tensor& tensor = p_.tensor(load->tensor);
      const SmallestPage page = loads_[s.ports.back().buffer.value].value_or(SmallestPage{});
      const Bytes bytes = times(times(page.rows, page.cols), bytes_of(tensor.dtype));
      for (const Fraction& rate :
           {t_.agcu.bytes_per_cycle, t_.network.link_bytes_per_cycle, t_.pmu.write_bytes_per_cycle})
        t.interval = std::max(t.interval, least_time_of(bytes, rate));
      const Cycles memory = tensor.space == MemorySpace::hbm             ? t_.hbm.latency_cycles
                            : tensor.space == MemorySpace::ddr && t_.ddr ? t_.ddr->latency_cycles
                                                                         : 0;
      t.to_push = std::max<Cycles>(memory + t_.agcu.latency_cycles, 1);
    } else if (const auto* recv = std::get_if<Recv>(&s.kind)) {
      t.to_push = 1 + least_latency(p_.edge(recv->edge));
    }
    t.to_pop = std::holds_alternative<Load>(s.kind) ? 1 : t.interval;
    return t;
  }

 private:
  void take_down(const Stage& s, bool one_to_one) {
    if (!std::holds_alternative<Load>(s.kind)) return;
    const auto page = smallest_page(p_, s, one_to_one ? 1 : p_.sites_of(s).sites.size());
    for (const Port& port : s.ports)
      if (port.direction == Direction::output && p_.buffer(port.buffer).initial_pages == 0)
        loads_[port.buffer.value] = page;
  }

  Cycles pmu() const { return 2 * t_.pmu.access_latency_cycles; }

  Cycles matmul(const Stage& s, const MatmulTiles& m) const {
    const auto a = loads_[s.ports[0].buffer.value], b = loads_[s.ports[1].buffer.value];
    const SmallestPage left = a.value_or(SmallestPage{}), right = b.value_or(SmallestPage{});
    const std::uint64_t tile = std::max(p_.header.native_tile, 1u);
    const auto whole = [&](std::uint64_t n) { return times(ceil_div(n, tile), tile); };
    const std::uint64_t cols = m.transposed ? right.rows : right.cols;
    const std::uint64_t vectors =
        times(left.rows, times(cols, ceil_div(left.cols, std::uint64_t{std::max(m.lanes, 1u)})));
    const std::uint64_t macs = m.lanes != 0
                                   ? times(vectors, m.lanes)
                                   : times(t_.pcu.rows_taken(left.rows, tile), times(whole(cols), whole(left.cols)));
    const Bytes bytes = times(plus(times(left.rows, left.cols), times(right.rows, right.cols)), bytes_of(m.operand));
    return std::max<Cycles>({least_time_of(macs, t_.pcu.mac_rate(m.operand, m.accumulator, m.lanes)),
                             least_time_of(bytes, t_.pmu.read_bytes_per_cycle), 1});
  }

  Cycles least_latency(const Edge& e) const {
    std::optional<Cycles> least;
    for (const auto& route : e.routes) {
      Cycles all = 0;
      for (const LinkId id : route)
        if (id.value < t_.links.size()) all = plus(all, t_.links[id.value].latency_cycles);
      least = std::min(least.value_or(all), all);
    }
    return least.value_or(0);
  }

  const SpatialProgram& p_;
  const Target& t_;
  std::vector<std::optional<SmallestPage>> loads_;  // by buffer: what a Load brings
};

}  // namespace

std::vector<StageTiming> least_times(const SpatialProgram& program, std::span<const Cluster> clusters,
                                     const Target& target) {
  const LeastTimesOf times(program, clusters, target);
  std::vector<StageTiming> by_stage(program.stages.size());
  for (const Cluster& c : clusters)
    for (const StageId id : c.stages) by_stage[id.value] = times.of(program.stage(id));
  return by_stage;
}

}  // namespace rdusim::cost
