// One chip as it runs: plain C++, the cycle is an argument.
//
// Whoever drives it calls advance(t) for every t that next() names, in rising order, on every chip; chips meet only
// through Outside, and what one sends reaches another at least the link's latency later.
//
// A cycle has two phases. First everything that happens in it is applied (pages pushed and popped, credits and pages
// that arrive): these changes commute. Then requests are granted in canonical order (kind, then index; stages in order
// of id, or of the schedule where they share an engine): links, memories and engines are taken, firings start. A grant
// only takes, so nothing that one grant does can make another possible in the same cycle. Hence the order in which the
// events of a cycle are dispatched, and chips are activated, changes nothing.
//
// A firing of a
//   load     waits, before the first, until the stores of its section that write its tensor have completed all
//            firings and the control network has told it, the way from the farthest of them; then each
//            waits in its AGCU's queue, reads memory, crosses the network to the sites of its multicast set, is written
//            by their PMUs, and is pushed;
//   store    is read by the PMU, crosses to the AGCU, and is written to memory;
//   matmul, generic  reads its operands through the PMU's read port while the PCU works, and writes what it pushes
//            through the write port: of an array after the drain, of a SIMD pipeline as it comes out, so that the last of
//            it is written when it is out;
//   receive  writes a page that has arrived.
// How long each part takes is the law of the unit concerned.
//
// Faults and jitter, where they are asked for, change what a unit does and never what it says that it did; a unit that
// none may strike asks nobody.
//
// Units obey and never judge: whatever the program or a fault says, no index leaves its array; a page that should not
// have been read is the stale one that lies there.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/events/event_record.h"
#include "models/events/provenance.h"
#include "models/units/chip_state.h"
#include "models/units/page_region.h"
#include "models/units/waiting.h"

namespace rdusim {

// The rest of the machine, as a chip sees it.
class Outside {
 public:
  virtual ~Outside() = default;
  // An event on another chip (or on this one), at >= now + 1.
  virtual void post(std::uint32_t chip, Cycle at, const Event& e) = 0;
  // Page `page` of receive channel `channel` of another chip, sent at `sent`: what the event that follows it will find.
  virtual void deliver(std::uint32_t chip, std::uint32_t channel, std::uint64_t page, const PageTag& tag,
                       std::span<const std::byte> values, std::uint32_t bytes, Cycle sent) = 0;
};

class Chip {
 public:
  // What may happen, by kind; elaboration prepares some of them (Path, Relay).
  enum EventKind : std::uint8_t {
    section_event,
    read_done,       // stage: pops its inputs, its engine is free
    engine_free,     // engine
    completed,       // stage: pushes its outputs
    sent,            // sender: the page has left its buffer
    credit,          // send channel
    ready,           // send channel
    barrier_arrive,  // send channel
    valid,           // receive channel
    barrier_leave,   // receive channel
    arrived,         // receive channel: a page is at the site
    push_landed,     // receive: the next landed page may be seen
    written,         // held load: it learns that what its next firing reads has been stored
    store_free,      // stage: a store, whose AGCU may ask for more
    // Requests: granted in the commit phase.
    port_room,     // link: bytes that have left the switch's port that it leads to
    relay,         // relay: a page or signal for its link
    chip_arrive,   // receive channel: a page is at the AGCU
    agcu_next,     // agcu: the load at the head of its queue
    transit,       // stage: the last leg of its oldest page
    memory_write,  // stage: a store's page is at the memory
    flit_cycle,    // flit level: the network has something to do, after all that is granted
  };

  // Of a body's operands: a place of the stack each, and one to convert a page in before it is spread.
  static constexpr std::uint32_t most_stacked = most_stacked_operands, scratch_pages = most_stacked + 2;

  // Seeds of 0: nothing is shuffled, nothing is delayed.
  Chip(ChipState state, const MachineLaws& laws, ProvenanceTable& provenance, TensorImages& images, Outside& outside,
       std::uint64_t shuffle_seed, std::uint64_t jitter_seed);

  // Where events go: to a listener as they happen, to a record, or (neither) nowhere; memory by bursts or by pages.
  void tell_to(EventSink* sink, EventRecord* record, bool bursts) {
    sink_ = sink;
    record_ = record;
    bursts_ = bursts;
  }

  // Applies and grants everything of cycle `now`.
  void advance(Cycle now);
  std::optional<Cycle> next() const { return queue_.next(); }

