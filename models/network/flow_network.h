// The on-chip network at its flit level inside a run: pages as streams of one-flit packets along programmed flows.
//
// SN40L's vector network carries packets of one vector along flows whose outputs are looked up at every switch port, with
// multicast, and credits at every hop (arXiv 2405.07518). So a packet is one flit here, and holds nothing behind it.
//
//   router   input-queued, virtual channels, a registered switch: a flit that arrives at a may cross in a, and arrives at
//            the next router at a + hop. One that a unit puts in at t is at its router at t + endpoint; one that crosses
//            to a unit at a is there at a + endpoint, and its last byte a cycle later. So the first flit of a page that
//            starts at t over h hops is out at t + 2 endpoint + h hop, and the last of f flits f cycles after: what the
//            fast level's law says of an empty network.
//   route    dimension order, x first. The routes of a flow are a tree, and a flit is copied where they part: its copies
//            leave one by one as their outputs are free, and it keeps its place until all have. A flow keeps to one
//            virtual channel, its number modulo the channels: its flits stay in order.
//   ports    four to the neighbours, and `locals` for the units at the switch, each a flit a cycle each way.
//   credits  one a flit of buffer, of each virtual channel of each link; given back when the flit has left, usable `hop`
//            (from a unit's port: endpoint) later. Units take what comes: landing space was reserved before the page was
//            sent.
//   switch   separable, round robin, one iteration: every output grants one input, an input accepts one virtual channel
//            and with it all outputs that granted it. A link carries a flit every `period` cycles (exact).
//   sources  the pages of a unit's port leave in the order in which they were sent, but one whose virtual channel has no
//            room lets the next of another channel go first. Flit i of a page leaves at from + i at the earliest, the last
//            one at ready - 1.
//   progress a copy waits only for room in channels that come later in the order of dimensions, and units take all: no
//            circular wait.
//   never    drops (but what a fault sends astray), reorders within a flow, or judges.
//   cost     nothing where no flit is; nothing is allocated but room for more at once than ever before.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "compiler/support/units.h"

namespace rdusim {

struct FlowNetworkParameters {
  std::uint32_t width = 1, height = 1;
  std::uint32_t locals = 1;  // at most 4
  std::uint32_t vcs = 4;     // at most 16
  std::uint32_t buffer_flits = 8;
  std::uint32_t hop_cycles = 1, endpoint_cycles = 1;  // 0 counts as 1
  Fraction period = {1, 1};                           // cycles that a flit takes a link, at least 1
};

class FlowNetwork {
 public:
  static constexpr Cycle never = std::numeric_limits<Cycle>::max();
  static constexpr std::uint32_t most_locals = 4;

  explicit FlowNetwork(const FlowNetworkParameters& p);

  // A unit: the switch it stands at (y * width + x), and its port there, below `locals`.
  struct End {
    std::uint32_t node = 0;
    std::uint32_t port = 0;
  };
  // Before the first page. Ends of equal node and port may stand in `to` more than once.
  std::uint32_t add_flow(End from, std::span<const End> to);

  // A page of `flits` >= 1; `page` is the caller's. Requires from >= the cycle that is done next. With `astray`, of a
  // page of several flits, the first leaves its first switch by a wrong port, where there is one; the switch that it comes
  // to knows no such flow, and drops it. The page is then complete without it.
  void send(std::uint32_t flow, std::uint32_t page, std::uint32_t flits, Cycle from, Cycle ready, bool astray = false);

  // The earliest cycle in which there is something to do.
  Cycle next() const { return next_; }
  // Does the cycle `now`. Afterwards hold
  struct Left {
    std::uint32_t page;
    Cycle at;  // its last byte is out of the source
  };
  struct Head {
    std::uint32_t page, leaf;
    Cycle at;  // its first byte comes out of its unit's port
  };
  struct Arrival {
    std::uint32_t page, leaf;
    Cycle head, tail;  // its last byte
  };
  // and all times lie after `now`. Requires next() <= now, and rising `now`.
  void advance(Cycle now);
  std::span<const Left> left() const { return left_; }
  std::span<const Head> heads() const { return heads_; }
  std::span<const Arrival> arrivals() const { return arrivals_; }

  bool empty() const { return pages_out_ == 0; }
  std::uint64_t traversals() const { return traversals_; }  // flits that crossed a switch, copies counted
  void reset();

