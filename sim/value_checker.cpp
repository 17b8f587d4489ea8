#include "sim/value_checker.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/page_frames.h"

namespace rdusim {

namespace {

certificate::Whole whole_of(const PageFrame& frame) {
  return {frame.begin(), frame.end()};
}

}  // namespace

ValueChecker::ValueChecker(const Instances& instances, Violations& violations)
    : instances_(instances), violations_(violations) {
  const SpatialProgram& p = instances.program();
  const bool any = std::any_of(p.stages.begin(), p.stages.end(), [](const Stage& s) {
    if (const auto* load = std::get_if<Load>(&s.kind)) return load->indexed;
    const auto* generic = std::get_if<Generic>(&s.kind);
    return generic != nullptr && makes_values(*generic);
  });
  if (!any) return;
  makers_.resize(p.stages.size());
  rows_.resize(instances.stages());
  contraction_ = contractions(p);
  const auto operands = page_operands(p);
  const std::vector<PageFrame> frames = page_frames(p);
  for (const Stage& s : p.stages) {
    if (const auto* load = std::get_if<Load>(&s.kind); load != nullptr && load->indexed && !s.ports.empty())
      makers_[s.id.value].indices = operands[s.ports[0].buffer.value];
    const auto* generic = std::get_if<Generic>(&s.kind);
    if (generic == nullptr || !makes_values(*generic)) continue;
    Maker& maker = makers_[s.id.value];
    maker.generic = generic;
    maker.row_pages = std::max<std::uint64_t>(cycle_length(generic->bodies), 1);
    std::vector<const PageFrame*> wholes;
    for (const Port& port : s.ports) {
      if (port.direction != Direction::input) continue;
      Input input{operands[port.buffer.value], whole_of(frames[port.buffer.value]), true, true};
      if (by_row(*generic) && maker.inputs.size() < generic->maps.size()) {
        const AffineMap& map = generic->maps[maker.inputs.size()];
        input.has_rows = map.size() == 2 && map[0].at(0) != 0;
        input.has_cols = map.size() == 2 && map[1].at(1) != 0;
      }
      maker.inputs.push_back(std::move(input));
      wholes.push_back(&frames[port.buffer.value]);
    }
    maker.whole = whole_of(row_frame(wholes));
  }
}

void ValueChecker::wrong(const PartialFolded& e, const std::string& expected) {
  const SpatialProgram& p = instances_.program();
  violations_.found(Code::RDU7029, e.at, instances_.place(e.stage), "firing {} of '{}' takes {} towards {}, {}",
                    e.firing, p.stage(e.stage.stage).name, to_string(e.added, p), to_string(e.sum, p), expected);
}

// Whether the page is one that a rotary turns the sum's columns with, and the first of its kind in this firing: half a
// head has both halves and the two angles of its columns. Of another operator nothing is known.
bool ValueChecker::turns_with(const PartialFolded& e) {
  const SpatialProgram& p = instances_.program();
  const auto& origin = p.stage(e.stage.stage).origin;
  if (!p.operators || !origin || origin->value >= p.operators->operators.size()) return true;
  const Operator& op = p.operators->operators[origin->value];
  if (op.kind != OperatorKind::rotary || op.in.size() != 3 || op.attributes.heads == 0) return true;
  const auto columns = static_cast<std::uint64_t>(p.operators->operand(op.out).shape.back());
  const std::uint64_t half = std::max<std::uint64_t>(columns / op.attributes.heads / 2, 1);
  const std::uint64_t in_half = e.sum.col % half, head = e.sum.col / (2 * half) * (2 * half);
  Row& row = rows_[instances_.of(e.stage)];
  if (row.firing != e.firing) row = {e.firing, 0, 0, 0};
  const bool cos = e.added.operand == storage_of(*p.operators, op.in[1]);
  const bool sin = e.added.operand == storage_of(*p.operators, op.in[2]), second = e.added.col >= head + half;
  const std::uint64_t due = cos || sin ? in_half : head + (second ? half : 0) + in_half;
  // One table may serve as both.
  const unsigned which = !cos && !sin ? (second ? 1 : 0) : cos && !(sin && (row.turned >> 2 & 1) != 0) ? 2 : 3;
  const bool again = (row.turned >> which & 1) != 0;
  row.turned = static_cast<std::uint8_t>(row.turned | 1u << which);
  return e.added.col == due && !again;
}

// Whether the page may be what comes by this port, towards the block that is made.
bool ValueChecker::fits(const PartialFolded& e, const Maker& maker, const Input& input) const {
  if (input.operand && *input.operand != e.added.operand) return false;
  if (maker.generic->shifted)
    return e.added.row == e.sum.row && e.added.rows == e.sum.rows && e.added.cols == e.sum.cols;
  if (!by_row(*maker.generic))
    return place_of(e.added) == place_of(e.sum) && e.added.chunk == e.sum.chunk && e.added.chunks == e.sum.chunks;
  if (input.whole.size() < 2 || maker.whole.size() < 2) return true;  // of no place: the verifier refuses it
  certificate::Box made{e.sum.row, e.sum.col, e.sum.rows, e.sum.cols};
  if (joins_rows(*maker.generic)) made.col = e.added.col, made.cols = e.added.cols;
  const auto due = certificate::due_for(made, maker.whole, {{}, &input.whole, input.has_rows, input.has_cols});
  return due && *due == certificate::Box{e.added.row, e.added.col, e.added.rows, e.added.cols};
}

void ValueChecker::on(const PartialFolded& e) {
  if (!is_value(e.sum.operand)) return;
  const Maker& maker = makers_[e.stage.stage.value];
  // Who makes no values may hand one on as it is: whether it is the one that is due, its store's place says.
  const bool as_it_is = e.added.operand == e.sum.operand && place_of(e.added) == place_of(e.sum) &&
                        e.added.chunk == e.sum.chunk && e.added.chunks == e.sum.chunks && e.added.trip == e.sum.trip;
  if (maker.generic == nullptr && !maker.indices && as_it_is) return;
  if (maker.indices && maker_of(e.sum.operand) == e.stage.stage) return check_gathered(e, *maker.indices);
  if (maker.generic == nullptr || maker_of(e.sum.operand) != e.stage.stage)
    return wrong(e, "which is none of its values");
  if (e.added.trip != e.sum.trip) return wrong(e, "which is of another trip");
  // Sums come by ports of which no operand is known; what a port is known to bring does not come by one of those.
  const bool known = std::any_of(maker.inputs.begin(), maker.inputs.end(),
                                 [&](const Input& input) { return input.operand == e.added.operand; });
  const auto fitting = std::find_if(maker.inputs.begin(), maker.inputs.end(), [&](const Input& input) {
    return (!known || input.operand.has_value()) && fits(e, maker, input);
  });
  if (fitting == maker.inputs.end() || (maker.generic->shifted && !turns_with(e)))
    return wrong(e, "and none of its ports brings that page for it");
  if (joins_rows(*maker.generic) && fitting->has_cols) follow_row(e, maker);
  check_complete(e);
}

// Rows of a table lie where their indices do.
void ValueChecker::check_gathered(const PartialFolded& e, OperandId indices) {
  const ElementRange part =
      chunk_range(std::uint64_t{e.added.rows} * e.added.cols, e.added.chunk, std::max(e.added.chunks, 1U));
  if (e.added.operand != indices || e.added.trip != e.sum.trip || e.added.rows != 1 ||
      e.sum.row != e.added.col + part.begin || e.sum.rows != part.size())
    wrong(e, "whose rows lie where their indices do");
}

void ValueChecker::follow_row(const PartialFolded& e, const Maker& maker) {
  Row& row = rows_[instances_.of(e.stage)];
  const std::uint64_t at = e.firing % maker.row_pages;
  const std::uint64_t begin = e.added.col, end = begin + e.added.cols;
  const bool again = row.firing == e.firing;  // another operand of the same firing
  const std::uint64_t due = again ? row.begin : at == 0 ? 0 : row.end;
  if (begin != due || (again && end != row.end))
    wrong(e, fmt::format("whose row goes on at column {}", due));
  else if (at + 1 == maker.row_pages && !maker.whole.empty() && end != maker.whole.back())
    wrong(e, fmt::format("the last of a row of {} columns", maker.whole.back()));
  row = {e.firing, begin, end, 0};
}

// A sum that a value is made of holds [0, k) of its contraction, each index once.
void ValueChecker::check_complete(const PartialFolded& e) {
  const OperandId operand = e.added.operand;
  if (is_value(operand) || table_ == nullptr) return;
  const bool sum = operand.value < contraction_.size() && contraction_[operand.value].op && e.added.provenance != 0;
  if (!sum) return;
  const std::uint64_t next = followed_until(table_->runs(e.added.provenance), ranges_);
  const std::uint64_t k = contraction_[operand.value].k.value_or(ranges_.empty() ? 0 : ranges_.back().second);
  if (next == k && k != 0) return;
  const SpatialProgram& p = instances_.program();
  violations_.found(Code::RDU7009, e.at, instances_.place(e.stage),
                    "firing {} of '{}' makes a value of {}, which holds [0, {}) of a contraction of [0, {})", e.firing,
                    p.stage(e.stage.stage).name, to_string(e.added, p), next, k);
}

}  // namespace rdusim
