// The on-chip network at its flit level: a mesh of input-queued routers with virtual channels, cycle by cycle.
//
//   router   the four-step pipeline of Dally and Towles, "Principles and Practices of Interconnection Networks" (2004),
//            chapters 16 and 17: route, virtual-channel allocation, switch allocation, switch traversal; then the link.
//   route    dimension order, x first, worked out one router ahead where routing_cycles is 0.
//   times    a head flit that arrives at t is routed, is allocated a virtual channel at t + routing, the switch at
//            vc_allocation + switch_allocation - 1 after that, and arrives at the next router traversal + link + 1
//            later. A body flit skips the first two steps. With steps of 1 cycle, routing 0 and links of 1: 4 cycles a
//            router, and 2 for the way in, as BookSim 2's input-queued router has it. With vc_allocation, traversal and
//            link 0: one cycle a router, a registered switch.
//   credits  one a flit of buffer. Given back when the flit leaves its buffer, on the link for link cycles, counted
//            credit cycles after it arrives. A virtual channel is free for the next packet when the tail has left, or
//            when the tail's credit is back (wait_for_tail_credit).
//   switching  wormhole: a flit moves when the next buffer has room for it. Cut-through: a packet moves when the next
//            buffer has room for all of it.
//   arbiters separable, round robin, one iteration (iSLIP: McKeown, IEEE/ACM Trans. Networking 7(2), 1999): every
//            output grants one request, every input accepts one grant, and a pointer moves past what was accepted. A
//            switch request is first chosen among an input's virtual channels, round robin.
//   ends     a unit takes one flit a cycle from its router and puts in one a cycle.
//   never    drops or reorders flits of a packet; packets of one virtual channel stay in order.
//   cost     a router without flits costs nothing in a cycle. Nothing is allocated after construction but room for more
//            packets at once than ever before.
//
// Routers see only what their links bring, which is at least a cycle old: the order in which they are visited is free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/support/units.h"

namespace rdusim {

enum class Switching : std::uint8_t { wormhole, cut_through };

struct FlitNetworkParameters {
  std::uint32_t width = 8, height = 8;  // routers; a unit at each
  std::uint32_t vcs = 4;                // virtual channels of a link, at most 16
  std::uint32_t buffer_flits = 8;       // of a virtual channel
  Switching switching = Switching::wormhole;
  bool wait_for_tail_credit = false;
  std::uint32_t routing_cycles = 0;
  std::uint32_t vc_allocation_cycles = 1;      // 0: in the cycle of the switch allocation
  std::uint32_t switch_allocation_cycles = 1;  // at least 1
  std::uint32_t traversal_cycles = 1;          // 0: in the cycle of the switch allocation
  std::uint32_t link_cycles = 1;               // between routers, beyond the register at its end
  std::uint32_t endpoint_cycles = 1;           // between unit and router, beyond the register at its end
  std::uint32_t credit_cycles = 1;             // from a credit's arrival to its being counted
};

// What is wrong with parameters, in one line naming the parameter, its limit and value; nothing if they are sound.
std::optional<std::string> unsound(const FlitNetworkParameters& p);

using NodeId = std::uint32_t;  // y * width + x

struct FlitPacket {
  NodeId from = 0, to = 0;
  std::uint32_t flits = 1;
  Cycle created = 0;      // the caller's
  std::uint64_t tag = 0;  // the caller's
};

class FlitNetwork {
 public:
  // Requires !unsound(p).
  explicit FlitNetwork(const FlitNetworkParameters& p);

  // Puts a packet into its source; its first flit leaves in this cycle at the earliest. Requires idle(packet.from),
  // nodes of the mesh, 1 <= flits (cut-through: <= buffer_flits).
  void inject(const FlitPacket& packet);
  bool idle(NodeId source) const { return source_[source].left == 0; }

  // Does the present cycle and goes to the next. Afterwards delivered() holds the packets whose last flit reached its
  // unit in it.
  void advance();
  const std::vector<FlitPacket>& delivered() const { return delivered_; }

  Cycle now() const { return now_; }
  bool empty() const { return in_flight_ == 0; }
  std::uint64_t traversals() const { return traversals_; }  // flits that crossed a router's switch
  std::uint64_t flits_delivered() const { return flits_out_; }
  // Flits that crossed from router to router at `node` in direction 0..3: +x, -x, +y, -y.
  std::uint64_t link_flits(NodeId node, std::uint32_t direction) const { return link_flits_[node * 4 + direction]; }
  // Routers that a packet crosses on its way, both ends included.
  std::uint32_t routers(NodeId from, NodeId to) const;
  // Cycles from creation to delivery on an empty network.
  Cycles unloaded(NodeId from, NodeId to, std::uint32_t flits) const;
  const FlitNetworkParameters& parameters() const { return p_; }

