// How a matmul is cut. A plan is scored by what the target's numbers say of it:
//
//   compute   firings of one site x whole tiles' multiply-accumulates / rate
//   memory    bytes read and written / what HBM gives pages of this size (each opens rows of its own): a once per round
//             along n, b once per round along m
//   ingest    bytes that one site takes in / the width of its network port
//   journey   memory's latency and one page's way through the AGCU and to a site
//   drain     the fold and the store
//
// and the time is journey + max(memory + one firing, first pages of all sites + max(compute, ingest)) + drain: memory
// runs from the start, the PCUs from the first pages on. Among plans within 5 % of the best those come first that let
// the memory be the limit (a memory-bound operator gets the sites that its memory's bandwidth deserves, whatever else
// shares the time), then those with the fewest page hand-offs (pages are what a simulation costs, and what control
// costs in the machine), then the faster. Splitting the contraction costs fold stages, ports and buffers, so it has to
// earn 15 % of the whole, launch included, or to let the memory be the limit where no plan without does.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "compiler/passes/attention.h"
#include "compiler/passes/deal.h"
#include "compiler/passes/expand.h"
#include "compiler/passes/extents.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/place_gather.h"
#include "compiler/passes/place_moves.h"
#include "compiler/passes/place_rotary.h"
#include "compiler/passes/product_stack.h"
#include "compiler/passes/recipe.h"
#include "compiler/passes/repeats.h"
#include "compiler/passes/sites.h"
#include "compiler/passes/tile_rows.h"
#include "compiler/passes/unit_mode.h"
#include "compiler/workload/operator_traits.h"

namespace rdusim {
namespace {

// Weights of tens of KiB a page suit a stream: large enough that hand-offs are few, small enough that a site starts
// early.
constexpr Bytes most_page_bytes = Bytes{64} << 10;

// One axis cut in blocks of `block` tiles: sites * rounds blocks, exactly.
struct AxisCut {
  std::uint64_t block, sites, rounds;
};

// All ways to cut `tiles` tiles over at most `most_sites` sites in blocks of at most `most_block` tiles. Blocks that
// give the same number of blocks are the same cut but for balance: only the smallest is kept. Every instance gets the
// same number of blocks, so that one stage describes them all; only the last block may be ragged.
// Of a stack, `stack` matrices of `tiles` tiles of rows each, sites get whole axes of it, or a part of one (deal.h).
std::vector<AxisCut> axis_cuts(std::uint64_t tiles, std::uint64_t most_sites, std::uint64_t most_block,
                               std::optional<std::uint32_t> pin_block, std::optional<std::uint32_t> pin_sites,
                               const std::vector<std::uint64_t>& stack = {}) {
  const std::uint64_t matrices =
      std::accumulate(stack.begin(), stack.end(), std::uint64_t{1}, std::multiplies<std::uint64_t>());
  std::vector<AxisCut> cuts;
  const std::uint64_t first = pin_block ? *pin_block : 1;
  const std::uint64_t last = pin_block ? *pin_block : std::min(tiles, most_block);
  for (std::uint64_t block = first; block <= last; ++block) {
    const std::uint64_t of_a_matrix = ceil_div(tiles, block), blocks = matrices * of_a_matrix;
    if (!pin_block && block > 1 && of_a_matrix == ceil_div(tiles, block - 1)) continue;
    std::vector<std::uint64_t> axes = stack;
    axes.push_back(of_a_matrix);
    for (std::uint64_t sites = 1; sites <= std::min(blocks, most_sites); ++sites) {
      if (blocks % sites != 0 || (pin_sites && *pin_sites != sites) || !deal(axes, sites)) continue;
      cuts.push_back({block, sites, std::max<std::uint64_t>(1, blocks / sites - mutated("tile.round_left_out", 0, 1))});
    }
  }
  return cuts;
}

struct Score {
  double cycles = 0;
  std::uint64_t handoffs = 0;
  std::uint64_t sites = 0;
  bool keeps_memory_busy = false;  // the PCUs take no longer than all operands at the memory's sustainable rate
};

// What is left for the landings of a collective. Pages of what is scattered have all rows, and are large: with what the
// collective pass leaves to loads, and twice what a direct form takes, a page in all (of nodes of eight an eighth more), or
// it could be none; where that is too much, with what a ring takes.
enum class Room : std::uint8_t { pages, parts, few_parts };

class Scorer {
 public:
  // `lanes`: MatmulTiles::lanes.
  Scorer(const Work& w, const ProductStack& stack, DType operand, DType result, Room room, std::uint32_t lanes,
         const Target& t)
      : w_(w), stack_(stack), operand_(operand), result_(result), room_(room), lanes_(lanes), t_(t) {}

