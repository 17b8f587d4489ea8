// The slice is lowered again instead of edited: a lowered matmul carries its block count in three stages, and editing
// only the tensors leaves the loads pushing half the pages that the matmul waits for.
//
// Every chip's slice has one shape, so chip 0's is lowered, tiled and placed, and the result copied. What then differs
// from chip to chip is data: tensors and work lie at other offsets, and where a chip reads a part of a tensor that it
// holds whole, or writes columns into one, its pages start further on. Slices of other shapes (slice.h: uneven, padded)
// are lowered and placed each by itself, cut as much like chip 0's, the largest, as their extents let them.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "compiler/ir/print.h"
#include "compiler/ir/trips.h"
#include "compiler/passes/attention.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/ports.h"
#include "compiler/passes/recipe.h"
#include "compiler/passes/rewrite.h"
#include "compiler/passes/ring_order.h"
#include "compiler/passes/slice.h"
#include "compiler/passes/sums.h"
#include "compiler/workload/operator_traits.h"

namespace rdusim {
namespace {

bool already_sharded(const SpatialProgram& p) {
  const ChipId first(0);
  const auto elsewhere = [&](const Group& g) {
    return std::any_of(g.sites.begin(), g.sites.end(), [&](const Site& s) { return s.chip != first; });
  };
  return !p.collectives.empty() ||
         std::any_of(p.tensors.begin(), p.tensors.end(), [&](const Tensor& t) { return t.chip != first; }) ||
         std::any_of(p.work.begin(), p.work.end(), [&](const Work& w) { return w.chip != first; }) ||
         (p.placement && std::any_of(p.placement->groups.begin(), p.placement->groups.end(), elsewhere));
}

const Stage* writer_of(const SpatialProgram& p, BufferId buffer) {
  for (const Stage& s : p.stages)
    for (const Port& port : s.ports)
      if (port.direction == Direction::output && port.buffer == buffer) return &s;
  return nullptr;
}

// The operator's result goes to memory.
bool is_stored(const SpatialProgram& p, const Operator& op) {
  return std::any_of(p.stages.begin(), p.stages.end(), [&](const Stage& s) {
    const auto* store = std::get_if<Store>(&s.kind);
    return store && p.tensor(store->tensor).operand == op.out;
  });
}

// RDU4101, RDU4104, RDU4109, RDU4110, RDU4116: whether this is a program that slicing makes sense of.
void check_shardable(const SpatialProgram& p, const ShardPlan& plan, Diagnostics& out) {
  if (!p.operators) {
    out.error(Code::RDU4101, p.header.name,
              "the program carries no operator graph, so there is no specification to slice");
    return;
  }
  if (std::none_of(p.stages.begin(), p.stages.end(),
                   [](const Stage& s) { return std::holds_alternative<MatmulTiles>(s.kind); })) {
    out.error(Code::RDU4101, p.header.name, "none of the program's {} stages is a matmul", p.stages.size());
    return;
  }
  std::vector<std::size_t> tensors(p.operators->operands.size(), 0);
  for (const Tensor& t : p.tensors) ++tensors[t.operand.value];
  for (const Operand& o : p.operators->operands)
    if (tensors[o.id.value] != (storage_of(*p.operators, o.id) == o.id ? 1 : 0))
      out.error(Code::RDU4116, place_of(p, o),
                "operand '{}' is held in {} tensors; a program that is sharded holds each in one", o.name,
                tensors[o.id.value]);
  const bool in_pairs = plan.kind == ShardKind::none || plan.kind == ShardKind::tensor;
  const bool some_by_one = std::any_of(
      p.operators->operators.begin(), p.operators->operators.end(),
      [&](const Operator& op) { return op.kind == OperatorKind::matmul && is_by_one_matrix(*p.operators, op); });
  const FirstTrip first_trip(p);
  for (const Operator& op : p.operators->operators) {
    const std::string where = place_of(p, op);
    if (!recipe_of(*p.operators, op).empty()) {
      const bool flat = std::all_of(op.in.begin(), op.in.end(),
                                    [&](OperandId o) { return p.operators->operand(o).shape.size() <= 2; });
      if (!flat)
        out.error(Code::RDU4116, where, "'{}' has operands of more than two axes, which are not sharded yet", op.name);
      continue;
    }
    if (op.kind == OperatorKind::attention || op.kind == OperatorKind::rotary || is_move(op.kind)) continue;
    // The right operand is cut along either of its axes; a slice of each matrix of a stack has gaps. Among operators that
    // are sharded every chip carries out all of it.
    const bool one_matrix = is_by_one_matrix(*p.operators, op);
    if (op.kind == OperatorKind::matmul && !one_matrix && in_pairs && some_by_one) continue;
    if (op.kind != OperatorKind::matmul || !one_matrix) {
      out.error(Code::RDU4116, where, "'{}' is a {}{} that is not sharded yet", op.name, name_of(op.kind),
                op.kind == OperatorKind::matmul ? " by a stack of matrices" : "");
      continue;
    }
    const Operand& a = p.operators->operand(op.in[0]);
    const Operand& b = p.operators->operand(op.in[1]);
    const std::int64_t contraction_of_b = b.shape[op.attributes.transposed ? 1 : 0];
    if (a.shape.back() != contraction_of_b)
      out.error(Code::RDU4104, where, "matmul '{}': the contraction axis of '{}' is {} long, that of '{}' {}", op.name,
                a.name, a.shape.back(), b.name, contraction_of_b);
    if (first_trip.of(op.id) != op.id) continue;
    bool placed = false;
    for (const Stage& s : p.stages) {
      const auto* matmul = std::get_if<MatmulTiles>(&s.kind);
      if (!matmul || matmul->op != op.id) continue;
      placed = true;
      for (const Port& port : s.ports) {
        if (port.direction != Direction::input) continue;
        const Stage* from = writer_of(p, port.buffer);
        if (from && std::holds_alternative<Load>(from->kind)) continue;
        auto& d = out.error(Code::RDU4109, where, "matmul '{}' takes an operand from buffer '{}', which no load fills",
                            op.name, p.buffer(port.buffer).name);
        if (from) d.note("stage " + from->name, "fills it, a {}", kind_name(*from));
      }
    }
    if (!placed) out.error(Code::RDU4101, where, "matmul '{}' has no stage, so there is nothing to slice", op.name);
    if (!is_stored(p, op))
      out.error(Code::RDU4110, where, "the result '{}' of matmul '{}' is not stored", p.operators->operand(op.out).name,
                op.name);
  }
}

// One chip's work, from the operators: what a program that was assembled says of its work may be anything.
std::vector<Work> whole_work(const OperatorGraph& graph) {
  std::vector<Work> work;
  for (const Operator& op : graph.operators) {
    work.push_back(whole_work_of(graph, op));
    work.back().id = WorkId(work.size() - 1);
  }
  return work;
}

// Whether another chip carries out all of the operator.
bool idles(const OperatorCut& cut, ChipId chip) {
  return cut.kind == CutKind::one && cut.home != chip;
}

// Whether a chip that has nothing of others than `chips`, or all (none), is one of those that have it.
bool is_among(const std::vector<ChipId>& chips, ChipId chip) {
  return chips.empty() || std::binary_search(chips.begin(), chips.end(), chip);
}

// Operators that some chips alone have sites for: one carries them out, and nobody else stores their results.
OnlyOn only_on_some(const Cuts& cuts) {
  OnlyOn only;
  for (const OperatorCut& cut : cuts.operators)
    only.push_back(cut.kind == CutKind::one && !cut.joined_by ? std::vector{cut.home} : cut.given);
  return only;
}

// What `chip` holds and computes, as a program of chip 0 that lower, tile and place take from there: its extents, with
// the offsets of a first slice. Without what only others have sites for; nobody: with all of it.
SpatialProgram slice_for(const SpatialProgram& p, const Cuts& cuts, const ShardPlan& plan, ChipId chip,
                         const OnlyOn& only, std::uint32_t tile) {
  SpatialProgram slice;
  slice.header = p.header;
  slice.header.plan = plan;
  slice.operators = p.operators;
  for (const Tensor& whole : p.tensors) {
    Tensor t = slice_of(whole, cuts.operands[whole.operand.value], cuts.chips, chip, tile);
    t.id = TensorId(slice.tensors.size());
    t.chip = ChipId(0);
    t.offset = whole.offset;
    slice.tensors.push_back(std::move(t));
  }
  for (const Work& whole : p.work) {
    const ChipId home = mutated("shard.work_of_the_next_chip", chip, ChipId((chip.value + 1) % cuts.chips));
    if (!is_among(only[whole.op.value], home)) continue;
    Work w = slice_of(whole, cuts.operators[whole.op.value], cuts.chips, chip);
    w.id = WorkId(slice.work.size());
    w.chip = ChipId(0);
    w.offset_m = whole.offset_m, w.offset_n = whole.offset_n, w.offset_k = whole.offset_k;
    slice.work.push_back(w);
  }
  return slice;
}

// What slices of several shapes are cut like, and the sections in which they are placed: as the first of them, or so that
// all find sites.
struct Model {
  SpatialProgram tiled;
  SectionPlan sections;
};

// RDU4107: what a pass says of a slice.
Result<SpatialProgram> or_rejected(const std::string& name, Result<SpatialProgram> made) {
  if (made.ok()) return made;
  Diagnostics out;
  auto& d = out.error(Code::RDU4107, name, "a pass rejected the slice of one chip, with {} fault{}",
                      made.diagnostics().error_count(), made.diagnostics().error_count() == 1 ? "" : "s");
  for (const Diagnostic& cause : made.diagnostics().list()) {
    d.note(cause.where, "RDU{} {}: {}", static_cast<unsigned>(cause.code), info(cause.code).name, cause.message);
    for (const Note& n : cause.notes) d.notes.push_back(n);
    for (const std::string& h : cause.help) d.help.push_back(h);
  }
  return out;
}

// A slice as it is; `model`, if it is wanted, keeps how it was cut.
Result<SpatialProgram> lower_again(SpatialProgram slice, Model* model, const Target& target) {
  const std::string name = slice.header.name;
  return or_rejected(name, lower(std::move(slice), target)
                               .then([&](SpatialProgram p) { return tile(std::move(p), target); })
                               .then([&](SpatialProgram p) {
                                 if (model != nullptr) model->tiled = p;
                                 return place(std::move(p), target);
                               }));
}
// One that goes with the model. It may have no work at all, where others do everything.
Result<SpatialProgram> lower_like(SpatialProgram slice, const Model& model, const Target& target) {
  const std::string name = slice.header.name;
  return or_rejected(name, tile_like(std::move(slice), model.tiled, target).then([&](SpatialProgram p) {
    return place_in(std::move(p), model.sections, target);
  }));
}

// A stage of the slice does what the stage of that name does in the whole: it sits on the same engine.
void inherit_engines(SpatialProgram& slice, const SpatialProgram& whole) {
  for (Stage& s : slice.stages)
    for (const Stage& from : whole.stages)
      if (from.name == s.name && from.kind.index() == s.kind.index() && from.engine.kind == s.engine.kind)
        s.engine = from.engine;
}

// Tiles along an axis by which a chip's part of an operand starts further on in the tensor that it holds than chip 0's
// part does in chip 0's: the part's offset in the whole, less what the tensor's own offset has moved already.
std::uint64_t tiles_further(const Tensor& first, const Tensor& own, std::uint32_t axis, std::int64_t part_offset,
                            std::uint32_t tile) {
  return static_cast<std::uint64_t>(part_offset - (own.offset[axis] - first.offset[axis])) / tile;
}

void move_pattern(AccessPattern& pattern, std::uint32_t axis, std::uint64_t tiles) {
  for (auto& first : pattern.first) first[axis] += mutated("shard.columns_of_the_first_chip", tiles, 0);
  pattern.extent_tiles[axis] += tiles;
}

// Slices of different shapes, and which of them each chip has.
struct Slices {
  std::vector<SpatialProgram> shapes;  // placed; the first is chip 0's
  std::vector<std::uint32_t> of_chip;  // into shapes
  Diagnostics notes;

