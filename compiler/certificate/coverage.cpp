// Write coverage: a sweep over the rectangles that the stores write, instance by instance.
#include <algorithm>
#include <map>
#include <set>

#include "compiler/certificate/moves.h"
#include "compiler/certificate/obligations.h"
#include "compiler/certificate/pages.h"
#include "compiler/certificate/trips.h"
#include "compiler/support/summation_tree.h"

namespace rdusim::certificate {

namespace {

constexpr std::uint64_t most_writes = std::uint64_t{1} << 23;

// A part of a page that is written: elements [begin, end) of a box.
struct Write {
  Box box;
  std::uint64_t begin = 0, end = 0;
  friend auto operator<=>(const Write&, const Write&) = default;
};

// Why `boxes` do not tile `whole`; empty: they do.
std::string gap_or_overlap(std::vector<Box> boxes, const Box& whole) {
  std::sort(boxes.begin(), boxes.end());
  std::uint64_t area = 0;
  for (const Box& b : boxes) {
    area = sum(area, b.elements());
    if (b.row < whole.row || b.col < whole.col || b.row + b.rows > whole.row + whole.rows ||
        b.col + b.cols > whole.col + whole.cols)
      return fmt::format("{} lies outside of {}", to_string(b), to_string(whole));
  }
  // Sweep down the rows: open boxes by column never meet; those that end above the row at hand are closed.
  std::map<std::uint64_t, Box> open;                 // by first column
  std::multimap<std::uint64_t, std::uint64_t> ends;  // last row + 1 -> first column
  for (const Box& b : boxes) {
    if (b.elements() == 0) continue;
    while (!ends.empty() && ends.begin()->first <= b.row) {
      open.erase(ends.begin()->second);
      ends.erase(ends.begin());
    }
    const auto next = open.lower_bound(b.col);
    if (next != open.end() && next->first < b.col + b.cols)
      return fmt::format("{} and {} are both written", to_string(next->second), to_string(b));
    if (next != open.begin() && std::prev(next)->second.col + std::prev(next)->second.cols > b.col)
      return fmt::format("{} and {} are both written", to_string(std::prev(next)->second), to_string(b));
    open.emplace(b.col, b);
    ends.emplace(b.row + b.rows, b.col);
  }
  if (area == whole.elements()) return {};
  // Something is missing. Between two rows at which a box begins or ends the same columns are covered: the first strip
  // with a gap has a witness.
  std::set<std::uint64_t> cuts{whole.row, whole.row + whole.rows};
  for (const Box& b : boxes) cuts.insert({b.row, b.row + b.rows});
  std::size_t first = 0;
  std::map<std::uint64_t, Box> strip;
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    std::erase_if(strip, [&](const auto& entry) { return entry.second.row + entry.second.rows <= *cut; });
    for (; first < boxes.size() && boxes[first].row <= *cut; ++first)
      if (boxes[first].elements() != 0) strip.emplace(boxes[first].col, boxes[first]);
    std::uint64_t covered = whole.col;
    for (const auto& [col, b] : strip) {
      if (col != covered) return fmt::format("element ({}, {}) is not written", *cut, covered);
      covered = col + b.cols;
    }
    if (covered != whole.col + whole.cols) return fmt::format("element ({}, {}) is not written", *cut, covered);
  }
  return {};
}

// The same of a whole in several parts, rising, each below the one before.
std::string gap_or_overlap(const std::vector<Box>& boxes, const std::vector<Box>& whole) {
  std::vector<std::vector<Box>> of(whole.size());
  for (const Box& b : boxes) {
    const auto next = std::upper_bound(whole.begin(), whole.end(), b.row,
                                       [](std::uint64_t row, const Box& part) { return row < part.row; });
    of[next == whole.begin() ? 0 : static_cast<std::size_t>(next - whole.begin()) - 1].push_back(b);
  }
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (std::string wrong = gap_or_overlap(std::move(of[i]), whole[i]); !wrong.empty()) return wrong;
  return {};
}

std::uint64_t elements_of(const std::vector<Box>& boxes) {
  std::uint64_t n = 0;
  for (const Box& b : boxes) n = sum(n, b.elements());
  return n;
}

// The boxes that are written whole, of writes that may be parts of pages.
std::string join_parts(std::vector<Write> writes, std::vector<Box>& boxes) {
  std::sort(writes.begin(), writes.end());
  for (std::size_t i = 0; i < writes.size();) {
    const Box& box = writes[i].box;
    std::uint64_t written = 0;
    for (; i < writes.size() && writes[i].box == box; ++i) {
      if (writes[i].begin == writes[i].end) continue;  // a chunk of a page with fewer elements than chunks
      if (writes[i].begin != written)
        return fmt::format("elements [{}, {}) of page {} are {}", std::min(written, writes[i].begin),
                           std::max(written, writes[i].begin), to_string(box),
                           writes[i].begin > written ? "not written" : "written twice");
      written = writes[i].end;
    }
    if (written != box.elements())
      return fmt::format("elements [{}, {}) of page {} are not written", written, box.elements(), to_string(box));
    boxes.push_back(box);
  }
  return {};
}

}  // namespace

