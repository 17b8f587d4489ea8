// The roster as bytes.
#include <map>

#include "traces/roster.h"
#include "traces/wire.h"

namespace rdusim {

namespace {

// Every distinct text once, in order of first use; elsewhere its number stands.
class StringTable {
 public:
  void put(std::string& out, const std::string& text) {
    const auto [it, added] = numbers_.try_emplace(text, numbers_.size());
    if (added) put_text(bytes_, text);
    put_varint(out, it->second);
  }
  std::string finish(const std::string& rest) const {
    std::string out;
    put_varint(out, numbers_.size());
    return out + bytes_ + rest;
  }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::string bytes_;
};

template <class List, class Put>
void put_list(std::string& out, const List& list, Put&& put) {
  put_varint(out, list.size());
  for (const auto& x : list) put(x);
}

// Rising or falling, as ids in lists mostly are.
void put_numbers(std::string& out, const std::vector<std::uint32_t>& list) {
  std::uint32_t last = 0;
  put_list(out, list, [&](std::uint32_t n) {
    put_varint(out, zigzag(static_cast<std::uint64_t>(n) - last));
    last = n;
  });
}

class RosterReader {
 public:
  explicit RosterReader(std::string_view bytes) : in_(bytes) {}

  std::optional<Roster> read() {
    const std::size_t strings = in_.count();
    for (std::size_t i = 0; i < strings && !in_.failed(); ++i) strings_.push_back(in_.text());
    Roster r;
    r.program = text();
    r.program_sha256 = text();
    r.target = text();
    r.clock_ghz = {in_.varint(), in_.varint()};
    r.chips = u32();
    r.width = u32();
    r.height = u32();
    for (std::uint32_t& n : r.memory_channels) n = u32();
    each([&] {
      std::vector<Site> sites;
      each([&] {
        sites.push_back(
            {ChipId{in_.below(r.chips)},
             {static_cast<std::uint32_t>(in_.below(r.width)), static_cast<std::uint32_t>(in_.below(r.height))}});
      });
      r.groups.push_back(std::move(sites));
    });
    each([&] { r.sections.push_back(text()); });
    each([&] { r.operands.push_back(text()); });
    each([&] {
      std::string name = text();
      r.tensors.push_back({std::move(name), static_cast<std::uint32_t>(in_.below(r.chips))});
    });
    each([&] {
      const auto from = static_cast<std::uint32_t>(in_.below(r.chips));
      const auto to = static_cast<std::uint32_t>(in_.below(r.chips));
      // Of no switch, 0 or 1; else with its number above that.
      const std::uint64_t way = in_.below(std::uint64_t{1} << 32);
      const auto past = static_cast<std::uint32_t>(way >> 2U);
      r.links.push_back({from, to, way % 2 == 1, way % 4 < 2 ? past : 0, way % 4 < 2 ? 0 : past + 1});
    });
    each([&] { r.buffers.push_back(buffer(r)); });
    each([&] { r.stages.push_back(stage(r)); });
    each([&] { r.edges.push_back(edge(r)); });
    if (r.clock_ghz.den == 0 || !in_.done() || in_.failed() || !resolves(r) || !r.index()) return std::nullopt;
    return r;
  }