  const SpatialProgram& of(ChipId chip) const { return shapes[of_chip[chip.value]]; }
};

// RDU4107: what a pass makes of a slice, or slices that do not go together.
Result<Slices> slices_of(const SpatialProgram& whole, const Cuts& cuts, const ShardPlan& plan,
                         const SpatialProgram& program, const Target& target) {
  Slices slices;
  const auto alike = [](const SpatialProgram& a, const SpatialProgram& b) {
    const auto same_shape = [](const Tensor& x, const Tensor& y) { return x.shape == y.shape; };
    const auto same_extents = [](const Work& x, const Work& y) {
      return x.op == y.op && x.m == y.m && x.n == y.n && x.k == y.k;
    };
    return std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(), same_shape) &&
           std::equal(a.work.begin(), a.work.end(), b.work.begin(), b.work.end(), same_extents);
  };
  std::vector<SpatialProgram> shapes;
  const OnlyOn only = only_on_some(cuts);
  for (std::uint32_t c = 0; c < cuts.chips; ++c) {
    SpatialProgram slice = slice_for(whole, cuts, plan, ChipId(c), only, target.native_tile);
    const auto known =
        std::find_if(shapes.begin(), shapes.end(), [&](const SpatialProgram& s) { return alike(s, slice); });
    slices.of_chip.push_back(static_cast<std::uint32_t>(known - shapes.begin()));
    if (known == shapes.end()) shapes.push_back(std::move(slice));
  }
  Model model;
  const bool apart = std::any_of(only.begin(), only.end(), [](const auto& chips) { return !chips.empty(); });
  if (apart) {
    auto all = or_rejected(
        whole.header.name,
        tile_for_chips(slice_for(whole, cuts, plan, ChipId(0), OnlyOn(only.size()), target.native_tile), only, target));
    if (!all.ok()) return all.diagnostics();
    slices.notes = all.diagnostics();
    model.sections = sections_for_chips(*all, only, target);
    model.tiled = std::move(*all);
  }
  for (SpatialProgram& shape : shapes) {
    const bool is_model = !apart && slices.shapes.empty();
    auto placed = is_model ? lower_again(std::move(shape), shapes.size() > 1 ? &model : nullptr, target)
                           : lower_like(std::move(shape), model, target);
    if (!placed.ok()) return placed.diagnostics();
    if (is_model) slices.notes = placed.diagnostics();
    inherit_engines(*placed, program);
    slices.shapes.push_back(std::move(*placed));
    if (is_model) model.sections = sections_of(slices.shapes.front());
    if (slices.shapes.back().sections == slices.shapes.front().sections) continue;
    Diagnostics out;
    out.error(Code::RDU4107, whole.header.name,
              "a chip's slice fills {} sections and that of chip 0 {}, or others: they cannot run side by side",
              slices.shapes.back().sections.size(), slices.shapes.front().sections.size());
    return out;
  }
  return slices;
}

// The chips' slices side by side, with each chip's own offsets. `whole` has a work for each operator, by id.
SpatialProgram spread(const Slices& slices, const SpatialProgram& whole, const Cuts& cuts, std::uint32_t tile) {
  std::vector<const SpatialProgram*> each;
  for (std::uint32_t c = 0; c < cuts.chips; ++c) each.push_back(&slices.of(ChipId(c)));
  SpatialProgram all = side_by_side(each);
  // Of every chip: its slice has the operands that the others have.
  const std::size_t tensors = slices.shapes.front().tensors.size();
  std::vector<std::size_t> works_before;  // by chip: of those before it
  for (std::size_t c = 0, n = 0; c < each.size(); n += each[c++]->work.size()) works_before.push_back(n);
  for (Tensor& t : all.tensors) {
    const std::size_t original = t.id.value % tensors;
    const std::string name = std::move(t.name);
    const TensorId id = t.id;
    t = slice_of(whole.tensors[original], cuts.operands[t.operand.value], cuts.chips, t.chip, tile);
    t.name = name;
    t.id = id;
  }
  for (Work& w : all.work) {
    const Work& original = whole.work[w.op.value];
    const Work own = slice_of(original, cuts.operators[w.op.value], cuts.chips, w.chip);
    w.offset_m = mutated<std::int64_t>("shard.every_chip_has_the_first_rows", own.offset_m, 0);
    w.offset_n = own.offset_n;
    w.offset_k = mutated("shard.every_chip_works_on_the_first", own.offset_k, 0);
  }
  std::vector<const Edge*> first_edge(all.stages.size());  // that leaves a stage
  for (const Edge& e : all.edges)
    if (first_edge[e.from.value] == nullptr) first_edge[e.from.value] = &e;
  for (Stage& s : all.stages) {
    const ChipId chip = all.chip_of(s);
    if (chip == ChipId(0) || !s.origin) continue;
    const SpatialProgram& slice = slices.of(chip);
    const Operator& op = all.operators->operators[s.origin->value];
    const OperatorCut& cut = cuts.operators[op.id.value];
    // All of it, of operands that every chip that carries it out has whole.
    if (cut.kind == CutKind::none || cut.kind == CutKind::one) continue;
    const Work& first =
        *std::find_if(slice.work.begin(), slice.work.end(), [&](const Work& w) { return w.op == op.id; });
    const Work& own = all.work[works_before[chip.value] + first.id.value];
    const auto move = [&](TensorId tensor, AccessPattern& pattern, std::int64_t rows, std::int64_t cols) {
      const Tensor& mine = all.tensor(tensor);
      const Tensor& theirs = slice.tensors[tensor.value % tensors];
      const auto last = static_cast<std::uint32_t>(mine.shape.size() - 1);
      if (last > 0) move_pattern(pattern, 0, tiles_further(theirs, mine, 0, rows, tile));
      move_pattern(pattern, last, tiles_further(theirs, mine, last, cols, tile));
    };
    const std::int64_t m = own.offset_m - first.offset_m, n = own.offset_n - first.offset_n;
    const std::int64_t k = own.offset_k - first.offset_k;
    if (auto* store = std::get_if<Store>(&s.kind)) {
      // Where columns are joined, the whole result has a store for each chip's columns: join() adds them. Where rows are
      // scattered, it gives each chip's store its rows.
      const bool by_join = cut.joined_by == CollectiveKind::all_gather || cut.joined_by == CollectiveKind::all_to_all ||
                           cut.joined_by == CollectiveKind::reduce_scatter;
      if (!by_join) move(store->tensor, store->pattern, m, n);
    } else if (auto* load = std::get_if<Load>(&s.kind); load && op.kind != OperatorKind::matmul) {
      const auto in = std::find(op.in.begin(), op.in.end(), all.tensor(load->tensor).operand) - op.in.begin();
      if (op.kind == OperatorKind::attention) {
        const AttentionExtents e = attention_extents(*all.operators, own);
        const auto group = static_cast<std::int64_t>(op.attributes.heads / op.attributes.kv_heads);
        // Of an appended cache, memory has the state.
        const auto place = static_cast<std::size_t>(std::find_if(op.in.begin(), op.in.end(),
                                                                 [&](OperandId o) {
                                                                   return storage_of(*all.operators, o) ==
                                                                          all.tensor(load->tensor).operand;
                                                                 }) -
                                                    op.in.begin());
        if (place == sinks_at(op.in.size())) {
          move_pattern(load->pattern, 0, e.first_head - static_cast<std::uint64_t>(first.offset_n / e.width));
          continue;
        }
        const std::int64_t head =
            static_cast<std::int64_t>(e.first_head) / (is_of_keys(place, op.in.size()) ? group : 1);
        const bool further = further_at(op.in.size()) && place >= *further_at(op.in.size());
        move(load->tensor, load->pattern, 0, head * (further ? e.further_width : e.width));
        continue;
      }
      if (cut.kind == CutKind::rows) {
        const bool indices = op.kind == OperatorKind::gather;
        const bool by_rows = indices ? in == 1 : spans_rows(*all.operators, op, std::size_t(in));
        const std::int64_t held = all.tensor(load->tensor).offset[0];  // from its first row on: no further to go
        const std::int64_t rows = by_rows ? mutated("shard.reads_the_first_rows", m, held) : 0;
        move(load->tensor, load->pattern, indices ? 0 : rows, indices ? rows : 0);
        continue;
      }
      const bool angles = op.kind == OperatorKind::rotary && in > 0;
      const bool columns = op.kind == OperatorKind::rotary || op.kind == OperatorKind::append
                               ? !angles
                               : spans_columns(*all.operators, op, std::size_t(in));
      move(load->tensor, load->pattern, 0, columns ? n : 0);
    } else if (load) {
      // An operator may read one operand twice; what the load feeds says which of the two it is.
      const Edge* const reader = first_edge[s.id.value];
      const Stage& matmul = all.stage(reader->to.front());
      const bool is_a = matmul.ports[0].buffer == reader->buffer;
      const bool turned = op.attributes.transposed;
      move(load->tensor, load->pattern, is_a ? 0 : turned ? n : k, is_a || turned ? k : n);
    }
  }
  return all;
}

// Where a chip's result of an operator leaves the compute stages: `from` pushes into `buffer`, which `edge` hands to
// `store`.
struct Outlet {
  StageId from;
  BufferId buffer;
  EdgeId edge;
  StageId store;
};

std::vector<Outlet> outlets(const SpatialProgram& p, OperatorId op) {
  std::vector<Outlet> found;
  for (const Stage& s : p.stages) {
    if (!std::holds_alternative<Store>(s.kind) || s.origin != op) continue;
    const BufferId buffer = s.ports.front().buffer;
    const auto edge = std::find_if(p.edges.begin(), p.edges.end(), [&](const Edge& e) {
      return e.buffer == buffer && std::find(e.to.begin(), e.to.end(), s.id) != e.to.end();
    });
    found.push_back({edge->from, buffer, edge->id, s.id});
  }
  return found;
}

StageId add_stage(SpatialProgram& p, Stage s) {
  s.id = StageId(p.stages.size());
  p.stages.push_back(std::move(s));
  return p.stages.back().id;
}

BufferId add_buffer(SpatialProgram& p, Buffer b, std::string name) {
  b.id = BufferId(p.buffers.size());
  b.name = std::move(name);
  p.buffers.push_back(std::move(b));
  return p.buffers.back().id;
}

void add_edge(SpatialProgram& p, StageId from, BufferId buffer, StageId to) {
  Edge e;
  e.id = EdgeId(p.edges.size());
  e.from = from;
  e.buffer = buffer;
  e.to = {to};
  p.edges.push_back(std::move(e));
}

// Puts collectives between the chips' results and their stores. What a row-parallel operator's chips push from now on
// are partial sums, in the accumulator's type, and only the collective's outcome is stored. Of what one chip alone carries
// out, the others lose all but the stores of what they are sent.
class Joiner {
 public:
  Joiner(SpatialProgram& program, const Cuts& cuts, const std::vector<ChipId>& ring)
      : p_(program), placed_(program), cuts_(cuts), ring_(ring) {}

