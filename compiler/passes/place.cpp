// One matmul on one chip becomes, for every slice l of its contraction (names of slice 0 carry no suffix):
//
//   NAME.load_a_kl -> NAME.a_kl -+
//                                +-> NAME.matmul_kl -> ...
//   NAME.load_b_kl -> NAME.b_kl -+
//
// With one slice the matmul feeds NAME.c and NAME.store. With several, each matmul pushes partial sums into an Interm
// buffer NAME.partial_kl; those of slices 1.. cross to slice 0's sites (NAME.recv_kl, NAME.landing_kl), where NAME.fold
// adds slice 0's own and then theirs in rising l, a slice a phase, so that one port is read at a time; where the schedule
// has it, on sites of its own, to which slice 0's cross as well.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "compiler/ir/print.h"
#include "compiler/passes/attention.h"
#include "compiler/passes/deal.h"
#include "compiler/passes/extents.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/place_attention.h"
#include "compiler/passes/place_gather.h"
#include "compiler/passes/place_moves.h"
#include "compiler/passes/place_rotary.h"
#include "compiler/passes/place_rows.h"
#include "compiler/passes/ports.h"
#include "compiler/passes/product_stack.h"
#include "compiler/passes/repeats.h"
#include "compiler/passes/section_builder.h"
#include "compiler/passes/sites.h"
#include "compiler/passes/unit_mode.h"
#include "compiler/workload/operator_traits.h"

namespace rdusim {
namespace {

enum MovementOrder : std::uint32_t { load_a = 0, load_b = 1, store = 2, first_recv = 3 };

class MatmulPlacer {
 public:
  MatmulPlacer(SpatialProgram& p, const Target& t, const Work& w, SectionId section)
      : p_(p),
        t_(t),
        w_(w),
        plan_(*w.plan),
        build_(p, t, w, section),
        op_(build_.op()),
        a_(build_.tensor_of(op_.in[0])),
        b_(build_.tensor_of(op_.in[1])),
        c_(build_.tensor_of(op_.out)),
        stack_(product_stack(*p.operators, op_)),
        rows_(*deal(stack_.blocks(plan_.block_m, t.native_tile), plan_.sites_m)),
        pin_(pin_of(*p.operators, op_.id)) {}

  void place(SiteAllocator& sites) {
    std::vector<BufferId> partials;
    std::vector<StageId> matmuls;
    for (std::uint64_t l = 0; l < plan_.sites_k; ++l) {
      Group g = plan_.sites_m > 1 && plan_.sites_n > 1 ? sites.block(plan_.sites_m, plan_.sites_n)
                                                       : sites.near_agcus(plan_.sites_m * plan_.sites_n);
      const auto [matmul, out] = place_slice(l, build_.add_group(std::move(g)));
      matmuls.push_back(matmul);
      partials.push_back(out);
    }
    std::optional<GroupId> apart;
    if (plan_.sites_k > 1 && pin_.fold_apart) apart = build_.add_group(sites.near_agcus(plan_.sites_m * plan_.sites_n));
    const GroupId home = apart.value_or(p_.stage(matmuls[0]).group);
    const auto [last, result] =
        plan_.sites_k == 1 ? std::pair(matmuls[0], partials[0])
                           : place_fold(p_, t_, build_, matmuls, partials, c_.dtype, plan_.rounds_m * plan_.rounds_n,
                                        MovementOrder::first_recv, pin_.lanes.value_or(0), apart, pmus());
    sites.lend_memory(plan_.sites_m * plan_.sites_n * (plan_.sites_k + (apart ? 1 : 0)) * (pmus() - 1));
    const StageId store = build_.add_stage("store", Store{c_.id, store_pattern(), {}, {}, stream_lanes()}, home,
                                           movement_engine(t_, MovementOrder::store), plan_.rounds_m * plan_.rounds_n,
                                           {input_port(result)});
    build_.add_edge(last, result, {store});
    add_tree();
  }

