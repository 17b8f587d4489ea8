// When stages fire, and what a firing takes of the units it uses.
#include <algorithm>
#include <functional>

#include "compiler/ir/access_pattern.h"
#include "models/units/chip.h"

namespace rdusim {

namespace {

// Cycles that a stream of so many lanes takes for `elements`; one of 0 lanes is as fast as its ports.
Cycles by_lanes(std::uint64_t elements, std::uint32_t lanes) {
  return lanes == 0 ? 0 : ceil_div(elements, std::uint64_t{lanes});
}

}  // namespace

std::optional<StallCause> Chip::blocked(const StageState& s) {
  if (s.held && !(s.faulty && c_.faults.asked(FaultKind::read_early, at(s), s.next)))
    return StallCause::input_starvation;
  for (const PortUse& use : uses(spec(s), s.next)) {
    const PortState& port = c_.ports[s.first_port + use.port];
    if (use.need != 0) {
      if ((!port.bound || c_.buffers[port.buffer].pushed < c_.consumers[port.consumer].claimed + use.need) &&
          !(s.faulty && port.bound && c_.faults.asked(FaultKind::start_early, at(s), s.next)))
        return StallCause::input_starvation;
    }
    if (use.reserve != 0) {
      if (!port.bound) return StallCause::back_pressure;
      const BufferState& b = c_.buffers[port.buffer];
      if (b.reserved + use.reserve > b.popped + b.depth &&
          !(s.faulty && c_.faults.asked(FaultKind::start_full, at(s), s.next))) {
        if (b.faulty) lacks_depth(b, use.reserve);
        // Where most of the room is taken by pages that memory has not yet given, it is memory that holds the load up.
        const bool under_way = b.reserved - std::min(b.reserved, b.pushed) > b.pushed - std::min(b.pushed, b.popped);
        return s.form == StageForm::load && under_way ? StallCause::memory : StallCause::back_pressure;
      }
    }
  }
  return std::nullopt;
}

std::span<const PortUse> Chip::loose_uses(const StageSpec& sp, std::uint64_t firing) const {
  loose_.clear();
  for (std::uint32_t p = 0; p < sp.ports.size(); ++p) {
    const PortSpec& port = sp.ports[p];
    const bool in = port.direction == Direction::input;
    loose_.push_back({p, port.direction, in ? port.need.at(firing) : 0, in ? port.pop.at(firing) : 0,
                      in ? 0 : port.reserve.at(firing), in ? 0 : port.push.at(firing)});
  }
  return loose_;
}

// The stage could start but for its engine: it tries again when an event tells that the engine is free.
void Chip::wait_for_engine(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  EngineState& e = c_.engines[s.engine];
  if (!s.waits_for_engine) {
    s.waits_for_engine = true;
    s.next_waiting = e.first_waiting;
    e.first_waiting = stage + 1;
  }
  if (e.wake) return;
  e.wake = true;
  put(e.free_at, engine_free, s.engine);
}

bool Chip::engine_taken(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  if (c_.engines[s.engine].free_at <= now_) return false;
  s.cause = StallCause::engine;
  wait_for_engine(stage);
  return true;
}

void Chip::grant_stage(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  s.touched = false;
  if (s.next == s.total) return;
  switch (s.form) {
    case StageForm::load: {
      LoadState& load = c_.loads[s.detail];
      // Whoever held the set up last is asked first: the others need not be looked at while it still does.
      for (std::uint32_t i = 0; i < load.members; ++i) {
        const std::uint32_t n = load.blocker + i < load.members ? load.blocker + i : load.blocker + i - load.members;
        const std::uint32_t member = c_.load_members[load.first_member + n];
        if (const auto cause = blocked(c_.stages[member])) {
          s.cause = *cause;
          load.blocker = n;
          return;
        }
        if (engine_taken(member)) {
          s.cause = StallCause::engine;
          load.blocker = n;
          return;
        }
      }
      start_load(stage);
      break;
    }
    case StageForm::receive:
      if (!can_land(s)) {
        s.cause = StallCause::input_starvation;
        return;
      }
      if (!engine_taken(stage)) start_receive(stage);
      break;
    case StageForm::none:
      break;
    default:
      if (const auto cause = blocked(s)) {
        s.cause = *cause;
        return;
      }
      if (engine_taken(stage)) return;
      if (s.form == StageForm::store) {
        // What was stored before has come to its memory, and waits there.
        if (const Cycle opens = c_.agcus[c_.stores[s.detail].agcu].unit.store_free_at(); opens > now_) {
          // A firing has one cause: what held it up for longer.
          if (opens - now_ > now_ - std::min(s.since, now_)) s.cause = StallCause::memory;
          put(opens, store_free, stage);
          return;
        }
        start_store(stage);
      }
      if (s.form == StageForm::matmul) start_matmul(stage);
      if (s.form == StageForm::generic) spec(s).values ? start_values(stage) : start_generic(stage);
  }
}

void Chip::claim(StageState& s, std::uint64_t firing) {
  for (const PortUse& use : uses(spec(s), firing)) {
    const PortState& port = c_.ports[s.first_port + use.port];
    if (s.faulty && use.need != 0 && port.bound &&
        c_.buffers[port.buffer].pushed < c_.consumers[port.consumer].claimed + use.need)
      c_.faults.strikes(FaultKind::start_early, at(s), firing);
    if (use.pop != 0 && port.bound) c_.consumers[port.consumer].claimed += use.pop;
  }
}

void Chip::reserve(StageState& s, std::uint64_t firing) {
  for (const PortUse& use : uses(spec(s), firing)) {
    const PortState& port = c_.ports[s.first_port + use.port];
    if (use.reserve == 0 || !port.bound) continue;
    BufferState& b = c_.buffers[port.buffer];
    if (s.faulty && b.reserved + use.reserve > b.popped + b.depth)
      c_.faults.strikes(FaultKind::start_full, at(s), firing);
    const std::uint32_t pages = !b.faulty ? use.reserve : reserved_of(b, use.reserve);
    if (pages == 0) continue;
    b.reserved += pages;
    tell(PageReserved{now_, at(b), pages});
  }
}

void Chip::started(StageState& s, Cycles busy) {
  tell(FiringStarted{now_, at(s), s.next, busy, now_ - s.since, s.cause});
  s.since = now_ + busy;
  c_.engines[s.engine].free_at = now_ + busy;
  ++s.next;
  if (s.form == StageForm::load && c_.loads[s.detail].stage == s.actor && &s == &c_.stages[s.actor]) hold(s);
}

PageTag Chip::tag_of(const StageSpec& sp, const PageRegion& r, std::uint64_t firing) const {
  PageTag tag;
  tag.operand = sp.operand;
  tag.trip = static_cast<std::uint32_t>(sp.firings == 0 ? 0 : firing / sp.firings);
  tag.row = r.whole_row;
  tag.col = r.whole_col;
  tag.rows = static_cast<std::uint32_t>(r.rows);
  tag.cols = static_cast<std::uint32_t>(r.cols);
  return tag;
}

// The tag that a page of a tensor has on chip, where its columns are heads.
PageTag Chip::in_heads(const StageSpec& sp, const AccessPattern& pattern, PageTag tag) const {
  const MatrixElement at = rdusim::in_heads({tag.row, tag.col}, sp.tensor->whole, pattern.heads);
  tag.row = at.row;
  tag.col = at.col;
  return tag;
}

// Where a page lies in memory: tensors lie there page after page, as the streams that read and write them take them:
// side by side what instances read side by side, which of a matrix that is multiplied transposed are its rows.
Bytes Chip::address_of(const StageSpec& sp, const PageRegion& r, Bytes tensor) const {
  const Bytes size = bytes_of(sp.tensor->dtype);
  if (sp.by_columns && sp.tensor->shape.size() > 1) {
    const auto rows = static_cast<Bytes>(std::max<std::int64_t>(sp.tensor->shape[sp.tensor->shape.size() - 2], 1));
    const Bytes matrix = rows * static_cast<Bytes>(std::max<std::int64_t>(sp.tensor->shape.back(), 1)) * size;
    return tensor + r.row / rows * matrix + (r.col * rows + r.row % rows * r.cols) * size;
  }
  const Bytes pitch = static_cast<Bytes>(std::max<std::int64_t>(sp.tensor->shape.back(), 1)) * size;
  return tensor + r.row * pitch + r.col * r.rows * size;
}

// The page that firing `firing` of a load brings, while it is under way; nothing where it pushes none.
const PageHeader* Chip::loaded_page(const StageState& s, std::uint64_t firing) const {
  for (const PortUse& use : uses(spec(s), firing)) {
    const PortState& port = c_.ports[s.first_port + use.port];
    if (use.push == 0 || !port.bound) continue;
    const BufferState& b = c_.buffers[port.buffer];
    return &staged_header(b, b.initial + firing * use.push);
  }
  return nullptr;
}

void Chip::start_load(std::uint32_t actor) {
  StageState& leader = c_.stages[actor];
  const StageSpec& sp = spec(leader);
  LoadState& load = c_.loads[leader.detail];
  const std::uint64_t f = leader.next;
  const Source source = leader.faulty ? broken_source(leader, f) : Source{sp.held(f).tensor, f % sp.firings};
  const PageRegion r = page_region(sp.load->pattern, *source.tensor, laws_.native_tile, leader.instance, source.page);
  if (!r.comes) {
    leader.cause = StallCause::memory;
    return;
  }
  const std::uint64_t size = bytes_of(sp.tensor->dtype);
  const std::uint64_t bytes = r.elements() * size;
  Cycles busy =
      std::max({laws_.load_rate.span(bytes).ceil(), by_lanes(r.elements(), sp.load->lanes), Cycles{1}}) + late(leader);
  const StallCause cause = leader.cause;
  if (leader.faulty && leader.held) c_.faults.strikes(FaultKind::read_early, at(leader), f);
  std::optional<View> indices;
  if (sp.load->indexed) {
    indices = view(leader, 0, f);
    if (indices->header == nullptr) return;
    busy = std::max(
        busy,
        c_.pmus[pmu_of(leader, 0)].read(laws_.pmu, now_, indices->elements * bytes_of(sp.ports[0].dtype)).last - now_);
  }
  for (std::uint32_t i = 0; i < load.members; ++i) {
    StageState& s = c_.stages[c_.load_members[load.first_member + i]];
    s.cause = cause;
    reserve(s, f);
    for (const PortUse& use : uses(sp, f)) {
      PortState& port = c_.ports[s.first_port + use.port];
      if (use.push == 0 || !port.bound) continue;
      BufferState& b = c_.buffers[port.buffer];
      for (std::uint32_t n = use.push; n > 0; --n) {
        const std::uint64_t page = port.assigned++;
        PageHeader& h = staged_header(b, page);
        h.tag = in_heads(sp, sp.load->pattern, tag_of(sp, r, f));
        h.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, b.slot_bytes));
        h.origin = address_of(sp, r, sp.held(f).address);
        if (indices) {
          gather_rows(leader, *source.tensor, r, *indices, h,
                      laws_.values && bytes <= b.slot_bytes ? staged_slot(b, page) : nullptr);
        } else if (laws_.values && bytes <= b.slot_bytes) {
          copy_from_image(r, *source.tensor, images_[source.tensor->id.value], staged_slot(b, page));
        }
        if (leader.faulty) break_mask(leader, f, h, b.slot_bytes);
      }
    }
    if (indices) claim(s, f);
    started(s, busy);
    s.cause = StallCause::back_pressure;
  }
  if (indices) {
    c_.engines[leader.engine].wake = true;
    put(now_ + busy, read_done, actor);
  }
  // The load waits its turn at the AGCU, which serves bursts of all that wait alike: the page of who had the fewest
  // bytes comes next, so that neither one that runs ahead nor one of larger pages keeps the others waiting. But
  // operators come in the order of the program, trip by trip, so that the first of a section does not wait for weights of
  // the last, nor the last for those of the next trip.
  ++load.waiting;
  AgcuState& agcu = c_.agcus[load.agcu];
  if (!load.listed) {
    load.listed = true;
    load.served = std::max(load.served, agcu.served);
    give_turn(agcu, leader.detail);
  }
  if (!agcu.pending) {
    if (agcu.unit.load_free_at() <= now_) {
      grant_agcu(load.agcu);
    } else {
      agcu.pending = true;
      put(agcu.unit.load_free_at(), agcu_next, load.agcu);
    }
  }
  // The next firing, where it could start but for the engine.
  if (leader.next < leader.total) {
    for (std::uint32_t i = 0; i < load.members; ++i)
      if (const auto why = blocked(c_.stages[c_.load_members[load.first_member + i]])) {
        leader.cause = *why;
        load.blocker = i;
        return;
      }
    // All members' engines are free at the same time; one of them is enough to tell.
    wait_for_engine(actor);
  }
}

