#include "compiler/passes/repeats.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "compiler/ir/trips.h"

namespace rdusim {
namespace {

// The operands of an operator, its result last.
std::vector<OperandId> operands_of(const Operator& op) {
  std::vector<OperandId> list = op.in;
  list.push_back(op.out);
  return list;
}

// By operator, a number that operators share which differ in ids, names and fills only.
std::vector<std::uint32_t> kinds_of(const OperatorGraph& graph) {
  struct Type {
    DType dtype;
    TensorRole role;
    std::vector<std::int64_t> shape;
    auto operator<=>(const Type&) const = default;
  };
  const auto alike = [&](const Operator& a, const Operator& b) {
    if (a.kind != b.kind || a.attributes != b.attributes || a.in.size() != b.in.size()) return false;
    std::vector<Type> types[2];
    for (const Operator* op : {&a, &b})
      for (const OperandId id : operands_of(*op)) {
        const Operand& o = graph.operand(id);
        types[op == &b].push_back({o.dtype, o.role, o.shape});
      }
    return types[0] == types[1];
  };
  std::vector<std::uint32_t> kinds;
  std::vector<const Operator*> first;
  for (const Operator& op : graph.operators) {
    std::uint32_t k = 0;
    while (k < first.size() && !alike(*first[k], op)) ++k;
    if (k == first.size()) first.push_back(&op);
    kinds.push_back(k);
  }
  return kinds;
}

class Finder {
 public:
  explicit Finder(const OperatorGraph& graph)
      : graph_(graph), kinds_(kinds_of(graph)), writer_(graph.operands.size(), nobody) {
    for (const Operator& op : graph.operators) writer_[op.out.value] = op.id.value;
    for (const SchedulePin& pin : graph.pins) pinned_.push_back(pin.op.value);
  }

  std::vector<Repeat> run() {
    find(0, static_cast<std::uint32_t>(kinds_.size()));
    std::sort(found_.begin(), found_.end(), [](const Repeat& a, const Repeat& b) { return a.first < b.first; });
    return found_;
  }

 private:
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};

  // The best in [begin, end), then what is left beside it.
  void find(std::uint32_t begin, std::uint32_t end) {
    Repeat best;
    std::uint32_t saved = 0;
    for (std::uint32_t length = 1; length <= (end - begin) / 2; ++length) {
      if ((end - begin) - length <= saved) break;
      for (std::uint32_t at = begin; at + 2 * length <= end;) {
        std::uint32_t same = 0;
        while (at + same + length < end && kinds_[at + same] == kinds_[at + same + length]) ++same;
        const std::uint32_t trips = same / length + 1;
        if (trips >= 2 && (trips - 1) * length > saved) {
          const Repeat r = longest({OperatorId(at), length, trips});
          if (r.trips >= 2 && (r.trips - 1) * length > saved) {
            best = r;
            saved = (r.trips - 1) * length;
          }
        }
        at += std::max(same, 1u);
      }
    }
    if (saved == 0) return;
    found_.push_back(best);
    find(begin, best.first.value);
    find(best.end(), end);
  }

  // With as many trips as are joined alike.
  Repeat longest(Repeat r) const {
    std::uint32_t trips = 1;
    for (; trips < r.trips; ++trips)
      if (!joined_alike(r, trips)) break;
    r.trips = follows(r) ? trips : 1;
    return r;
  }
  // Trips that take nothing from the one before had better run side by side.
  bool follows(const Repeat& r) const {
    for (std::uint32_t own = r.first.value + r.length; own < r.first.value + 2 * r.length; ++own)
      for (const OperandId in : graph_.operators[own].in) {
        const std::uint32_t from = writer_[in.value];
        if (from != nobody && from >= r.first.value && from < r.first.value + r.length) return true;
      }
    return false;
  }

