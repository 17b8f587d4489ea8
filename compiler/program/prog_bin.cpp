// Encoding takes every type of the program apart with a structured binding, so that a field that was added and
// forgotten here does not compile.
#include "compiler/program/prog_bin.h"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "compiler/ir/enum_names.h"
#include "compiler/program/segments.h"
#include "compiler/support/file.h"
#include "prog_bin_generated.h"

namespace rdusim {
namespace {

namespace fb = prog_bin;
using program_file::Segment;
using program_file::SegmentKind;
using program_file::SegmentView;

// ---- what the two directions share ----------------------------------------------------------------------------------

// The schema's enumeration of each enumeration of the program.
template <class E>
struct Schema;
#define RDUSIM_SCHEMA_ENUM(E)                                                      \
  template <>                                                                      \
  struct Schema<E> {                                                               \
    using type = fb::E;                                                            \
    static_assert(static_cast<std::size_t>(fb::E::MIN) == 0 &&                     \
                      static_cast<std::size_t>(fb::E::MAX) + 1 == enum_count<E>(), \
                  "prog_bin.fbs lacks an enumerator of " #E);                      \
  }
RDUSIM_SCHEMA_ENUM(DType);
RDUSIM_SCHEMA_ENUM(TensorRole);
RDUSIM_SCHEMA_ENUM(UnitMode);
RDUSIM_SCHEMA_ENUM(OperatorKind);
RDUSIM_SCHEMA_ENUM(MemorySpace);
RDUSIM_SCHEMA_ENUM(Layout);
RDUSIM_SCHEMA_ENUM(IteratorKind);
RDUSIM_SCHEMA_ENUM(ExprOp);
RDUSIM_SCHEMA_ENUM(StageRole);
RDUSIM_SCHEMA_ENUM(Direction);
RDUSIM_SCHEMA_ENUM(BufferKind);
RDUSIM_SCHEMA_ENUM(Handshake);
RDUSIM_SCHEMA_ENUM(PageMapKind);
RDUSIM_SCHEMA_ENUM(CollectiveKind);
RDUSIM_SCHEMA_ENUM(CollectiveAlgorithm);
RDUSIM_SCHEMA_ENUM(ShardKind);
RDUSIM_SCHEMA_ENUM(ObligationKind);
RDUSIM_SCHEMA_ENUM(ProofStatus);
RDUSIM_SCHEMA_ENUM(ProofScope);
#undef RDUSIM_SCHEMA_ENUM

// Every alternative has its case in encode and decode.
static_assert(std::variant_size_v<Fill> == static_cast<std::size_t>(fb::Fill::MAX));
static_assert(std::variant_size_v<StageKind> == static_cast<std::size_t>(fb::StageKind::MAX));

template <class E>
typename Schema<E>::type schema(E e) {
  return static_cast<typename Schema<E>::type>(e);
}

// ---- encode ---------------------------------------------------------------------------------------------------------

using Builder = flatbuffers::FlatBufferBuilder;
template <class T>
using Offset = flatbuffers::Offset<T>;
template <class T>
using VectorOffset = Offset<flatbuffers::Vector<T>>;
template <class T>
using StructsOffset = Offset<flatbuffers::Vector<const T*>>;

// A list is cut into pieces of about this size.
constexpr std::size_t piece_bytes = std::size_t{16} << 20U;

// Empty strings and lists are left out.
Offset<flatbuffers::String> put(Builder& b, const std::string& text) {
  return text.empty() ? 0 : b.CreateString(text);
}

template <class T>
VectorOffset<T> put(Builder& b, const std::vector<T>& list) {
  return list.empty() ? 0 : b.CreateVector(list);
}

template <class Tag>
VectorOffset<std::uint32_t> put(Builder& b, const std::vector<Id<Tag>>& ids) {
  std::vector<std::uint32_t> list;
  list.reserve(ids.size());
  for (Id<Tag> id : ids) list.push_back(id.value);
  return put(b, list);
}

template <class T>
StructsOffset<T> put_structs(Builder& b, const std::vector<T>& list) {
  return list.empty() ? 0 : b.CreateVectorOfStructs(list);
}

template <class E>
VectorOffset<typename Schema<E>::type> put_enums(Builder& b, const std::vector<E>& list) {
  std::vector<typename Schema<E>::type> values;
  values.reserve(list.size());
  for (E e : list) values.push_back(schema(e));
  return put(b, values);
}

template <class Tag>
flatbuffers::Optional<std::uint32_t> put(std::optional<Id<Tag>> id) {
  if (!id) return flatbuffers::nullopt;
  return id->value;
}
flatbuffers::Optional<std::uint32_t> put(std::optional<std::uint32_t> value) {
  if (!value) return flatbuffers::nullopt;
  return *value;
}

// One NaN for all, so that programs that say the same have the same bytes.
double put(double number) {
  return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
}

// The shape of lists of lists, as Rows and SignedRows have it.
struct RowShape {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::vector<std::uint32_t> lengths;
};

template <class T>
RowShape row_shape(const std::vector<std::vector<T>>& lists) {
  RowShape shape;
  if (lists.empty()) return shape;
  shape.columns = static_cast<std::uint32_t>(lists.front().size());
  bool even = shape.columns != 0;
  for (const auto& list : lists) even = even && list.size() == lists.front().size();
  if (even) {
    shape.rows = static_cast<std::uint32_t>(lists.size());
    return shape;
  }
  shape.columns = 0;
  shape.lengths.reserve(lists.size());
  for (const auto& list : lists) shape.lengths.push_back(static_cast<std::uint32_t>(list.size()));
  return shape;
}

std::uint64_t number_of(std::uint64_t value) {
  return value;
}
template <class Tag>
std::uint64_t number_of(Id<Tag> id) {
  return id.value;
}

template <class T>
Offset<fb::Rows> put_rows(Builder& b, const std::vector<std::vector<T>>& lists) {
  if (lists.empty()) return 0;
  const RowShape shape = row_shape(lists);
  std::uint64_t greatest = 0;
  std::size_t total = 0;
  for (const auto& list : lists) {
    total += list.size();
    for (const T& value : list) greatest = std::max(greatest, number_of(value));
  }
  std::vector<std::uint32_t> narrow;
  std::vector<std::uint64_t> wide;
  if (greatest <= std::numeric_limits<std::uint32_t>::max()) {
    narrow.reserve(total);
    for (const auto& list : lists)
      for (const T& value : list) narrow.push_back(static_cast<std::uint32_t>(number_of(value)));
  } else {
    wide.reserve(total);
    for (const auto& list : lists)
      for (const T& value : list) wide.push_back(number_of(value));
  }
  const auto lengths = put(b, shape.lengths);
  const auto narrow_at = put(b, narrow);
  const auto wide_at = put(b, wide);
  return fb::CreateRows(b, shape.rows, shape.columns, lengths, narrow_at, wide_at);
}

Offset<fb::SignedRows> put_signed_rows(Builder& b, const std::vector<std::vector<std::int64_t>>& lists) {
  if (lists.empty()) return 0;
  const RowShape shape = row_shape(lists);
  std::vector<std::int64_t> values;
  for (const auto& list : lists) values.insert(values.end(), list.begin(), list.end());
  const auto lengths = put(b, shape.lengths);
  const auto values_at = put(b, values);
  return fb::CreateSignedRows(b, shape.rows, shape.columns, lengths, values_at);
}

// Header

fb::Mesh put(const Mesh& mesh) {
  const auto& [width, height] = mesh;
  return {width, height};
}

Offset<fb::ShardPlan> put(Builder& b, const ShardPlan& plan) {
  const auto& [chips, portable, kind, collective, algorithm, uneven, pad, least_depths, relaunch] = plan;
  return fb::CreateShardPlan(b, chips, portable, schema(kind), schema(collective), schema(algorithm), uneven, pad,
                             least_depths, relaunch);
}

Offset<fb::Header> put(Builder& b, const Header& header, const Requires& required, const std::vector<LinkId>& links) {
  const auto& [name, target_name, target_text, target_sha256, native_tile, numerics, plan] = header;
  const auto& [saturate, partials_in_accumulator_type] = numerics;
  const auto& [handshakes, operand_dtypes, spaces] = required;
  const auto name_at = put(b, name);
  const auto target_name_at = put(b, target_name);
  const auto target_text_at = put(b, target_text);
  const auto target_sha256_at = put(b, target_sha256);
  const auto plan_at = put(b, plan);
  const auto handshakes_at = put_enums(b, handshakes);
  const auto dtypes_at = put_enums(b, operand_dtypes);
  const auto spaces_at = put_enums(b, spaces);
  const auto links_at = put(b, links);
  return fb::CreateHeader(b, name_at, target_name_at, target_text_at, target_sha256_at, native_tile, saturate,
                          partials_in_accumulator_type, plan_at, handshakes_at, dtypes_at, spaces_at, links_at);
}

// Operators

Offset<void> put_fill(Builder& b, const ZeroFill&) {
  return fb::CreateZeroFill(b).Union();
}
Offset<void> put_fill(Builder& b, const ConstantFill& fill) {
  const auto& [value, integer] = fill;
  return fb::CreateConstantFill(b, put(value), integer).Union();
}
Offset<void> put_fill(Builder& b, const PatternFill& fill) {
  const auto& [modulus, shift] = fill;
  return fb::CreatePatternFill(b, modulus, shift).Union();
}
Offset<void> put_fill(Builder& b, const ValuesFill& fill) {
  const auto& [integers, floats] = fill;
  std::vector<double> numbers;
  numbers.reserve(floats.size());
  for (double f : floats) numbers.push_back(put(f));
  const auto integers_at = put(b, integers);
  const auto floats_at = put(b, numbers);
  return fb::CreateValuesFill(b, integers_at, floats_at).Union();
}
Offset<void> put_fill(Builder& b, const RandomFill& fill) {
  const auto& [seed, low, high] = fill;
  return fb::CreateRandomFill(b, seed, put(low), put(high)).Union();
}
Offset<void> put_fill(Builder& b, const WholeTensorRandomFill& fill) {
  const auto& [seed] = fill;
  return fb::CreateWholeTensorRandomFill(b, seed).Union();
}
Offset<void> put_fill(Builder& b, const FileFill& fill) {
  const auto& [path, tensor, size_bytes, sha, data_offset, extents, strides] = fill;
  const auto path_at = put(b, path);
  const auto tensor_at = put(b, tensor);
  const auto sha_at = put(b, sha);
  const auto extents_at = put(b, extents);
  const auto strides_at = put(b, strides);
  return fb::CreateFileFill(b, path_at, tensor_at, size_bytes, sha_at, data_offset, extents_at, strides_at).Union();
}
Offset<void> put_fill(Builder& b, const ExternalFill&) {
  return fb::CreateExternalFill(b).Union();
}

// In the order of the alternatives, 0 being NONE.
fb::Fill kind_of(const Fill& fill) {
  return static_cast<fb::Fill>(fill.index() + 1);
}
fb::StageKind kind_of(const StageKind& kind) {
  return static_cast<fb::StageKind>(kind.index() + 1);
}

Offset<void> put(Builder& b, const Fill& fill) {
  return std::visit([&](const auto& alternative) { return put_fill(b, alternative); }, fill);
}

Offset<fb::Operand> put(Builder& b, const Operand& operand) {
  // `where` is a place on the computer that compiled: no part of the program.
  const auto& [id, name, role, shape, dtype, fill, where, alone] = operand;
  const auto name_at = put(b, name);
  const auto shape_at = put(b, shape);
  const auto fill_at = put(b, fill);
  const auto alone_at = put(b, alone);
  static_cast<void>(where);
  return fb::CreateOperand(b, id.value, name_at, schema(role), shape_at, schema(dtype), kind_of(fill), fill_at,
                           alone_at);
}

Offset<fb::Operator> put(Builder& b, const Operator& op) {
  const auto& [id, name, kind, in, out, attributes, where] = op;
  const auto& [transposed, epsilon, heads, kv_heads, scale, causal, window, axes, begin, end, scattered, alone] =
      attributes;
  const auto name_at = put(b, name);
  const auto in_at = put(b, in);
  const auto axes_at = put(b, axes);
  const auto begin_at = put(b, begin);
  const auto end_at = put(b, end);
  const auto alone_at = put(b, alone);
  static_cast<void>(where);
  return fb::CreateOperator(b, id.value, name_at, schema(kind), in_at, out.value, transposed, put(epsilon), heads,
                            kv_heads, put(scale), causal, window, axes_at, begin_at, end_at, scattered, alone_at);
}

Offset<fb::SchedulePin> put(Builder& b, const SchedulePin& pin) {
  const auto& [op, sites, unroll_m, unroll_n, unroll_k, block_m, block_n, page_k, depth, unit, lanes, stream_lanes,
               pmus, fold_apart] = pin;
  return fb::CreateSchedulePin(b, op.value, put(sites), put(unroll_m), put(unroll_n), put(unroll_k), put(block_m),
                               put(block_n), put(page_k), put(depth),
                               unit ? std::optional(schema(*unit)) : flatbuffers::nullopt, put(lanes),
                               put(stream_lanes), put(pmus), fold_apart);
}

Offset<fb::Obligation> put(Builder& b, const Obligation& obligation);
Offset<fb::CircleClaim> put(Builder& b, const CircleClaim& claim);

template <class Row, class T>
VectorOffset<Offset<Row>> put_tables(Builder& b, const std::vector<T>& list) {
  if (list.empty()) return 0;
  std::vector<Offset<Row>> rows;
  rows.reserve(list.size());
  for (const T& element : list) rows.push_back(put(b, element));
  return b.CreateVector(rows);
}

Offset<fb::Operators> put(Builder& b, const OperatorGraph& graph) {
  const auto& [name, operands, operators, pins, tokens, assumes] = graph;
  const auto name_at = put(b, name);
  const auto operands_at = put_tables<fb::Operand>(b, operands);
  const auto operators_at = put_tables<fb::Operator>(b, operators);
  const auto pins_at = put_tables<fb::SchedulePin>(b, pins);
  const auto assumes_at = put(b, assumes);
  return fb::CreateOperators(b, name_at, operands_at, operators_at, pins_at, tokens, assumes_at);
}

// Collectives and tensors

Offset<fb::Collective> put(Builder& b, const Collective& collective) {
  const auto& [id, name, kind, algorithm, reason, members, order, bytes, op] = collective;
  const auto name_at = put(b, name);
  const auto reason_at = put(b, reason);
  const auto members_at = put(b, members);
  const auto bytes_at = put(b, bytes);
  return fb::CreateCollective(b, id.value, name_at, schema(kind), schema(algorithm), reason_at, members_at, order,
                              bytes_at, op.value);
}

Offset<fb::Tensor> put(Builder& b, const Tensor& tensor) {
  const auto& [id, name, operand, role, shape, tiles, dtype, layout, space, fill, range, chip, whole, offset,
               replicas] = tensor;
  const auto name_at = put(b, name);
  const auto shape_at = put(b, shape);
  const auto tiles_at = put(b, tiles);
  const auto fill_at = put(b, fill);
  const auto whole_at = put(b, whole);
  const auto offset_at = put(b, offset);
  fb::Range bounds;
  if (range) bounds = fb::Range(range->first, range->second);
  return fb::CreateTensor(b, id.value, name_at, operand.value, schema(role), shape_at, tiles_at, schema(dtype),
                          schema(layout), schema(space), kind_of(fill), fill_at, range ? &bounds : nullptr, chip.value,
                          whole_at, offset_at, replicas);
}

// Stages

Offset<fb::AccessPattern> put(Builder& b, const AccessPattern& pattern) {
  const auto& [loops, stride, first, page_tiles, extent_tiles, heads, grain] = pattern;
  const auto loops_at = put(b, loops);
  const auto stride_at = put_rows(b, stride);
  const auto first_at = put_rows(b, first);
  const auto page_at = put(b, page_tiles);
  const auto extent_at = put(b, extent_tiles);
  const auto grain_at = put(b, grain);
  return fb::CreateAccessPattern(b, loops_at, stride_at, first_at, page_at, extent_at, heads, grain_at);
}

fb::Chunk put(const Chunk& chunk) {
  const auto& [index, of] = chunk;
  return {index, of};
}

Offset<void> put_kind(Builder& b, const Load& load) {
  const auto& [tensor, pattern, multicast_set, indexed, later, lanes] = load;
  const auto pattern_at = put(b, pattern);
  const auto sets_at = put(b, multicast_set);
  const auto later_at = put(b, later);
  return fb::CreateLoad(b, tensor.value, pattern_at, sets_at, indexed, later_at, lanes).Union();
}

Offset<void> put_kind(Builder& b, const Store& store) {
  const auto& [tensor, pattern, chunks, later, lanes] = store;
  std::vector<fb::Chunk> list;
  list.reserve(chunks.size());
  for (const Chunk& chunk : chunks) list.push_back(put(chunk));
  const auto pattern_at = put(b, pattern);
  const auto chunks_at = put_structs(b, list);
  const auto later_at = put(b, later);
  return fb::CreateStore(b, tensor.value, pattern_at, chunks_at, later_at, lanes).Union();
}

Offset<void> put_kind(Builder& b, const MatmulTiles& matmul) {
  const auto& [op, block_m, block_n, page_k, k_tiles, k_pages, operand, accumulator, result, transposed, lanes] =
      matmul;
  return fb::CreateMatmulTiles(b, op.value, block_m, block_n, page_k, k_tiles, k_pages, schema(operand),
                               schema(accumulator), schema(result), transposed, lanes)
      .Union();
}

Offset<void> put_kind(Builder& b, const Generic& generic) {
  const auto& [iterators, maps, bodies, accumulator, result, join, shifted, lanes] = generic;
  std::vector<std::uint32_t> map_rows;
  std::vector<std::vector<std::int64_t>> rows;
  for (const AffineMap& map : maps) {
    map_rows.push_back(static_cast<std::uint32_t>(map.size()));
    rows.insert(rows.end(), map.begin(), map.end());
  }
  std::vector<fb::Body> runs;
  std::vector<fb::ExprNode> nodes;
  for (const auto& [repeat, expr] : bodies) {
    runs.emplace_back(repeat, static_cast<std::uint32_t>(expr.size()));
    for (const auto& [op, index, number] : expr) nodes.emplace_back(schema(op), index, put(number));
  }
  const auto iterators_at = put_enums(b, iterators);
  const auto map_rows_at = put(b, map_rows);
  const auto maps_at = put_signed_rows(b, rows);
  const auto bodies_at = put_structs(b, runs);
  const auto nodes_at = put_structs(b, nodes);
  return fb::CreateGeneric(b, iterators_at, map_rows_at, maps_at, bodies_at, nodes_at, schema(accumulator),
                           schema(result), join ? std::optional(schema(*join)) : flatbuffers::nullopt, shifted,
                           lanes)
      .Union();
}

Offset<void> put_kind(Builder& b, const Recv& recv) {
  const auto& [edge] = recv;
  return fb::CreateRecv(b, edge.value).Union();
}

Offset<void> put_kind(Builder& b, const CollectiveStage& stage) {
  const auto& [collective] = stage;
  return fb::CreateCollectiveStage(b, collective.value).Union();
}

std::uint32_t append(std::vector<fb::Run>& runs, const Cyclic<std::uint32_t>& sequence) {
  for (const auto& [repeat, value] : sequence) runs.emplace_back(repeat, value);
  return static_cast<std::uint32_t>(sequence.size());
}

Offset<fb::Stage> put(Builder& b, const Stage& stage) {
  const auto& [id, name, kind, role, ports, group, engine, firings, section, origin, collective, assumes] = stage;
  const auto& [engine_kind, engine_index] = engine;
  std::vector<fb::Port> port_rows;
  std::vector<fb::Run> runs;
  std::vector<fb::ChunkRun> chunk_runs;
  port_rows.reserve(ports.size());
  for (const auto& [direction, buffer, need, pop, reserve, push, chunk] : ports) {
    const std::uint32_t needs = append(runs, need);
    const std::uint32_t pops = append(runs, pop);
    const std::uint32_t reserves = append(runs, reserve);
    const std::uint32_t pushes = append(runs, push);
    for (const auto& [repeat, value] : chunk) chunk_runs.emplace_back(repeat, put(value));
    port_rows.emplace_back(schema(direction), buffer.value, needs, pops, reserves, pushes,
                           static_cast<std::uint32_t>(chunk.size()));
  }
  const auto name_at = put(b, name);
  const auto kind_at = std::visit([&](const auto& alternative) { return put_kind(b, alternative); }, kind);
  const auto ports_at = put_structs(b, port_rows);
  const auto runs_at = put_structs(b, runs);
  const auto chunk_runs_at = put_structs(b, chunk_runs);
  const auto assumes_at = assumes.empty() ? Offset<flatbuffers::String>{} : put(b, assumes);
  return fb::CreateStage(b, id.value, name_at, kind_of(kind), kind_at, schema(role), ports_at, runs_at, chunk_runs_at,
                         group.value, schema(engine_kind), engine_index, firings, section.value, put(origin),
                         put(collective), assumes_at);
}

// Buffers, edges, semaphores, sections

Offset<fb::Buffer> put(Builder& b, const Buffer& buffer) {
  const auto& [id, name, kind, depth_pages, page_tiles, page_bytes, dtype, group, initial_pages, alias_of, origin,
               pmu] = buffer;
  const auto name_at = put(b, name);
  return fb::CreateBuffer(b, id.value, name_at, schema(kind), depth_pages, page_tiles, page_bytes, schema(dtype),
                          group.value, initial_pages, put(alias_of), put(origin), pmu);
}

Offset<fb::Edge> put(Builder& b, const Edge& edge) {
  const auto& [id, from, buffer, to, handshake, map, chunk, routes, semaphores, counter_bits, collective] = edge;
  const auto& [map_kind, map_targets] = map;
  const auto to_at = put(b, to);
  const auto targets_at = put_rows(b, map_targets);
  const fb::Chunk part = put(chunk);
  const auto routes_at = put_rows(b, routes);
  flatbuffers::Optional<std::uint32_t> ready_id = flatbuffers::nullopt;
  VectorOffset<std::uint32_t> valid_at = 0;
  if (semaphores) {
    const auto& [ready, valid] = *semaphores;
    ready_id = ready.value;
    valid_at = put(b, valid);
  }
  return fb::CreateEdge(b, id.value, from.value, buffer.value, to_at, schema(handshake), schema(map_kind), targets_at,
                        &part, routes_at, ready_id, valid_at, counter_bits, put(collective));
}

fb::Semaphore put(const Semaphore& semaphore) {
  const auto& [id, group, initial, width_bits] = semaphore;
  return {id.value, group.value, initial, width_bits};
}

Offset<fb::Section> put(Builder& b, const Section& section) {
  const auto& [id, name, trips, operators_a_trip, relaunched] = section;
  const auto name_at = put(b, name);
  return fb::CreateSection(b, id.value, name_at, trips, operators_a_trip, relaunched);
}

// Work and placement

Offset<fb::Work> put(Builder& b, const Work& work) {
  const auto& [id, op, chip, m, n, k, offset_m, offset_n, offset_k, plan] = work;
  fb::BlockPlan blocks;
  if (plan) {
    const auto& [block_m, block_n, page_k, sites_m, sites_n, sites_k, rounds_m, rounds_n, k_pages] = *plan;
    blocks = fb::BlockPlan(block_m, block_n, page_k, sites_m, sites_n, sites_k, rounds_m, rounds_n, k_pages);
  }
  return fb::CreateWork(b, id.value, op.value, chip.value, m, n, k, offset_m, offset_n, offset_k,
                        plan ? &blocks : nullptr);
}

fb::Site put(const Site& site) {
  const auto& [chip, at] = site;
  const auto& [x, y] = at;
  return {chip.value, x, y};
}

Offset<fb::Group> put(Builder& b, const Group& group) {
  const auto& [id, sites, agcus] = group;
  std::vector<fb::Site> list;
  list.reserve(sites.size());
  for (const Site& site : sites) list.push_back(put(site));
  const auto sites_at = put_structs(b, list);
  const auto agcus_at = put(b, agcus);
  return fb::CreateGroup(b, id.value, sites_at, agcus_at);
}

Offset<fb::WorkAssignment> put(Builder& b, const WorkAssignment& assignment) {
  const auto& [stage, work, items] = assignment;
  const auto items_at = put_rows(b, items);
  return fb::CreateWorkAssignment(b, stage.value, work.value, items_at);
}

// Memory and schedule

Offset<fb::Memory> put(Builder& b, const MemoryPlan& plan) {
  const auto& [buffers, tensors, accumulators] = plan;
  std::vector<fb::BufferPlace> buffer_rows;
  std::vector<fb::TensorPlace> tensor_rows;
  std::vector<fb::AccumulatorPlace> accumulator_rows;
  for (const auto& [address, bank] : buffers) buffer_rows.emplace_back(address, bank);
  for (const auto& [address, bytes] : tensors) tensor_rows.emplace_back(address, bytes);
  for (const auto& [stage, tiles, address, bytes] : accumulators)
    accumulator_rows.emplace_back(stage.value, tiles, address, bytes);
  const auto buffers_at = put_structs(b, buffer_rows);
  const auto tensors_at = put_structs(b, tensor_rows);
  const auto accumulators_at = put_structs(b, accumulator_rows);
  return fb::CreateMemory(b, buffers_at, tensors_at, accumulators_at);
}

Offset<fb::Schedule> put(Builder& b, const Schedule& schedule) {
  const auto& [slots, engine_orders] = schedule;
  std::vector<fb::StageSlot> slot_rows;
  for (const auto& [order, interval] : slots) slot_rows.emplace_back(order, interval);
  std::vector<std::vector<StageId>> orders;
  for (const auto& [stages] : engine_orders) orders.push_back(stages);
  const auto slots_at = put_structs(b, slot_rows);
  const auto orders_at = put_rows(b, orders);
  return fb::CreateSchedule(b, slots_at, orders_at);
}

// Trees and certificate

Offset<fb::SummationTree> put(Builder& b, const SummationTree& tree) {
  const auto& [id, op, chunk, chunks, nodes, lanes] = tree;
  std::vector<fb::SummationNode> rows;
  rows.reserve(nodes.size());
  for (const auto& [leaf, chip, k_begin, k_end, left, right] : nodes)
    rows.emplace_back(leaf, chip.value, k_begin, k_end, left, right);
  const auto nodes_at = put_structs(b, rows);
  return fb::CreateSummationTree(b, id.value, op.value, chunk, chunks, nodes_at, lanes);
}

Offset<fb::Obligation> put(Builder& b, const Obligation& obligation) {
  const auto& [kind, status, scope, reason] = obligation;
  const auto reason_at = put(b, reason);
  return fb::CreateObligation(b, schema(kind), schema(status), schema(scope), reason_at);
}

Offset<fb::CircleClaim> put(Builder& b, const CircleClaim& claim) {
  const auto& [section, stages, buffers, cycles, parts, rounds, way] = claim;
  const auto stages_at = put(b, stages);
  const auto buffers_at = put(b, buffers);
  return fb::CreateCircleClaim(b, section.value, stages_at, buffers_at, cycles, parts, rounds, way);
}

Offset<fb::Certificate> put(Builder& b, const Certificate& certificate) {
  const auto& [obligations, buffers, counters, outputs, circles, memory, local_edges, crossing_edges,
               lower_bound_cycles, predicted_cycles] = certificate;
  const auto& [busiest_site, site_capacity, busiest_chip, chip_capacity] = memory;
  std::vector<fb::BufferClaim> buffer_rows;
  std::vector<std::uint64_t> popped_all;
  std::vector<fb::CounterClaim> counter_rows;
  std::vector<fb::OutputClaim> output_rows;
  for (const auto& [buffer, reserved, pushed, popped, depth, least_depth] : buffers) {
    buffer_rows.emplace_back(buffer.value, static_cast<std::uint32_t>(popped.size()), reserved, pushed, depth,
                             least_depth);
    popped_all.insert(popped_all.end(), popped.begin(), popped.end());
  }
  for (const auto& [edge, initial, greatest, width_bits] : counters)
    counter_rows.emplace_back(edge.value, width_bits, initial, greatest);
  for (const auto& [tensor, elements, replicas, contributions] : outputs)
    output_rows.emplace_back(tensor.value, replicas, elements, contributions);
  const auto obligations_at = put_tables<fb::Obligation>(b, obligations);
  const auto buffers_at = put_structs(b, buffer_rows);
  const auto popped_at = put(b, popped_all);
  const auto counters_at = put_structs(b, counter_rows);
  const auto outputs_at = put_structs(b, output_rows);
  const auto circles_at = put_tables<fb::CircleClaim>(b, circles);
  const fb::MemoryClaim claim(busiest_site, site_capacity, busiest_chip, chip_capacity);
  return fb::CreateCertificate(b, obligations_at, buffers_at, popped_at, counters_at, outputs_at, &claim, local_edges,
                               crossing_edges, lower_bound_cycles, predicted_cycles, circles_at);
}

// Segments

template <class Root>
Segment finish(SegmentKind kind, Builder& b, Offset<Root> root) {
  b.Finish(root);
  return {kind, std::string(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize())};
}

// One segment of `part`.
template <class T>
void add_one(std::vector<Segment>& out, SegmentKind kind, const T& part) {
  Builder b;
  const auto root = put(b, part);
  out.push_back(finish(kind, b, root));
}

// The pieces of a list of tables; `create` makes the root of one.
template <class Row, class T, class Create>
void add_list(std::vector<Segment>& out, SegmentKind kind, const std::vector<T>& list, Create create) {
  for (std::size_t i = 0; i < list.size();) {
    Builder b;
    std::vector<Offset<Row>> rows;
    while (i < list.size() && b.GetSize() < piece_bytes) rows.push_back(put(b, list[i++]));
    const auto root = create(b, b.CreateVector(rows));
    out.push_back(finish(kind, b, root));
  }
}

void add_semaphores(std::vector<Segment>& out, const std::vector<Semaphore>& list) {
  constexpr std::size_t most = piece_bytes / sizeof(fb::Semaphore);
  for (std::size_t i = 0; i < list.size();) {
    Builder b;
    std::vector<fb::Semaphore> rows;
    while (i < list.size() && rows.size() < most) rows.push_back(put(list[i++]));
    const auto rows_at = put_structs(b, rows);
    const auto root = fb::CreateSemaphores(b, rows_at);
    out.push_back(finish(SegmentKind::semaphores, b, root));
  }
}

// At least one piece, even of an empty placement: the segment says that there is one.
void add_placement(std::vector<Segment>& out, const Placement& placement) {
  const auto& [mesh, groups, work] = placement;
  const fb::Mesh first_mesh = put(mesh);
  bool first = true;
  for (std::size_t g = 0, w = 0; first || g < groups.size() || w < work.size(); first = false) {
    Builder b;
    std::vector<Offset<fb::Group>> group_rows;
    std::vector<Offset<fb::WorkAssignment>> work_rows;
    while (g < groups.size() && b.GetSize() < piece_bytes) group_rows.push_back(put(b, groups[g++]));
    while (w < work.size() && b.GetSize() < piece_bytes) work_rows.push_back(put(b, work[w++]));
    const auto groups_at = put(b, group_rows);
    const auto work_at = put(b, work_rows);
    const auto root = fb::CreatePlacement(b, first ? &first_mesh : nullptr, groups_at, work_at);
    out.push_back(finish(SegmentKind::placement, b, root));
  }
}

// ---- decode ---------------------------------------------------------------------------------------------------------

// Reads one verified FlatBuffer and keeps the first thing that is wrong with it.
//
// The flatbuffers verifier lets several offsets point to one table, string or vector, so a small file could describe a
// large program. rdusim writes no such file: what is read is charged against the segment's size, which bounds the
// memory taken by a small multiple of it.
class Reader {
 public:
  explicit Reader(std::size_t segment_bytes) : budget_(segment_bytes) {}