void Chip::give_turn(AgcuState& agcu, std::uint32_t load) {
  const LoadState& l = c_.loads[load];
  agcu.turns.push_back({l.issued / spec(c_.stages[l.stage]).firings, l.rank, l.served, load});
  std::push_heap(agcu.turns.begin(), agcu.turns.end(), std::greater<>{});
}

void Chip::grant_agcu(std::uint32_t n) {
  AgcuState& agcu = c_.agcus[n];
  agcu.pending = false;
  if (agcu.turns.empty()) return;
  std::pop_heap(agcu.turns.begin(), agcu.turns.end(), std::greater<>{});
  const std::uint32_t which = agcu.turns.back().load;
  agcu.turns.pop_back();
  LoadState& load = c_.loads[which];
  agcu.served = load.served;
  load.served += laws_.agcu.whole_bursts(issue_load(load.stage));
  if (--load.waiting != 0) {
    give_turn(agcu, which);
  } else {
    load.listed = false;
  }
  if (!agcu.turns.empty()) {
    agcu.pending = true;
    put(agcu.unit.load_free_at(), agcu_next, n);
  }
}

Bytes Chip::issue_load(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  const StageSpec& sp = spec(s);
  LoadState& load = c_.loads[s.detail];
  const PageHeader* page = loaded_page(s, load.issued++);
  if (page == nullptr) return 0;
  const Bytes bytes = page->bytes;
  Agcu& agcu = c_.agcus[load.agcu].unit;
  const Slot door = agcu.inward(laws_.agcu, now_, bytes);
  const Cycles latency = c_.memories[load.memory].latency();
  const MemoryUse use = use_memory(load.memory, sp.tensor->space, *page, false);
  const Cycle read = std::max(use.end, now_ + laws_.agcu.paced(bytes, latency));
  agcu.reads(laws_.agcu, now_, use.begin + latency, read, bytes);
  const Cycle last = std::max(read, door.end + latency) + laws_.agcu.latency;
  // The page enters the network when the rest can follow without a gap.
  const Cycles streaming = laws_.agcu.port.span(bytes).ceil();
  s.last_transit = std::max({s.last_transit, last - std::min(last, streaming), now_ + 1});
  put(s.last_transit, transit, stage);
  return bytes;
}

