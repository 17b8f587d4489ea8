// What can happen in the machine, and who may listen.
//
// The machine reports; it never judges. Everything after it (checkers, report, traces) is a fold over these records. A
// record is plain data, valid only during the call. `at` is the cycle in which it happens; what happens in cycle t is
// seen by other units from t + 1. Records come in rising `at`; those of one cycle come chip by chip, in an order that is
// the same in every run of a program, but that no law may depend on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "compiler/support/ids.h"
#include "compiler/support/summation_tree.h"
#include "compiler/support/units.h"

namespace rdusim {

// An instance of a stage, buffer, edge or semaphore: on site `instance` of its group.
struct StageAt {
  StageId stage;
  std::uint32_t instance = 0;
  friend auto operator<=>(const StageAt&, const StageAt&) = default;
};
struct BufferAt {
  BufferId buffer;
  std::uint32_t instance = 0;
  friend auto operator<=>(const BufferAt&, const BufferAt&) = default;
};

// Interned multiset of contributions (provenance.h). 0: none (an operand, not a partial sum).
using ProvenanceId = std::uint32_t;

// What a page says it is. Coordinates are elements of the *whole* operand, not of a chip's slice; of a tensor of rank
// above 2, rows count through its stack of matrices. A page is one of three things:
//   a block of an operand, as loaded               operand: that operand; no provenance
//   a block of a partial sum                       operand: the output that it belongs to; provenance: what it sums
//   a block of whole values that a stage made of   operand: value_of(stage); no provenance
//   such pages (program.h: makes_values)
struct PageTag {
  OperandId operand;
  std::uint32_t trip = 0;
  std::uint64_t row = 0, col = 0;    // first element
  std::uint32_t rows = 0, cols = 0;  // extents of the page, before any chunk was cut
  std::uint32_t chunk = 0, chunks = 1;
  ProvenanceId provenance = 0;
  friend bool operator==(const PageTag&, const PageTag&) = default;
};

// Whole rows that were cut from a page, as the page of just those rows that a store of whole pages takes them for. Others
// stay as they are.
constexpr PageTag as_page_of_rows(PageTag t) {
  if (t.chunks <= 1) return t;
  const auto rows = whole_rows(chunk_range(std::uint64_t{t.rows} * t.cols, t.chunk, t.chunks), t.cols);
  if (!rows) return t;
  t.row += rows->begin;
  t.rows = static_cast<std::uint32_t>(rows->size());
  t.chunk = 0;
  t.chunks = 1;
  return t;
}

// The numbers of what stages make lie above those of all operands.
inline constexpr std::uint32_t first_value = 0x80000000u;
constexpr OperandId value_of(StageId s) { return OperandId{first_value | s.value}; }
constexpr bool is_value(OperandId o) { return o.value >= first_value; }
constexpr StageId maker_of(OperandId o) { return StageId{o.value & ~first_value}; }  // requires is_value(o)

// Why a stage did not start its next firing when its engine could have; the last condition to be met.
enum class StallCause : std::uint8_t {
  input_starvation,     // no page in an input
  back_pressure,        // no room in an output
  memory,               // AGCU or memory had no room for the request
  network_contention,   // on-chip links or ports taken
  link,                 // inter-chip link taken
  bank_conflict,        // PMU port taken
  engine,               // the engine served another stage
};
inline constexpr std::size_t stall_causes = 7;

struct SectionStarted { Cycle at; SectionId section; };
struct SectionEnded { Cycle at; SectionId section; };

// busy: cycles that the firing occupies its engine from `at`. stall: cycles between the engine's being free for it (or
// the section's start) and `at`, all put down to `cause`.
struct FiringStarted { Cycle at; StageAt stage; std::uint64_t firing; Cycles busy; Cycles stall; StallCause cause; };
struct FiringCompleted { Cycle at; StageAt stage; std::uint64_t firing; };
// A matmul firing takes its operand pages.
struct OperandsJoined { Cycle at; StageAt stage; std::uint64_t firing; PageTag a; PageTag b; };
// A Generic firing adds `added` to what it holds (held.provenance 0 where it holds nothing); the sum is tagged `sum`. One
// that makes values says of each page that its body takes: `added` goes into `sum`, the page that is made; of a row that
// is joined, `held` is what was joined before (no rows: nothing).
struct PartialFolded { Cycle at; StageAt stage; std::uint64_t firing; PageTag held; PageTag added; PageTag sum; };

// Local hand-offs and landing buffers. `page` counts pages of this buffer instance from 0 in the order of pushes.
struct PageReserved { Cycle at; BufferAt buffer; std::uint32_t pages; };
struct PagePushed { Cycle at; BufferAt buffer; std::uint64_t page; Bytes bytes; PageTag tag; };
// consumer: local consumers in the order of the edge's `to`, then crossing edges by id.
struct PagePopped { Cycle at; BufferAt buffer; std::uint32_t consumer; std::uint64_t page; };

// A channel is one pair of instances of a crossing edge: sender instance, number of `to`, receiver instance.
struct ChannelAt {
  EdgeId edge;
  std::uint32_t from = 0;
  std::uint32_t to = 0;        // index into Edge::to
  std::uint32_t receiver = 0;  // instance
  friend auto operator<=>(const ChannelAt&, const ChannelAt&) = default;
};
// Token. page counts pages of the channel.
struct CreditTaken { Cycle at; ChannelAt channel; std::uint64_t page; };     // sender: held -> in flight
struct PageLanded { Cycle at; ChannelAt channel; std::uint64_t page; PageTag tag; };  // receiver: in flight -> held there (every crossing kind)
struct CreditReturned { Cycle at; ChannelAt channel; };                      // receiver: popped, credit on its way
struct CreditArrived { Cycle at; ChannelAt channel; };                       // sender: returning -> held
// Every crossing kind: a page leaves its source buffer for this channel.
struct PageSent { Cycle at; ChannelAt channel; std::uint64_t page; Bytes bytes; };
// Semaphore. value after the change. ready is at the sender's instance, valid at the receiver's.
struct ReadyRaised { Cycle at; ChannelAt channel; std::uint64_t generation; std::uint32_t value; };
struct ReadyConsumed { Cycle at; EdgeId edge; std::uint32_t from; std::uint64_t generation; std::uint32_t value; };
struct ValidRaised { Cycle at; ChannelAt channel; std::uint64_t generation; std::uint32_t value; };
struct ValidConsumed { Cycle at; ChannelAt channel; std::uint64_t generation; std::uint32_t value; };
// Barrier of one sending instance of an edge and all its receivers. member 0 is the sender, 1 + i the receivers in order
// of (to, instance). Two generations a page: before the data moves, and after it has landed.
struct BarrierArrived { Cycle at; EdgeId edge; std::uint32_t from; std::uint32_t member; std::uint64_t generation; };
struct BarrierLeft { Cycle at; EdgeId edge; std::uint32_t from; std::uint32_t member; std::uint64_t generation; };

// Resources. [begin, end) is the time that the resource is taken; at == the cycle of the decision, <= begin.
// broken: what comes is noticed to be broken; the next transfer of this link is the same again.
struct LinkUsed { Cycle at; LinkId link; Cycle begin; Cycle end; Bytes bytes; bool signal; bool broken = false; };
// A burst of one channel. Where nobody asked for bursts (MachineOptions::bursts), what those of a page add up to: `channels`
// of them, from `channel` on and going round, the first taken at begin, the last until end, together for `summed` cycles.
struct MemoryUsed {
  Cycle at; ChipId chip; std::uint8_t space; std::uint32_t channel; Cycle begin; Cycle end; Bytes bytes; bool write;
  std::uint32_t channels = 1;
  Cycles summed = 0;  // of several
  Cycles taken() const { return channels == 1 ? end - begin : summed; }
};

// A Load's page has been read: `tag` says what it is. A Store's page (chunk) has been written to `tensor` at the tag's
// place; values is empty in a timing-only run.
struct PageLoaded { Cycle at; StageAt stage; std::uint64_t firing; TensorId tensor; PageTag tag; };
struct PageStored { Cycle at; StageAt stage; std::uint64_t firing; TensorId tensor; PageTag tag; };

// Launches of a relaunched section that were not carried out, as nothing in them could differ from the one before (machine.h,
// reuse): all its events happen `times` times more, each time `period` cycles later, with counters that go on.
struct Repetition {
  SectionId section;
  std::uint64_t done = 1;   // launches that were carried out, the one that is repeated included
  std::uint64_t times = 0;  // those that were not, all that are left of the section
  Cycles period = 0;
  Cycle start = 0, end = 0;  // of the one that is repeated
};

// One SC_METHOD-independent listener. Overrides what it wants to hear.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // After SectionEnded. Only a machine that may reuse launches says so; what is to be heard event by event has it run all.
  virtual void repeated(const Repetition&) {}
#define RDU_EVENTS(X)                                                                                                   \
  X(SectionStarted) X(SectionEnded) X(FiringStarted) X(FiringCompleted) X(OperandsJoined) X(PartialFolded)              \
  X(PageReserved) X(PagePushed) X(PagePopped) X(CreditTaken) X(PageLanded) X(CreditReturned) X(CreditArrived)           \
  X(PageSent) X(ReadyRaised) X(ReadyConsumed) X(ValidRaised) X(ValidConsumed) X(BarrierArrived) X(BarrierLeft)          \
  X(LinkUsed) X(MemoryUsed) X(PageLoaded) X(PageStored)
#define RDU_DECLARE(Event) virtual void on(const Event&) {}
  RDU_EVENTS(RDU_DECLARE)
#undef RDU_DECLARE
};

// Passes every event to several listeners, in their order.
class FanOut final : public EventSink {
 public:
  explicit FanOut(std::span<EventSink* const> sinks);
#define RDU_DECLARE(Event) void on(const Event&) override;
  RDU_EVENTS(RDU_DECLARE)
#undef RDU_DECLARE

 private:
  static constexpr std::size_t most = 16;
  EventSink* sinks_[most] = {};
  std::size_t count_ = 0;
};

}  // namespace rdusim
