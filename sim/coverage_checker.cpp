#include "sim/coverage_checker.h"

#include <algorithm>
#include <set>

#include "compiler/ir/memory_order.h"
#include "compiler/ir/trips.h"

namespace rdusim {

namespace {

std::vector<bool> stored_tensors(const SpatialProgram& p) {
  std::vector<bool> stored(p.tensors.size());
  for (const Stage& s : p.stages) {
    if (const auto* store = std::get_if<Store>(&s.kind))
      for_each_tensor(*store, [&](TensorId t) { stored[t.value] = true; });
  }
  for (const Tensor& t : p.tensors) {
    if (t.role == TensorRole::output) stored[t.id.value] = true;
  }
  return stored;
}

template <class Ranges>
std::uint64_t rows_in(const Ranges& ranges) {
  std::uint64_t n = 0;
  for (const auto& r : ranges) n += r.end - r.begin;
  return n;
}

}  // namespace

CoverageChecker::CoverageChecker(const Instances& instances, Violations& violations)
    : instances_(instances), violations_(violations), tensors_(instances.program().tensors.size()) {
  const SpatialProgram& p = instances.program();
  const std::vector<bool> stored = stored_tensors(p);
  const certificate::AppendedRows appended(p);
  for (const Tensor& t : p.tensors) {
    if (!stored[t.id.value]) continue;
    Writes& w = tensors_[t.id.value];
    w.stored = true;
    w.view = matrix_view(t);
    w.kept = kept_rows(appended, t, w.view);
    w.times = WriteCounts(w.view.rows - rows_in(w.kept), w.view.cols);
  }
  for (const Stage& s : p.stages) {
    const auto* store = std::get_if<Store>(&s.kind);
    if (store != nullptr && store->later.empty() && s.section.value < p.sections.size())
      tensors_[store->tensor.value].trips = p.sections[s.section.value].trips;
  }
  reader_of_.resize(p.stages.size());
  for (const MemoryOrder& order : memory_orders(p))
    for (const StageId id : order.loads) {
      const Stage& s = p.stage(id);
      const auto& load = std::get<Load>(s.kind);
      if (reader_of_[id.value] == 0) {
        Reader r;
        r.load = &load;
        r.places = PagePlaces(load.pattern, p.tensor(load.tensor), p.header.native_tile);
        r.firings = s.firings;
        std::set<std::uint32_t> sets;
        for (std::uint32_t i = 0; i < instances.instances(id); ++i)
          r.reads.push_back(i >= load.multicast_set.size() || sets.insert(load.multicast_set[i]).second);
        readers_.push_back(std::move(r));
        reader_of_[id.value] = static_cast<std::uint32_t>(readers_.size());
      }
      Reader& r = readers_[reader_of_[id.value] - 1];
      r.lag = std::max(r.lag, order.lag);
    }
}

std::vector<CoverageChecker::RowRange> CoverageChecker::kept_rows(const certificate::AppendedRows& appended,
                                                                  const Tensor& t, const MatrixView& view) {
  std::vector<RowRange> boxes, kept;
  for (const certificate::Box& box : appended.kept(t)) {
    const std::uint64_t begin = std::max(box.row, view.row), end = std::min(box.row + box.rows, view.row + view.rows);
    if (begin < end) boxes.push_back({begin - view.row, end - view.row});
  }
  std::sort(boxes.begin(), boxes.end(), [](const RowRange& x, const RowRange& y) { return x.begin < y.begin; });
  for (const RowRange& box : boxes) {
    if (kept.empty() || kept.back().end < box.begin) {
      kept.push_back(box);
    } else {
      kept.back().end = std::max(kept.back().end, box.end);
    }
  }
  return kept;
}

std::optional<std::uint64_t> CoverageChecker::Writes::place_of(std::uint64_t row) const {
  std::uint64_t before = 0;
  for (const RowRange& k : kept) {
    if (row < k.begin) break;
    if (row < k.end) return std::nullopt;
    before += k.end - k.begin;
  }
  return row - before;
}

std::uint64_t CoverageChecker::Writes::row_at(std::uint64_t place) const {
  for (const RowRange& k : kept)
    if (place >= k.begin) place += k.end - k.begin;
  return place;
}

Bytes CoverageChecker::bytes_needed(const SpatialProgram& program) {
  const std::vector<bool> stored = stored_tensors(program);
  const certificate::AppendedRows appended(program);
  Bytes n = 0;
  for (const Tensor& t : program.tensors) {
    if (!stored[t.id.value]) continue;
    const MatrixView v = matrix_view(t);
    const std::uint64_t rows = v.rows - rows_in(kept_rows(appended, t, v));
    n += WriteCounts::bytes_of_heads(rows, v.cols) + rows * v.cols / 8;
  }
  return n;
}

void CoverageChecker::on(const FiringStarted& e) {
  const std::uint32_t which = reader_of_[e.stage.stage.value];
  if (which == 0) return;
  const Reader& r = readers_[which - 1];
  const std::uint64_t trip = e.firing / r.firings;
  if (trip < r.lag || e.stage.instance >= r.reads.size() || !r.reads[e.stage.instance]) return;
  const TensorId tensor = tensor_of_trip(*r.load, trip);
  const Writes& w = tensors_[tensor.value];
  if (!w.stored || w.trips != 1) return;
  // Rows that are named by indices may be any.
  Place at{w.view.row, w.view.col, w.view.rows, w.view.cols};
  if (!r.load->indexed) {
    const auto place = r.places.at(e.stage.instance, e.firing % r.firings);
    if (!place) return;
    at = *place;
  }
  const auto look = [&](std::uint64_t row, std::uint64_t rows) {
    const auto place = w.place_of(row);
    if (!place) return true;
    const auto found = w.times.other_than(1, {*place, rows, at.col - w.view.col, at.cols});
    if (!found || found->times != 0) return true;  // what is written twice is another violation
    const SpatialProgram& p = instances_.program();
    violations_.found(Code::RDU7031, e.at, instances_.place(e.stage),
                      "'{}' reads {} of '{}' in firing {}, and element ({}, {}) has not been written",
                      p.stage(e.stage.stage).name, to_string(at), p.tensor(tensor).name, e.firing,
                      w.view.whole_row_of(row + (found->row - *place)), w.view.col + found->col);
    return false;
  };
  const std::uint64_t first = w.view.row_of(at.row).value_or(0);
  if (w.kept.empty()) {
    look(first, at.rows);
  } else {
    for (std::uint64_t row = first; row < first + at.rows && look(row, 1); ++row) continue;
  }
}

void CoverageChecker::on(const PageStored& e) {
  Writes& w = tensors_[e.tensor.value];
  if (!w.stored) return;
  const PageTag& tag = e.tag;
  const SpatialProgram& p = instances_.program();
  const auto first = w.view.row_of(tag.row);
  const auto last = w.view.row_of(tag.row + std::max(tag.rows, 1U) - 1);
  if (!first || !last || *last - *first + 1 != std::max(tag.rows, 1U) || tag.col < w.view.col ||
      tag.col - w.view.col + tag.cols > w.view.cols) {
    violations_.found(Code::RDU7029, e.at, instances_.place(e.stage), "'{}' stores {}, which does not lie in '{}'",
                      p.stage(e.stage.stage).name, to_string(tag, p), p.tensor(e.tensor).name);
    return;
  }
  const std::uint64_t elements = std::uint64_t{tag.rows} * tag.cols;
  const ElementRange range = chunk_range(elements, tag.chunk, std::max(tag.chunks, 1U));
  // Of a tensor that one trip alone writes, nothing is there before.
  const auto expected = static_cast<std::uint8_t>(w.trips == 1 ? 0 : tag.trip);
  if (range.size() == 0) return;
  // A run of the page's elements: the end of a row, whole rows, the beginning of one.
  for (std::uint64_t at = range.begin; at < range.end;) {
    const std::uint64_t row = *first + at / tag.cols, col = at % tag.cols;
    const std::uint64_t left = range.end - at;
    std::uint64_t rows = col == 0 ? std::max<std::uint64_t>(left / tag.cols, 1) : 1;
    if (!w.kept.empty()) rows = 1;
    const std::uint64_t cols = std::min<std::uint64_t>(left, tag.cols - col);
    at += rows * cols;
    if (const auto place = w.place_of(row)) {
      written(e, w, row, {*place, rows, tag.col - w.view.col + col, cols}, expected);
    } else {
      violations_.found(Code::RDU7013, e.at, instances_.place(e.stage),
                        "'{}' writes {} of '{}' in trip {}; element ({}, {}) is of a row that no append replaces",
                        p.stage(e.stage.stage).name, to_string(tag, p), p.tensor(e.tensor).name, tag.trip,
                        w.view.whole_row_of(row), tag.col + col);
    }
  }
  w.written += range.size();
}

void CoverageChecker::written(const PageStored& e, Writes& w, std::uint64_t row, const WriteCounts::Rect& at,
                              std::uint8_t expected) {
  const SpatialProgram& p = instances_.program();
  if (const auto wrong = w.times.other_than(expected, at)) {
    violations_.found(wrong->times > expected ? Code::RDU7013 : Code::RDU7014, e.at, instances_.place(e.stage),
                      "'{}' writes {} of '{}' in trip {}; element ({}, {}) was written {} times before",
                      p.stage(e.stage.stage).name, to_string(e.tag, p), p.tensor(e.tensor).name, e.tag.trip,
                      w.view.whole_row_of(row + (wrong->row - at.row)), w.view.col + wrong->col, wrong->times);
  }
  w.times.add(at, pool_);
}

void CoverageChecker::repeated(const Repetition& r) {
  std::vector<bool> met(tensors_.size(), false);
  for (const Stage& s : instances_.program().stages) {
    const auto* store = std::get_if<Store>(&s.kind);
    if (store == nullptr || s.section != r.section) continue;
    const TensorId last = tensor_of_trip(*store, r.done - 1);
    Writes& w = tensors_[last.value];
    if (!w.stored || met[last.value]) continue;
    met[last.value] = true;
    if (store->later.empty()) {
      // What no launch writes stays as it is.
      w.times.replace(static_cast<std::uint8_t>(r.done), static_cast<std::uint8_t>(r.done + r.times));
      w.written += w.written / r.done * r.times;
    }
    for (std::uint64_t trip = r.done; trip <= store->later.size(); ++trip) {
      Writes& later = tensors_[tensor_of_trip(*store, trip).value];
      later.times.copy(w.times, pool_);
      later.written = w.written;
    }
  }
}

void CoverageChecker::finish(Cycle at) {
  const SpatialProgram& p = instances_.program();
  for (const Tensor& t : p.tensors) {
    const Writes& w = tensors_[t.id.value];
    if (!w.stored) continue;
    const auto expected = static_cast<std::uint8_t>(w.trips);
    const auto missing = w.times.other_than(expected);
    if (!missing) continue;
    violations_.found(Code::RDU7014, at, t.name,
                      "{} of {} elements of '{}' were not written {} times; the first is ({}, {}), written {} times",
                      w.times.count_other_than(expected), w.times.elements(), t.name, w.trips,
                      w.view.whole_row_of(w.row_at(missing->row)), w.view.col + missing->col, missing->times);
  }
}

}  // namespace rdusim