  void join() {
    const FirstTrip first_trip(p_);
    find_idle();
    for (const Operator& op : p_.operators->operators)
      if (cuts_.operators[op.id.value].joined_by && first_trip.of(op.id) == op.id) join(op);
    Dropped gone(p_);
    for (const StageId s : stages_) gone.stages[s.value] = true;
    for (const BufferId b : buffers_) gone.buffers[b.value] = true;
    for (const EdgeId e : edges_) gone.edges[e.value] = true;
    for (const Tensor& t : p_.tensors)
      gone.tensors[t.id.value] = !is_among(cuts_.operands[t.operand.value].only_on, t.chip);
    for (const Work& w : p_.work) gone.work[w.id.value] = is_idle(w.op, w.chip);
    drop(p_, gone);
  }

 private:
  bool is_idle(OperatorId op, ChipId chip) const { return idles(cuts_.operators[op.value], chip); }

  // What is dropped of operators that one chip alone carries out, before any collective is there.
  void find_idle() {
    std::vector<bool> idle(p_.stages.size(), false);
    for (const Stage& s : p_.stages) {
      if (!s.origin || !is_idle(*s.origin, p_.chip_of(s))) continue;
      idle[s.id.value] = true;
      for (const Port& port : s.ports)
        if (port.direction == Direction::output) buffers_.push_back(port.buffer);
      if (!std::holds_alternative<Store>(s.kind) || !cuts_.operators[s.origin->value].joined_by)
        stages_.push_back(s.id);
    }
    for (const Edge& e : p_.edges)
      if (idle[e.from.value]) edges_.push_back(e.id);
  }

