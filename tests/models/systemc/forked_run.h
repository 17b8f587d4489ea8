// Runs a program in a process of its own (SystemC allows one simulation a process) and brings back what a test asks
// about: the outcome, the outputs, and a digest of every event.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "models/systemc/machine.h"
#include "tests/models/systemc/hand_built.h"

namespace rdusim::test {

struct Digest {
  std::uint64_t exact = 0;      // every field of every event in order
  std::uint64_t ordered = 0;    // the same without numbers of provenance sets, which depend on who asked first
  std::uint64_t unordered = 0;  // and without the order
};

// Listens to everything; holds the laws that every run keeps, whatever the program.
class Listener final : public EventSink {
 public:
  enum Kind : std::size_t {
#define RDU_NAME(Event) k##Event,
    RDU_EVENTS(RDU_NAME)
#undef RDU_NAME
        kinds
  };
  std::array<std::uint64_t, kinds> count{};
  Digest digest;
  bool rising = true;     // records came in rising `at`
  bool accounted = true;  // busy and stall of a stage instance never overlap, and start at the section's start
  bool within = true;     // 0 <= popped <= pushed <= reserved <= popped + depth
  Cycle last = 0, section = 0;
  std::array<Cycles, stall_causes> stalled{};

  explicit Listener(const SpatialProgram& p) : p_(p) {}

#define RDU_LISTEN(Event)                         \
  void on(const Event& e) override {              \
    ++count[k##Event];                            \
    rising = rising && e.at >= last;              \
    last = e.at;                                  \
    h_ = k##Event;                                \
    plain_ = k##Event;                            \
    fields(e);                                    \
    digest.exact = mix(digest.exact, h_);         \
    digest.ordered = mix(digest.ordered, plain_); \
    digest.unordered += mix(plain_, 0x1234567);   \
    law(e);                                       \
  }
  RDU_EVENTS(RDU_LISTEN)
#undef RDU_LISTEN

 private:
  static std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdu;
    return h ^ (h >> 33);
  }
  template <class... T>
  void add(T... v) {
    ((h_ = mix(h_, static_cast<std::uint64_t>(v)), plain_ = mix(plain_, static_cast<std::uint64_t>(v))), ...);
  }
  void tag(const PageTag& t) {
    add(t.operand.value, t.trip, t.row, t.col, t.rows, t.cols, t.chunk, t.chunks);
    h_ = mix(h_, t.provenance);
  }
  void where(const StageAt& s) {
    add(s.stage.value, s.instance);
  }
  void where(const BufferAt& b) {
    add(b.buffer.value, b.instance);
  }
  void where(const ChannelAt& c) {
    add(c.edge.value, c.from, c.to, c.receiver);
  }

  void fields(const SectionStarted& e) {
    add(e.at, e.section.value);
  }
  void fields(const SectionEnded& e) {
    add(e.at, e.section.value);
  }
  void fields(const FiringStarted& e) {
    where(e.stage), add(e.at, e.firing, e.busy, e.stall, e.cause);
  }
  void fields(const FiringCompleted& e) {
    where(e.stage), add(e.at, e.firing);
  }
  void fields(const OperandsJoined& e) {
    where(e.stage), add(e.at, e.firing), tag(e.a), tag(e.b);
  }
  void fields(const PartialFolded& e) {
    where(e.stage), add(e.at, e.firing), tag(e.held), tag(e.added), tag(e.sum);
  }
  void fields(const PageReserved& e) {
    where(e.buffer), add(e.at, e.pages);
  }
  void fields(const PagePushed& e) {
    where(e.buffer), add(e.at, e.page, e.bytes), tag(e.tag);
  }
  void fields(const PagePopped& e) {
    where(e.buffer), add(e.at, e.consumer, e.page);
  }
  void fields(const CreditTaken& e) {
    where(e.channel), add(e.at, e.page);
  }
  void fields(const PageLanded& e) {
    where(e.channel), add(e.at, e.page), tag(e.tag);
  }
  void fields(const CreditReturned& e) {
    where(e.channel), add(e.at);
  }
  void fields(const CreditArrived& e) {
    where(e.channel), add(e.at);
  }
  void fields(const PageSent& e) {
    where(e.channel), add(e.at, e.page, e.bytes);
  }
  void fields(const ReadyRaised& e) {
    where(e.channel), add(e.at, e.generation, e.value);
  }
  void fields(const ReadyConsumed& e) {
    add(e.at, e.edge.value, e.from, e.generation, e.value);
  }
  void fields(const ValidRaised& e) {
    where(e.channel), add(e.at, e.generation, e.value);
  }
  void fields(const ValidConsumed& e) {
    where(e.channel), add(e.at, e.generation, e.value);
  }
  void fields(const BarrierArrived& e) {
    add(e.at, e.edge.value, e.from, e.member, e.generation);
  }
  void fields(const BarrierLeft& e) {
    add(e.at, e.edge.value, e.from, e.member, e.generation);
  }
  void fields(const LinkUsed& e) {
    add(e.at, e.link.value, e.begin, e.end, e.bytes, e.signal);
  }
  void fields(const MemoryUsed& e) {
    add(e.at, e.chip.value, e.space, e.channel, e.begin, e.end, e.bytes, e.write);
  }
  void fields(const PageLoaded& e) {
    where(e.stage), add(e.at, e.firing, e.tensor.value), tag(e.tag);
  }
  void fields(const PageStored& e) {
    where(e.stage), add(e.at, e.firing, e.tensor.value), tag(e.tag);
  }

