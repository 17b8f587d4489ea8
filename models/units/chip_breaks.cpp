// What faults do: the only source of the chip that nothing but a fault runs.
#include <algorithm>
#include <cstring>
#include <utility>

#include "compiler/ir/access_pattern.h"
#include "models/units/chip.h"

namespace rdusim {
namespace {

constexpr Cycles link_stall = 1 << 12;

// Half of it, in whole elements of any type.
std::uint32_t half(std::uint32_t bytes) {
  return bytes / 16 * 8;
}

// Half as much again, as far as there is room for it.
std::uint32_t longer(std::uint32_t bytes, std::uint32_t room) {
  return std::min(bytes + half(bytes), room);
}

template <class T, class Narrow>
bool narrow_all(std::byte* values, std::uint64_t n, Narrow narrow) {
  bool changed = false;
  for (std::uint64_t i = 0; i < n; ++i) {
    T v;
    std::memcpy(&v, values + i * sizeof v, sizeof v);
    const T w = narrow(v);
    changed = changed || w != v;
    std::memcpy(values + i * sizeof w, &w, sizeof w);
  }
  return changed;
}

}  // namespace

// ---- buffers

void Chip::publish(BufferState& b, std::uint64_t produced) {
  const PageHeader& h = staged_header(b, produced);
  header(b, b.pushed) = h;
  if (laws_.values) std::copy_n(staged_slot(b, produced), std::min(h.bytes, b.slot_bytes), slot(b, b.pushed));
  see(b);
}

// Pages that waited for another buffer's first one come now.
void Chip::push_late(BufferState& b) {
  BufferFaults& f = c_.buffer_faults[b.fault - 1];
  for (; f.late > 0; --f.late) publish(b, f.produced - f.late);
}

void Chip::push_broken(BufferState& b) {
  BufferFaults& f = c_.buffer_faults[b.fault - 1];
  if (!f.before.empty()) {
    const std::vector<std::uint32_t> waiting = std::exchange(f.before, {});
    push_broken(b);
    for (const std::uint32_t other : waiting) push_late(c_.buffers[other]);
    return;
  }
  const std::uint64_t page = f.produced++;
  const std::uint64_t n = page - f.initial;
  PageHeader& made = staged_header(b, page);
  if (f.after && c_.buffers[*f.after].pushed == c_.buffers[*f.after].initial &&
      (f.late > 0 || c_.faults.strikes(FaultKind::collective_order, at(b), n))) {
    ++f.late;
    return;
  }
  if (c_.faults.strikes(FaultKind::page_drop, at(b), n)) return;
  if (laws_.values && made.bytes > 0 && c_.faults.strikes(FaultKind::page_bit_flip, at(b), n))
    *staged_slot(b, page) ^= std::byte{1};
  if (made.bytes > half(made.bytes) && c_.faults.strikes(FaultKind::page_short, at(b), n))
    made.bytes = half(made.bytes);
  if (const std::uint32_t more = longer(made.bytes, b.slot_bytes);
      more > made.bytes && c_.faults.strikes(FaultKind::page_long, at(b), n))
    made.bytes = more;
  if (c_.faults.strikes(FaultKind::page_swap, at(b), n)) {
    f.held = true;
    return;
  }
  if (!(header(b, b.pushed).tag == made.tag) && c_.faults.strikes(FaultKind::page_stale, at(b), n)) {
    see(b);
  } else {
    publish(b, page);
  }
  if (c_.faults.strikes(FaultKind::page_duplicate, at(b), n)) publish(b, page);
  if (f.held) {
    f.held = false;
    publish(b, page - 1);
  }
  if (b.slots < 2 || b.pushed < 2) return;
  overwrite(b);
  swap_halves(b);
}

// Whether somebody has yet to take a page.
bool Chip::unread(const BufferState& b, std::uint64_t page) const {
  for (std::uint32_t i = 0; i < b.consumers; ++i) {
    const ConsumerState& c = c_.consumers[b.first_consumer + i];
    const std::uint64_t taken = c.sender ? c_.senders[c.actor].page + (c_.senders[c.actor].busy ? 1 : 0) : c.claimed;
    if (taken <= page) return true;
  }
  return false;
}

// The page that was pushed last is written over the one before it too, where somebody has yet to read that.
void Chip::overwrite(BufferState& b) {
  const std::uint64_t last = b.pushed - 1;
  if (!unread(b, last - 1) || header(b, last).tag == header(b, last - 1).tag) return;
  if (!c_.faults.strikes(FaultKind::page_overwrite, at(b), last - c_.buffer_faults[b.fault - 1].initial)) return;
  header(b, last - 1) = header(b, last);
  if (laws_.values) std::copy_n(slot(b, last), b.slot_bytes, slot(b, last - 1));
}

// The page that was pushed last and the one before it lie in each other's place.
void Chip::swap_halves(BufferState& b) {
  const std::uint64_t last = b.pushed - 1;
  if (!unread(b, last - 1) || header(b, last).tag == header(b, last - 1).tag) return;
  if (!c_.faults.strikes(FaultKind::half_swap, at(b), last - c_.buffer_faults[b.fault - 1].initial)) return;
  std::swap(header(b, last - 1), header(b, last));
  if (laws_.values) std::swap_ranges(slot(b, last), slot(b, last) + b.slot_bytes, slot(b, last - 1));
}

// Of `pages` that a firing reserves, those that are counted.
std::uint32_t Chip::reserved_of(BufferState& b, std::uint32_t pages) {
  BufferFaults& f = c_.buffer_faults[b.fault - 1];
  std::uint32_t counted = 0;
  for (; pages > 0; --pages)
    counted += c_.faults.copies(FaultKind::reserve_skip, FaultKind::reserve_twice, at(b), f.reserved++);
  return counted;
}

void Chip::lacks_depth(const BufferState& b, std::uint32_t pages) {
  const std::uint64_t missing = c_.buffer_faults[b.fault - 1].missing;
  if (b.reserved + pages <= b.popped + b.depth + missing) c_.faults.strikes(FaultKind::depth_less, at(b), 0);
}

// ---- loads and stores

Chip::Source Chip::broken_source(const StageState& s, std::uint64_t firing) {
  const StageSpec& sp = spec(s);
  const Tensor* own = sp.held(firing).tensor;
  Source source{own, firing % sp.firings};
  const auto region = [&](const Source& from) {
    return page_region(sp.load->pattern, *from.tensor, laws_.native_tile, s.instance, from.page);
  };
  const auto elsewhere = [&](const Source& from) {
    const PageRegion a = region(source), b = region(from);
    return b.comes && (a.whole_row != b.whole_row || a.whole_col != b.whole_col);
  };
  if (const auto* swapped = c_.faults.from(FaultKind::shard_swap, at(s), firing)) {
    const StageSpec& other = laws_.stages[swapped->what.partner->value];
    const Source there{other.tensors.size() > 1 ? other.held(firing).tensor : other.tensor, source.page};
    if (elsewhere(there) && c_.faults.strikes_on(FaultKind::shard_swap, at(s), firing)) return there;
  }
  if (c_.faults.asked(FaultKind::address_bank, at(s), firing)) {
    const Source bank{own, in_next_bank(sp, sp.load->pattern, s.instance, source.page, sp.firings)};
    if (elsewhere(bank) && c_.faults.strikes(FaultKind::address_bank, at(s), firing)) return bank;
  }
  const Source next{own, (source.page + 1) % sp.firings};
  if (elsewhere(next) && c_.faults.strikes(FaultKind::address_page, at(s), firing)) return next;
  for (const StageSpec& other : laws_.stages) {
    if (other.form != StageForm::load || other.tensor->operand != sp.tensor->operand ||
        other.tensor->chip == sp.tensor->chip)
      continue;
    const Source there{other.tensors.size() > 1 ? other.held(firing).tensor : other.tensor, source.page};
    if (!elsewhere(there)) continue;
    return c_.faults.strikes(FaultKind::address_chip, at(s), firing) ? there : source;
  }
  return source;
}

// The page of a trip that lies one memory channel further than `page`: that of the last byte which is touched.
std::uint64_t Chip::in_next_bank(const StageSpec& sp, const AccessPattern& pattern, std::uint32_t instance,
                                 std::uint64_t page, std::uint64_t pages) const {
  const auto region = [&](std::uint64_t n) { return page_region(pattern, *sp.tensor, laws_.native_tile, instance, n); };
  const auto end = [&](const PageRegion& r) {
    return address_of(sp, r, 0) + r.elements() * bytes_of(sp.tensor->dtype);
  };
  Bytes further = 0;
  for (const Memory& m : c_.memories) further = std::max(further, m.interleave());
  const Bytes last = end(region(page)) + further - 1;
  for (std::uint64_t n = 0; n < pages; ++n) {
    const PageRegion r = region(n);
    if (r.comes && address_of(sp, r, 0) <= last && last < end(r)) return n;
  }
  return page;
}

std::uint64_t Chip::broken_place(const StageState& s, std::uint64_t firing, std::uint64_t page) {
  const StageSpec& sp = spec(s);
  const std::uint64_t pages = sp.firings / std::max<std::uint64_t>(sp.store->chunks.size(), 1);
  if (pages < 2) return page;
  const std::uint64_t next = (page + 1) % pages;
  const auto region = [&](std::uint64_t n) {
    return page_region(sp.store->pattern, *sp.tensor, laws_.native_tile, s.instance, n);
  };
  const auto elsewhere = [&](std::uint64_t other) {
    const PageRegion a = region(page), b = region(other);
    return b.comes && (a.whole_row != b.whole_row || a.whole_col != b.whole_col);
  };
  if (c_.faults.asked(FaultKind::address_bank, at(s), firing)) {
    const std::uint64_t bank = in_next_bank(sp, sp.store->pattern, s.instance, page, pages);
    if (elsewhere(bank) && c_.faults.strikes(FaultKind::address_bank, at(s), firing)) return bank;
  }
  return elsewhere(next) && c_.faults.strikes(FaultKind::address_page, at(s), firing) ? next : page;
}

// A page that the tensor's edge has cut gets a row or column of what lies in its place.
void Chip::break_mask(const StageState& s, std::uint64_t firing, PageHeader& h, Bytes most) {
  const StageSpec& sp = spec(s);
  const std::vector<std::uint64_t>& tiles = sp.load->pattern.page_tiles;
  if (tiles.size() < 2) return;
  const auto step = [&](std::size_t axis) { return step_of(sp.load->pattern, tiles.size(), axis, laws_.native_tile); };
  const bool rows = h.tag.rows < tiles[tiles.size() - 2] * step(tiles.size() - 2);
  const bool cols = h.tag.cols < tiles.back() * step(tiles.size() - 1);
  if ((!rows && !cols) || !c_.faults.strikes(FaultKind::mask_wrong, at(s), firing)) return;
  ++(rows ? h.tag.rows : h.tag.cols);
  const std::uint64_t bytes = std::uint64_t{h.tag.rows} * h.tag.cols * bytes_of(sp.tensor->dtype);
  h.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, most));
}

