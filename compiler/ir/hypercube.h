// Who meets whom in a recursive halving and doubling over any number of members.
//
// 2^k of n members, the most that there are, stand at the corners of a cube; each of the n - 2^k others is the *guest* of
// one of the first corners, its neighbour among the members: it hands its part over before, and is given the result
// after. A page is cut in 2^k blocks. In step t of the halving, corner c sends its partner c ^ 2^t the blocks of the half
// that the partner goes on with, and keeps the others: half a page in step 0, between neighbours, then a quarter, ...,
// until each corner has one block, which it owns. Doubling goes the same way back.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace rdusim {

class Hypercube {
 public:
  // Requires 1 <= members.
  explicit constexpr Hypercube(std::uint32_t members)
      : corners_(std::bit_floor(members)), guests_(members - corners_) {}

  constexpr std::uint32_t corners() const { return corners_; }
  constexpr std::uint32_t steps() const { return static_cast<std::uint32_t>(std::countr_zero(corners_)); }
  constexpr std::uint32_t guests() const { return guests_; }
  // The member that stands at a corner, and its guest.
  constexpr std::uint32_t member(std::uint32_t corner) const {
    return corner < guests_ ? 2 * corner : corner + guests_;
  }
  constexpr std::optional<std::uint32_t> guest(std::uint32_t corner) const {
    return corner < guests_ ? std::optional(2 * corner + 1) : std::nullopt;
  }
  // The block that a corner owns, and the corner that owns a block.
  constexpr std::uint32_t block(std::uint32_t corner) const {
    std::uint32_t reversed = 0;
    for (std::uint32_t t = 0; t < steps(); ++t) reversed |= (corner >> t & 1u) << (steps() - 1 - t);
    return reversed;
  }
  constexpr std::uint32_t owner(std::uint32_t block_number) const { return block(block_number); }
  // Blocks that cross from corner to corner in step t of the halving, and again in the doubling's.
  constexpr std::uint32_t crossing(std::uint32_t step) const { return corners_ >> (step + 1); }

  // The blocks that `corner` sends in step t of the halving, in the order in which its partner needs them: those that it
  // sends on itself, in steps t + 1, t + 2, ..., and its own.
  std::vector<std::uint32_t> sent(std::uint32_t corner, std::uint32_t step) const {
    const std::uint32_t partner = corner ^ 1u << step;
    std::vector<std::uint32_t> blocks;
    for (std::uint32_t later = step + 1; later < steps(); ++later) {
      const std::vector<std::uint32_t> next = sent(partner, later);
      blocks.insert(blocks.end(), next.begin(), next.end());
    }
    blocks.push_back(block(partner));
    return blocks;
  }
  // The blocks that `corner` has when `done` steps of the doubling are over, in the order in which it sends them in the
  // next: those that came last first. Doubling step j is with the partner of halving step k - 1 - j.
  std::vector<std::uint32_t> held(std::uint32_t corner, std::uint32_t done) const {
    if (done == 0) return {block(corner)};
    std::vector<std::uint32_t> blocks = held(corner ^ 1u << (steps() - done), done - 1);
    const std::vector<std::uint32_t> before = held(corner, done - 1);
    blocks.insert(blocks.end(), before.begin(), before.end());
    return blocks;
  }

 private:
  std::uint32_t corners_;
  std::uint32_t guests_;
};

}  // namespace rdusim
