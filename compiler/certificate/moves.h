// What moves leave where: of each element that is stored, which element of which operand it must be.
//
// The checker's own reading of operator_graph.h: it counts elements, and knows nothing of how pages were cut.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/certificate/pages.h"
#include "compiler/certificate/rows.h"

namespace rdusim::certificate {

// Elements [begin, end), row-major, of a block of an operand of extents `whole`.
struct Part {
  const Box* box = nullptr;
  const Whole* whole = nullptr;
  std::uint64_t begin = 0, end = 0;
};

// Why operator `op`, a move, does not leave elements `taken` of operand `from` at `stored` of its result; empty: it
// does, element by element, in this order.
std::string not_moved(const OperatorGraph& graph, const Operator& op, OperandId from, const Part& taken,
                      const Part& stored);

// By operand, the one whose tensor holds it: of what an append gives, that of its state. The checker's own storage_of.
std::vector<OperandId> holders(const OperatorGraph& graph);

// The operator that moves what it has loaded into tensors of operand `o`, if `by` does.
const Operator* mover_into(const SpatialProgram& program, OperandId o, std::optional<OperatorId> by);

// Which rows of its states a program's appends replace.
class AppendedRows {
 public:
  explicit AppendedRows(const SpatialProgram& program);
  // The blocks of a state that no append replaces, of the columns that `t` has of it: nobody has to write them. Nothing
  // where `t` is no state.
  std::vector<Box> kept(const Tensor& t) const;

 private:
  bool known_ = false;  // the program says its operators
  std::map<OperandId, std::vector<std::pair<std::uint64_t, std::uint64_t>>> replaced_;  // by holder: rising
};

// Whether what a move does to one instance's pages, moved as a whole, it does to another's: then the checker may look
// at one of them. It does of matrices whose rows and columns keep their order.
bool alike_everywhere(const OperatorGraph& graph, const Operator& op);

}  // namespace rdusim::certificate
