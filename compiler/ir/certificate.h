// What the compiler proved of a program, in a form that can be proved again and held against a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/support/ids.h"
#include "compiler/support/units.h"

namespace rdusim {

enum class ObligationKind : std::uint8_t {
  counting_balance,
  buffer_depth,
  deadlock_freedom,
  handshake_locality,
  counter_range,
  reduction_completeness,
  write_coverage,
  collective_agreement,
  memory_fit,
  network_progress,
  cycle_bounds,
};
inline constexpr std::size_t obligation_kinds = 11;

enum class ProofStatus : std::uint8_t { proved, refuted, unchecked };
enum class ProofScope : std::uint8_t { every_schedule, this_input_only };

// One for each kind, always, in the order of the kinds.
struct Obligation {
  ObligationKind kind{};
  ProofStatus status = ProofStatus::unchecked;
  ProofScope scope = ProofScope::every_schedule;
  std::string reason;  // refuted: the witness; unchecked: why; else empty
  friend bool operator==(const Obligation&, const Obligation&) = default;
};

// Of one instance, over one run of the program (all trips).
struct BufferClaim {
  BufferId buffer;
  std::uint64_t reserved = 0;
  std::uint64_t pushed = 0;
  std::vector<std::uint64_t>
      popped;  // by consumer: local consumers in the order of the edge, then crossing edges by id
  std::uint64_t depth = 0;
  std::uint64_t least_depth = 0;  // d(b): without deadlock, all other depths as given; 0: not worked out
  friend bool operator==(const BufferClaim&, const BufferClaim&) = default;
};

// Of one crossing edge, each pair of instances; or of the pages in a circular buffer, where the machine says how wide the
// counters of its pages are: they wrap around, and never differ by more than `greatest`.
struct CounterClaim {
  EdgeId edge;
  std::uint64_t initial = 0;
  std::uint64_t greatest = 0;
  std::uint32_t width_bits = 0;
  friend bool operator==(const CounterClaim&, const CounterClaim&) = default;
};

// Of one stored output (slice): its elements are written once each; each is the sum of `contributions` partial sums
// (0: not worked out).
struct OutputClaim {
  TensorId tensor;
  std::uint64_t elements = 0;
  std::uint32_t replicas = 1;
  std::uint64_t contributions = 1;
  friend bool operator==(const OutputClaim&, const OutputClaim&) = default;
};

struct MemoryClaim {
  Bytes busiest_site_bytes = 0;
  Bytes site_capacity_bytes = 0;
  Bytes busiest_chip_bytes = 0;  // HBM
  Bytes chip_capacity_bytes = 0;
  friend bool operator==(const MemoryClaim&, const MemoryClaim&) = default;
};

// Of one section whose rates are static: no run of it takes fewer cycles than bound(). Its firings are looked at part by
// part (clusters.h: the part of a trip that repeats), each as short as the machine could make it. Along a circle of them
// each waits for the one before: the next firing of a stage for the last, who takes a page for who pushed it, and, along
// the reverse arc, who wants room in a full buffer for who takes the page that is as many pages before as the buffer is
// deep. So `rounds` times round the circle, the way to it and the way from it to the end follow each other.
// cycles / parts is the mean of the circle: what a part of the run takes at least in the long run.
struct CircleClaim {
  SectionId section;
  std::vector<StageId> stages;    // of the circle, each once, in the order in which they come first
  std::vector<BufferId> buffers;  // through whose pages or room they wait; rising
  Cycles cycles = 0;              // once round; 0, as rounds is: no circle, and these are the stages of the way
  std::uint64_t parts = 1;        // of the section's run that once round spans
  std::uint64_t rounds = 0;       // whole ones that a run makes
  Cycles way = 0;                 // before the first of them and after the last
  // Nothing where that does not fit.
  std::optional<Cycles> bound() const {
    Cycles all = 0;
    if (__builtin_mul_overflow(cycles, rounds, &all) || __builtin_add_overflow(all, way, &all)) return std::nullopt;
    return all;
  }
  friend bool operator==(const CircleClaim&, const CircleClaim&) = default;
};

struct Certificate {
  std::vector<Obligation> obligations;
  std::vector<BufferClaim> buffers;    // by buffer id
  std::vector<CounterClaim> counters;  // by edge, rising
  std::vector<OutputClaim> outputs;    // stored tensors, rising
  std::vector<CircleClaim> circles;    // at most one a section, rising
  MemoryClaim memory;
  std::uint64_t local_edges = 0;
  std::uint64_t crossing_edges = 0;
  Cycles lower_bound_cycles = 0;  // no run can be faster
  Cycles predicted_cycles = 0;    // the cost model's estimate; not a bound
  friend bool operator==(const Certificate&, const Certificate&) = default;
};

}  // namespace rdusim
