// How an operator that only moves elements is cut into pages: loop nests over elements of an operand and of the result.
//
// A page is the same row-major run of elements on both sides, whatever shapes it has there: a block of a matrix, rows
// of a stack, a column that becomes a row. Along each axis of both tensors it moves by so many elements an iteration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// One tensor's side of a nest, in elements by axis.
struct MoveSide {
  OperandId operand;
  std::vector<std::vector<std::uint64_t>> stride;  // [loop][axis]
  std::vector<std::uint64_t> begin, page, end;     // [axis]; pages are cut at `end`
};

struct MoveNest {
  std::vector<std::uint64_t> loops;  // outermost first
  MoveSide from, to;
  std::uint64_t page_elements = 1;  // of the largest
  std::size_t shared_loop = 0;      // its iterations are dealt out to `sites` sites in turn
  std::uint64_t sites = 1;          // divides them
};

// The nests of a move that is lowered, one an operand that it takes elements of. Empty: `why` says what is missing.
// `columns`: of an append, how many of each row one chip moves. Requires operands and attributes that fit the kind.
std::vector<MoveNest> nests_of(const OperatorGraph& graph, const Operator& op, std::int64_t columns,
                               std::uint64_t most_sites, std::string& why);

// The side of a nest as instances take it: in tiles, where all numbers are whole tiles, else by the largest grain that
// divides them.
AccessPattern pattern_of(const MoveNest& nest, const MoveSide& side, const Tensor& tensor, std::uint32_t native_tile);

// Most sites that a move takes where the user does not say: two for each way to memory, so that one reads while the
// other writes.
std::uint64_t sites_for_moves(const Target& target);

}  // namespace rdusim