Finding write_coverage(const Subject& s, const Provenance& provenance, std::vector<OutputClaim>& outputs) {
  if (!s.unreadable.empty()) return unchecked("{}", s.unreadable);
  Finding finding;
  const auto fault = [&](Finding f) {
    if (finding.status == ProofStatus::proved) finding = std::move(f);
  };
  std::map<TensorId, std::vector<const Stage*>> stores;
  std::uint64_t writes_in_all = 0;
  for (const Stage& stage : s.p.stages)
    if (const auto* store = std::get_if<Store>(&stage.kind)) {
      for (std::uint64_t trip = 0; trip <= store->later.size(); ++trip) stores[of_trip(*store, trip)].push_back(&stage);
      writes_in_all = sum(writes_in_all, product(stage.firings, s.instances(stage)));
    }
  // Slices of one operand, each once however many hold it.
  std::map<OperandId, std::map<std::vector<Box>, std::uint32_t>> slices;
  std::map<OperandId, const Tensor*> any;  // of the operand: they agree on the whole
  for (const Tensor& t : s.p.tensors) {
    any[t.operand] = &t;
    const bool must = t.role == TensorRole::output || t.role == TensorRole::intermediate;
    if (!must && stores.count(t.id) == 0) continue;
    if (const std::string wrong = unreadable(t); !wrong.empty()) {
      fault(unchecked("{}", wrong));
      continue;
    }
    ++slices[t.operand][slice_of(t)];
    if (must && stores.count(t.id) == 0) fault(refuted("tensor '{}' is never stored", t.name));
  }
  const AppendedRows appended(s.p);
  for (const auto& [id, stages] : stores) {
    const Tensor& t = s.p.tensor(id);
    const std::vector<Box> slice = slice_of(t);
    OutputClaim claim{id, elements_of(slice), slices[t.operand][slice], 1};
    if (const auto n = provenance.contributions.find(id); n != provenance.contributions.end())
      claim.contributions = n->second;
    outputs.push_back(claim);
    if (t.replicas != claim.replicas)
      fault(refuted("tensor '{}' declares {} replicas; {} tensors hold just its slice", t.name, t.replicas,
                    claim.replicas));
    if (writes_in_all > most_writes) continue;
    std::vector<Write> writes;
    for (const Stage* stage : stages) {
      const auto& store = std::get<Store>(stage->kind);
      const std::uint64_t phases = std::max<std::uint64_t>(store.chunks.size(), 1);
      for (std::size_t i = 0; i < s.instances(*stage); ++i)
        for (std::uint64_t f = 0; f < std::min(stage->firings, product(pages_of(store.pattern), phases)); ++f) {
          const auto box = box_of(store.pattern, t, s.p.header.native_tile, i, f / phases);
          if (!box) continue;
          const Chunk chunk = store.chunks.empty() ? Chunk{} : store.chunks[f % phases];
          const ElementRange range = chunk_range(box->elements(), chunk.index, std::max(chunk.of, 1u));
          writes.push_back({*box, range.begin, range.end});
        }
    }
    std::vector<Box> boxes;
    std::string wrong = join_parts(std::move(writes), boxes);
    const std::vector<Box> kept = appended.kept(t);
    boxes.insert(boxes.end(), kept.begin(), kept.end());
    if (wrong.empty()) wrong = gap_or_overlap(boxes, slice);
    if (!wrong.empty()) fault(refuted("tensor '{}': {}", t.name, wrong));
  }
  if (writes_in_all > most_writes)
    fault(unchecked("the stores write {} pages; {} are looked at", writes_in_all, most_writes));
  for (const auto& [operand, of] : slices) {
    std::vector<Box> boxes;
    const Tensor& t = *any.at(operand);
    for (const auto& [slice, count] : of) boxes.insert(boxes.end(), slice.begin(), slice.end());
    const std::string wrong = gap_or_overlap(std::move(boxes), whole_of(t));
    if (!wrong.empty()) fault(refuted("the slices of '{}': {}", t.name, wrong));
  }
  return finding;
}

}  // namespace rdusim::certificate
