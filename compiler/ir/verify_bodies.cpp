// The forms of a Generic that program.h lists: what their maps are, and what bodies of each may say.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "compiler/ir/rules.h"

namespace rdusim {
namespace {

// What is wrong with an expression over `inputs` operands: nothing where it is well formed.
std::optional<std::string> fault_of(const Expr& expr, std::size_t inputs) {
  std::size_t depth = 0;
  for (const ExprNode& node : expr) {
    if (node.op == ExprOp::operand && node.index >= inputs) return fmt::format("operand {} of {}", node.index, inputs);
    const std::uint32_t pops = arity(node.op);
    if (depth < pops) return pops == 1 ? "an operation without operands" : "an operation without two operands";
    depth = depth - pops + 1;
    if (depth > most_stacked_operands) return fmt::format("more than {} values at once", most_stacked_operands);
  }
  if (depth != 1) return fmt::format("an expression that leaves {} values", depth);
  return std::nullopt;
}

bool has(const Expr& expr, ExprOp op) {
  return std::any_of(expr.begin(), expr.end(), [&](const ExprNode& node) { return node.op == op; });
}

bool floats_only(ExprOp op) {
  return op == ExprOp::divide || op == ExprOp::exponential || op == ExprOp::square_root || op == ExprOp::tanh ||
         op == ExprOp::erf || op == ExprOp::row || op == ExprOp::column || op == ExprOp::mask;
}

bool by_row_only(ExprOp op) {
  return op == ExprOp::row || op == ExprOp::column || op == ExprOp::mask;
}

bool identity(const AffineMap& map, std::size_t iterators) {
  if (map.size() != iterators) return false;
  for (std::size_t r = 0; r < map.size(); ++r) {
    if (map[r].size() != iterators + 1) return false;
    for (std::size_t c = 0; c <= iterators; ++c)
      if (map[r][c] != (c == r ? 1 : 0)) return false;
  }
  return true;
}

const AffineMap all_of_it = {{1, 0, 0}, {0, 1, 0}}, one_row = {{0, 0, 0}, {0, 1, 0}},
                one_column = {{1, 0, 0}, {0, 0, 0}}, one_element = {{0, 0, 0}, {0, 0, 0}};

// Requires a map for each input and one for the result.
bool maps_fit(const Generic& g) {
  if (folds_items(g)) {
    const AffineMap an_item = {{1, 0, 0}, {0, 1, 0}}, all_items = {{0, 1, 0}};
    return g.iterators == std::vector{IteratorKind::reduction, IteratorKind::parallel} && g.maps.back() == all_items &&
           std::all_of(g.maps.begin(), g.maps.end(),
                       [&](const AffineMap& m) { return m == an_item || m == all_items; });
  }
  if (!by_row(g))
    return g.iterators == std::vector{IteratorKind::parallel} &&
           std::all_of(g.maps.begin(), g.maps.end(), [&](const AffineMap& m) { return identity(m, 1); });
  return g.maps.back() == (joins_rows(g) ? one_column : all_of_it) &&
         std::all_of(g.maps.begin(), g.maps.end(), [&](const AffineMap& m) {
           return m == all_of_it || m == one_row || m == one_column || m == one_element;
         });
}

// Some operand has the rows of the result, and some has its columns: else nothing says how many there are.
bool has_extents(const Generic& g, const Expr& body) {
  bool rows = false, cols = false;
  for (const ExprNode& node : body) {
    if (node.op != ExprOp::operand || node.index + 1 >= g.maps.size()) continue;
    const AffineMap& m = g.maps[node.index];
    rows = rows || m == all_of_it || m == one_column;
    cols = cols || m == all_of_it || m == one_row;
  }
  return rows && cols;
}

}  // namespace

std::vector<std::string> body_faults(const Generic& g, std::size_t inputs) {
  std::vector<std::string> faults;
  if (g.maps.size() != inputs + 1) {
    faults.push_back(fmt::format("{} maps for {} inputs and a result", g.maps.size(), inputs));
    return faults;
  }
  if (!maps_fit(g)) {
    faults.emplace_back(
        "its maps are neither identities on parallel iterators nor a fold over items nor rows and columns, and this "
        "version runs no others");
    return faults;
  }
  if (g.shifted && (!by_row(g) || joins_rows(g) ||
                    !std::all_of(g.maps.begin(), g.maps.end(), [&](const AffineMap& m) { return m == all_of_it; })))
    faults.emplace_back("its operands are shifted, and it does not work on whole rows and columns of each");
  if (joins_rows(g) != g.join.has_value())
    faults.emplace_back(g.join ? "it joins what is no row" : "it reduces rows, and does not say by what");
  else if (g.join && *g.join != ExprOp::add && *g.join != ExprOp::maximum && *g.join != ExprOp::minimum)
    faults.emplace_back("it joins rows by something else than add, maximum or minimum");
  std::uint64_t phase = 0;
  for (const auto& run : g.bodies) {
    const auto wrong = [&](const std::string& what) {
      faults.push_back(fmt::format("the body of phase {} has {}", phase, what));
    };
    const bool reads_back = has(run.value, ExprOp::accumulator);
    if (const auto fault = fault_of(run.value, inputs)) wrong(*fault);
    if (phase == 0 && reads_back && !by_row(g))
      faults.emplace_back("its first body reads an accumulator that no firing has written");
    if (!by_row(g) &&
        std::any_of(run.value.begin(), run.value.end(), [](const ExprNode& node) { return by_row_only(node.op); }))
      wrong("a place or a mask, and does not work by row");
    if (by_row(g) && reads_back) wrong("an accumulator, and works by row");
    if (by_row(g) && !has_extents(g, run.value))
      wrong("no operand with the rows of the result, or none with its columns");
    if (is_integer(g.accumulator) &&
        std::any_of(run.value.begin(), run.value.end(), [](const ExprNode& node) { return floats_only(node.op); }))
      wrong(fmt::format("an operation on floats, and is computed in {}", name_of(g.accumulator)));
    phase += run.repeat;
  }
  return faults;
}

}  // namespace rdusim