  void join(const Operator& op) {
    const Collective& entry = add_entry(op);
    for (const Outlet& outlet : outlets(p_, op.id)) {
      const Stage store = p_.stage(outlet.store);
      const Buffer result = p_.buffer(outlet.buffer);
      const ChipId chip = p_.chip_of(store);
      const std::string suffix = "_c" + std::to_string(chip.value);
      const bool of_all = entry.kind == CollectiveKind::all_gather || entry.kind == CollectiveKind::all_to_all;
      const bool of_one = entry.kind == CollectiveKind::broadcast;
      const bool contributes =
          !of_one || chip == mutated("shard.broadcast_from_the_last", entry.members.front(), entry.members.back());
      if (!of_all && !of_one) make_partial(op, outlet, suffix);

      Stage part;
      part.name = entry.name + suffix;
      part.kind = CollectiveStage{entry.id};
      if (contributes) part.ports = {input_port(outlet.buffer)};
      part.group = store.group;
      part.engine = {StageRole::compute, placed_.free_context(store.group, store.section)};
      part.firings = store.firings;
      part.section = store.section;
      part.origin = op.id;
      part.collective = entry.id;
      const StageId stage = add(std::move(part));
      if (contributes) {
        p_.edges[outlet.edge.value].to = {stage};
        p_.edges[outlet.edge.value].collective = entry.id;
      }

      if (of_all) {
        store_all(op, entry, stage, store, result, suffix);
      } else if (entry.kind == CollectiveKind::reduce_scatter) {
        store_rows(entry, stage, outlet.store, result, suffix);
      } else if (of_one || entry.kind == CollectiveKind::all_reduce || chip == entry.members.front()) {
        if (of_one && chip != entry.members.front() && mutated("shard.sent_rows_change_places", false, true)) {
          TensorId& to = std::get<Store>(p_.stages[outlet.store.value].kind).tensor;
          to = next_sent(op, chip).value_or(to);
        }
        deliver(entry, stage, outlet.store, result, entry.name + ".result" + suffix);
      } else {
        stages_.push_back(store.id);
      }
    }
  }

