// SpatialProgram: what the compiler emits and the machine executes. One program describes all the chips.
//
// The types here are the specification; verify.h has the rules that join them. Ids are dense and positional: element i of
// a list has id i. Plain data: every type compares with ==, nothing here computes.
//
// In reading order: blocks and pages; tensors; stages and their ports; buffers; edges; collectives; work and placement;
// memory and schedule; certificate (certificate.h); the program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/certificate.h"
#include "compiler/support/dtype.h"
#include "compiler/support/ids.h"
#include "compiler/support/summation_tree.h"
#include "compiler/support/units.h"
#include "compiler/target/target.h"
#include "compiler/workload/operator_graph.h"

namespace rdusim {

// ---- blocks and pages ---------------------------------------------------------------------------------------------------
//
// A tensor of rank r is seen as a grid of native tiles: extents are divided by the tile (the leading extents of a tensor
// of rank above 2 by 1), the last tile of an axis may be ragged. A *page* is what a hand-off moves: a rectangle of tiles
// of one tensor, clipped to the tensor's elements, its elements row-major without gaps. A page knows how many rows and
// columns it really has; what is clipped does not exist (no padding is stored or sent), though a PCU takes the time of
// whole tiles.

// A part of a page: chunk `index` of `of`, the run of its row-major elements that chunk_range() gives. {0, 1}: all of it.
struct Chunk {
  std::uint32_t index = 0;
  std::uint32_t of = 1;
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

// A sequence that repeats: `value` for `repeat` phases, run after run, then from the start. Never empty in a valid
// program; the cycle's length is the sum of the repeats.
template <class T>
struct Run {
  std::uint32_t repeat = 1;
  T value{};
  friend bool operator==(const Run&, const Run&) = default;
};
template <class T>
using Cyclic = std::vector<Run<T>>;

template <class T>
std::uint64_t cycle_length(const Cyclic<T>& c) {
  std::uint64_t n = 0;
  for (const auto& run : c) n += run.repeat;
  return n;
}
// The value at `phase` (any number; the sequence repeats). Requires cycle_length(c) > 0.
template <class T>
const T& at_phase(const Cyclic<T>& c, std::uint64_t phase) {
  phase %= cycle_length(c);
  std::size_t i = 0;
  while (phase >= c[i].repeat) phase -= c[i++].repeat;
  return c[i].value;
}
template <class T>
Cyclic<T> always(T value) {
  return {{1, std::move(value)}};
}

// Which page of a tensor each firing of each instance of a Load or Store touches: a loop nest over tiles, or over steps
// of another grain: rows in the middle of a tile, the columns of half a head.
//
// Firing f of a trip is the tuple (i_0, i_1, ...) of the loops, outermost first, the last fastest (for a Store that takes
// a page in several chunks, f counts whole pages). The page starts, along axis d, at tile
//     first[instance][d] + sum over loops l of i_l * stride[l][d]
// and is page_tiles[d] tiles long, clipped to extent_tiles[d], which is the tensor's extent in tiles *as lowering saw
// it*. A page whose clipped rectangle does not lie wholly in the tensor's own tile grid can never be moved: the verifier
// counts it as never pushed. With a grain, read "step of grain[d] elements" for "tile" throughout: starts and sizes are
// multiples of it, and the last step of an axis may be ragged.
//
// `heads` above 1: on chip the pages are blocks of a stack of that many matrices for each matrix of the tensor, one for
// each of `heads` equal parts of its whole's columns, in their order (the heads of an attention lie side by side). A part
// is whole tiles, and a page lies in one: page_tiles of the last axis divides a part, and first and stride there are
// multiples of page_tiles; there is no grain. Where pages lie in memory does not depend on it.
struct AccessPattern {
  std::vector<std::uint64_t> loops;                // trip counts, outermost first; their product is the firings
  std::vector<std::vector<std::uint64_t>> stride;  // [loop][axis], tiles
  std::vector<std::vector<std::uint64_t>> first;   // [instance][axis], tiles
  std::vector<std::uint64_t> page_tiles;           // [axis]
  std::vector<std::uint64_t> extent_tiles;         // [axis]
  std::uint64_t heads = 1;
  std::vector<std::uint64_t> grain = {};  // [axis], elements of a step; empty: tiles, as above
  friend bool operator==(const AccessPattern&, const AccessPattern&) = default;
};

// ---- tensors --------------------------------------------------------------------------------------------------------------

enum class MemorySpace : std::uint8_t { sram, hbm, ddr };
enum class Layout : std::uint8_t { row_major };

// The whole operand, or the slice of it that one chip holds.
struct Tensor {
  TensorId id;
  std::string name;   // "w", "w_c3"
  OperandId operand;  // of the operator graph; in an assembled program without one, dense all the same
  TensorRole role = TensorRole::intermediate;
  std::vector<std::int64_t> shape;   // of this slice, elements
  std::vector<std::uint64_t> tiles;  // of this slice, extents in tiles (see above)
  DType dtype = DType::fp32;
  Layout layout = Layout::row_major;
  MemorySpace space = MemorySpace::hbm;
  Fill fill;  // of the whole operand; this slice's elements are those at `offset` of it
  std::optional<std::pair<std::int64_t, std::int64_t>> range;  // least and greatest value, where known, of the whole
  ChipId chip;                                                 // whose memory it lies in
  // The slice: elements [offset, offset + shape) of a tensor of shape `whole`.
  std::vector<std::int64_t> whole;
  std::vector<std::int64_t> offset;
  std::uint32_t replicas = 1;  // how many tensors of this program hold just this slice, this one included
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// ---- stages ---------------------------------------------------------------------------------------------------------------

// Streams pages of a tensor from memory into the buffer of its output port, through an AGCU and the site's PMU. Where
// Stores of its own section write that tensor, in the same trip or in one before, each firing waits until all that they
// write of its page has been stored: the control network brings their completions to the load's sites. No circle of
// hand-offs and of such waits within a trip may close, whichever pages they are of (memory_order.h).
//
// `indexed`: a first port, an input, brings pages of indices (int32 or int64, of one row), whose chunk of a firing says
// which rows of the tensor, a matrix, the firing's page has: row i is that of index i, zeros where there is none. It is a
// whole value of its own, and lies at the indices' places: index i of all makes row i. The pattern says how many rows and
// which columns a page has, and at which rows memory is read as far as time goes: time does not depend on values.
struct Load {
  TensorId tensor;
  AccessPattern pattern;
  // Set number of each instance; instances of one set share one read, and fire as one, when all their buffers have room.
  // Empty: each instance reads for itself. Members of a set have the same `first`.
  std::vector<std::uint32_t> multicast_set;
  bool indexed = false;
  std::vector<TensorId> later = {};  // the tensor of its section's second trip, and so on; empty: `tensor` in all trips
  std::uint32_t lanes = 0;           // elements a cycle that it moves at most; 0: as many as its ports do
  friend bool operator==(const Load&, const Load&) = default;
};

// Takes pages of its input ports to a tensor in memory. With several phases, phase j writes `chunks[j]` of the page of
// the tensor that the pattern names, from whichever port has pop > 0 in that phase. Whole rows that were cut from a page
// are to a Store of whole pages a page of just those rows: so a chip stores its chunk of a reduce_scatter.
struct Store {
  TensorId tensor;
  AccessPattern pattern;
  std::vector<Chunk> chunks;         // by phase; empty: one phase, whole pages
  std::vector<TensorId> later = {};  // as of a Load
  std::uint32_t lanes = 0;           // as of a Load
  friend bool operator==(const Store&, const Store&) = default;
};

// out += a b, page by page along the contraction; ports: input a (block_m x page_k tiles), input b (page_k x block_n),
// output (block_m x block_n). A trip is rounds of k_pages firings: the first of a round clears the accumulator, the last
// pushes it. Products are added in rising k, one by one, from zero; floats are multiplied and added separately (not fused), in
// `accumulator`; the result is converted to `result` as it leaves. `transposed`: pages of b are block_n x page_k tiles.
// `lanes`: in how many lanes of its SIMD pipeline the PCU works, 0 being its systolic array. Then products of so many
// contraction indices side by side meet in the reduction tree before their sum is added (summation_tree.h): a power of
// two that divides a tile.
struct MatmulTiles {
  OperatorId op;
  std::uint64_t block_m = 1, block_n = 1, page_k = 1;  // tiles
  std::uint64_t k_tiles = 1;                           // contraction, in tiles, as lowering saw it
  std::uint64_t k_pages = 1;                           // ceil(k_tiles / page_k)
  DType operand = DType::fp32;
  DType accumulator = DType::fp32;
  DType result = DType::fp32;
  bool transposed = false;
  std::uint32_t lanes = 0;
  friend bool operator==(const MatmulTiles&, const MatmulTiles&) = default;
};

// An expression in postfix order over the pages that a firing takes.
enum class ExprOp : std::uint8_t {
  operand,      // the page at input port `index` (its chunk of this phase); that port has need > 0 in this phase
  accumulator,  // the value of this stage's previous firing
  constant,     // `number`
  add,
  subtract,
  multiply,
  maximum,
  minimum,  // pop right, then left
  negate,
  divide,  // pop right, then left; floats only, as all below
  exponential,
  square_root,
  tanh,
  erf,  // support/elementary.h
  // Bodies by row only, floats only.
  row,
  column,  // the element's place in its matrix of the whole (page_frames.h), before rows are joined; below 2^24
  mask,    // pop right, then left; left where right >= 0, else minus infinity
};
// How many values an operation pops.
constexpr std::uint32_t arity(ExprOp op) {
  switch (op) {
    case ExprOp::operand:
    case ExprOp::accumulator:
    case ExprOp::constant:
    case ExprOp::row:
    case ExprOp::column:
      return 0;
    case ExprOp::negate:
    case ExprOp::exponential:
    case ExprOp::square_root:
    case ExprOp::tanh:
    case ExprOp::erf:
      return 1;
    case ExprOp::add:
    case ExprOp::subtract:
    case ExprOp::multiply:
    case ExprOp::maximum:
    case ExprOp::minimum:
    case ExprOp::divide:
    case ExprOp::mask:
      return 2;
  }
  return 0;
}
struct ExprNode {
  ExprOp op = ExprOp::operand;
  std::uint32_t index = 0;
  double number = 0;
  friend bool operator==(const ExprNode&, const ExprNode&) = default;
};
using Expr = std::vector<ExprNode>;
// A unit evaluates a body on a stack of so many values.
inline constexpr std::size_t most_stacked_operands = 16;

enum class IteratorKind : std::uint8_t { parallel, reduction };
// One operand's (or the output's) affine map: row r gives that operand's axis r as coefficients over the iterators, and
// a constant as last element.
using AffineMap = std::vector<std::vector<std::int64_t>>;

// An element-wise or reducing body over pages. Firing f computes body at_phase(bodies, f) and writes it to every output
// port that pushes in that phase. The machine of this version takes four forms, and the verifier refuses others:
//   {parallel}             all maps are identities, {{1, 0}}: element e of the result comes from element e of each operand.
//                          Where a body only adds, what it takes and makes may be partial sums
//   {reduction, parallel}  folds the items of a stream, one a firing, by way of `accumulator`: an operand's map is
//                          {{1, 0, 0}, {0, 1, 0}} where each item has a page of its own, {{0, 1, 0}} where one page serves
//                          all items, and so is the result's. Items are pages of tensors, all of one size, or what other
//                          folds made of them; the result has no place among them: it is whatever the body makes
//   {parallel, parallel}   over the rows and columns of a page. An operand's map is {{1, 0, 0}, {0, 1, 0}} where it has the
//                          result's rows and columns, {{0, 0, 0}, {0, 1, 0}} where its page is one row that serves all
//                          rows, {{1, 0, 0}, {0, 0, 0}} where it is one column that serves all columns,
//                          {{0, 0, 0}, {0, 0, 0}} where it is one element; the result's is the identity. In what operands
//                          do not repeat, they agree in place
//   {parallel, reduction}  the same for operands; the result's map is {{1, 0, 0}, {0, 0, 0}}, one column: the elements that
//                          the body gives for a row are joined by `join`, in rising column, one by one, the first as it
//                          is. A row may be several pages side by side: the bodies' cycle is their number, the first
//                          phase starts afresh, and the last pushes
// In the last two forms bodies read no `accumulator`, and what is taken and made are whole values, never partial sums.
// A {parallel, parallel} body of identities may be `shifted`: its operands agree in their rows and in how many columns
// they have, but lie in other columns of other wholes, as the halves of a head and the angles' cosines do. The result
// lies where the operand does that its body takes first.
struct Generic {
  std::vector<IteratorKind> iterators;
  std::vector<AffineMap> maps;  // one an input port, then one for the output
  Cyclic<Expr> bodies;
  DType accumulator = DType::fp32;  // arithmetic is done in this type
  DType result = DType::fp32;       // pages pushed have this type
  std::optional<ExprOp> join;       // {parallel, reduction} only: add, maximum or minimum
  bool shifted = false;             // {parallel, parallel} only
  std::uint32_t lanes = 0;          // of the SIMD pipeline that are used; 0: all
  friend bool operator==(const Generic&, const Generic&) = default;
};
inline bool folds_items(const Generic& g) {
  return !g.iterators.empty() && g.iterators.front() == IteratorKind::reduction;
}
// Works on rows and columns: the third form, or the fourth.
inline bool by_row(const Generic& g) {
  return g.iterators.size() == 2 && !folds_items(g);
}
inline bool joins_rows(const Generic& g) {
  return by_row(g) && g.iterators.back() == IteratorKind::reduction;
}
// What it makes are whole values: it works by row, or its bodies do something else than add and add nothing. What other
// Generics make are sums (perhaps with something done to them when they are complete), or folds.
inline bool makes_values(const Generic& g) {
  if (by_row(g)) return true;
  if (folds_items(g)) return false;
  bool computes = false;
  for (const auto& run : g.bodies)
    for (const ExprNode& node : run.value) {
      if (node.op == ExprOp::add || node.op == ExprOp::accumulator) return false;
      computes = computes || arity(node.op) != 0;
    }
  return computes;
}

// The receiving end of a crossing edge: pages land in the buffer of its only (output) port, which its sites own. It
// fires once a page.
struct Recv {
  EdgeId edge;  // the crossing edge that ends here
  friend bool operator==(const Recv&, const Recv&) = default;
};

enum class CollectiveKind : std::uint8_t { reduce, all_reduce, reduce_scatter, all_gather, broadcast, all_to_all };
enum class CollectiveAlgorithm : std::uint8_t {
  automatic,    // before the collective pass only
  through_one,  // reduced on the first member, then sent to all (all_reduce), or to each its part (reduce_scatter); sent
                // by the first to all (broadcast)
  direct,       // chunk j is reduced on member j, which (all_reduce) sends it to all; or is sent there (broadcast)
  ring,         // a broadcast's: a line from the first to the last
  halving_doubling,  // partners exchange halves, quarters, ..., then put them together again in reverse; any number of members
  tree,              // reduced along a binary tree, and (all_reduce) sent back along it; a broadcast's: that way back
  hierarchical,  // within the nodes of a machine of two levels, between them, and within them again
};

// One chip's part in a collective, from the shard pass to the collective pass, which expands it and leaves the entry in
// SpatialProgram::collectives. Ports: input, the chip's partial (or slice); then outputs, each a buffer that a Store of
// this chip takes pages from: reductions, one with the reduced page where this chip stores the result (none where it
// does not), of a reduce_scatter with this chip's chunk of it; all_gather, one a member, in the order of members, with
// that member's page; all_to_all, one a member likewise, with this chip's rows of that member's page; broadcast, one with
// the first member's page, which alone has the input. Every port moves one page a firing. Pages of a reduce_scatter or
// all_to_all have all rows of the result, as many of each member: the member that is the i-th in the order of chips has the
// i-th part.
struct CollectiveStage {
  CollectiveId collective;
  friend bool operator==(const CollectiveStage&, const CollectiveStage&) = default;
};

using StageKind = std::variant<Load, Store, MatmulTiles, Generic, Recv, CollectiveStage>;

enum class StageRole : std::uint8_t { compute, movement };

enum class Direction : std::uint8_t { input, output };

// How a stage uses one buffer, by phase. Firing f of a stage is in phase f mod cycle of each sequence.
struct Port {
  Direction direction = Direction::input;
  BufferId buffer;
  Cyclic<std::uint32_t> need = always(std::uint32_t{0});  // input: pages that must be there
  Cyclic<std::uint32_t> pop =
      always(std::uint32_t{0});  // input: pages taken, <= need (a reused page is needed, not popped)
  Cyclic<std::uint32_t> reserve = always(std::uint32_t{0});  // output: free pages that are claimed at the start
  Cyclic<std::uint32_t> push = always(std::uint32_t{0});     // output: pages handed on at the completion
  Cyclic<Chunk> chunk = always(Chunk{});                     // input: the part of the (first needed) page that is used
  friend bool operator==(const Port&, const Port&) = default;
};

struct Engine {
  StageRole kind = StageRole::compute;
  std::uint32_t index = 0;  // compute: context of the PCU; movement: movement engine n of the site
  friend bool operator==(const Engine&, const Engine&) = default;
};

// A firing starts when all ports can be served: every input has `need` pages, every output `reserve` free ones, both
// counted before anything is taken; it takes them at once. Firings start in order, at least an initiation interval
// apart, overlap in the pipeline and complete in order.
struct Stage {
  StageId id;
  std::string name;
  StageKind kind;
  StageRole role = StageRole::compute;
  std::vector<Port> ports;    // in the order that the kind asks for
  GroupId group;              // instance i runs on site i of the group
  Engine engine;              // the same on every site
  std::uint64_t firings = 0;  // of every instance, each trip of its section
  SectionId section;
  std::optional<OperatorId> origin;
  std::optional<CollectiveId> collective;  // the collective that it helps to carry out
  // Not empty: its rates or firings depend on data, are given as they are for one input, and this says which ("the flag
  // comes with item 10"). The certificate then proves this input only.
  std::string assumes = {};
  friend bool operator==(const Stage&, const Stage&) = default;
};

// ---- buffers --------------------------------------------------------------------------------------------------------------

enum class BufferKind : std::uint8_t {
  fifo,
  interm,  // partial sums: what it holds is not an answer until it has been reduced
};

// A paged buffer in the PMU of every site of its group, an instance a site.
struct Buffer {
  BufferId id;
  std::string name;
  BufferKind kind = BufferKind::fifo;
  std::uint64_t depth_pages = 0;  // 0: not sized yet
  std::uint64_t page_tiles = 1;   // most tiles that a page holds
  Bytes page_bytes = 0;           // most bytes that a page holds
  DType dtype = DType::fp32;
  GroupId group;
  std::uint64_t initial_pages = 0;  // there before the first firing; zeros
  std::optional<BufferId> alias_of;
  std::optional<OperatorId> origin;
  // Which of the memory units that its site works with it lies in: 0 is the site's own, the others are those of sites
  // where the section has nothing to do.
  std::uint32_t pmu = 0;
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// ---- edges ----------------------------------------------------------------------------------------------------------------

enum class Handshake : std::uint8_t { fifo, valid_ready, circular_buffer, token, semaphore, barrier };

constexpr bool is_local(Handshake h) {
  return h == Handshake::fifo || h == Handshake::valid_ready || h == Handshake::circular_buffer;
}

enum class PageMapKind : std::uint8_t {
  one_to_one,  // instance i to instance i; `targets` is empty
  multicast,   // every page of instance i to all of targets[i]
  scatter,     // page p of instance i to targets[i][p mod size]
  gather,  // every page of instance i to targets[i][0]; the receiver takes its senders' pages in rising sender, in turn
};
struct PageMap {
  PageMapKind kind = PageMapKind::one_to_one;
  std::vector<std::vector<std::uint32_t>> targets;  // [instance of from] -> instances of each `to`
  friend bool operator==(const PageMap&, const PageMap&) = default;
};

struct SemaphorePair {
  SemaphoreId ready;               // at the sender's sites: raised by receivers, waits for all of them
  std::vector<SemaphoreId> valid;  // at each receiver's sites, in the order of Edge::to
  friend bool operator==(const SemaphorePair&, const SemaphorePair&) = default;
};

// A hand-off. Local: `buffer` joins `from` to every `to` on the same site. Crossing: `buffer` is the *source* buffer at
// the sender; each `to` is a Recv on another site, of this chip or of another, with its own landing buffer; every page
// that `from` pushes into the source buffer goes to every `to`, `chunk` of it. The source page is free when it has been
// sent to all; the credit returns when the landing page is popped. A buffer may be the source of several crossing edges
// besides its local edge: a page is free when the slowest has done with it.
struct Edge {
  EdgeId id;
  StageId from;
  BufferId buffer;
  std::vector<StageId> to;
  Handshake handshake = Handshake::fifo;
  PageMap map;
  Chunk chunk;                              // crossing: the part of each page that is sent
  std::vector<std::vector<LinkId>> routes;  // crossing, by `to`: chip links in order; empty within a chip
  std::optional<SemaphorePair> semaphores;  // Semaphore only
  std::uint32_t counter_bits = 0;           // crossing: width of its credit counter (Token) or semaphores
  std::optional<CollectiveId> collective;
  friend bool operator==(const Edge&, const Edge&) = default;
};

struct Semaphore {
  SemaphoreId id;
  GroupId group;  // one a site
  std::uint32_t initial = 0;
  std::uint32_t width_bits = 0;
  friend bool operator==(const Semaphore&, const Semaphore&) = default;
};

// ---- collectives ----------------------------------------------------------------------------------------------------------

struct Collective {
  CollectiveId id;
  std::string name;
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  std::string reason;           // why this algorithm, for `show`
  std::vector<ChipId> members;  // in their order in the ring, and in the order of chunks
  std::uint32_t order = 0;      // its place among the collectives of its members
  std::vector<Bytes> bytes;     // what each member contributes, in the order of members
  OperatorId op;                // whose result it joins
  friend bool operator==(const Collective&, const Collective&) = default;
};

// ---- work and placement --------------------------------------------------------------------------------------------------

// How one matmul's (slice's) tiles are cut. sites_m * sites_n * sites_k instances; instance (i, j, l), numbered
// (l * sites_m + i) * sites_n + j, computes output blocks (i + r * sites_m, j + s * sites_n) over contraction slice l.
struct BlockPlan {
  std::uint64_t block_m = 1, block_n = 1, page_k = 1;  // tiles
  std::uint64_t sites_m = 1, sites_n = 1, sites_k = 1;
  std::uint64_t rounds_m = 1, rounds_n = 1, k_pages = 1;  // per instance
  friend bool operator==(const BlockPlan&, const BlockPlan&) = default;
};

// One operator's work on one chip: the extents of its slice, and its block plan (set by tile). Of operators that contract
// nothing, m x n are the rows and columns that they go through, and k is 1.
struct Work {
  WorkId id;
  OperatorId op;
  ChipId chip;
  std::int64_t m = 0, n = 0, k = 0;                       // elements of this slice
  std::int64_t offset_m = 0, offset_n = 0, offset_k = 0;  // where it lies in the whole
  std::optional<BlockPlan> plan;
  friend bool operator==(const Work&, const Work&) = default;
};

struct Site {
  ChipId chip;
  Position at;
  friend auto operator<=>(const Site&, const Site&) = default;
};

// Sites of one chip that run a stage, an instance each; agcus[i] serves site i's loads, stores and chip crossings.
struct Group {
  GroupId id;
  std::vector<Site> sites;
  std::vector<AgcuId> agcus;
  friend bool operator==(const Group&, const Group&) = default;
};

// Which work items each instance of a compute stage carries out. Item (block m, block n, slice l) of a Work has number
// (l * blocks_m + bm) * blocks_n + bn.
struct WorkAssignment {
  StageId stage;
  WorkId work;
  std::vector<std::vector<std::uint64_t>> items;  // [instance]
  friend bool operator==(const WorkAssignment&, const WorkAssignment&) = default;
};

struct Placement {
  Mesh mesh;
  std::vector<Group> groups;
  std::vector<WorkAssignment> work;
  friend bool operator==(const Placement&, const Placement&) = default;
};

// Stages configured on the machine together: those of several operators, where what one stores the next may load (see
// Load). Sections run in order; each starts when the one before has ended. Within a section trips follow each other without
// a pause: the same stages, which work on other tensors where a Load or Store names others for later trips (the weights of
// the next layer). Of a relaunched section the host launches each trip when the one before has ended, as it does sections.
// What stages, collectives and trees say of operators and operands is said of the first trip.
struct Section {
  SectionId id;
  std::string name;
  std::uint64_t trips = 1;
  // Trip t carries out operator o + t * operators_a_trip where the first carries out o; 0: the same ones.
  std::uint32_t operators_a_trip = 0;
  bool relaunched = false;
  friend bool operator==(const Section&, const Section&) = default;
};

// ---- memory and schedule -------------------------------------------------------------------------------------------------

struct BufferPlace {  // by buffer id; the same on every site of its group
  Bytes address = 0;  // in the PMU
  std::uint32_t bank = 0;
  friend bool operator==(const BufferPlace&, const BufferPlace&) = default;
};
struct TensorPlace {  // by tensor id
  Bytes address = 0;  // in its chip's memory space
  Bytes bytes = 0;
  friend bool operator==(const TensorPlace&, const TensorPlace&) = default;
};
struct AccumulatorPlace {
  StageId stage;
  std::uint64_t tiles = 0;  // of the accumulator's type, at the stage's site
  Bytes address = 0;
  Bytes bytes = 0;
  friend bool operator==(const AccumulatorPlace&, const AccumulatorPlace&) = default;
};
struct MemoryPlan {
  std::vector<BufferPlace> buffers;
  std::vector<TensorPlace> tensors;
  std::vector<AccumulatorPlace> accumulators;
  friend bool operator==(const MemoryPlan&, const MemoryPlan&) = default;
};

struct StageSlot {                        // by stage id
  std::uint32_t order = 0;                // place in its section's topological order
  Cycles initiation_interval_cycles = 0;  // the cost model's estimate of the steady distance of firings
  friend bool operator==(const StageSlot&, const StageSlot&) = default;
};
// On movement engine `index` of the sites that they share, `stages` are served in this order where both are ready.
struct EngineOrder {
  std::vector<StageId> stages;
  friend bool operator==(const EngineOrder&, const EngineOrder&) = default;
};
struct Schedule {
  std::vector<StageSlot> slots;
  std::vector<EngineOrder> engine_orders;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// ---- header and program --------------------------------------------------------------------------------------------------

enum class ShardKind : std::uint8_t {
  none,
  row,     // every matmul along its contraction
  column,  // every matmul along its result's columns
  tensor,  // in pairs of column and row, so that a pair costs one all-reduce
};

struct ShardPlan {
  std::uint32_t chips = 1;
  bool portable = true;  // compiled without --chips: sharded as it is loaded
  ShardKind kind = ShardKind::none;
  CollectiveKind collective = CollectiveKind::all_reduce;  // of row-parallel results: reduce or all_reduce
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  bool uneven = false;
  bool pad = false;
  bool least_depths = false;  // buffers are as deep as they must be to come to an end, whenever they are sized
  bool relaunch = false;      // what repeats is launched trip by trip (Section)
  friend bool operator==(const ShardPlan&, const ShardPlan&) = default;
};

// Floats: round to nearest even, products and sums separately rounded; integers wrap around.
struct NumericsPolicy {
  bool saturate = true;                      // float to fp8, and to a narrower integer
  bool partials_in_accumulator_type = true;  // what crosses before it is fully summed
  friend bool operator==(const NumericsPolicy&, const NumericsPolicy&) = default;
};

struct Header {
  std::string name;  // "down", "down_tp16" after sharding
  std::string target_name;
  std::string target_text;  // whole
  std::string target_sha256;
  std::uint32_t native_tile = 0;
  NumericsPolicy numerics;
  ShardPlan plan;
  friend bool operator==(const Header&, const Header&) = default;
};

struct Requires {
  std::vector<Handshake> handshakes;
  std::vector<DType> operand_dtypes;  // of matmuls
  std::vector<MemorySpace> spaces;
  friend bool operator==(const Requires&, const Requires&) = default;
};

struct SpatialProgram {
  Header header;
  std::optional<OperatorGraph> operators;  // absent from an assembled program that has none
  std::vector<Collective> collectives;
  std::vector<Tensor> tensors;
  std::vector<Stage> stages;
  std::vector<Buffer> buffers;
  std::vector<Edge> edges;
  std::vector<Semaphore> semaphores;
  std::vector<Section> sections;
  std::vector<LinkId> links;  // the inter-chip links that edges use, rising
  std::vector<Work> work;
  std::optional<Placement> placement;  // set by place
  std::optional<MemoryPlan> memory;    // set by memory
  std::optional<Schedule> schedule;    // set by schedule
  std::vector<SummationTree> trees;
  Requires required;
  std::optional<Certificate> certificate;  // set by certify

  friend bool operator==(const SpatialProgram&, const SpatialProgram&) = default;

  const Tensor& tensor(TensorId id) const { return tensors[id.value]; }
  const Stage& stage(StageId id) const { return stages[id.value]; }
  const Buffer& buffer(BufferId id) const { return buffers[id.value]; }
  const Edge& edge(EdgeId id) const { return edges[id.value]; }
  // Require placement.
  const Group& group(GroupId id) const { return placement->groups[id.value]; }
  const Group& sites_of(const Stage& s) const { return placement->groups[s.group.value]; }
  ChipId chip_of(const Stage& s) const { return sites_of(s).sites.front().chip; }
};

// Where a diagnostic about an operator or operand stands: its line, where that is known.
template <class Part>
const std::string& place_of(const SpatialProgram& p, const Part& part) {
  return part.where.empty() ? p.header.name : part.where;
}

}  // namespace rdusim
