#include "models/units/sum_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rdusim {
namespace {

// Longer cycles are left as they are.
constexpr std::uint64_t most_phases = 1 << 12;

template <class T>
std::vector<T> spread_out(const Cyclic<T>& c, std::uint64_t phases) {
  std::vector<T> out;
  for (std::uint64_t f = 0; f < phases; ++f) out.push_back(at_phase(c, f));
  return out;
}

template <class T>
Cyclic<T> one_by_one(std::vector<T> values) {
  Cyclic<T> c;
  for (T& v : values) c.push_back({1, std::move(v)});
  return c;
}

std::vector<ExprNode*> operands_of(Expr& body) {
  std::vector<ExprNode*> operands;
  for (ExprNode& node : body)
    if (node.op == ExprOp::operand) operands.push_back(&node);
  return operands;
}

// The phases from `first` on, `period` of them, where they are one sum: one operand each, all but the first added to
// what is held.
std::vector<std::size_t> phases_of_sum(std::vector<Expr>& bodies, std::size_t first, std::size_t period) {
  std::vector<std::size_t> phases;
  for (std::size_t f = first; f < first + period; ++f) {
    const bool goes_on =
        std::any_of(bodies[f].begin(), bodies[f].end(), [](const ExprNode& n) { return n.op == ExprOp::accumulator; });
    if (operands_of(bodies[f]).size() != 1 || goes_on != (f != first)) return {};
    phases.push_back(f);
  }
  return phases;
}

// Phases `a` and `b` take each other's operand.
void exchange_phases(Stage& s, std::vector<Expr>& bodies, std::size_t a, std::size_t b) {
  std::swap(operands_of(bodies[a]).front()->index, operands_of(bodies[b]).front()->index);
  const auto exchange = [&](auto& cyclic) {
    if (cyclic.empty()) return;
    auto values = spread_out(cyclic, bodies.size());
    std::swap(values[a], values[b]);
    cyclic = one_by_one(std::move(values));
  };
  for (Port& p : s.ports)
    if (p.direction == Direction::input) exchange(p.need), exchange(p.pop), exchange(p.chunk);
}

}  // namespace

std::optional<Stage> turned_round(const Stage& sum) {
  Stage out = sum;
  auto* g = std::get_if<Generic>(&out.kind);
  if (g == nullptr || makes_values(*g) || g->bodies.empty()) return std::nullopt;
  const std::uint64_t period = cycle_length(g->bodies);
  std::uint64_t cycle = period;
  for (const Port& p : out.ports)
    for (const std::uint64_t of : {cycle_length(p.need), cycle_length(p.pop), cycle_length(p.chunk)})
      if (of != 0 && cycle <= most_phases) cycle = std::lcm(cycle, of);
  if (cycle > most_phases) return std::nullopt;
  std::vector<Expr> bodies = spread_out(g->bodies, cycle);
  bool changed = false;
  for (Expr& body : bodies) {
    const std::vector<ExprNode*> operands = operands_of(body);
    for (std::size_t i = 0; operands.size() > 2 && i < operands.size() / 2; ++i)
      std::swap(operands[i]->index, operands[operands.size() - 1 - i]->index), changed = true;
  }
  for (std::size_t first = 0; first < bodies.size(); first += period) {
    const std::vector<std::size_t> ours = phases_of_sum(bodies, first, period);
    for (std::size_t i = 0; ours.size() > 2 && i < ours.size() / 2; ++i)
      exchange_phases(out, bodies, ours[i], ours[ours.size() - 1 - i]), changed = true;
  }
  if (!changed) return std::nullopt;
  g->bodies = one_by_one(std::move(bodies));
  return out;
}

}  // namespace rdusim