  bool ok() const { return fault_.empty(); }
  const std::string& fault() const { return fault_; }

  template <class... Args>
  void fail(fmt::format_string<Args...> format, Args&&... args) {
    if (ok()) fault_ = fmt::format(format, std::forward<Args>(args)...);
  }
  // Names the element that the fault is in.
  void fail_in(std::size_t element) { fault_ = fmt::format("element {}: {}", element, fault_); }

  bool charge(std::uint64_t bytes) {
    if (!ok()) return false;
    if (bytes > budget_) {
      fail("more is said than the segment has bytes: parts of it are shared");
      return false;
    }
    budget_ -= bytes;
    return true;
  }

  template <class T>
  bool charge_vector(const flatbuffers::Vector<T>& v) {
    using Element = std::remove_const_t<std::remove_pointer_t<T>>;
    // The verifier looks at the alignment of a vector's length only.
    if (reinterpret_cast<std::uintptr_t>(v.Data()) % alignof(Element) != 0) {
      fail("a vector of {} elements is not aligned", v.size());
      return false;
    }
    return charge(sizeof(flatbuffers::uoffset_t) * 2 + std::uint64_t{v.size()} * sizeof(Element));
  }

  std::string text(const flatbuffers::String* s) {
    if (s == nullptr || !charge(sizeof(flatbuffers::uoffset_t) * 2 + s->size())) return {};
    if (!is_utf8(s->string_view())) {
      fail("a string is not UTF-8");
      return {};
    }
    return s->str();
  }

