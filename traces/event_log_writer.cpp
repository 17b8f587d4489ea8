#include <bit>

#include "traces/event_log.h"
#include "traces/event_log_blocks.h"

namespace rdusim {

namespace {

// The longest event: three tags and their numbers, and a new multiset in front of each is flushed apart.
constexpr std::size_t longest_event = 64 * longest_varint;
// Events that are gathered, as words: long enough that what the listeners of a run have in the caches is left alone meanwhile,
// and a batch and all that it is foretold from still fit there.
constexpr std::size_t batch_words = std::size_t{1} << 12;
// What the end, the index and their headers take at most, kept free under a limit.
constexpr std::uint64_t end_bytes = std::uint64_t{1} << 14;

// Which of a tag's fields its provenance is.
constexpr std::size_t provenance_field = [] {
  PageTag tag{};
  tag.provenance = 1;
  tag.rows = tag.cols = tag.chunks = 0;
  std::size_t at = 0, i = 0;
  each_field(tag, [&](const auto& value) {
    if (value == 1) at = i;
    ++i;
  });
  return at;
}();

template <class E>
constexpr std::size_t tag_count = [] {
  E e{};
  std::size_t n = 0;
  each_tag(e, [&n](const char*, const PageTag&) { ++n; });
  return n;
}();

}  // namespace

EventLogWriter::EventLogWriter(FileWriter file, const Roster& roster, TraceScope scope)
    : file_(std::move(file)),
      roster_(roster),
      model_(roster),
      block_(log_block::events_bytes + longest_event),
      at_(block_.data()),
      scope_(std::move(scope)) {}

Result<std::unique_ptr<EventLogWriter>> EventLogWriter::create(const std::string& path, const Roster& roster,
                                                               const LogHead& head, std::string_view program,
                                                               TraceScope scope) {
  auto file = FileWriter::create(path);
  if (!file) return file.diagnostics();
  std::unique_ptr<EventLogWriter> w(new EventLogWriter(std::move(file).value(), roster, std::move(scope)));
  std::string start(log_block::magic);
  put_u32(start, event_log_version);
  w->file_.write(start);
  std::string payload;
  put_text(payload, head.rdusim);
  put_text(payload, head.run);
  put_text(payload, head.filter);
  put_text(payload, encode(roster));
  w->write_block(log_block::head, 0, payload);
  while (!program.empty()) {
    w->write_block(log_block::program, 0, program.substr(0, log_block::part_bytes));
    program.remove_prefix(std::min(program.size(), log_block::part_bytes));
  }
  w->head_ = w->file_.size() + end_bytes;
  return w;
}

void EventLogWriter::write_block(std::uint32_t type, std::uint32_t records, std::string_view payload) {
  std::string header;
  put_u32(header, type);
  put_u32(header, static_cast<std::uint32_t>(payload.size()));
  put_u32(header, records);
  put_u64(header, log_block::sum_of(type, records, payload));
  file_.write(header);
  file_.write(payload);
}

void EventLogWriter::flush() {
  const auto bytes = static_cast<std::size_t>(at_ - block_.data());
  if (records_ != 0) {
    write_block(log_block::events, records_, {reinterpret_cast<const char*>(block_.data()), bytes});
    since_restart_ += bytes;
  }
  at_ = block_.data();
  records_ = 0;
  if (since_restart_ >= log_block::restart_bytes) restart_ = true;
}

void EventLogWriter::begin_block(Cycle at) {
  if (restart_) {
    restart_ = false;
    since_restart_ = 0;
    ++restarts_;
    locals_ = 0;
    model_.forget();
    index_.push_back({file_.size(), at, events_});
    *at_++ = log_block::begins_anew;
  } else {
    *at_++ = 0;
  }
  at_ = put_varint(at_, at);
  last_ = at;
}

// The number that a multiset has in the file since the last restart; defined there where it is new.
inline std::uint64_t EventLogWriter::local(ProvenanceId id) {
  if (id == 0) return 0;
  if (id < local_.size() && local_[id].restart == restarts_) return local_[id].number;
  return define(id);
}

std::uint64_t EventLogWriter::define(ProvenanceId id) {
  if (id >= local_.size()) local_.resize(std::max<std::size_t>(id + std::size_t{1}, local_.size() * 2));
  local_[id] = {restarts_, ++locals_};
  const std::vector<Contribution> set = table_ != nullptr ? table_->contributions(id) : std::vector<Contribution>{};
  const auto used = static_cast<std::size_t>(at_ - block_.data());
  const std::size_t needed = used + (2 + 3 * set.size()) * longest_varint + longest_event;
  if (needed > block_.size()) {
    block_.resize(needed);
    at_ = block_.data() + used;
  }
  *at_++ = define_provenance;
  at_ = put_varint(at_, set.size());
  std::uint64_t chip = 0, k = 0;
  for (const Contribution& c : set) {
    at_ = put_varint(at_, zigzag(c.chip.value - chip));
    at_ = put_varint(at_, zigzag(c.k_begin - k));
    at_ = put_varint(at_, zigzag(c.k_end - c.k_begin));
    chip = c.chip.value;
    k = c.k_end;
  }
  return locals_;
}

// Takes an event down, and asks for what it is foretold from: a batch later that is at hand.
template <class E>
void EventLogWriter::take(const E& e) {
  switch (wanted(e, scope_, roster_)) {
    case Wanted::yes:
      break;
    case Wanted::filtered:
      ++dropped_.filter;
      return;
    case Wanted::outside:
      ++dropped_.window;
      return;
  }
  model_.fetch<E>(subject(e, roster_));
  batch_.add(e);
  if (batch_.words().size() >= batch_words) put_batch();
}

void EventLogWriter::put_batch() {
  struct Put final : EventSink {
    EventLogWriter& w;
    explicit Put(EventLogWriter& writer) : w(writer) {}
#define RDU_PUT(Event)               \
  void on(const Event& e) override { \
    w.put(e);                        \
  }
    RDU_EVENTS(RDU_PUT)
#undef RDU_PUT
  } put(*this);
  batch_.hand_on(put);
  batch_.clear();
}

template <class E>
void EventLogWriter::put(const E& e) {
  if (scope_.limit && bytes() + longest_event + end_bytes > *scope_.limit) {
    ++dropped_.limit;
    return;
  }
  if (records_ == 0) begin_block(e.at);

  constexpr std::size_t n = field_count<E>;
  EventFields<E> field;
  std::size_t i = 0;
  each_field(e, [&](const auto& value) { field[i++] = static_cast<std::uint64_t>(value); });
  if constexpr (requires { e.begin; }) {
    // What is taken from a resource is near the time of the decision.
    field[1] -= field[0];
    field[0] -= e.at;
  }
  // Tags stand behind all other fields.
  each_tag(e, [&, at = n - tag_count<E> * field_count<PageTag>](const char*, const PageTag& tag) mutable {
    field[at + provenance_field] = local(tag.provenance);
    at += field_count<PageTag>;
  });

  const std::uint32_t who = subject(e, roster_);
  EventContext<E>& context = model_.context<E>(who);
  EventFields<E> by = model_.expected(context);
  std::uint64_t any = 0;
  for (std::size_t f = 0; f < n; ++f) {
    by[f] = field[f] - by[f];
    any |= by[f];
  }
  model_.follow(context, field);
  std::uint32_t& expected = model_.next_subject(kind_of_event<E>);
  std::uint8_t head = static_cast<std::uint8_t>(kind_of_event<E>);
  if (e.at == last_) head |= head_same_time;
  if (who == expected) head |= head_next_subject;
  if (any == 0) head |= head_as_expected;
  std::uint8_t* at = at_;
  *at++ = head;
  if (e.at != last_) at = put_varint(at, e.at - last_);
  if (who != expected) at = put_varint(at, zigzag(static_cast<std::uint64_t>(who) - expected));
  if (any != 0) {
    std::uint64_t different = 0;
    for (std::size_t f = 0; f < n; ++f) different |= std::uint64_t{by[f] != 0} << f;
    at = put_varint(at, different);
    for (std::uint64_t bits = different; bits != 0; bits &= bits - 1)
      at = put_varint(at, zigzag(by[std::countr_zero(bits)]));
  }
  at_ = at;
  expected = who + 1;
  last_ = e.at;
  ++records_;
  ++events_;
  ++counts_[static_cast<std::size_t>(kind_of_event<E>)];
  if (at >= block_.data() + log_block::events_bytes) flush();
}

#define RDU_DEFINE(Event)                   \
  void EventLogWriter::on(const Event& e) { \
    take(e);                                \
  }
RDU_EVENTS(RDU_DEFINE)
#undef RDU_DEFINE

Result<TraceSize> EventLogWriter::finish(const TraceEnd& end) {
  put_batch();
  flush();
  TraceSize size;
  size.events = events_;
  dropped_ += end.lost;
  size.dropped = dropped_;
  std::string payload;
  put_text(payload, end.reason);
  put_varint(payload, end.cycles);
  put_varint(payload, counts_.size());
  for (std::uint64_t n : counts_) put_varint(payload, n);
  put_varint(payload, size.dropped.filter);
  put_varint(payload, size.dropped.window);
  put_varint(payload, size.dropped.limit);
  put_text(payload, end.outcome);
  const std::uint64_t end_at = file_.size();
  write_block(log_block::end, 0, payload);
  const std::uint64_t index_at = file_.size();
  payload.clear();
  put_varint(payload, end_at);
  put_varint(payload, index_.size());
  Entry last;
  for (const Entry& e : index_) {
    put_varint(payload, e.offset - last.offset);
    put_varint(payload, e.cycle - last.cycle);
    put_varint(payload, e.before - last.before);
    last = e;
  }
  write_block(log_block::index, 0, payload);
  std::string tail;
  put_u64(tail, index_at);
  tail += log_block::tail_magic;
  file_.write(tail);
  size.bytes = file_.size();
  const auto written = file_.commit();
  if (!written) return written.diagnostics();
  return size;
}

}  // namespace rdusim