  // The section's stages may fire from `at` on; every unit is in its defined first state (rows closed, ports free). `trip`
  // of a relaunched section, whose trips come in order: requires that the one before has finished.
  void start_section(SectionId section, std::uint64_t trip, Cycle at);
  // Of a chip where nothing is pending: all of its state that the next launch of `section` depends on, with counters
  // less what `launches` of them counted, and times less `now` (chip_rest.cpp). Where two are equal, so are the launches
  // that follow, but for the tensors they work on.
  void at_rest(SectionId section, std::uint64_t launches, Cycle now, std::vector<std::uint64_t>& out) const;
  void post(Cycle at, const Event& e) { queue_.put(at, e); }
  void accept(std::uint32_t channel, std::uint64_t page, const PageTag& tag, std::span<const std::byte> values,
              std::uint32_t bytes, Cycle when);

  bool finished(SectionId section) const;
  // Everyone of the section who has not finished, and what it waits for.
  void waiting(SectionId section, std::vector<Waiting>& out) const;
  std::uint64_t pages_pushed() const { return pages_pushed_; }
  std::uint64_t traversals() const { return c_.network.traversals(); }
  const ChipFaults& faults() const { return c_.faults; }
  ChipId id() const { return c_.chip; }

 private:
  // In the commit phase, in this order.
  enum Work : std::uint8_t {
    work_port_room,
    work_relay,
    work_chip_arrive,
    work_agcu,
    work_transit,
    work_write,
    work_receive,
    work_sender,
    work_stage
  };

  // What a stage instance looks like to events.
  StageAt at(const StageState& s) const { return {StageId{s.spec}, s.instance}; }
  BufferAt at(const BufferState& b) const { return {BufferId{b.id}, b.instance}; }
  template <class ChannelState>
  ChannelAt at(const ChannelState& c) const {
    return {EdgeId{c.edge}, c.from, c.to, c.receiver};
  }
  const StageSpec& spec(const StageState& s) const { return laws_.stages[s.spec]; }

  // What firing `firing` does with its ports. Valid until the next call.
  std::span<const PortUse> uses(const StageSpec& sp, std::uint64_t firing) const {
    if (sp.first_use.empty()) return loose_uses(sp, firing);
    const std::uint64_t phase = sp.cycle == 1 ? 0 : firing % sp.cycle;
    return {sp.uses.data() + sp.first_use[phase], sp.uses.data() + sp.first_use[phase + 1]};
  }
  std::span<const PortUse> loose_uses(const StageSpec& sp, std::uint64_t firing) const;

  // phase 1
  void apply(const Event& e);
  void apply_section(std::uint32_t section);
  void expect_another_trip(std::uint32_t section);
  void put_form_at_rest(const StageState& s, std::uint64_t base, Cycle now, std::vector<std::uint64_t>& out) const;
  void apply_read_done(std::uint32_t stage);
  void apply_completed(std::uint32_t stage);
  void apply_sent(std::uint32_t sender);
  void apply_arrived(std::uint32_t channel);
  void apply_push_landed(std::uint32_t receive);
  // chip_memory_order.cpp
  void apply_stored(const StageState& store, std::uint64_t firing);
  void apply_written(std::uint32_t held_load);
  void hold(StageState& load);
  bool may_read(std::uint32_t held_load);
  struct CellRange {
    std::uint64_t row = 0, col = 0, rows = 0, cols = 0;  // within the wait's
  };
  CellRange cells_of(const MemoryWait& wait, const PageRegion& page) const;
  // Of a load that is held: one of its waits, and the trip of the stores.
  std::pair<const MemoryWait*, std::uint64_t> waits_for(const StageState& load) const;
  void push(BufferState& b);
  void publish(BufferState& b, std::uint64_t produced);
  void see(BufferState& b);
  void pop(std::uint32_t consumer, BufferState& b, std::uint32_t pages);
  // How many of a signal come to a channel.
  template <class ChannelState>
  std::uint32_t copies(const ChannelState& ch, bool faulty, FaultKind none, FaultKind two, std::uint64_t nth) {
    return faulty ? c_.faults.copies(none, two, at(ch), nth) : 1;
  }

  void touch_stage(std::uint32_t stage);
  void touch_sender(std::uint32_t sender);
  void touch_receive(std::uint32_t receive);
  void touch_engine(EngineState& e);

  // phase 2
  void commit();
  void grant(const Event& work);
  void grant_relay(std::uint32_t relay, std::uint32_t bytes);
  void grant_port_room(std::uint32_t link, std::uint32_t bytes);
  void grant_chip_arrive(std::uint32_t channel, std::uint32_t bytes);
  void grant_agcu(std::uint32_t agcu);
  void grant_transit(std::uint32_t stage);
  void come_to_host(std::uint32_t stage, Cycle tail);
  void grant_write(std::uint32_t stage);
  void grant_receive(std::uint32_t receive);
  void grant_sender(std::uint32_t sender);
  void grant_stage(std::uint32_t stage);