  // Bytes that the plan keeps in the busiest site's PMU, the room that a collective will want for landings included.
  Bytes site_bytes(const BlockPlan& p) const {
    const Bytes acc = out_bytes(p, accumulator_of(operand_));
    const std::uint64_t folds = p.sites_k > 1 ? p.sites_k : 0;
    const Bytes others = acc + 2 * acc + 2 * folds * acc;  // accumulator, partial sums, slices of the contraction
    if (room_ == Room::parts) {
      const auto loaded = [&](Bytes page) { return std::max<Bytes>(2 * page, t_.pmu.capacity_bytes / 8); };
      return loaded(a_bytes(p)) + loaded(b_bytes(p)) + others + 3 * acc;
    }
    return 2 * (a_bytes(p) + b_bytes(p)) + others + (room_ == Room::few_parts ? 2 : 4) * acc;
  }

  Score score(const BlockPlan& p) const {
    const double tile3 = double(t_.native_tile) * t_.native_tile * t_.native_tile;
    const double sites = double(p.sites_m * p.sites_n * p.sites_k);
    const double rounds = double(p.rounds_m * p.rounds_n);
    // Of whole tiles, though one row takes less (PcuParameters::rows_taken): where operators share a section weights come
    // ahead, and what shows of a product of few rows is its time, which more sites shorten.
    const double firing =
        lanes_ != 0 ? simd_firing(p) : double(p.block_m * p.block_n * p.page_k) * tile3 / t_.pcu.macs(operand_);
    const double compute = rounds * double(p.k_pages) * firing;

    const double hbm = to_double(t_.hbm.sustainable_bytes_per_cycle());
    const double a_pages = double(p.sites_m * p.sites_k) * rounds * double(p.k_pages);
    const double b_streams = double(streams_of_b(p));
    const double b_pages = b_streams * double(p.sites_n * p.sites_k) * rounds * double(p.k_pages);
    const double c_pages = sites / double(p.sites_k) * rounds;
    const double memory = a_pages * page_cycles(a_bytes(p)) + b_pages * page_cycles(b_bytes(p)) +
                          c_pages * page_cycles(out_bytes(p, result_));

    // Of the operator itself: what is read twice does not make a plan a memory-bound one.
    const double bytes = (double(w_.m) * double(w_.k) + double(stack_.right_matrices()) * double(w_.k) * double(w_.n)) *
                             bytes_of(operand_) +
                         double(w_.m) * double(w_.n) * bytes_of(result_);

    const double port = to_double(t_.network.link_bytes_per_cycle);
    const double ingest = rounds * double(p.k_pages) * double(a_bytes(p) + b_bytes(p)) / port;

    const double first_pages = std::min(memory, (double(p.sites_m * p.sites_k) * double(a_bytes(p)) +
                                                 b_streams * double(p.sites_n * p.sites_k) * double(b_bytes(p))) /
                                                    hbm);
    const double journey = double(t_.hbm.latency_cycles) +
                           double(a_bytes(p) + b_bytes(p)) * (1 / port + 1 / to_double(t_.agcu.bytes_per_cycle));
    const double out = double(out_bytes(p, accumulator_of(operand_)));
    const DType accumulator = accumulator_of(operand_);
    const double fold_busy =
        p.sites_k > 1 ? double(p.sites_k) * out / bytes_of(accumulator) / std::max(1u, t_.pcu.simd(accumulator)) : 0.0;
    const double fold = p.sites_k > 1 ? double(p.sites_k) * out / port + fold_busy : 0.0;
    const double last_store = c_pages / rounds * page_cycles(out_bytes(p, result_));

    Score s;
    s.cycles =
        journey + std::max(memory - last_store + firing, first_pages + std::max(compute, ingest)) + fold + last_store;
    s.handoffs = static_cast<std::uint64_t>(sites * rounds * (2.0 * double(p.k_pages) + 1.0));
    s.sites = p.sites_m * p.sites_n * p.sites_k;
    s.keeps_memory_busy = compute + rounds * fold_busy <= bytes / hbm;
    return s;
  }

