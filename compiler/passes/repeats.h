// Runs of operators that repeat: the layers of a decoder. Where they do the same to other operands, place makes them the
// trips of one section.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// Operators [first + t * length, first + (t + 1) * length) are trip t.
struct Repeat {
  OperatorId first;
  std::uint32_t length = 0;
  std::uint32_t trips = 0;  // 2 or more
  std::uint32_t end() const { return first.value + length * trips; }
};

// Runs of the graph that repeat, rising and apart, those that save most operators first. Operators of all trips are of
// one kind, attributes, pins and operand types; what one takes from an operator of its own trip, all take from that; what
// it takes from the trip before, all but the first do; and the second takes something from the first. Near linear in operators times the length of what repeats.
std::vector<Repeat> repeats_of(const OperatorGraph& graph);

// By tensor that the first trip works on, those of the later trips; empty where they work on the same. Nothing where a
// chip's tensors and works of the trips do not agree in everything but what they hold, or a tensor of the first trip
// stands for different ones of a later trip. Requires works and tensors of one chip.
using LaterTensors = std::vector<std::vector<TensorId>>;
std::optional<LaterTensors> later_tensors(const SpatialProgram& program, const Repeat& repeat);

}  // namespace rdusim
