#include "compiler/certificate/classes.h"

#include <algorithm>
#include <map>

#include "compiler/certificate/finding.h"
#include "compiler/certificate/moves.h"

namespace rdusim::certificate {

namespace {

// Of one signature. A program that has more is no spread of one piece of work, and its instances stand for themselves.
constexpr std::size_t most_candidates = 16;

struct Shift {  // of elements of the whole operand, modulo 2^64
  std::uint64_t rows = 0, cols = 0;
  friend bool operator==(const Shift&, const Shift&) = default;
};

// Elements that the pattern counts as one along an axis.
std::uint64_t grain_of(const AccessPattern& a, std::size_t axis, std::uint32_t native_tile) {
  if (!a.grain.empty()) return a.grain[axis];
  return a.page_tiles.size() > 2 && axis + 2 < a.page_tiles.size() ? 1 : native_tile;
}

// What of `first` decides the extents of an instance's pages: how far its last page reaches beyond the tensor, if it
// does.
void sign(std::vector<std::uint64_t>& signature, const AccessPattern& a, const Tensor& t, std::uint32_t native_tile,
          std::size_t i) {
  for (std::size_t d = 0; d < a.page_tiles.size(); ++d) {
    std::uint64_t end = sum(a.first[i][d], a.page_tiles[d]);
    for (std::size_t l = 0; l < a.loops.size(); ++l) end = sum(end, product(a.loops[l] - 1, a.stride[l][d]));
    const auto extent = static_cast<std::uint64_t>(t.shape[d]);
    const std::uint64_t grain = grain_of(a, d, native_tile);
    const bool whole = end <= a.extent_tiles[d] && product(end, grain) <= extent;
    signature.push_back(whole ? 0 : 1);
    if (whole) continue;
    signature.push_back(a.extent_tiles[d] - a.first[i][d]);
    signature.push_back(extent - a.first[i][d] * grain);
  }
}

// Follows translations from the loads to the stores.
class Translation {
 public:
  Translation(const Subject& s, SectionId section) : s_(s), shift_(s.p.buffers.size()) {
    for (const Stage& stage : s.p.stages)
      if (stage.section == section) {
        stages_.push_back(&stage);
        const Access a = access_of(s.p, stage);
        if (a.pattern != nullptr && (a.pattern->heads != 1 || a.pattern->page_tiles.size() > 2))
          stacked_ = std::max(stacked_, s.instances(stage));
      }
    // An order in which a stage comes after the first of its inputs that is known (a matmul after both): a ring has no
    // order in which all are.
    std::vector<bool> known(s.p.buffers.size(), false), done(s.p.stages.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      for (const Stage* stage : stages_) {
        if (done[stage->id.value] || !ready(*stage, known)) continue;
        done[stage->id.value] = changed = true;
        order_.push_back(stage);
        for (const Port& port : stage->ports)
          if (port.direction == Direction::output) known[port.buffer.value] = true;
      }
    }
  }

  // Whether instance i is instance r, moved.
  bool same(std::size_t i, std::size_t r) {
    if (i < stacked_) return false;
    for (const Stage* stage : order_) {
      if (i >= s_.instances(*stage)) continue;
      const Shift shift = out(*stage, i, r);
      for (const Port& port : stage->ports)
        if (port.direction == Direction::output) shift_[port.buffer.value] = shift;
    }
    return std::all_of(stages_.begin(), stages_.end(),
                       [&](const Stage* stage) { return i >= s_.instances(*stage) || agrees(*stage, i, r); });
  }

