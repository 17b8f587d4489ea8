// What the user asks for: tensors and the operators that join them. No tiles, no sites, no chips.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/ids.h"
#include "compiler/support/result.h"
#include "compiler/workload/fill.h"

namespace rdusim {

enum class TensorRole : std::uint8_t {
  input,
  weight,
  output,
  intermediate,
  state,  // persists between runs and is updated in place (a KV cache)
};

// Row-major; the last extent is the fastest.
struct Operand {
  OperandId id;
  std::string name;
  TensorRole role = TensorRole::intermediate;
  std::vector<std::int64_t> shape;  // of outputs and intermediates: worked out from the operators
  DType dtype = DType::fp32;
  Fill fill;          // ZeroFill for outputs and intermediates
  std::string where;  // position in the workload file, for messages; not part of equality
  // Of one that no operator reads, which chip has it, as of an operator; empty: all have as much of it.
  std::vector<std::int64_t> alone = {};

  friend bool operator==(const Operand& a, const Operand& b) {
    return a.id == b.id && a.name == b.name && a.role == b.role && a.shape == b.shape && a.dtype == b.dtype &&
           a.fill == b.fill && a.alone == b.alone;
  }
};

// What each kind computes. An operand of rank r is a stack (its leading r - 2 extents) of matrices of rows and columns;
// one of rank 1 is a row. Arithmetic is done in accumulator_of(dtype of the operands): every operand element is
// converted to it, every step of a formula below is rounded (floats) or wraps around (integers) on its own and in the
// order written, and only the result is converted to its own dtype. Elementary functions are those of
// support/elementary.h. A sum or maximum over a row starts with the row's first element and takes the others one by one
// in rising column.
//
// Point-wise operators: an operand's extents, from the last backwards, equal the result's or are 1 (and then repeated);
// missing leading extents count as 1. The result's shape is the greatest of each extent.
enum class OperatorKind : std::uint8_t {
  // out(m x n) = in0(m x k) in1(k x n); in0 and in1 of one dtype. `transposed`: in1 is n x k. Stacks: in0's and in1's
  // leading extents are equal, or in1's divide in0's (each matrix of in1 serves in0 / in1 consecutive ones).
  matmul,

  // Point-wise, of two operands of one dtype.
  add,
  subtract,
  multiply,
  divide,
  maximum,
  minimum,
  // Point-wise, of one operand. Floats only, but negate, absolute and relu.
  negate,
  absolute,
  relu,  // max(x, 0)
  exponential,
  square_root,
  reciprocal,  // 1 / x
  tanh,
  erf,
  sigmoid,    // 1 / (1 + exp(-x))
  silu,       // x / (1 + exp(-x))
  gelu,       // (0.5 x) (1 + erf(x sqrt(1/2)))
  gelu_tanh,  // (0.5 x) (1 + tanh(sqrt(2/pi) (x + 0.044715 ((x x) x))))
  cast,       // x, in the result's dtype

  // By row, n columns, of one operand (and of weights of one row). 1/n is rounded once.
  softmax,     // m = max x_j; e_j = exp(x_j - m); e_j / sum e_j
  rms_norm,    // in: x, w. r = 1 / sqrt((sum x_j x_j) (1/n) + epsilon); (x_j r) w_j
  layer_norm,  // in: x, w, b. u = (sum x_j) (1/n); d_j = x_j - u; r = 1 / sqrt((sum d_j d_j) (1/n) + epsilon);
               // (d_j r) w_j + b_j
  // By row, to one column.
  reduce_sum,
  reduce_mean,  // (sum x_j) (1/n)
  reduce_max,
  reduce_min,

  // Rotary embedding of `heads` heads of n / heads = d columns each: in: x(m x n), cos(m x d/2), sin(m x d/2). With x_j
  // and y_j = x_(j + d/2) the two halves of a head: x_j cos_j - y_j sin_j, and y_j cos_j + x_j sin_j.
  rotary,
  // in: q(m x heads d), k(c x kv_heads d), v(c x kv_heads d); out(m x heads d). Head h reads k's and v's head
  // h kv_heads / heads. t_ij = (q_i . k_j) scale, the sum in rising d from zero as in a matmul; where `causal`, only
  // j <= i + c - m take part, and where `window` is not 0, only j > i + c - m - window; p = softmax of those;
  // (sum p_ij v_j) in rising j from zero, p_ij converted to v's dtype first.
  // A fourth operand, of four or six, is a sink for each head, s(heads x 1 x 1; of one head 1 x 1): it takes part in the softmax after the
  // keys, and has no value: m' = max(m, s); e_ij = exp(t_ij - m'); e_ij / (sum e_ij + exp(s - m')).
  // The last two, of five or six, are further columns of each head's queries and keys, q'(m x heads d') and k'(c x
  // kv_heads d'): t_ij = (q_i . k_j + q'_i . k'_j) scale, each product summed by itself.
  attention,

