// The on-chip vector network, at its fast level: a page takes each link of its route in turn.
//
//   route    dimension order, x first. From one source the routes to several places are a tree: a multicast page takes
//            every link of the tree once.
//   law      a page of b bytes is f = max(1, ceil(b / flit)) flits and takes f * flit / rate cycles of every link
//   (exact,
//            remainder carried by each link). Its head leaves the source's switch at t + endpoint; at each link it
//            waits until the link is free and is hop cycles later at the next switch (cut-through; switches hold a
//            page, so a page that waits does not keep the links behind it). At its destination the head is out
//            `endpoint` cycles after the last switch, and the tail f * flit / rate after the head.
//   control  tokens and barriers travel on wires of their own, `control_hop` a hop, without contention.
//   numbers  all from the target.
//   never    judges, and keeps no state for links that no route uses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/target/target.h"
#include "models/units/serial_resource.h"

namespace rdusim {

// Place of a route in a Network. Its leaves are numbered by the order of its destinations.
struct RouteRef {
  std::uint32_t hops = 0;    // first of its hops
  std::uint32_t count = 0;   // number of hops
  std::uint32_t leaves = 0;  // first of its leaves
};

class Network {
 public:
  Network() = default;
  explicit Network(const NetworkParameters& p);

  // ---- elaboration: routes that will be used; links come to be with the first route over them.
  // Positions beyond the mesh are taken at its edge.
  class Builder {
   public:
    Builder(Network& network, const Mesh& mesh);
    RouteRef route(Position from, std::span<const Position> to);

   private:
    std::uint32_t link(Position at, std::uint32_t direction);
    Position clamp(Position p) const;
    Network& network_;
    Mesh mesh_;
    std::vector<std::uint32_t> link_at_;  // (site, direction) -> link + 1
    std::vector<std::uint32_t> node_at_;  // scratch: site -> node + 1 of the route being built
    std::vector<std::uint32_t> touched_;
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

  Cycles control(Position a, Position b) const;  // a signal's time on the control wires; at least one cycle
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
  Span span(Bytes bytes) const { return rate_.span(bytes <= flit_ ? flit_ : (bytes + flit_ - 1) / flit_ * flit_); }
  Cycles depth_of(const RouteRef& route, std::uint32_t node) const {
    return node == 0 ? 0 : hops_[route.hops + node - 1].depth;
  }

  Rate rate_;
  Bytes flit_ = 1;
  Cycles hop_ = 0, endpoint_ = 0, control_hop_ = 0;
  std::vector<SerialResource> links_;
  std::vector<Hop> hops_;
  std::vector<std::uint32_t> leaf_;  // node of each leaf
  // Of the page sent last.
  std::vector<Cycle> head_{0};
  Cycle ready_ = 0;
  Cycles duration_ = 0;
};

}  // namespace rdusim