Chip::MemoryUse Chip::use_memory(std::uint32_t memory, MemorySpace space, const PageHeader& page, bool write) {
  const auto number = static_cast<std::uint8_t>(space);
  MemoryUsed sum{now_, c_.chip, number, 0, ~Cycle{0}, 0, 0, write, 0};
  Cycle first = ~Cycle{0};
  const auto used = [&](std::uint32_t channel, Cycle begin, Cycle end, Bytes bytes) {
    first = std::min(first, begin);
    if (bursts_) {
      tell(MemoryUsed{now_, c_.chip, number, channel, begin, end, bytes, write});
      return;
    }
    if (sum.channels++ == 0) sum.channel = channel;
    sum.begin = std::min(sum.begin, begin);
    sum.end = std::max(sum.end, end);
    sum.bytes += bytes;
    sum.summed += end - begin;
  };
  const Cycle done = c_.memories[memory].access(now_, page.origin, page.bytes, write, used);
  if (sum.channels != 0) tell(sum);
  return {std::min(first, done), done};
}

void Chip::grant_transit(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  const StageSpec& sp = spec(s);
  const std::uint64_t f = s.transited++;
  if (s.form == StageForm::load) {
    LoadState& load = c_.loads[s.detail];
    const PageHeader* page = loaded_page(s, f);
    if (page == nullptr) return;
    const Bytes bytes = page->bytes;
    const Cycle last = now_ + laws_.agcu.port.span(bytes).ceil();
    if (c_.network.flits() != nullptr) {
      c_.network.post(load.route, message(FlitMessage::What::load, stage, bytes, load.members), now_, last, bytes);
      return;
    }
    c_.network.send(load.route, now_, last, bytes);
    for (std::uint32_t i = 0; i < load.members; ++i)
      reach_member(load, i, bytes, c_.network.head(load.route, i), c_.network.tail(load.route, i));
    return;
  }
  if (s.form == StageForm::store) {
    StoreState& store = c_.stores[s.detail];
    const Bytes bytes = store.under_way[f % store.under_way.size()].bytes;
    if (sp.to_host) {
      come_to_host(stage, now_ + laws_.agcu.port.span(bytes).ceil());
      return;
    }
    const Slot door = c_.agcus[store.agcu].unit.outward(laws_.agcu, now_, bytes);
    put(std::max(door.end + laws_.agcu.latency, now_ + 1), memory_write, stage);
    return;
  }
  moved_.clear();
  for (const PortUse& use : uses(sp, f)) {
    PortState& port = c_.ports[s.first_port + use.port];
    if (use.push == 0 || !port.bound) continue;
    for (std::uint32_t n = use.push; n > 0; --n) {
      const BufferState& b = c_.buffers[port.buffer];
      moves(b.pmu, staged_header(b, port.transited++).bytes);
    }
  }
  if (moved_.empty() && s.completed == f) {
    tell(FiringCompleted{now_, at(s), s.completed++});
    return;
  }
  Cycle done = now_;
  for (const UnitBytes& m : moved_) done = std::max(done, c_.pmus[m.pmu].write(laws_.pmu, now_, m.bytes).last);
  s.last_complete = std::max({s.last_complete, done, now_ + 1});
  put(s.last_complete, completed, stage);
}

