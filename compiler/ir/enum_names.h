// The names of the program's enumerators, for both directions: as files and workloads spell them, and as people read
// them where that differs (name_of() of print.h).
//
// Each switch names all enumerators and has no default, so that the compiler warns of one that was added and forgotten.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/workload/operator_names.h"

namespace rdusim {

struct EnumName {
  std::string_view file;   // the C++ spelling
  std::string_view shown;  // in text for people

  constexpr EnumName() = default;
  constexpr EnumName(const char* name) : file(name), shown(name) {}
  constexpr EnumName(std::string_view name) : file(name), shown(name) {}
  constexpr EnumName(const char* in_files, const char* in_text) : file(in_files), shown(in_text) {}
};

// Empty for what is no enumerator.
constexpr EnumName spelling(DType e) {
  return spelled(e);
}

constexpr EnumName spelling(TensorRole e) {
  return spelled(e);
}

constexpr EnumName spelling(OperatorKind e) {
  return spelled(e);
}

constexpr EnumName spelling(UnitMode e) {
  return spelled(e);
}

constexpr EnumName spelling(MemorySpace e) {
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

constexpr EnumName spelling(Layout e) {
  switch (e) {
    case Layout::row_major:
      return "row_major";
  }
  return {};
}

constexpr EnumName spelling(ExprOp e) {
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
    case ExprOp::divide:
      return "divide";
    case ExprOp::exponential:
      return "exponential";
    case ExprOp::square_root:
      return "square_root";
    case ExprOp::tanh:
      return "tanh";
    case ExprOp::erf:
      return "erf";
    case ExprOp::row:
      return "row";
    case ExprOp::column:
      return "column";
    case ExprOp::mask:
      return "mask";
  }
  return {};
}

constexpr EnumName spelling(IteratorKind e) {
  switch (e) {
    case IteratorKind::parallel:
      return "parallel";
    case IteratorKind::reduction:
      return "reduction";
  }
  return {};
}

constexpr EnumName spelling(StageRole e) {
  switch (e) {
    case StageRole::compute:
      return "compute";
    case StageRole::movement:
      return "movement";
  }
  return {};
}

constexpr EnumName spelling(Direction e) {
  switch (e) {
    case Direction::input:
      return "input";
    case Direction::output:
      return "output";
  }
  return {};
}

constexpr EnumName spelling(BufferKind e) {
  switch (e) {
    case BufferKind::fifo:
      return "fifo";
    case BufferKind::interm:
      return "interm";
  }
  return {};
}

constexpr EnumName spelling(Handshake e) {
  switch (e) {
    case Handshake::fifo:
      return {"fifo", "Fifo"};
    case Handshake::valid_ready:
      return {"valid_ready", "ValidReady"};
    case Handshake::circular_buffer:
      return {"circular_buffer", "CircularBuffer"};
    case Handshake::token:
      return {"token", "Token"};
    case Handshake::semaphore:
      return {"semaphore", "Semaphore"};
    case Handshake::barrier:
      return {"barrier", "Barrier"};
  }
  return {};
}

constexpr EnumName spelling(PageMapKind e) {
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

constexpr EnumName spelling(CollectiveKind e) {
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

constexpr EnumName spelling(CollectiveAlgorithm e) {
  switch (e) {
    case CollectiveAlgorithm::automatic:
      return {"automatic", "auto"};
    case CollectiveAlgorithm::through_one:
      return "through_one";
    case CollectiveAlgorithm::direct:
      return "direct";
    case CollectiveAlgorithm::ring:
      return "ring";
    case CollectiveAlgorithm::halving_doubling:
      return "halving_doubling";
    case CollectiveAlgorithm::tree:
      return "tree";
    case CollectiveAlgorithm::hierarchical:
      return "hierarchical";
  }
  return {};
}

constexpr EnumName spelling(ShardKind e) {
  switch (e) {
    case ShardKind::none:
      return "none";
    case ShardKind::row:
      return "row";
    case ShardKind::column:
      return "column";
    case ShardKind::tensor:
      return "tensor";
  }
  return {};
}

constexpr EnumName spelling(ObligationKind e) {
  switch (e) {
    case ObligationKind::counting_balance:
      return {"counting_balance", "counting balance"};
    case ObligationKind::buffer_depth:
      return {"buffer_depth", "buffer depth"};
    case ObligationKind::deadlock_freedom:
      return {"deadlock_freedom", "deadlock freedom"};
    case ObligationKind::handshake_locality:
      return {"handshake_locality", "handshake locality"};
    case ObligationKind::counter_range:
      return {"counter_range", "token and semaphore range"};
    case ObligationKind::reduction_completeness:
      return {"reduction_completeness", "reduction completeness"};
    case ObligationKind::write_coverage:
      return {"write_coverage", "write coverage"};
    case ObligationKind::collective_agreement:
      return {"collective_agreement", "collective agreement"};
    case ObligationKind::memory_fit:
      return {"memory_fit", "memory fit"};
    case ObligationKind::network_progress:
      return {"network_progress", "network progress"};
    case ObligationKind::cycle_bounds:
      return {"cycle_bounds", "cycle bounds"};
  }
  return {};
}

constexpr EnumName spelling(ProofStatus e) {
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

constexpr EnumName spelling(ProofScope e) {
  switch (e) {
    case ProofScope::every_schedule:
      return {"every_schedule", "every schedule"};
    case ProofScope::this_input_only:
      return {"this_input_only", "this input only"};
  }
  return {};
}

// As in files; empty for what is no enumerator.
template <class E>
constexpr std::string_view enum_name(E e) {
  return spelling(e).file;
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

}  // namespace rdusim
