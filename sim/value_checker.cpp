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

// Whether the page may be what comes by this port, towards the block that is made.
bool ValueChecker::fits(const PartialFolded& e, const Maker& maker, const Input& input) const {
  if (input.operand && *input.operand != e.added.operand) return false;
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
  if (maker.generic == nullptr || maker_of(e.sum.operand) != e.stage.stage)
    return wrong(e, "which is none of its values");
  if (e.added.trip != e.sum.trip) return wrong(e, "which is of another trip");
  // Sums come by ports of which no operand is known; what a port is known to bring does not come by one of those.
  const bool known = std::any_of(maker.inputs.begin(), maker.inputs.end(),
                                 [&](const Input& input) { return input.operand == e.added.operand; });
  const auto fitting = std::find_if(maker.inputs.begin(), maker.inputs.end(), [&](const Input& input) {
    return (!known || input.operand.has_value()) && fits(e, maker, input);
  });
  if (fitting == maker.inputs.end()) return wrong(e, "and none of its ports brings that page for it");
  if (joins_rows(*maker.generic) && fitting->has_cols) follow_row(e, maker);
  check_complete(e);
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
  row = {e.firing, begin, end};
}

// A sum that a value is made of holds [0, k) of its contraction, each index once.
void ValueChecker::check_complete(const PartialFolded& e) {
  const OperandId operand = e.added.operand;
  if (is_value(operand) || table_ == nullptr) return;
  const bool sum = operand.value < contraction_.size() && contraction_[operand.value].op && e.added.provenance != 0;
  if (!sum) return;
  const std::uint64_t next = followed_until(table_->contributions(e.added.provenance), ranges_);
  const std::uint64_t k = contraction_[operand.value].k.value_or(ranges_.empty() ? 0 : ranges_.back().second);
  if (next == k && k != 0) return;
  const SpatialProgram& p = instances_.program();
  violations_.found(Code::RDU7009, e.at, instances_.place(e.stage),
                    "firing {} of '{}' makes a value of {}, which holds [0, {}) of a contraction of [0, {})", e.firing,
                    p.stage(e.stage.stage).name, to_string(e.added, p), next, k);
}

}  // namespace rdusim