 private:
  static bool is_matmul(const Stage& s) { return std::holds_alternative<MatmulTiles>(s.kind); }
  // Of a matmul's right operand: rows are the contraction, columns those of the product.
  Shift right(const Stage& matmul) const {
    const Shift& shift = shift_[matmul.ports[1].buffer.value];
    return std::get<MatmulTiles>(matmul.kind).transposed ? Shift{shift.cols, shift.rows} : shift;
  }
  bool ready(const Stage& stage, const std::vector<bool>& known) const {
    if (std::holds_alternative<Load>(stage.kind)) return true;
    if (const auto* recv = std::get_if<Recv>(&stage.kind)) return known[s_.p.edge(recv->edge).buffer.value];
    bool any = false, all = true;
    for (const Port& port : stage.ports) {
      if (port.direction == Direction::output) continue;
      any = any || known[port.buffer.value];
      all = all && known[port.buffer.value];
    }
    return is_matmul(stage) ? all : any;
  }
  Shift pattern_shift(const Stage& stage, std::size_t i, std::size_t r) const {
    const Access a = access_of(s_.p, stage);
    const auto of = [&](std::size_t d) {
      return (a.pattern->first[i][d] - a.pattern->first[r][d]) * grain_of(*a.pattern, d, s_.p.header.native_tile);
    };
    const std::size_t last = a.pattern->page_tiles.size() - 1;
    Shift shift{0, of(last)};
    for (std::size_t d = 0; d < last; ++d)
      shift.rows = shift.rows * static_cast<std::uint64_t>(a.tensor->whole[d]) + of(d);
    return shift;
  }
  Shift out(const Stage& stage, std::size_t i, std::size_t r) const {
    if (std::holds_alternative<Load>(stage.kind)) return pattern_shift(stage, i, r);
    if (const auto* recv = std::get_if<Recv>(&stage.kind)) return shift_[s_.p.edge(recv->edge).buffer.value];
    if (is_matmul(stage) && stage.ports.size() > 1)
      return {shift_[stage.ports[0].buffer.value].rows, right(stage).cols};
    for (const Port& port : stage.ports)
      if (port.direction == Direction::input) return shift_[port.buffer.value];
    return {};
  }
  bool agrees(const Stage& stage, std::size_t i, std::size_t r) const {
    const auto is = [&](const Port& port, const Shift& shift) {
      return port.direction == Direction::output || shift_[port.buffer.value] == shift;
    };
    if (is_matmul(stage))
      return stage.ports.size() > 1 && shift_[stage.ports[0].buffer.value].cols == 0 && right(stage).rows == 0;
    const Shift shift = std::holds_alternative<Store>(stage.kind) ? pattern_shift(stage, i, r) : out(stage, i, r);
    return std::all_of(stage.ports.begin(), stage.ports.end(), [&](const Port& port) { return is(port, shift); });
  }

  const Subject& s_;
  std::vector<Shift> shift_;  // by buffer, of the instance at hand
  std::vector<const Stage*> stages_, order_;
  // Instances below work on stacks: which matrix goes with which is no matter of a translation, and each is looked at.
  std::size_t stacked_ = 0;
};

// Whether instances that are translations of each other do the same: not where what a stage makes of a page depends on
// where that lies.
bool depends_on_place(const Subject& s, const Stage& stage) {
  const auto* generic = std::get_if<Generic>(&stage.kind);
  const auto* store = std::get_if<Store>(&stage.kind);
  if (const auto* load = std::get_if<Load>(&stage.kind)) return load->indexed;
  if (generic != nullptr) return generic->shifted;
  if (store == nullptr) return false;
  const Operator* op = mover_into(s.p, s.p.tensor(store->tensor).operand, stage.origin);
  return op != nullptr && !alike_everywhere(*s.p.operators, *op);
}

}  // namespace

std::uint64_t Classes::weight(std::uint32_t representative, std::size_t n) const {
  return static_cast<std::uint64_t>(
      std::count(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(std::min(n, of.size())), representative));
}

Classes classes_of(const Subject& s, SectionId section) {
  std::size_t most = 0;
  for (const Stage& stage : s.p.stages)
    if (stage.section == section) most = std::max(most, s.instances(stage));
  Classes classes;
  classes.of.resize(most);
  const bool each_its_own = std::any_of(s.p.stages.begin(), s.p.stages.end(), [&](const Stage& stage) {
    return stage.section == section && depends_on_place(s, stage);
  });
  Translation translation(s, section);
  std::map<std::vector<std::uint64_t>, std::vector<std::uint32_t>> alike;
  for (std::uint32_t i = 0; i < most; ++i) {
    std::vector<std::uint64_t> signature;
    for (const Stage& stage : s.p.stages) {
      if (stage.section != section) continue;
      signature.push_back(i < s.instances(stage) ? 1 : 0);
      const Access a = access_of(s.p, stage);
      if (a.pattern != nullptr && i < s.instances(stage))
        sign(signature, *a.pattern, *a.tensor, s.p.header.native_tile, i);
    }
    std::vector<std::uint32_t>& candidates = alike[signature];
    classes.of[i] = i;
    // The first of its likes, or one of those that was no translation of the first.
    for (const std::uint32_t r : candidates)
      if (!each_its_own && candidates.size() < most_candidates && translation.same(i, r)) {
        classes.of[i] = r;
        break;
      }
    if (classes.of[i] == i) {
      candidates.push_back(i);
      classes.representatives.push_back(i);
    }
  }
  return classes;
}

}  // namespace rdusim::certificate
