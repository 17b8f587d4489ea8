#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "traces/event_log.h"
#include "traces/event_log_blocks.h"

namespace rdusim {

namespace {

// Contributions that the multisets of a log may have together: more than any machine's run has, and memory has an end.
constexpr std::uint64_t most_contributions = std::uint64_t{1} << 24;
// Elements of an operand along an axis, cycles, bytes: sums of two of them do not overflow.
constexpr std::uint64_t largest = std::uint64_t{1} << 62U;

bool sane(const PageTag& t) {
  return t.row < largest && t.col < largest && t.chunk < std::max(t.chunks, 1U);
}

}  // namespace

EventLogReader::EventLogReader(FileReader file, std::string name)
    : file_(std::move(file)), name_(std::move(name)), provenance_(std::make_unique<ProvenanceTable>()) {}

Diagnostics EventLogReader::malformed(const std::string& why) const {
  Diagnostics d;
  d.error(Code::RDU8013, name_, "{}", why);
  return d;
}

// Nothing at the end of the file. A block that the end cuts off has what there is of it.
Result<std::optional<EventLogReader::Block>> EventLogReader::next() {
  Block b;
  b.offset = file_.position();
  char header[log_block::header_bytes];
  const std::size_t got = file_.read(header, sizeof header);
  if (got == 0) return std::optional<Block>();
  if (got < sizeof header) {
    b.cut = true;
    return std::optional<Block>(std::move(b));
  }
  WireReader in({header, sizeof header});
  b.type = static_cast<std::uint32_t>(in.fixed(4));
  const std::uint64_t length = in.fixed(4);
  b.records = static_cast<std::uint32_t>(in.fixed(4));
  const std::uint64_t sum = in.fixed(8);
  if (length > log_block::longest_payload)
    return malformed(fmt::format("the block at byte {} says that it has {} bytes", b.offset, length));
  // Memory follows what is there, not what the header says.
  while (b.payload.size() < length && !b.cut) {
    const std::size_t had = b.payload.size();
    const std::size_t part = std::min<std::uint64_t>(length - had, log_block::part_bytes);
    b.payload.resize(had + part);
    const std::size_t more = file_.read(b.payload.data() + had, part);
    b.payload.resize(had + more);
    b.cut = more < part;
  }
  if (!b.cut && log_block::sum_of(b.type, b.records, b.payload) != sum) {
    Diagnostics d;
    d.error(Code::RDU8012, name_, "the block at byte {} does not have its checksum", b.offset);
    return d;
  }
  return std::optional<Block>(std::move(b));
}

Result<EventLogReader> EventLogReader::open(const std::string& path) {
  auto file = FileReader::open(path);
  if (!file) return file.diagnostics();
  EventLogReader r(std::move(file).value(), path == "-" ? "standard input" : path);
  char start[12];
  const std::size_t got = r.file_.read(start, sizeof start);
  Diagnostics d;
  if (got < log_block::magic.size() || std::string_view(start, log_block::magic.size()) != log_block::magic) {
    d.error(Code::RDU8010, r.name_, "it does not start as an event log does");
    return d;
  }
  WireReader in({start + log_block::magic.size(), got - log_block::magic.size()});
  const std::uint64_t version = in.fixed(4);
  if (in.failed()) return r.malformed("it ends within its first 12 bytes");
  if (version != event_log_version) {
    d.error(Code::RDU8011, r.name_, "it is an event log of version {}, and this rdusim reads version {}", version,
            event_log_version);
    return d;
  }
  auto first = r.next();
  if (!first) return first.diagnostics();
  if (!*first || (*first)->cut || (*first)->type != log_block::head)
    return r.malformed("it ends before the units that it is about are listed");
  WireReader head((*first)->payload);
  r.head_.rdusim = head.text();
  r.head_.run = head.text();
  r.head_.filter = head.text();
  auto roster = decode_roster(head.text());
  if (head.failed() || !head.done() || !roster) return r.malformed("the list of its units is malformed");
  r.roster_ = std::make_unique<Roster>(std::move(*roster));
  r.model_ = std::make_unique<EventModel>(*r.roster_);
  return r;
}

bool EventLogReader::define(WireReader& in) {
  const std::size_t n = in.count(3);
  contributions_ += n;
  if (n == 0 || contributions_ > most_contributions) return false;
  std::vector<Contribution> set;
  set.reserve(n);
  std::uint64_t chip = 0, k = 0;
  for (std::size_t i = 0; i < n; ++i) {
    chip += unzigzag(in.varint());
    k += unzigzag(in.varint());
    const std::uint64_t end = k + unzigzag(in.varint());
    if (chip >= roster_->chips) return false;
    set.push_back({ChipId{chip}, k, end});
    k = end;
  }
  if (in.failed() || !std::is_sorted(set.begin(), set.end())) return false;
  locals_.push_back(provenance_->intern(std::move(set)));
  return true;
}

template <class E>
bool EventLogReader::take(WireReader& in, std::uint8_t head, EventSink& sink, const LogWindow& window, LogEnd& end) {
  E e{};
  e.at = last_;
  if ((head & head_same_time) == 0) {
    e.at += in.varint();
    if (e.at < last_ || e.at >= largest) return false;
  }
  std::uint32_t& expected = model_->next_subject(kind_of_event<E>);
  std::uint64_t who = expected;
  if ((head & head_next_subject) == 0) who += unzigzag(in.varint());
  if (who >= subjects(*roster_, subject_of<E>()) || in.failed()) return false;
  constexpr std::size_t n = field_count<E>;
  EventContext<E>& context = model_->context<E>(static_cast<std::uint32_t>(who));
  EventFields<E> read = model_->expected(context);
  if ((head & head_as_expected) == 0) {
    const std::uint64_t different = in.varint();
    if constexpr (n < 64)
      if (different >> n != 0) return false;
    for (std::uint64_t bits = different; bits != 0; bits &= bits - 1)
      read[std::countr_zero(bits)] += unzigzag(in.varint());
  }
  model_->follow(context, read);
  if (in.failed()) return false;

  std::size_t f = 0;
  bool fits = true;
  each_field(e, [&](auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    const std::uint64_t value = read[f++];
    if constexpr (std::is_same_v<Field, StallCause>) {
      fits = fits && value < stall_causes;
      field = static_cast<StallCause>(value);
    } else if constexpr (std::is_same_v<Field, bool>) {
      fits = fits && value < 2;
      field = value != 0;
    } else {
      fits = fits && value <= std::numeric_limits<Field>::max();
      field = static_cast<Field>(value);
    }
  });
  const auto tag = [&](PageTag& t) {
    fits = fits && t.provenance <= locals_.size() && roster_->has(t.operand) && sane(t);
    if (fits && t.provenance != 0) t.provenance = locals_[t.provenance - 1];
  };
  if constexpr (requires { e.tag; }) tag(e.tag);
  if constexpr (requires { e.a; }) {
    tag(e.a);
    tag(e.b);
  }
  if constexpr (requires { e.held; }) {
    tag(e.held);
    tag(e.added);
    tag(e.sum);
  }
  if constexpr (requires { e.begin; }) {
    fits = fits && e.begin < largest && e.end < largest;
    e.begin += e.at;
    e.end += e.begin;
  }
  if constexpr (requires { e.tensor; }) fits = fits && e.tensor.value < roster_->tensors.size();
  if constexpr (requires { e.busy; }) fits = fits && e.busy < largest && e.stall <= e.at;
  if (!fits) return false;
  set_subject(e, static_cast<std::uint32_t>(who), *roster_);
  if constexpr (requires { e.consumer; })
    if (e.consumer >= roster_->buffers[e.buffer.buffer.value].consumers()) return false;
  expected = static_cast<std::uint32_t>(who) + 1;
  last_ = e.at;
  if (e.at >= window.from && e.at <= window.to) {
    sink.on(e);
    ++end.events;
    end.last = e.at;
  }
  return true;
}

// False where the block is malformed: or, of one that was cut, at the first event that is not whole.
bool EventLogReader::take_events(const Block& b, EventSink& sink, const LogWindow& window, LogEnd& end) {
  WireReader in(b.payload);
  const std::uint8_t flags = in.byte();
  const Cycle first = in.varint();
  if (in.failed() || flags > log_block::begins_anew || first >= largest) return false;
  if (flags == log_block::begins_anew) {
    model_->forget();
    locals_.clear();
  } else if (!started_) {
    return false;
  }
  if (started_ && first < last_) return false;
  started_ = true;
  last_ = first;
  std::uint32_t records = 0;
  while (!in.done()) {
    const std::uint8_t head = in.byte();
    bool good = false;
    switch (head & head_kind) {
      case define_provenance:
        if (!define(in)) return false;
        continue;
#define RDU_TAKE(Event)                              \
  case static_cast<std::uint8_t>(EventKind::Event):  \
    good = take<Event>(in, head, sink, window, end); \
    break;
        RDU_EVENTS(RDU_TAKE)
#undef RDU_TAKE
      default:
        break;
    }
    if (!good) return false;
    ++records;
  }
  return b.cut || records == b.records;
}

// Offset of the last block before `cycle` that begins anew; `first`, that of the first block of events, where there is
// no index. Moves the file.
std::uint64_t EventLogReader::restart_before(Cycle cycle, std::uint64_t first) {
  const auto size = file_.size();
  char tail[log_block::tail_bytes];
  if (!size || *size < first + sizeof tail || !file_.seek(*size - sizeof tail)) return first;
  if (file_.read(tail, sizeof tail) != sizeof tail) return first;
  WireReader in({tail, sizeof tail});
  const std::uint64_t index_at = in.fixed(8);
  if (in.bytes(8) != log_block::tail_magic || index_at < first || index_at >= *size || !file_.seek(index_at))
    return first;
  const auto block = next();
  if (!block || !*block || (*block)->type != log_block::index || (*block)->cut) return first;
  WireReader list((*block)->payload);
  list.varint();  // where the end is
  const std::size_t n = list.count(3);
  std::uint64_t offset = 0, found = first;
  Cycle at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    offset += list.varint();
    at += list.varint();
    list.varint();
    if (at >= cycle || list.failed()) break;
    found = offset;
  }
  return found >= first && found < index_at ? found : first;
}