  Bytes a_bytes(const BlockPlan& p) const {
    return page_bytes(p.block_m, p.page_k, stack_.rows, w_.k, operand_, t_.native_tile);
  }
  Bytes b_bytes(const BlockPlan& p) const {
    return page_bytes(p.page_k, p.block_n, w_.k, w_.n, operand_, t_.native_tile);
  }
  Bytes out_bytes(const BlockPlan& p, DType type) const {
    return page_bytes(p.block_m, p.block_n, stack_.rows, w_.n, type, t_.native_tile);
  }

 private:
  // Cycles of a firing in the SIMD pipeline, which takes time for what there is only.
  double simd_firing(const BlockPlan& p) const {
    const std::uint64_t results =
        page_extent(p.block_m, stack_.rows, t_.native_tile) * page_extent(p.block_n, w_.n, t_.native_tile);
    const std::uint64_t vectors = ceil_div(page_extent(p.page_k, w_.k, t_.native_tile), std::uint64_t{lanes_});
    return double(results * vectors * lanes_) / to_double(t_.pcu.simd_rate(accumulator_of(operand_), lanes_));
  }
  // Matrices of b that are worked on at once.
  std::uint64_t streams_of_b(const BlockPlan& p) const {
    std::uint64_t streams = 1;
    if (stack_.extents.empty()) return streams;
    const auto axes = deal(stack_.blocks(p.block_m, t_.native_tile), p.sites_m);
    for (std::size_t d = 0; axes && d < stack_.extents.size(); ++d)
      streams *= stack_.right_moves(d) ? (*axes)[d].sites : 1;
    return streams;
  }
  // Cycles that a page keeps the memory as a whole busy: its bytes at the peak, and a row opened for each row's worth
  // (or less) that falls to a channel, while refresh takes its share.
  double page_cycles(Bytes bytes) const {
    const MemoryParameters& m = t_.hbm;
    const std::uint64_t touched = std::clamp<std::uint64_t>(ceil_div(bytes, m.interleave_bytes), 1, m.channels);
    const double rows = double(touched * std::max<std::uint64_t>(1, ceil_div(bytes, touched * m.row_bytes)));
    const double refresh =
        m.refresh_interval_cycles == 0 ? 0.0 : double(m.refresh_cycles) / double(m.refresh_interval_cycles);
    return (double(bytes) / to_double(m.peak_bytes_per_cycle()) + rows * double(m.row_miss_cycles) / m.channels) /
           (1.0 - refresh);
  }

