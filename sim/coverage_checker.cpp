#include "sim/coverage_checker.h"

#include <algorithm>
#include <cstring>

#include "compiler/certificate/moves.h"
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

// Whether all n bytes are `expected`. Looks at all of them, eight at a time.
bool all_are(const std::uint8_t* times, std::uint64_t n, std::uint8_t expected) {
  const std::uint64_t eight = 0x0101010101010101u * expected;
  std::uint64_t different = 0;
  std::uint64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, times + i, 8);
    different |= word ^ eight;
  }
  for (; i < n; ++i) different |= static_cast<std::uint64_t>(times[i] ^ expected);
  return different == 0;
}

}  // namespace

CoverageChecker::CoverageChecker(const Instances& instances, Violations& violations)
    : instances_(instances), violations_(violations), tensors_(instances.program().tensors.size()) {
  const SpatialProgram& p = instances.program();
  const std::vector<bool> stored = stored_tensors(p);
  for (const Tensor& t : p.tensors) {
    if (!stored[t.id.value]) continue;
    Writes& w = tensors_[t.id.value];
    w.stored = true;
    w.view = matrix_view(t);
    w.kept = kept_rows(p, t, w.view);
    w.times.resize((w.view.rows - rows_in(w.kept)) * w.view.cols);
  }
  for (const Stage& s : p.stages) {
    const auto* store = std::get_if<Store>(&s.kind);
    if (store != nullptr && store->later.empty() && s.section.value < p.sections.size())
      tensors_[store->tensor.value].trips = p.sections[s.section.value].trips;
  }
}

std::vector<CoverageChecker::RowRange> CoverageChecker::kept_rows(const SpatialProgram& program, const Tensor& t,
                                                                  const MatrixView& view) {
  std::vector<RowRange> boxes, kept;
  for (const certificate::Box& box : certificate::kept_by_appends(program, t)) {
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
  Bytes n = 0;
  for (const Tensor& t : program.tensors) {
    if (!stored[t.id.value]) continue;
    const MatrixView v = matrix_view(t);
    n += (v.rows - rows_in(kept_rows(program, t, v))) * v.cols;
  }
  return n;
}

void CoverageChecker::on(const PageStored& e) {
  Writes& w = tensors_[e.tensor.value];
  if (!w.stored) return;
  const PageTag& tag = e.tag;
  const SpatialProgram& p = instances_.program();
  if (tag.row < w.view.row || tag.col < w.view.col || tag.row - w.view.row + tag.rows > w.view.rows ||
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
  std::uint64_t row = range.begin / tag.cols;
  std::uint64_t col = range.begin % tag.cols;
  for (std::uint64_t at = range.begin, run = 0; at < range.end; at += run, ++row, col = 0) {
    run = std::min(range.end - at, tag.cols - col);
    const auto place = w.place_of(tag.row - w.view.row + row);
    if (!place) {
      violations_.found(Code::RDU7013, e.at, instances_.place(e.stage),
                        "'{}' writes {} of '{}' in trip {}; element ({}, {}) is of a row that no append replaces",
                        p.stage(e.stage.stage).name, to_string(tag, p), p.tensor(e.tensor).name, tag.trip,
                        tag.row + row, tag.col + col);
      continue;
    }
    std::uint8_t* times = w.times.data() + *place * w.view.cols + (tag.col - w.view.col + col);
    if (!all_are(times, run, expected)) {
      const auto* wrong = std::find_if(times, times + run, [&](std::uint8_t t) { return t != expected; });
      const bool twice = *wrong > expected;
      violations_.found(twice ? Code::RDU7013 : Code::RDU7014, e.at, instances_.place(e.stage),
                        "'{}' writes {} of '{}' in trip {}; element ({}, {}) was written {} times before",
                        p.stage(e.stage.stage).name, to_string(tag, p), p.tensor(e.tensor).name, tag.trip,
                        tag.row + row, tag.col + col + static_cast<std::uint64_t>(wrong - times), *wrong);
      std::for_each(times, times + run, [](std::uint8_t& t) { ++t; });
    } else {
      std::memset(times, static_cast<std::uint8_t>(expected + 1), run);
    }
  }
  w.written += range.size();
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
      std::replace(w.times.begin(), w.times.end(), static_cast<std::uint8_t>(r.done),
                   static_cast<std::uint8_t>(r.done + r.times));
      w.written += w.written / r.done * r.times;
    }
    for (std::uint64_t trip = r.done; trip <= store->later.size(); ++trip) {
      Writes& later = tensors_[tensor_of_trip(*store, trip).value];
      later.times = w.times;
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
    if (all_are(w.times.data(), w.times.size(), expected)) continue;
    const auto missing = std::find_if(w.times.begin(), w.times.end(), [&](std::uint8_t n) { return n != expected; });
    const auto count = std::count_if(w.times.begin(), w.times.end(), [&](std::uint8_t n) { return n != expected; });
    const auto first = static_cast<std::uint64_t>(missing - w.times.begin());
    violations_.found(Code::RDU7014, at, t.name,
                      "{} of {} elements of '{}' were not written {} times; the first is ({}, {}), written {} times",
                      count, w.times.size(), t.name, w.trips, w.view.row + w.row_at(first / w.view.cols),
                      w.view.col + first % w.view.cols, *missing);
  }
}

}  // namespace rdusim