  std::optional<StallCause> blocked(const StageState& s);
  bool can_land(const StageState& s) const;
  void wait_for_engine(std::uint32_t stage);
  bool engine_taken(std::uint32_t stage);
  void reserve(StageState& s, std::uint64_t firing);
  void started(StageState& s, Cycles busy);
  void claim(StageState& s, std::uint64_t firing);
  void start_load(std::uint32_t actor);
  void start_store(std::uint32_t stage);
  void start_matmul(std::uint32_t stage);
  void start_generic(std::uint32_t stage);
  void start_values(std::uint32_t stage);
  void start_receive(std::uint32_t stage);
  void run_compute(std::uint32_t stage,
                   FiringTime time);  // after moves() told what it reads, and its outputs are filled
  Bytes bytes_made(const StageState& s) const;
  std::uint32_t pmu_of(const StageState& s, std::uint32_t port) const {
    return c_.buffers[c_.ports[s.first_port + port].buffer].pmu;
  }
  // Of a firing: bytes more through a port of a memory unit.
  void moves(std::uint32_t pmu, Bytes bytes) {
    for (UnitBytes& m : moved_)
      if (m.pmu == pmu) {
        m.bytes += bytes;
        return;
      }
    moved_.push_back({pmu, bytes});
  }
  void give_turn(AgcuState& agcu, std::uint32_t load);
  Bytes issue_load(std::uint32_t load_stage);  // bytes of its page
  struct MemoryUse {
    Cycle begin = 0, end = 0;  // its first burst begins; its last is read or written
  };
  MemoryUse use_memory(std::uint32_t memory, MemorySpace space, const PageHeader& page, bool write);
  struct Part {
    Bytes begin = 0;
    std::uint32_t bytes = 0;
  };
  Part chunk_of(const SenderState& s, const PageHeader& h) const;  // what of a page the sender's edge takes
  bool handshake_allows(SenderState& s);
  void send(std::uint32_t sender);
  void signal(const Path& path);
  void hop(const Relay& r, Cycle from, Cycle last_byte, std::uint32_t bytes);
  void carry(const Relay& r, Cycle from, Cycle last_byte, std::uint32_t bytes);
  Bytes size_of(const Relay& r, std::uint32_t bytes) const;
  bool break_transfers(ChipLink& link, Cycle& from, Bytes size, bool signal);

  void reach_member(const LoadState& load, std::uint32_t member, Bytes bytes, Cycle head, Cycle tail);

  // the network at its flit level (chip_flits.cpp)
  std::uint32_t message(FlitMessage::What what, std::uint32_t unit, Bytes bytes, std::uint32_t leaves);
  bool sends_astray(const Shot& shot) const;
  void step_flits();
  void flits_left(const FlitMessage& m, Cycle at);
  void leave_chip(const FlitMessage& m, Cycle head);
  void flits_came(const FlitMessage& m, std::uint32_t leaf, Cycle head, Cycle tail);
  void come_to(std::uint32_t channel, Bytes bytes, Cycle head, Cycle tail);

  // jitter
  static constexpr Cycles most_link_delay = 1 << 10, most_stage_delay = 1 << 8;
  Cycles delay(std::uint64_t unit, std::uint64_t nth, Cycles most) const;
  Cycles late(const StageState& s) const {
    return jitter_ == 0 ? 0 : delay((std::uint64_t{s.spec} << 32) + s.instance + 1, s.next, most_stage_delay);
  }

  // faults (chip_breaks.cpp); asked for only where a unit is marked
  struct Source {  // where a load takes a page from
    const Tensor* tensor = nullptr;
    std::uint64_t page = 0;  // of a trip
  };
  Source broken_source(const StageState& s, std::uint64_t firing);
  std::uint64_t in_next_bank(const StageSpec& sp, const AccessPattern& pattern, std::uint32_t instance,
                             std::uint64_t page, std::uint64_t pages) const;
  std::uint64_t broken_place(const StageState& s, std::uint64_t firing, std::uint64_t page);
  void break_mask(const StageState& s, std::uint64_t firing, PageHeader& h, Bytes most);
  void narrow(const StageState& s, std::uint64_t firing, DType type, std::byte* values, std::uint64_t n);
  std::uint32_t reserved_of(BufferState& b, std::uint32_t pages);
  void lacks_depth(const BufferState& b, std::uint32_t pages);
  void push_broken(BufferState& b);
  void push_late(BufferState& b);
  bool unread(const BufferState& b, std::uint64_t page) const;
  void overwrite(BufferState& b);
  void swap_halves(BufferState& b);
  SendChannel* misaddressed(const SendChannel& ch, std::uint64_t page);
  void arrive_broken(std::uint32_t channel);
  void take_arrival(const ReceiveState& r, const ReceiveChannel& ch, std::uint64_t page);
  void lie_beside(const ReceiveChannel& ch, const PageTag& tag);
  void interleave(const ReceiveChannel& ch, std::uint64_t page);
  std::uint32_t carried(std::uint32_t link, Cycle& from, Bytes size, bool signal);