// ---- values

void Chip::narrow(const StageState& s, std::uint64_t firing, DType type, std::byte* values, std::uint64_t n) {
  if (!c_.faults.asked(FaultKind::accumulator_narrow, at(s), firing)) return;
  bool changed = false;
  if (type == DType::int32) {
    changed =
        narrow_all<std::int32_t>(values, n, [](std::int32_t v) { return std::int32_t{static_cast<std::int16_t>(v)}; });
  } else if (type == DType::int64) {
    changed =
        narrow_all<std::int64_t>(values, n, [](std::int64_t v) { return std::int64_t{static_cast<std::int32_t>(v)}; });
  } else if (type == DType::fp32) {  // the bits that bf16 keeps
    changed = narrow_all<std::uint32_t>(values, n, [](std::uint32_t v) { return v & 0xffff0000u; });
  }
  if (changed) c_.faults.strikes(FaultKind::accumulator_narrow, at(s), firing);
}

// ---- crossings

void Chip::arrive_broken(std::uint32_t channel) {
  ReceiveChannel& ch = c_.receive_channels[channel];
  ReceiveState& r = c_.receives[ch.receive];
  ChannelFaults& f = c_.channel_faults[ch.fault - 1];
  BufferState& b = c_.buffers[r.buffer];
  const std::uint64_t n = f.came++;
  const std::uint64_t page = b.initial + n * r.channels + ch.rank;
  PageHeader& h = staged_header(b, page);
  if (laws_.values && h.bytes > 0 && c_.faults.strikes(FaultKind::page_bit_flip, at(ch), n))
    *staged_slot(b, page) ^= std::byte{1};
  if (h.bytes > half(h.bytes) && c_.faults.strikes(FaultKind::page_short, at(ch), n)) h.bytes = half(h.bytes);
  if (const std::uint32_t more = longer(h.bytes, b.slot_bytes);
      more > h.bytes && c_.faults.strikes(FaultKind::page_long, at(ch), n))
    h.bytes = more;
  if (!(header(b, page).tag == h.tag) && c_.faults.strikes(FaultKind::page_stale, at(ch), n)) {
    h = header(b, page);
    if (laws_.values) std::copy_n(slot(b, page), b.slot_bytes, staged_slot(b, page));
  }
  const Bytes flit = c_.network.flit_bytes();
  if (h.bytes > flit && c_.faults.strikes(FaultKind::flit_misroute, at(ch), n))
    h.bytes -= static_cast<std::uint32_t>(flit);
  if (f.under_way > n + 1) interleave(ch, n);
  if (c_.faults.strikes(FaultKind::page_drop, at(ch), n) ||
      (h.bytes <= flit && c_.faults.strikes(FaultKind::flit_misroute, at(ch), n))) {
    // nothing comes
  } else if (f.astray && c_.faults.strikes(FaultKind::page_misroute, at(ch), n)) {
    ReceiveChannel& other = c_.receive_channels[*f.astray];
    ChannelFaults& there = c_.channel_faults[other.fault - 1];
    ChannelFaults::Stray stray{h.tag, h.bytes, {}};
    if (laws_.values) stray.values.assign(staged_slot(b, page), staged_slot(b, page) + h.bytes);
    there.order.push_back({0, there.strays.size()});
    there.strays.push_back(std::move(stray));
    lie_beside(other, h.tag);
    other.arrived = there.order.size();
    touch_stage(c_.receives[other.receive].stage);
  } else if (c_.faults.strikes(FaultKind::page_swap, at(ch), n)) {
    f.held = true;
  } else {
    f.order.push_back({n, std::nullopt});
    lie_beside(ch, h.tag);
    if (c_.faults.strikes(FaultKind::page_duplicate, at(ch), n)) {
      f.order.push_back({n, std::nullopt});
      lie_beside(ch, h.tag);
    }
    if (f.held) f.order.push_back({n - 1, std::nullopt});
    f.held = false;
  }
  ch.arrived = f.order.size();
}