  template <class T>
  std::vector<T> numbers(const flatbuffers::Vector<T>* v) {
    std::vector<T> out;
    if (v == nullptr || !charge_vector(*v)) return out;
    out.reserve(v->size());
    for (T value : *v) out.push_back(value);
    return out;
  }

  template <class IdType>
  std::vector<IdType> ids(const flatbuffers::Vector<std::uint32_t>* v) {
    std::vector<IdType> out;
    if (v == nullptr || !charge_vector(*v)) return out;
    out.reserve(v->size());
    for (std::uint32_t value : *v) out.push_back(IdType{value});
    return out;
  }

  template <class E>
  E one_of(typename Schema<E>::type raw) {
    const auto value = static_cast<std::size_t>(raw);
    if (value < enum_count<E>()) return static_cast<E>(value);
    fail("{} is none of the values from {} to {}", value, enum_name(E{}),
         enum_name(static_cast<E>(enum_count<E>() - 1)));
    return {};
  }

  template <class E>
  std::vector<E> enums(const flatbuffers::Vector<typename Schema<E>::type>* v) {
    std::vector<E> out;
    if (v == nullptr || !charge_vector(*v)) return out;
    out.reserve(v->size());
    for (auto raw : *v) out.push_back(one_of<E>(raw));
    return out;
  }