Result<std::string> EventLogReader::program() {
  constexpr std::size_t most = std::size_t{1} << 31;
  std::string bytes;
  for (;;) {
    auto block = next();
    if (!block) return block.diagnostics();
    if (!*block || ((*block)->type == log_block::program && (*block)->cut)) {
      Diagnostics d;
      d.error(Code::RDU8014, name_, "the log is cut in its program, before byte {}: nothing of the run is there",
              file_.position());
      return d;
    }
    if ((*block)->type != log_block::program) {
      pending_ = std::move(block).value();
      return bytes;
    }
    if (bytes.size() + (*block)->payload.size() > most) return malformed("its program has more than 2 GiB");
    bytes += (*block)->payload;
  }
}

Result<LogEnd> EventLogReader::read(EventSink& sink, const LogWindow& window) {
  LogEnd end;
  const auto cut = [&](std::uint64_t offset) {
    Diagnostic& d = end.notes.warning(Code::RDU8014, name_,
                                      "the log is cut in its block at byte {}: {} events were read, up to cycle {}",
                                      offset, end.events, end.last);
    d.suggest("what was read up to the cut stands; trace the run again for the rest");
  };
  const auto partial = [&](const std::string& what) {
    end.notes.warning(Code::RDU8015, name_, "{}: the answer is about what it has", what);
  };
  bool first = true;
  for (;;) {
    auto block = pending_ ? Result<std::optional<Block>>(std::exchange(pending_, std::nullopt)) : next();
    if (!block) return block.diagnostics();
    if (!*block) {
      cut(file_.position());
      return end;
    }
    Block& b = **block;
    if (b.cut && b.type != log_block::events) {
      cut(b.offset);
      return end;
    }
    if (b.type == log_block::program && !started_) continue;
    if (b.type == log_block::events) {
      if (first && window.from > 0 && file_.size()) {
        const std::uint64_t here = file_.position();
        const std::uint64_t start = restart_before(window.from, b.offset);
        file_.seek(start > b.offset ? start : here);
        if (start > b.offset) b = Block();
      }
      if (std::exchange(first, false) && b.payload.empty() && !b.cut) continue;
      if (!take_events(b, sink, window, end)) {
        if (!b.cut) return malformed(fmt::format("the events of the block at byte {} are malformed", b.offset));
      }
      if (b.cut) {
        cut(b.offset);
        return end;
      }
      if (last_ > window.to) {
        end.beyond = true;
        if (!head_.filter.empty()) partial(fmt::format("the log keeps only {}", head_.filter));
        return end;
      }
      continue;
    }
    if (b.type != log_block::end) return malformed(fmt::format("the block at byte {} is of no known type", b.offset));
    WireReader in(b.payload);
    TraceEnd t;
    t.reason = in.text();
    t.cycles = in.varint();
    const std::size_t kinds = in.count();
    for (std::size_t i = 0; i < kinds; ++i) {
      const std::uint64_t n = in.varint();
      if (i < event_kinds) end.counts[i] = n;
    }
    end.dropped = {in.varint(), in.varint(), in.varint()};
    t.outcome = in.text();
    if (in.failed() || !in.done()) return malformed("how the run ended is malformed");
    if (end.dropped.total() != 0)
      partial(fmt::format("{} events were left out of it: {} by a filter, {} by a window, {} by a limit",
                          with_commas(end.dropped.total()), with_commas(end.dropped.filter),
                          with_commas(end.dropped.window), with_commas(end.dropped.limit)));
    if (t.cut()) partial("the log that it was made of was cut");
    end.end = std::move(t);
    return end;
  }
}

}  // namespace rdusim
