#include "tests/traces/signal_fold.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <tuple>

namespace rdusim::test {

namespace {

std::string plain(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
}

std::string at(const Site& s) {
  return fmt::format("chip{}.site_{}_{}", s.chip.value, s.at.x, s.at.y);
}

}  // namespace

SignalFold::SignalFold(const Roster& roster) : r_(roster) {
  for (std::uint32_t i = 0; i < r_.stages.size(); ++i)
    for (std::uint32_t n = 0; n < r_.instances(StageId{i}); ++n) {
      w_[stage({StageId{i}, n}) + ".state"][0] = 0;
      w_[stage({StageId{i}, n}) + ".firing"][0] = 0;
    }
  for (std::uint32_t i = 0; i < r_.buffers.size(); ++i)
    for (std::uint32_t n = 0; n < r_.instances(BufferId{i}); ++n) {
      const BufferAt b{BufferId{i}, n};
      popped_[b].resize(r_.buffers[i].consumers());
      count_[buffer(b) + ".reserved"] = count_[buffer(b) + ".pushed"] =
          static_cast<std::int64_t>(r_.buffers[i].initial);
      show(b, 0);
    }
  const auto landing_of = [](const ChannelAt& ch) { return std::tuple(ch.edge, ch.to, ch.receiver); };
  std::map<decltype(landing_of(r_.channel_at(0))), std::vector<std::uint32_t>> senders;
  for (std::uint32_t c = 0; c < r_.channels(); ++c)
    senders[landing_of(r_.channel_at(c))].push_back(r_.channel_at(c).from);
  for (std::uint32_t c = 0; c < r_.channels(); ++c) {
    const ChannelAt& ch = r_.channel_at(c);
    const RosterEdge& e = r_.edges[ch.edge.value];
    // Places of the landing buffer go to its senders in turn.
    const std::vector<std::uint32_t>& others = senders.at(landing_of(ch));
    std::uint64_t mine = 0;
    if (e.handshake == Handshake::token) {
      for (std::uint64_t place = 0; place < r_.buffers[r_.stages[e.to[ch.to]].outputs.front()].depth; ++place)
        mine += others[place % others.size()] == ch.from ? 1 : 0;
    }
    count_[channel(ch) + ".credits"] = static_cast<std::int64_t>(mine);
    w_[channel(ch) + ".credits"][0] = mine;
    w_[channel(ch) + ".under_way"][0] = 0;
    if (e.handshake == Handshake::semaphore) {
      w_[sender(ch.edge, ch.from) + ".ready_semaphore"][0] = e.ready_initial;
      w_[buffer(*r_.landing(ch)) + ".valid_semaphore"][0] = e.valid_initial;
    }
    if (e.handshake == Handshake::barrier) w_[sender(ch.edge, ch.from) + ".at_barrier"][0] = 0;
  }
}

std::string SignalFold::stage(const StageAt& s) const {
  return fmt::format("{}.{}.{}", at(r_.site(s)), plain(r_.unit(s)), plain(r_.stages[s.stage.value].name));
}
std::string SignalFold::buffer(const BufferAt& b) const {
  return fmt::format("{}.pmu.{}", at(r_.site(b)), plain(r_.buffers[b.buffer.value].name));
}
std::string SignalFold::sender(EdgeId e, std::uint32_t from) const {
  return fmt::format("{}.crossing.edge{}", at(r_.site(StageAt{StageId{r_.edges[e.value].from}, from})), e.value);
}
std::string SignalFold::channel(const ChannelAt& c) const {
  const StageAt to = r_.to_of(c);
  const Site& s = r_.site(to);
  return fmt::format("{}.to_{}_chip{}_site_{}_{}", sender(c.edge, c.from), plain(r_.stages[to.stage.value].name),
                     s.chip.value, s.at.x, s.at.y);
}

void SignalFold::show(const BufferAt& b, Cycle now) {
  const std::string name = buffer(b);
  const auto& list = popped_[b];
  const std::int64_t popped = list.empty() ? 0 : static_cast<std::int64_t>(*std::min_element(list.begin(), list.end()));
  const std::int64_t held = count_[name + ".pushed"] - popped;
  const std::int64_t claimed = count_[name + ".reserved"] - popped;
  w_[name + ".valid"][now] = held > 0 ? 1 : 0;
  w_[name + ".ready"][now] = claimed < static_cast<std::int64_t>(r_.buffers[b.buffer.value].depth) ? 1 : 0;
  w_[name + ".occupancy"][now] = static_cast<std::uint64_t>(held);
  w_[name + ".claimed"][now] = static_cast<std::uint64_t>(claimed);
}

void SignalFold::on(const FiringStarted& e) {
  taken_[stage(e.stage) + ".state"].emplace_back(e.at, e.at + e.busy);
  w_[stage(e.stage) + ".firing"][e.at] = e.firing;
}
void SignalFold::on(const FiringCompleted& e) {
  if (e.firing + 1 == r_.stages[e.stage.stage.value].firings) completed_[stage(e.stage) + ".state"] = e.at;
}
void SignalFold::on(const PageReserved& e) {
  count_[buffer(e.buffer) + ".reserved"] += e.pages;
  show(e.buffer, e.at);
}
void SignalFold::on(const PagePushed& e) {
  ++count_[buffer(e.buffer) + ".pushed"];
  show(e.buffer, e.at);
}
void SignalFold::on(const PagePopped& e) {
  ++popped_[e.buffer][e.consumer];
  show(e.buffer, e.at);
}
void SignalFold::on(const CreditTaken& e) {
  w_[channel(e.channel) + ".credits"][e.at] = static_cast<std::uint64_t>(--count_[channel(e.channel) + ".credits"]);
}
void SignalFold::on(const CreditArrived& e) {
  w_[channel(e.channel) + ".credits"][e.at] = static_cast<std::uint64_t>(++count_[channel(e.channel) + ".credits"]);
}
void SignalFold::on(const PageSent& e) {
  const std::int64_t n = ++count_[channel(e.channel) + ".under_way"];
  w_[channel(e.channel) + ".under_way"][e.at] = static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0));
}
void SignalFold::on(const PageLanded& e) {
  const std::int64_t n = --count_[channel(e.channel) + ".under_way"];
  w_[channel(e.channel) + ".under_way"][e.at] = static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0));
}
void SignalFold::on(const ReadyRaised& e) {
  w_[sender(e.channel.edge, e.channel.from) + ".ready_semaphore"][e.at] = e.value;
}
void SignalFold::on(const ReadyConsumed& e) {
  w_[sender(e.edge, e.from) + ".ready_semaphore"][e.at] = e.value;
}
void SignalFold::on(const ValidRaised& e) {
  w_[buffer(*r_.landing(e.channel)) + ".valid_semaphore"][e.at] = e.value;
}
void SignalFold::on(const ValidConsumed& e) {
  w_[buffer(*r_.landing(e.channel)) + ".valid_semaphore"][e.at] = e.value;
}
void SignalFold::on(const BarrierArrived& e) {
  const std::string name = sender(e.edge, e.from) + ".at_barrier";
  w_[name][e.at] = static_cast<std::uint64_t>(++count_[name]);
}
void SignalFold::on(const BarrierLeft& e) {
  const std::string name = sender(e.edge, e.from) + ".at_barrier";
  w_[name][e.at] = static_cast<std::uint64_t>(--count_[name]);
}
void SignalFold::on(const LinkUsed& e) {
  if (e.end > e.begin)
    taken_[fmt::format("chip{}.links.link{}_to_chip{}.busy", r_.links[e.link.value].from, e.link.value,
                       r_.links[e.link.value].to)]
        .emplace_back(e.begin, e.end);
}
void SignalFold::on(const MemoryUsed& e) {
  if (e.end > e.begin)
    taken_[fmt::format("chip{}.{}.channel{}.busy", e.chip.value, e.space == 1 ? "hbm" : "ddr", e.channel)].emplace_back(
        e.begin, e.end);
}

