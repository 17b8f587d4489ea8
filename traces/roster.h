// Who appears in a trace: names, places and connections of the program's parts, without the program.
//
// Made of a program once; carried by the event log, so that a log can be read and converted without anything else. Ids
// in events are those of the program; the lists here are in their order. Instances, channels and the like are numbered
// densely, so that whoever listens keeps flat arrays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/program.h"
#include "models/events/events.h"

namespace rdusim {

struct RosterStage {
  std::string name;
  std::string kind;  // "load", "store", "matmul", "generic", "receive", "collective"
  std::uint32_t group = 0;
  StageRole role = StageRole::compute;
  std::uint32_t engine = 0;  // context of the PCU, or movement engine
  std::uint32_t section = 0;
  std::uint64_t firings = 0;                   // of every instance, over all trips of its section
  std::vector<std::uint32_t> inputs, outputs;  // buffers
  std::vector<std::uint32_t> tensors;          // that a load reads, a store writes: one, or one a trip
  // Firings that work on each of its tensors.
  std::uint64_t firings_a_tensor() const { return firings / tensors.size(); }
  // Requires tensors, and a firing that there is.
  std::uint32_t tensor_of(std::uint64_t firing) const {
    return tensors[tensors.size() == 1 ? 0 : firing / firings_a_tensor()];
  }
  friend bool operator==(const RosterStage&, const RosterStage&) = default;
};

struct RosterBuffer {
  std::string name;
  std::uint32_t group = 0;
  std::uint64_t depth = 0;                // pages
  std::uint64_t initial = 0;              // pages that are there at the start
  std::uint64_t page_bytes = 0;           // most of a page
  std::optional<std::uint32_t> producer;  // stage
  // In the order that PagePopped counts: local stages, then crossing edges by id.
  std::vector<std::uint32_t> stages, crossings;
  friend bool operator==(const RosterBuffer&, const RosterBuffer&) = default;

  std::uint32_t consumers() const { return static_cast<std::uint32_t>(stages.size() + crossings.size()); }
};

struct RosterEdge {
  Handshake handshake = Handshake::fifo;
  std::uint32_t from = 0;         // stage
  std::uint32_t buffer = 0;       // at the sender
  std::vector<std::uint32_t> to;  // stages
  // Crossing: receiving instances of each sending instance, rising; the same for every `to`.
  std::vector<std::vector<std::uint32_t>> targets;
  std::uint32_t ready_initial = 0, valid_initial = 0;  // Semaphore
  std::string collective;                              // that it belongs to; empty: none
  friend bool operator==(const RosterEdge&, const RosterEdge&) = default;
};

struct RosterLink {
  std::uint32_t from = 0, to = 0;      // chips; of a link into or out of a switch both are its chip
  bool used = false;                   // by an edge of the program
  std::uint32_t into = 0, out_of = 0;  // 1 + the switch that it leads into, or out of; 0: none
  friend bool operator==(const RosterLink&, const RosterLink&) = default;
};

struct RosterTensor {
  std::string name;
  std::uint32_t chip = 0;
  friend bool operator==(const RosterTensor&, const RosterTensor&) = default;
};

class Roster {
 public:
  std::string program, program_sha256, target;
  Fraction clock_ghz;
  std::uint32_t chips = 0;
  std::uint32_t width = 0, height = 0;  // of a chip's mesh
  std::vector<std::vector<Site>> groups;
  std::vector<RosterStage> stages;
  std::vector<RosterBuffer> buffers;
  std::vector<RosterEdge> edges;
  std::vector<RosterLink> links;
  std::vector<RosterTensor> tensors;
  std::vector<std::string> operands;             // names
  std::vector<std::string> sections;             // names
  std::uint32_t memory_channels[3] = {0, 0, 0};  // by memory space

  // ---- numbering; valid after index()

  // False, and nothing is numbered, where there are more of a kind than most_instances.
  bool index();
  static constexpr std::uint64_t most_instances = std::uint64_t{1} << 24;

  std::uint32_t stage_instances() const { return stage_base_.back(); }
  std::uint32_t buffer_instances() const { return buffer_base_.back(); }
  std::uint32_t senders() const { return sender_base_.back(); }
  std::uint32_t channels() const { return static_cast<std::uint32_t>(channel_.size()); }
  std::uint32_t members() const { return senders() + channels(); }  // of all barriers
  std::uint32_t memories() const { return chips * 3 * most_channels_; }

