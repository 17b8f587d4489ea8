#include "models/systemc/machine.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <systemc>
#include <typeinfo>
#include <utility>

#include "compiler/ir/trips.h"
#include "compiler/support/split_mix.h"
#include "models/systemc/divided_run.h"
#include "models/systemc/progress.h"
#include "models/units/chip.h"
#include "models/units/elaborate.h"

// libsystemc refers to an sc_main that its own main() would call. Ours never does; an executable may have its own.
extern "C" [[gnu::weak]] int sc_main(int, char*[]) {
  return 0;
}

namespace rdusim {
namespace {

// The kernel counts in its time resolution: one tick is one cycle of the fabric clock. Nobody reads seconds from it.
sc_core::sc_time ticks(Cycle cycles) {
  return sc_core::sc_time::from_value(cycles);
}

// What a chip module asks of the machine around it.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  // A chip is about to run at `now`, in a window that no chip has run in yet: what was recorded is handed on.
  virtual void enter_window(Cycle now) = 0;
};

// A chip as the kernel knows it: a name, and one method.
//
// The method wakes at each of the chip's event times; where chips run ahead, at the first of each window, and works off
// the chip's events to the window's end, before which nothing that another chip does can reach it.
class ChipModule final : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(ChipModule);
  ChipModule(const sc_core::sc_module_name& name, Chip& chip, RunProgress& progress, const MachineOptions& options,
             Surroundings& around)
      : sc_module(name),
        chip_(chip),
        progress_(progress),
        options_(options),
        around_(around),
        shuffle_(options.shuffle_seed == 0 ? 0 : options.shuffle_seed * 31 + chip.id().value + 1) {
    SC_METHOD(step);
    sensitive << wake_;
    dont_initialize();
  }

  // The chip's next event may have become an earlier one.
  void expect(Cycle at) {
    if (beyond_limit(at)) return;
    const Cycle now = sc_core::sc_time_stamp().value();
    // An earlier notification replaces a later one; a later one is ignored.
    wake_.notify(ticks(at - now));
  }

 private:
  void step() {
    const Cycle now = sc_core::sc_time_stamp().value();
    if (progress_.stopped) return;
    if (shuffle_ != 0 && !held_back_) {
      // Chips that are active in the same cycle: whoever draws more delta cycles comes later.
      held_back_ = true;
      rounds_ = draw(shuffle_) % 4;
    }
    if (held_back_ && rounds_ > 0) {
      --rounds_;
      wake_.notify(sc_core::SC_ZERO_TIME);
      return;
    }
    held_back_ = false;
    if (now >= progress_.window_end) around_.enter_window(now);
    if (!progress_.stopped) ++progress_.activations;
    while (!progress_.stopped) {
      const auto next = chip_.next();
      if (!next || beyond_limit(*next)) return;  // the others still have their say up to the limit
      if (*next >= progress_.window_end) {
        wake_.notify(ticks(*next - now));
        return;
      }
      chip_.advance(*next);
      progress_.last = std::max(progress_.last, *next);
      if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) progress_.stopped = true;
    }
    sc_core::sc_stop();
  }

  bool beyond_limit(Cycle at) {
    const bool beyond = options_.max_cycles && at > *options_.max_cycles;
    if (beyond) progress_.beyond = true;
    return beyond;
  }

  Chip& chip_;
  RunProgress& progress_;
  const MachineOptions& options_;
  Surroundings& around_;
  sc_core::sc_event wake_;
  std::uint64_t shuffle_;
  std::uint64_t rounds_ = 0;
  bool held_back_ = false;
};

}  // namespace