  const Collective& add_entry(const Operator& op) {
    const CollectiveKind kind = *cuts_.operators[op.id.value].joined_by;
    const Work& work = *std::find_if(p_.work.begin(), p_.work.end(), [&](const Work& w) { return w.op == op.id; });
    const bool of_all = kind == CollectiveKind::all_gather || kind == CollectiveKind::all_to_all;
    const bool of_one = kind == CollectiveKind::broadcast;
    const DType sent =
        of_all || of_one ? p_.operators->operand(op.out).dtype : accumulator_of(p_.operators->operand(op.in[0]).dtype);
    Collective entry;
    entry.id = CollectiveId(p_.collectives.size());
    entry.name = op.name + "." + std::string(name_of(kind));
    entry.kind = kind;
    entry.algorithm = p_.header.plan.algorithm;
    entry.order = entry.id.value;
    entry.op = op.id;
    const std::vector<ChipId>& given = cuts_.operators[op.id.value].given;
    std::copy_if(ring_.begin(), ring_.end(), std::back_inserter(entry.members),
                 [&](ChipId chip) { return is_among(given, chip); });
    if (of_one)  // who has it first
      std::rotate(entry.members.begin(),
                  std::find(entry.members.begin(), entry.members.end(), cuts_.operators[op.id.value].home),
                  entry.members.end());
    if (mutated("shard.member_left_out", false, true)) entry.members.pop_back();
    entry.bytes.assign(entry.members.size(), static_cast<Bytes>(work.m) * static_cast<Bytes>(work.n) * bytes_of(sent) /
                                                 mutated("shard.bytes_of_one_member_too_few", 1, 2));
    if (of_one) std::fill(entry.bytes.begin() + 1, entry.bytes.end(), Bytes{0});
    p_.collectives.push_back(std::move(entry));
    return p_.collectives.back();
  }

