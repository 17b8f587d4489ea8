#include "sim/fault_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "compiler/ir/memory_order.h"
#include "compiler/ir/rates.h"
#include "compiler/support/split_mix.h"
#include "models/units/fault_partners.h"
#include "models/units/sum_order.h"
#include "sim/fault_text.h"
#include "sim/instances.h"

namespace rdusim {

namespace {

// Where faults of a kind may strike: instances of a place, and at each so many pages, signals or firings.
struct Spot {
  Fault fault;  // of instance 0, the first
  std::uint32_t instances = 1;
  std::uint64_t count = 0;
  std::uint64_t stride = 1, first = 0;  // of what is counted, every stride-th from the first on
};

class Spots {
 public:
  explicit Spots(const SpatialProgram& p) : p_(p), instances_(p) {
    for (const MemoryOrder& order : memory_orders(p)) waiting_loads_.insert(order.loads.begin(), order.loads.end());
  }

  std::vector<Spot> of(const FaultLaw& law) const {
    std::vector<Spot> out;
    if (law.place == FaultPlace::hand_off || law.place == FaultPlace::buffer) {
      for (const Buffer& b : p_.buffers) add_buffer(law, b, out);
    }
    for (const Edge& e : p_.edges) {
      if (may_strike(law.place, e)) add_edge(law, e, out);
    }
    for (const Stage& s : p_.stages) {
      if (!may_strike(law.place, s) || (law.kind == FaultKind::start_early && !has_port(s, Direction::input)) ||
          (law.kind == FaultKind::start_full && !has_port(s, Direction::output)))
        continue;
      Spot spot{{}, instances_.instances(s.id), s.firings * trips(s)};
      if (const auto* m = std::get_if<MatmulTiles>(&s.kind); m != nullptr && m->k_pages > 1) {
        // A block's first firing clears the accumulator that holds the block before, its last one reads it out.
        const bool begins = law.kind == FaultKind::accumulator_stale, ends = law.kind == FaultKind::accumulator_narrow;
        if (begins) spot = {{}, spot.instances, spot.count / m->k_pages - 1, m->k_pages, m->k_pages};
        if (ends) spot = {{}, spot.instances, spot.count / m->k_pages, m->k_pages, m->k_pages - 1};
      }
      if (!has_what_it_takes(law.kind, s)) continue;
      if (law.kind == FaultKind::partial_block) spot.first = 1, spot.count = spot.count > 0 ? spot.count - 1 : 0;
      if (law.kind == FaultKind::partial_trip) spot.first = s.firings, spot.count -= std::min(spot.count, s.firings);
      spot.fault.stage = StageAt{s.id, 0};
      add(law, spot, out);
    }
    if (law.place == FaultPlace::link) {
      for (const LinkId l : p_.links) add_link(law, l, out);
    }
    return out;
  }

