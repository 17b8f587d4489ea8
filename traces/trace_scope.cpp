#include "traces/trace_scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "compiler/support/file.h"

namespace rdusim {

namespace {

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t n = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return n;
}

// What is asked for, by key; empty: everything.
struct Asked {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> chips;  // ranges, included
  std::vector<Position> sites;
  std::vector<std::string> stages;
  std::vector<std::string> kinds;
};

class Parser {
 public:
  explicit Parser(const Roster& roster) : roster_(roster) {}

  void parse(const std::string& filter) {
    const auto at = filter.find('=');
    if (at == std::string::npos || at + 1 == filter.size()) {
      wrong(filter, "it is not KEY=VALUE");
      return;
    }
    const std::string key = filter.substr(0, at);
    std::string_view rest = std::string_view(filter).substr(at + 1);
    while (true) {
      const auto comma = rest.find(',');
      value(filter, key, rest.substr(0, comma));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }

  Asked asked;
  Diagnostics diagnostics;

 private:
  void wrong(const std::string& filter, const std::string& why) {
    diagnostics.error(Code::RDU8016, "--trace-filter " + filter, "{}", why);
  }
  void value(const std::string& filter, const std::string& key, std::string_view v) {
    const std::string where = "--trace-filter " + filter;
    if (key == "chip") {
      const auto dots = v.find("..");
      const auto first = number(v.substr(0, dots));
      const auto last = dots == std::string_view::npos ? first : number(v.substr(dots + 2));
      if (!first || !last || *last < *first) return wrong(filter, fmt::format("'{}' is no chip or range of chips", v));
      if (*last >= roster_.chips) {
        diagnostics.error(Code::RDU8017, where, "there is no chip{}: the machine has {}", *last, roster_.chips);
        return;
      }
      asked.chips.emplace_back(*first, *last);
    } else if (key == "site") {
      const auto colon = v.find(':');
      const auto x = number(v.substr(0, colon));
      const auto y = colon == std::string_view::npos ? std::nullopt : number(v.substr(colon + 1));
      if (!x || !y) return wrong(filter, fmt::format("'{}' is no site X:Y", v));
      if (*x >= roster_.width || *y >= roster_.height) {
        diagnostics.error(Code::RDU8017, where, "there is no site ({},{}) on a mesh of {} x {}", *x, *y, roster_.width,
                          roster_.height);
        return;
      }
      asked.sites.push_back({*x, *y});
    } else if (key == "stage") {
      const bool any = std::any_of(roster_.stages.begin(), roster_.stages.end(),
                                   [&](const RosterStage& s) { return matches(v, s.name); });
      if (!any) {
        std::vector<std::string_view> names;
        for (const RosterStage& s : roster_.stages) names.push_back(s.name);
        Diagnostic& d = diagnostics.error(Code::RDU8017, where, "no stage is named '{}'", v);
        if (const auto near = nearest(v, names); !near.empty()) d.suggest("did you mean '{}'?", near);
        return;
      }
      asked.stages.emplace_back(v);
    } else if (key == "kind") {
      bool known = false;
      for (std::size_t k = 0; k < event_kinds; ++k)
        known = known || v == name_of(static_cast<EventKind>(k)) || v == group_of(static_cast<EventKind>(k));
      if (!known) return wrong(filter, fmt::format("'{}' is no kind of event", v));
      asked.kinds.emplace_back(v);
    } else {
      wrong(filter, fmt::format("'{}' is no key: they are chip, site, stage, kind", key));
    }
  }

  const Roster& roster_;
};

}  // namespace

Result<TraceSelection> TraceSelection::parse(const std::vector<std::string>& filters, const Roster& r) {
  Parser parser(r);
  for (const std::string& f : filters) parser.parse(f);
  if (parser.diagnostics.has_errors()) return parser.diagnostics;
  const Asked& a = parser.asked;
  TraceSelection s;
  s.everything_ = filters.empty();
  for (std::size_t k = 0; k < event_kinds; ++k) {
    const auto kind = static_cast<EventKind>(k);
    s.kinds_[k] = a.kinds.empty() || std::any_of(a.kinds.begin(), a.kinds.end(), [&](const std::string& name) {
                    return name == name_of(kind) || name == group_of(kind);
                  });
  }
  if (s.everything_) return s;

  const auto chip = [&](std::uint32_t c) {
    return a.chips.empty() || std::any_of(a.chips.begin(), a.chips.end(),
                                          [&](auto range) { return c >= range.first && c <= range.second; });
  };
  const auto place = [&](const Site& site) {
    return chip(site.chip.value) &&
           (a.sites.empty() || std::find(a.sites.begin(), a.sites.end(), site.at) != a.sites.end());
  };
  std::vector<bool> named(r.stages.size());
  for (std::size_t i = 0; i < named.size(); ++i)
    named[i] = a.stages.empty() || std::any_of(a.stages.begin(), a.stages.end(),
                                               [&](const std::string& p) { return matches(p, r.stages[i].name); });
  const bool whole_chips = a.sites.empty() && a.stages.empty();
  const auto list = [&](EventSubject subject) -> std::vector<bool>& {
    auto& l = s.units_[static_cast<std::size_t>(subject)];
    l.resize(subjects(r, subject));
    return l;
  };

  auto& stages = list(EventSubject::stage);
  for (std::uint32_t n = 0; n < stages.size(); ++n) {
    const StageAt at = r.stage_at(n);
    stages[n] = named[at.stage.value] && place(r.site(at));
  }
  auto& buffers = list(EventSubject::buffer);
  for (std::uint32_t n = 0; n < buffers.size(); ++n) {
    const BufferAt at = r.buffer_at(n);
    const RosterBuffer& b = r.buffers[at.buffer.value];
    const bool touched =
        (b.producer && named[*b.producer]) ||
        std::any_of(b.stages.begin(), b.stages.end(), [&](std::uint32_t stage) { return named[stage]; });
    buffers[n] = (a.stages.empty() || touched) && place(r.site(at));
  }
  auto& channels = list(EventSubject::channel);
  auto& senders = list(EventSubject::sender);
  auto& members = list(EventSubject::member);
  for (std::uint32_t sender = 0; sender < r.senders(); ++sender) {
    const auto at = r.sender_at(sender);
    const bool from = stages[r.of(StageAt{StageId{r.edges[at.edge.value].from}, at.from})];
    bool any = from;
    for (std::uint32_t c = 0; c < r.channels_of(sender); ++c) {
      const std::uint32_t n = r.first_channel(sender) + c;
      channels[n] = from || stages[r.of(r.to_of(r.channel_at(n)))];
      any = any || channels[n];
    }
    senders[sender] = any;
    for (std::uint32_t m = 0; m <= r.channels_of(sender); ++m) members[r.member(at.edge, at.from, m)] = any;
  }
  auto& links = list(EventSubject::link);
  for (std::uint32_t n = 0; n < links.size(); ++n)
    links[n] = whole_chips && (chip(r.links[n].from) || chip(r.links[n].to));
  auto& memories = list(EventSubject::memory);
  for (std::uint32_t n = 0; n < memories.size(); ++n) memories[n] = whole_chips && chip(r.memory_at(n).chip);
  return s;
}

}  // namespace rdusim
