#include "sim/residual.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace rdusim {

std::string_view name_of(Cause cause) {
  static constexpr std::array<std::string_view, causes> names = {
      "compute", "fill", "drain",        "input_starvation", "back_pressure", "bank_conflict", "network_contention",
      "memory",  "link", "barrier_skew", "launch",           "schedule"};
  return names[static_cast<std::size_t>(cause)];
}

std::int64_t total(const Partition& p) {
  return std::accumulate(p.begin(), p.end(), std::int64_t{0});
}

namespace {

Cause cause_of(StallCause c) {
  switch (c) {
    case StallCause::input_starvation:
      return Cause::input_starvation;
    case StallCause::back_pressure:
      return Cause::back_pressure;
    case StallCause::memory:
      return Cause::memory;
    case StallCause::network_contention:
      return Cause::network_contention;
    case StallCause::link:
      return Cause::link;
    case StallCause::bank_conflict:
      return Cause::bank_conflict;
    case StallCause::engine:
      return Cause::schedule;
  }
  return Cause::schedule;
}

Cause resource_of(const Stage& s) {
  if (std::holds_alternative<Load>(s.kind) || std::holds_alternative<Store>(s.kind)) return Cause::memory;
  if (std::holds_alternative<Recv>(s.kind)) return Cause::link;
  return Cause::compute;
}

bool waits_for_others(StallCause c) {
  return c == StallCause::input_starvation || c == StallCause::back_pressure || c == StallCause::engine;
}

Cycles own_time(const StageStatistics& s) {
  Cycles own = s.busy;
  for (std::size_t c = 0; c < stall_causes; ++c) {
    if (!waits_for_others(static_cast<StallCause>(c))) own += s.stall[c];
  }
  return own;
}

}  // namespace

Residual explain_difference(const Instances& instances, const Statistics& statistics,
                            const CollectiveChecker& collectives, const Costs& costs, Cycle cycles) {
  const SpatialProgram& p = instances.program();
  Residual r;
  const auto add = [&r](Cause c, Cycles n) {
    r.simulated[static_cast<std::size_t>(c)] += static_cast<std::int64_t>(n);
  };

  Cycles in_sections = 0;
  for (const Section& section : p.sections) {
    const SectionSpan& span = statistics.sections()[section.id.value];
    const Cycle start = std::min(span.launched, cycles), end = std::min(span.end.value_or(cycles), cycles);
    const Cycles ran = span.ran(cycles);
    if (!span.start || ran == 0) continue;
    in_sections += ran;

    std::optional<std::uint32_t> bottleneck;
    for (std::uint32_t n = 0; n < instances.stages(); ++n) {
      if (p.stage(instances.stage_at(n).stage).section != section.id || !statistics.stage(n).first) continue;
      if (!bottleneck || own_time(statistics.stage(n)) > own_time(statistics.stage(*bottleneck))) bottleneck = n;
    }
    if (!bottleneck) {
      add(Cause::drain, ran);
      continue;
    }
    r.bottlenecks.push_back({section.id, *bottleneck});
    const StageStatistics& s = statistics.stage(*bottleneck);
    // Walks the timeline and never leaves the section, so that the parts add up to it whatever the events said.
    Cycles left = ran;
    const auto take = [&](Cause c, Cycles n) {
      n = std::min(n, left);
      add(c, n);
      left -= n;
    };
    take(Cause::fill, s.before_first);
    take(resource_of(p.stage(instances.stage_at(*bottleneck).stage)), s.busy);
    for (std::size_t c = 0; c < stall_causes; ++c) {
      // The stall of a launch's first firing is the fill, counted already.
      take(cause_of(static_cast<StallCause>(c)), s.stall[c] - std::min(s.stall[c], s.first_stall[c]));
    }
    Cycles under_way = 0;
    for (const Collective& collective : p.collectives) {
      const auto trip = collectives.last_trip(collective.id);
      if (!trip) continue;
      const Cycle from = std::max({trip->first, s.engine_free, start});
      const Cycle to = std::min(trip->second, end);
      if (to > from) under_way = std::max(under_way, to - from);
    }
    take(Cause::link, under_way);
    take(Cause::drain, left);
  }
  add(Cause::launch, cycles - std::min<Cycles>(in_sections, cycles));

  const auto predict = [&r](Cause c, Cycles n) {
    r.predicted[static_cast<std::size_t>(c)] += static_cast<std::int64_t>(n);
  };
  for (const SectionCost& c : costs.sections) {
    predict(Cause::launch, c.launch);
    predict(Cause::fill, c.fill);
    predict(Cause::compute, c.compute);
    predict(Cause::memory, c.memory);
    predict(Cause::link, c.link);
    predict(Cause::network_contention, c.network);
    predict(Cause::drain, c.drain);
  }
  return r;
}

}  // namespace rdusim