  // `convert` makes an element of a struct.
  template <class T, class S, class Convert>
  std::vector<T> structs(const flatbuffers::Vector<const S*>* v, Convert convert) {
    std::vector<T> out;
    if (v == nullptr || !charge_vector(*v)) return out;
    out.reserve(v->size());
    for (const S* s : *v) out.push_back(convert(*s));
    return out;
  }

  // The length of each list, once they are known to add up to `numbers`.
  template <class R>
  std::vector<std::uint32_t> row_lengths(const R& rows, std::uint64_t numbers_there) {
    std::vector<std::uint32_t> lengths;
    std::uint64_t total = 0;
    if (rows.lengths() != nullptr) {
      if (rows.rows() != 0 || rows.columns() != 0) fail("lists have both one length and many");
      lengths = numbers(rows.lengths());
      for (std::uint32_t n : lengths) total += n;
    } else {
      total = std::uint64_t{rows.rows()} * rows.columns();
      if ((rows.rows() == 0) != (rows.columns() == 0)) fail("{} lists of {} numbers", rows.rows(), rows.columns());
      // Once the numbers are known to be there, the lists are no more than they are.
      if (ok() && total == numbers_there) lengths.assign(rows.rows(), rows.columns());
    }
    if (total != numbers_there) fail("lists of {} numbers together have {}", total, numbers_there);
    if (!ok()) lengths.clear();
    return lengths;
  }