struct Machine::Impl final : Outside, Surroundings {
  Impl(const SpatialProgram& p, const Target& t, const MachineOptions& o, TensorImages& tensor_images, EventSink& s)
      : program(p), target(t), options(o), images(tensor_images), sink(s) {
    Elaboration e = elaborate(p, t, o.values, o.faults, o.network);
    laws = std::move(e.laws);
    chips.resize(e.chips.size());
    records.resize(e.chips.size());
    for (std::size_t i = 0; i < e.chips.size(); ++i)
      if (e.chips[i].used) used.push_back(i);
    progress.window = window(e);
    // A plain EventSink hears nothing; nothing is told to it.
    const bool heard = typeid(sink) != typeid(EventSink);
    recording = heard && used.size() > 1;
    for (const std::size_t i : used) {
      chips[i] =
          std::make_unique<Chip>(std::move(e.chips[i]), laws, provenance, images, *this, o.shuffle_seed, o.jitter_seed);
      chips[i]->tell_to(heard && !recording ? &sink : nullptr, recording ? &records[i] : nullptr, o.bursts);
    }
  }

  // How far a chip may run ahead of the others: the least latency of the links that the program uses. Not at all where
  // a fault may make a page overtake the place that it lands in, nor where equal-time events are shuffled.
  Cycle window(const Elaboration& e) const {
    constexpr Cycle longest = 1 << 16;  // the stop flag is looked at, at least so often
    if (!options.run_ahead || !options.faults.empty() || options.shuffle_seed != 0) return 1;
    Cycle least = longest;
    for (const ChipState& c : e.chips)
      for (const ChipLink& l : c.links) least = std::min<Cycle>(least, l.latency());
    return std::max<Cycle>(least, 1);
  }

  void post(std::uint32_t chip, Cycle at, const Event& e) override {
    if (divided && !divided->mine(chip)) {
      divided->post(chip, at, e);
      return;
    }
    chips[chip]->post(at, e);
    modules[chip]->expect(at);
  }
  void deliver(std::uint32_t chip, std::uint32_t channel, std::uint64_t page, const PageTag& tag,
               std::span<const std::byte> values, std::uint32_t bytes, Cycle sent) override {
    if (divided && !divided->mine(chip)) {
      divided->deliver(chip, channel, page, tag, values, bytes, sent);
    } else {
      chips[chip]->accept(channel, page, tag, values, bytes, sent);
    }
  }

  void enter_window(Cycle now) override {
    hand_on_records(progress.window_end);
    const Cycle start = progress.window_start + (now - progress.window_start) / progress.window * progress.window;
    progress.window_end = start + progress.window;
    if (options.pages != nullptr && (progress.window > 1 || ++narrow % 1024 == 0))
      options.pages->store(pages_pushed() - reused_pages, std::memory_order_relaxed);
  }
  std::uint64_t pages_pushed() const {
    std::uint64_t pages = reused_pages;
    for (const std::size_t i : used) pages += chips[i]->pages_pushed();
    return pages;
  }

