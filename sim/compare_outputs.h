// Are the values right? Outputs against the reference: integers exactly; floats to the bit against the same summation
// trees, and within an error bound of the unsharded operator in a wider type; replicas against each other, to the bit.
//
// RDU7015 value-differs, RDU7016 bound-exceeded, RDU7017 replicas-differ, RDU7060 index-out-of-table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/operands.h"

namespace rdusim {

enum class CheckLevel : std::uint8_t { exact, bound, none };
std::string_view name_of(CheckLevel level);
std::optional<CheckLevel> check_level(std::string_view name);

struct OutputCheck {
  OperandId operand;
  std::string name;
  std::vector<std::int64_t> shape;
  DType dtype = DType::fp32;
  std::string sha256;  // of the whole operand's bytes; empty where there are no values
  CheckLevel checked = CheckLevel::none;
  std::optional<double> max_abs_error;  // against the wider type; 0 where equal (integers)
};

struct Comparison {
  std::vector<OutputCheck> outputs;  // operands with the role output, by id
  Diagnostics diagnostics;
  bool replicas_checked = false;
};

// `images` as the run left them. Without operators, and with `level` none, only replicas are compared. `whole` holds
// the given operands and is used up.
//
// The bound of an element: what fp32 arithmetic may add on the way (evaluate_wide; for a matmul gamma(k + leaves) * sum
// |a b|, with gamma(n) = n u / (1 - n u), u = 2^-24 the unit roundoff of fp32: Higham, Accuracy and Stability of
// Numerical Algorithms, 2nd ed., section 3.1), and half a unit in the last place of the result. Values that overflow the
// result's type, or fp32 on the way, are compared to the bit only. Moves are compared to the bit whatever is asked. A NaN
// equals a NaN.
Result<Comparison> compare_outputs(const SpatialProgram& program, const TensorImages& images, OperandBytes whole,
                                   CheckLevel level);

// In which order the program sums each operator: its trees and the pages that they cut. One plan a region of columns
// where chips sum columns of their own by trees of different form.
struct RegionPlan {
  ReductionPlan plan;
  std::uint64_t col_begin = 0, col_end = 0;  // of the output
};
std::vector<RegionPlan> reduction_plans(const SpatialProgram& program, OperatorId op);

}  // namespace rdusim
