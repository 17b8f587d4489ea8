// What each kind of operator takes: how many operands, of which dtypes, with which attributes, and the dtypes that it
// gives. The kinds themselves are defined in operator_graph.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "compiler/support/dtype.h"
#include "compiler/workload/operator_graph.h"

namespace rdusim {

inline constexpr auto all_operator_kinds = [] {
  std::array<OperatorKind, static_cast<std::size_t>(OperatorKind::append) + 1> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<OperatorKind>(i);
  return all;
}();

// The members of OperatorAttributes, by their names.
enum class Attribute : std::uint8_t {
  transposed,
  epsilon,
  heads,
  kv_heads,
  scale,
  causal,
  window,
  axes,
  begin,
  end,
  scattered,
  alone
};
inline constexpr std::array all_attributes = {Attribute::transposed, Attribute::epsilon,   Attribute::heads,
                                              Attribute::kv_heads,   Attribute::scale,     Attribute::causal,
                                              Attribute::window,     Attribute::axes,      Attribute::begin,
                                              Attribute::end,        Attribute::scattered, Attribute::alone};
std::string_view name_of(Attribute attribute);

// Whether a kind knows the attribute; one that it does not know keeps its default.
bool takes(OperatorKind kind, Attribute attribute);
bool is_default(const OperatorAttributes& attributes, Attribute attribute);

struct OperatorTraits {
  std::uint32_t least_operands = 1;
  std::uint32_t most_operands = 1;
  bool integers = false;  // operands may be integers; all kinds take floats
  std::string_view form;  // of its operands, for messages: "in0(m x k) and in1(k x n)"
};
OperatorTraits traits_of(OperatorKind kind);

// Of an attention with so many operands: the place of its sinks, where it has any, and of its further queries, behind
// which its further keys stand.
constexpr std::optional<std::size_t> sinks_at(std::size_t operands) {
  return operands == 4 || operands == 6 ? std::optional<std::size_t>(3) : std::nullopt;
}
constexpr std::optional<std::size_t> further_at(std::size_t operands) {
  return operands >= 5 ? std::optional(operands - 2) : std::nullopt;
}
// Whether its operand `in` has a row for each key: keys, values and further keys.
constexpr bool is_of_keys(std::size_t in, std::size_t operands) {
  return in == 1 || in == 2 || (operands >= 5 && in + 1 == operands);
}

// Moves keep every bit, and so the dtype of their (first) operand.
constexpr bool is_move(OperatorKind kind) {
  return kind >= OperatorKind::gather && kind <= OperatorKind::append;
}

// The dtypes that the result may have, given that of the (first) operand; the first is what it has where the user does
// not say. A cast gives any, and has to be told.
std::span<const DType> result_dtypes(OperatorKind kind, DType operand);

}  // namespace rdusim
