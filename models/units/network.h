// The on-chip vector network. At its fast level a page takes each link of its route in turn; at its flit level it is a
// stream of flits, cycle by cycle (models/network/flow_network.h), and what becomes of a page is known later.
//
// Fast level:
//
//   route    dimension order, x first. From one source the routes to several places are a tree: a multicast page takes
//            every link of the tree once.
//   law      a page of b bytes is f = max(1, ceil(b / flit)) flits and takes f * flit / rate cycles of every link (exact,
//            remainder carried by each link). Its head leaves the source's switch at t + endpoint; at each link it waits
//            until the link is free and is hop cycles later at the next switch (cut-through). At its destination the head
//            is out `endpoint` cycles after the last switch, and the tail f * flit / rate after the head.
//   back     a route keeps to one virtual channel, its number modulo the channels. A page that waits fills the channel's
//   pressure buffers behind it: its tail crosses a link no sooner than a buffer's time and a hop before it crosses the
//            next one (of several, the last), and leaves its source accordingly; until then no other page of the channel
//            crosses that link. Pages of other channels do.
//   order    pages take a link in the order in which they were sent, but one that is there before a page that was sent
//            earlier passes it where the link stands idle for long enough until that one comes (the longest such gap of a
//            link is known).
//   control  tokens and barriers travel on wires of their own, `control_hop` a hop, without contention.
//   numbers  all from the target.
//   never    judges, and keeps no state for links that no route uses.
//
// Flit level: a multicast page is a tree here as well, copied where routes part. PMU and AGCUs of a site have ports of
// their own at its switch, the PMU as many as its read and write ports need to keep their rates; routes take the ports of
// a unit in turn. A route without contention takes as long as at the fast level.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/target/target.h"
#include "models/network/flow_network.h"
#include "models/units/network_level.h"
#include "models/units/serial_resource.h"

namespace rdusim {

// Place of a route in a Network. Its leaves are numbered by the order of its destinations.
struct RouteRef {
  std::uint32_t hops = 0;    // first of its hops
  std::uint32_t count = 0;   // number of hops
  std::uint32_t leaves = 0;  // first of its leaves
  std::uint32_t flow = 0;    // at the flit level
};

// Why a run on `target` cannot have its network at the flit level; nothing if it can.
std::optional<std::string> no_flit_level(const Target& target);

class Network {
 public:
  Network() = default;
  explicit Network(const NetworkParameters& p);
  // Requires, of the flit level, !no_flit_level(t).
  Network(const Target& t, NetworkLevel level);

  // ---- elaboration: routes that will be used; links come to be with the first route over them.
  // Positions beyond the mesh are taken at its edge.
  class Builder {
   public:
    Builder(Network& network, const Mesh& mesh);
    // Which of a route's ends are AGCUs; the others are PMUs.
    struct Agcus {
      bool from = false;
      std::optional<std::size_t> to = std::nullopt;  // index into `to`
    };
    RouteRef route(Position from, std::span<const Position> to, Agcus agcus = {false, std::nullopt});

   private:
    FlowNetwork::End unit(Position at, bool agcu, std::vector<std::uint32_t>& taken);
    std::uint32_t link(Position at, std::uint32_t direction);
    Position clamp(Position p) const;
    Network& network_;
    Mesh mesh_;
    std::vector<std::uint32_t> link_at_;  // (site, direction) -> link + 1
    std::vector<std::uint32_t> node_at_;  // scratch: site -> node + 1 of the route being built
    std::vector<std::uint32_t> touched_;
    std::vector<std::uint32_t> sources_, sinks_;  // flit level, by (site, unit): routes that start, and end, there
  };

