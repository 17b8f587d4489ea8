// The state of one chip while it runs, and what elaboration prepared for it: flat arrays of plain structs that refer to
// each other by index. What is touched at every event stays near (machine.md, "What makes it fast").
//
// Indices are local to the chip unless a comment says otherwise. Instances of a stage (buffer) have consecutive
// indices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/ir/program.h"
#include "models/events/events.h"
#include "models/units/agcu.h"
#include "models/units/chip_faults.h"
#include "models/units/chip_link.h"
#include "models/units/event_queue.h"
#include "models/units/memory.h"
#include "models/units/network.h"
#include "models/units/page_header.h"
#include "models/units/pcu.h"
#include "models/units/pmu.h"
#include "models/values/kernels.h"

namespace rdusim {

// ---- what all instances of a stage share
// --------------------------------------------------------------------------------

// A Cyclic, laid out for look-up by firing. Constant ones, the most, cost nothing.
template <class T>
class Phases {
 public:
  Phases() = default;
  explicit Phases(const Cyclic<T>& c) {
    auto table = std::make_unique<Table>();
    for (const auto& run : c) {
      table->length += run.repeat;
      if (run.repeat == 0) continue;
      if (!table->value.empty() && table->value.back() == run.value) {
        table->end.back() = table->length;
      } else {
        table->value.push_back(run.value);
        table->end.push_back(table->length);
      }
    }
    if (!table->value.empty()) constant_ = table->value.front();
    if (table->value.size() > 1) table_ = std::move(table);
  }
  const T& at(std::uint64_t firing) const {
    if (!table_) return constant_;
    const Table& t = *table_;
    firing %= t.length;
    std::size_t i = 0;
    while (firing >= t.end[i]) ++i;
    return t.value[i];
  }
  std::uint64_t length() const { return table_ ? table_->length : 1; }
  // Sum of the values of firings [0, firings), for numbers.
  std::uint64_t total(std::uint64_t firings) const {
    if (!table_) return std::uint64_t{constant_} * firings;
    const Table& t = *table_;
    std::uint64_t cycle = 0, part = 0, begin = 0;
    const std::uint64_t rest = firings % t.length;
    for (std::size_t i = 0; i < t.value.size(); ++i) {
      cycle += (t.end[i] - begin) * std::uint64_t{t.value[i]};
      if (begin < rest) part += (std::min(t.end[i], rest) - begin) * std::uint64_t{t.value[i]};
      begin = t.end[i];
    }
    return firings / t.length * cycle + part;
  }

