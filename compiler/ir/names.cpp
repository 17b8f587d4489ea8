#include <fmt/format.h>

#include "compiler/ir/print.h"

namespace rdusim {

std::string_view name_of(Handshake h) {
  switch (h) {
    case Handshake::fifo:
      return "Fifo";
    case Handshake::valid_ready:
      return "ValidReady";
    case Handshake::circular_buffer:
      return "CircularBuffer";
    case Handshake::token:
      return "Token";
    case Handshake::semaphore:
      return "Semaphore";
    case Handshake::barrier:
      return "Barrier";
  }
  return "?";
}

std::string_view name_of(CollectiveKind k) {
  switch (k) {
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
  return "?";
}

std::string_view name_of(CollectiveAlgorithm a) {
  switch (a) {
    case CollectiveAlgorithm::automatic:
      return "auto";
    case CollectiveAlgorithm::through_one:
      return "through_one";
    case CollectiveAlgorithm::direct:
      return "direct";
    case CollectiveAlgorithm::ring:
      return "ring";
  }
  return "?";
}

std::string_view name_of(ShardKind k) {
  switch (k) {
    case ShardKind::none:
      return "none";
    case ShardKind::row:
      return "row";
    case ShardKind::column:
      return "column";
  }
  return "?";
}

std::string_view name_of(MemorySpace s) {
  switch (s) {
    case MemorySpace::sram:
      return "sram";
    case MemorySpace::hbm:
      return "hbm";
    case MemorySpace::ddr:
      return "ddr";
  }
  return "?";
}

std::string_view name_of(ObligationKind k) {
  switch (k) {
    case ObligationKind::counting_balance:
      return "counting balance";
    case ObligationKind::buffer_depth:
      return "buffer depth";
    case ObligationKind::deadlock_freedom:
      return "deadlock freedom";
    case ObligationKind::handshake_locality:
      return "handshake locality";
    case ObligationKind::counter_range:
      return "token and semaphore range";
    case ObligationKind::reduction_completeness:
      return "reduction completeness";
    case ObligationKind::write_coverage:
      return "write coverage";
    case ObligationKind::collective_agreement:
      return "collective agreement";
    case ObligationKind::memory_fit:
      return "memory fit";
    case ObligationKind::network_progress:
      return "network progress";
    case ObligationKind::cycle_bounds:
      return "cycle bounds";
  }
  return "?";
}

std::string_view name_of(ProofStatus s) {
  switch (s) {
    case ProofStatus::proved:
      return "proved";
    case ProofStatus::refuted:
      return "refuted";
    case ProofStatus::unchecked:
      return "unchecked";
  }
  return "?";
}

std::string_view kind_name(const Stage& s) {
  struct Visitor {
    std::string_view operator()(const Load&) const { return "Load"; }
    std::string_view operator()(const Store&) const { return "Store"; }
    std::string_view operator()(const MatmulTiles&) const { return "MatmulTiles"; }
    std::string_view operator()(const Generic&) const { return "Generic"; }
    std::string_view operator()(const Recv&) const { return "Recv"; }
    std::string_view operator()(const CollectiveStage&) const { return "CollectiveStage"; }
  };
  return std::visit(Visitor{}, s.kind);
}

std::string to_string(const Site& s) {
  return fmt::format("chip{}.site({},{})", s.chip.value, s.at.x, s.at.y);
}

}  // namespace rdusim