  template <class T>
  std::vector<std::vector<T>> rows(const fb::Rows* r) {
    std::vector<std::vector<T>> out;
    if (r == nullptr || !charge(table_bytes)) return out;
    if (r->narrow() != nullptr && r->wide() != nullptr) {
      fail("lists are both narrow and wide");
      return out;
    }
    if (r->wide() != nullptr) {
      if (charge_vector(*r->wide())) fill_rows(out, *r, *r->wide());
    } else if (r->narrow() != nullptr) {
      if (charge_vector(*r->narrow())) fill_rows(out, *r, *r->narrow());
    } else {
      out.resize(row_lengths(*r, 0).size());
    }
    return out;
  }

  std::vector<std::vector<std::int64_t>> signed_rows(const fb::SignedRows* r) {
    std::vector<std::vector<std::int64_t>> out;
    if (r == nullptr || !charge(table_bytes)) return out;
    if (r->values() != nullptr) {
      if (charge_vector(*r->values())) fill_rows(out, *r, *r->values());
    } else {
      out.resize(row_lengths(*r, 0).size());
    }
    return out;
  }

  // A list of tables; each is at least an offset in the vector, one in the table, and its first field.
  template <class T, class Row, class Get>
  void tables(std::vector<T>& out, const flatbuffers::Vector<Offset<Row>>* v, Get get_one) {
    if (v == nullptr || !charge(std::uint64_t{v->size()} * list_element_bytes)) return;
    out.reserve(out.size() + v->size());
    for (std::size_t i = 0; ok() && i < v->size(); ++i) {
      out.push_back(get_one(*this, *v->Get(static_cast<flatbuffers::uoffset_t>(i))));
      if (!ok()) fail_in(i);
    }
  }

  template <class T>
  T id(flatbuffers::Optional<std::uint32_t> value) {
    if (!value) fail("an element has no id");
    return T{value.value_or(0)};
  }

  double real(flatbuffers::Optional<double> value) {
    if (!value) fail("a fill has no value");
    return value.value_or(0);
  }

  static constexpr std::uint64_t table_bytes = 8;  // an offset to it and its own to its vtable
  static constexpr std::uint64_t list_element_bytes = 12;

 private:
  template <class T, class R, class N>
  void fill_rows(std::vector<std::vector<T>>& out, const R& r, const flatbuffers::Vector<N>& values) {
    const auto lengths = row_lengths(r, values.size());
    flatbuffers::uoffset_t at = 0;
    out.reserve(lengths.size());
    for (std::uint32_t n : lengths) {
      std::vector<T>& list = out.emplace_back();
      list.reserve(n);
      for (std::uint32_t i = 0; i < n; ++i) list.push_back(element<T>(values.Get(at++)));
    }
  }
  template <class T, class N>
  T element(N value) {
    if constexpr (std::is_integral_v<T>) {
      if (!std::in_range<T>(value)) fail("{} does not fit its list", value);
      return static_cast<T>(value);
    } else {
      if (!std::in_range<std::uint32_t>(value)) fail("{} is no id", value);
      return T{static_cast<std::size_t>(value)};
    }
  }

