#include "traces/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/ir/print.h"
#include "compiler/support/file.h"
#include "compiler/support/xml.h"
#include "traces/inspect_common.h"
#include "traces/machine_state.h"
#include "traces/named_units.h"
#include "traces/slices.h"

namespace rdusim {

namespace {

Json dropped_json(const LeftOut& d) {
  return Json().set("filter", d.filter).set("window", d.window).set("limit", d.limit);
}

Json tag_json(const PageTag& t, const Roster& r) {
  Json j;
  j.set("operand", r.name_of(t.operand)).set("trip", t.trip);
  j.set("row", t.row).set("rows", t.rows).set("col", t.col).set("cols", t.cols);
  return j.set("chunk", t.chunk).set("chunks", t.chunks);
}

}  // namespace

Result<Inspected> inspect_summary(EventLogReader& log) {
  const Roster& r = log.roster();
  struct Chip {
    std::uint64_t firings = 0, busy = 0, pages = 0, sent = 0;
  };
  std::vector<Chip> chips(r.chips);
  std::array<std::uint64_t, event_kinds> counts{};
  Each each([&](const auto& e) {
    using E = std::remove_cvref_t<decltype(e)>;
    ++counts[static_cast<std::size_t>(kind_of_event<E>)];
    if constexpr (std::is_same_v<E, FiringStarted>) {
      Chip& c = chips[r.site(e.stage).chip.value];
      ++c.firings;
      c.busy += e.busy;
    }
    if constexpr (std::is_same_v<E, PagePushed>) ++chips[r.site(e.buffer).chip.value].pages;
    if constexpr (std::is_same_v<E, LinkUsed>) {
      if (const RosterLink& l = r.links[e.link.value]; l.out_of == 0) chips[l.from].sent += e.bytes;
    }
  });
  auto end = log.read(each);
  if (!end) return end.diagnostics();
  Json j;
  j.set("program", r.program).set("program_sha256", r.program_sha256).set("target", r.target);
  j.set("clock_ghz", to_double(r.clock_ghz)).set("rdusim", log.head().rdusim);
  j.set("filter", log.head().filter.empty() ? Json() : Json(log.head().filter));
  j.set("end", end->end ? Json(end->end->reason) : Json());
  j.set("cycles", end->end ? Json(end->end->cycles) : Json(end->last));
  j.set("events", end->events).set("dropped", dropped_json(end->dropped));
  JsonArray kinds;
  for (std::size_t k = 0; k < event_kinds; ++k)
    if (counts[k] != 0)
      kinds.push_back(Json().set("kind", name_of(static_cast<EventKind>(k))).set("events", counts[k]));
  j.set("kinds", std::move(kinds));
  JsonArray list;
  for (std::uint32_t c = 0; c < r.chips; ++c) {
    if (chips[c].firings == 0) continue;
    list.push_back(Json()
                       .set("chip", c)
                       .set("firings", chips[c].firings)
                       .set("busy_cycles", chips[c].busy)
                       .set("pages", chips[c].pages)
                       .set("bytes_sent", chips[c].sent));
  }
  j.set("chips", std::move(list));
  return Inspected{std::move(j), end->notes};
}

Result<Inspected> inspect_counts(EventLogReader& log, std::size_t most) {
  const Roster& r = log.roster();
  std::array<std::uint64_t, event_kinds> counts{};
  std::array<std::vector<std::uint64_t>, 8> units;
  for (std::size_t s = 0; s < units.size(); ++s) units[s].resize(subjects(r, static_cast<EventSubject>(s)));
  Each each([&](const auto& e) {
    using E = std::remove_cvref_t<decltype(e)>;
    ++counts[static_cast<std::size_t>(kind_of_event<E>)];
    ++units[static_cast<std::size_t>(subject_of<E>())][subject(e, r)];
  });
  auto end = log.read(each);
  if (!end) return end.diagnostics();
  Json j;
  JsonArray kinds;
  for (std::size_t k = 0; k < event_kinds; ++k) {
    const auto kind = static_cast<EventKind>(k);
    kinds.push_back(Json().set("kind", name_of(kind)).set("group", group_of(kind)).set("events", counts[k]));
  }
  j.set("events", end->events).set("kinds", std::move(kinds));
  struct Unit {
    std::uint64_t events;
    std::size_t subject;
    std::uint32_t number;
  };
  std::vector<Unit> list;
  for (std::size_t s = 0; s < units.size(); ++s)
    for (std::uint32_t n = 0; n < units[s].size(); ++n)
      if (units[s][n] != 0) list.push_back({units[s][n], s, n});
  const std::size_t shown = std::min(most, list.size());
  std::partial_sort(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(shown), list.end(),
                    [](const Unit& a, const Unit& b) {
                      if (a.events != b.events) return a.events > b.events;
                      return a.subject != b.subject ? a.subject < b.subject : a.number < b.number;
                    });
  JsonArray busiest;
  std::string room;
  for (std::size_t i = 0; i < shown; ++i)
    busiest.push_back(Json()
                          .set("unit", text_of(static_cast<EventSubject>(list[i].subject), list[i].number, r, room))
                          .set("events", list[i].events));
  j.set("units", std::move(busiest));
  return Inspected{std::move(j), end->notes};
}

Result<Inspected> inspect_at(EventLogReader& log, Cycle cycle, const std::string& name) {
  const Roster& r = log.roster();
  std::optional<NamedUnits> units;
  if (!name.empty()) {
    auto named = NamedUnits::find(r, name);
    if (!named) return named.diagnostics();
    units = std::move(named).value();
  }
  const auto asked = [&](EventSubject s, std::uint32_t n) { return !units || units->hold(s, n); };
  MachineState state(r);
  // Links and memory channels decide ahead: who is taken in that cycle, and until when.
  std::map<std::pair<EventSubject, std::uint32_t>, std::pair<Cycle, Cycle>> taken;
  Each each([&](const auto& e) {
    static_cast<EventSink&>(state).on(e);
    using E = std::remove_cvref_t<decltype(e)>;
    if constexpr (std::is_same_v<E, LinkUsed> || std::is_same_v<E, MemoryUsed>) {
      if (e.begin > cycle || e.end <= cycle) return;
      const auto [at, fresh] = taken.try_emplace({subject_of<E>(), subject(e, r)}, e.begin, e.end);
      if (!fresh) at->second = {std::min(at->second.first, e.begin), std::max(at->second.second, e.end)};
    }
  });
  auto end = log.read(each, {0, cycle});
  if (!end) return end.diagnostics();
  // Of a log that was cut, the last event is the last that is known.
  if (const Cycle last = end->end ? end->end->cycles : end->last; cycle > last && !end->beyond) {
    Diagnostics d = end->notes;
    d.error(Code::RDU8017, fmt::format("cycle {}", cycle), "the trace ends in cycle {}", last);
    return d;
  }
  JsonArray stages, buffers, crossings;
  for (std::uint32_t n = 0; n < r.stage_instances(); ++n) {
    const MachineState::Stage& s = state.stage(n);
    const StageAt at = r.stage_at(n);
    const RosterStage& stage = r.stages[at.stage.value];
    if (s.completed >= stage.firings || !asked(EventSubject::stage, n)) continue;
    const bool busy = s.started != 0 && s.busy_until > cycle;
    if (s.started == 0 && s.completed == 0) continue;
    stages.push_back(Json()
                         .set("unit", r.place(at))
                         .set("stage", stage.name)
                         .set("state", busy ? "busy" : "waiting")
                         .set("since", busy ? s.last_start : s.busy_until)
                         .set("started", s.started)
                         .set("completed", s.completed)
                         .set("of", stage.firings));
  }
  for (std::uint32_t n = 0; n < r.buffer_instances(); ++n) {
    const MachineState::Buffer& b = state.buffer(n);
    if (b.claimed() == 0 || !asked(EventSubject::buffer, n)) continue;
    const BufferAt at = r.buffer_at(n);
    buffers.push_back(Json()
                          .set("unit", r.place(at))
                          .set("buffer", r.buffers[at.buffer.value].name)
                          .set("pages", b.held())
                          .set("reserved", b.claimed() - std::min(b.claimed(), b.held()))
                          .set("depth", r.buffers[at.buffer.value].depth)
                          .set("pushed", b.pushed)
                          .set("popped", b.popped));
  }
  for (std::uint32_t n = 0; n < r.channels(); ++n) {
    const MachineState::Channel& c = state.channel(n);
    const ChannelAt& at = r.channel_at(n);
    if (c.under_way == 0 || !asked(EventSubject::channel, n)) continue;
    const bool token = r.edges[at.edge.value].handshake == Handshake::token;
    crossings.push_back(Json()
                            .set("crossing", r.describe(at))
                            .set("under_way", c.under_way)
                            .set("credits", token ? Json(c.credits) : Json())
                            .set("sent", c.sent)
                            .set("landed", c.landed));
  }
  Json j;
  j.set("cycle", cycle).set("stages", std::move(stages)).set("buffers", std::move(buffers));
  j.set("crossings", std::move(crossings));
  std::string room;
  JsonArray signals, resources;
  for (std::uint32_t s = 0; s < r.senders(); ++s) {
    const MachineState::Sender& sender = state.sender(s);
    if ((sender.ready == 0 && sender.waiting == 0) || !asked(EventSubject::sender, s)) continue;
    const bool barrier = r.edges[r.sender_at(s).edge.value].handshake == Handshake::barrier;
    signals.push_back(Json()
                          .set("of", text_of(EventSubject::sender, s, r, room))
                          .set("signal", barrier ? "members at the barrier" : "ready")
                          .set("value", barrier ? sender.waiting : sender.ready));
  }
  for (std::uint32_t n = 0; n < r.buffer_instances(); ++n)
    if (state.valid(n) != 0 && asked(EventSubject::buffer, n))
      signals.push_back(Json()
                            .set("of", text_of(EventSubject::buffer, n, r, room))
                            .set("signal", "valid")
                            .set("value", state.valid(n)));
  for (const auto& [unit, span] : taken)
    if (asked(unit.first, unit.second))
      resources.push_back(Json()
                              .set("taken", text_of(unit.first, unit.second, r, room))
                              .set("from", span.first)
                              .set("until", span.second));
  j.set("signals", std::move(signals)).set("resources", std::move(resources));
  return Inspected{std::move(j), end->notes};
}

Result<LogEnd> inspect_timeline(EventLogReader& log, const std::string& name, const LogWindow& window, bool json,
                                const std::function<void(std::string_view)>& out) {
  const Roster& r = log.roster();
  const auto units = NamedUnits::find(r, name);
  if (!units) return units.diagnostics();

  std::string room, line;
  bool first = true;
  Each each([&](const auto& e) {
    using E = std::remove_cvref_t<decltype(e)>;
    const std::uint32_t n = subject(e, r);
    if (!units->hold(subject_of<E>(), n)) return;
    const std::string_view unit = text_of(subject_of<E>(), n, r, room);
    if (json) {
      Json j;
      j.set("cycle", e.at).set("kind", name_of(kind_of_event<E>)).set("unit", unit);
      each_plain_field(e, [&](const char* key, const auto& v) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, StallCause>)
          j.set(key, cause_name(v));
        else
          j.set(key, v);
      });
      each_tag(e, [&](const char* key, const PageTag& t) { j.set(key, tag_json(t, r)); });
      line = (first ? "[\n" : ",\n") + to_text(j, true);
    } else {
      line = fmt::format("{:>12}  {:<18} {}", e.at, name_of(kind_of_event<E>), unit);
      line += fields_text(e, r, "  ") + '\n';
    }
    first = false;
    out(line);
  });
  auto end = log.read(each, window);
  if (json) out(first ? "[]\n" : "\n]\n");
  if (!end) return end.diagnostics();
  if (const Cycle last = end->end ? std::max(end->end->cycles, end->last) : end->last;
      first && window.from > last && !end->beyond) {
    Diagnostics d = end->notes;
    d.error(Code::RDU8017, fmt::format("cycle {}", window.from), "the trace ends in cycle {}", last);
    return d;
  }
  return end;
}

