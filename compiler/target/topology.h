// The links between the chips of a machine, from a short declaration.
//
// The chips stand in nodes: chip i is chip i mod n of node i / n. A declaration joins the chips of each node, or the
// counterparts, that is the chips with the same place in all nodes, or all chips of the machine, in one of four shapes.
// A mesh of chips is a line in both, a torus a ring in both.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/target/target.h"

namespace rdusim {

enum class LinkShape : std::uint8_t {
  full_mesh,  // every one to every other
  ring,       // each to the next and the one before, the last to the first; two of them have one link each way
  line,       // the same, without the last to the first
  star,       // each to a switch and from it
};
enum class LinkScope : std::uint8_t { node, counterparts, machine };

struct LinkGroup {
  LinkScope scope = LinkScope::node;
  LinkShape shape = LinkShape::full_mesh;
  Fraction bytes_per_cycle;
  Cycles latency_cycles = 0;
  Bytes signal_bytes = 0;
  Cycles switch_cycles = 0;  // star: from the link into the switch to the one out of it
  Bytes room_bytes = 0;      // star
  Fraction error_rate = {0, 1};
  std::uint32_t most_retries = 0;
  std::uint64_t error_seed = 0;
  // Of the links to a chip of a lower number, and of those from a switch; absent: the same.
  std::optional<Fraction> back_bytes_per_cycle = std::nullopt;
};

// How many directed links `group` makes. Requires that node_chips divides chips.
std::uint64_t link_count(const LinkGroup& group, std::uint32_t chips, std::uint32_t node_chips);

// Appends them to `links`, in order of sending chip, then receiving chip, with ids that go on densely; of a star in
// order of chips, the link to the switch and then the one from it. `switches`: how many there are, and then are.
void append_links(const LinkGroup& group, std::uint32_t chips, std::uint32_t node_chips, std::uint32_t& switches,
                  std::vector<ChipLinkParameters>& links);

// A chip that chip 0 does not reach, or that does not reach chip 0; nothing where every chip reaches every other.
std::optional<ChipId> unreachable_chip(std::uint32_t chips, std::uint32_t switches,
                                       const std::vector<ChipLinkParameters>& links);

// Links by the chip or switch at one end, in order of id where the links are, so that a search looks at each link once.
// Keeps them. `ends`: how many chips and switches there are.
class LinksByChip {
 public:
  enum class By { from, to };
  LinksByChip(By by, std::uint32_t ends, const std::vector<ChipLinkParameters>& links);
  std::span<const ChipLinkParameters* const> at(std::uint32_t chip) const {
    return {of_.data() + first_[chip], first_[chip + std::size_t{1}] - first_[chip]};
  }

 private:
  std::vector<std::size_t> first_;  // by chip, and one past the end: into of_
  std::vector<const ChipLinkParameters*> of_;
};

// The routes of a target (route(), in target.h): those to one chip are worked out together, no farther than was asked
// for. Keeps the target, which must outlive it.
class Routes {
 public:
  explicit Routes(const Target& target);
  std::vector<LinkId> between(ChipId from, ChipId to);  // requires both < target.chips

 private:
  // From a receiver backwards, breadth first: as far as the farthest sender that was asked for.
  struct Search {
    std::vector<std::uint32_t> next;      // by chip or switch: the link that begins its route
    std::vector<std::uint32_t> distance;  // in hops
    std::vector<std::uint32_t> queue;     // chips in order of distance
    std::size_t done = 0;                 // of the queue
  };

  const Target& target_;
  LinksByChip into_;        // by the chip that they lead to
  std::vector<Search> to_;  // by receiver; empty until asked for
};

}  // namespace rdusim