  // Of what a chip is sent, the result of another operator with as many rows and columns.
  std::optional<TensorId> next_sent(const Operator& op, ChipId chip) const {
    const auto& shape = p_.operators->operand(op.out).shape;
    const auto found = std::find_if(p_.tensors.begin(), p_.tensors.end(), [&](const Tensor& t) {
      return t.chip == chip && t.operand != op.out && p_.operators->operand(t.operand).shape == shape;
    });
    return found == p_.tensors.end() ? std::nullopt : std::optional(found->id);
  }

  void make_partial(const Operator& op, const Outlet& outlet, const std::string& suffix) {
    const DType accumulator =
        mutated("shard.partial_in_the_operands_type", accumulator_of(p_.operators->operand(op.in[0]).dtype),
                p_.operators->operand(op.in[0]).dtype);
    StageKind& from = p_.stages[outlet.from.value].kind;
    if (auto* matmul = std::get_if<MatmulTiles>(&from)) matmul->result = accumulator;
    if (auto* fold = std::get_if<Generic>(&from)) fold->result = accumulator;
    Buffer& partial = p_.buffers[outlet.buffer.value];
    partial.name = op.name + ".partial" + suffix;
    partial.kind = mutated("shard.partial_passes_for_a_value", BufferKind::interm, BufferKind::fifo);
    partial.page_bytes = partial.page_bytes / bytes_of(partial.dtype) * bytes_of(accumulator);
    partial.dtype = accumulator;
  }