Result<Drawing> inspect_occupancy(EventLogReader& log, const std::string& name) {
  const Roster& r = log.roster();
  const auto buffer = find_buffer(r, name);
  if (!buffer) return buffer.diagnostics();
  const std::uint32_t n = r.of(*buffer);
  const RosterBuffer& b = r.buffers[buffer->buffer.value];
  MachineState state(r);
  // A step a change; beyond what a screen shows, the most of each stretch of cycles.
  std::vector<std::pair<Cycle, std::uint64_t>> steps = {{0, b.initial}};
  Each each([&](const auto& e) {
    static_cast<EventSink&>(state).on(e);
    if (subject_of<std::remove_cvref_t<decltype(e)>>() != EventSubject::buffer || subject(e, r) != n) return;
    const std::uint64_t held = state.buffer(n).held();
    if (steps.back().first == e.at) {
      steps.back().second = held;
    } else if (steps.back().second != held) {
      constexpr std::size_t most = 1 << 20;
      if (steps.size() == most) {
        for (std::size_t i = 0; i < most / 2; ++i)
          steps[i] = {steps[2 * i].first, std::max(steps[2 * i].second, steps[2 * i + 1].second)};
        steps.resize(most / 2);
      }
      steps.emplace_back(e.at, held);
    }
  });
  auto end = log.read(each);
  if (!end) return end.diagnostics();
  const double last = static_cast<double>(std::max<Cycle>(end->end ? end->end->cycles : end->last, 1));
  std::uint64_t most = std::max<std::uint64_t>(b.depth, 1);
  for (const auto& [at, held] : steps) most = std::max(most, held);
  constexpr double width = 900, height = 240, left = 60, top = 30;
  const auto x = [&](double at) { return left + at / last * width; };
  const auto y = [&](std::uint64_t held) {
    return top + height - static_cast<double>(held) / static_cast<double>(most) * height;
  };
  std::string path = fmt::format("M{:.2f} {:.2f}", x(0), y(steps.front().second));
  for (std::size_t i = 1; i < steps.size(); ++i)
    path += fmt::format("H{:.2f}V{:.2f}", x(static_cast<double>(steps[i].first)), y(steps[i].second));
  path += fmt::format("H{:.2f}", x(last));
  const std::string title = xml_text(r.describe(*buffer));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<title>pages held in {}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{:.0f}\" y=\"18\">pages held in {}, depth {}</text>\n"
      "<path d=\"M{:.2f} {:.2f}H{:.2f}\" stroke=\"#888\" stroke-dasharray=\"4 4\" fill=\"none\"/>\n"
      "<path d=\"{}\" stroke=\"#0060a0\" fill=\"none\"/>\n"
      "<text x=\"{:.0f}\" y=\"{:.0f}\">0</text>\n<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">cycle {}</text>\n"
      "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>\n</svg>\n",
      width + left + 20, height + top + 30, title, left, title, b.depth, left, y(b.depth), left + width, path, left,
      top + height + 18, left + width, top + height + 18, static_cast<Cycle>(last), left - 6, y(b.depth) + 4, b.depth);
  return Drawing{std::move(svg), end->notes};
}

}  // namespace rdusim
