#include "compiler/ir/phase_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/ir/rates.h"
#include "compiler/ir/untimed_run.h"

namespace rdusim {
namespace {

constexpr std::uint64_t most_phases = 4096;
constexpr std::size_t most_runs = 12;  // of phases, of one stage
constexpr std::uint64_t most_exchange_steps = most_untimed_steps / 4;

// Phases that are alike and follow each other.
struct PhaseRun {
  std::uint64_t first = 0, phases = 0;
  std::vector<bool> ports;  // that move pages, or look at them
};

template <class T>
Cyclic<T> exchanged(const Cyclic<T>& cycle, std::uint64_t length, const PhaseExchange& x) {
  Cyclic<T> out;
  const auto take = [&](std::uint64_t from, std::uint64_t phases) {
    for (std::uint64_t f = from; f < from + phases; ++f) {
      const T& value = at_phase(cycle, f);
      if (!out.empty() && out.back().value == value)
        ++out.back().repeat;
      else
        out.push_back({1, value});
    }
  };
  const std::uint64_t between = x.first + x.first_phases, after = x.second + x.second_phases;
  take(0, x.first);
  take(x.second, x.second_phases);
  take(between, x.second - between);
  take(x.first, x.first_phases);
  take(after, length - after);
  if (out.size() == 1) out.front().repeat = 1;
  return out;
}

bool looks_back(const Generic& g) {
  if (folds_items(g) || joins_rows(g)) return true;
  return std::any_of(g.bodies.begin(), g.bodies.end(), [](const Run<Expr>& run) {
    return std::any_of(run.value.begin(), run.value.end(),
                       [](const ExprNode& node) { return node.op == ExprOp::accumulator; });
  });
}

// The runs of phases of a stage that may change places at all; none where it has no phases, or they depend on each other.
std::vector<PhaseRun> runs_of(const Stage& s) {
  const auto* g = std::get_if<Generic>(&s.kind);
  const auto* store = std::get_if<Store>(&s.kind);
  const auto cycle = hyperperiod(s);
  if (!cycle || *cycle < 2 || *cycle > most_phases) return {};
  if (g != nullptr ? looks_back(*g) : store == nullptr || store->chunks.size() != *cycle) return {};
  const auto alike = [&](std::uint64_t a, std::uint64_t b) {
    for (const Port& port : s.ports)
      if (at_phase(port.need, a) != at_phase(port.need, b) || at_phase(port.pop, a) != at_phase(port.pop, b) ||
          at_phase(port.reserve, a) != at_phase(port.reserve, b) || at_phase(port.push, a) != at_phase(port.push, b) ||
          at_phase(port.chunk, a) != at_phase(port.chunk, b))
        return false;
    return g == nullptr || at_phase(g->bodies, a) == at_phase(g->bodies, b);
  };
  std::vector<PhaseRun> runs;
  for (std::uint64_t f = 0; f < *cycle; ++f) {
    if (!runs.empty() && alike(f - 1, f)) {
      ++runs.back().phases;
      continue;
    }
    runs.push_back({f, 1, {}});
    for (const Port& port : s.ports)
      runs.back().ports.push_back(at_phase(port.need, f) != 0 || at_phase(port.pop, f) != 0 ||
                                  at_phase(port.reserve, f) != 0 || at_phase(port.push, f) != 0);
    if (runs.size() > most_runs) return {};
  }
  return runs;
}

bool apart(const PhaseRun& a, const PhaseRun& b) {
  for (std::size_t i = 0; i < a.ports.size(); ++i)
    if (a.ports[i] && b.ports[i]) return false;
  return true;
}

// Whether runs i and j may change places: each of them passes the other and all between.
bool may_exchange(const std::vector<PhaseRun>& runs, std::size_t i, std::size_t j) {
  if (!apart(runs[i], runs[j])) return false;
  for (std::size_t k = i + 1; k < j; ++k)
    if (!apart(runs[i], runs[k]) || !apart(runs[k], runs[j])) return false;
  return true;
}

// "takes from 'a' and pushes into 'b'", of what a stage does in a phase; `verbs`: of taking and of pushing.
std::string doing(const SpatialProgram& p, const Stage& s, std::uint64_t phase, std::string_view take,
                  std::string_view push) {
  std::string text;
  for (const Port& port : s.ports) {
    const bool in = port.direction == Direction::input;
    if (at_phase(in ? port.need : port.reserve, phase) == 0 && at_phase(in ? port.pop : port.push, phase) == 0)
      continue;
    text += fmt::format("{}{} '{}'", text.empty() ? "" : " and ", in ? take : push, p.buffer(port.buffer).name);
  }
  return text.empty() ? "wait" : text;
}

std::string phases_text(std::uint64_t first, std::uint64_t count) {
  return count == 1 ? fmt::format("phase {}", first) : fmt::format("phases {} to {}", first, first + count - 1);
}

}  // namespace

SpatialProgram with_exchange(SpatialProgram p, const PhaseExchange& x) {
  Stage& s = p.stages[x.stage.value];
  const std::uint64_t cycle = hyperperiod(s).value_or(1);
  for (Port& port : s.ports) {
    port.need = exchanged(port.need, cycle, x);
    port.pop = exchanged(port.pop, cycle, x);
    port.reserve = exchanged(port.reserve, cycle, x);
    port.push = exchanged(port.push, cycle, x);
    port.chunk = exchanged(port.chunk, cycle, x);
  }
  if (auto* g = std::get_if<Generic>(&s.kind)) g->bodies = exchanged(g->bodies, cycle, x);
  if (auto* store = std::get_if<Store>(&s.kind)) {
    Cyclic<Chunk> chunks;
    for (const Chunk& c : store->chunks) chunks.push_back({1, c});
    store->chunks.clear();
    for (const Run<Chunk>& run : exchanged(chunks, cycle, x))
      store->chunks.insert(store->chunks.end(), run.repeat, run.value);
  }
  return p;
}

std::optional<PhaseExchange> find_exchange(const SpatialProgram& p, const std::vector<StageId>& stages) {
  std::set<StageId> seen;
  for (const StageId id : stages) {
    if (!seen.insert(id).second) continue;
    const std::vector<PhaseRun> runs = runs_of(p.stage(id));
    for (std::size_t i = 0; i < runs.size(); ++i)
      for (std::size_t j = i + 1; j < runs.size(); ++j) {
        if (!may_exchange(runs, i, j)) continue;
        const PhaseExchange x{id, runs[i].first, runs[i].phases, runs[j].first, runs[j].phases};
        const SpatialProgram changed = with_exchange(p, x);
        const UntimedRun run = run_untimed(changed, p.header.native_tile, {most_exchange_steps, 0});
        if (!run.undecided && run.stuck == 0 && run.sums.empty()) return x;
      }
  }
  return std::nullopt;
}

std::string exchange_text(const SpatialProgram& p, const PhaseExchange& x) {
  const Stage& s = p.stage(x.stage);
  return fmt::format("let '{}' {} ({}) before it {} ({})", s.name, doing(p, s, x.second, "take from", "push into"),
                     phases_text(x.second, x.second_phases), doing(p, s, x.first, "takes from", "pushes into"),
                     phases_text(x.first, x.first_phases));
}

}  // namespace rdusim
