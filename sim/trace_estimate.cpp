#include "sim/trace_estimate.h"

#include <algorithm>
#include <set>

namespace rdusim {

namespace {

// Over `firings` of a stage; and in how many of them there are any.
struct Moved {
  double pages = 0;
  double firings = 0;
};
Moved moved(const Cyclic<std::uint32_t>& rate, double firings) {
  double pages = 0, some = 0;
  for (const auto& run : rate) {
    pages += static_cast<double>(run.repeat) * run.value;
    some += run.value != 0 ? run.repeat : 0;
  }
  const double length = static_cast<double>(std::max<std::uint64_t>(cycle_length(rate), 1));
  return {pages / length * firings, some / length * firings};
}

// Memory channels that a page lies on.
double channels_of(const Target& t, MemorySpace space, Bytes bytes) {
  const MemoryParameters* m = space == MemorySpace::ddr ? (t.ddr ? &*t.ddr : nullptr) : &t.hbm;
  if (m == nullptr || m->interleave_bytes == 0) return 1;
  return static_cast<double>(
      std::min<std::uint64_t>(m->channels, ceil_div(std::max<Bytes>(bytes, 1), m->interleave_bytes)));
}

double largest_page(const SpatialProgram& p, const Stage& s, Direction d) {
  Bytes bytes = 0;
  for (const Port& port : s.ports)
    if (port.direction == d) bytes = std::max(bytes, p.buffer(port.buffer).page_bytes);
  return static_cast<double>(bytes);
}

void add_stage(const SpatialProgram& p, const Target& t, const Stage& s, EventEstimate& e) {
  const double instances = static_cast<double>(p.sites_of(s).sites.size());
  const double firings = static_cast<double>(s.firings) * static_cast<double>(p.sections[s.section.value].trips);
  e.firings += 2 * firings * instances;
  for (const Port& port : s.ports) {
    e.pages += instances * (moved(port.pop, firings).pages + moved(port.reserve, firings).firings +
                            moved(port.push, firings).pages);
  }
  double of_instance = 0, shared = 0;  // the latter by all instances together
  if (const auto* load = std::get_if<Load>(&s.kind)) {
    const std::set<std::uint32_t> sets(load->multicast_set.begin(), load->multicast_set.end());
    const double reads = sets.empty() ? instances : static_cast<double>(sets.size());
    const auto bytes = static_cast<Bytes>(largest_page(p, s, Direction::output));
    shared = reads * firings * channels_of(t, p.tensor(load->tensor).space, bytes);
    of_instance += firings;
  } else if (const auto* store = std::get_if<Store>(&s.kind)) {
    const auto bytes = static_cast<Bytes>(largest_page(p, s, Direction::input));
    of_instance += firings * (1 + channels_of(t, p.tensor(store->tensor).space, bytes));
  } else if (!std::holds_alternative<Recv>(s.kind)) {
    of_instance += firings;  // what it joins or folds
  }
  e.transfers += of_instance * instances + shared;
}

void add_crossing(const SpatialProgram& p, const Edge& e, EventEstimate& estimate) {
  const Stage& from = p.stage(e.from);
  const double senders = static_cast<double>(p.sites_of(from).sites.size());
  double pages = 0;  // of a sending instance
  for (const Port& port : from.ports) {
    if (port.direction != Direction::output || port.buffer != e.buffer) continue;
    pages =
        moved(port.push, static_cast<double>(from.firings) * static_cast<double>(p.sections[from.section.value].trips))
            .pages;
  }
  double targets = senders;  // channels of a `to`
  if (e.map.kind == PageMapKind::scatter || e.map.kind == PageMapKind::multicast) {
    targets = 0;
    for (const auto& list : e.map.targets) targets += static_cast<double>(list.size());
  }
  const double copies = e.map.kind == PageMapKind::scatter ? senders * pages : targets * pages;
  estimate.pages += senders * pages;  // taken out of the source buffer
  for (std::size_t to = 0; to < e.to.size(); ++to) {
    const double hops = to < e.routes.size() ? static_cast<double>(e.routes[to].size()) : 0;
    // Sent and landed; a credit's three events, or those of a semaphore or barrier; a link for the page and its signal.
    const double signals = e.handshake == Handshake::token ? 3 : e.handshake == Handshake::semaphore ? 4 : 8;
    estimate.crossings += copies * (2 + signals);
    estimate.links += copies * 2 * hops;
  }
}

}  // namespace

std::uint64_t EventEstimate::events() const {
  return static_cast<std::uint64_t>(std::min(firings + pages + transfers + crossings + links, 1e18));
}

EventEstimate estimate_events(const SpatialProgram& p, const Target& t) {
  EventEstimate e;
  for (const Stage& s : p.stages) add_stage(p, t, s, e);
  for (const Edge& edge : p.edges)
    if (!is_local(edge.handshake)) add_crossing(p, edge, e);
  return e;
}

Bytes estimate_bytes(const EventEstimate& e, std::string_view format) {
  // Least squares of the relative error over the nine programs; where two kinds go together, one of them carries both.
  double bytes = 0;
  if (format == "event-log") bytes = 5.5 * static_cast<double>(e.events());
  if (format == "perfetto") bytes = 57 * e.pages + 140 * e.links;
  if (format == "chrome") bytes = 39 * e.firings + 110 * e.pages + 10 * e.transfers + 182 * e.crossings;
  if (format == "vcd") bytes = 45 * e.pages + 219 * e.links;
  if (format == "fst") bytes = 4.2 * e.pages + 7.3 * e.crossings;
  return static_cast<Bytes>(std::min(bytes, 1e18));
}

}  // namespace rdusim