  // Whether trip t (1 or later) takes its operands from where the one before does, or the second from the first and the
  // first from before.
  bool joined_alike(const Repeat& r, std::uint32_t trip) const {
    for (std::uint32_t j = 0; j < r.length; ++j) {
      const std::uint32_t before = r.first.value + (trip - 1) * r.length + j, own = before + r.length;
      for (const std::uint32_t pinned : pinned_)
        if (pinned == before || pinned == own) return false;
      const Operator& a = graph_.operators[before];
      const Operator& b = graph_.operators[own];
      for (std::size_t i = 0; i < a.in.size(); ++i) {
        const std::uint32_t from_a = writer_[a.in[i].value], from_b = writer_[b.in[i].value];
        const std::uint32_t own_begin = r.first.value + trip * r.length;
        const auto within = [&](std::uint32_t w, std::uint32_t begin) { return w != nobody && w >= begin; };
        if (within(from_b, own_begin)) {
          if (from_a == nobody || from_a + r.length != from_b) return false;
        } else if (within(from_b, own_begin - r.length)) {
          // From the trip before; the first trip takes it from before the run.
          if (trip == 1 ? within(from_a, r.first.value) : from_a == nobody || from_a + r.length != from_b) return false;
        } else if (within(from_b, r.first.value) || within(from_a, r.first.value)) {
          return false;  // from a trip further back
        }
      }
    }
    return true;
  }

  const OperatorGraph& graph_;
  std::vector<std::uint32_t> kinds_;
  std::vector<std::uint32_t> writer_;  // by operand
  std::vector<std::uint32_t> pinned_;
  std::vector<Repeat> found_;
};

bool agree(const Work& a, const Work& b) {
  return a.chip == b.chip && a.m == b.m && a.n == b.n && a.k == b.k && a.offset_m == b.offset_m &&
         a.offset_n == b.offset_n && a.offset_k == b.offset_k && a.plan == b.plan;
}

}  // namespace

std::vector<Repeat> repeats_of(const OperatorGraph& graph) {
  return Finder(graph).run();
}

std::optional<LaterTensors> later_tensors(const SpatialProgram& program, const Repeat& repeat) {
  const OperatorGraph& graph = *program.operators;
  std::vector<const Work*> work(graph.operators.size(), nullptr);
  for (const Work& w : program.work) work[w.op.value] = &w;
  std::vector<std::optional<TensorId>> tensor(graph.operands.size());
  for (const Tensor& t : program.tensors) tensor[t.operand.value] = t.id;
  for (const Operator& op : graph.operators)
    if (op.kind == OperatorKind::append) tensor[op.out.value] = tensor[op.in[0].value];

  LaterTensors later(program.tensors.size());
  for (std::uint32_t j = 0; j < repeat.length; ++j) {
    const Operator& first = graph.operators[repeat.first.value + j];
    for (std::uint32_t t = 1; t < repeat.trips; ++t) {
      const Operator& op = graph.operators[first.id.value + t * repeat.length];
      const Work *of_first = work[first.id.value], *of_trip = work[op.id.value];
      if (of_first == nullptr && of_trip == nullptr) continue;  // another chip's
      if (of_first == nullptr || of_trip == nullptr || !agree(*of_first, *of_trip)) return std::nullopt;
      const std::vector<OperandId> firsts = operands_of(first), own = operands_of(op);
      for (std::size_t i = 0; i < own.size(); ++i) {
        const auto from = tensor[firsts[i].value], to = tensor[own[i].value];
        if (!from || !to || !alike_in_trips(program.tensor(*from), program.tensor(*to))) return std::nullopt;
        std::vector<TensorId>& list = later[from->value];
        if (list.size() + 1 == t)
          list.push_back(*to);
        else if (list.size() < t || list[t - 1] != *to)
          return std::nullopt;
      }
    }
  }
  for (std::size_t t = 0; t < later.size(); ++t)
    if (std::all_of(later[t].begin(), later[t].end(), [&](TensorId id) { return id.value == t; })) later[t].clear();
  return later;
}

}  // namespace rdusim
