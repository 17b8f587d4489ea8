#include "traces/named_units.h"

#include <fmt/format.h>

#include "compiler/ir/print.h"
#include "traces/inspect_common.h"
#include "traces/trace_scope.h"

namespace rdusim {

namespace {

// "x#3": x and 3; a '#' that no number follows belongs to the name.
struct Numbered {
  std::string plain;
  std::optional<std::uint64_t> instance;
};
Numbered numbered(const std::string& name) {
  const auto hash = name.rfind('#');
  if (hash == std::string::npos) return {name, std::nullopt};
  const auto instance = number_in(std::string_view(name).substr(hash + 1));
  return instance ? Numbered{name.substr(0, hash), instance} : Numbered{name, std::nullopt};
}

// The number of "chip12", where that is all of the text.
std::optional<std::uint64_t> number_of(std::string_view text, std::string_view kind) {
  if (!text.starts_with(kind)) return std::nullopt;
  return number_in(text.substr(kind.size()));
}

Diagnostics absent(const std::string& name, const std::string& what, const std::vector<std::string_view>& names) {
  Diagnostics d;
  Diagnostic& e = d.error(Code::RDU8017, name, "there is no {} '{}' in the trace", what, name);
  if (const auto near = nearest(name, names); !near.empty()) e.suggest("did you mean '{}'?", near);
  return d;
}

// Of a stage or buffer that is there, or of a kind whose members are numbered: how many there are.
Diagnostics beyond(const std::string& name, const std::string& what, std::uint64_t count) {
  Diagnostics d;
  d.error(Code::RDU8017, name, "there is no {} in the trace: it has {} {}, numbered from 0", name, count, what);
  return d;
}

}  // namespace

NamedUnits::NamedUnits(const Roster& roster) {
  for (std::size_t s = 0; s < units_.size(); ++s) units_[s].resize(subjects(roster, static_cast<EventSubject>(s)));
}

Result<NamedUnits> NamedUnits::find(const Roster& r, const std::string& name) {
  NamedUnits units(r);
  if (const auto chip = number_of(name, "chip")) {
    if (*chip >= r.chips) return beyond(name, "chips", r.chips);
    const auto selection = TraceSelection::parse({"chip=" + std::to_string(*chip)}, r);
    if (!selection) return selection.diagnostics();
    for (std::size_t s = 1; s < units.units_.size(); ++s)
      for (std::uint32_t n = 0; n < units.units_[s].size(); ++n)
        if (selection->keeps(static_cast<EventSubject>(s), n)) units.add(static_cast<EventSubject>(s), n);
    return units;
  }
  for (std::uint32_t n = 0; n < r.sections.size(); ++n)
    if (r.sections[n] == name || "section " + r.sections[n] == name) units.add(EventSubject::section, n);
  const auto [plain, instance] = numbered(name);
  for (std::uint32_t n = 0; n < r.stage_instances(); ++n) {
    const StageAt at = r.stage_at(n);
    const bool named = r.stages[at.stage.value].name == plain && at.instance == instance.value_or(at.instance);
    if (named || r.place(at) == name || to_string(r.site(at)) == name) units.add(EventSubject::stage, n);
  }
  for (std::uint32_t n = 0; n < r.buffer_instances(); ++n) {
    const BufferAt at = r.buffer_at(n);
    const bool named = r.buffers[at.buffer.value].name == plain && at.instance == instance.value_or(at.instance);
    if (named || r.place(at) == name || to_string(r.site(at)) == name) units.add(EventSubject::buffer, n);
  }
  const auto edge = number_of(plain, "edge");
  for (std::uint32_t s = 0; edge && s < r.senders(); ++s) {
    const auto at = r.sender_at(s);
    if (at.edge.value != *edge || at.from != instance.value_or(at.from)) continue;
    units.add(EventSubject::sender, s);
    for (std::uint32_t c = 0; c < r.channels_of(s); ++c) units.add(EventSubject::channel, r.first_channel(s) + c);
    for (std::uint32_t m = 0; m <= r.channels_of(s); ++m)
      units.add(EventSubject::member, r.member(at.edge, at.from, m));
  }
  for (std::uint32_t l = 0; l < r.links.size(); ++l)
    if (number_of(name, "link") == l || r.link_name(LinkId{l}) == name) units.add(EventSubject::link, l);
  std::string room;
  for (std::uint32_t m = 0; m < r.memories(); ++m) {
    const std::string_view channel = text_of(EventSubject::memory, m, r, room);
    if (r.memory_at(m).channel >= r.memory_channels[r.memory_at(m).space]) continue;
    if (channel == name || channel.substr(0, channel.find(' ')) == name) units.add(EventSubject::memory, m);
  }
  if (units.any_) return units;

  std::vector<std::string_view> names;
  for (std::uint32_t s = 0; s < r.stages.size(); ++s) {
    if (r.stages[s].name == plain) return beyond(name, "instances of " + plain, r.instances(StageId{s}));
    names.push_back(r.stages[s].name);
  }
  for (std::uint32_t b = 0; b < r.buffers.size(); ++b) {
    if (r.buffers[b].name == plain) return beyond(name, "instances of " + plain, r.instances(BufferId{b}));
    names.push_back(r.buffers[b].name);
  }
  if (edge && *edge >= r.edges.size()) return beyond(name, "edges", r.edges.size());
  if (edge) return absent(name, "crossing", {});  // a hand-off on one site, of which its buffer tells
  if (number_of(name, "link")) return beyond(name, "links", r.links.size());
  return absent(name, "unit, stage, buffer, edge, link, memory or chip", names);
}

Result<BufferAt> find_buffer(const Roster& r, const std::string& name) {
  const auto [plain, instance] = numbered(name);
  std::vector<std::string_view> names;
  for (std::uint32_t b = 0; b < r.buffers.size(); ++b) {
    names.push_back(r.buffers[b].name);
    if (r.buffers[b].name != plain) continue;
    if (instance.value_or(0) >= r.instances(BufferId{b}))
      return beyond(name, "instances of " + plain, r.instances(BufferId{b}));
    return BufferAt{BufferId{b}, static_cast<std::uint32_t>(instance.value_or(0))};
  }
  return absent(plain, "buffer", names);
}

}  // namespace rdusim