  // Records of all chips in rising time, chip by chip within a cycle, until a listener asks to stop.
  void hand_on_records(Cycle window_end) {
    if (!recording) return;
    put_in_order(window_end);
    hand_on_until([] { return false; });
  }
  void put_in_order(Cycle window_end) {
    order.sort(records, used, window_end - std::min(window_end, progress.window), progress.window);
  }
  // True: to the end, or to where somebody asked to stop. False: `pause()` between two cycles; to be called again.
  template <class Pause>
  bool hand_on_until(Pause&& pause) {
    Cycle at = told;
    bool stopped = false, paused = false;
    order.walk(
        [&](Cycle next) {
          stopped = asked_to_stop();
          paused = !stopped && pause();
          if (!stopped && !paused) at = next;
          return !stopped && !paused;
        },
        [&](std::uint32_t chip, std::uint32_t group) { records[chip].hand_on(group, sink); });
    told = at;
    if (paused) return false;
    for (const std::size_t i : used) records[i].clear();
    if (stopped) {
      progress.stopped = true;
      progress.last = at;
      sc_core::sc_stop();
    } else if (at != 0 && asked_to_stop()) {
      // Where nothing was left to hand on, the stop was seen, and its time noted, before.
      progress.stopped = true;
      progress.last = at;
    }
    return true;
  }
  void divide(Crew& crew) {
    const bool heard = typeid(sink) != typeid(EventSink);
    recording = heard;
    divided.emplace(MachineParts{program, options, launch(), chips, records, recording, provenance, images, sink,
                                 progress, told, [this](std::uint32_t chip, Cycle at) { modules[chip]->expect(at); },
                                 [this](Cycle end) { run_window(end); }, [this](Cycle end) { put_in_order(end); },
                                 [this](const std::function<bool()>& pause) { return hand_on_until(pause); }},
                    crew);
  }
  // All launches of a section.
  void run_section(const Section& section, MachineOutcome& out) {
    const std::uint64_t launches = launches_of(section);
    LaunchReuse reuse{section.id, 0, 0, ""};
    const bool asked = options.reuse && launches > 1;
    if (asked) reuse.why_not = launches_differ(program, target, section.id).value_or("");
    bool alike = false;
    std::vector<std::uint64_t> before, after;
    const bool compares = asked && reuse.why_not.empty();
    if (compares) put_at_rest(section.id, 0, out.cycles, before);
    for (std::uint64_t trip = 0; trip < launches && !alike; ++trip) {
      const Cycle start = next_start(out.cycles);
      const std::uint64_t pages = pages_pushed();
      launch_section(section.id, trip, out);
      if (out.end != MachineOutcome::End::finished) break;
      ++reuse.simulated;
      if (!compares || trip + 1 == launches) continue;
      put_at_rest(section.id, trip + 1, out.cycles, after);
      const Repetition rest{section.id, trip + 1,  launches - trip - 1, next_start(out.cycles) - start,
                            start,      out.cycles};
      alike = before == after && repeat(rest, pages_pushed() - pages, out);
      if (alike) reuse.reused = rest.times;
      before.swap(after);
    }
    if (!asked) return;
    if (reuse.why_not.empty() && reuse.reused == 0) reuse.why_not = "no launch left the state that it met";
    out.reuse.push_back(std::move(reuse));
  }
  void put_at_rest(SectionId section, std::uint64_t launches, Cycle now, std::vector<std::uint64_t>& out) const {
    out.clear();
    for (const std::size_t i : used) chips[i]->at_rest(section, launches, now, out);
  }
  // False where the limit comes first, and the launches are to be carried out up to there.
  bool repeat(const Repetition& rest, std::uint64_t pages, MachineOutcome& out) {
    Cycle all = 0, end = 0;
    if (__builtin_mul_overflow(rest.times, rest.period, &all) || __builtin_add_overflow(out.cycles, all, &end) ||
        (options.max_cycles && end > *options.max_cycles))
      return false;
    sink.repeated(rest);
    out.cycles = progress.last = told = end;
    reused_pages += rest.times * pages;
    return true;
  }
  Cycle next_start(Cycle end) const { return std::max<Cycle>(end + launch(), 1); }
  // Launches a section when what ran before has ended, at out.cycles, and runs it to its end, which becomes out.cycles.
  void launch_section(SectionId section, std::uint64_t trip, MachineOutcome& out) {
    using End = MachineOutcome::End;
    const Cycle start = next_start(out.cycles);
    if (options.max_cycles && start > *options.max_cycles) {
      out.end = End::max_cycles;
      out.cycles = *options.max_cycles;
      return;
    }
    sink.on(SectionStarted{start, section});
    for (std::size_t i = 0; i < chips.size(); ++i) {
      if (!chips[i]) continue;
      chips[i]->start_section(section, trip, start);
      if (const auto next = chips[i]->next()) modules[i]->expect(*next);
    }
    progress.last = progress.window_start = progress.window_end = start;
    // Returns when no event is pending: all that could happen has happened.
    sc_core::sc_start();
    hand_on_records(progress.window_end);
    out.cycles = progress.last;
    if (progress.stopped) {
      out.end = End::stopped;
    } else if (progress.beyond) {
      out.end = End::max_cycles;
      out.cycles = *options.max_cycles;
    } else if (!std::all_of(chips.begin(), chips.end(), [&](const auto& c) { return !c || c->finished(section); })) {
      out.end = End::quiescent;
      for (const auto& c : chips)
        if (c) c->waiting(section, out.waiting);
      in_order(out.waiting);
    } else {
      sink.on(SectionEnded{out.cycles, section});
    }
  }
  Cycles launch() const { return target.host.section_launch_cycles + target.host.argument_load_cycles; }
  // To the cycle before `end`, whether something happens or not.
  void run_window(Cycle end) {
    progress.window_end = end;
    sc_core::sc_start(ticks(end - 1 - sc_core::sc_time_stamp().value()));
  }
  bool asked_to_stop() const { return options.stop != nullptr && options.stop->load(std::memory_order_relaxed); }