  std::uint64_t budget_;
  std::string fault_;
};

template <class T>
std::optional<T> optional_id(flatbuffers::Optional<std::uint32_t> value) {
  if (!value) return std::nullopt;
  return T{*value};
}
std::optional<std::uint32_t> optional_number(flatbuffers::Optional<std::uint32_t> value) {
  if (!value) return std::nullopt;
  return *value;
}

// Header

void get_header(Reader& r, const fb::Header& row, SpatialProgram& p) {
  Header& h = p.header;
  h.name = r.text(row.name());
  h.target_name = r.text(row.target_name());
  h.target_text = r.text(row.target_text());
  h.target_sha256 = r.text(row.target_sha256());
  h.native_tile = row.native_tile();
  h.numerics = {row.saturate(), row.partials_in_accumulator_type()};
  if (row.plan() == nullptr) {
    r.fail("there is no shard plan");
    return;
  }
  const fb::ShardPlan& plan = *row.plan();
  h.plan.chips = plan.chips();
  h.plan.portable = plan.portable();
  h.plan.kind = r.one_of<ShardKind>(plan.kind());
  h.plan.collective = r.one_of<CollectiveKind>(plan.collective());
  h.plan.algorithm = r.one_of<CollectiveAlgorithm>(plan.algorithm());
  h.plan.uneven = plan.uneven();
  h.plan.pad = plan.pad();
  h.plan.least_depths = plan.least_depths();
  h.plan.relaunch = plan.relaunch();
  p.required.handshakes = r.enums<Handshake>(row.required_handshakes());
  p.required.operand_dtypes = r.enums<DType>(row.required_operand_dtypes());
  p.required.spaces = r.enums<MemorySpace>(row.required_spaces());
  p.links = r.ids<LinkId>(row.links());
}

// Operators

template <class Row>
Fill get_fill(Reader& r, const Row& row) {
  r.charge(Reader::table_bytes);
  switch (row.fill_type()) {
    case fb::Fill::ZeroFill:
      if (row.fill_as_ZeroFill() != nullptr) return ZeroFill{};
      break;
    case fb::Fill::ConstantFill:
      if (const auto* f = row.fill_as_ConstantFill()) return ConstantFill{r.real(f->value()), f->integer()};
      break;
    case fb::Fill::PatternFill:
      if (const auto* f = row.fill_as_PatternFill()) return PatternFill{f->modulus(), f->shift()};
      break;
    case fb::Fill::ValuesFill:
      if (const auto* f = row.fill_as_ValuesFill()) return ValuesFill{r.numbers(f->integers()), r.numbers(f->floats())};
      break;
    case fb::Fill::RandomFill:
      if (const auto* f = row.fill_as_RandomFill()) return RandomFill{f->seed(), r.real(f->low()), r.real(f->high())};
      break;
    case fb::Fill::WholeTensorRandomFill:
      if (const auto* f = row.fill_as_WholeTensorRandomFill()) return WholeTensorRandomFill{f->seed()};
      break;
    case fb::Fill::FileFill:
      if (const auto* f = row.fill_as_FileFill()) {
        FileFill out;
        out.path = r.text(f->path());
        out.tensor = r.text(f->tensor());
        out.size_bytes = f->size_bytes();
        out.sha256 = r.text(f->sha256());
        out.data_offset = f->data_offset();
        out.extents = r.numbers(f->extents());
        out.strides = r.numbers(f->strides());
        return out;
      }
      break;
    case fb::Fill::ExternalFill:
      if (row.fill_as_ExternalFill() != nullptr) return ExternalFill{};
      break;
    case fb::Fill::NONE:
      break;
  }
  r.fail("fill {} is of no kind that exists, or is not there", static_cast<unsigned>(row.fill_type()));
  return {};
}

Operand get_operand(Reader& r, const fb::Operand& row) {
  Operand out;
  out.id = r.id<OperandId>(row.id());
  out.name = r.text(row.name());
  out.role = r.one_of<TensorRole>(row.role());
  out.shape = r.numbers(row.shape());
  out.dtype = r.one_of<DType>(row.dtype());
  out.fill = get_fill(r, row);
  out.alone = r.numbers(row.alone());
  return out;
}

Operator get_operator(Reader& r, const fb::Operator& row) {
  Operator out;
  out.id = r.id<OperatorId>(row.id());
  out.name = r.text(row.name());
  out.kind = r.one_of<OperatorKind>(row.kind());
  out.in = r.ids<OperandId>(row.in());
  out.out = OperandId{row.out()};
  OperatorAttributes& a = out.attributes;
  a.transposed = row.transposed();
  a.epsilon = row.epsilon();
  a.heads = row.heads();
  a.kv_heads = row.kv_heads();
  a.scale = row.scale();
  a.causal = row.causal();
  a.window = row.window();
  a.axes = r.numbers(row.axes());
  a.begin = r.numbers(row.begin());
  a.end = r.numbers(row.end());
  a.scattered = row.scattered();
  a.alone = r.numbers(row.alone());
  return out;
}

SchedulePin get_pin(Reader& r, const fb::SchedulePin& row) {
  SchedulePin out;
  out.op = r.id<OperatorId>(row.op());
  out.sites = optional_number(row.sites());
  out.unroll_m = optional_number(row.unroll_m());
  out.unroll_n = optional_number(row.unroll_n());
  out.unroll_k = optional_number(row.unroll_k());
  out.block_m = optional_number(row.block_m());
  out.block_n = optional_number(row.block_n());
  out.page_k = optional_number(row.page_k());
  out.depth = optional_number(row.depth());
  if (const auto unit = row.unit()) out.unit = r.one_of<UnitMode>(*unit);
  out.lanes = optional_number(row.lanes());
  out.stream_lanes = optional_number(row.stream_lanes());
  out.pmus = optional_number(row.pmus());
  out.fold_apart = row.fold_apart();
  return out;
}

void get_operators(Reader& r, const fb::Operators& row, SpatialProgram& p) {
  OperatorGraph& graph = p.operators.emplace();
  graph.name = r.text(row.name());
  r.tables(graph.operands, row.operands(), get_operand);
  r.tables(graph.operators, row.operators(), get_operator);
  r.tables(graph.pins, row.pins(), get_pin);
  graph.tokens = row.tokens();
  graph.assumes = r.text(row.assumes());
}

// Collectives and tensors

Collective get_collective(Reader& r, const fb::Collective& row) {
  Collective out;
  out.id = r.id<CollectiveId>(row.id());
  out.name = r.text(row.name());
  out.kind = r.one_of<CollectiveKind>(row.kind());
  out.algorithm = r.one_of<CollectiveAlgorithm>(row.algorithm());
  out.reason = r.text(row.reason());
  out.members = r.ids<ChipId>(row.members());
  out.order = row.order();
  out.bytes = r.numbers(row.bytes());
  out.op = OperatorId{row.op()};
  return out;
}

Tensor get_tensor(Reader& r, const fb::Tensor& row) {
  Tensor out;
  out.id = r.id<TensorId>(row.id());
  out.name = r.text(row.name());
  out.operand = OperandId{row.operand()};
  out.role = r.one_of<TensorRole>(row.role());
  out.shape = r.numbers(row.shape());
  out.tiles = r.numbers(row.tiles());
  out.dtype = r.one_of<DType>(row.dtype());
  out.layout = r.one_of<Layout>(row.layout());
  out.space = r.one_of<MemorySpace>(row.space());
  out.fill = get_fill(r, row);
  if (row.range() != nullptr) out.range = {row.range()->least(), row.range()->greatest()};
  out.chip = ChipId{row.chip()};
  out.whole = r.numbers(row.whole());
  out.offset = r.numbers(row.offset());
  out.replicas = row.replicas();
  return out;
}

// Stages

Chunk get_chunk(const fb::Chunk& row) {
  return {row.index(), row.of()};
}

AccessPattern get_pattern(Reader& r, const fb::AccessPattern* row) {
  AccessPattern out;
  if (row == nullptr) {
    r.fail("there is no access pattern");
    return out;
  }
  r.charge(Reader::table_bytes);
  out.loops = r.numbers(row->loops());
  out.stride = r.rows<std::uint64_t>(row->stride());
  out.first = r.rows<std::uint64_t>(row->first());
  out.page_tiles = r.numbers(row->page_tiles());
  out.extent_tiles = r.numbers(row->extent_tiles());
  out.heads = row->heads();
  out.grain = r.numbers(row->grain());
  return out;
}

Generic get_generic(Reader& r, const fb::Generic& row) {
  Generic out;
  out.iterators = r.enums<IteratorKind>(row.iterators());
  const auto map_rows = r.numbers(row.map_rows());
  auto rows = r.signed_rows(row.maps());
  std::uint64_t at = 0;
  for (std::uint32_t n : map_rows) {
    if (n > rows.size() - at) {
      r.fail("the maps have {} rows, fewer than they say", rows.size());
      return out;
    }
    AffineMap& map = out.maps.emplace_back();
    for (std::uint32_t i = 0; i < n; ++i) map.push_back(std::move(rows[at++]));
  }
  if (at != rows.size()) r.fail("the maps have {} rows and say {}", rows.size(), at);
  const auto nodes = r.structs<ExprNode>(row.nodes(), [&](const fb::ExprNode& n) {
    return ExprNode{r.one_of<ExprOp>(n.op()), n.index(), n.number()};
  });
  std::size_t next = 0;
  out.bodies = r.structs<Run<Expr>>(row.bodies(), [&](const fb::Body& body) {
    Run<Expr> run{body.repeat(), {}};
    if (body.nodes() > nodes.size() - next) {
      r.fail("the bodies have {} nodes, fewer than they say", nodes.size());
      return run;
    }
    const auto begin = nodes.begin() + static_cast<std::ptrdiff_t>(next);
    run.value.assign(begin, begin + body.nodes());
    next += body.nodes();
    return run;
  });
  if (next != nodes.size()) r.fail("the bodies have {} nodes and say {}", nodes.size(), next);
  if (const auto join = row.join()) out.join = r.one_of<ExprOp>(*join);
  out.accumulator = r.one_of<DType>(row.accumulator());
  out.result = r.one_of<DType>(row.result());
  out.shifted = row.shifted();
  out.lanes = row.lanes();
  return out;
}

StageKind get_kind(Reader& r, const fb::Stage& row) {
  r.charge(Reader::table_bytes);
  switch (row.kind_type()) {
    case fb::StageKind::Load:
      if (const auto* k = row.kind_as_Load())
        return Load{TensorId{k->tensor()}, get_pattern(r, k->pattern()), r.numbers(k->multicast_set()),
                    k->indexed(),          r.ids<TensorId>(k->later()),  k->lanes()};
      break;
    case fb::StageKind::Store:
      if (const auto* k = row.kind_as_Store())
        return Store{TensorId{k->tensor()}, get_pattern(r, k->pattern()), r.structs<Chunk>(k->chunks(), get_chunk),
                     r.ids<TensorId>(k->later()), k->lanes()};
      break;
    case fb::StageKind::MatmulTiles:
      if (const auto* k = row.kind_as_MatmulTiles())
        return MatmulTiles{OperatorId{k->op()},
                           k->block_m(),
                           k->block_n(),
                           k->page_k(),
                           k->k_tiles(),
                           k->k_pages(),
                           r.one_of<DType>(k->operand()),
                           r.one_of<DType>(k->accumulator()),
                           r.one_of<DType>(k->result()),
                           k->transposed(),
                           k->lanes()};
      break;
    case fb::StageKind::Generic:
      if (const auto* k = row.kind_as_Generic()) return get_generic(r, *k);
      break;
    case fb::StageKind::Recv:
      if (const auto* k = row.kind_as_Recv()) return Recv{EdgeId{k->edge()}};
      break;
    case fb::StageKind::CollectiveStage:
      if (const auto* k = row.kind_as_CollectiveStage()) return CollectiveStage{CollectiveId{k->collective()}};
      break;
    case fb::StageKind::NONE:
      break;
  }
  r.fail("stage kind {} does not exist, or is not there", static_cast<unsigned>(row.kind_type()));
  return {};
}

std::vector<Port> get_ports(Reader& r, const fb::Stage& row) {
  const auto runs = r.structs<Run<std::uint32_t>>(row.runs(), [](const fb::Run& run) {
    return Run<std::uint32_t>{run.repeat(), run.value()};
  });
  const auto chunk_runs = r.structs<Run<Chunk>>(row.chunk_runs(), [](const fb::ChunkRun& run) {
    return Run<Chunk>{run.repeat(), get_chunk(run.chunk())};
  });
  std::size_t next_run = 0;
  std::size_t next_chunk = 0;
  const auto take = [&r](const auto& from, std::size_t& next, std::uint32_t count) {
    std::remove_cvref_t<decltype(from)> out;
    if (count > from.size() - next) {
      r.fail("the ports have {} runs, fewer than they say", from.size());
      return out;
    }
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(next);
    out.assign(begin, begin + count);
    next += count;
    return out;
  };
  auto ports = r.structs<Port>(row.ports(), [&](const fb::Port& p) {
    Port out;
    out.direction = r.one_of<Direction>(p.direction());
    out.buffer = BufferId{p.buffer()};
    out.need = take(runs, next_run, p.need());
    out.pop = take(runs, next_run, p.pop());
    out.reserve = take(runs, next_run, p.reserve());
    out.push = take(runs, next_run, p.push());
    out.chunk = take(chunk_runs, next_chunk, p.chunk());
    return out;
  });
  if (next_run != runs.size() || next_chunk != chunk_runs.size())
    r.fail("the ports have {} and {} runs and say {} and {}", runs.size(), chunk_runs.size(), next_run, next_chunk);
  return ports;
}

Stage get_stage(Reader& r, const fb::Stage& row) {
  Stage out;
  out.id = r.id<StageId>(row.id());
  out.name = r.text(row.name());
  out.kind = get_kind(r, row);
  out.role = r.one_of<StageRole>(row.role());
  out.ports = get_ports(r, row);
  out.group = GroupId{row.group()};
  out.engine = {r.one_of<StageRole>(row.engine_kind()), row.engine_index()};
  out.firings = row.firings();
  out.section = SectionId{row.section()};
  out.origin = optional_id<OperatorId>(row.origin());
  out.collective = optional_id<CollectiveId>(row.collective());
  out.assumes = r.text(row.assumes());
  return out;
}

// Buffers, edges, semaphores, sections

Buffer get_buffer(Reader& r, const fb::Buffer& row) {
  Buffer out;
  out.id = r.id<BufferId>(row.id());
  out.name = r.text(row.name());
  out.kind = r.one_of<BufferKind>(row.kind());
  out.depth_pages = row.depth_pages();
  out.page_tiles = row.page_tiles();
  out.page_bytes = row.page_bytes();
  out.dtype = r.one_of<DType>(row.dtype());
  out.group = GroupId{row.group()};
  out.initial_pages = row.initial_pages();
  out.alias_of = optional_id<BufferId>(row.alias_of());
  out.origin = optional_id<OperatorId>(row.origin());
  out.pmu = row.pmu();
  return out;
}

Edge get_edge(Reader& r, const fb::Edge& row) {
  Edge out;
  out.id = r.id<EdgeId>(row.id());
  out.from = StageId{row.from()};
  out.buffer = BufferId{row.buffer()};
  out.to = r.ids<StageId>(row.to());
  out.handshake = r.one_of<Handshake>(row.handshake());
  out.map.kind = r.one_of<PageMapKind>(row.map_kind());
  out.map.targets = r.rows<std::uint32_t>(row.map_targets());
  if (row.chunk() == nullptr) {
    r.fail("an edge has no chunk");
    return out;
  }
  out.chunk = get_chunk(*row.chunk());
  out.routes = r.rows<LinkId>(row.routes());
  if (row.semaphore_ready()) {
    out.semaphores = SemaphorePair{SemaphoreId{*row.semaphore_ready()}, r.ids<SemaphoreId>(row.semaphore_valid())};
  } else if (row.semaphore_valid() != nullptr) {
    r.fail("an edge has a valid semaphore and no ready one");
  }
  out.counter_bits = row.counter_bits();
  out.collective = optional_id<CollectiveId>(row.collective());
  return out;
}

Section get_section(Reader& r, const fb::Section& row) {
  Section out;
  out.id = r.id<SectionId>(row.id());
  out.name = r.text(row.name());
  out.trips = row.trips();
  out.operators_a_trip = row.operators_a_trip();
  out.relaunched = row.relaunched();
  return out;
}

// Work and placement

Work get_work(Reader& r, const fb::Work& row) {
  Work out;
  out.id = r.id<WorkId>(row.id());
  out.op = OperatorId{row.op()};
  out.chip = ChipId{row.chip()};
  out.m = row.m();
  out.n = row.n();
  out.k = row.k();
  out.offset_m = row.offset_m();
  out.offset_n = row.offset_n();
  out.offset_k = row.offset_k();
  if (const fb::BlockPlan* plan = row.plan())
    out.plan = BlockPlan{plan->block_m(), plan->block_n(),  plan->page_k(),   plan->sites_m(), plan->sites_n(),
                         plan->sites_k(), plan->rounds_m(), plan->rounds_n(), plan->k_pages()};
  return out;
}

Group get_group(Reader& r, const fb::Group& row) {
  Group out;
  out.id = r.id<GroupId>(row.id());
  out.sites = r.structs<Site>(row.sites(), [](const fb::Site& s) { return Site{ChipId{s.chip()}, {s.x(), s.y()}}; });
  out.agcus = r.ids<AgcuId>(row.agcus());
  return out;
}

WorkAssignment get_assignment(Reader& r, const fb::WorkAssignment& row) {
  WorkAssignment out;
  out.stage = r.id<StageId>(row.stage());
  out.work = WorkId{row.work()};
  out.items = r.rows<std::uint64_t>(row.items());
  return out;
}

void get_placement(Reader& r, const fb::Placement& row, SpatialProgram& p) {
  const bool first = !p.placement.has_value();
  if (first != (row.mesh() != nullptr)) {
    r.fail("the mesh stands in the first piece of the placement, and only there");
    return;
  }
  if (first) p.placement.emplace().mesh = {row.mesh()->width(), row.mesh()->height()};
  r.tables(p.placement->groups, row.groups(), get_group);
  r.tables(p.placement->work, row.work(), get_assignment);
}

// Memory and schedule

void get_memory(Reader& r, const fb::Memory& row, SpatialProgram& p) {
  MemoryPlan& plan = p.memory.emplace();
  plan.buffers = r.structs<BufferPlace>(row.buffers(), [](const fb::BufferPlace& b) {
    return BufferPlace{b.address(), b.bank()};
  });
  plan.tensors = r.structs<TensorPlace>(row.tensors(), [](const fb::TensorPlace& t) {
    return TensorPlace{t.address(), t.bytes()};
  });
  plan.accumulators = r.structs<AccumulatorPlace>(row.accumulators(), [](const fb::AccumulatorPlace& a) {
    return AccumulatorPlace{StageId{a.stage()}, a.tiles(), a.address(), a.bytes()};
  });
}

void get_schedule(Reader& r, const fb::Schedule& row, SpatialProgram& p) {
  Schedule& schedule_out = p.schedule.emplace();
  schedule_out.slots = r.structs<StageSlot>(row.slots(), [](const fb::StageSlot& s) {
    return StageSlot{s.order(), s.initiation_interval_cycles()};
  });
  for (auto& stages : r.rows<StageId>(row.engine_orders()))
    schedule_out.engine_orders.push_back(EngineOrder{std::move(stages)});
}

// Trees and certificate

SummationTree get_tree(Reader& r, const fb::SummationTree& row) {
  SummationTree out;
  out.id = r.id<SummationTreeId>(row.id());
  out.op = OperatorId{row.op()};
  out.chunk = row.chunk();
  out.chunks = row.chunks();
  out.nodes = r.structs<SummationNode>(row.nodes(), [](const fb::SummationNode& n) {
    return SummationNode{n.leaf(), ChipId{n.chip()}, n.k_begin(), n.k_end(), n.left(), n.right()};
  });
  out.lanes = row.lanes();
  return out;
}

Obligation get_obligation(Reader& r, const fb::Obligation& row) {
  Obligation out;
  if (!row.kind()) r.fail("an obligation has no kind");
  out.kind = r.one_of<ObligationKind>(row.kind().value_or(fb::ObligationKind::MIN));
  out.status = r.one_of<ProofStatus>(row.status());
  out.scope = r.one_of<ProofScope>(row.scope());
  out.reason = r.text(row.reason());
  return out;
}

CircleClaim get_circle(Reader& r, const fb::CircleClaim& row) {
  CircleClaim out;
  out.section = SectionId{row.section()};
  out.stages = r.ids<StageId>(row.stages());
  out.buffers = r.ids<BufferId>(row.buffers());
  out.cycles = row.cycles();
  out.parts = row.parts();
  out.rounds = row.rounds();
  out.way = row.way();
  return out;
}

void get_certificate(Reader& r, const fb::Certificate& row, SpatialProgram& p) {
  Certificate& out = p.certificate.emplace();
  r.tables(out.obligations, row.obligations(), get_obligation);
  const auto popped = r.numbers(row.popped());
  std::size_t next = 0;
  out.buffers = r.structs<BufferClaim>(row.buffers(), [&](const fb::BufferClaim& b) {
    BufferClaim claim{BufferId{b.buffer()}, b.reserved(), b.pushed(), {}, b.depth(), b.least_depth()};
    if (b.consumers() > popped.size() - next) {
      r.fail("the buffers' claims have {} counts of consumers, fewer than they say", popped.size());
      return claim;
    }
    const auto begin = popped.begin() + static_cast<std::ptrdiff_t>(next);
    claim.popped.assign(begin, begin + b.consumers());
    next += b.consumers();
    return claim;
  });
  if (next != popped.size()) r.fail("the buffers' claims have {} counts of consumers and say {}", popped.size(), next);
  out.counters = r.structs<CounterClaim>(row.counters(), [](const fb::CounterClaim& c) {
    return CounterClaim{EdgeId{c.edge()}, c.initial(), c.greatest(), c.width_bits()};
  });
  out.outputs = r.structs<OutputClaim>(row.outputs(), [](const fb::OutputClaim& o) {
    return OutputClaim{TensorId{o.tensor()}, o.elements(), o.replicas(), o.contributions()};
  });
  r.tables(out.circles, row.circles(), get_circle);
  if (row.memory() == nullptr) {
    r.fail("the certificate has no claim of memory");
    return;
  }
  out.memory = {row.memory()->busiest_site_bytes(), row.memory()->site_capacity_bytes(),
                row.memory()->busiest_chip_bytes(), row.memory()->chip_capacity_bytes()};
  out.local_edges = row.local_edges();
  out.crossing_edges = row.crossing_edges();
  out.lower_bound_cycles = row.lower_bound_cycles();
  out.predicted_cycles = row.predicted_cycles();
}

// Segments

// The deepest nesting is a list's element, its kind, a pattern, lists of lists.
constexpr flatbuffers::uoffset_t max_depth = 8;

// Verifies the segment as a `Root` and reads it with `get_root`; what is wrong with it, or empty.
template <class Root, class Get>
std::string read(std::string_view bytes, Get get_root) {
  // A table is at least an offset to it and its own to its vtable.
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), max_depth,
                                 static_cast<flatbuffers::uoffset_t>(bytes.size() / Reader::table_bytes + 1));
  if (!verifier.VerifyBuffer<Root>(nullptr)) return "its tables are not well formed";
  Reader r(bytes.size());
  get_root(r, *flatbuffers::GetRoot<Root>(bytes.data()));
  return r.fault();
}

// Adds the elements of a piece.
template <class Root, class T, class Get>
std::string read_list(std::string_view bytes, std::vector<T>& out, Get get_one) {
  return read<Root>(bytes, [&](Reader& r, const Root& root) {
    if (root.list() == nullptr) r.fail("there is no list");
    r.tables(out, root.list(), get_one);
  });
}

std::string read_segment(SegmentKind kind, std::string_view bytes, SpatialProgram& p) {
  const auto into = [&p](auto get_part) {
    return [&p, get_part](Reader& r, const auto& root) { get_part(r, root, p); };
  };
  switch (kind) {
    case SegmentKind::header:
      return read<fb::Header>(bytes, into(get_header));
    case SegmentKind::operators:
      return read<fb::Operators>(bytes, into(get_operators));
    case SegmentKind::collectives:
      return read_list<fb::Collectives>(bytes, p.collectives, get_collective);
    case SegmentKind::tensors:
      return read_list<fb::Tensors>(bytes, p.tensors, get_tensor);
    case SegmentKind::stages:
      return read_list<fb::Stages>(bytes, p.stages, get_stage);
    case SegmentKind::buffers:
      return read_list<fb::Buffers>(bytes, p.buffers, get_buffer);
    case SegmentKind::edges:
      return read_list<fb::Edges>(bytes, p.edges, get_edge);
    case SegmentKind::semaphores:
      return read<fb::Semaphores>(bytes, [&p](Reader& r, const fb::Semaphores& root) {
        if (root.list() == nullptr) r.fail("there is no list");
        const auto list = r.structs<Semaphore>(root.list(), [](const fb::Semaphore& s) {
          return Semaphore{SemaphoreId{s.id()}, GroupId{s.group()}, s.initial(), s.width_bits()};
        });
        p.semaphores.insert(p.semaphores.end(), list.begin(), list.end());
      });
    case SegmentKind::sections:
      return read_list<fb::Sections>(bytes, p.sections, get_section);
    case SegmentKind::work:
      return read_list<fb::Works>(bytes, p.work, get_work);
    case SegmentKind::placement:
      return read<fb::Placement>(bytes, into(get_placement));
    case SegmentKind::memory:
      return read<fb::Memory>(bytes, into(get_memory));
    case SegmentKind::schedule:
      return read<fb::Schedule>(bytes, into(get_schedule));
    case SegmentKind::trees:
      return read_list<fb::SummationTrees>(bytes, p.trees, get_tree);
    case SegmentKind::certificate:
      return read<fb::Certificate>(bytes, into(get_certificate));
  }
  return "it is of no kind that exists";
}

}  // namespace