  StageId add(Stage s) {
    const StageId id = add_stage(p_, std::move(s));
    placed_.add(p_.stage(id));
    return id;
  }

  // An output port of the collective's stage whose pages `store` takes to memory.
  void deliver(const Collective& entry, StageId stage, StageId store, const Buffer& like, std::string name) {
    const BufferId result = add_buffer(p_, like, std::move(name));
    p_.stages[stage.value].ports.push_back(output_port(result));
    p_.stages[store.value].ports = {input_port(result)};
    p_.stages[store.value].collective = entry.id;
    add_edge(p_, stage, result, store);
  }

  // The chip stores its part of each page: all the rows of its tensor.
  void keep_rows(Store& store, Buffer& page) const {
    const Tensor& rows = p_.tensor(store.tensor);
    const std::size_t x = rows.tiles.size() - 2;
    store.pattern.page_tiles[x] = store.pattern.extent_tiles[x] =
        mutated("shard.scattered_rows_of_all", rows.tiles[x], store.pattern.extent_tiles[x]);
    const Bytes element = bytes_of(page.dtype);
    page.page_bytes = ceil_div(page.page_bytes / element, std::uint64_t{cuts_.chips}) * element;
  }
  void store_rows(const Collective& entry, StageId stage, StageId store, Buffer page, const std::string& suffix) {
    keep_rows(std::get<Store>(p_.stages[store.value].kind), page);
    deliver(entry, stage, store, page, entry.name + ".result" + suffix);
  }

  // Every chip stores every member's columns, or rows, each where they belong in the whole; all_to_all: of the columns its
  // own rows.
  void store_all(const Operator& op, const Collective& entry, StageId stage, Stage store, Buffer page,
                 const std::string& suffix) {
    if (entry.kind == CollectiveKind::all_to_all) keep_rows(std::get<Store>(store.kind), page);
    const auto& tiles = p_.tensor(std::get<Store>(store.kind).tensor).tiles;
    const std::size_t axis = cuts_.operators[op.id.value].kind == CutKind::rows ? 0 : tiles.size() - 1;
    const std::uint64_t part = tiles[axis] / cuts_.chips;
    for (const ChipId from : entry.members) {
      const std::string both = "_c" + std::to_string(from.value) + suffix;
      Stage columns_of = store;
      columns_of.name = op.name + ".store" + both;
      AccessPattern& pattern = std::get<Store>(columns_of.kind).pattern;
      move_pattern(pattern, static_cast<std::uint32_t>(axis),
                   mutated("shard.gathered_columns_swapped", from.value, cuts_.chips - 1 - from.value) * part);
      deliver(entry, stage, add(std::move(columns_of)), page, entry.name + ".page" + both);
    }
    stages_.push_back(store.id);
  }

