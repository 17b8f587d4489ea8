// A compute unit (PCU), in its two modes. What serialises the stages on it is the engine that the chip keeps.
//
//   systolic  a firing over mt x nt x kt tiles of t x t x t multiply-accumulates keeps the array for
//                 busy = ceil(mt nt kt t^3 / macs_per_cycle)
//             cycles. A ragged page costs as much as one of whole tiles, but for its rows: they go through the array in
//             groups of `stages`, its narrower side, and groups that are not there take no time (a step of decoding has
//             one row; PcuParameters::rows_taken). The last result leaves the tail
//                 latency = fill + drain
//             cycles after the array is free. Firings follow each other every `busy` cycles: the fill of one overlaps
//             the steady state of the one before.
//             An R x C array that keeps its sums in place does R C multiply-accumulates a cycle, its last row's first
//             operand is R - 1 cycles late and its last column's last result C - 1: with macs_per_cycle = R C, fill =
//             R - 1 and drain = C - 1 a product of depth K takes R + C + K - 2 cycles.
//   SIMD      a body of `operations` element-wise operations over n elements: busy = ceil(n max(operations, 1) /
//             simd_ops_per_cycle), latency = simd_latency_cycles. A body by row is evaluated over the rows and columns of
//             its result before rows are joined; joining them is one operation more. Every operation counts one, a
//             division or an elementary function too: no rate of those is published for any of the machines, and a unit
//             with a table a lane keeps up with the pipeline.
//             A stage that uses l of the pipeline's L lanes does l / L of those operations a cycle.
//             A product of matrices is vectors of l products along the contraction, one operation each, whose sum a
//             reduction tree makes behind the pipeline and adds to the result's: rows x cols x depth take
//                 busy = ceil(rows cols ceil(depth / l) l / (simd_ops_per_cycle l / L))
//             of what there is (no whole tiles), and latency = simd_latency_cycles + log2(l) + 1 for the tree
//             (github.com/stanford-ppl/pir has it so).
//             Results leave a pipeline one after the other, and are written as they come: those of a page, in a row, so
//             that the last is written when it is out. Of an array they are written when the page's last has drained.
//   numbers   macs_per_cycle by dtype of the operands, simd_ops_per_cycle by dtype of the result, fill, drain and
//             simd_latency from the target. A dtype that the target gives no rate costs one operation a cycle.
//   never     judges; never takes less than one cycle.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compiler/support/dtype.h"
#include "compiler/target/target.h"

namespace rdusim {

// How long a firing keeps its engine, and how long after that its last result is out.
struct FiringTime {
  Cycles busy = 1;
  Cycles latency = 0;
  bool streams = false;  // results come out one after the other while the firing lasts, and are written meanwhile
};

class Pcu {
 public:
  Pcu() = default;
  Pcu(const PcuParameters& p, std::uint32_t native_tile) : p_(p), tile_(std::max(native_tile, 1u)) {}

  // Rows, columns and depth in elements.
  FiringTime systolic(DType operand, std::uint64_t rows, std::uint64_t cols, std::uint64_t depth) const {
    const std::uint64_t macs =
        p_.rows_taken(rows, tile_) * (ceil_div(cols, tile_) * tile_) * (ceil_div(depth, tile_) * tile_);
    const Cycles busy = ceil_div(macs, std::max<std::uint64_t>(p_.macs(operand), 1));
    return {std::max<Cycles>(busy, 1), p_.product_latency(0)};
  }

  // In so many lanes of the SIMD pipeline, of which there is one at least; `accumulator` is the type of the sums.
  FiringTime simd_product(DType accumulator, std::uint64_t rows, std::uint64_t cols, std::uint64_t depth,
                          std::uint32_t lanes) const {
    const std::uint64_t slots = rows * cols * (ceil_div(depth, std::uint64_t{lanes}) * lanes);
    return {std::max<Cycles>(ceil_div(slots, p_.simd_rate(accumulator, lanes)), 1), p_.product_latency(lanes), true};
  }

  // `lanes`: those of the pipeline that are used, 0 for all.
  FiringTime simd(DType result, std::uint64_t elements, std::uint64_t operations, std::uint32_t lanes = 0) const {
    const Cycles busy = ceil_div(elements * std::max<std::uint64_t>(operations, 1), p_.simd_rate(result, lanes));
    return {std::max<Cycles>(busy, 1), p_.simd_latency_cycles, true};
  }

 private:
  PcuParameters p_{};
  std::uint64_t tile_ = 1;
};

}  // namespace rdusim