 private:
  DType operand() const { return a_.dtype; }
  DType accumulator() const { return accumulator_of(operand()); }
  bool transposed() const { return op_.attributes.transposed; }
  std::uint32_t stream_lanes() const { return pin_.stream_lanes.value_or(0); }
  std::uint32_t pmus() const { return pin_.pmus.value_or(1); }
  // Operands and result, in this order, take turns in the memory units of a site.
  void lay_in_units(BufferId a, BufferId b, BufferId out) {
    p_.buffers[a.value].pmu = 0;
    p_.buffers[b.value].pmu = 1 % pmus();
    p_.buffers[out.value].pmu = mutated("place.memory_unit_that_is_not_there", 2 % pmus(), 1U << 20);
  }
  // First tile of this work along an axis, as the tensor that holds it counts. The tensor may hold more than the slice
  // (a replica that every chip has whole), and its own offset is where its element 0 lies.
  std::uint64_t base(std::int64_t work_offset, std::int64_t tensor_offset) const {
    return build_.tiles(work_offset - tensor_offset);
  }
  std::string suffix(std::uint64_t slice) const { return slice == 0 ? "" : "_k" + std::to_string(slice); }

  BufferId add_output_buffer(const std::string& what, BufferKind kind, GroupId group, DType type) {
    return build_.add_buffer(what, kind, group, type, plan_.block_m, plan_.block_n, stack_.rows, w_.n);
  }

  // Calls f(i, j) for every instance in order.
  template <class F>
  void for_each_instance(F&& f) const {
    for (std::uint64_t i = 0; i < plan_.sites_m; ++i)
      for (std::uint64_t j = 0; j < plan_.sites_n; ++j) f(i, j);
  }