 private:
  static constexpr std::uint32_t ports = 5;  // 0..3 as the directions, 4 the unit
  static constexpr std::uint32_t local = 4;
  static constexpr std::uint32_t most_vcs = 16;

  struct Flit {
    std::uint32_t packet = 0;  // into packets_
    std::uint16_t to = 0;      // node
    std::uint8_t vc = 0;       // the buffer that it is in or on its way to
    std::uint8_t flags = 0;    // head_flit, tail_flit
  };
  struct InputVc {
    std::uint16_t first = 0, count = 0;  // in its ring
    std::uint8_t out_port = 0, out_vc = 0;
    std::uint32_t ready = 0;  // the cycle, modulo 2^32, from which it may ask for what it asks for
  };
  struct Router {
    std::uint32_t flits = 0;                   // in its buffers
    std::uint16_t waiting[ports] = {};         // input VCs with a head that wants an output VC
    std::uint16_t active[ports] = {};          // input VCs with an output VC and a flit
    std::uint16_t held[ports] = {};            // output VCs that a packet holds
    std::uint8_t switch_first_vc[ports] = {};  // round robin among an input's VCs
    std::uint8_t grant_next[ports] = {};       // switch: input from which an output looks
    std::uint8_t accept_next[ports] = {};      // switch: output from which an input looks
  };
  struct Source {
    std::uint32_t packet = 0, left = 0;
    std::uint8_t vc = 0, last_vc = 0;
    bool has_vc = false;
  };
  struct FlitArrival {
    std::uint32_t router;
    std::uint8_t port;
    Flit flit;
  };
  struct CreditArrival {
    std::uint32_t router;
    std::uint8_t port, vc;
    bool tail;
  };
  struct Slot {  // of the calendar
    std::vector<FlitArrival> flits;
    std::vector<FlitArrival> ejected;
    std::vector<CreditArrival> credits;
    std::vector<CreditArrival> source_credits;
  };

  std::uint32_t input(std::uint32_t router, std::uint32_t port, std::uint32_t vc) const {
    return (router * ports + port) * p_.vcs + vc;
  }
  std::uint32_t route(std::uint32_t router, std::uint32_t to) const;
  bool room(std::uint32_t credits, const Flit& flit) const;
  void accept(const FlitArrival& arrival);
  void ask(std::uint32_t router, std::uint32_t port, std::uint32_t vc, const Flit& head);
  void eject(const FlitArrival& arrival);
  void send_from(NodeId node);
  void allocate_vcs(std::uint32_t r);
  void allocate_switch(std::uint32_t r);
  void cross(std::uint32_t r, std::uint32_t port, std::uint32_t vc);
  Slot& slot(Cycle at) { return calendar_[at & calendar_mask_]; }
  void wake(std::uint32_t r) { awake_[r / 64] |= std::uint64_t{1} << (r % 64); }

  FlitNetworkParameters p_;
  std::uint32_t nodes_ = 0;
  std::uint32_t ring_ = 0;  // flits of an input VC's ring, a power of two
  Cycle now_ = 0;
  std::vector<std::uint16_t> x_, y_;
  std::vector<Router> routers_;
  std::vector<InputVc> inputs_;                // (router, port, vc)
  std::vector<Flit> buffers_;                  // (router, port, vc, ring)
  std::vector<std::uint16_t> credits_;         // (router, port, vc) of the buffer that an output leads to
  std::vector<std::uint16_t> vc_grant_next_;   // (router, port, vc) of outputs: input VC from which it looks
  std::vector<std::uint16_t> vc_accept_next_;  // (router, port, vc) of inputs: output VC from which it looks
  std::vector<std::uint32_t> neighbour_;       // (router, direction)
  std::vector<Source> source_;
  std::vector<std::uint16_t> source_credits_;  // (node, vc)
  std::vector<std::uint16_t> source_held_;     // by node: mask of VCs
  std::vector<std::uint64_t> awake_;           // routers with flits
  std::vector<std::uint64_t> sending_;         // sources with flits
  std::vector<Slot> calendar_;
  Cycle calendar_mask_ = 0;
  std::vector<FlitPacket> packets_;
  std::vector<std::uint32_t> free_packets_;
  std::vector<FlitPacket> delivered_;
  struct VcGrant {
    std::uint8_t in_port, in_vc, out_port, out_vc;
  };
  std::vector<VcGrant> vc_grants_;  // scratch
  std::uint64_t in_flight_ = 0;
  std::uint64_t traversals_ = 0, flits_out_ = 0;
  std::vector<std::uint64_t> link_flits_;
};

}  // namespace rdusim
