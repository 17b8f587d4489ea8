// Which sites of a chip a group gets.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim {

// How many sites an operator takes of a chip, all its stages together. Requires a work with a plan.
std::uint64_t sites_wanted(const OperatorGraph& graph, const Work& work, const Target& target);

// How many sites are taken of each of several chips that run side by side.
class SitesOfChips {
 public:
  // Of some chips, or of all (none).
  void take(const std::vector<ChipId>& chips, std::uint64_t sites) {
    if (chips.empty()) of_all_ += sites;
    for (const ChipId chip : chips) of_[chip] += sites;
  }
  // Of that one of them of which most are.
  std::uint64_t taken(const std::vector<ChipId>& chips) const {
    if (chips.empty()) return most();
    std::uint64_t n = 0;
    for (const ChipId chip : chips) {
      const auto own = of_.find(chip);
      if (own != of_.end()) n = std::max(n, own->second);
    }
    return of_all_ + n;
  }
  // Of the chip of which most are.
  std::uint64_t most() const {
    std::uint64_t n = 0;
    for (const auto& [chip, sites] : of_) n = std::max(n, sites);
    return of_all_ + n;
  }

 private:
  std::uint64_t of_all_ = 0;
  std::map<ChipId, std::uint64_t> of_;
};

// Gives out the sites of one chip, each once, for the stages that are configured together. Deterministic.
class SiteAllocator {
 public:
  SiteAllocator(const Target& target, ChipId chip);

  // `count` sites, each as near as can be to an AGCU, the AGCUs taken in turn: for instances that stream data of their
  // own. Requires free() >= count.
  Group near_agcus(std::size_t count);

  // rows * columns sites, instance (i, j) at i * columns + j: for instances that share operands by rows and columns. So
  // that a multicast's tree stays on few links, rows lie in rows of the mesh and columns in its columns: in a rectangle;
  // or, with more rows than the mesh has, in as many rectangles side by side as it is wide, the rows that are left over
  // folded into the columns that are left over; or, with more columns than the mesh has, each row in a band of mesh rows,
  // all bands alike; or, where there is no room for that, in the order of the free sites. The
  // instances that read for a row (the first of it) choose AGCUs first, those with the least trees, then those that read
  // for a column, then the others, all spread evenly. Requires free() >= rows * columns.
  Group block(std::size_t rows, std::size_t columns);

  // Takes `count` sites of which other sites use the memory units. Requires free() >= count.
  void lend_memory(std::size_t count);

  std::size_t free() const { return free_; }

 private:
  // Sites by instance, none of them taken; nothing where there is no such room.
  std::optional<std::vector<std::size_t>> rectangle(std::size_t rows, std::size_t columns) const;
  std::optional<std::vector<std::size_t>> folded(std::size_t rows, std::size_t columns) const;
  std::optional<std::vector<std::size_t>> in_bands(std::size_t rows, std::size_t columns) const;
  std::vector<std::size_t> as_they_come(std::size_t count) const;
  bool free_block(Position at, std::size_t rows, std::size_t columns) const;
  // An instance, and the sites that what it reads goes to.
  struct Reader {
    std::size_t instance = 0;
    std::vector<Position> to;
  };
  // Gives each reader an AGCU, the least trees first, until an AGCU serves `most`.
  void share_out(const std::vector<Reader>& readers, std::size_t most, std::vector<std::size_t>& served,
                 Group& group) const;
  std::uint64_t distance(Position a, AgcuId agcu) const;
  // That a page from the AGCU takes to all of these.
  std::uint64_t links_of_tree(AgcuId from, const std::vector<Position>& to) const;
  Position take(std::size_t index);

  const Target& target_;
  ChipId chip_;
  std::vector<bool> taken_;  // row-major over the mesh
  std::size_t free_;
  std::size_t next_agcu_ = 0;
};

}  // namespace rdusim