  SpatialProgram& p_;
  StagesByChip placed_;
  const Cuts& cuts_;
  const std::vector<ChipId>& ring_;
  std::vector<StageId> stages_;  // to be dropped, as the next two
  std::vector<BufferId> buffers_;
  std::vector<EdgeId> edges_;
};

// What the chips' slices say of the order of additions: row-parallel sums are joined in the order of the members until
// the collective pass picks an algorithm.
std::vector<SummationTree> trees_of(const SpatialProgram& all, const Slices& slices, const Cuts& cuts,
                                    const std::vector<ChipId>& ring) {
  std::vector<SummationTree> trees;
  std::map<OperatorId, const SummationTree*> first_of;  // a slice has one of an operator
  for (const SpatialProgram& slice : slices.shapes)
    for (const SummationTree& tree : slice.trees) first_of.try_emplace(tree.op, &tree);
  for (const auto& [op, any] : first_of) {
    const SummationTree& first = *any;
    std::vector<Sum> parts;
    for (const ChipId chip : ring) {
      if (idles(cuts.operators[op.value], chip)) continue;
      const std::vector<SummationTree>& own = slices.of(chip).trees;
      const auto tree = std::find_if(own.begin(), own.end(), [&](const SummationTree& t) { return t.op == first.op; });
      for (const Work& w : all.work)
        if (w.op == op && w.chip == chip)
          parts.push_back(moved_to(tree->nodes, mutated("shard.tree_of_one_chip", chip, ChipId(0)), w.offset_k));
    }
    if (cuts.operators[first.op.value].kind == CutKind::row) parts = {left_deep(parts)};
    for (Sum& nodes : parts) {
      SummationTree tree = first;
      tree.id = SummationTreeId(trees.size());
      tree.nodes = std::move(nodes);
      trees.push_back(std::move(tree));
    }
  }
  return trees;
}

}  // namespace

Result<SpatialProgram> shard(const SpatialProgram& program, const ShardPlan& plan, const Target& target) {
  Diagnostics out;
  const std::string& where = program.header.name;
  if (plan.chips == 0) {
    out.error(Code::RDU4108, where, "0 chips were asked for; '{}' needs at least 1", where)
        .suggest("ask for 1 to {} chips", target.chips);
    return out;
  }
  if (plan.chips == 1) {
    SpatialProgram same = program;
    same.header.plan = plan;
    return same;
  }
  if (plan.chips > target.chips) {
    out.error(Code::RDU2009, where, "{} chips were asked for; target '{}' has {}", plan.chips, target.name,
              target.chips);
    return out;
  }
  if (already_sharded(program)) {
    out.error(Code::RDU4117, where, "'{}' is sharded already, over {} chips; it cannot be sharded again over {}", where,
              program.header.plan.chips, plan.chips);
    return out;
  }
  if (!program.header.numerics.partials_in_accumulator_type) {
    out.error(Code::RDU4116, where, "partial sums cross in the accumulator's type; another is not supported yet");
    return out;
  }
  check_shardable(program, plan, out);
  if (out.has_errors()) return out;

  Result<Cuts> cuts = cut(*program.operators, plan, target.native_tile, target.chips, where);
  if (!cuts.ok()) return cuts.diagnostics();
  const bool crosses = std::any_of(cuts->operators.begin(), cuts->operators.end(),
                                   [](const OperatorCut& c) { return c.joined_by.has_value(); });
  if (crosses && target.crossing.empty()) {
    out.error(Code::RDU4106, where,
              "the chips' results have to be joined, and target '{}' has no hand-off between chips", target.name)
        .suggest(
            "a target provides token, semaphore or barrier; a column-sharded program that joins nothing needs none");
    return out;
  }

  SpatialProgram whole = program;
  whole.work = whole_work(*program.operators);
  Result<Slices> slices = slices_of(whole, *cuts, plan, program, target);
  if (!slices.ok()) return slices.diagnostics();
  SpatialProgram sharded = spread(*slices, whole, *cuts, target.native_tile);
  sharded.header.name += "_tp" + std::to_string(plan.chips);
  sharded.header.plan = plan;
  const std::vector<ChipId> ring = ring_order(target, plan.chips);
  sharded.trees = trees_of(sharded, *slices, *cuts, ring);
  Joiner(sharded, *cuts, ring).join();
  return {std::move(sharded), slices->notes};
}

}  // namespace rdusim