  // Sends a page of `bytes` whose head is ready at `now` and whose last byte is ready not before `ready`. Afterwards
  // head() and tail() of its leaves hold. Returns the cycle at which the last byte has left the source.
  Cycle send(const RouteRef& route, Cycle now, Cycle ready, Bytes bytes);
  Cycle head(const RouteRef& route, std::uint32_t leaf) const { return head_[leaf_[route.leaves + leaf]] + endpoint_; }
  Cycle tail(const RouteRef& route, std::uint32_t leaf) const {
    const std::uint32_t node = leaf_[route.leaves + leaf];
    const Cycle own = head_[node] + endpoint_ + duration_;
    const Cycle last = ready_ + 2 * endpoint_ + depth_of(route, node) * hop_;
    return own > last ? own : last;
  }

  // ---- flit level
  // Null at the fast level.
  FlowNetwork* flits() { return flits_.get(); }
  std::uint64_t traversals() const { return flits_ ? flits_->traversals() : 0; }
  // Sends a page: its first byte is ready at `from`, its last one at `ready`.
  void post(const RouteRef& route, std::uint32_t page, Cycle from, Cycle ready, Bytes bytes, bool astray = false) {
    flits_->send(route.flow, page, static_cast<std::uint32_t>(bytes <= flit_ ? 1 : (bytes + flit_ - 1) / flit_), from,
                 ready, astray);
  }
  Bytes flit_bytes() const { return flit_; }

  Cycles control(Position a, Position b) const;  // a signal's time on the control wires; at least one cycle
  // When the last byte of a page has left its source, if nothing is in its way.
  Cycle left_unhindered(Cycle from, Cycle ready, Bytes bytes) const {
    const Cycle left = from + endpoint_ + duration(bytes);
    return left > ready ? left : ready;
  }
  // Cycles that a page occupies a link, rounded up.
  Cycles duration(Bytes bytes) const { return span(bytes).ceil(); }
  std::size_t links() const { return links_.size(); }
  void reset();

 private:
  struct Hop {
    std::uint32_t link = 0;
    std::uint16_t parent = 0;  // node it starts at; node 0 is the source's switch, node i + 1 the end of hop i
    std::uint16_t depth = 0;   // hops from the source to its end
  };
  // A link between two switches.
  struct Link {
    SerialResource taken;
    Cycle gap_begin = 0, gap_end = 0;  // the longest time that it stands idle for before a page that is to come

    Slot take(Cycle from, const Span& s, std::uint64_t parts) {
      const Cycle begin = from > gap_begin ? from : gap_begin;
      if (begin + s.ceil() <= gap_end) {
        gap_begin = begin + s.ceil();
        return {begin, gap_begin};
      }
      const Cycle free = taken.free_at();
      const Slot slot = taken.take(from, s, parts);
      if (slot.begin > free && (slot.begin - free > gap_end - gap_begin || gap_end <= from)) {
        gap_begin = free;
        gap_end = slot.begin;
      }
      return slot;
    }
  };
  Span span(Bytes bytes) const { return rate_.span(bytes <= flit_ ? flit_ : (bytes + flit_ - 1) / flit_ * flit_); }
  Cycles depth_of(const RouteRef& route, std::uint32_t node) const {
    return node == 0 ? 0 : hops_[route.hops + node - 1].depth;
  }

  std::unique_ptr<FlowNetwork> flits_;
  std::uint32_t pmu_ports_ = 1;
  Rate rate_;
  Bytes flit_ = 1;
  Cycles hop_ = 0, endpoint_ = 0, control_hop_ = 0;
  std::uint32_t channels_ = 1;  // of a link
  Cycles buffered_ = 0;         // cycles of a link that a channel's buffer holds, and a hop
  std::uint32_t routes_ = 0;
  std::vector<Link> links_;
  std::vector<Cycle> tails_;  // by link and channel: when the tail of its last page has crossed
  std::vector<Hop> hops_;
  std::vector<std::uint32_t> leaf_;  // node of each leaf
  // Of the page sent last.
  std::vector<Cycle> head_{0};  // at a node
  std::vector<Cycle> tail_{0};  // over the link to a node
  Cycle ready_ = 0;
  Cycles duration_ = 0;
};

}  // namespace rdusim