  // values
  struct View {  // (a chunk of) a page as a firing sees it
    const PageHeader* header = nullptr;
    const std::byte* values = nullptr;  // null where there are none
    std::uint64_t elements = 0;
    PageTag tag;
  };
  View broken_operand(const StageState& s, std::uint64_t firing, const Expr& body, std::size_t number);
  void keep(const View& from, DType type, KeptPage& to);
  View seen_again(const KeptPage& page) const;
  static void rectify(KeptPage& page, DType type);
  PageTag tag_of(const StageSpec& sp, const PageRegion& r, std::uint64_t firing) const;
  void gather_rows(StageState& s, const Tensor& table, const PageRegion& region, const View& indices, PageHeader& page,
                   std::byte* values);
  PageTag in_heads(const StageSpec& sp, const AccessPattern& pattern, PageTag tag) const;
  Bytes address_of(const StageSpec& sp, const PageRegion& r, Bytes tensor) const;
  const PageHeader* loaded_page(const StageState& s, std::uint64_t firing) const;
  View view(const StageState& s, std::uint32_t port, std::uint64_t firing) const;
  void write_outputs(StageState& s, std::uint64_t firing, const PageTag& tag, std::uint64_t elements,
                     const std::byte* values, DType from);
  // How often a firing adds its operand: once, unless a fault has it otherwise.
  std::uint32_t partial_copies(const StageState& s, std::uint64_t firing) {
    if (!s.faulty) return 1;
    return c_.faults.copies(FaultKind::partial_skip, FaultKind::partial_double, at(s), firing);
  }
  std::byte* slot(const BufferState& b, std::uint64_t page) const {
    return pool_.get() + b.values + page % b.slots * b.slot_bytes;
  }
  std::byte* staged_slot(const BufferState& b, std::uint64_t page) const {
    return pool_.get() + b.staged_values + page % b.slots * b.slot_bytes;
  }
  PageHeader& header(const BufferState& b, std::uint64_t page) { return c_.headers[b.headers + page % b.slots]; }
  const PageHeader& header(const BufferState& b, std::uint64_t page) const {
    return c_.headers[b.headers + page % b.slots];
  }
  PageHeader& staged_header(const BufferState& b, std::uint64_t page) {
    return c_.headers[(b.faulty ? b.staged_headers : b.headers) + page % b.slots];
  }
  const PageHeader& staged_header(const BufferState& b, std::uint64_t page) const {
    return c_.headers[(b.faulty ? b.staged_headers : b.headers) + page % b.slots];
  }

  template <class E>
  void tell(const E& e) {
    if (record_ != nullptr) {
      record_->add(e);
    } else if (sink_ != nullptr) {
      sink_->on(e);
    }
  }
  void put(Cycle at, EventKind kind, std::uint32_t unit, std::uint32_t amount = 0) {
    queue_.put(at > now_ ? at : now_ + 1, {kind, unit, amount});
  }

  ChipState c_;
  const MachineLaws& laws_;
  ProvenanceTable& provenance_;
  TensorImages& images_;
  EventSink* sink_ = nullptr;
  EventRecord* record_ = nullptr;
  bool bursts_ = true;
  Outside& outside_;
  EventQueue queue_;
  Pool pool_;
  std::vector<std::byte> scratch_;
  std::vector<Event> due_;
  std::vector<Event> work_;
  struct UnitBytes {
    std::uint32_t pmu = 0;
    Bytes bytes = 0;
  };
  std::vector<UnitBytes> moved_;  // scratch
  std::vector<FlitMessage> messages_;
  std::vector<std::uint32_t> free_messages_;
  Cycle flits_wake_ = FlowNetwork::never;  // for which a flit_cycle event is pending
  mutable std::vector<PortUse> loose_;     // scratch of loose_uses
  Cycle now_ = 0;
  std::uint64_t shuffle_ = 0;
  std::uint64_t jitter_ = 0;
  std::uint64_t pages_pushed_ = 0;
};

}  // namespace rdusim