  // Moves, exact to the bit.
  gather,     // in: table(rows x n), indices(m, int32 or int64); out(m x n): row indices_i of the table
  transpose,  // the axes in the order of `axes`
  reshape,    // to the result's shape, row-major order kept
  slice,      // `begin`, `end`, one each an axis
  concat,     // of one or more operands along axes[0]
  // in: a state (rows x n, or a stack of such), and rows of the same stack that take the place of its rows from begin[0]
  // on; out: the state as it is then. It has the state's storage (storage_of): the state is updated in place, and nobody
  // but the append reads it as it was before.
  append,
};

// What a kind needs to know beside its operands; what it does not name stays as it is here.
struct OperatorAttributes {
  bool transposed = false;               // matmul
  double epsilon = 0;                    // rms_norm, layer_norm; rounded to the arithmetic's type
  std::uint32_t heads = 0;               // rotary, attention
  std::uint32_t kv_heads = 0;            // attention; divides heads
  double scale = 1;                      // attention
  bool causal = false;                   // attention
  std::int64_t window = 0;               // attention; 0: none
  std::vector<std::int64_t> axes;        // transpose, concat
  std::vector<std::int64_t> begin, end;  // slice; append: begin, of one number
  // matmul: where chips sum it up, or have its columns, each keeps rows of its own of the result. gather: each looks up
  // rows of its own. No value depends on it.
  bool scattered = false;
  // Of all but an append: [i, n] says that of N chips number floor(i N / n) alone carries it out, and sends its result to
  // those others that read it; empty: all do. No value depends on it. Not with `scattered`.
  std::vector<std::int64_t> alone;
  friend bool operator==(const OperatorAttributes&, const OperatorAttributes&) = default;
};

struct Operator {
  OperatorId id;
  std::string name;  // given, or "matmul0"
  OperatorKind kind = OperatorKind::matmul;
  std::vector<OperandId> in;
  OperandId out;
  OperatorAttributes attributes;
  std::string where;  // as above

  friend bool operator==(const Operator& a, const Operator& b) {
    return a.id == b.id && a.name == b.name && a.kind == b.kind && a.in == b.in && a.out == b.out &&
           a.attributes == b.attributes;
  }
};

// Ranges of the list above.
constexpr bool is_binary_point_wise(OperatorKind k) {
  return k >= OperatorKind::add && k <= OperatorKind::minimum;
}
constexpr bool is_unary_point_wise(OperatorKind k) {
  return k >= OperatorKind::negate && k <= OperatorKind::cast;
}
constexpr bool is_point_wise(OperatorKind k) {
  return is_binary_point_wise(k) || is_unary_point_wise(k);
}
constexpr bool is_row_wise(OperatorKind k) {
  return k >= OperatorKind::softmax && k <= OperatorKind::reduce_min;
}

// The two modes of a compute unit.
enum class UnitMode : std::uint8_t { systolic, simd };

// [schedule.OP]: what the user pins of what the compiler would choose. Absent: the compiler's choice.
struct SchedulePin {
  OperatorId op;
  std::optional<std::uint32_t> sites;     // at most so many a chip
  std::optional<std::uint32_t> unroll_m;  // sites along each loop
  std::optional<std::uint32_t> unroll_n;
  std::optional<std::uint32_t> unroll_k;
  std::optional<std::uint32_t> block_m;  // tiles of an output block
  std::optional<std::uint32_t> block_n;
  std::optional<std::uint32_t> page_k;        // tiles of the contraction a page
  std::optional<std::uint32_t> depth;         // pages of the operands' buffers
  std::optional<UnitMode> unit;               // of a matmul
  std::optional<std::uint32_t> lanes;         // of a SIMD unit's, that its stages use
  std::optional<std::uint32_t> stream_lanes;  // elements a cycle that its loads and stores move at most
  std::optional<std::uint32_t> pmus;          // memory units that the buffers of each of its sites are spread over
  bool fold_apart = false;  // of a matmul: what its sites along the contraction sum has sites of its own
  friend bool operator==(const SchedulePin&, const SchedulePin&) = default;
};

struct OperatorGraph {
  std::string name;
  std::vector<Operand> operands;    // ids by position in the workload file
  std::vector<Operator> operators;  // in an order in which operands are written before they are read
  std::vector<SchedulePin> pins;
  std::uint64_t tokens = 0;  // that a run makes, where it is a step of decoding: one a sequence
  // Data that the operators were made for: "the experts of 64 tokens in FILE". Empty: they compute the model whatever the
  // inputs; else what is proved of a program is proved of such inputs only.
  std::string assumes;
  friend bool operator==(const OperatorGraph&, const OperatorGraph&) = default;

  const Operand& operand(OperandId id) const { return operands[id.value]; }
};

// What is pinned of an operator; of one that has no table, nothing.
SchedulePin pin_of(const OperatorGraph& graph, OperatorId op);

// Of `chips` chips the one that carries out, or has, what is `alone` = [i, n] (empty: nothing): floor(i chips / n).
std::optional<ChipId> home_of(const std::vector<std::int64_t>& alone, std::uint32_t chips);
// Whether it is [i, n] with 0 <= i < n <= 2^20, or empty.
bool is_part(const std::vector<std::int64_t>& alone);

// The operand whose memory holds `id`: of an append's result that of its state, else `id` itself. Requires operators in
// an order in which operands are written before they are read.
OperandId storage_of(const OperatorGraph& graph, OperandId id);

std::string_view name_of(TensorRole role);
std::string_view name_of(OperatorKind kind);
std::string_view name_of(UnitMode mode);

// Elements of a shape; nothing where it overflows int64 or an extent is below 1.
std::optional<std::int64_t> element_count(const std::vector<std::int64_t>& shape);

}  // namespace rdusim