  // Loads, operand buffers and the matmul of contraction slice l; returns the matmul and its output buffer.
  std::pair<StageId, BufferId> place_slice(std::uint64_t l, GroupId group) {
    const std::string k = suffix(l);
    const std::uint64_t firings = plan_.rounds_m * plan_.rounds_n * plan_.k_pages;
    const std::uint64_t nt = build_.tiles(w_.n), kt = build_.tiles(w_.k);
    const std::uint64_t first_k = l * plan_.k_pages * plan_.page_k;
    const std::uint64_t end_k = std::min(kt, first_k + plan_.k_pages * plan_.page_k);
    const std::size_t row_axis = a_.shape.size() - 2, last_axis = b_.shape.size() - 1;

    const std::uint64_t a_row = base(w_.offset_m, a_.offset[row_axis]),
                        a_col = base(w_.offset_k, a_.offset[row_axis + 1]);
    Load load_a{a_.id, over_stack(stack_.left, a_, {plan_.rounds_n, plan_.k_pages}), {}};
    load_a.lanes = stream_lanes();
    load_a.pattern.stride[rows_.size() - 1][row_axis] = rows_.back().sites * plan_.block_m;
    load_a.pattern.stride.back()[row_axis + 1] = mutated("place.load_a_repeats_a_page", plan_.page_k, 0);
    set_matrix(load_a.pattern.page_tiles, {plan_.block_m, plan_.page_k});
    set_matrix(load_a.pattern.extent_tiles, {a_row + build_.tiles(stack_.rows), a_col + end_k});
    Load load_b{b_.id, over_stack(stack_.right, b_, {plan_.rounds_n, plan_.k_pages}), {}};
    load_b.lanes = stream_lanes();
    // Of b by contraction and column of the result: as its axes are, or transposed.
    const auto axes_of_b = [&](std::uint64_t contraction, std::uint64_t column) {
      return transposed() ? std::array{column, contraction} : std::array{contraction, column};
    };
    const std::uint64_t b_k = base(w_.offset_k, b_.offset[transposed() ? last_axis : last_axis - 1]),
                        b_n = base(w_.offset_n, b_.offset[transposed() ? last_axis - 1 : last_axis]);
    const std::size_t loops = load_b.pattern.loops.size();
    set_matrix(load_b.pattern.stride[loops - 2],
               axes_of_b(0, mutated("place.load_b_forgets_the_rounds", plan_.sites_n * plan_.block_n, 0)));
    set_matrix(load_b.pattern.stride[loops - 1], axes_of_b(plan_.page_k, 0));
    set_matrix(load_b.pattern.page_tiles, axes_of_b(plan_.page_k, plan_.block_n));
    set_matrix(load_b.pattern.extent_tiles, axes_of_b(b_k + end_k, b_n + nt));
    const std::uint64_t streams = streams_of_b();
    for_each_instance([&](std::uint64_t i, std::uint64_t j) {
      load_a.pattern.first.push_back(first_of(stack_.left, a_, i));
      set_matrix(load_a.pattern.first.back(), {a_row + site_at(rows_, i).back() * plan_.block_m,
                                               a_col + mutated("place.load_a_ignores_its_slice", first_k, 0)});
      load_b.pattern.first.push_back(first_of(stack_.right, b_, i));
      set_matrix(load_b.pattern.first.back(), axes_of_b(b_k + first_k, b_n + mutated("place.load_b_reads_the_neighbour",
                                                                                     j, (j + 1) % plan_.sites_n) *
                                                                                 plan_.block_n));
      if (plan_.sites_n > 1)
        load_a.multicast_set.push_back(static_cast<std::uint32_t>(mutated("place.multicast_set_of_another_row", i, 0)));
      if (plan_.sites_m > streams)
        load_b.multicast_set.push_back(static_cast<std::uint32_t>(stream_of_b(i) * plan_.sites_n + j));
    });

    const BufferId a =
        build_.add_buffer("a" + k, BufferKind::fifo, group, operand(), plan_.block_m, plan_.page_k, stack_.rows, w_.k);
    if (mutated("place.half_a_page", false, true)) p_.buffers[a.value].page_bytes /= 2;
    const BufferId b =
        build_.add_buffer("b" + k, BufferKind::fifo, group, operand(), plan_.page_k, plan_.block_n, w_.k, w_.n);
    const StageId from_a = build_.add_stage("load_a" + k, std::move(load_a), group,
                                            movement_engine(t_, MovementOrder::load_a), firings, {output_port(a)});
    const StageId from_b = build_.add_stage("load_b" + k, std::move(load_b), group,
                                            movement_engine(t_, MovementOrder::load_b), firings, {output_port(b)});

    const bool partial = plan_.sites_k > 1;
    const DType result = partial ? accumulator() : c_.dtype;
    const BufferId out = partial ? add_output_buffer("partial_k" + std::to_string(l), BufferKind::interm, group, result)
                                 : add_output_buffer("c", BufferKind::fifo, group, result);
    lay_in_units(a, b, out);
    const auto pages = static_cast<std::uint32_t>(plan_.k_pages);
    const std::uint32_t pushed_in = mutated("place.push_before_the_last_page", pages - 1, 0);
    const Port push = output_port(out, pushed_in, pushed_in + 1, pages);
    const MatmulTiles body{op_.id,
                           plan_.block_m,
                           plan_.block_n,
                           plan_.page_k,
                           end_k - first_k - mutated("place.tile_left_out", 0, 1),
                           mutated("place.matmul_sums_too_few_pages", plan_.k_pages, 1),
                           operand(),
                           mutated("place.accumulator_too_narrow", accumulator(), operand()),
                           result,
                           mutated("place.transposed_passes_for_plain", transposed(), false),
                           mutated("place.lanes_of_an_array", matmul_lanes(pin_, t_), 0)};
    const StageId matmul = build_.add_stage("matmul" + k, body, group, {StageRole::compute, 0}, firings,
                                            {input_port(a), input_port(b), push});
    if (mutated("place.edge_left_out", true, false)) build_.add_edge(from_a, a, {matmul});
    build_.add_edge(from_b, b, {matmul});
    build_.assign_work(matmul, l);
    return {matmul, out};
  }

  AccessPattern store_pattern() const {
    const std::size_t row_axis = c_.shape.size() - 2;
    const std::uint64_t row = base(w_.offset_m, c_.offset[row_axis]), col = base(w_.offset_n, c_.offset[row_axis + 1]);
    AccessPattern pattern = over_stack(stack_.left, c_, {plan_.rounds_n});
    pattern.stride[rows_.size() - 1][row_axis] = rows_.back().sites * plan_.block_m;
    pattern.stride.back()[row_axis + 1] = plan_.sites_n * plan_.block_n;
    set_matrix(pattern.page_tiles, {plan_.block_m, plan_.block_n});
    set_matrix(pattern.extent_tiles, {row + build_.tiles(stack_.rows), col + build_.tiles(w_.n)});
    for_each_instance([&](std::uint64_t i, std::uint64_t j) {
      pattern.first.push_back(first_of(stack_.left, c_, i));
      set_matrix(pattern.first.back(), {row + site_at(rows_, i).back() * plan_.block_m,
                                        col + mutated("place.store_over_the_neighbour", j, 0) * plan_.block_n});
    });
    return pattern;
  }

