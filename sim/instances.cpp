#include "sim/instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/ir/print.h"

namespace rdusim {

namespace {

std::uint32_t sites_of_group(const SpatialProgram& p, GroupId g) {
  return static_cast<std::uint32_t>(p.group(g).sites.size());
}

std::vector<std::uint32_t> sorted_targets(const Edge& e, std::uint32_t from) {
  if (e.map.kind == PageMapKind::one_to_one) return {from};
  if (from >= e.map.targets.size()) return {};
  std::vector<std::uint32_t> t = e.map.targets[from];
  std::sort(t.begin(), t.end());
  t.erase(std::unique(t.begin(), t.end()), t.end());
  return t;
}

// A scatter deals its pages to its targets in the order in which they are listed.
Turn turn_of(const Edge& e, std::uint32_t from, std::uint32_t target) {
  if (e.map.kind != PageMapKind::scatter || from >= e.map.targets.size()) return {};
  const std::vector<std::uint32_t>& t = e.map.targets[from];
  Turn turn{0, static_cast<std::uint32_t>(t.size())};
  for (std::uint32_t i = 0; i < t.size(); ++i) {
    if (t[i] == target) turn.part = i;
  }
  return turn;
}

}  // namespace

Instances::Instances(const SpatialProgram& program) : program_(&program) {
  stage_base_.push_back(0);
  for (const Stage& s : program.stages) {
    const std::uint32_t n = sites_of_group(program, s.group);
    for (std::uint32_t i = 0; i < n; ++i) stage_.push_back({s.id, i});
    stage_base_.push_back(stage_base_.back() + n);
  }
  buffer_base_.push_back(0);
  for (const Buffer& b : program.buffers) {
    const std::uint32_t n = sites_of_group(program, b.group);
    for (std::uint32_t i = 0; i < n; ++i) buffer_.push_back({b.id, i});
    buffer_base_.push_back(buffer_base_.back() + n);
  }

  ends_.resize(program.buffers.size());
  for (const Stage& s : program.stages) {
    for (const Port& port : s.ports) {
      if (port.direction == Direction::output) ends_[port.buffer.value].producer = s.id;
    }
  }
  for (const Edge& e : program.edges) {
    if (!is_local(e.handshake)) continue;
    ends_[e.buffer.value].local = e.id;
    for (StageId to : e.to) ends_[e.buffer.value].consumers.push_back({to, std::nullopt});
  }

  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> receiver_number;
  sender_base_.push_back(0);
  for (const Edge& e : program.edges) {
    if (is_local(e.handshake)) {
      sender_base_.push_back(sender_base_.back());
      continue;
    }
    ends_[e.buffer.value].consumers.push_back({std::nullopt, e.id});
    const std::uint32_t senders = sites_of_group(program, program.stage(e.from).group);
    for (std::uint32_t from = 0; from < senders; ++from) {
      const std::vector<std::uint32_t> targets = sorted_targets(e, from);
      first_channel_.push_back(static_cast<std::uint32_t>(channel_.size()));
      first_target_.push_back(static_cast<std::uint32_t>(targets_.size()));
      targets_.insert(targets_.end(), targets.begin(), targets.end());
      for (std::uint32_t to = 0; to < e.to.size(); ++to) {
        for (std::uint32_t target : targets) {
          const auto [it, added] = receiver_number.try_emplace({e.id.value, to, target}, receivers_.size());
          if (added) {
            Receiver r{e.id, to, target, 0, {}};
            const Stage& recv = program.stage(e.to[to]);
            if (!recv.ports.empty() && target < instances(recv.ports.front().buffer)) {
              r.buffer = of(BufferAt{recv.ports.front().buffer, target});
            }
            receivers_.push_back(std::move(r));
          }
          receivers_[it->second].channels.push_back(static_cast<std::uint32_t>(channel_.size()));
          receiver_of_.push_back(it->second);
          channel_.push_back({e.id, from, to, target});
          turn_.push_back(turn_of(e, from, target));
        }
      }
    }
    sender_base_.push_back(sender_base_.back() + senders);
    for (std::uint32_t to = 0; to < e.to.size(); ++to) {
      const Stage& recv = program.stage(e.to[to]);
      if (recv.ports.empty()) continue;
      BufferEnds& landing = ends_[recv.ports.front().buffer.value];
      landing.landing = e.id;
      landing.landing_to = to;
    }
  }
  first_channel_.push_back(static_cast<std::uint32_t>(channel_.size()));
  first_target_.push_back(static_cast<std::uint32_t>(targets_.size()));
  receiver_into_.resize(buffers());
  for (std::uint32_t r = 0; r < receivers_.size(); ++r) receiver_into_[receivers_[r].buffer] = r;
}

std::span<const std::uint32_t> Instances::receivers_of(EdgeId e, std::uint32_t from) const {
  const std::uint32_t s = sender(e, from);
  return {targets_.data() + first_target_[s], first_target_[s + 1] - first_target_[s]};
}

std::uint32_t Instances::channels_of(EdgeId e, std::uint32_t from) const {
  const std::uint32_t s = sender(e, from);
  return first_channel_[s + 1] - first_channel_[s];
}

std::uint32_t Instances::of(const ChannelAt& c) const {
  const auto targets = receivers_of(c.edge, c.from);
  std::size_t at = 0;
  if (targets.size() > 1) {
    at = static_cast<std::size_t>(std::lower_bound(targets.begin(), targets.end(), c.receiver) - targets.begin());
  }
  return first_channel_[sender(c.edge, c.from)] + static_cast<std::uint32_t>(c.to * targets.size() + at);
}

const Site& Instances::site(const StageAt& s) const {
  return program_->sites_of(program_->stage(s.stage)).sites[s.instance];
}
const Site& Instances::site(const BufferAt& b) const {
  return program_->group(program_->buffer(b.buffer).group).sites[b.instance];
}

std::string Instances::place(const StageAt& s) const {
  const Stage& stage = program_->stage(s.stage);
  if (stage.engine.kind == StageRole::compute) return to_string(site(s)) + ".pcu";
  return fmt::format("{}.movement{}", to_string(site(s)), stage.engine.index);
}

std::string Instances::place(const BufferAt& b) const {
  return to_string(site(b)) + ".pmu";
}

std::string Instances::describe(const StageAt& s) const {
  return fmt::format("stage '{}' at {}", program_->stage(s.stage).name, to_string(site(s)));
}

std::string Instances::describe(const BufferAt& b) const {
  return fmt::format("buffer '{}' at {}", program_->buffer(b.buffer).name, to_string(site(b)));
}

std::string Instances::describe(const ChannelAt& c) const {
  const Edge& e = program_->edge(c.edge);
  return fmt::format("edge {} from '{}' at {} to '{}' at {}", c.edge.value, program_->stage(e.from).name,
                     to_string(site(StageAt{e.from, c.from})), program_->stage(e.to[c.to]).name,
                     to_string(site(StageAt{e.to[c.to], c.receiver})));
}

}  // namespace rdusim