  const Work& w_;
  const ProductStack& stack_;
  DType operand_, result_;
  Room room_;
  std::uint32_t lanes_;
  const Target& t_;
};

// What the sites of a chip must keep for the collectives of `plan`, which come to be after tiling. Where the algorithm
// is open, what the most frugal one takes.
SiteDemand kept_for_collectives(const ShardPlan& plan, const Operator& op, DType operand, DType result,
                                const Target& target) {
  if (plan.chips < 2) return {};
  const bool convert = accumulator_of(operand) != result;
  if (!op.attributes.alone.empty())
    return counts_of(CollectiveKind::broadcast, plan.algorithm, plan.chips, convert, target);
  if (plan.kind == ShardKind::column)
    return counts_of(op.attributes.scattered ? CollectiveKind::all_to_all : CollectiveKind::all_gather, plan.algorithm,
                     plan.chips, convert, target);
  const bool open = plan.algorithm == CollectiveAlgorithm::automatic;
  const CollectiveKind kind = op.attributes.scattered ? CollectiveKind::reduce_scatter : plan.collective;
  return counts_of(kind, open ? CollectiveAlgorithm::ring : plan.algorithm, plan.chips, convert, target);
}

// Beyond so many chips partial sums cross in pages of at least so many flits: each is cut for the members of a node, and each
// part costs its signals. (Over fewer chips: pages as the operator by itself deserves.)
constexpr std::uint32_t few_chips = 64;
constexpr std::uint64_t least_flits_joined = 128;

// Tiles of columns that such a page has at least.
std::uint32_t least_columns_joined(const Work& w, DType accumulator, const Target& t) {
  const std::uint64_t tile = t.native_tile, rows = std::min<std::uint64_t>(static_cast<std::uint64_t>(w.m), tile);
  const std::uint64_t tiles = ceil_div(least_flits_joined * t.network.flit_bytes, rows * tile * bytes_of(accumulator));
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(tiles, 1, tiles_of(w.n, t.native_tile)));
}

// Slices of a contraction that one site can fold: each but its own takes a landing buffer there (a quarter of the
// site's at most, or, where the split is pinned, as many as there are) and, where crossings have them, a semaphore.
// Semaphores are given out once for all operators.
std::uint64_t most_split(const Target& t, const SiteDemand& kept, std::uint64_t operators, bool pinned) {
  if (t.crossing.empty()) return 1;
  constexpr std::uint64_t own_buffers = 4;  // a, b, the home slice's partial sums, the result
  const auto left = [](std::uint64_t all, std::uint64_t gone) { return all > gone ? all - gone : 0; };
  std::uint64_t landings = std::min<std::uint64_t>(left(std::max(1u, pinned ? t.site.buffers : t.site.buffers / 4), 1),
                                                   left(t.site.buffers, own_buffers + kept.buffers));
  if (t.crossing.front() == CrossingHandshake::semaphore)
    landings = std::min(landings, left(t.site.semaphores / operators, kept.semaphores));
  return 1 + landings;
}

// Calls f for every plan that fits the sites of one chip.
template <class F>
void for_each_plan(const Work& w, const ProductStack& stack, const SchedulePin& pin, std::uint64_t most_split,
                   const Target& t, const Scorer& scorer, F&& f) {
  const std::uint32_t tile = t.native_tile;
  const auto tiles = [&](std::int64_t e) { return ceil_div(static_cast<std::uint64_t>(e), std::uint64_t{tile}); };
  const std::uint64_t mt = tiles(stack.rows), nt = tiles(w.n), kt = tiles(w.k);
  const std::uint64_t most_sites = std::min<std::uint64_t>(t.sites(), pin.sites.value_or(t.sites()));
  // An axis of more tiles than sites * 64 has to be cut coarsely in any case.
  const std::uint64_t most_block = 16 + std::max(mt, nt) / (std::uint64_t{t.sites()} * 4);

  const std::vector<AxisCut> m_cuts = axis_cuts(mt, most_sites, most_block, pin.block_m, pin.unroll_m, stack.extents);
  const std::vector<AxisCut> n_cuts = axis_cuts(nt, most_sites, most_block, pin.block_n, pin.unroll_n);
  std::vector<std::uint64_t> k_pages;  // tiles a page along the contraction
  for (std::uint64_t page = 1; page <= kt; ++page) {
    if (pin.page_k ? page != *pin.page_k : page > 1 && ceil_div(kt, page) == ceil_div(kt, page - 1)) continue;
    k_pages.push_back(page);
    if (!pin.page_k && page * tile * tile * 1 > most_page_bytes) break;
  }
  for (const AxisCut& m : m_cuts)
    for (const AxisCut& n : n_cuts) {
      if (m.sites * n.sites > most_sites) continue;
      for (const std::uint64_t page : k_pages) {
        const std::uint64_t pages = ceil_div(kt, page);
        BlockPlan p{m.block, n.block, page, m.sites, n.sites, 1, m.rounds, n.rounds, pages};
        if (!pin.page_k && page > 1 && std::max(scorer.a_bytes(p), scorer.b_bytes(p)) > most_page_bytes) break;
        for (std::uint64_t split = 1; split <= std::min(pages, most_split); ++split) {
          if (pages % split != 0 || m.sites * n.sites * split > most_sites) continue;
          if (pin.unroll_k && *pin.unroll_k != split) continue;
          p.sites_k = split;
          p.k_pages = pages / split - mutated("tile.page_left_out", 0, 1);
          if (scorer.site_bytes(p) <= t.pmu.capacity_bytes) f(p);
        }
      }
    }
}

// Of the plans that split the contraction, or of those that do not: the least time, and whether a plan close to it
// keeps the memory busy.
struct Best {
  double cycles = std::numeric_limits<double>::infinity();
  double cycles_memory_busy = std::numeric_limits<double>::infinity();

