// The rules that operators keep to, and the shapes and dtypes that follow from them. Shared by the reader, whose graph
// has gaps, and by check_graph, whose graph has none.
#pragma once

#include <vector>

#include "compiler/support/diagnostics.h"
#include "compiler/workload/operator_graph.h"

namespace rdusim {

// What of an operand is not given.
struct OperandGaps {
  bool shape = false;   // follows from the operator that writes it
  bool dtype = false;   // the same
  bool faulty = false;  // something is wrong with it and has been said: rules that need it are skipped
};

// The operators in an order in which operands are written before they are read; where the file leaves a choice, the one
// that stands first goes first. Operators on a cycle, or behind one, are left out, and each cycle is named (RDU1015).
// Requires operands within range.
std::vector<std::size_t> writing_order(const OperatorGraph& graph, Diagnostics& out);

// Holds one operator to its rules and closes the gaps of what it writes: its shape, and the first dtype that its kind
// gives. Errors: RDU1008, RDU1009, RDU1012, RDU1030-RDU1037. Requires operands within range, and those that it reads
// closed.
void check_operator(OperatorGraph& graph, std::size_t position, std::vector<OperandGaps>& gaps, Diagnostics& out);

// The same for all, walking `order`.
void check_operators(OperatorGraph& graph, const std::vector<std::size_t>& order, std::vector<OperandGaps>& gaps,
                     Diagnostics& out);

// RDU1013, RDU1014 and RDU1016: who writes which tensor. `complete`: no operator is missing because of an earlier
// fault.
void check_writers(const OperatorGraph& graph, bool complete, Diagnostics& out);

// RDU1008 of one shape, given its dtype.
void check_shape(const Operand& operand, const std::string& where, Diagnostics& out);

}  // namespace rdusim