 private:
  struct Table {
    std::vector<std::uint64_t> end;  // one past the last phase of each run
    std::vector<T> value;
    std::uint64_t length = 0;
  };
  T constant_{};
  std::unique_ptr<const Table> table_;
};

struct PortSpec {
  Direction direction = Direction::input;
  BufferId buffer;
  DType dtype = DType::fp32;
  Phases<std::uint32_t> need, pop, reserve, push;
  Phases<Chunk> chunk;
};

// What a firing of some phase does with one of its ports; ports that it leaves alone are not listed.
struct PortUse {
  std::uint32_t port = 0;
  Direction direction = Direction::input;
  std::uint32_t need = 0, pop = 0, reserve = 0, push = 0;
};

enum class StageForm : std::uint8_t { load, store, matmul, generic, receive, none };

struct StageSpec {
  const Stage* stage = nullptr;
  StageForm form = StageForm::none;
  std::uint64_t firings = 0;  // a trip
  std::uint64_t total = 0;    // a launch: all trips, or one of a relaunched section
  std::vector<PortSpec> ports;
  // The ports that each phase uses, [first_use[phase], first_use[phase + 1]) of uses. No table where the cycle of all
  // ports together is longer than is worth keeping.
  std::uint64_t cycle = 1;
  std::vector<std::uint32_t> first_use;
  std::vector<PortUse> uses;
  OperandId operand;  // matmul: whose partial sums it makes; load, store: of the tensor; generic: value_of(stage)
  const Load* load = nullptr;
  const Store* store = nullptr;
  bool to_host = false;  // store: into a register of the host's
  const MatmulTiles* matmul = nullptr;
  const Generic* generic = nullptr;
  // load, store: what a trip works on. `tensor` is the first trip's, which stands for all but where elements lie.
  const Tensor* tensor = nullptr;
  struct Held {
    const Tensor* tensor = nullptr;
    Bytes address = 0;
  };
  std::vector<Held> tensors;  // by trip; one where it is the same in all
  const Held& held(std::uint64_t firing) const { return tensors[tensors.size() == 1 ? 0 : firing / firings]; }
  std::uint32_t in_a = 0, in_b = 0, out = 0;  // matmul: its ports
  bool by_columns = false;                    // load: its tensor lies in memory column of pages by column of pages
  std::uint64_t b_rows = 1;                   // matmul: rows of the matrices that b's pages are cut from
  Phases<std::uint32_t> body;                 // generic: index into bodies
  std::vector<const Expr*> bodies;
  bool keeps = false;           // generic: some body uses the accumulator, or rows are joined
  bool values = false;          // generic: makes_values
  std::uint64_t row_pages = 1;  // generic: phases of its bodies
  std::vector<Spread> reach;    // generic, by port: what an input's page has of the rows and columns of the result
  std::vector<std::uint64_t> flat_rows;  // generic that works by row, by port: rows of the whole stack it is cut from
  std::uint64_t matrix_rows = 1;         // generic that works by row: rows of a matrix that its result is cut from
  Bytes accumulator_bytes = 0;
};

// ---- instances
// ----------------------------------------------------------------------------------------------------------

// What is asked whenever a stage might fire is the first cache line.
struct alignas(64) StageState {
  std::uint64_t next = 0;   // firings started
  std::uint64_t total = 0;  // firings of the section, up to the end of its present launch
  std::uint64_t read = 0;   // firings that are done with their inputs
  std::uint64_t completed = 0;
  std::uint32_t spec = 0;  // global: stage id
  std::uint32_t instance = 0;
  std::uint32_t first_port = 0;
  std::uint32_t engine = 0;
  std::uint32_t actor = 0;   // itself, or the first member of its multicast set, which fires for all
  std::uint32_t detail = 0;  // index into the array of its form
  StageForm form = StageForm::none;
  StallCause cause = StallCause::input_starvation;
  bool active = false;  // its section runs
  bool touched = false;
  bool waits_for_engine = false;  // is in its list
  bool held = false;              // a load: what its next firing reads has not been written
  bool faulty = false;
  // once it fires
  std::uint64_t transited = 0;  // firings whose page is on its last leg
  Cycle since = 0;              // end of its own last firing, or start of the section
  Cycle last_transit = 0;
  Cycle last_complete = 0;
  std::uint32_t pmu = 0;           // of a load: where its pages lie; else the site's own
  std::uint32_t next_waiting = 0;  // for the engine: stage + 1
};

struct PortState {
  std::uint64_t assigned = 0;   // output: pages that firings which started will push
  std::uint64_t transited = 0;  // output: of these, pages on their last leg
  std::uint32_t buffer = 0;
  std::uint32_t consumer = 0;  // input: index into consumers
  bool bound = false;          // there is such a buffer on the site
};

// What every hand-off touches is the first cache line.
struct alignas(64) BufferState {
  std::uint64_t reserved = 0, pushed = 0;
  std::uint64_t popped = 0;  // by the slowest consumer
  std::uint64_t depth = 0;
  std::uint32_t headers = 0;  // index of slot 0's header
  std::uint32_t slots = 1;
  std::uint32_t first_consumer = 0;
  std::uint32_t consumers = 0;
  std::uint32_t producer = 0;  // stage
  std::uint32_t id = 0, instance = 0;
  bool produced = false;  // it has a producer
  bool landing = false;   // the producer is a Recv
  bool faulty = false;    // fault is not 0
  // values
  std::size_t values = 0;            // offset of slot 0 in the pool
  std::size_t staged_values = 0;     // of a faulty buffer: where producers write; else = values
  std::uint32_t staged_headers = 0;  // likewise
  std::uint32_t slot_bytes = 0;
  std::uint32_t initial = 0;
  std::uint32_t pmu = 0;
  std::uint32_t fault = 0;  // index + 1 into buffer_faults; 0: obeys
};

struct ConsumerState {
  std::uint64_t claimed = 0, popped = 0;
  std::uint32_t actor = 0;   // stage or sender
  std::uint32_t number = 0;  // PagePopped::consumer
  bool sender = false;
};

struct EngineState {
  Cycle free_at = 0;
  std::uint32_t first_waiting = 0;  // stage + 1, in a list: stages that could start but for the engine
  bool wake = false;                // an event will tell when it is free
};

// Of a tensor that stores of a section write, and loads of it read: which of its cells have been written. A cell is a
// rectangle of the tensor as a matrix, a tile or what the stores' patterns count in; there are as many as cover what is
// stored.
struct MemoryWait {
  struct Cell {
    std::uint32_t to_come = 0;        // firings of the stores that write in it and have not completed
    std::uint32_t first_waiting = 0;  // + 1: loads that wait for it, in held_loads
    Cycle at = 0;                     // of the last of them; 0: nobody writes in it
  };
  struct Trip {
    std::uint64_t to_come = 0;  // firings of the stores that have not completed
    Cycle at = 0;               // of the last of them
    std::vector<Cell> cells;    // from when somebody asks or writes, until all loads know of all of them
  };
  std::uint64_t all = 0;  // firings of the stores, a trip
  std::uint64_t cell_rows = 1, cell_cols = 1;
  std::uint64_t first_row = 0, first_col = 0, rows = 0, cols = 0;  // in cells
  std::vector<std::uint32_t> writes;                               // by cell: firings of the stores, a trip
  std::vector<Trip> trips;
  Cycles signal = 0;       // the longest of its loads'
  Cycle last = 0;          // completion of a store
  std::uint32_t next = 0;  // + 1: another that the same stores count for; 0: none
};
struct HeldLoad {
  std::uint32_t stage = 0;  // the first member of its set
  Cycles signal = 0;        // on the control network, from the store farthest away
  std::uint64_t lag = 0;    // its trip t reads what trip t - lag of the stores has written
  std::uint32_t wait = 0;   // index into memory_waits
  std::uint32_t next = 0;   // + 1: another of the same load; 0: none
  bool whole = false;       // any row may be read
  bool listed = false;      // waits for a cell
  std::uint32_t next_waiting = 0;
};

struct LoadState {
  std::uint32_t stage = 0;  // the first member
  std::uint64_t issued = 0;
  std::uint32_t agcu = 0;
  std::uint32_t memory = 0;
  RouteRef route;
  std::uint32_t first_member = 0, members = 0;  // in load_members: stages, leaf i of the route each
  std::uint32_t blocker = 0;                    // the member that held the set up last
  std::uint32_t waiting = 0;                    // firings that wait for the AGCU
  std::uint32_t rank = 0;                       // in a trip, loads of a lower one come first at the AGCU
  bool listed = false;                          // has a turn in the AGCU's heap
  std::uint64_t served = 0;                     // bytes, in whole bursts, from where it came to wait
  std::uint32_t first_held = 0;                 // + 1: what it waits for, in held_loads; 0: nothing
};

struct StoreState {
  // Pages on their way to memory: what was read, by firing, a ring that grows to the most under way.
  std::vector<PageHeader> under_way;
  std::uint64_t entered = 0, left = 0;
  std::uint64_t written = 0;
  RouteRef route;
  std::uint32_t agcu = 0;
  std::uint32_t memory = 0;
  std::uint32_t memory_wait = 0;  // + 1: where its completions count; 0: nowhere
};

struct MatmulState {
  PageTag tag;  // of the accumulator
  std::size_t accumulator = 0;
};

struct GenericState {
  PageTag tag;
  std::size_t accumulator = 0;
  std::uint64_t elements = 0;  // that the accumulator holds
};

struct AgcuState {
  Agcu unit;
  Position at;
  // A load whose pages wait: the trip of the first of them, its rank, and the bytes up to which it was served.
  struct Turn {
    std::uint64_t trip = 0;
    std::uint32_t rank = 0;
    std::uint64_t served = 0;
    std::uint32_t load = 0;
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };
  std::vector<Turn> turns;   // a heap, the least in front
  std::uint64_t served = 0;  // of the load that had the last turn: one that comes to wait starts there
  bool pending = false;      // an event will look at the heap
};

// A first or further leg over chip links: what happens at the other end.
struct Relay {
  std::uint32_t link = 0;
  std::uint32_t to_chip = 0;  // global
  Event then;                 // there; its amount is the page's bytes
  Cycles tail = 0;            // from the arrival at the chip to the event
  bool signal = false;
  std::uint32_t feed = 0;  // out of a switch: 1 + the SwitchFeed that it comes from
};

// The link by which a page comes to a switch's port, seen from the chip that the port leads to: it does the port's work,
// since what wants to leave by it comes together there.
struct SwitchFeed {
  ChipLink link;           // its rate and latency
  std::uint32_t chip = 0;  // at its other end
  std::uint32_t at = 0;    // among that chip's links
  Cycles back = 0;         // until that chip knows of room again
};

// What waits for room at a switch's port.
struct Offer {
  std::uint32_t relay = 0, bytes = 0;
  Cycle from = 0, last_byte = 0;
};
struct PortQueue {
  Bytes room = 0, all = 0;
  std::vector<Offer> offers;  // from `first` on
  std::size_t first = 0;
};

// How a signal or page gets to the other end: `lead` cycles of wires, then either the event on this chip or a relay.
struct Path {
  Cycles lead = 1;
  std::uint32_t relay = 0;
  Event then;
  bool remote = false;
};

struct SenderState {
  std::uint64_t page = 0;    // next page of the source buffer
  std::uint64_t total = 0;   // pages of the first launch, initial ones included
  std::uint64_t launch = 0;  // pages of each further launch
  std::uint64_t generation = 0;
  std::uint64_t consumed = 0;  // semaphore generations
  std::uint64_t value = 0;     // semaphore `ready`
  std::uint64_t initial = 0;
  std::uint64_t mask = 0;  // of counters
  std::uint32_t edge = 0, from = 0;
  std::uint32_t buffer = 0, consumer = 0;
  std::uint32_t first_shot = 0, shots = 0;
  std::uint32_t first_channel = 0, channels = 0;
  std::uint32_t pmu = 0, agcu = 0;
  std::uint32_t arrived = 0;  // barrier: receivers at this generation
  std::uint32_t element_bytes = 1;
  Chunk chunk;
  Cycle since = 0;  // the page waits for the handshake
  Handshake handshake = Handshake::token;
  bool held_up = false;  // since holds
  bool self_arrived = false;
  bool busy = false;
  bool touched = false;
  bool faulty = false;
};

// One page's worth of sending: page p of a sender is sent by shot p mod shots.
struct Shot {
  RouteRef route;  // leaves: local channels in order, then the AGCU where it leaves the chip
  std::uint32_t first_channel = 0, channels = 0;  // in shot_channels
  std::uint32_t leaves = 0;
  bool leaves_chip = false;
  std::uint32_t agcu_leaf = 0;
};

struct SendChannel {
  std::uint64_t credits = 0;
  std::uint64_t sent = 0;
  std::uint64_t ready = 0;     // generations that the receiver raised
  std::uint64_t returned = 0;  // signals that came back: what faults count
  std::uint32_t edge = 0, from = 0, to = 0, receiver = 0;
  std::uint32_t sender = 0;
  std::uint32_t to_chip = 0;  // global
  std::uint32_t there = 0;    // receive channel on that chip
  std::uint32_t leaf = 0;     // of its shot, where it stays on the chip
  Path data;                  // where it leaves the chip
  Path signal;                // valid, or leave
  bool faulty = false;
  bool unreachable = false;  // no links lead there: nothing ever arrives
};

struct ReceiveChannel {
  std::uint64_t arrived = 0;  // pages at the site
  Cycle last_arrival = 0;
  std::uint64_t landed = 0;       // pages written
  std::uint64_t pushable = 0;     // pages that the handshake allows to be seen
  std::uint64_t generations = 0;  // of the sender, up to the end of the present launch
  std::uint64_t generations_a_launch = 0;
  std::uint64_t raised = 0;  // semaphore: ready raised
  std::uint64_t valid_seen = 0, valid_raised = 0, valid_consumed = 0;
  std::uint64_t generation = 0;  // barrier: generations left
  std::uint64_t signals = 0;     // valid or leave that arrived: what faults count
  std::uint64_t entered = 0;     // flit level: pages from another chip that the network was given
  std::uint64_t due = 0;         // flit level: pages that the network has brought
  std::uint32_t edge = 0, from = 0, to = 0, receiver = 0;
  std::uint32_t receive = 0;
  std::uint32_t there = 0;                 // send channel on the sender's chip
  std::uint32_t rank = 0;                  // among the channels of its receiver
  std::uint32_t member = 0;                // of the sender's barrier
  std::uint32_t position = 0, period = 1;  // it gets the sender's pages p with p mod period = position
  RouteRef inward;                         // AGCU to site, where pages come from another chip
  Path back;                               // credit, ready, or arrive
  std::uint32_t fault = 0;                 // index + 1 into channel_faults
  bool at_barrier = false;
};

struct ReceiveState {
  std::uint64_t credited = 0;   // credits returned
  std::uint64_t scheduled = 0;  // pages whose push is under way (semaphore, barrier)
  std::uint64_t landed = 0;     // pages, of all channels
  std::uint64_t value = 0;      // semaphore `valid`
  std::uint64_t initial = 0;
  std::uint64_t mask = 0;
  std::uint32_t stage = 0;
  std::uint32_t buffer = 0;
  std::uint32_t first_channel = 0, channels = 0;
  std::uint32_t agcu = 0;
  Handshake handshake = Handshake::token;
  bool touched = false;
  bool unreachable = false;
};

// A page in the network at the flit level, and what is to be done when it has left, and when it comes.
struct FlitMessage {
  enum class What : std::uint8_t { load, store, shot, inward };
  What what = What::load;
  std::uint32_t unit = 0;  // stage, stage, sender, receive channel
  std::uint32_t shot = 0;
  std::uint32_t bytes = 0;
  std::uint32_t leaves = 0;  // that it has yet to reach
  Cycle sent = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      astray;  // channels of the shot, and the relay each takes instead
};

struct FreeDeleter {
  void operator()(std::byte* p) const { std::free(p); }
};
// Zeroed lazily by the system: pages of the pool that nothing touches take no memory.
using Pool = std::unique_ptr<std::byte[], FreeDeleter>;

struct ChipState {
  ChipId chip;
  bool used = false;