  void add(const Score& s) {
    cycles = std::min(cycles, s.cycles);
    if (s.keeps_memory_busy) cycles_memory_busy = std::min(cycles_memory_busy, s.cycles);
  }
  double limit() const { return 1.05 * cycles; }
  bool keeps_memory_busy() const { return cycles_memory_busy <= limit(); }
};

std::optional<BlockPlan> best_plan(const Work& w, const ProductStack& stack, const SchedulePin& pin, DType operand,
                                   DType result, std::uint64_t most_split, const Target& t, Room room = Room::pages) {
  const Scorer scorer(w, stack, operand, result, room, matmul_lanes(pin, t), t);
  Best whole, in_slices;
  for_each_plan(w, stack, pin, most_split, t, scorer,
                [&](const BlockPlan& p) { (p.sites_k == 1 ? whole : in_slices).add(scorer.score(p)); });
  const double launch = double(t.host.section_launch_cycles + t.host.argument_load_cycles);
  const bool frees_memory = in_slices.keeps_memory_busy() && !whole.keeps_memory_busy();
  const double to_earn = frees_memory ? 0 : 0.15;
  const bool split = launch + in_slices.cycles < (1 - to_earn) * (launch + whole.cycles);
  const Best& best = split ? in_slices : whole;
  std::optional<BlockPlan> chosen;
  std::tuple<bool, std::uint64_t, double, std::uint64_t> chosen_key;
  for_each_plan(w, stack, pin, most_split, t, scorer, [&](const BlockPlan& p) {
    if ((p.sites_k > 1) != split) return;
    const Score s = scorer.score(p);
    if (s.cycles > best.limit()) return;
    const auto key = std::tuple(!s.keeps_memory_busy, s.handoffs, s.cycles, s.sites);
    if (!chosen || key < chosen_key) {
      chosen = p;
      chosen_key = key;
    }
  });
  return chosen;
}

// RDU4112: whether a site has the contexts and vector inputs for the steps of an operator that is no matmul.
bool site_runs(const OperatorGraph& graph, const Operator& op, const Target& t, const std::string& where,
               Diagnostics& out) {
  const std::vector<Step> steps = recipe_of(graph, op);
  std::size_t inputs = 0;
  for (const Step& s : steps) inputs = std::max(inputs, s.in.size());
  if (steps.size() <= t.site.pcu_contexts && inputs <= t.site.vector_inputs) return true;
  out.error(Code::RDU4112, where,
            "{} '{}' takes {} compute stages of up to {} vector inputs, and a site of target '{}' has {} of {}",
            name_of(op.kind), op.name, steps.size(), inputs, t.name, t.site.pcu_contexts, t.site.vector_inputs);
  return false;
}

// The pin, with no more sites than leave others for its memory units and for a fold apart, which adds half as many at most.
SchedulePin within_reach(SchedulePin pin, const Target& t) {
  if (pin.pmus.value_or(1) == 1 && !pin.fold_apart) return pin;
  const std::uint64_t sites = t.sites() / pin.pmus.value_or(1) * (pin.fold_apart ? 2 : 3) / 3;
  pin.sites = static_cast<std::uint32_t>(std::min<std::uint64_t>(pin.sites.value_or(t.sites()), sites));
  return pin;
}

std::optional<BlockPlan> plan_of(const SpatialProgram& program, const Work& w, const SchedulePin& given,
                                 const Target& t) {
  const OperatorGraph& graph = *program.operators;
  const SchedulePin pin = within_reach(given, t);
  const Operator& op = graph.operators[w.op.value];
  if (op.kind == OperatorKind::attention) return attention_plan(graph, w, pin, t);
  if (op.kind == OperatorKind::gather) return gather_plan(graph, w, pin, t);
  if (is_move(op.kind)) return move_plan(graph, w, pin, t);
  if (op.kind == OperatorKind::rotary) return rotary_plan(graph, w, pin, t);
  if (op.kind != OperatorKind::matmul) return row_plan(graph, w, pin, t);
  const DType operand = graph.operand(op.in[0]).dtype, result = graph.operand(op.out).dtype;
  const SiteDemand kept = kept_for_collectives(program.header.plan, op, operand, result, t);
  const std::uint64_t split = most_split(t, kept, graph.operators.size(), pin.unroll_k.has_value());
  const Work whole = whole_work_of(graph, op);
  const bool is_joined = w.k != whole.k;
  if (op.attributes.scattered && (is_joined || w.n != whole.n)) {
    // Every chip keeps rows of its own of every page.
    const auto rows = static_cast<std::uint32_t>(tiles_of(product_stack(graph, op).rows, t.native_tile));
    if (pin.block_m.value_or(rows) != rows) return std::nullopt;
    SchedulePin all_rows = pin;
    all_rows.block_m = rows;
    const auto with = [&](Room room) {
      return best_plan(w, product_stack(graph, op), all_rows, operand, result, split, t, room);
    };
    const auto ample = with(Room::parts);
    return ample ? ample : with(Room::few_parts);
  }
  if (is_joined && program.header.plan.chips > few_chips && !pin.block_n && !pin.unroll_n) {
    SchedulePin wide = pin;
    wide.block_n = least_columns_joined(w, accumulator_of(operand), t);
    if (const auto plan = best_plan(w, product_stack(graph, op), wide, operand, result, split, t)) return plan;
  }
  return best_plan(w, product_stack(graph, op), pin, operand, result, split, t);
}

bool is_pinned(const OperatorGraph& graph, OperatorId op) {
  return std::any_of(graph.pins.begin(), graph.pins.end(), [&](const SchedulePin& p) { return p.op == op; });
}

// RDU4112, RDU1026: why there is no plan.
void tell_why(const SpatialProgram& program, const Work& w, bool pinned, const Target& target, Diagnostics& out) {
  const Operator& op = program.operators->operators[w.op.value];
  const std::string where = place_of(program, op);
  const bool attends = op.kind == OperatorKind::attention, multiplies = op.kind == OperatorKind::matmul;
  if (!pinned) {
    if (attends)
      out.error(Code::RDU4112, where, "attention '{}' of {} keys has no room on the {} sites of target '{}'", op.name,
                w.k, target.sites(), target.name);
    else if (multiplies)
      out.error(Code::RDU4112, where, "no way to cut matmul '{}' ({} x {} x {}){} fits a site's {} of PMU", op.name,
                w.m, w.k, w.n, op.attributes.scattered ? ", all rows of a page together as they are scattered," : "",
                format_bytes(target.pmu.capacity_bytes));
    else
      out.error(Code::RDU4112, where, "{} '{}' asks for more than a site, or a chip, of target '{}' has",
                name_of(op.kind), op.name, target.name);
  } else if (attends) {
    out.error(Code::RDU1026, where, "[schedule.{}] pins what attention '{}' cannot have on {} sites", op.name, op.name,
              target.sites())
        .suggest(
            "sites, unroll_m (blocks of queries), unroll_n (heads, times sites for the columns of one), block_n "
            "(tiles of those), unroll_k (sites for pages of keys) and page_k (tiles of keys) can be pinned");
  } else if (multiplies) {
    out.error(Code::RDU1026, where,
              "[schedule.{}] pins what matmul '{}' ({} x {} x {}, tiles of {}) cannot have on {} sites of {} each",
              op.name, op.name, w.m, w.k, w.n, target.native_tile, target.sites(),
              format_bytes(target.pmu.capacity_bytes))
        .suggest("blocks times sites times rounds cover an axis exactly: unroll_* divides the number of blocks");
  } else if (is_move(op.kind) || op.kind == OperatorKind::rotary) {
    out.error(Code::RDU1026, where, "[schedule.{}] pins what {} '{}' cannot have on {} sites", op.name,
              name_of(op.kind), op.name, target.sites())
        .suggest("sites and depth can be pinned");
  } else {
    out.error(Code::RDU1026, where, "[schedule.{}] pins what {} '{}' ({} x {}, tiles of {}) cannot have on {} sites",
              op.name, name_of(op.kind), op.name, w.m, w.n, target.native_tile, target.sites())
        .suggest(
            "unroll_m, unroll_n, block_m, block_n, sites and depth can be pinned; unroll_* divides the number of "
            "blocks");
  }
}

// Where one trip of what repeats asks for more sites than a chip has, its operators are cut again, each for its share of
// them: then the trip is one section, whose weights stream while the operators before them compute. Left as it was where
// that does not help.
void fit_trip(SpatialProgram& program, const Repeat& repeat, const OnlyOn& only, const Target& target) {
  const OperatorGraph& graph = *program.operators;
  std::vector<Work*> works;
  for (Work& w : program.work)
    if (w.op.value >= repeat.first.value && w.op.value < repeat.first.value + repeat.length) works.push_back(&w);
  const auto all = [&] {
    SitesOfChips sites;
    for (const Work* w : works) sites.take(only[w->op.value], sites_wanted(graph, *w, target));
    return sites.most();
  };
  std::vector<BlockPlan> before;
  for (const Work* w : works) before.push_back(*w->plan);
  const std::uint64_t sites = target.sites();
  std::uint64_t budget = sites;  // to share out: less each time, as not every share can be had
  for (int tries = 0; tries < 8 && all() > sites; ++tries, budget -= budget / 8) {
    const std::uint64_t wanted = all();
    for (Work* w : works) {
      const std::uint64_t own = sites_wanted(graph, *w, target);
      const std::uint64_t share = std::max<std::uint64_t>(own * budget / wanted, 1);
      if (share >= own) continue;
      SchedulePin pin;
      pin.op = w->op;
      pin.sites = static_cast<std::uint32_t>(share);
      if (const auto plan = plan_of(program, *w, pin, target)) w->plan = *plan;
    }
  }
  if (all() <= sites) return;
  for (std::size_t i = 0; i < works.size(); ++i) works[i]->plan = before[i];
}

}  // namespace