 private:
  static constexpr std::uint32_t directions = 4, most_ports = directions + most_locals, most_vcs = 16;

  struct Step {  // a flow at a router
    std::uint32_t first_child = 0;
    std::uint8_t mask = 0;  // outputs
  };
  struct Flit {
    std::uint32_t page = 0;  // into pages_
    std::uint32_t step = 0;
  };
  struct Input {
    std::uint16_t first = 0, count = 0;  // in its ring
    std::uint8_t pending = 0;            // outputs that the flit in front has yet to take
  };
  struct Router {
    std::uint32_t flits = 0;
    std::uint16_t occupied[most_ports] = {};  // virtual channels with flits
    std::uint8_t vc_next[most_ports] = {};
    std::uint8_t grant_next[most_ports] = {};
  };
  struct Flow {
    std::uint32_t step = 0, source = 0, vc = 0;
    std::uint32_t first_leaf = 0, leaves = 0;
  };
  struct Page {
    std::uint32_t name = 0, flow = 0, flits = 0, leaves = 0;
  };
  struct Leaf {
    std::uint32_t number = 0;
    std::uint32_t next = 0;  // + 1: another one at the same port; 0: none
    std::uint32_t come = 0;  // flits of the page that comes
    Cycle head = 0;
  };
  struct Waiting {
    std::uint32_t page = 0, step = 0, vc = 0, left = 0;
    std::uint32_t first_step = 0;  // of its first flit
    Cycle from = 0;                // of its next flit
    Cycle last = 0;                // the last one, not before
  };
  struct Source {
    std::vector<Waiting> waiting;
    std::uint64_t free = 0;  // in parts of a cycle
    bool listed = false;
  };
  struct FlitArrival {
    std::uint32_t input;  // router, port and channel
    Flit flit;
  };
  struct Slot {
    std::vector<FlitArrival> flits;
    std::vector<std::uint32_t> credits;
  };

  std::uint32_t index(std::uint32_t router, std::uint32_t port, std::uint32_t vc) const {
    return (router * ports_ + port) * p_.vcs + vc;
  }
  std::uint32_t upstream(std::uint32_t input) const;
  std::optional<std::uint32_t> wrong_way(std::uint32_t step, std::uint32_t node);
  std::uint32_t grow(std::uint32_t node, std::span<const End> to, std::span<const std::uint32_t> leaves);
  Slot& slot(Cycle at) { return calendar_[at & calendar_mask_]; }
  bool link_free(std::uint64_t free, Cycle now) const { return free < (now + 1) * p_.period.den; }
  void take_link(std::uint64_t& free, Cycle now) const {
    const std::uint64_t start = now * p_.period.den;
    free = (free > start ? free : start) + p_.period.num;
  }
  void send_from(std::uint32_t source, Cycle now);
  void accept(const FlitArrival& a, Cycle now);
  void allocate(std::uint32_t router, Cycle now);
  void cross(std::uint32_t router, std::uint32_t port, std::uint32_t vc, std::uint32_t outputs, Cycle now);
  void deliver(std::uint32_t leaf, std::uint32_t page, Cycle now);

  FlowNetworkParameters p_;
  std::uint32_t nodes_ = 0, ports_ = 0, ring_ = 0;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> children_;  // steps, or leaves for local outputs
  std::vector<Flow> flows_;
  std::vector<Leaf> leaves_;
  std::vector<Router> routers_;
  std::vector<Input> inputs_;
  std::vector<Flit> buffers_;
  std::vector<std::uint16_t> credits_;    // of what follows an output; of a unit's port, the source's
  std::vector<std::uint64_t> link_free_;  // in parts of a cycle
  std::vector<std::uint32_t> neighbour_;
  std::vector<Source> sources_;
  std::vector<std::uint32_t> sending_;  // sources with pages
  std::vector<std::uint64_t> awake_;    // routers with flits
  std::vector<Page> pages_;
  std::vector<std::uint32_t> free_pages_;
  std::vector<Slot> calendar_;
  std::uint64_t calendar_mask_ = 0;
  std::vector<Left> left_;
  std::vector<Head> heads_;
  std::vector<Arrival> arrivals_;
  std::uint64_t flying_ = 0;  // flits in routers and on links, and credits on their way
  std::uint64_t pages_out_ = 0;
  std::uint64_t traversals_ = 0;
  Cycle next_ = never;
};

}  // namespace rdusim
