#include "models/systemc/divided_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "compiler/ir/trips.h"

namespace rdusim {
namespace {

double seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

template <class T>
std::span<const std::byte> bytes_of_value(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// Tensors that stages on these chips store to, by id.
std::set<TensorId> stored_on(const SpatialProgram& p, const Block& block) {
  std::set<TensorId> tensors;
  for (const Stage& s : p.stages) {
    const auto* store = std::get_if<Store>(&s.kind);
    const std::uint32_t chip = p.chip_of(s).value;
    if (store == nullptr || chip < block.begin || chip >= block.end) continue;
    tensors.insert(store->tensor);
    tensors.insert(store->later.begin(), store->later.end());
  }
  return tensors;
}

}  // namespace

DividedRun::DividedRun(MachineParts parts, Crew& crew) : m_(std::move(parts)), crew_(crew) {
  std::vector<std::uint64_t> work = work_of(m_.program);
  work.resize(m_.chips.size());
  // Processes that would have no chip are there, and have nothing to do.
  const auto busy = static_cast<std::uint32_t>(work.size() - std::count(work.begin(), work.end(), 0)) + 1;
  blocks_ = divide(work, std::min(crew.size(), busy), m_.recording ? listening_share : 0);
  blocks_.resize(crew.size(), {blocks_.back().end, blocks_.back().end});
  owner_.resize(m_.chips.size());
  for (std::uint32_t rank = 0; rank < crew.size(); ++rank)
    std::fill(owner_.begin() + blocks_[rank].begin, owner_.begin() + blocks_[rank].end, rank);
  out_.resize(crew.size());
  in_.resize(crew.size());
  work_.rank = crew.rank();
  work_.first_chip = blocks_[crew.rank()].begin;
  for (std::uint32_t i = blocks_[crew.rank()].begin; i < blocks_[crew.rank()].end; ++i)
    if (m_.chips[i]) ++work_.chips;
  frames_.resize(crew.size());
  ids_.assign(crew.size(), {0});
  pages_.resize(crew.size());
  recorded_.resize(m_.chips.size());
  for (std::uint32_t i = 0; i < m_.chips.size(); ++i)
    if (m_.chips[i])
      m_.chips[i]->tell_to(nullptr, m_.recording && mine(i) ? &recorded_[i] : nullptr, m_.options.bursts);
}

MachineOutcome DividedRun::run() {
  if (listens()) begin_section(0);
  if (simulates(crew_.rank())) simulate();
  if (!listens()) {
    crew_.mail().leave();
    return {};
  }
  wait_until([&] { return ended_; });
  if (asked_to_stop() && !ended_) end(MachineOutcome::End::stopped, m_.told);
  if (outcome_.lost) return std::move(outcome_);
  if (outcome_.end == MachineOutcome::End::stopped) crew_.mail().order_stop();
  crew_.mail().leave();
  outcome_.processes.push_back(work_);
  std::sort(outcome_.processes.begin(), outcome_.processes.end(),
            [](const ProcessWork& a, const ProcessWork& b) { return a.rank < b.rank; });
  return std::move(outcome_);
}

template <class Done>
bool DividedRun::wait_until(Done&& done) {
  Mail& mail = crew_.mail();
  while (true) {
    const std::uint32_t seen = mail.news();
    mail.pump();
    if (mail.stop_ordered()) return false;
    // Before what is waited for: who listened may have been told to stop meanwhile, and no window is begun after that.
    if (listens() && ended_) return false;
    if (done()) return true;
    if (listens()) {
      seen_ = seen;
      if (listen()) continue;
      if (ended_ || asked_to_stop()) return false;
    }
    const auto began = Clock::now();
    mail.wait(seen);
    work_.wait_seconds += seconds(Clock::now() - began);
    if (!listens()) continue;
    if (auto how = crew_.lost()) {
      lose(*std::move(how));
      return false;
    }
  }
}

// ---- chips

bool DividedRun::simulate() {
  Cycle now = 0;
  std::optional<SectionId> stuck;
  bool goes_on = true;
  for (const Section& section : m_.program.sections)
    for (std::uint64_t trip = 0; goes_on && trip < launches_of(section); ++trip) {
      const Cycle start = start_after(now);
      goes_on = !beyond_limit(start);
      if (!goes_on) break;
      for (std::uint32_t i = blocks_[crew_.rank()].begin; i < blocks_[crew_.rank()].end; ++i) {
        if (!m_.chips[i]) continue;
        m_.chips[i]->start_section(section.id, trip, start);
        if (const auto next = m_.chips[i]->next()) m_.expect(i, *next);
      }
      m_.progress.last = m_.progress.window_start = m_.progress.window_end = start;
      bool finished = false, beyond = false;
      if (!simulate_section(section.id, now, finished, beyond)) return false;
      goes_on = finished && !beyond;
      if (!finished && !beyond) stuck = section.id;
    }
  tell_last(stuck);
  return true;
}

bool DividedRun::simulate_section(SectionId section, Cycle& now, bool& finished, bool& beyond) {
  RunProgress& p = m_.progress;
  while (true) {
    const auto agreed = agree(section);
    if (!agreed) return false;
    if (agreed->least == WindowOut::never || beyond_limit(agreed->least)) {
      now = agreed->last;
      finished = agreed->finished;
      beyond = agreed->least != WindowOut::never;
      tell_section(*agreed, beyond);
      return true;
    }
    const Cycle end = p.window_start + ((agreed->least - p.window_start) / p.window + 1) * p.window;
    const auto began = Clock::now();
    m_.run_window(end);
    work_.work_seconds += seconds(Clock::now() - began);
    ++work_.windows;
    if (p.stopped) return false;
    tell_window();
  }
}

// What everybody has to do next, and what was sent; the same in every process that has chips.
std::optional<DividedRun::Agreed> DividedRun::agree(SectionId section) {
  const std::uint32_t me = crew_.rank();
  Agreed agreed{WindowOut::never, m_.progress.last, true};
  for (std::uint32_t i = blocks_[me].begin; i < blocks_[me].end; ++i) {
    if (!m_.chips[i]) continue;
    if (const auto next = m_.chips[i]->next()) agreed.least = std::min(agreed.least, *next);
  }
  if (agreed.least == WindowOut::never)
    for (std::uint32_t i = blocks_[me].begin; i < blocks_[me].end; ++i)
      agreed.finished = agreed.finished && (!m_.chips[i] || m_.chips[i]->finished(section));
  for (const WindowOut& out : out_) agreed.least = std::min(agreed.least, out.least());
  for (std::uint32_t to = 0; to < crew_.size(); ++to) {
    if (to == me || !simulates(to)) continue;
    const WindowHead head{agreed.least, agreed.last, agreed.finished, out_[to].set_bytes()};
    const auto parts = out_[to].parts();
    const std::span<const std::byte> all[] = {bytes_of_value(head), parts[0], parts[1]};
    crew_.mail().send(to, Mail::mail, all);
    out_[to].clear();
  }
  std::uint32_t from = 0;
  const bool all = wait_until([&] {
    for (; from < crew_.size(); ++from)
      if (from != me && simulates(from) && !take_mail(from, agreed)) return false;
    // Nor does anybody run on before what he has recorded is on its way.
    return !crew_.mail().unsent();
  });
  if (!all) return std::nullopt;
  // What is listened to lies far behind: it comes first.
  constexpr std::size_t most_words = std::size_t{1} << 21;
  if (listens() && own_words_ > most_words && !wait_until([&] { return own_words_ <= most_words; }))
    return std::nullopt;
  return agreed;
}

bool DividedRun::take_mail(std::uint32_t from, Agreed& agreed) {
  if (!crew_.mail().receive(from, Mail::mail, bytes_)) return false;
  Taker taker(bytes_);
  const auto head = taker.take<WindowHead>();
  const auto sets = taker.take(head.set_bytes);
  const std::size_t left = bytes_.size() - sizeof(WindowHead) - sets.size();
  in_[from].read(sets, taker.take(left), m_.provenance, m_.chips, m_.expect);
  agreed.least = std::min(agreed.least, head.least);
  agreed.last = std::max(agreed.last, head.last);
  agreed.finished = agreed.finished && head.finished;
  return true;
}

// ---- what process 0 is told

void DividedRun::send_frame(FrameHead head, const std::vector<std::span<const std::byte>>& parts) {
  Bits sets;
  for (; sets_told_ < m_.provenance.size(); ++sets_told_) put_set(sets, m_.provenance.contributions(sets_told_));
  head.set_bytes = sets.size();
  std::vector<std::span<const std::byte>> all{bytes_of_value(head), sets};
  all.insert(all.end(), parts.begin(), parts.end());
  crew_.mail().send(0, Mail::records, all);
}

void DividedRun::tell_window() {
  const Block& block = blocks_[crew_.rank()];
  FrameHead head;
  head.kind = Kind::window;
  head.end = m_.progress.window_end;
  head.activations = m_.progress.activations - activations_told_;
  activations_told_ = m_.progress.activations;
  for (std::uint32_t i = block.begin; i < block.end; ++i)
    if (m_.chips[i]) head.pages += m_.chips[i]->pages_pushed();
  Frame frame{head, {}, {}};
  if (m_.recording) {
    for (std::uint32_t i = block.begin; i < block.end; ++i) {
      if (!m_.chips[i] || recorded_[i].empty()) continue;
      if (listens()) {
        // It may be long until it is listened to.
        frame.chips.emplace_back(i, recorded_[i].packed());
        recorded_[i].clear();
      } else {
        frame.chips.emplace_back(i, spare());
        std::swap(recorded_[i], frame.chips.back().second);
      }
    }
  }
  frame.head.chips = static_cast<std::uint32_t>(frame.chips.size());
  if (listens()) {
    for (const auto& [chip, record] : frame.chips) own_words_ += record.words().size();
    own_.push_back(std::move(frame));
    return;
  }
  std::vector<std::array<std::uint64_t, 2>> heads;
  for (const auto& [chip, record] : frame.chips) heads.push_back({chip, record.words().size()});
  std::vector<std::span<const std::byte>> parts;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    parts.push_back(std::as_bytes(std::span(heads[i])));
    parts.push_back(std::as_bytes(frame.chips[i].second.words()));
  }
  send_frame(frame.head, parts);
  for (auto& [chip, record] : frame.chips) put_aside(std::move(record));
}

EventRecord DividedRun::spare() {
  if (spare_.empty()) return {};
  EventRecord record = std::move(spare_.back());
  spare_.pop_back();
  return record;
}

void DividedRun::put_aside(EventRecord record) {
  record.clear();
  if (spare_.size() >= m_.chips.size()) return;
  spare_.push_back(std::move(record));
}

void DividedRun::tell_section(const Agreed& agreed, bool beyond) {
  FrameHead head;
  head.kind = Kind::section;
  head.last = agreed.last;
  head.finished = agreed.finished;
  head.beyond = beyond;
  if (listens()) {
    own_.push_back({head, {}, {}});
  } else {
    send_frame(head, {});
  }
}

void DividedRun::tell_last(std::optional<SectionId> stuck) {
  const Block& block = blocks_[crew_.rank()];
  std::vector<Waiting> waiting;
  std::uint64_t pages = 0, traversals = 0;
  for (std::uint32_t i = block.begin; i < block.end; ++i) {
    if (!m_.chips[i]) continue;
    if (stuck) m_.chips[i]->waiting(*stuck, waiting);
    pages += m_.chips[i]->pages_pushed();
    traversals += m_.chips[i]->traversals();
  }
  Bits rest;
  put(rest, work_);
  put(rest, pages);
  put(rest, traversals);
  put(rest, std::uint64_t{waiting.size()});
  for (const Waiting& w : waiting) put(rest, w);
  FrameHead head;
  head.kind = Kind::last;
  if (listens()) {
    own_.push_back({head, {}, std::move(rest)});
    return;
  }
  const std::set<TensorId> stored = m_.options.values ? stored_on(m_.program, block) : std::set<TensorId>();
  std::vector<std::array<std::uint64_t, 2>> heads;
  for (const TensorId t : stored) heads.push_back({t.value, m_.images[t.value].size()});
  std::vector<std::span<const std::byte>> parts{rest};
  for (const auto& h : heads) {
    parts.push_back(std::as_bytes(std::span(h)));
    parts.push_back(m_.images[h[0]]);
  }
  send_frame(head, parts);
}

}  // namespace rdusim