Waveform SignalFold::finish(Cycle end) {
  for (const auto& [name, intervals] : taken_) {
    w_[name][0] = w_[name].count(0) != 0 ? w_[name][0] : 0;
    for (const auto& [from, to] : intervals) w_[name].emplace(to, 0);
    for (const auto& [from, to] : intervals) w_[name][from] = 1;
    if (const auto done = completed_.find(name); done != completed_.end())
      w_[name][std::max(done->second, intervals.back().second)] = 2;
  }
  for (auto& [name, values] : w_) values.erase(values.upper_bound(end), values.end());
  return changes_of(w_);
}

Waveform changes_of(Waveform w) {
  for (auto& [name, values] : w) {
    for (auto it = std::next(values.begin()); it != values.end();)
      it = it->second == std::prev(it)->second ? values.erase(it) : std::next(it);
  }
  return w;
}

Waveform read_vcd(const std::string& text, const Timebase& time) {
  Waveform w;
  std::map<std::string, std::vector<std::string>> names;  // by code; several where values are equal all along
  std::istringstream in(text);
  std::vector<std::string> scope;
  std::string word;
  std::uint64_t now = 0;
  bool head = true;
  while (in >> word) {
    if (word == "$scope") {
      std::string kind, name, end;
      in >> kind >> name >> end;
      scope.push_back(name);
    } else if (word == "$upscope") {
      in >> word;
      REQUIRE_FALSE(scope.empty());
      scope.pop_back();
    } else if (word == "$var") {
      std::string type, bits, code, name;
      in >> type >> bits >> code >> name;
      std::string full;
      for (const std::string& s : scope) full += s + ".";
      names[code].push_back(full + name);
      while (word != "$end") in >> word;
    } else if (word == "$enddefinitions") {
      in >> word;
      head = false;
      CHECK(scope.empty());
    } else if (word == "$dumpvars" || word == "$end") {
    } else if (word[0] == '$') {
      while (in >> word && word != "$end") {
      }
    } else if (word[0] == '#') {
      now = std::stoull(word.substr(1));
      const std::uint64_t tick = now;
      now = ceil_div(tick * time.ticks_per_cycle.den, time.ticks_per_cycle.num);
      REQUIRE(time.tick(now) == tick);
    } else {
      REQUIRE_FALSE(head);
      std::uint64_t value = 0;
      std::string code;
      if (word[0] == 'b') {
        value = std::stoull(word.substr(1), nullptr, 2);
        in >> code;
      } else {
        REQUIRE((word[0] == '0' || word[0] == '1'));
        value = static_cast<std::uint64_t>(word[0] - '0');
        code = word.substr(1);
      }
      REQUIRE(names.count(code) == 1);
      for (const std::string& name : names[code]) w[name][now] = value;
    }
  }
  return w;
}

}  // namespace rdusim::test