// A load's page comes to a member of its multicast set.
void Chip::reach_member(const LoadState& load, std::uint32_t member, Bytes bytes, Cycle head, Cycle tail) {
  const std::uint32_t which = c_.load_members[load.first_member + member];
  StageState& s = c_.stages[which];
  const Cycles writing = laws_.pmu.write.span(bytes).ceil();
  const Cycle from = std::max(head, tail - std::min(tail, writing));
  const Pmu::Access w = c_.pmus[s.pmu].write(laws_.pmu, from, bytes);
  const std::uint32_t lanes = spec(s).load->lanes;
  const Cycle streamed = lanes == 0 ? 0
                                    : std::max(s.last_complete, head + laws_.pmu.access) +
                                          by_lanes(bytes / bytes_of(spec(s).tensor->dtype), lanes);
  s.last_complete = std::max({s.last_complete, w.last, streamed, now_ + 1});
  put(s.last_complete, completed, which);
}

// What the firing that has just filled its outputs' pages will write.
Bytes Chip::bytes_made(const StageState& s) const {
  Bytes bytes = 0;
  for (const PortUse& use : uses(spec(s), s.next)) {
    const PortState& port = c_.ports[s.first_port + use.port];
    if (use.push == 0 || !port.bound) continue;
    for (std::uint32_t n = 1; n <= use.push; ++n)
      bytes += staged_header(c_.buffers[port.buffer], port.assigned - n).bytes;
  }
  return bytes;
}

