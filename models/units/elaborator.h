// From a program and a target to the state of its chips, step by step. Of elaborate() alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/memory_order.h"
#include "compiler/ir/page_frames.h"
#include "compiler/target/topology.h"
#include "models/units/chip.h"
#include "models/units/elaborate.h"

namespace rdusim {

class Elaborator {
 public:
  Elaborator(const SpatialProgram& p, const Target& t, bool values, const std::vector<Fault>& faults,
             NetworkLevel level);
  Elaboration run();

 private:
  // ---- chips and what stands on them (elaborate.cpp)
  struct ChipScratch {
    std::unordered_map<std::uint64_t, std::uint32_t> engines;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> pmus;
    std::unordered_map<std::uint32_t, std::uint32_t> agcus, links, feeds;
    std::optional<Network::Builder> network;
  };

  void make_chips();
  ChipState& chip(std::uint32_t id);
  Network::Builder& network(std::uint32_t id);
  std::uint64_t site_key(Position at) const { return (std::uint64_t{at.y} << 32) | at.x; }
  // The nth of the memory units that a site works with.
  std::uint32_t pmu(std::uint32_t id, Position at, std::uint32_t nth = 0);
  // All compute contexts of a PCU are one engine: their firings take turns.
  std::uint32_t engine(std::uint32_t id, Position at, const Engine& e);
  AgcuId agcu_of(const Group& g, std::uint32_t instance) const;
  std::uint32_t agcu(std::uint32_t id, AgcuId a);
  std::uint32_t link(std::uint32_t id, LinkId l);
  // 1 + what chip `id` knows of the link by which pages come to its port of a switch.
  std::uint32_t feed(std::uint32_t id, LinkId l, Cycles back);
  const Group& group(GroupId g) const { return p_.placement->groups[g.value]; }
  std::uint32_t chip_of(GroupId g) const { return group(g).sites.empty() ? 0 : group(g).sites.front().chip.value; }
  static std::size_t pool(ChipState& c, Bytes bytes);
  void lay_out_pool();

  // ---- buffers, and who reads and writes them (elaborate.cpp)
  void make_buffers();
  // Instance of `to` on the site of each instance of `from`; nothing where there is none.
  const std::vector<std::optional<std::uint32_t>>& same_site(GroupId from, GroupId to);
  // The buffer instance that a port of a stage instance names; nothing where it is not on the site.
  std::optional<std::uint32_t> buffer_at(const Stage& s, std::uint32_t instance, BufferId b);
  // Instance of the stage on the site of buffer instance i of group g.
  std::optional<std::uint32_t> stage_instance(const Stage& s, GroupId g, std::uint32_t i);
  void connect_producers_and_consumers();

  // ---- stages: what their instances share, and each of them (elaborate_stages.cpp)
  void describe_stages();
  void describe(StageSpec& d, const Load& load);
  void describe(StageSpec& d, const Store& store);
  void describe(StageSpec& d, const MatmulTiles& m);
  void describe(StageSpec& d, const Generic& g);
  // A stage, or what a fault makes of it.
  const Stage& as_carried_out(const Stage& s);
  // A matrix that is multiplied transposed, and whose pages follow each other along its rows.
  bool reads_transposed_by_columns(const Stage& s, const Load& load) const;
  template <class Access>
  void describe_tensors(StageSpec& d, const Access& access);
  // The operand that a matmul's sums belong to: its operator's output; without operators, that of the store which its
  // result reaches.
  OperandId result_operand(const Stage& s, const MatmulTiles& m) const;
  // Order in which stages are granted: by id, except that stages which share an engine are served as the schedule says.
  std::vector<std::uint32_t> grant_order() const;
  void make_stages();
  std::uint32_t memory_of(const Tensor& t) const { return t.space == MemorySpace::ddr && t_.ddr ? 1 : 0; }
  void make_detail(ChipState& c, std::uint32_t id, StageState& state, const StageSpec& d, const Group& g,
                   std::uint32_t i);
  // Members of one multicast set fire as one: the first of them acts.
  void make_multicast_sets(ChipState& c, std::uint32_t id, std::uint32_t n, const StageSpec& d, const Group& g);
  void rank_loads();
  void make_memory_waits();
  void lay_out_cells(const MemoryOrder& order, MemoryWait& wait);

  // ---- crossings (elaborate_crossings.cpp)
  struct Place {
    std::uint32_t chip = 0;
    Position site;
    Position agcu;
  };
  Place place_of(const Stage& s, std::uint32_t instance);
  // The links from chip to chip: the ones given where they are a route, else the target's own.
  const std::vector<LinkId>& route_between(std::uint32_t from, std::uint32_t to);
  bool is_route(const std::vector<LinkId>& links, std::uint32_t from, std::uint32_t to) const;
  // A path over `links` from chip `from`, after which `then` happens on the last chip, `tail` cycles after the arrival.
  Path over_links(std::uint32_t from, const std::vector<LinkId>& links, Event then, Cycles lead, Cycles tail,
                  bool signal);
  Path signal_path(const Place& from, const Place& to, const std::vector<LinkId>& links, Event then);
  // A channel whose sending end is made.
  struct Crossing {
    std::uint32_t from_chip = 0, send = 0, to_chip = 0, to_stage = 0, from = 0, position = 0, period = 1;
    EdgeId edge;
  };
  void make_crossings();
  // The sending end of instance `i` of the edge's first stage.
  void make_sender(const Edge& e, std::uint32_t i, std::vector<Crossing>& made);
  void make_receive_channels(std::vector<Crossing> made);
  // One a page of the landing buffer, to the sender of the page that will land there.
  void give_credits();
  // The two ends' ways to each other.
  void connect(const Edge& e, SendChannel& send, std::uint32_t there, std::uint32_t here, const Place& a,
               const Place& b);
  void make_shot(ChipState& c, std::uint32_t id, SenderState& s, const Stage& from, std::uint32_t instance,
                 const std::vector<std::uint32_t>& channels);
  std::uint64_t pages_into(const Stage& from, BufferId b) const;

  // ---- faults (elaborate_faults.cpp)
  void apply_faults();
  void break_buffer(const Fault& f, std::size_t n);
  // What all sites of a chip give to one collective waits until the chip has given something to another one.
  void exchange_order(ChipState& c, Fault f, std::size_t n);
  void break_stage(Fault f, std::size_t n);
  void break_link(const Fault& f, std::size_t n);
  // At both ends of the sending instance's channels.
  void break_edge(const Fault& f, std::size_t n);
  // Every channel of the landing buffer goes through the staging area; only this one is broken.
  void break_channel(ChipState& c, std::uint32_t channel);
  void stage_beside(ChipState& c, BufferState& b);

  const SpatialProgram& p_;
  const Target& t_;
  const std::vector<Fault>& faults_;
  const NetworkLevel level_;
  const std::vector<PageFrame> frames_;  // by buffer
  Routes all_routes_;
  std::set<StageId> feeds_transposed_;  // whose pages a matmul takes as its transposed right operand
  Elaboration out_;
  std::vector<ChipScratch> scratch_;
  std::vector<std::uint32_t> buffer_base_, stage_base_;
  std::vector<std::vector<std::uint32_t>> sender_consumer_;  // by edge, by buffer instance
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::optional<std::uint32_t>>> same_site_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<LinkId>> routes_;
};

}  // namespace rdusim