 private:
  static void add(const FaultLaw& law, Spot spot, std::vector<Spot>& out) {
    if (spot.count == 0 || spot.instances == 0) return;
    spot.fault.kind = law.kind;
    out.push_back(spot);
  }
  static bool has_port(const Stage& s, Direction d) {
    return std::any_of(s.ports.begin(), s.ports.end(), [d](const Port& p) { return p.direction == d; });
  }
  // Whether a stage has the operands, or the counterpart, that a fault exchanges.
  bool has_what_it_takes(FaultKind kind, const Stage& s) const {
    if (kind == FaultKind::shard_swap) return other_shard(p_, s.id).has_value();
    if (kind == FaultKind::read_early) return waiting_loads_.count(s.id) != 0;
    return kind != FaultKind::sum_order || turned_round(s).has_value();
  }
  // Whether the chip that an edge starts from sends to a chip that this edge does not lead to.
  bool sends_elsewhere(const Edge& e) const {
    const ChipId here = p_.chip_of(p_.stage(e.from));
    return std::any_of(p_.edges.begin(), p_.edges.end(), [&](const Edge& other) {
      return !is_local(other.handshake) && p_.chip_of(p_.stage(other.from)) == here &&
             std::any_of(other.to.begin(), other.to.end(), [&](StageId to) {
               const ChipId there = p_.chip_of(p_.stage(to));
               return there != here && std::none_of(e.to.begin(), e.to.end(),
                                                    [&](StageId mine) { return p_.chip_of(p_.stage(mine)) == there; });
             });
    });
  }
  std::uint64_t trips(const Stage& s) const {
    return s.section.value < p_.sections.size() ? p_.sections[s.section.value].trips : 1;
  }
  // Pages that a stage's instance pushes into a buffer.
  std::uint64_t pushed(const Stage& s, BufferId b) const {
    for (std::size_t port = 0; port < s.ports.size(); ++port) {
      if (s.ports[port].direction != Direction::output || s.ports[port].buffer != b) continue;
      const auto counts = count_pages(p_, s, port, 0);
      return counts ? counts->pushed : 0;
    }
    return 0;
  }
  void add_buffer(const FaultLaw& law, const Buffer& b, std::vector<Spot>& out) const {
    const BufferEnds& ends = instances_.ends(b.id);
    if (!ends.producer || ends.landing) return;
    Spot spot{{}, instances_.instances(b.id), pushed(p_.stage(*ends.producer), b.id)};
    if (law.kind == FaultKind::depth_less) spot.count = b.depth_pages > 1 ? 1 : 0;
    if (law.kind == FaultKind::half_swap)
      spot.first = 1, spot.count = b.depth_pages > 1 && spot.count > 0 ? spot.count - 1 : 0;
    if (law.kind == FaultKind::collective_order) spot.count = other_collective(p_, b.id) ? 1 : 0;
    spot.fault.buffer = BufferAt{b.id, 0};
    add(law, spot, out);
  }
  void add_edge(const FaultLaw& law, const Edge& e, std::vector<Spot>& out) const {
    const std::uint32_t channels = instances_.channels_of(e.id, 0);
    if (channels == 0) return;
    const std::uint64_t sent = pushed(p_.stage(e.from), e.buffer);
    const std::uint64_t page_count = instances_.turn(instances_.first_channel(e.id, 0)).of(sent);
    Spot spot{{}, instances_.instances(e.from), page_count};
    if (law.place == FaultPlace::semaphore_edge) spot.count = sent;
    if (law.place == FaultPlace::barrier_edge) spot.count = 2 * sent;
    // Nothing can be ahead of a barrier's last generation.
    if (law.kind == FaultKind::arrive_early && spot.count > 0) --spot.count;
    if (law.kind == FaultKind::chunk_wrong) spot.count = e.chunk.of > 1 ? sent : 0;
    if (law.kind == FaultKind::page_chip && !sends_elsewhere(e)) spot.count = 0;
    spot.fault.edge = e.id;
    add(law, spot, out);
  }
  // Each page that crosses is a transfer at least.
  void add_link(const FaultLaw& law, LinkId l, std::vector<Spot>& out) const {
    Spot spot{};
    for (const Edge& e : p_.edges) {
      for (const auto& route : e.routes) {
        if (std::find(route.begin(), route.end(), l) == route.end()) continue;
        spot.count += instances_.instances(e.from) * pushed(p_.stage(e.from), e.buffer);
      }
    }
    spot.fault.link = l;
    add(law, spot, out);
  }