// A page that comes and the next one, which is on its way, have the second halves of each other, and say so.
void Chip::interleave(const ReceiveChannel& ch, std::uint64_t page) {
  const ReceiveState& r = c_.receives[ch.receive];
  const BufferState& b = c_.buffers[r.buffer];
  const std::uint64_t n = b.initial + page * r.channels + ch.rank, next = n + r.channels;
  if (b.slots <= r.channels) return;  // they would lie in one place
  PageHeader& mine = staged_header(b, n);
  PageHeader& other = staged_header(b, next);
  if (mine.tag == other.tag || !c_.faults.strikes(FaultKind::flit_interleave, at(ch), page)) return;
  std::swap(mine.tag, other.tag);
  const std::uint32_t both = std::min(mine.bytes, other.bytes);
  if (laws_.values)
    std::swap_ranges(staged_slot(b, n) + half(both), staged_slot(b, n) + both, staged_slot(b, next) + half(both));
}

// The channel to another chip that a page takes instead: it comes there beside what is due, as if it were the next page.
SendChannel* Chip::misaddressed(const SendChannel& ch, std::uint64_t page) {
  const auto elsewhere = [&](const SendChannel& other) {
    return other.data.remote && !other.unreachable && other.to_chip != ch.to_chip;
  };
  const auto other = std::find_if(c_.send_channels.begin(), c_.send_channels.end(), elsewhere);
  if (!ch.data.remote || other == c_.send_channels.end() || !c_.faults.strikes(FaultKind::page_chip, at(ch), page))
    return nullptr;
  return &*other;
}