void Chip::start_store(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  const StageSpec& sp = spec(s);
  StoreState& store = c_.stores[s.detail];
  const std::uint64_t f = s.next;
  const std::uint64_t phases = std::max<std::uint64_t>(sp.store->chunks.size(), 1);
  const std::uint64_t in_trip = f % sp.firings;
  std::uint64_t place = in_trip / phases;
  if (s.faulty) place = broken_place(s, f, place);
  const PageRegion r = page_region(sp.store->pattern, *sp.tensor, laws_.native_tile, s.instance, place);
  if (!r.comes) {
    s.cause = StallCause::memory;
    return;
  }
  const Chunk chunk = sp.store->chunks.empty() ? Chunk{} : sp.store->chunks[in_trip % phases];
  // The page comes from the port that pops in this phase.
  View page;
  std::uint32_t pmu = s.pmu;
  for (const PortUse& use : uses(sp, f)) {
    if (use.pop == 0) continue;
    page = view(s, use.port, f);
    if (page.header == nullptr) continue;
    pmu = pmu_of(s, use.port);
    break;
  }
  const std::uint32_t of = std::max(chunk.of, 1u);
  const ElementRange range = chunk_range(r.elements(), std::min(chunk.index, of - 1), of);
  const std::uint64_t size = bytes_of(sp.tensor->dtype);
  PageHeader kept;
  kept.tag = tag_of(sp, r, f);
  kept.tag.chunk = chunk.index;
  kept.tag.chunks = of;
  if (page.header != nullptr) {
    kept.tag.trip = page.tag.trip;
    // A page of another block holds nothing that belongs to this one.
    const PageTag own = of == 1 ? as_page_of_rows(page.tag) : page.header->tag;
    const PageTag due = in_heads(sp, sp.store->pattern, kept.tag);
    if (own.operand == due.operand && own.row == due.row && own.col == due.col && own.rows == due.rows &&
        own.cols == due.cols)
      kept.tag.provenance = own.provenance;
  }
  kept.bytes = static_cast<std::uint32_t>(range.size() * size);
  kept.origin = address_of(sp, r, sp.held(f).address) + range.begin * size;
  if (page.values != nullptr) {
    copy_to_image(r, *sp.tensor, images_[sp.held(f).tensor->id.value], page.values, range.begin,
                  std::min(range.size(), page.elements));
  }
  if (store.entered - store.left == store.under_way.size()) {
    // Grows to the most pages under way, then never again; the ring is laid out anew from the oldest.
    std::vector<PageHeader> larger(std::max<std::size_t>(4, store.under_way.size() * 2));
    for (std::uint64_t i = store.left; i < store.entered; ++i)
      larger[i % larger.size()] = store.under_way[i % store.under_way.size()];
    store.under_way = std::move(larger);
  }
  store.under_way[store.entered++ % store.under_way.size()] = kept;

  claim(s, f);
  Pmu::Access out = c_.pmus[pmu].read(laws_.pmu, now_, kept.bytes);
  out.last = std::max(out.last, out.first + by_lanes(range.size(), sp.store->lanes));
  // The address generator is done with the page when its last element has been read; the page makes room when it has
  // left. So many may be on their way as the buffer has places.
  started(s, std::max<Cycles>(out.last - laws_.pmu.access - now_, 1) + late(s));
  s.cause = StallCause::input_starvation;
  if (c_.network.flits() != nullptr) {
    c_.network.post(store.route, message(FlitMessage::What::store, stage, kept.bytes, 1), out.first, out.last,
                    kept.bytes);
  } else {
    const Cycle left = c_.network.send(store.route, out.first, out.last, kept.bytes);
    const Cycle tail = c_.network.tail(store.route, 0);
    const Cycles streaming = laws_.agcu.port.span(kept.bytes).ceil();
    s.last_transit =
        std::max({s.last_transit, c_.network.head(store.route, 0), tail - std::min(tail, streaming), now_ + 1});
    put(s.last_transit, transit, stage);
    put(std::max(left, s.since), read_done, stage);
  }
  // The next firing, where it could start but for the engine.
  if (s.next == s.total) return;
  if (const auto why = blocked(s)) {
    s.cause = *why;
  } else {
    wait_for_engine(stage);
  }
}

