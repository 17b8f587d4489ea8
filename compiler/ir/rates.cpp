#include "compiler/ir/rates.h"

#include <algorithm>
#include <numeric>

#include "compiler/ir/access_pattern.h"

namespace rdusim {
namespace {

struct Access {
  const AccessPattern* pattern;
  const Tensor* tensor;
};

std::optional<Access> access_of(const SpatialProgram& program, const Stage& stage) {
  if (const auto* load = std::get_if<Load>(&stage.kind)) return Access{&load->pattern, &program.tensor(load->tensor)};
  if (const auto* store = std::get_if<Store>(&stage.kind))
    return Access{&store->pattern, &program.tensor(store->tensor)};
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> sum_over(const Cyclic<std::uint32_t>& rate, std::uint64_t phases) {
  const std::uint64_t length = cycle_length(rate);
  std::uint64_t cycle = 0;
  std::uint64_t rest = 0;
  std::uint64_t left = phases % length;
  for (const auto& run : rate) {
    // Both products fit: they are of 32-bit numbers.
    const std::uint64_t taken = std::min<std::uint64_t>(left, run.repeat);
    if (__builtin_add_overflow(cycle, std::uint64_t{run.repeat} * run.value, &cycle)) return std::nullopt;
    rest += taken * run.value;
    left -= taken;
  }
  std::uint64_t total = 0;
  if (__builtin_mul_overflow(phases / length, cycle, &total) || __builtin_add_overflow(total, rest, &total))
    return std::nullopt;
  return total;
}

std::uint32_t greatest(const Cyclic<std::uint32_t>& rate) {
  std::uint32_t most = 0;
  for (const auto& run : rate) most = std::max(most, run.value);
  return most;
}

std::uint64_t firings_per_page(const Stage& stage) {
  const auto* store = std::get_if<Store>(&stage.kind);
  return store != nullptr && !store->chunks.empty() ? store->chunks.size() : 1;
}

std::optional<PortCounts> count_pages(const SpatialProgram& program, const Stage& stage, std::size_t port,
                                      std::size_t instance) {
  std::uint64_t firings = stage.firings;
  if (const auto access = access_of(program, stage)) {
    const auto pages = movable_pages(*access->pattern, instance, steps_in(*access->pattern, *access->tensor));
    if (!pages || __builtin_mul_overflow(*pages, firings_per_page(stage), &firings)) return std::nullopt;
  }
  const std::uint64_t trips = program.sections[stage.section.value].trips;
  const Port& p = stage.ports[port];
  PortCounts counts;
  const auto count = [&](const Cyclic<std::uint32_t>& rate, std::uint64_t& total) {
    const auto of_trip = sum_over(rate, firings);
    return of_trip && !__builtin_mul_overflow(*of_trip, trips, &total);
  };
  if (!count(p.need, counts.needed) || !count(p.pop, counts.popped) || !count(p.reserve, counts.reserved) ||
      !count(p.push, counts.pushed))
    return std::nullopt;
  return counts;
}

bool counts_alike(const SpatialProgram& program, const Stage& stage) {
  const auto access = access_of(program, stage);
  if (!access) return true;
  const auto pages = pages_per_trip(*access->pattern);
  if (!pages) return false;
  // All pages of all instances can be moved where those of an instance that starts last on every axis can.
  std::vector<std::uint64_t> last(access->tensor->tiles.size(), 0);
  for (const auto& first : access->pattern->first)
    for (std::size_t d = 0; d < last.size(); ++d) last[d] = std::max(last[d], first[d]);
  AccessPattern furthest = *access->pattern;
  furthest.first = {last};
  return movable_pages(furthest, 0, steps_in(furthest, *access->tensor)) == pages;
}

std::optional<std::uint64_t> hyperperiod(const Stage& stage) {
  std::uint64_t period = firings_per_page(stage);
  const auto join = [&](std::uint64_t length) {
    return !__builtin_mul_overflow(period / std::gcd(period, length), length, &period);
  };
  for (const Port& p : stage.ports)
    if (!join(cycle_length(p.need)) || !join(cycle_length(p.pop)) || !join(cycle_length(p.reserve)) ||
        !join(cycle_length(p.push)) || !join(cycle_length(p.chunk)))
      return std::nullopt;
  if (const auto* g = std::get_if<Generic>(&stage.kind))
    if (!join(cycle_length(g->bodies))) return std::nullopt;
  if (const auto* m = std::get_if<MatmulTiles>(&stage.kind))
    if (!join(m->k_pages)) return std::nullopt;
  return period;
}

std::vector<std::vector<std::uint32_t>> senders_by_receiver(const Edge& edge, std::size_t receivers) {
  std::vector<std::vector<std::uint32_t>> senders(receivers);
  if (edge.map.kind == PageMapKind::one_to_one) {
    for (std::size_t i = 0; i < receivers; ++i) senders[i] = {static_cast<std::uint32_t>(i)};
    return senders;
  }
  for (std::size_t i = 0; i < edge.map.targets.size(); ++i)
    for (std::uint32_t r : edge.map.targets[i]) senders[r].push_back(static_cast<std::uint32_t>(i));
  return senders;
}

std::uint64_t pages_sent(const Edge& edge, std::size_t sender, std::uint32_t receiver, std::uint64_t pages) {
  if (edge.map.kind != PageMapKind::scatter) return pages;
  const auto& targets = edge.map.targets[sender];
  const auto place = static_cast<std::uint64_t>(std::find(targets.begin(), targets.end(), receiver) - targets.begin());
  return pages / targets.size() + (pages % targets.size() > place ? 1 : 0);
}

}  // namespace rdusim
