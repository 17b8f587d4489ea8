// The compiler with one mistake at a time (compiler/passes/mutate.h), and who catches it.
//
// What a mutant compiles is held against the verifier (its rules are applied as the compiler ends), then the
// independent checker of certificates, then a run with values; the first of them that finds fault is the one that a row
// names.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <regex>
#include <set>

#include "compiler/certificate/check.h"
#include "compiler/compile.h"
#include "compiler/program/prog_bin.h"
#include "compiler/support/file.h"
#include "sim/isolated_run.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim {
namespace {

std::string& chosen() {
  static std::string mutant;
  return mutant;
}

}  // namespace

bool is_chosen(std::string_view mutant) {
  return mutant == chosen();
}

}  // namespace rdusim

namespace rdusim::test {
namespace {

// Who notices, and the code of the first thing said.
enum class Who { nobody, pass, verifier, certificate, run };
struct Catch {
  Who who = Who::nobody;
  Code code{};
  std::string message;
};

// What is compiled: each reaches other passes.
enum class Input {
  slices,           // one chip; sites along every axis, two slices of the contraction, two rounds
  lanes,            // the same, in SIMD lanes
  direct,           // over three chips, an all-reduce
  recorded,         // made for some data, over three
  uneven,           // over three, of which the first has a tile more
  ring,             // over four
  through_one,      // over three
  halving,          // over five
  tree,             // over four
  hierarchical,     // over three, in nodes of two
  scatter,          // rows of three chips each, in a ring
  scatter_levels,   // the same, in nodes of two
  exchange,         // columns of three chips for rows
  line,             // a product of one of three chips, sent along them
  chunks,           // the same, in chunks
  pair_alone,       // a pair of products by one of three chips, the second's sent to all
  tokens,           // rows of two of three chips, sent to the third, one after the other
  rows,             // of two chips each, worked on, and gathered
  ring_reduce,      // over three, in bf16
  gather,           // column-parallel operators over two chips, joined in between
  ring_gather,      // over three
  trains,           // over six in nodes of two, whose sites have few buffers
  ring_trains,      // the same
  transposed,       // as slices, with a transposed weight whose extents are equal
  sinks,            // as attention, with a sink a head and further columns
  attention,        // causal, two heads that share keys and values, eight pages of keys on four sites
  stack,            // four matrices by two, on a site for each
  direct_wormhole,  // circular buffers and semaphores
  moves,            // one of each
  rotary,           // two heads on two sites
  layers,           // six alike, of which the inner four are trips of one section
};

struct Compiled {
  OperatorGraph graph;
  Target target;
  CompileOptions options;
};

void add_operator(OperatorGraph& g, OperatorKind kind, std::vector<OperandId> in, OperandId out,
                  OperatorAttributes attributes) {
  matmul(g, std::string(name_of(kind)), in[0], in[0], out);
  Operator& op = g.operators.back();
  op.kind = kind;
  op.in = std::move(in);
  op.attributes = std::move(attributes);
}

// Five rows each, which two chips look up, meet on the third, where a product is made of them.
OperatorGraph rows_sent_to_the_third() {
  OperatorGraph g;
  g.name = "tokens";
  constexpr auto type = DType::int8;
  const OperandId table = operand(g, "table", TensorRole::input, {40, 64}, type, PatternFill{211, 100}).id;
  std::vector<OperandId> sent;
  OperatorAttributes here;
  for (std::int64_t c = 0; c < 2; ++c) {
    const std::string name = c == 0 ? "first" : "second";
    const OperandId which = operand(g, name + ".rows", TensorRole::input, {5}, DType::int32,
                                    ValuesFill{{3 + c, 17, 39 - c, 8 + 4 * c, 30}, {}})
                                .id;
    const OperandId out = operand(g, name, TensorRole::intermediate, {5, 64}, type).id;
    here.alone = {c, 3};
    add_operator(g, OperatorKind::gather, {table, which}, out, here);
    g.operators.back().name += "." + name;
    sent.push_back(out);
  }
  here.alone = {2, 3};
  here.axes = {0};
  const OperandId all = operand(g, "all", TensorRole::intermediate, {10, 64}, type).id;
  add_operator(g, OperatorKind::concat, sent, all, here);
  here.axes.clear();
  const OperandId w = operand(g, "w", TensorRole::weight, {64, 96}, type, PatternFill{199, 100}).id;
  add_operator(g, OperatorKind::matmul, {all, w}, operand(g, "out", TensorRole::output, {10, 96}, DType::int32).id,
               here);
  return g;
}

OperatorGraph all_moves() {
  OperatorGraph g;
  g.name = "moves";
  constexpr auto type = DType::int8;
  const auto in = [&](const std::string& name, std::vector<std::int64_t> shape, std::uint64_t modulus,
                      TensorRole role = TensorRole::input) {
    return operand(g, name, role, std::move(shape), type, PatternFill{static_cast<std::int64_t>(modulus), 100}).id;
  };
  const auto out = [&](OperatorKind kind, std::vector<std::int64_t> shape) {
    return operand(g, std::string(name_of(kind)) + ".out",
                   kind == OperatorKind::append ? TensorRole::intermediate : TensorRole::output, std::move(shape), type)
        .id;
  };
  const OperandId x = in("x", {40, 48}, 211), y = in("y", {40, 48}, 199), row = in("row", {1, 48}, 197),
                  square = in("square", {40, 40}, 191);
  const OperandId state = in("state", {40, 48}, 193, TensorRole::state);
  OperatorAttributes cut, order, joined, at;
  cut.begin = {3, 5};
  cut.end = {40, 48};
  order.axes = {1, 0};
  joined.axes = {0};
  at.begin = {37};
  add_operator(g, OperatorKind::slice, {x}, out(OperatorKind::slice, {37, 43}), cut);
  add_operator(g, OperatorKind::concat, {x, y}, out(OperatorKind::concat, {80, 48}), joined);
  add_operator(g, OperatorKind::reshape, {x}, out(OperatorKind::reshape, {20, 96}), {});
  add_operator(g, OperatorKind::transpose, {square}, out(OperatorKind::transpose, {40, 40}), order);
  // Two sites of 61 indices each.
  const auto indices = operand(g, "indices", TensorRole::input, {122}, DType::int32, PatternFill{37, 0});
  add_operator(g, OperatorKind::gather, {x, indices.id}, out(OperatorKind::gather, {122, 48}), {});
  add_operator(g, OperatorKind::append, {state, row}, out(OperatorKind::append, {40, 48}), at);
  return g;
}

OperatorGraph one_rotary() {
  OperatorGraph g;
  g.name = "rotary";
  const auto x = operand(g, "x", TensorRole::input, {40, 80}, DType::fp32, PatternFill{61, 30});
  const auto cos = operand(g, "cos", TensorRole::input, {40, 20}, DType::fp32, PatternFill{13, 6});
  const auto sin = operand(g, "sin", TensorRole::input, {40, 20}, DType::fp32, PatternFill{11, 5});
  const auto y = operand(g, "y", TensorRole::output, {40, 80}, DType::fp32);
  OperatorAttributes a;
  a.heads = 2;
  add_operator(g, OperatorKind::rotary, {x.id, cos.id, sin.id}, y.id, a);
  return g;
}

Compiled input(Input which) {
  using Kind = CollectiveKind;
  using Algorithm = CollectiveAlgorithm;
  const auto sharded = [](OperatorGraph graph, Target target, ShardPlan plan) {
    for (const Operator& op : graph.operators) {
      SchedulePin pin;
      pin.op = op.id;
      pin.sites = 2;
      graph.pins.push_back(pin);
    }
    return Compiled{std::move(graph), std::move(target), {plan, ""}};
  };
  switch (which) {
    case Input::slices: {
      Compiled c{one_matmul(64, 256, 256), sn40l(), {}};
      SchedulePin pin;
      pin.op = c.graph.operators.front().id;
      pin.unroll_m = 2;
      pin.unroll_n = 4;
      pin.unroll_k = 2;
      pin.block_m = pin.block_n = 1;
      pin.page_k = 2;
      c.graph.pins.push_back(pin);
      return c;
    }
    case Input::lanes: {
      Compiled c = input(Input::slices);
      c.graph.pins.front().unit = UnitMode::simd;
      c.graph.pins.front().lanes = 8;
      return c;
    }
    case Input::transposed: {
      Compiled c = input(Input::slices);
      c.graph.operators.front().attributes.transposed = true;
      return c;
    }
    case Input::attention: {
      OperatorGraph g;
      g.name = "attention";
      const auto q = operand(g, "q", TensorRole::input, {40, 128}, DType::fp32, PatternFill{61, 30});
      const auto k = operand(g, "k", TensorRole::input, {250, 64}, DType::fp32, PatternFill{53, 26});
      const auto v = operand(g, "v", TensorRole::input, {250, 64}, DType::fp32, PatternFill{47, 23});
      const auto y = operand(g, "y", TensorRole::output, {40, 128}, DType::fp32);
      matmul(g, "attention", q.id, k.id, y.id);
      Operator& op = g.operators.front();
      op.kind = OperatorKind::attention;
      op.in.push_back(v.id);
      op.attributes.heads = 4;
      op.attributes.kv_heads = 2;
      op.attributes.scale = 0.125;
      op.attributes.causal = true;
      SchedulePin pin;
      pin.op = op.id;
      pin.page_k = 1;
      pin.unroll_k = 4;
      g.pins.push_back(pin);
      return {std::move(g), sn40l(), {}};
    }
    case Input::sinks: {
      Compiled c = input(Input::attention);
      OperatorGraph& g = c.graph;
      const auto s = operand(g, "s", TensorRole::weight, {4, 1, 1}, DType::fp32, PatternFill{3, 1});
      const auto q = operand(g, "q2", TensorRole::input, {40, 256}, DType::fp32, PatternFill{59, 29});
      const auto k = operand(g, "k2", TensorRole::input, {250, 128}, DType::fp32, PatternFill{43, 21});
      for (const OperandId in : {s.id, q.id, k.id}) g.operators.front().in.push_back(in);
      return c;
    }
    case Input::stack: {
      Compiled c{one_matmul(64, 64, 32), sn40l(), {}};
      c.graph.operands[0].shape = {4, 64, 64};
      c.graph.operands[1].shape = {2, 64, 32};
      c.graph.operands[2].shape = {4, 64, 32};
      return c;
    }
    case Input::direct:
      return sharded(one_matmul(64, 192, 96), sn40l(), over(3, ShardKind::row, Kind::all_reduce, Algorithm::direct));
    case Input::recorded: {
      Compiled c =
          sharded(one_matmul(64, 192, 96), sn40l(), over(3, ShardKind::row, Kind::all_reduce, Algorithm::direct));
      c.graph.assumes = "the experts of 1 token";
      return c;
    }
    case Input::uneven: {
      Compiled c =
          sharded(one_matmul(64, 130, 96), sn40l(), over(3, ShardKind::row, Kind::all_reduce, Algorithm::direct));
      c.options.plan.uneven = true;
      return c;
    }
    case Input::ring:
      return sharded(one_matmul(64, 256, 96), sn40l(), over(4, ShardKind::row, Kind::all_reduce, Algorithm::ring));
    case Input::through_one:
      return sharded(one_matmul(64, 192, 96), sn40l(),
                     over(3, ShardKind::row, Kind::all_reduce, Algorithm::through_one));
    case Input::halving:
      return sharded(one_matmul(64, 320, 96), sn40l(),
                     over(5, ShardKind::row, Kind::all_reduce, Algorithm::halving_doubling));
    case Input::tree:
      return sharded(one_matmul(64, 256, 96), sn40l(), over(4, ShardKind::row, Kind::all_reduce, Algorithm::tree));
    case Input::hierarchical: {
      Target in_pairs = sn40l();
      in_pairs.node_chips = 2;
      return sharded(one_matmul(64, 192, 96), in_pairs,
                     over(3, ShardKind::row, Kind::all_reduce, Algorithm::hierarchical));
    }
    case Input::scatter: {
      Compiled c =
          sharded(one_matmul(48, 192, 96), sn40l(), over(3, ShardKind::row, Kind::all_reduce, Algorithm::ring));
      c.graph.operators.front().attributes.scattered = true;
      return c;
    }
    case Input::scatter_levels: {
      Compiled c = input(Input::scatter);
      c.target.node_chips = 2;
      c.options.plan.algorithm = Algorithm::hierarchical;
      return c;
    }
    case Input::exchange: {
      Compiled c = sharded(one_matmul(48, 64, 96), sn40l(), over(3, ShardKind::column));
      c.graph.operators.front().attributes.scattered = true;
      return c;
    }
    case Input::line:
    case Input::chunks:
      return sharded(
          one_matmul_alone(1, 3, 48, 64, 96), sn40l(),
          over(3, ShardKind::row, Kind::all_reduce, which == Input::line ? Algorithm::ring : Algorithm::direct));
    case Input::pair_alone: {
      Compiled c = sharded(two_matmuls(32, 64, 96, 64), sn40l(), over(3, ShardKind::row));
      for (Operator& op : c.graph.operators) op.attributes.alone = {1, 3};
      return c;
    }
    case Input::tokens:
      return sharded(rows_sent_to_the_third(), sn40l(), over(3, ShardKind::row));
    case Input::rows:
      return sharded(scattered_chain(64, 128, 64), sn40l(),
                     over(2, ShardKind::row, Kind::all_reduce, Algorithm::direct));
    case Input::ring_reduce:
      return sharded(one_matmul(64, 192, 96, DType::bf16, DType::bf16), sn40l(),
                     over(3, ShardKind::row, Kind::reduce, Algorithm::ring));
    case Input::gather:
      return sharded(two_matmuls(32, 32, 64, 64), sn40l(), over(2, ShardKind::column));
    case Input::ring_gather:
      return sharded(two_matmuls(32, 32, 96, 96), sn40l(),
                     over(3, ShardKind::column, Kind::all_reduce, Algorithm::ring));
    case Input::trains:
    case Input::ring_trains: {
      Target few = sn40l();
      few.node_chips = 2;
      few.site.buffers = 7;
      return sharded(two_matmuls(32, 32, 192, 192), few,
                     over(6, ShardKind::column, Kind::all_reduce,
                          which == Input::trains ? Algorithm::hierarchical : Algorithm::ring));
    }
    case Input::direct_wormhole:
      return sharded(one_matmul(64, 192, 96), wormhole(), over(2, ShardKind::row, Kind::all_reduce, Algorithm::direct));
    case Input::moves:
      return {all_moves(), sn40l(), {}};
    case Input::layers: {
      OperatorGraph g;
      g.name = "layers";
      OperandId x = operand(g, "x", TensorRole::input, {32, 32}, DType::fp32, PatternFill{61, 30}).id;
      for (int i = 0; i < 6; ++i) {
        const std::string n = std::to_string(i);
        const OperandId w = operand(g, "w" + n, TensorRole::weight, {32, 32}, DType::fp32, PatternFill{53, 26}).id;
        const TensorRole role = i == 5 ? TensorRole::output : TensorRole::intermediate;
        const OperandId y = operand(g, "h" + n, role, {32, 32}, DType::fp32).id;
        matmul(g, "layer" + n, x, w, y);
        x = y;
      }
      return {g, sn40l(), {}};
    }
    case Input::rotary: {
      Compiled c{one_rotary(), sn40l(), {}};
      SchedulePin pin;
      pin.op = c.graph.operators.front().id;
      pin.sites = 2;
      c.graph.pins.push_back(pin);
      return c;
    }
  }
  return {};
}

Result<SpatialProgram> compile_with(const std::string& mutant, const Compiled& c) {
  chosen() = mutant;
  auto program = compile(c.graph, c.target, c.options);
  chosen().clear();
  return program;
}

Catch first(Who who, const Diagnostics& d) {
  for (const Diagnostic& e : d.list())
    if (e.severity == Severity::error) return {who, e.code, e.message};
  return {};
}

bool is_rule(const Diagnostics& d) {
  const auto number = static_cast<unsigned>(d.list().front().code);
  return number / 1000 == 3 || d.contains(Code::RDU4107);
}

Catch caught(const std::string& mutant, Input which) {
  const Compiled c = input(which);
  const auto right = compile_with("", c), wrong = compile_with(mutant, c);
  REQUIRE(right.ok());
  if (!wrong.ok()) return first(is_rule(wrong.diagnostics()) ? Who::verifier : Who::pass, wrong.diagnostics());
  if (encode(*right) == encode(*wrong)) return {Who::nobody, {}, "the mistake made no difference"};
  const Diagnostics found = check_certificate(*wrong, c.target);
  if (found.has_errors()) return first(Who::certificate, found);
  const LoadedProgram loaded{*wrong, c.target, "", "", {}};
  const std::atomic<bool> stop = false;
  const IsolatedRun run = run_isolated(loaded, {RunOptions{}}, {1, 20, {}}, stop).front();
  if (!run.ended) return {Who::nobody, {}, "the run did not end by itself"};
  if (run.errors.empty()) return {};
  return {Who::run, run.errors.front(), run.message};
}

struct Row {
  const char* mutant;
  Input input;
  Who who;
  Code code;
};

constexpr Row table[] = {
    {"lower.range_too_narrow", Input::slices, Who::verifier, Code::RDU3040},
    {"lower.tensor_begins_further_on", Input::slices, Who::verifier, Code::RDU3003},
    {"lower.rows_are_columns", Input::slices, Who::verifier, Code::RDU3003},
    {"lower.contraction_short", Input::slices, Who::verifier, Code::RDU3024},
    {"tile.round_left_out", Input::slices, Who::verifier, Code::RDU3003},
    {"tile.page_left_out", Input::slices, Who::verifier, Code::RDU3003},
    {"place.load_a_repeats_a_page", Input::slices, Who::verifier, Code::RDU3024},
    {"place.load_b_forgets_the_rounds", Input::slices, Who::verifier, Code::RDU3024},
    {"place.load_a_ignores_its_slice", Input::slices, Who::verifier, Code::RDU3024},
    {"place.load_b_reads_the_neighbour", Input::slices, Who::verifier, Code::RDU3024},
    {"place.multicast_set_of_another_row", Input::slices, Who::verifier, Code::RDU3028},
    {"place.half_a_page", Input::slices, Who::verifier, Code::RDU3003},
    {"place.push_before_the_last_page", Input::slices, Who::verifier, Code::RDU3030},
    {"place.lanes_of_an_array", Input::lanes, Who::verifier, Code::RDU3032},
    {"place.memory_unit_that_is_not_there", Input::slices, Who::verifier, Code::RDU3049},
    {"place.tile_left_out", Input::slices, Who::verifier, Code::RDU3047},
    {"place.matmul_sums_too_few_pages", Input::slices, Who::verifier, Code::RDU3003},
    {"place.transposed_passes_for_plain", Input::transposed, Who::verifier, Code::RDU3024},
    {"place.stack_reads_the_first_matrix", Input::stack, Who::verifier, Code::RDU3015},
    {"attention.mask_one_key_short", Input::attention, Who::certificate, Code::RDU5011},
    {"attention.drops_further_columns", Input::sinks, Who::certificate, Code::RDU5011},
    {"attention.sinks_take_no_share", Input::sinks, Who::certificate, Code::RDU5011},
    {"attention.sink_of_the_first_head", Input::sinks, Who::verifier, Code::RDU3044},
    {"attention.all_heads_read_the_first", Input::attention, Who::verifier, Code::RDU3024},
    {"attention.values_of_the_first_slice", Input::attention, Who::verifier, Code::RDU3024},
    {"attention.scores_of_the_first_keys", Input::attention, Who::verifier, Code::RDU3044},
    {"attention.one_page_of_keys", Input::attention, Who::verifier, Code::RDU3044},
    {"attention.values_of_one_page", Input::attention, Who::verifier, Code::RDU3003},
    {"place.accumulator_too_narrow", Input::slices, Who::verifier, Code::RDU3036},
    {"place.edge_left_out", Input::slices, Who::verifier, Code::RDU3004},
    {"place.receive_too_many", Input::slices, Who::verifier, Code::RDU3008},
    {"place.receive_of_another_slice", Input::slices, Who::verifier, Code::RDU3004},
    {"place.fold_skips_an_operand", Input::slices, Who::verifier, Code::RDU3024},
    {"place.fold_ends_early", Input::slices, Who::verifier, Code::RDU3024},
    {"place.store_over_the_neighbour", Input::slices, Who::verifier, Code::RDU3015},
    {"place.work_of_another_slice", Input::slices, Who::verifier, Code::RDU3047},
    {"place.tree_counts_a_slice_twice", Input::slices, Who::verifier, Code::RDU3032},
    {"place.trips_keep_the_first_tensor", Input::layers, Who::verifier, Code::RDU3037},
    {"place.trips_keep_the_first_weight", Input::layers, Who::verifier, Code::RDU3070},
    {"place.weights_of_another_trip", Input::layers, Who::verifier, Code::RDU3070},
    {"moves.slice_from_the_edge", Input::moves, Who::certificate, Code::RDU5011},
    {"moves.axes_stay", Input::moves, Who::certificate, Code::RDU5011},
    {"moves.parts_change_places", Input::moves, Who::certificate, Code::RDU5011},
    {"moves.reshape_repeats_a_page", Input::moves, Who::certificate, Code::RDU5011},
    {"moves.appends_a_row_early", Input::moves, Who::certificate, Code::RDU5011},
    {"gather.all_sites_take_the_first", Input::moves, Who::verifier, Code::RDU3044},
    {"gather.same_index_again", Input::moves, Who::verifier, Code::RDU3044},
    {"place_moves.stores_where_it_loads", Input::moves, Who::verifier, Code::RDU3015},
    {"rotary.halves_change_places", Input::rotary, Who::verifier, Code::RDU3044},
    {"rotary.sine_is_cosine", Input::rotary, Who::certificate, Code::RDU5011},
    {"rotary.second_over_the_first", Input::rotary, Who::verifier, Code::RDU3015},
    {"slice.wrong_axis", Input::direct, Who::verifier, Code::RDU3003},
    {"slice.every_chip_has_the_first", Input::direct, Who::verifier, Code::RDU3013},
    {"slice.remainder_left_out", Input::uneven, Who::verifier, Code::RDU3012},
    {"slice.replica_too_few", Input::gather, Who::verifier, Code::RDU3013},
    {"slice.tensor_off_by_one", Input::direct, Who::verifier, Code::RDU3003},
    {"slice.work_off_by_one", Input::direct, Who::verifier, Code::RDU3032},
    {"shard.columns_of_the_first_chip", Input::gather, Who::verifier, Code::RDU3015},
    {"shard.every_chip_works_on_the_first", Input::direct, Who::verifier, Code::RDU3003},
    {"shard.sent_rows_change_places", Input::tokens, Who::verifier, Code::RDU3044},
    {"shard.member_left_out", Input::direct, Who::verifier, Code::RDU3018},
    {"shard.bytes_of_one_member_too_few", Input::direct, Who::verifier, Code::RDU3020},
    {"shard.partial_in_the_operands_type", Input::ring_reduce, Who::verifier, Code::RDU3020},
    {"shard.partial_passes_for_a_value", Input::direct, Who::verifier, Code::RDU3046},
    {"shard.gathered_columns_swapped", Input::gather, Who::verifier, Code::RDU3024},
    {"shard.tree_of_one_chip", Input::direct, Who::verifier, Code::RDU3032},
    {"collective.tree_of_one_chip", Input::through_one, Who::verifier, Code::RDU3032},
    {"collective.trees_in_reverse", Input::ring, Who::verifier, Code::RDU3032},
    {"collective.says_another_algorithm", Input::ring, Who::verifier, Code::RDU3032},
    {"expand.landing_too_small", Input::direct, Who::run, Code::RDU7030},
    {"expand.chunks_stored_in_reverse", Input::direct, Who::verifier, Code::RDU3024},
    {"expand.ring_chunk_off_by_one", Input::ring, Who::verifier, Code::RDU3024},
    {"expand.ring_forwards_without_adding", Input::ring, Who::verifier, Code::RDU3024},
    {"expand.page_popped_twice", Input::ring, Who::verifier, Code::RDU3030},
    {"expand.ring_neighbours_swapped", Input::ring, Who::verifier, Code::RDU3007},
    {"expand.receive_too_few", Input::ring, Who::verifier, Code::RDU3008},
    {"expand.reduce_drops_what_comes", Input::ring_reduce, Who::verifier, Code::RDU3024},
    {"expand.partial_rounded_on_its_way", Input::ring_reduce, Who::verifier, Code::RDU3036},
    {"expand.receiver_left_out", Input::through_one, Who::verifier, Code::RDU3005},
    {"expand.route_to_the_wrong_chip", Input::direct, Who::verifier, Code::RDU3034},
    {"expand.fold_skips_a_partial", Input::through_one, Who::verifier, Code::RDU3024},
    {"expand.partial_of_another_chunk", Input::direct, Who::verifier, Code::RDU3024},
    {"shard.every_chip_has_the_first_rows", Input::rows, Who::verifier, Code::RDU3003},
    {"shard.reads_the_first_rows", Input::rows, Who::verifier, Code::RDU3044},
    {"shard.scattered_rows_of_all", Input::scatter, Who::verifier, Code::RDU3015},
    {"collective.scattered_to_the_next", Input::scatter, Who::verifier, Code::RDU3032},
    {"expand.part_of_the_next_member", Input::scatter, Who::verifier, Code::RDU3024},
    {"expand.exchange_sends_its_own", Input::exchange, Who::verifier, Code::RDU3024},
    {"shard.work_of_the_next_chip", Input::pair_alone, Who::verifier, Code::RDU3037},
    {"shard.broadcast_from_the_last", Input::line, Who::verifier, Code::RDU3018},
    {"expand.broadcast_skips_the_last", Input::line, Who::verifier, Code::RDU3004},
    {"expand.broadcast_sends_one_chunk", Input::chunks, Who::verifier, Code::RDU3024},
    {"expand.scattered_in_one_node", Input::scatter_levels, Who::verifier, Code::RDU3024},
    {"expand.scattered_without_adding", Input::scatter, Who::verifier, Code::RDU3024},
    {"expand.halving_drops_a_step", Input::halving, Who::verifier, Code::RDU3024},
    {"expand.halving_partners_swapped", Input::halving, Who::verifier, Code::RDU3024},
    {"expand.halving_blocks_stored_in_rising_order", Input::halving, Who::verifier, Code::RDU3024},
    {"expand.gather_forwards_its_own", Input::ring_gather, Who::verifier, Code::RDU3024},
    {"expand.train_out_of_order", Input::trains, Who::verifier, Code::RDU3024},
    {"expand.train_stored_in_one_place", Input::ring_trains, Who::verifier, Code::RDU3015},
    {"expand.tree_drops_a_subtree", Input::tree, Who::verifier, Code::RDU3024},
    {"expand.other_node_left_out", Input::hierarchical, Who::verifier, Code::RDU3024},
    {"expand.nodes_chunks_in_reverse", Input::hierarchical, Who::verifier, Code::RDU3024},
    {"expand.own_chunk_wrong", Input::direct, Who::verifier, Code::RDU3024},
    {"size.no_room_for_a_page", Input::direct, Who::verifier, Code::RDU3003},
    {"handshake.semaphore_starts_raised", Input::direct_wormhole, Who::certificate, Code::RDU5011},
    {"handshake.left_abstract", Input::direct, Who::verifier, Code::RDU3009},
    {"handshake.ready_at_the_receiver", Input::direct_wormhole, Who::verifier, Code::RDU3023},
    {"handshake.one_semaphore_for_both", Input::direct_wormhole, Who::verifier, Code::RDU3023},
    {"handshake.credits_wrap", Input::direct, Who::verifier, Code::RDU3021},
    {"handshake.link_not_configured", Input::direct, Who::verifier, Code::RDU3034},
    {"handshake.requires_too_little", Input::direct, Who::verifier, Code::RDU3033},
    {"memory.buffers_overlap", Input::direct, Who::verifier, Code::RDU3038},
    {"memory.tensors_overlap", Input::direct, Who::verifier, Code::RDU3042},
    {"memory.wrong_bank", Input::direct, Who::verifier, Code::RDU3016},
    {"memory.accumulator_too_small", Input::direct, Who::certificate, Code::RDU5011},
    {"schedule.all_at_once", Input::direct, Who::verifier, Code::RDU3048},
    {"schedule.turns_reversed", Input::direct_wormhole, Who::verifier, Code::RDU3048},
    {"schedule.turn_left_out", Input::direct_wormhole, Who::verifier, Code::RDU3010},
    {"certify.of_every_input", Input::recorded, Who::certificate, Code::RDU5012},
    {"certify.push_too_many", Input::direct, Who::certificate, Code::RDU5012},
    {"certify.pop_too_few", Input::direct, Who::certificate, Code::RDU5012},
    {"certify.credit_too_few", Input::direct, Who::certificate, Code::RDU5012},
    {"certify.counter_too_high", Input::direct_wormhole, Who::certificate, Code::RDU5012},
    {"certify.element_too_few", Input::direct, Who::certificate, Code::RDU5012},
    {"certify.contribution_too_few", Input::direct, Who::certificate, Code::RDU5012},
    {"certify.site_holds_nothing", Input::direct, Who::certificate, Code::RDU5012},
    {"certify.least_depth_too_deep", Input::direct, Who::certificate, Code::RDU5012},
    {"certify.local_edges_cross", Input::direct, Who::certificate, Code::RDU5012},
    {"certify.circle_too_slow", Input::direct, Who::certificate, Code::RDU5012},
    {"certify.bound_too_high", Input::direct, Who::certificate, Code::RDU5012},
};

std::string_view name_of(Who who) {
  constexpr std::string_view names[] = {"nobody", "pass", "verifier", "certificate", "run"};
  return names[static_cast<std::size_t>(who)];
}

TEST_CASE("every mistake that the compiler can be made to make is caught by the one it is for") {
  for (const Row& row : table) {
    const Catch found = caught(row.mutant, row.input);
    INFO(row.mutant << ": " << name_of(found.who) << " RDU" << static_cast<int>(found.code) << " " << found.message);
    CHECK(found.who == row.who);
    CHECK(found.code == row.code);
  }
}

TEST_CASE("what is compiled without a mistake passes") {
  for (const Input which : {Input::slices,         Input::direct,          Input::ring,
                            Input::through_one,    Input::halving,         Input::tree,
                            Input::hierarchical,   Input::ring_reduce,     Input::scatter,
                            Input::scatter_levels, Input::exchange,        Input::line,
                            Input::pair_alone,     Input::chunks,          Input::rows,
                            Input::gather,         Input::ring_gather,     Input::trains,
                            Input::ring_trains,    Input::transposed,      Input::attention,
                            Input::stack,          Input::direct_wormhole, Input::moves,
                            Input::rotary}) {
    const Compiled c = input(which);
    const auto program = compile_with("", c);
    REQUIRE(program.ok());
    CHECK(check_certificate(*program, c.target).to_text() == "");
    const std::atomic<bool> stop = false;
    const IsolatedRun run = run_isolated({*program, c.target, "", "", {}}, {RunOptions{}}, {1, 60, {}}, stop).front();
    CHECK(run.ended);
    CHECK(run.verdict == Verdict::pass);
    CHECK(run.errors.empty());
  }
}

TEST_CASE("the table has every mistake of the passes, and no other") {
  std::set<std::string> written, listed;
  for (const Row& row : table) CHECK(listed.insert(row.mutant).second);
  const std::regex hook(R"rx(mutated(?:<[^>]*>)?\(\s*"([^"]+)")rx");
  for (const auto& file : std::filesystem::directory_iterator(std::string(RDUSIM_SOURCE_DIR) + "/compiler/passes")) {
    if (file.path().extension() != ".cpp") continue;
    const auto text = read_file(file.path().string(), 1 << 22);
    REQUIRE(text.ok());
    for (std::sregex_iterator at(text->begin(), text->end(), hook), end; at != end; ++at) written.insert((*at)[1]);
  }
  CHECK(written == listed);
  CHECK(written.size() >= 70);
}

}  // namespace
}  // namespace rdusim::test