std::string encode(const SpatialProgram& program) {
  const auto& [header, operators, collectives, tensors, stages, buffers, edges, semaphores, sections, links, work,
               placement, memory, schedule, trees, required, certificate] = program;
  std::vector<Segment> out;
  {
    Builder b;
    const auto root = put(b, header, required, links);
    out.push_back(finish(SegmentKind::header, b, root));
  }
  if (operators) add_one(out, SegmentKind::operators, *operators);
  add_list<fb::Collective>(out, SegmentKind::collectives, collectives,
                           [](Builder& b, auto rows) { return fb::CreateCollectives(b, rows); });
  add_list<fb::Tensor>(out, SegmentKind::tensors, tensors,
                       [](Builder& b, auto rows) { return fb::CreateTensors(b, rows); });
  add_list<fb::Stage>(out, SegmentKind::stages, stages,
                      [](Builder& b, auto rows) { return fb::CreateStages(b, rows); });
  add_list<fb::Buffer>(out, SegmentKind::buffers, buffers,
                       [](Builder& b, auto rows) { return fb::CreateBuffers(b, rows); });
  add_list<fb::Edge>(out, SegmentKind::edges, edges, [](Builder& b, auto rows) { return fb::CreateEdges(b, rows); });
  add_semaphores(out, semaphores);
  add_list<fb::Section>(out, SegmentKind::sections, sections,
                        [](Builder& b, auto rows) { return fb::CreateSections(b, rows); });
  add_list<fb::Work>(out, SegmentKind::work, work, [](Builder& b, auto rows) { return fb::CreateWorks(b, rows); });
  if (placement) add_placement(out, *placement);
  if (memory) add_one(out, SegmentKind::memory, *memory);
  if (schedule) add_one(out, SegmentKind::schedule, *schedule);
  add_list<fb::SummationTree>(out, SegmentKind::trees, trees,
                              [](Builder& b, auto rows) { return fb::CreateSummationTrees(b, rows); });
  if (certificate) add_one(out, SegmentKind::certificate, *certificate);
  return program_file::join(out, prog_bin_version);
}

Result<SpatialProgram> decode(std::string_view bytes, const std::string& where) {
  auto segments = program_file::split(bytes, prog_bin_version, where);
  if (!segments) return segments.diagnostics();
  SpatialProgram program;
  std::vector<std::uint64_t> moved;
  for (std::size_t i = 0; i < segments->size(); ++i) {
    SegmentView segment = (*segments)[i];
    // FlatBuffers reads numbers where they stand.
    if (reinterpret_cast<std::uintptr_t>(segment.bytes.data()) % alignof(std::uint64_t) != 0) {
      moved.resize(segment.bytes.size() / sizeof(std::uint64_t) + 1);
      std::copy(segment.bytes.begin(), segment.bytes.end(), reinterpret_cast<char*>(moved.data()));
      segment.bytes = {reinterpret_cast<const char*>(moved.data()), segment.bytes.size()};
    }
    const std::string fault = read_segment(segment.kind, segment.bytes, program);
    if (!fault.empty()) {
      Diagnostics out;
      out.error(Code::RDU5005, where, "segment {} ({}): {}", i, name_of(segment.kind), fault);
      return out;
    }
  }
  return program;
}

}  // namespace rdusim