  // The loops over the stack, over blocks of rows, and `inner`; of a tensor whose leading axes take `steps`. Its last
  // two axes are left to be filled in.
  AccessPattern over_stack(const std::vector<std::vector<std::uint64_t>>& steps, const Tensor& t,
                           const std::vector<std::uint64_t>& inner) const {
    const std::size_t axes = t.shape.size();
    AccessPattern pattern;
    for (const AxisDeal& axis : rows_) {
      pattern.loops.push_back(axis.rounds);
      pattern.stride.emplace_back(axes, 0);
    }
    for (std::size_t d = 0; d < steps.size(); ++d)
      for (std::size_t x = 0; x < steps[d].size(); ++x) pattern.stride[d][x] = steps[d][x] * rows_[d].sites;
    for (const std::uint64_t rounds : inner) {
      pattern.loops.push_back(rounds);
      pattern.stride.emplace_back(axes, 0);
    }
    pattern.page_tiles.assign(axes, 1);
    pattern.extent_tiles = t.tiles;
    return pattern;
  }
  std::vector<std::uint64_t> first_of(const std::vector<std::vector<std::uint64_t>>& steps, const Tensor& t,
                                      std::uint64_t i) const {
    std::vector<std::uint64_t> first(t.shape.size(), 0);
    const std::vector<std::uint64_t> at = site_at(rows_, i);
    for (std::size_t d = 0; d < steps.size(); ++d)
      for (std::size_t x = 0; x < steps[d].size(); ++x)
        first[x] += at[d] * mutated("place.stack_reads_the_first_matrix", steps[d][x], 0);
    return first;
  }
  static void set_matrix(std::vector<std::uint64_t>& axes, std::array<std::uint64_t, 2> rows_and_columns) {
    std::copy(rows_and_columns.begin(), rows_and_columns.end(), axes.end() - 2);
  }

  // Which of the matrices of b that are worked on at once instances (i, *) read, and how many those are.
  std::uint64_t stream_of_b(std::uint64_t i) const {
    const std::vector<std::uint64_t> at = site_at(rows_, i);
    std::uint64_t stream = 0;
    for (std::size_t d = 0; d < stack_.extents.size(); ++d)
      if (stack_.right_moves(d)) stream = stream * rows_[d].sites + at[d];
    return stream;
  }
  std::uint64_t streams_of_b() const {
    std::uint64_t streams = 1;
    for (std::size_t d = 0; d < stack_.extents.size(); ++d)
      if (stack_.right_moves(d)) streams *= rows_[d].sites;
    return streams;
  }

  void add_tree() {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    const std::int64_t slice = static_cast<std::int64_t>(plan_.k_pages * plan_.page_k) * t_.native_tile;
    for (std::uint64_t l = 0; l < plan_.sites_k; ++l)
      ranges.emplace_back(
          w_.offset_k + static_cast<std::int64_t>(mutated("place.tree_counts_a_slice_twice", l, 0)) * slice,
          w_.offset_k + std::min(w_.k, static_cast<std::int64_t>(l + 1) * slice));
    add_left_deep_tree(p_, op_.id, w_.chip, ranges, std::max(matmul_lanes(pin_, t_), 1u));
  }