  std::vector<StageState> stages;
  std::vector<PortState> ports;
  std::vector<BufferState> buffers;
  std::vector<ConsumerState> consumers;
  std::vector<EngineState> engines;
  std::vector<PageHeader> headers;
  std::vector<LoadState> loads;
  std::vector<std::uint32_t> load_members;
  std::vector<StoreState> stores;
  std::vector<MemoryWait> memory_waits;
  std::vector<HeldLoad> held_loads;
  std::vector<MatmulState> matmuls;
  std::vector<GenericState> generics;
  std::vector<SenderState> senders;
  std::vector<Shot> shots;
  std::vector<std::uint32_t> shot_channels;
  std::vector<SendChannel> send_channels;
  std::vector<ReceiveState> receives;
  std::vector<ReceiveChannel> receive_channels;
  std::vector<Relay> relays;
  std::vector<SwitchFeed> feeds;
  std::vector<PortQueue> port_queues;                      // by link, where one leads to a switch
  std::vector<std::vector<std::uint32_t>> section_stages;  // by section id
  // Empty unless a test or the user breaks something.
  ChipFaults faults;
  std::vector<BufferFaults> buffer_faults;
  std::vector<ChannelFaults> channel_faults;
  std::vector<LinkFaults> link_faults;  // by link, where one may be struck

  std::vector<Pmu> pmus;
  std::vector<AgcuState> agcus;
  std::vector<Memory> memories;  // by MemorySpace: hbm, ddr
  std::vector<ChipLink> links;
  Network network;

  std::size_t pool_bytes = 0;
  Bytes scratch_bytes = 0;  // of one operand of a Generic body
  std::uint32_t scratch_pages = 0;
};

// What all chips share; outlives them.
struct MachineLaws {
  std::vector<StageSpec> stages;                     // by stage id
  std::vector<std::shared_ptr<const Stage>> broken;  // what faults made of stages; specs point to them
  Pcu pcu;
  PmuLaw pmu;
  AgcuLaw agcu;
  Rate load_rate, store_rate;  // the slowest of the units that a page streams through
  std::uint32_t native_tile = 1;
  bool saturate = true;
  bool values = true;
};

}  // namespace rdusim