Result<SpatialProgram> tile(SpatialProgram program, const Target& target) {
  if (!program.operators) return program;
  return tile_for_chips(std::move(program), OnlyOn(program.operators->operators.size()), target);
}

Result<SpatialProgram> tile_for_chips(SpatialProgram program, const OnlyOn& only, const Target& target) {
  Diagnostics out;
  const OperatorGraph& graph = *program.operators;
  // Slices of one shape get one plan: every chip's is the first one's, every trip's that of the first.
  std::vector<OperatorId> first;
  for (const Operator& op : graph.operators) first.push_back(op.id);
  const std::vector<Repeat> repeats = repeats_of(graph);
  for (const Repeat& r : repeats)
    for (std::uint32_t o = r.first.value; o < r.end(); ++o)
      first[o] = OperatorId(r.first.value + (o - r.first.value) % r.length);
  std::map<std::tuple<OperatorId, std::int64_t, std::int64_t, std::int64_t>, const Work*> planned;
  std::vector<bool> given(program.work.size());
  for (std::size_t i = 0; i < program.work.size(); ++i) {
    Work& w = program.work[i];
    given[i] = w.plan.has_value();
    const bool fresh = planned.try_emplace({first[w.op.value], w.m, w.n, w.k}, &w).second;
    if (w.plan || !fresh) continue;
    const Operator& op = graph.operators[w.op.value];
    const bool by_row = op.kind != OperatorKind::matmul && op.kind != OperatorKind::attention &&
                        op.kind != OperatorKind::rotary && !is_move(op.kind);
    if (by_row && !site_runs(graph, op, target, place_of(program, op), out)) continue;
    const SchedulePin pin = pin_of(graph, op.id);
    if (const std::string fault = unit_fault(graph, op, pin, target); !fault.empty()) {
      out.error(Code::RDU1026, place_of(program, op), "[schedule.{}]: {}", op.name, fault);
      continue;
    }
    w.plan = plan_of(program, w, pin, target);
    if (!w.plan) tell_why(program, w, is_pinned(graph, op.id), target, out);
  }
  if (out.has_errors()) return out;
  if (std::none_of(given.begin(), given.end(), [](bool g) { return g; }))
    for (const Repeat& r : repeats) fit_trip(program, r, only, target);
  for (std::size_t i = 0; i < program.work.size(); ++i)
    if (Work& w = program.work[i]; !given[i]) w.plan = planned.at({first[w.op.value], w.m, w.n, w.k})->plan;
  return program;
}

