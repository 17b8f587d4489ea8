// For each rule of the verifier a program that breaks it and no other: the sample program, and one edit.
//
// tests/errors/programs holds them as JSON for people to try (`rdusim assemble tests/errors/programs/RDU3008.json -o
// x`).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/support/file.h"
#include "tests/compiler/ir/sample_program.h"

namespace rdusim::sample {

// The machine of sample::target() as a target file.
inline std::string target_text() {
  const auto number = [](std::string_view key, std::uint64_t value) {
    return fmt::format("{} = {{ value = {}, published = \"sample\" }}\n", key, value);
  };
  std::string text =
      "name = \"sample\"\nsummary = \"four small chips, for tests\"\n\n[handshakes]\nlocal = \"valid_ready\"\n";
  text += "crossing = [\"token\", \"semaphore\"]\n\n[machine]\n";
  text += number("clock_ghz", 1) + number("chips", 4) + number("node_chips", 4) + number("native_tile_elements", 32);
  text += "\n[mesh]\n" + number("width_sites", 4) + number("height_sites", 4);
  text += "\n[site]\n" + number("pcu_contexts", 2) + number("vector_inputs", 2) + number("vector_outputs", 2) +
          number("movement_engines", 6) + number("buffers", 10) + number("semaphores", 8) +
          number("semaphore_bits", 8) + number("token_bits", 8);
  text += "\n[pcu]\n" + number("lanes", 32) + number("stages", 6) + number("systolic_fill_cycles", 32) +
          number("systolic_drain_cycles", 32) + number("simd_latency_cycles", 8);
  for (const char* table : {"macs_per_cycle", "simd_ops_per_cycle"}) {
    text += fmt::format("\n[pcu.{}]\n", table);
    for (DType t : all_dtypes) text += number(name_of(t), 64);
  }
  text += "\n[pmu]\n" + number("capacity_bytes", 262144) + number("banks", 4) + number("read_bytes_per_cycle", 64) +
          number("write_bytes_per_cycle", 64) + number("access_latency_cycles", 4);
  text += "\n[network]\n" + number("link_bytes_per_cycle", 32) + number("hop_cycles", 2) +
          number("endpoint_cycles", 2) + number("control_hop_cycles", 1) + number("flit_bytes", 32);
  text += "\n[agcu]\nat = { value = [[0, 0], [3, 3]], published = \"sample\" }\n" + number("bytes_per_cycle", 64) +
          number("latency_cycles", 20) + number("outstanding_bursts", 16) + number("burst_bytes", 512);
  text += "\n[hbm]\ntechnology = \"sample\"\n" + number("capacity_bytes", 1u << 30) + number("channels", 4) +
          number("gb_per_s", 64) + number("interleave_bytes", 512) + number("latency_ns", 100) +
          number("row_bytes", 1024) + number("row_miss_ns", 10) + number("turnaround_ns", 5) +
          number("refresh_interval_ns", 3900) + number("refresh_ns", 100);
  text += "\n[host]\n" + number("section_launch_ns", 1000) + number("argument_load_ns", 100);
  text += "\n[[links]]\njoins = \"node\"\nshape = \"full_mesh\"\n" + number("gb_per_s", 32) +
          number("latency_ns", 100) + number("signal_bytes", 8);
  return text;
}

inline Shape over(std::uint32_t chips, Handshake crossing = Handshake::token) {
  Shape s;
  s.chips = chips;
  s.crossing = crossing;
  return s;
}

struct Broken {
  Code code;
  std::function<SpatialProgram()> make;
};

inline const std::vector<Broken>& broken_programs() {
  const auto edited = [](Shape shape, std::function<void(Builder&)> edit) {
    return [shape, edit] {
      Builder b(shape);
      edit(b);
      return b.p;
    };
  };
  static const std::vector<Broken> list = {
      {Code::RDU2009, edited({}, [](Builder& b) { b.p.header.plan.chips = 5; })},
      {Code::RDU3001, edited({}, [](Builder& b) { b.p.stages[1].id = StageId{7u}; })},
      {Code::RDU3002, edited({}, [](Builder& b) { b.p.buffers[0].group = GroupId{9u}; })},
      {Code::RDU3003, edited({}, [](Builder& b) { b.p.tensors[0].tiles[1] = 17; })},
      {Code::RDU3004, edited({}, [](Builder& b) { b.add_edge(StageId{1u}, BufferId{1u}, {StageId{2u}}); })},
      {Code::RDU3005, edited(over(2),
                             [](Builder& b) {
                               Edge& e = edge_of(b.p, "down.partial_c1");
                               e.to.push_back(stage(b.p, "down.fold").id);
                               e.routes.push_back(e.routes[0]);
                             })},
      {Code::RDU3006, edited({},
                             [](Builder& b) {
                               b.p.placement->groups.push_back({GroupId{1u},
                                                                {{ChipId{0u}, {0, 1}}, {ChipId{0u}, {1, 1}}},
                                                                {AgcuId{0u}, AgcuId{0u}}});
                               stage(b.p, "down.store").group = GroupId{1u};
                             })},
      {Code::RDU3007,
       [] {
         Shape s = over(2);
         s.own_crosses = true;
         return program(s);
       }},
      // Slices of 8 contraction tiles under stages of 16: the case that taught the rule of re-lowering.
      {Code::RDU3008,
       [] {
         Shape s = over(2);
         s.page_k = 16;
         s.lowered_before_slicing = true;
         return program(s);
       }},
      {Code::RDU3009, edited({}, [](Builder& b) { b.p.edges[0].handshake = Handshake::circular_buffer; })},
      {Code::RDU3010, edited({}, [](Builder& b) { stage(b.p, "down.load_b").engine.index = 0; })},
      {Code::RDU3011, edited({},
                             [](Builder& b) {
                               stage(b.p, "down.matmul").engine = {StageRole::movement, 5};
                             })},
      {Code::RDU3012, edited({}, [](Builder& b) { b.p.tensors[0].replicas = 2; })},
      {Code::RDU3013, edited({},
                             [](Builder& b) {
                               b.add_tensor("w_part", OperandId{1u}, 0, {256, 64}, {256, 0});
                             })},
      {Code::RDU3014, edited({},
                             [](Builder& b) {
                               const StageId again = b.add_stage("down.store_again", stage(b.p, "down.store").kind, 0,
                                                                 {StageRole::movement, 3}, 1, {b.input(BufferId{2u})});
                               b.p.schedule->slots.push_back({4, 1});
                               edge_of(b.p, "down.c").to.push_back(again);
                             })},
      {Code::RDU3015, edited({},
                             [](Builder& b) {
                               b.p.operators->operands.push_back(
                                   {OperandId{3u}, "z", TensorRole::output, {32, 32}, DType::int32, ZeroFill{}, ""});
                               b.add_tensor("z", OperandId{3u}, 0, {32, 32}, {0, 0});
                             })},
      {Code::RDU3016, edited({}, [](Builder& b) { b.p.memory->buffers[1].bank = 4; })},
      {Code::RDU3017, edited({}, [](Builder& b) { b.p.memory->tensors[0].address = Bytes{1} << 30; })},
      {Code::RDU3018, edited(over(2),
                             [](Builder& b) {
                               b.p.header.plan.chips = 3;
                               b.p.collectives[0].members.push_back(ChipId{2u});
                               b.p.collectives[0].bytes.push_back(b.p.collectives[0].bytes[0]);
                             })},
      {Code::RDU3019, edited(over(2),
                             [](Builder& b) {
                               Collective again = b.p.collectives[0];
                               again.id = CollectiveId{1u};
                               again.name = "down.again";
                               b.p.collectives.push_back(again);
                               stage(b.p, "down.matmul_c0").collective = CollectiveId{1u};
                               stage(b.p, "down.matmul_c1").collective = CollectiveId{1u};
                             })},
      {Code::RDU3020, edited(over(2), [](Builder& b) { b.p.collectives[0].bytes[1] += 4; })},
      {Code::RDU3021, edited(over(2), [](Builder& b) { edge_of(b.p, "down.partial_c1").counter_bits = 1; })},
      {Code::RDU3022, edited({}, [](Builder& b) { stage(b.p, "down.store").engine.index = 6; })},
      {Code::RDU3023, edited(over(4, Handshake::semaphore),
                             [](Builder& b) {
                               edge_of(b.p, "down.partial_c2").semaphores->valid =
                                   edge_of(b.p, "down.partial_c1").semaphores->valid;
                             })},
      // The fold takes chip 0's partial and loses it.
      {Code::RDU3024, edited(over(2),
                             [](Builder& b) {
                               auto& fold = std::get<Generic>(stage(b.p, "down.fold").kind);
                               fold.bodies[1].value = {{ExprOp::operand, 1, 0}};
                             })},
      // An activation before the sum.
      {Code::RDU3025,
       edited(over(2),
              [](Builder& b) {
                auto& fold = std::get<Generic>(stage(b.p, "down.fold").kind);
                fold.bodies[0].value = {{ExprOp::operand, 0, 0}, {ExprOp::constant, 0, 0}, {ExprOp::maximum, 0, 0}};
              })},
      {Code::RDU3026, edited({},
                             [](Builder& b) {
                               b.p.placement->groups[0].sites[1].at = {4, 0};
                             })},
      {Code::RDU3027, edited({}, [](Builder& b) { stage(b.p, "down.matmul").ports.pop_back(); })},
      {Code::RDU3028,
       edited(over(2), [](Builder& b) { edge_of(b.p, "down.partial_c1").map.kind = PageMapKind::multicast; })},
      {Code::RDU3029, edited({}, [](Builder& b) { stage(b.p, "down.matmul").ports[0].need = always(3u); })},
      {Code::RDU3030, edited({}, [](Builder& b) { stage(b.p, "down.matmul").ports[0].need = always(0u); })},
      {Code::RDU3031, edited({}, [](Builder& b) { b.p.edges[1].from = StageId{0u}; })},
      {Code::RDU3032, edited(over(2), [](Builder& b) { std::swap(b.p.trees[0].nodes[0], b.p.trees[0].nodes[1]); })},
      {Code::RDU3033, edited({}, [](Builder& b) { b.p.required.handshakes.push_back(Handshake::barrier); })},
      {Code::RDU3034,
       edited(over(2),
              [](Builder& b) { edge_of(b.p, "down.partial_c1").routes = {route(target(), ChipId{0u}, ChipId{1u})}; })},
      {Code::RDU3035, edited({}, [](Builder& b) { b.p.stages[1].name = b.p.stages[0].name; })},
      {Code::RDU3036, edited(over(2), [](Builder& b) { buffer(b.p, "down.landing_c1").dtype = DType::fp32; })},
      {Code::RDU3037, edited({}, [](Builder& b) { b.p.sections[0].trips = 0; })},
      {Code::RDU3038, edited({}, [](Builder& b) { b.p.memory->buffers[1].address = b.p.memory->buffers[0].address; })},
      // The fold waits for a page that it hands to itself.
      {Code::RDU3039, edited(over(2),
                             [](Builder& b) {
                               Stage& fold = stage(b.p, "down.fold");
                               const BufferId loop = b.add_buffer("down.loop", BufferKind::fifo, DType::int32, 1, 0);
                               fold.ports.insert(fold.ports.begin() + 2, b.input(loop));
                               fold.ports.push_back(b.output(loop));
                               std::get<Generic>(fold.kind).maps.push_back({{1, 0}});
                               b.add_edge(fold.id, loop, {fold.id});
                             })},
      {Code::RDU3040, edited(over(2),
                             [](Builder& b) {
                               b.p.tensors[1].fill = PatternFill{61, 30};
                             })},
      {Code::RDU3041, edited({}, [](Builder& b) { b.p.memory->tensors[2].bytes += 32; })},
      {Code::RDU3042, edited({}, [](Builder& b) { b.p.memory->tensors[1].address = 32; })},
      // The matmul becomes two stages joined by two buffers, which agree on how often they fire over one of them alone.
      {Code::RDU3043, edited({},
                             [](Builder& b) {
                               SpatialProgram& p = b.p;
                               p.operators.reset();
                               p.trees.clear();
                               Stage& matmul = stage(p, "down.matmul");
                               const BufferId u = b.add_buffer("down.u", BufferKind::fifo, DType::int32, 1, 0);
                               const BufferId v = b.add_buffer("down.v", BufferKind::fifo, DType::int32, 1, 0);
                               const BufferId c = matmul.ports[2].buffer;
                               matmul.kind = Builder::sum(2);
                               matmul.ports[2] = b.output(u);
                               matmul.ports.push_back(b.output(v));
                               Port twice = b.input(v);
                               twice.need = twice.pop = always(2u);
                               Port last = b.output(c);
                               last.reserve = last.push = Builder::only_in(3, 4);
                               const StageId join = b.add_stage("down.join", Builder::sum(2), 0,
                                                                {StageRole::compute, 1}, 4, {b.input(u), twice, last});
                               p.schedule->slots.push_back({4, 1});
                               edge_of(p, "down.c").from = join;
                               b.add_edge(stage(p, "down.matmul").id, u, {join});
                               b.add_edge(stage(p, "down.matmul").id, v, {join});
                               p.memory->accumulators.clear();
                             })},
      {Code::RDU3046, edited(over(2), [](Builder& b) { buffer(b.p, "down.partial_c1").kind = BufferKind::fifo; })},
      {Code::RDU3047,
       edited({}, [](Builder& b) { b.p.placement->work[0].items[1] = b.p.placement->work[0].items[0]; })},
      {Code::RDU3048, edited({}, [](Builder& b) { b.p.schedule->slots[1].order = 0; })},
      {Code::RDU3049, edited({}, [](Builder& b) { buffer(b.p, "down.a").pmu = 1 << 20; })},
      // Rows and columns of a and b are taken for those of one result.
      {Code::RDU3070,
       edited({}, [](Builder& b) { std::get<Load>(stage(b.p, "down.load_a").kind).later = {TensorId{1u}}; })},
      {Code::RDU3044,
       edited({},
              [](Builder& b) {
                SpatialProgram& p = b.p;
                p.operators.reset();
                p.trees.clear();
                Generic by_row = Builder::sum(2);
                by_row.iterators = {IteratorKind::parallel, IteratorKind::parallel};
                by_row.maps.assign(3, {{1, 0, 0}, {0, 1, 0}});
                by_row.bodies = always(Expr{{ExprOp::operand, 0, 0}, {ExprOp::operand, 1, 0}, {ExprOp::add, 0, 0}});
                stage(p, "down.matmul").kind = by_row;
                p.memory->accumulators.clear();
              })},
  };
  return list;
}

}  // namespace rdusim::sample