  std::uint32_t of(const StageAt& s) const { return stage_base_[s.stage.value] + s.instance; }
  std::uint32_t of(const BufferAt& b) const { return buffer_base_[b.buffer.value] + b.instance; }
  std::uint32_t of(const ChannelAt& c) const {
    const std::uint32_t s = sender(c.edge, c.from);
    return channels_of(s) == 1 ? first_channel_[s] : of_several(c, s);
  }
  std::uint32_t sender(EdgeId e, std::uint32_t from) const { return sender_base_[e.value] + from; }
  std::uint32_t member(EdgeId e, std::uint32_t from, std::uint32_t m) const {
    const std::uint32_t s = sender(e, from);
    return s + first_channel_[s] + m;
  }
  std::uint32_t memory(ChipId chip, std::uint8_t space, std::uint32_t channel) const {
    return (chip.value * 3 + space) * most_channels_ + channel;
  }

  StageAt stage_at(std::uint32_t n) const;
  BufferAt buffer_at(std::uint32_t n) const;
  const ChannelAt& channel_at(std::uint32_t n) const { return channel_[n]; }
  struct SenderAt {
    EdgeId edge;
    std::uint32_t from = 0;
  };
  SenderAt sender_at(std::uint32_t n) const;
  struct MemberAt {
    EdgeId edge;
    std::uint32_t from = 0, member = 0;
  };
  MemberAt member_at(std::uint32_t n) const;
  struct MemoryAt {
    std::uint32_t chip = 0;
    std::uint8_t space = 0;
    std::uint32_t channel = 0;
  };
  MemoryAt memory_at(std::uint32_t n) const;
  std::uint32_t first_channel(std::uint32_t sender) const { return first_channel_[sender]; }
  std::uint32_t channels_of(std::uint32_t sender) const { return first_channel_[sender + 1] - first_channel_[sender]; }
  // Engine of a stage instance: all stages of a site's engine have one number.
  std::uint32_t engine_of(std::uint32_t stage_instance) const { return engine_[stage_instance]; }
  std::uint32_t engines() const { return engines_; }

  // Whether pages may be of it (PageTag::operand), and what they are then called.
  bool has(OperandId o) const { return is_value(o) ? maker_of(o).value < stages.size() : o.value < operands.size(); }
  std::string name_of(OperandId o) const {
    return is_value(o) ? "result of " + stages[maker_of(o).value].name : operands[o.value];
  }
  const Site& site(const StageAt& s) const { return groups[stages[s.stage.value].group][s.instance]; }
  const Site& site(const BufferAt& b) const { return groups[buffers[b.buffer.value].group][b.instance]; }
  std::uint32_t instances(StageId s) const { return stage_base_[s.value + 1] - stage_base_[s.value]; }
  std::uint32_t instances(BufferId b) const { return buffer_base_[b.value + 1] - buffer_base_[b.value]; }
  // The stage instance at the sending, and at the receiving, end.
  StageAt from_of(const ChannelAt& c) const { return {StageId{edges[c.edge.value].from}, c.from}; }
  StageAt to_of(const ChannelAt& c) const { return {StageId{edges[c.edge.value].to[c.to]}, c.receiver}; }
  // Where its pages land; nothing where the receiving stage has no buffer there.
  std::optional<BufferAt> landing(const ChannelAt& c) const;

  // "chip3.site(4,7).pcu", ".movement1", ".pmu"
  std::string place(const StageAt& s) const;
  std::string place(const BufferAt& b) const;
  std::string unit(const StageAt& s) const;  // "pcu", "pcu.context1", "movement1"
  // "'fold' at chip3.site(4,7)"
  std::string describe(const StageAt& s) const;
  std::string describe(const BufferAt& b) const;
  // "edge 7 from 'x' at chip1.site(0,0) to 'y' at chip0.site(0,0)"
  std::string describe(const ChannelAt& c) const;
  std::string link_name(LinkId l) const;  // "link5 chip0->chip1"

  // Whether the lists are those of the other; what is worked out from them follows.
  bool same_as(const Roster& other) const;

 private:
  std::uint32_t of_several(const ChannelAt& c, std::uint32_t sender) const;

  std::vector<std::uint32_t> stage_base_ = {0}, buffer_base_ = {0}, sender_base_ = {0}, first_channel_ = {0};
  std::vector<ChannelAt> channel_;
  std::vector<std::uint32_t> engine_;
  std::uint32_t engines_ = 0;
  std::uint32_t most_channels_ = 1;
};

// Requires a placed program whose references resolve. Not numbered yet.
Roster roster_of(const SpatialProgram& program, const Target& target, std::string program_sha256);

// As the event log carries it.
std::string encode(const Roster& roster);
// Everything is checked: references resolve, counts have bytes behind them. Nothing where they do not.
std::optional<Roster> decode_roster(std::string_view bytes);

}  // namespace rdusim
