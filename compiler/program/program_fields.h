// The fields of the program's types and the keys that they have in JSON, each type once, for whoever goes through them:
// the writer and the reader of JSON, and the tests, which fill every field of every type.
//
// An Io has required (always there), shown (may be absent when read), brief (left out where it has its default) and
// optional (may be none); Ref<T> is T& for what sets the fields and const T& for what looks at them.
//
// A structured binding takes every type apart, so that a field that was added and forgotten here does not compile.
#pragma once

#include "compiler/ir/program.h"

namespace rdusim::program_file {

// ---- fills and operators --------------------------------------------------------------------------------------------

template <class Io>
void fields(Io& io, typename Io::template Ref<PatternFill> fill) {
  auto& [modulus, shift] = fill;
  io.required("modulus", modulus);
  io.brief("shift", shift);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<RandomFill> fill) {
  auto& [seed, low, high] = fill;
  io.required("seed", seed);
  io.required("low", low);
  io.required("high", high);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<WholeTensorRandomFill> fill) {
  auto& [seed] = fill;
  io.required("seed", seed);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<FileFill> fill) {
  auto& [path, tensor, size_bytes, sha, data_offset, extents, strides] = fill;
  io.required("file", path);
  io.brief("tensor", tensor);
  io.required("size_bytes", size_bytes);
  io.required("sha256", sha);
  io.required("data_offset", data_offset);
  io.brief("extents", extents);
  io.brief("strides", strides);
}

// The forms that no workload file can have, of values that no workload makes.
template <class Io>
void fields(Io& io, typename Io::template Ref<ConstantFill> fill) {
  auto& [value, integer] = fill;
  io.required("value", value);
  io.required("integer", integer);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<ValuesFill> fill) {
  auto& [integers, floats] = fill;
  io.required("integers", integers);
  io.required("floats", floats);
}

// `where` is a place on the computer that compiled: no part of the program.
template <class Io>
void fields(Io& io, typename Io::template Ref<Operand> operand) {
  auto& [id, name, role, shape, dtype, fill, where, alone] = operand;
  static_cast<void>(where);
  io.required("id", id);
  io.required("name", name);
  io.shown("role", role);
  io.required("shape", shape);
  io.shown("dtype", dtype);
  io.shown("fill", fill);
  io.brief("alone", alone);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<OperatorAttributes> attributes) {
  const OperatorAttributes usual;
  auto& [transposed, epsilon, heads, kv_heads, scale, causal, window, axes, begin, end, scattered, alone] = attributes;
  io.brief("transposed", transposed);
  io.brief("epsilon", epsilon);
  io.brief("heads", heads);
  io.brief("kv_heads", kv_heads);
  io.brief("scale", scale, usual.scale);
  io.brief("causal", causal);
  io.brief("window", window);
  io.brief("axes", axes);
  io.brief("begin", begin);
  io.brief("end", end);
  io.brief("scattered", scattered);
  io.brief("alone", alone);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Operator> op) {
  auto& [id, name, kind, in, out, attributes, where] = op;
  static_cast<void>(where);
  io.required("id", id);
  io.required("name", name);
  io.shown("kind", kind);
  io.required("in", in);
  io.required("out", out);
  io.brief("attributes", attributes);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<SchedulePin> pin) {
  auto& [op, sites, unroll_m, unroll_n, unroll_k, block_m, block_n, page_k, depth, unit, lanes, stream_lanes, pmus,
         fold_apart] = pin;
  io.required("op", op);
  io.optional("sites", sites);
  io.optional("unroll_m", unroll_m);
  io.optional("unroll_n", unroll_n);
  io.optional("unroll_k", unroll_k);
  io.optional("block_m", block_m);
  io.optional("block_n", block_n);
  io.optional("page_k", page_k);
  io.optional("depth", depth);
  io.optional("unit", unit);
  io.optional("lanes", lanes);
  io.optional("stream_lanes", stream_lanes);
  io.optional("pmus", pmus);
  io.brief("fold_apart", fold_apart);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<OperatorGraph> graph) {
  auto& [name, operands, operators, pins, tokens, assumes] = graph;
  io.required("name", name);
  io.required("operands", operands);
  io.required("operators", operators);
  io.brief("pins", pins);
  io.brief("tokens", tokens);
  io.brief("assumes", assumes);
}

// ---- tensors --------------------------------------------------------------------------------------------------------

template <class Io>
void fields(Io& io, typename Io::template Ref<Tensor> tensor) {
  auto& [id, name, operand, role, shape, tiles, dtype, layout, space, fill, range, chip, whole, offset, replicas] =
      tensor;
  io.required("id", id);
  io.required("name", name);
  io.required("operand", operand);
  io.shown("role", role);
  io.required("shape", shape);
  io.required("tiles", tiles);
  io.shown("dtype", dtype);
  io.shown("layout", layout);
  io.shown("space", space);
  io.shown("fill", fill);
  io.optional("range", range);
  io.required("chip", chip);
  io.required("whole", whole);
  io.required("offset", offset);
  io.brief("replicas", replicas, Tensor{}.replicas);
}

// ---- stages ---------------------------------------------------------------------------------------------------------

template <class Io>
void fields(Io& io, typename Io::template Ref<Chunk> chunk) {
  auto& [index, of] = chunk;
  io.required("index", index);
  io.required("of", of);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<AccessPattern> pattern) {
  auto& [loops, stride, first, page_tiles, extent_tiles, heads, grain] = pattern;
  io.required("loops", loops);
  io.required("stride", stride);
  io.required("first", first);
  io.required("page_tiles", page_tiles);
  io.required("extent_tiles", extent_tiles);
  io.brief("heads", heads, std::uint64_t{1});
  io.brief("grain", grain);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Load> load) {
  auto& [tensor, pattern, multicast_set, indexed, later, lanes] = load;
  io.required("tensor", tensor);
  io.required("pattern", pattern);
  io.brief("multicast_set", multicast_set);
  io.brief("indexed", indexed);
  io.brief("later", later);
  io.brief("lanes", lanes);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Store> store) {
  auto& [tensor, pattern, chunks, later, lanes] = store;
  io.required("tensor", tensor);
  io.required("pattern", pattern);
  io.brief("chunks", chunks);
  io.brief("later", later);
  io.brief("lanes", lanes);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<MatmulTiles> matmul) {
  auto& [op, block_m, block_n, page_k, k_tiles, k_pages, operand, accumulator, result, transposed, lanes] = matmul;
  io.required("op", op);
  io.shown("block_m", block_m);
  io.shown("block_n", block_n);
  io.shown("page_k", page_k);
  io.shown("k_tiles", k_tiles);
  io.shown("k_pages", k_pages);
  io.shown("operand", operand);
  io.shown("accumulator", accumulator);
  io.shown("result", result);
  io.brief("transposed", transposed);
  io.brief("lanes", lanes);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<ExprNode> node) {
  auto& [op, index, number] = node;
  io.required("op", op);
  io.shown("index", index);
  io.shown("number", number);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Generic> generic) {
  auto& [iterators, maps, bodies, accumulator, result, join, shifted, lanes] = generic;
  io.required("iterators", iterators);
  io.required("maps", maps);
  io.required("bodies", bodies);
  io.shown("accumulator", accumulator);
  io.shown("result", result);
  io.optional("join", join);
  io.brief("shifted", shifted);
  io.brief("lanes", lanes);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Recv> recv) {
  auto& [edge] = recv;
  io.required("edge", edge);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<CollectiveStage> stage) {
  auto& [collective] = stage;
  io.required("collective", collective);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Port> port) {
  const Port usual;
  auto& [direction, buffer, need, pop, reserve, push, chunk] = port;
  io.required("direction", direction);
  io.required("buffer", buffer);
  io.brief("need", need, usual.need);
  io.brief("pop", pop, usual.pop);
  io.brief("reserve", reserve, usual.reserve);
  io.brief("push", push, usual.push);
  io.brief("chunk", chunk, usual.chunk);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Engine> engine) {
  auto& [kind, index] = engine;
  io.shown("kind", kind);
  io.shown("index", index);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Stage> stage) {
  auto& [id, name, kind, role, ports, group, engine, firings, section, origin, collective, assumes] = stage;
  io.required("id", id);
  io.required("name", name);
  io.required("kind", kind);
  io.shown("role", role);
  io.required("ports", ports);
  io.required("group", group);
  io.shown("engine", engine);
  io.required("firings", firings);
  io.required("section", section);
  io.optional("origin", origin);
  io.optional("collective", collective);
  io.brief("assumes", assumes);
}

// ---- buffers, edges, semaphores -------------------------------------------------------------------------------------

template <class Io>
void fields(Io& io, typename Io::template Ref<Buffer> buffer) {
  auto& [id, name, kind, depth_pages, page_tiles, page_bytes, dtype, group, initial_pages, alias_of, origin, pmu] =
      buffer;
  io.required("id", id);
  io.required("name", name);
  io.shown("kind", kind);
  io.shown("depth_pages", depth_pages);
  io.shown("page_tiles", page_tiles);
  io.shown("page_bytes", page_bytes);
  io.shown("dtype", dtype);
  io.required("group", group);
  io.brief("initial_pages", initial_pages);
  io.optional("alias_of", alias_of);
  io.optional("origin", origin);
  io.brief("pmu", pmu);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<PageMap> map) {
  auto& [kind, targets] = map;
  io.shown("kind", kind);
  io.brief("targets", targets);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<SemaphorePair> pair) {
  auto& [ready, valid] = pair;
  io.required("ready", ready);
  io.required("valid", valid);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Edge> edge) {
  auto& [id, from, buffer, to, handshake, map, chunk, routes, semaphores, counter_bits, collective] = edge;
  io.required("id", id);
  io.required("from", from);
  io.required("buffer", buffer);
  io.required("to", to);
  io.shown("handshake", handshake);
  io.brief("map", map);
  io.brief("chunk", chunk);
  io.brief("routes", routes);
  io.optional("semaphores", semaphores);
  io.brief("counter_bits", counter_bits);
  io.optional("collective", collective);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Semaphore> semaphore) {
  auto& [id, group, initial, width_bits] = semaphore;
  io.required("id", id);
  io.required("group", group);
  io.shown("initial", initial);
  io.shown("width_bits", width_bits);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Collective> collective) {
  auto& [id, name, kind, algorithm, reason, members, order, bytes, op] = collective;
  io.required("id", id);
  io.required("name", name);
  io.shown("kind", kind);
  io.shown("algorithm", algorithm);
  io.brief("reason", reason);
  io.required("members", members);
  io.shown("order", order);
  io.required("bytes", bytes);
  io.required("op", op);
}

// ---- work, placement, sections --------------------------------------------------------------------------------------

template <class Io>
void fields(Io& io, typename Io::template Ref<BlockPlan> plan) {
  auto& [block_m, block_n, page_k, sites_m, sites_n, sites_k, rounds_m, rounds_n, k_pages] = plan;
  io.shown("block_m", block_m);
  io.shown("block_n", block_n);
  io.shown("page_k", page_k);
  io.shown("sites_m", sites_m);
  io.shown("sites_n", sites_n);
  io.shown("sites_k", sites_k);
  io.shown("rounds_m", rounds_m);
  io.shown("rounds_n", rounds_n);
  io.shown("k_pages", k_pages);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Work> work) {
  auto& [id, op, chip, m, n, k, offset_m, offset_n, offset_k, plan] = work;
  io.required("id", id);
  io.required("op", op);
  io.required("chip", chip);
  io.shown("m", m);
  io.shown("n", n);
  io.shown("k", k);
  io.shown("offset_m", offset_m);
  io.shown("offset_n", offset_n);
  io.shown("offset_k", offset_k);
  io.optional("plan", plan);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Group> group) {
  auto& [id, sites, agcus] = group;
  io.required("id", id);
  io.required("sites", sites);
  io.required("agcus", agcus);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<WorkAssignment> assignment) {
  auto& [stage, work, items] = assignment;
  io.required("stage", stage);
  io.required("work", work);
  io.required("items", items);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Mesh> mesh) {
  auto& [width, height] = mesh;
  io.required("width", width);
  io.required("height", height);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Placement> placement) {
  auto& [mesh, groups, work] = placement;
  io.required("mesh", mesh);
  io.required("groups", groups);
  io.shown("work", work);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Section> section) {
  auto& [id, name, trips, operators_a_trip, relaunched] = section;
  io.required("id", id);
  io.required("name", name);
  io.shown("trips", trips);
  io.brief("operators_a_trip", operators_a_trip);
  io.brief("relaunched", relaunched);
}

// ---- memory and schedule --------------------------------------------------------------------------------------------

template <class Io>
void fields(Io& io, typename Io::template Ref<BufferPlace> place) {
  auto& [address, bank] = place;
  io.shown("address", address);
  io.shown("bank", bank);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<TensorPlace> place) {
  auto& [address, bytes] = place;
  io.shown("address", address);
  io.shown("bytes", bytes);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<AccumulatorPlace> place) {
  auto& [stage, tiles, address, bytes] = place;
  io.required("stage", stage);
  io.shown("tiles", tiles);
  io.shown("address", address);
  io.shown("bytes", bytes);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<MemoryPlan> plan) {
  auto& [buffers, tensors, accumulators] = plan;
  io.required("buffers", buffers);
  io.required("tensors", tensors);
  io.required("accumulators", accumulators);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<StageSlot> slot) {
  auto& [order, initiation_interval_cycles] = slot;
  io.shown("order", order);
  io.shown("initiation_interval_cycles", initiation_interval_cycles);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<EngineOrder> order) {
  auto& [stages] = order;
  io.required("stages", stages);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Schedule> schedule) {
  auto& [slots, engine_orders] = schedule;
  io.required("slots", slots);
  io.shown("engine_orders", engine_orders);
}

// ---- trees and certificate ------------------------------------------------------------------------------------------

template <class Io>
void fields(Io& io, typename Io::template Ref<SummationNode> node) {
  auto& [leaf, chip, k_begin, k_end, left, right] = node;
  io.shown("leaf", leaf);
  io.brief("chip", chip);
  io.brief("k_begin", k_begin);
  io.brief("k_end", k_end);
  io.brief("left", left);
  io.brief("right", right);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<SummationTree> tree) {
  auto& [id, op, chunk, chunks, nodes, lanes] = tree;
  io.required("id", id);
  io.required("op", op);
  io.shown("chunk", chunk);
  io.shown("chunks", chunks);
  io.required("nodes", nodes);
  io.brief("lanes", lanes, std::uint32_t{1});
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Obligation> obligation) {
  auto& [kind, status, scope, reason] = obligation;
  io.required("kind", kind);
  io.shown("status", status);
  io.shown("scope", scope);
  io.brief("reason", reason);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<BufferClaim> claim) {
  auto& [buffer, reserved, pushed, popped, depth, least_depth] = claim;
  io.required("buffer", buffer);
  io.shown("reserved", reserved);
  io.shown("pushed", pushed);
  io.required("popped", popped);
  io.shown("depth", depth);
  io.shown("least_depth", least_depth);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<CounterClaim> claim) {
  auto& [edge, initial, greatest, width_bits] = claim;
  io.required("edge", edge);
  io.shown("initial", initial);
  io.shown("greatest", greatest);
  io.shown("width_bits", width_bits);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<OutputClaim> claim) {
  auto& [tensor, elements, replicas, contributions] = claim;
  io.required("tensor", tensor);
  io.shown("elements", elements);
  io.shown("replicas", replicas);
  io.shown("contributions", contributions);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<CircleClaim> claim) {
  auto& [section, stages, buffers, cycles, parts, rounds, way] = claim;
  io.required("section", section);
  io.shown("stages", stages);
  io.shown("buffers", buffers);
  io.shown("cycles", cycles);
  io.shown("parts", parts);
  io.shown("rounds", rounds);
  io.shown("way", way);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<MemoryClaim> claim) {
  auto& [busiest_site_bytes, site_capacity_bytes, busiest_chip_bytes, chip_capacity_bytes] = claim;
  io.shown("busiest_site_bytes", busiest_site_bytes);
  io.shown("site_capacity_bytes", site_capacity_bytes);
  io.shown("busiest_chip_bytes", busiest_chip_bytes);
  io.shown("chip_capacity_bytes", chip_capacity_bytes);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Certificate> certificate) {
  auto& [obligations, buffers, counters, outputs, circles, memory, local_edges, crossing_edges, lower_bound_cycles,
         predicted_cycles] = certificate;
  io.required("obligations", obligations);
  io.required("buffers", buffers);
  io.required("counters", counters);
  io.required("outputs", outputs);
  io.brief("circles", circles);
  io.shown("memory", memory);
  io.shown("local_edges", local_edges);
  io.shown("crossing_edges", crossing_edges);
  io.shown("lower_bound_cycles", lower_bound_cycles);
  io.shown("predicted_cycles", predicted_cycles);
}

// ---- header and program ---------------------------------------------------------------------------------------------

template <class Io>
void fields(Io& io, typename Io::template Ref<ShardPlan> plan) {
  auto& [chips, portable, kind, collective, algorithm, uneven, pad, least_depths, relaunch] = plan;
  io.shown("chips", chips);
  io.shown("portable", portable);
  io.shown("kind", kind);
  io.shown("collective", collective);
  io.shown("algorithm", algorithm);
  io.shown("uneven", uneven);
  io.shown("pad", pad);
  io.brief("least_depths", least_depths);
  io.brief("relaunch", relaunch);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<NumericsPolicy> numerics) {
  auto& [saturate, partials_in_accumulator_type] = numerics;
  io.shown("saturate", saturate);
  io.shown("partials_in_accumulator_type", partials_in_accumulator_type);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Header> header) {
  auto& [name, target_name, target_text, target_sha256, native_tile, numerics, plan] = header;
  io.required("name", name);
  io.required("target_name", target_name);
  io.required("target_text", target_text);
  io.required("target_sha256", target_sha256);
  io.shown("native_tile", native_tile);
  io.shown("numerics", numerics);
  io.shown("plan", plan);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<Requires> required) {
  auto& [handshakes, operand_dtypes, spaces] = required;
  io.shown("handshakes", handshakes);
  io.shown("operand_dtypes", operand_dtypes);
  io.shown("spaces", spaces);
}

template <class Io>
void fields(Io& io, typename Io::template Ref<SpatialProgram> program) {
  auto& [header, operators, collectives, tensors, stages, buffers, edges, semaphores, sections, links, work, placement,
         memory, schedule, trees, required, certificate] = program;
  io.required("header", header);
  io.shown("required", required);
  io.optional("operators", operators);
  io.shown("collectives", collectives);
  io.required("tensors", tensors);
  io.required("stages", stages);
  io.required("buffers", buffers);
  io.required("edges", edges);
  io.shown("semaphores", semaphores);
  io.required("sections", sections);
  io.shown("links", links);
  io.shown("work", work);
  io.optional("placement", placement);
  io.optional("memory", memory);
  io.optional("schedule", schedule);
  io.shown("trees", trees);
  io.optional("certificate", certificate);
}

}  // namespace rdusim::program_file