 private:
  template <class F>
  void each(F&& f) {
    const std::size_t n = in_.count();
    for (std::size_t i = 0; i < n && !in_.failed(); ++i) f();
  }
  std::uint32_t u32() { return static_cast<std::uint32_t>(in_.below(std::uint64_t{1} << 32)); }
  std::string text() {
    const std::uint64_t n = in_.below(strings_.size());
    return n < strings_.size() ? std::string(strings_[n]) : std::string();
  }
  std::vector<std::uint32_t> numbers() {
    std::vector<std::uint32_t> list;
    std::uint64_t last = 0;
    each([&] {
      last += unzigzag(in_.varint());
      if (last >> 32U != 0) in_.fail();
      list.push_back(static_cast<std::uint32_t>(last));
    });
    return list;
  }
  RosterBuffer buffer(const Roster& r) {
    RosterBuffer b;
    b.name = text();
    b.group = static_cast<std::uint32_t>(in_.below(r.groups.size()));
    b.depth = in_.varint();
    b.initial = in_.varint();
    b.page_bytes = in_.varint();
    if (const std::uint64_t p = in_.varint(); p != 0) b.producer = static_cast<std::uint32_t>(p - 1);
    b.stages = numbers();
    b.crossings = numbers();
    return b;
  }
  RosterStage stage(const Roster& r) {
    RosterStage s;
    s.name = text();
    s.kind = text();
    s.group = static_cast<std::uint32_t>(in_.below(r.groups.size()));
    s.role = in_.below(2) == 0 ? StageRole::compute : StageRole::movement;
    s.engine = u32();
    s.section = static_cast<std::uint32_t>(in_.below(r.sections.size()));
    s.firings = in_.varint();
    s.inputs = numbers();
    s.outputs = numbers();
    s.tensors = numbers();
    return s;
  }
  RosterEdge edge(const Roster& r) {
    RosterEdge e;
    e.handshake = static_cast<Handshake>(in_.below(static_cast<std::uint64_t>(Handshake::barrier) + 1));
    e.from = static_cast<std::uint32_t>(in_.below(r.stages.size()));
    e.buffer = static_cast<std::uint32_t>(in_.below(r.buffers.size()));
    e.to = numbers();
    e.ready_initial = u32();
    e.valid_initial = u32();
    e.collective = text();
    each([&] { e.targets.push_back(numbers()); });
    return e;
  }
  // What could not be looked at while it was read.
  static bool resolves(const Roster& r) {
    const auto all_below = [](const std::vector<std::uint32_t>& list, std::size_t limit) {
      for (std::uint32_t n : list)
        if (n >= limit) return false;
      return true;
    };
    for (const RosterStage& s : r.stages)
      if (!all_below(s.inputs, r.buffers.size()) || !all_below(s.outputs, r.buffers.size()) ||
          !all_below(s.tensors, r.tensors.size()) || s.tensors.size() > std::max<std::uint64_t>(s.firings, 1))
        return false;
    for (const RosterBuffer& b : r.buffers) {
      if (!all_below(b.stages, r.stages.size()) || !all_below(b.crossings, r.edges.size())) return false;
      if (b.producer && *b.producer >= r.stages.size()) return false;
    }
    for (const RosterEdge& e : r.edges) {
      if (!all_below(e.to, r.stages.size())) return false;
      if (is_local(e.handshake) && !e.targets.empty()) return false;
      if (e.targets.size() > r.groups[r.stages[e.from].group].size()) return false;
      for (const auto& targets : e.targets) {
        for (std::size_t i = 1; i < targets.size(); ++i)
          if (targets[i] <= targets[i - 1]) return false;
        for (std::uint32_t to : e.to)
          if (!all_below(targets, r.groups[r.stages[to].group].size())) return false;
      }
    }
    return true;
  }

  WireReader in_;
  std::vector<std::string_view> strings_;
};

}  // namespace

std::string encode(const Roster& r) {
  StringTable strings;
  std::string out;
  const auto text = [&](const std::string& t) { strings.put(out, t); };
  const auto number = [&](std::uint64_t n) { put_varint(out, n); };
  text(r.program);
  text(r.program_sha256);
  text(r.target);
  number(r.clock_ghz.num);
  number(r.clock_ghz.den);
  number(r.chips);
  number(r.width);
  number(r.height);
  for (std::uint32_t n : r.memory_channels) number(n);
  put_list(out, r.groups, [&](const std::vector<Site>& sites) {
    put_list(out, sites, [&](const Site& s) {
      number(s.chip.value);
      number(s.at.x);
      number(s.at.y);
    });
  });
  put_list(out, r.sections, text);
  put_list(out, r.operands, text);
  put_list(out, r.tensors, [&](const RosterTensor& t) {
    text(t.name);
    number(t.chip);
  });
  put_list(out, r.links, [&](const RosterLink& l) {
    number(l.from);
    number(l.to);
    const std::uint64_t way = l.out_of != 0 ? std::uint64_t{l.out_of - 1} << 2 | 2 : std::uint64_t{l.into} << 2;
    number(way | (l.used ? 1 : 0));
  });
  put_list(out, r.buffers, [&](const RosterBuffer& b) {
    text(b.name);
    number(b.group);
    number(b.depth);
    number(b.initial);
    number(b.page_bytes);
    number(b.producer ? std::uint64_t{*b.producer} + 1 : 0);
    put_numbers(out, b.stages);
    put_numbers(out, b.crossings);
  });
  put_list(out, r.stages, [&](const RosterStage& s) {
    text(s.name);
    text(s.kind);
    number(s.group);
    number(s.role == StageRole::compute ? 0 : 1);
    number(s.engine);
    number(s.section);
    number(s.firings);
    put_numbers(out, s.inputs);
    put_numbers(out, s.outputs);
    put_numbers(out, s.tensors);
  });
  put_list(out, r.edges, [&](const RosterEdge& e) {
    number(static_cast<std::uint64_t>(e.handshake));
    number(e.from);
    number(e.buffer);
    put_numbers(out, e.to);
    number(e.ready_initial);
    number(e.valid_initial);
    text(e.collective);
    put_list(out, e.targets, [&](const std::vector<std::uint32_t>& t) { put_numbers(out, t); });
  });
  return strings.finish(out);
}

std::optional<Roster> decode_roster(std::string_view bytes) {
  return RosterReader(bytes).read();
}

}  // namespace rdusim
