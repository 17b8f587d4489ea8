// The names of the program's enumerators in its files, for both directions. They are the C++ spelling, and for dtypes
// and tensor roles what workload files use.
//
// Each switch names all enumerators and has no default, so that the compiler warns of one that was added and forgotten.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim::program_file {

// Empty for what is no enumerator.
constexpr std::string_view enum_name(DType e) {
  switch (e) {
    case DType::int8:
      return "int8";
    case DType::int32:
      return "int32";
    case DType::int64:
      return "int64";
    case DType::fp8_e4m3:
      return "fp8_e4m3";
    case DType::fp8_e5m2:
      return "fp8_e5m2";
    case DType::bf16:
      return "bf16";
    case DType::fp32:
      return "fp32";
  }
  return {};
}

constexpr std::string_view enum_name(TensorRole e) {
  switch (e) {
    case TensorRole::input:
      return "input";
    case TensorRole::weight:
      return "weight";
    case TensorRole::output:
      return "output";
    case TensorRole::intermediate:
      return "intermediate";
    case TensorRole::state:
      return "state";
  }
  return {};
}

constexpr std::string_view enum_name(OperatorKind e) {
  switch (e) {
    case OperatorKind::matmul:
      return "matmul";
  }
  return {};
}

constexpr std::string_view enum_name(MemorySpace e) {
  switch (e) {
    case MemorySpace::sram:
      return "sram";
    case MemorySpace::hbm:
      return "hbm";
    case MemorySpace::ddr:
      return "ddr";
  }
  return {};
}

constexpr std::string_view enum_name(Layout e) {
  switch (e) {
    case Layout::row_major:
      return "row_major";
  }
  return {};
}

constexpr std::string_view enum_name(ExprOp e) {
  switch (e) {
    case ExprOp::operand:
      return "operand";
    case ExprOp::accumulator:
      return "accumulator";
    case ExprOp::constant:
      return "constant";
    case ExprOp::add:
      return "add";
    case ExprOp::subtract:
      return "subtract";
    case ExprOp::multiply:
      return "multiply";
    case ExprOp::maximum:
      return "maximum";
    case ExprOp::minimum:
      return "minimum";
    case ExprOp::negate:
      return "negate";
  }
  return {};
}

constexpr std::string_view enum_name(IteratorKind e) {
  switch (e) {
    case IteratorKind::parallel:
      return "parallel";
    case IteratorKind::reduction:
      return "reduction";
  }
  return {};
}

constexpr std::string_view enum_name(StageRole e) {
  switch (e) {
    case StageRole::compute:
      return "compute";
    case StageRole::movement:
      return "movement";
  }
  return {};
}

constexpr std::string_view enum_name(Direction e) {
  switch (e) {
    case Direction::input:
      return "input";
    case Direction::output:
      return "output";
  }
  return {};
}

constexpr std::string_view enum_name(BufferKind e) {
  switch (e) {
    case BufferKind::fifo:
      return "fifo";
    case BufferKind::interm:
      return "interm";
  }
  return {};
}

constexpr std::string_view enum_name(Handshake e) {
  switch (e) {
    case Handshake::fifo:
      return "fifo";
    case Handshake::valid_ready:
      return "valid_ready";
    case Handshake::circular_buffer:
      return "circular_buffer";
    case Handshake::token:
      return "token";
    case Handshake::semaphore:
      return "semaphore";
    case Handshake::barrier:
      return "barrier";
  }
  return {};
}

constexpr std::string_view enum_name(PageMapKind e) {
  switch (e) {
    case PageMapKind::one_to_one:
      return "one_to_one";
    case PageMapKind::multicast:
      return "multicast";
    case PageMapKind::scatter:
      return "scatter";
    case PageMapKind::gather:
      return "gather";
  }
  return {};
}

constexpr std::string_view enum_name(CollectiveKind e) {
  switch (e) {
    case CollectiveKind::reduce:
      return "reduce";
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::all_to_all:
      return "all_to_all";
  }
  return {};
}

constexpr std::string_view enum_name(CollectiveAlgorithm e) {
  switch (e) {
    case CollectiveAlgorithm::automatic:
      return "automatic";
    case CollectiveAlgorithm::through_one:
      return "through_one";
    case CollectiveAlgorithm::direct:
      return "direct";
    case CollectiveAlgorithm::ring:
      return "ring";
  }
  return {};
}

constexpr std::string_view enum_name(ShardKind e) {
  switch (e) {
    case ShardKind::none:
      return "none";
    case ShardKind::row:
      return "row";
    case ShardKind::column:
      return "column";
  }
  return {};
}

constexpr std::string_view enum_name(ObligationKind e) {
  switch (e) {
    case ObligationKind::counting_balance:
      return "counting_balance";
    case ObligationKind::buffer_depth:
      return "buffer_depth";
    case ObligationKind::deadlock_freedom:
      return "deadlock_freedom";
    case ObligationKind::handshake_locality:
      return "handshake_locality";
    case ObligationKind::counter_range:
      return "counter_range";
    case ObligationKind::reduction_completeness:
      return "reduction_completeness";
    case ObligationKind::write_coverage:
      return "write_coverage";
    case ObligationKind::collective_agreement:
      return "collective_agreement";
    case ObligationKind::memory_fit:
      return "memory_fit";
    case ObligationKind::network_progress:
      return "network_progress";
    case ObligationKind::cycle_bounds:
      return "cycle_bounds";
  }
  return {};
}

constexpr std::string_view enum_name(ProofStatus e) {
  switch (e) {
    case ProofStatus::proved:
      return "proved";
    case ProofStatus::refuted:
      return "refuted";
    case ProofStatus::unchecked:
      return "unchecked";
  }
  return {};
}

constexpr std::string_view enum_name(ProofScope e) {
  switch (e) {
    case ProofScope::every_schedule:
      return "every_schedule";
    case ProofScope::this_input_only:
      return "this_input_only";
  }
  return {};
}

// Enumerators of E: they start at 0 and have no gap.
template <class E>
constexpr std::size_t enum_count() {
  std::size_t n = 0;
  while (n < 256 && !enum_name(static_cast<E>(n)).empty()) ++n;
  return n;
}

template <class E>
constexpr std::optional<E> enum_named(std::string_view name) {
  for (std::size_t i = 0; i < enum_count<E>(); ++i)
    if (enum_name(static_cast<E>(i)) == name) return static_cast<E>(i);
  return std::nullopt;
}

// In the order of their values.
template <class E>
std::vector<std::string_view> enum_names() {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < enum_count<E>(); ++i) names.push_back(enum_name(static_cast<E>(i)));
  return names;
}

static_assert(enum_count<ObligationKind>() == obligation_kinds);
static_assert(enum_count<DType>() == all_dtypes.size());

}  // namespace rdusim::program_file