  template <class E>
  void law(const E&) {}
  void law(const SectionStarted& e) {
    section = e.at;
  }
  void law(const FiringStarted& e) {
    const auto [it, fresh] = free_.try_emplace({e.stage.stage.value, e.stage.instance}, section);
    accounted = accounted && it->second + e.stall == e.at && e.busy >= 1;
    it->second = e.at + e.busy;
    stalled[static_cast<std::size_t>(e.cause)] += e.stall;
  }
  struct Counts {
    std::uint64_t reserved = 0, pushed = 0;
    std::map<std::uint32_t, std::uint64_t> popped;
  };
  Counts& of(const BufferAt& b) {
    const auto [it, fresh] = buffers_.try_emplace({b.buffer.value, b.instance});
    if (fresh) it->second.reserved = it->second.pushed = p_.buffer(b.buffer).initial_pages;
    return it->second;
  }
  void check(const BufferAt& b) {
    const Counts& c = of(b);
    for (const auto& [consumer, popped] : c.popped)
      within = within && popped <= c.pushed && c.reserved <= popped + p_.buffer(b.buffer).depth_pages;
    within = within && c.pushed <= c.reserved;
  }
  void law(const PageReserved& e) {
    of(e.buffer).reserved += e.pages, check(e.buffer);
  }
  void law(const PagePushed& e) {
    ++of(e.buffer).pushed, check(e.buffer);
  }
  void law(const PagePopped& e) {
    ++of(e.buffer).popped[e.consumer], check(e.buffer);
  }

  const SpatialProgram& p_;
  std::uint64_t h_ = 0, plain_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Cycle> free_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Counts> buffers_;
};

struct Report {
  MachineOutcome::End end{};
  Cycle cycles = 0;
  std::uint64_t activations = 0, handoffs = 0;
  std::array<std::uint64_t, Listener::kinds> count{};
  Digest digest;
  bool rising = false, accounted = false, within = false;
  std::array<Cycles, stall_causes> stalled{};
  bool ran = false;  // the child process ended as it should
  std::vector<Waiting> waiting;
  TensorImages images;
  std::vector<Contribution> stored;  // contributions of the first page stored
};

// Remembers the provenance of the first page stored.
class FirstStored final : public EventSink {
 public:
  void on(const PageStored& e) override {
    if (!seen) seen = true, id = e.tag.provenance;
  }
  bool seen = false;
  ProvenanceId id = 0;
};

inline void write_all(int fd, const void* data, std::size_t n) {
  const char* p = static_cast<const char*>(data);
  while (n > 0) {
    const ssize_t w = ::write(fd, p, n);
    if (w <= 0) _exit(3);
    p += w;
    n -= static_cast<std::size_t>(w);
  }
}
inline bool read_all(int fd, void* data, std::size_t n) {
  char* p = static_cast<char*>(data);
  while (n > 0) {
    const ssize_t r = ::read(fd, p, n);
    if (r <= 0) return false;
    p += r;
    n -= static_cast<std::size_t>(r);
  }
  return true;
}

inline Report run_forked(const SpatialProgram& p, const Target& t, const MachineOptions& options, TensorImages images) {
  Report report;
  int ends[2];
  if (pipe(ends) != 0) return report;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(60);
    if (!options.values) images.assign(images.size(), {});
    Listener listener(p);
    FirstStored first;
    EventSink* const both[] = {&listener, &first};
    FanOut sink(both);
    Machine machine(p, t, options, images, sink);
    const MachineOutcome out = machine.run();
    const auto put = [&](const auto& v) { write_all(ends[1], &v, sizeof v); };
    put(out.end), put(out.cycles), put(out.activations), put(out.page_handoffs);
    put(listener.count), put(listener.digest), put(listener.rising), put(listener.accounted), put(listener.within),
        put(listener.stalled);
    put(out.waiting.size());
    for (const Waiting& w : out.waiting) put(w);
    for (const auto& image : images) {
      put(image.size());
      write_all(ends[1], image.data(), image.size());
    }
    const std::vector<Contribution>& stored = machine.provenance().contributions(first.id);
    put(stored.size());
    for (const Contribution& c : stored) put(c);
    _exit(0);
  }
  close(ends[1]);
  bool ok = child > 0;
  const auto take = [&](auto& v) { ok = ok && read_all(ends[0], &v, sizeof v); };
  take(report.end), take(report.cycles), take(report.activations), take(report.handoffs);
  take(report.count), take(report.digest), take(report.rising), take(report.accounted), take(report.within),
      take(report.stalled);
  std::size_t n = 0;
  take(n);
  for (std::size_t i = 0; ok && i < n; ++i) take(report.waiting.emplace_back());
  for (std::size_t i = 0; ok && i < images.size(); ++i) {
    take(n);
    if (!ok) break;
    report.images.emplace_back(n);
    ok = read_all(ends[0], report.images.back().data(), n);
  }
  n = 0;
  take(n);
  for (std::size_t i = 0; ok && i < n; ++i) take(report.stored.emplace_back());
  close(ends[0]);
  int status = 1;
  if (child > 0) waitpid(child, &status, 0);
  report.ran = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return report;
}

inline Report run_forked(const SpatialProgram& p, const Target& t, const MachineOptions& options = {}) {
  return run_forked(p, t, options, blank_images(p));
}

}  // namespace rdusim::test