  const SpatialProgram& p_;
  Instances instances_;
  std::set<StageId> waiting_loads_;  // what they read stores of their section write
};

std::array<std::uint64_t, fault_fates> count_fates(const std::vector<FaultResult>& results,
                                                   std::optional<FaultKind> kind) {
  std::array<std::uint64_t, fault_fates> n{};
  for (const FaultResult& r : results) {
    if (!kind || r.planned.fault.kind == *kind) ++n[static_cast<std::size_t>(r.fate)];
  }
  return n;
}

// The codes that were first, with how often: "RDU7029 x 4, RDU7020".
std::string codes_of(const std::vector<FaultResult>& results, FaultKind kind) {
  std::map<int, std::uint64_t> times;
  for (const FaultResult& r : results) {
    if (r.planned.fault.kind != kind || r.run.errors.empty()) continue;
    if (r.fate == FaultFate::caught || r.fate == FaultFate::elsewhere) ++times[static_cast<int>(r.run.errors.front())];
  }
  std::string out;
  for (const auto& [code, n] : times) out += fmt::format("{}RDU{} x {}", out.empty() ? "" : ", ", code, n);
  return out;
}

std::string what_became(const FaultResult& r) {
  if (!r.run.ended) return fmt::format("the run was ended by signal {}", r.run.signal);
  if (r.fate == FaultFate::missed && r.run.status == ExitStatus::limit)
    return "the run went on for much longer than without it";
  if (r.fate == FaultFate::missed) return "the run passed, with other outputs or counts";
  return r.run.message;
}

}  // namespace

std::vector<PlannedFault> plan_faults(const SpatialProgram& program, const std::vector<FaultKind>& kinds,
                                      std::uint64_t seeds) {
  const Spots spots(program);
  std::vector<PlannedFault> out;
  for (const FaultKind kind : kinds) {
    const std::vector<Spot> places = spots.of(law_of(kind));
    for (std::uint64_t seed = 1; seed <= seeds && !places.empty(); ++seed) {
      // A stream of its own for every kind and seed.
      std::uint64_t state = split_mix_64(static_cast<std::uint64_t>(kind), seed);
      const auto below = [&](std::uint64_t n) { return draw(state) % n; };
      const Spot& spot = places[below(places.size())];
      PlannedFault planned{spot.fault, "", seed};
      const auto instance = static_cast<std::uint32_t>(below(spot.instances));
      if (planned.fault.buffer) planned.fault.buffer->instance = instance;
      if (planned.fault.stage) planned.fault.stage->instance = instance;
      planned.fault.instance = instance;
      planned.fault.nth = spot.first + spot.stride * below(spot.count);
      planned.text = to_text(planned.fault, program);
      out.push_back(std::move(planned));
    }
  }
  return out;
}

std::string_view name_of(FaultFate f) {
  constexpr std::array<std::string_view, fault_fates> names = {"caught", "elsewhere", "harmless", "missed", "idle"};
  return names[static_cast<std::size_t>(f)];
}

FaultFate judge(FaultKind kind, const IsolatedRun& whole, const IsolatedRun& broken) {
  if (!broken.ended) return FaultFate::missed;
  if (broken.struck.empty() || broken.struck.front() == 0) return FaultFate::idle;
  if (broken.status == ExitStatus::program_fault && !broken.errors.empty())
    return law_of(kind).checks.has(broken.errors.front()) ? FaultFate::caught : FaultFate::elsewhere;
  const bool same = broken.outputs == whole.outputs && broken.counts == whole.counts;
  return broken.status == ExitStatus::done && same ? FaultFate::harmless : FaultFate::missed;
}

std::string matrix_text(const std::vector<FaultKind>& kinds, const std::vector<FaultResult>& results) {
  std::string out = fmt::format("{:<18} {:>7} {:>9} {:>9} {:>7} {:>5}  first noticed by\n", "fault", "caught",
                                "elsewhere", "harmless", "missed", "idle");
  const auto line = [&](std::string_view name, const std::array<std::uint64_t, fault_fates>& n, const std::string& by) {
    std::string text = fmt::format("{:<18} {:>7} {:>9} {:>9} {:>7} {:>5}  {}", name, n[0], n[1], n[2], n[3], n[4], by);
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  for (const FaultKind k : kinds) {
    const auto n = count_fates(results, k);
    const bool none = std::all_of(n.begin(), n.end(), [](std::uint64_t v) { return v == 0; });
    line(law_of(k).name, n, none ? "the program has no place for it" : codes_of(results, k));
  }
  const auto all = count_fates(results, std::nullopt);
  line("all", all, "");
  std::uint64_t touched = 0;
  for (const FaultResult& r : results) touched += r.fate == FaultFate::harmless ? r.run.struck.front() : 0;
  out += fmt::format(
      "{} faults: {} caught, {} of them by another check than the one meant for it; {} harmless, with outputs and "
      "counts "
      "identical though they struck {} times; {} missed; {} found nothing to strike\n",
      results.size(), all[0] + all[1], all[1], all[2], touched, all[3], all[4]);
  for (const FaultResult& r : results) {
    if (r.fate != FaultFate::missed && r.fate != FaultFate::elsewhere) continue;
    out += fmt::format("{}  {} (seed {}): {}\n", name_of(r.fate), r.planned.text, r.planned.seed, what_became(r));
  }
  return out;
}

Json matrix_json(const std::vector<FaultKind>& kinds, const std::vector<FaultResult>& results) {
  Json j;
  j.set("schema", "rdusim.faults/1");
  const auto counts = [](const std::array<std::uint64_t, fault_fates>& n) {
    Json c;
    for (std::size_t f = 0; f < fault_fates; ++f) c.set(std::string(name_of(static_cast<FaultFate>(f))), n[f]);
    return c;
  };
  j.set("all", counts(count_fates(results, std::nullopt)));
  Json by_kind;
  for (const FaultKind k : kinds) by_kind.set(std::string(law_of(k).name), counts(count_fates(results, k)));
  j.set("kinds", std::move(by_kind));
  JsonArray faults;
  for (const FaultResult& r : results) {
    Json f;
    f.set("inject", r.planned.text).set("seed", r.planned.seed).set("fate", name_of(r.fate));
    f.set("struck", r.run.struck.empty() ? 0 : r.run.struck.front());
    f.set("verdict", r.run.ended ? Json(rdusim::name_of(r.run.verdict)) : Json());
    f.set("code", r.run.errors.empty() ? Json() : Json(fmt::format("RDU{}", static_cast<int>(r.run.errors.front()))));
    f.set("cycles", r.run.cycles);
    faults.push_back(std::move(f));
  }
  return j.set("faults", std::move(faults));
}

}  // namespace rdusim