Result<SpatialProgram> tile_like(SpatialProgram program, const SpatialProgram& model, const Target& target) {
  Diagnostics out;
  const OperatorGraph& graph = *program.operators;
  const auto tiles = [&](const Work& w) {
    return std::tuple(tiles_of(w.m, target.native_tile), tiles_of(w.n, target.native_tile),
                      tiles_of(w.k, target.native_tile));
  };
  std::vector<const Work*> of_model(graph.operators.size());
  for (const Work& w : model.work) of_model[w.op.value] = &w;
  for (Work& w : program.work) {
    const Work& like = *of_model[w.op.value];
    if (w.plan) continue;
    if (tiles(w) == tiles(like)) {
      w.plan = like.plan;
      continue;
    }
    SchedulePin pin = pin_of(graph, w.op);
    pin.sites = static_cast<std::uint32_t>(sites_wanted(graph, like, target));
    const BlockPlan& plan = *like.plan;
    if (w.k != like.k && w.n == like.n) {
      // What is cut along its contraction is joined page by page, on the same sites.
      pin.block_m = plan.block_m, pin.block_n = plan.block_n;
      pin.unroll_m = plan.sites_m, pin.unroll_n = plan.sites_n;
      for (std::uint64_t split = plan.sites_k; split > 0 && !w.plan; --split) {
        pin.unroll_k = split;
        w.plan = plan_of(program, w, pin, target);
      }
    } else {
      // Sums of as many slices, where they can be: a column's bits do not depend on the chip that has it.
      const auto pinned_split = pin.unroll_k;
      pin.unroll_k = plan.sites_k;
      w.plan = plan_of(program, w, pin, target);
      pin.unroll_k = pinned_split;
      if (!w.plan) w.plan = plan_of(program, w, pin, target);
    }
    if (!w.plan) tell_why(program, w, is_pinned(graph, w.op), target, out);
  }
  if (out.has_errors()) return out;
  return program;
}

}  // namespace rdusim
