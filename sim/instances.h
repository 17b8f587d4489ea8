// Every instance of a program's stages, buffers and channels, numbered densely, so that whoever listens to events keeps
// flat arrays.
//
// A stage, a buffer and a sending end of an edge have an instance on every site of their group. A channel is a pair of
// instances of a crossing edge; a *receiver* is a landing instance with all the channels of one edge that end there.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/program.h"
#include "models/events/events.h"

namespace rdusim {

// Who takes pages out of a buffer: a local stage, or a crossing edge that sends them on.
struct BufferConsumer {
  std::optional<StageId> stage;
  std::optional<EdgeId> crossing;
};

struct BufferEnds {
  std::optional<StageId> producer;        // whose output port names the buffer
  std::optional<EdgeId> local;            // the local edge that the buffer belongs to
  std::optional<EdgeId> landing;          // the crossing edge that lands in it
  std::uint32_t landing_to = 0;           // index into that edge's `to`
  std::vector<BufferConsumer> consumers;  // in the order that PagePopped counts: local ones, then crossing edges by id
};

struct Receiver {
  EdgeId edge;
  std::uint32_t to = 0;
  std::uint32_t instance = 0;
  std::uint32_t buffer = 0;             // the landing buffer's instance
  std::vector<std::uint32_t> channels;  // rising sender
};

// Which of its sender's pages a channel carries: those p with p mod parts = part. All of them, but for a scatter.
struct Turn {
  std::uint32_t part = 0, parts = 1;
  // How many of the sender's first `pages` pages are the channel's.
  std::uint64_t of(std::uint64_t pages) const { return pages / parts + (pages % parts > part ? 1 : 0); }
  bool has(std::uint64_t page) const { return page % parts == part; }
};

// Requires a placed program whose references resolve, which outlives this.
class Instances {
 public:
  explicit Instances(const SpatialProgram& program);

  const SpatialProgram& program() const { return *program_; }

  std::uint32_t stages() const { return stage_base_.back(); }
  std::uint32_t buffers() const { return buffer_base_.back(); }
  std::uint32_t senders() const { return sender_base_.back(); }
  std::uint32_t channels() const { return static_cast<std::uint32_t>(channel_.size()); }

  std::uint32_t of(const StageAt& s) const { return stage_base_[s.stage.value] + s.instance; }
  std::uint32_t of(const BufferAt& b) const { return buffer_base_[b.buffer.value] + b.instance; }
  std::uint32_t sender(EdgeId e, std::uint32_t from) const { return sender_base_[e.value] + from; }
  // Requires a channel of the program.
  std::uint32_t of(const ChannelAt& c) const;

  StageAt stage_at(std::uint32_t n) const { return stage_[n]; }
  BufferAt buffer_at(std::uint32_t n) const { return buffer_[n]; }
  const ChannelAt& channel_at(std::uint32_t n) const { return channel_[n]; }
  std::uint32_t receiver_of(std::uint32_t channel) const { return receiver_of_[channel]; }
  const Turn& turn(std::uint32_t channel) const { return turn_[channel]; }
  const std::vector<Receiver>& receivers() const { return receivers_; }
  // The receiver that lands in a buffer instance, where one does.
  std::optional<std::uint32_t> receiver_into(std::uint32_t buffer_instance) const {
    return receiver_into_[buffer_instance];
  }

  // Receiving instances of one `to` of a sender, rising; the channels of a sender are numbered by (to, place in this
  // list).
  std::span<const std::uint32_t> receivers_of(EdgeId e, std::uint32_t from) const;
  std::uint32_t first_channel(EdgeId e, std::uint32_t from) const { return first_channel_[sender(e, from)]; }
  std::uint32_t channels_of(EdgeId e, std::uint32_t from) const;

  const BufferEnds& ends(BufferId b) const { return ends_[b.value]; }
  std::uint32_t instances(StageId s) const { return stage_base_[s.value + 1] - stage_base_[s.value]; }
  std::uint32_t instances(BufferId b) const { return buffer_base_[b.value + 1] - buffer_base_[b.value]; }

  const Site& site(const StageAt& s) const;
  const Site& site(const BufferAt& b) const;

  // "chip3.site(4,7).pmu" of a buffer, ".pcu" or ".movement0" of a stage.
  std::string place(const StageAt& s) const;
  std::string place(const BufferAt& b) const;
  // "stage 'load_x' at chip3.site(4,7)"
  std::string describe(const StageAt& s) const;
  std::string describe(const BufferAt& b) const;
  // "edge 7 from 'fold' at chip0.site(0,0) to 'recv' at chip1.site(0,0)"
  std::string describe(const ChannelAt& c) const;

 private:
  const SpatialProgram* program_;
  std::vector<std::uint32_t> stage_base_, buffer_base_, sender_base_;  // by id, and one past the end
  std::vector<StageAt> stage_;
  std::vector<BufferAt> buffer_;
  std::vector<BufferEnds> ends_;
  std::vector<std::uint32_t> first_channel_;  // by sender, and one past the end
  std::vector<std::uint32_t> first_target_;   // by sender, and one past the end: into targets_
  std::vector<std::uint32_t> targets_;        // rising within a sender
  std::vector<ChannelAt> channel_;
  std::vector<std::uint32_t> receiver_of_;
  std::vector<Turn> turn_;  // by channel
  std::vector<Receiver> receivers_;
  std::vector<std::optional<std::uint32_t>> receiver_into_;  // by buffer instance
};

}  // namespace rdusim