  SpatialProgram& p_;
  const Target& t_;
  const Work& w_;
  const BlockPlan& plan_;
  SectionBuilder build_;
  const Operator& op_;
  const Tensor& a_;
  const Tensor& b_;
  const Tensor& c_;
  const ProductStack stack_;
  const std::vector<AxisDeal> rows_;  // the stack and its blocks of rows
  const SchedulePin pin_;
};

void place_work(SpatialProgram& program, const Target& target, const Work& w, SectionId section, SiteAllocator& sites) {
  const OperatorKind kind = program.operators->operators[w.op.value].kind;
  if (kind == OperatorKind::attention)
    place_attention(program, target, w, section, sites);
  else if (kind == OperatorKind::gather)
    place_gather(program, target, w, section, sites);
  else if (is_move(kind))
    place_moves(program, target, w, section, sites);
  else if (kind == OperatorKind::rotary)
    place_rotary(program, target, w, section, sites);
  else if (kind != OperatorKind::matmul)
    place_rows(program, target, w, section, sites);
  else
    MatmulPlacer(program, target, w, section).place(sites);
}

// The section carries out all that repeats.
void make_trips(Section& section, const Repeat& repeat, const ShardPlan& plan) {
  section.trips = repeat.trips;
  section.operators_a_trip = repeat.length;
  section.relaunched = plan.relaunch;
}

// Whether one trip finds sites for all its operators at once.
bool trip_fits(const SpatialProgram& program, const Repeat& repeat, const OnlyOn& only, const Target& target) {
  SitesOfChips sites;
  bool any = false;
  for (const Work& w : program.work)
    if (w.op.value >= repeat.first.value && w.op.value < repeat.first.value + repeat.length) {
      sites.take(only[w.op.value], sites_wanted(*program.operators, w, target));
      any = true;
    }
  return any && sites.most() <= target.sites();
}

// Runs of operators that repeat and of which one trip finds sites for all its operators at once, by the operator that
// they begin with. Their later trips' works are taken out of the program.
struct Trips {
  Repeat repeat;
  LaterTensors later;
};
// Where `plan` is given, those that are trips there.
std::map<OperatorId, Trips> take_trips(SpatialProgram& program, const SectionPlan* plan, const Target& target) {
  std::map<OperatorId, Trips> all;
  for (const Repeat& repeat : repeats_of(*program.operators)) {
    if (plan != nullptr) {
      const auto at = std::find(plan->begins.begin(), plan->begins.end(), repeat.first);
      if (at == plan->begins.end() ||
          plan->sections[static_cast<std::size_t>(at - plan->begins.begin())].trips != repeat.trips)
        continue;
    } else if (!trip_fits(program, repeat, OnlyOn(program.operators->operators.size()), target)) {
      continue;
    }
    if (auto later = later_tensors(program, repeat)) all.emplace(repeat.first, Trips{repeat, std::move(*later)});
  }
  std::erase_if(program.work, [&](const Work& w) {
    const auto after = all.upper_bound(w.op);
    if (after == all.begin()) return false;
    const Repeat& repeat = std::prev(after)->second.repeat;
    return w.op.value >= repeat.first.value + repeat.length && w.op.value < repeat.end();
  });
  for (std::size_t i = 0; i < program.work.size(); ++i) program.work[i].id = WorkId(i);
  return all;
}

// `plan`: sections that are given; nothing where they are filled as sites last.
Result<SpatialProgram> place_in_sections(SpatialProgram program, const SectionPlan* plan, const Target& target) {
  if (!program.operators || program.placement) return program;
  Diagnostics out;
  for (const Work& w : program.work) {
    const Operator& op = program.operators->operators[w.op.value];
    if (w.plan->sites_k > 1 && target.crossing.empty())
      out.error(Code::RDU4106, place_of(program, op),
                "matmul '{}' splits its contraction over {} sites, and target '{}' has no hand-off between sites",
                op.name, w.plan->sites_k, target.name);
    if (op.kind == OperatorKind::attention && target.crossing.empty())
      out.error(Code::RDU4106, place_of(program, op),
                "attention '{}' hands weights from site to site, and target '{}' has no hand-off between sites",
                op.name, target.name);
  }
  if (out.has_errors()) return out;
  program.placement = Placement{target.mesh, {}, {}};
  const std::map<OperatorId, Trips> trips = take_trips(program, plan, target);
  // Operators share a section as long as each finds sites of its own: what one stores the next loads when it is
  // complete, and all load their weights meanwhile. What repeats has a section of its own.
  std::optional<SiteAllocator> sites;
  const Operator* first = nullptr;
  const Trips* repeated = nullptr;  // whose section is being filled
  SectionId section;
  if (plan != nullptr) program.sections = plan->sections;
  for (const Work& w : program.work) {
    const Operator& op = program.operators->operators[w.op.value];
    const std::uint64_t wanted = sites_wanted(*program.operators, w, target);
    if (plan != nullptr) {
      const auto after = std::upper_bound(plan->begins.begin(), plan->begins.end(), op.id);
      const SectionId own(static_cast<std::size_t>(after - plan->begins.begin()) - 1);
      if (!sites || own != section) sites.emplace(target, w.chip);
      section = own;
      const auto repeat = trips.find(plan->begins[section.value]);
      repeated = repeat == trips.end() ? nullptr : &repeat->second;
      if (sites->free() < wanted) {
        out.error(
            Code::RDU4112, place_of(program, op),
            "'{}' takes {} sites of a chip on which section '{}' leaves {}: its slice is no smaller than another's",
            op.name, wanted, program.sections[section.value].name, sites->free());
        return out;
      }
    } else {
      const auto begins = trips.find(op.id);
      const bool left = repeated != nullptr && op.id.value >= repeated->repeat.end();
      if (left) repeated = nullptr;
      if (!sites || left || begins != trips.end() || sites->free() < wanted) {
        first = &op;
        section = SectionId(program.sections.size());
        program.sections.push_back({section, op.name, 1});
        sites.emplace(target, w.chip);
        if (begins != trips.end()) {
          repeated = &begins->second;
          make_trips(program.sections.back(), repeated->repeat, program.header.plan);
        }
      } else {
        program.sections.back().name = first->name + ".." + op.name;
      }
    }
    const std::size_t stages = program.stages.size();
    place_work(program, target, w, section, *sites);
    if (repeated == nullptr) continue;
    const auto name_later = [&](auto& access) {
      access.later = mutated("place.trips_keep_the_first_tensor", repeated->later[access.tensor.value], {});
      if (program.tensor(access.tensor).role != TensorRole::weight) return;
      access.later = mutated("place.trips_keep_the_first_weight", access.later, {});
      if (mutated("place.weights_of_another_trip", false, true)) std::reverse(access.later.begin(), access.later.end());
    };
    for (std::size_t s = stages; s < program.stages.size(); ++s) {
      if (auto* load = std::get_if<Load>(&program.stages[s].kind)) name_later(*load);
      if (auto* store = std::get_if<Store>(&program.stages[s].kind)) name_later(*store);
    }
  }
  return program;
}

}  // namespace

Result<SpatialProgram> place(SpatialProgram program, const Target& target) {
  return place_in_sections(std::move(program), nullptr, target);
}

Result<SpatialProgram> place_in(SpatialProgram program, const SectionPlan& sections, const Target& target) {
  return place_in_sections(std::move(program), &sections, target);
}

SectionPlan sections_of(const SpatialProgram& p) {
  std::map<SectionId, OperatorId> first;
  for (const Stage& s : p.stages) {
    if (!s.origin) continue;
    OperatorId& least = first.try_emplace(s.section, *s.origin).first->second;
    least = std::min(least, *s.origin);
  }
  SectionPlan plan{p.sections, {}};
  for (const auto& [section, op] : first) plan.begins.push_back(op);
  return plan;
}

SectionPlan sections_for_chips(const SpatialProgram& tiled, const OnlyOn& only, const Target& target) {
  const OperatorGraph& graph = *tiled.operators;
  std::map<OperatorId, Repeat> trips;
  for (const Repeat& repeat : repeats_of(graph))
    if (trip_fits(tiled, repeat, only, target) && later_tensors(tiled, repeat)) trips.emplace(repeat.first, repeat);
  SectionPlan plan;
  SitesOfChips sites;
  const Repeat* repeated = nullptr;  // whose section is being filled
  for (const Work& w : tiled.work) {
    const auto begins = trips.find(w.op);
    const bool left = repeated != nullptr && w.op.value >= repeated->end();
    if (repeated != nullptr && !left && w.op.value >= repeated->first.value + repeated->length) continue;
    if (left) repeated = nullptr;
    const std::uint64_t wanted = sites_wanted(graph, w, target);
    const bool full = sites.taken(only[w.op.value]) + wanted > target.sites();
    const std::string& name = graph.operators[w.op.value].name;
    if (plan.sections.empty() || left || begins != trips.end() || full) {
      plan.sections.push_back({SectionId(plan.sections.size()), name, 1});
      plan.begins.push_back(w.op);
      sites = {};
      if (begins != trips.end()) {
        repeated = &begins->second;
        make_trips(plan.sections.back(), *repeated, tiled.header.plan);
      }
    } else {
      plan.sections.back().name = graph.operators[plan.begins.back().value].name + ".." + name;
    }
    sites.take(only[w.op.value], wanted);
  }
  return plan;
}

}  // namespace rdusim