// What comes after the last page that a receiver takes lies at the site for ever.
void Chip::lie_beside(const ReceiveChannel& ch, const PageTag& tag) {
  const ReceiveState& r = c_.receives[ch.receive];
  const std::uint64_t pages = (c_.stages[r.stage].total + r.channels - 1 - ch.rank) / r.channels;
  const std::uint64_t last = c_.channel_faults[ch.fault - 1].order.size() - 1;
  if (last >= pages) tell(PageLanded{now_, at(ch), last, tag});
}

// The page that came is not always the one that was due.
void Chip::take_arrival(const ReceiveState& r, const ReceiveChannel& ch, std::uint64_t page) {
  BufferState& b = c_.buffers[r.buffer];
  ChannelFaults::Arrival arrival{page / r.channels, std::nullopt};
  ChannelFaults* f = ch.fault == 0 ? nullptr : &c_.channel_faults[ch.fault - 1];
  if (f != nullptr && arrival.page < f->order.size()) arrival = f->order[arrival.page];
  PageHeader& h = header(b, b.initial + page);
  if (arrival.stray) {
    const ChannelFaults::Stray& stray = f->strays[*arrival.stray];
    h.tag = stray.tag;
    h.bytes = std::min(stray.bytes, b.slot_bytes);
    h.origin = now_;
    if (laws_.values) std::copy_n(stray.values.data(), h.bytes, slot(b, b.initial + page));
    return;
  }
  const std::uint64_t from = b.initial + arrival.page * r.channels + ch.rank;
  h = staged_header(b, from);
  if (laws_.values) std::copy_n(staged_slot(b, from), std::min(h.bytes, b.slot_bytes), slot(b, b.initial + page));
}

// How often a link carries what is offered at `from`; it may do so later.
std::uint32_t Chip::carried(std::uint32_t link, Cycle& from, Bytes size, bool signal) {
  LinkFaults& f = c_.link_faults[link];
  if (!f.faulty) return 1;
  ChipLink& l = c_.links[link];
  const std::uint64_t n = f.transfers++;
  if (c_.faults.strikes(FaultKind::link_stall, l.id(), n)) l.hold(from, link_stall);
  if (c_.faults.strikes(FaultKind::link_retry, l.id(), n)) {
    const ChipLink::Transfer broken = l.send(from, size);
    tell(LinkUsed{now_, l.id(), broken.slot.begin, broken.slot.end, size, signal, true});
    from = broken.arrival + l.latency();  // the other end asks again
  }
  if (c_.faults.down(l.id(), n)) return 0;
  return c_.faults.strikes(FaultKind::link_duplicate, l.id(), n) ? 2 : 1;
}

}  // namespace rdusim