  const SpatialProgram& program;
  const Target& target;
  const MachineOptions options;
  TensorImages& images;
  EventSink& sink;
  MachineLaws laws;
  ProvenanceTable provenance;
  RunProgress progress;
  std::vector<std::unique_ptr<Chip>> chips;
  std::vector<std::unique_ptr<ChipModule>> modules;  // by chip, as chips
  std::vector<EventRecord> records;                  // by chip
  std::vector<std::size_t> used;                     // chips that are there
  EventOrder order;                                  // of hand_on_records
  std::uint64_t reused_pages = 0;                    // of launches that were not simulated
  std::uint64_t narrow = 0;                          // windows of one cycle that were entered
  bool recording = false;
  Cycle told = 0;  // of the last record that was handed on
  std::optional<DividedRun> divided;
};

Machine::Machine(const SpatialProgram& program, const Target& target, const MachineOptions& options,
                 TensorImages& images, EventSink& sink)
    : impl_(std::make_unique<Impl>(program, target, options, images, sink)) {}

Machine::~Machine() = default;

std::optional<std::string> Machine::undivided() const {
  if (!impl_->options.faults.empty()) return "with faults, chips do not run ahead of each other";
  if (impl_->progress.window < 2)
    return "chips do not run ahead of each other: the links between them have no latency to do so";
  return std::nullopt;
}

std::uint32_t Machine::most_processes() const {
  const std::vector<std::uint64_t> work = work_of(impl_->program);
  return static_cast<std::uint32_t>(work.size() - std::count(work.begin(), work.end(), 0)) + 1;
}

void Machine::divide(Crew& crew) {
  impl_->divide(crew);
}

const ProvenanceTable& Machine::provenance() const {
  return impl_->provenance;
}

MachineOutcome Machine::run() {
  Impl& m = *impl_;
  MachineOutcome out;
  // The library prints its banner when it first looks for this variable, and reports a quiet start as a warning.
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  sc_core::sc_report_handler::set_actions(sc_core::SC_WARNING, sc_core::SC_DO_NOTHING);

  m.modules.resize(m.chips.size());
  for (std::size_t i = 0; i < m.chips.size(); ++i) {
    if (!m.chips[i] || (m.divided && !m.divided->mine(static_cast<std::uint32_t>(i)))) continue;
    const std::string name = "chip" + std::to_string(i);
    m.modules[i] = std::make_unique<ChipModule>(name.c_str(), *m.chips[i], m.progress, m.options, m);
  }
  sc_core::sc_start(sc_core::SC_ZERO_TIME);

  if (m.divided) return m.divided->run();

  out.end = MachineOutcome::End::finished;
  for (const Section& section : m.program.sections) {
    m.run_section(section, out);
    if (out.end != MachineOutcome::End::finished) break;
  }
  out.activations = m.progress.activations;
  out.page_handoffs = m.pages_pushed();
  out.struck.resize(m.options.faults.size());
  for (const auto& c : m.chips) {
    if (!c) continue;
    out.traversals += c->traversals();
    for (const ChipFaults::Active& f : c->faults().all()) out.struck[f.number] += f.struck;
  }
  return out;
}

}  // namespace rdusim
