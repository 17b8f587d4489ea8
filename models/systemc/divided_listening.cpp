// The listening of process 0, for a run whose chips are divided.
#include <algorithm>
#include <chrono>

#include "compiler/ir/trips.h"
#include "models/systemc/divided_run.h"

namespace rdusim {

// One step: a frame of every process that has chips. False where one has not come yet.
bool DividedRun::listen() {
  if (ended_) return false;
  const auto began = Clock::now();
  if (hearing_) {
    hear_on();
    outcome_.listening_seconds += std::chrono::duration<double>(Clock::now() - began).count();
    return true;
  }
  for (std::uint32_t from = 0; from < crew_.size(); ++from)
    if (simulates(from) && !frames_[from] && !next_frame(from)) return false;
  std::optional<Kind> kind;
  for (const auto& f : frames_)
    if (f) kind = f->head.kind;
  if (!kind || ended_) return false;
  switch (*kind) {
    case Kind::window:
      hear_window();
      break;
    case Kind::section:
      hear_section();
      break;
    case Kind::last:
      hear_last();
      break;
  }
  if (!hearing_)
    for (auto& f : frames_) f.reset();
  outcome_.listening_seconds += std::chrono::duration<double>(Clock::now() - began).count();
  return true;
}

bool DividedRun::next_frame(std::uint32_t from) {
  if (from == crew_.rank()) {
    if (own_.empty()) return false;
    frames_[from] = std::move(own_.front());
    own_.pop_front();
    for (const auto& [chip, record] : frames_[from]->chips) own_words_ -= record.words().size();
    return true;
  }
  if (!crew_.mail().receive(from, Mail::records, bytes_)) return false;
  Frame frame;
  if (!read_frame(from, bytes_, frame)) {
    lose("a process sent what is no frame");
    return false;
  }
  frames_[from] = std::move(frame);
  return true;
}

bool DividedRun::read_frame(std::uint32_t from, std::span<const std::byte> bytes, Frame& frame) {
  Taker taker(bytes);
  frame.head = taker.take<FrameHead>();
  Taker sets(taker.take(frame.head.set_bytes));
  while (!sets.empty() && sets.good()) ids_[from].push_back(m_.provenance.intern(take_set(sets)));
  for (std::uint32_t n = frame.head.chips; n > 0; --n) {
    const auto head = taker.take<std::array<std::uint64_t, 2>>();
    if (head[0] >= m_.chips.size() || head[1] >> 60U != 0) return false;
    frame.chips.emplace_back(static_cast<std::uint32_t>(head[0]), spare());
    if (!frame.chips.back().second.read(taker.take(head[1] * sizeof(std::uint64_t)), ids_[from])) return false;
  }
  if (frame.head.kind == Kind::last) {
    std::size_t used = sizeof(FrameHead) + frame.head.set_bytes;
    frame.rest.assign(bytes.begin() + static_cast<std::ptrdiff_t>(std::min(used, bytes.size())), bytes.end());
  }
  return taker.good() && sets.good();
}

void DividedRun::begin_section(Cycle now) {
  if (section_ == m_.program.sections.size()) {
    outcome_.end = MachineOutcome::End::finished;
    outcome_.cycles = now;
    closing_ = true;
    return;
  }
  const Cycle start = start_after(now);
  if (beyond_limit(start)) {
    outcome_.end = MachineOutcome::End::max_cycles;
    outcome_.cycles = *m_.options.max_cycles;
    closing_ = true;
    return;
  }
  m_.sink.on(SectionStarted{start, m_.program.sections[section_].id});
}

void DividedRun::hear_window() {
  std::uint64_t pages = 0;
  Cycle window_end = 0;
  for (std::uint32_t from = 0; from < crew_.size(); ++from) {
    if (!frames_[from]) continue;
    Frame& f = *frames_[from];
    outcome_.activations += f.head.activations;
    pages += f.head.pages;
    for (auto& [chip, record] : f.chips) std::swap(m_.records[chip], record);
    window_end = f.head.end;
  }
  if (m_.options.pages != nullptr) m_.options.pages->store(pages, std::memory_order_relaxed);
  if (!m_.recording) {
    if (asked_to_stop()) end(MachineOutcome::End::stopped, m_.told);
    return;
  }
  m_.put_in_order(window_end);
  hear_on();
}

// From where it was left, until something comes or the window is over.
void DividedRun::hear_on() {
  hearing_ = !m_.hand_on([&] { return crew_.mail().news() != seen_; });
  if (hearing_) return;
  if (m_.progress.stopped) {
    end(MachineOutcome::End::stopped, m_.told);
    return;
  }
  for (auto& frame : frames_) {
    if (!frame) continue;
    for (auto& [chip, record] : frame->chips) {
      std::swap(m_.records[chip], record);
      put_aside(std::move(record));
    }
    frame.reset();
  }
}

void DividedRun::hear_section() {
  FrameHead head;
  for (const auto& f : frames_)
    if (f) head = f->head;  // they agreed
  if (head.beyond) {
    outcome_.end = MachineOutcome::End::max_cycles;
    outcome_.cycles = *m_.options.max_cycles;
    closing_ = true;
  } else if (!head.finished) {
    outcome_.end = MachineOutcome::End::quiescent;
    outcome_.cycles = head.last;
    closing_ = true;
  } else {
    m_.sink.on(SectionEnded{head.last, m_.program.sections[section_].id});
    if (++trip_ == launches_of(m_.program.sections[section_])) trip_ = 0, ++section_;
    begin_section(head.last);
  }
}

void DividedRun::hear_last() {
  for (std::uint32_t from = 0; from < crew_.size(); ++from) {
    if (!frames_[from]) continue;
    Taker rest(frames_[from]->rest);
    const auto work = rest.take<ProcessWork>();
    if (from != crew_.rank()) outcome_.processes.push_back(work);
    outcome_.page_handoffs += rest.take<std::uint64_t>();
    outcome_.traversals += rest.take<std::uint64_t>();
    for (auto n = rest.take<std::uint64_t>(); n > 0 && rest.good(); --n)
      outcome_.waiting.push_back(rest.take<Waiting>());
    while (!rest.empty() && rest.good()) {
      const auto head = rest.take<std::array<std::uint64_t, 2>>();
      const auto bytes = rest.take(head[1]);
      if (head[0] < m_.images.size() && m_.images[head[0]].size() == bytes.size())
        std::copy(bytes.begin(), bytes.end(), m_.images[head[0]].begin());
    }
  }
  in_order(outcome_.waiting);
  ended_ = true;
}

void DividedRun::end(MachineOutcome::End how, Cycle at) {
  outcome_.end = how;
  outcome_.cycles = at;
  ended_ = true;
}

void DividedRun::lose(std::string how) {
  end(MachineOutcome::End::stopped, m_.told);
  outcome_.lost = std::move(how);
}

}  // namespace rdusim