// A page is whole at the place of its AGCU, where the host's registers are.
void Chip::come_to_host(std::uint32_t stage, Cycle tail) {
  StageState& s = c_.stages[stage];
  ++c_.stores[s.detail].written;
  s.last_complete = std::max({s.last_complete, tail, now_ + 1});
  put(s.last_complete, completed, stage);
}

void Chip::grant_write(std::uint32_t stage) {
  StageState& s = c_.stages[stage];
  const StageSpec& sp = spec(s);
  StoreState& store = c_.stores[s.detail];
  const std::uint64_t f = store.written++;
  const PageHeader& page = store.under_way[f % store.under_way.size()];
  const MemoryUse use = use_memory(store.memory, sp.tensor->space, page, true);
  c_.agcus[store.agcu].unit.writes(laws_.agcu, now_, use.begin, use.end, page.bytes);
  // Stored is what the memory has acknowledged.
  s.last_complete = std::max(s.last_complete, std::max(use.end, now_ + 1) + laws_.agcu.latency);
  put(s.last_complete, completed, stage);
}

void Chip::run_compute(std::uint32_t stage, FiringTime time) {
  StageState& s = c_.stages[stage];
  // Operands stream through the read ports while the unit works: the firing keeps it until both are done.
  Cycles busy = std::max(time.busy, Cycles{1});
  for (const UnitBytes& m : moved_)
    busy = std::max(busy, c_.pmus[m.pmu].read(laws_.pmu, now_, m.bytes).last - laws_.pmu.access - now_);
  busy += late(s);
  const Cycle first = now_ + time.latency + laws_.pmu.access, last = first + busy;
  Cycle written_from = last;
  if (time.streams) {
    const Cycles writing = laws_.pmu.write.span(bytes_made(s)).ceil();
    written_from = std::max(first, last - std::min(last, writing));
  }
  s.last_transit = std::max(s.last_transit, written_from);
  put(s.last_transit, transit, stage);
  started(s, busy);
  s.cause = StallCause::input_starvation;
  c_.engines[s.engine].wake = true;
  put(now_ + busy, read_done, stage);
}

}  // namespace rdusim
