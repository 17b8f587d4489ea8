// A path's pieces, added up.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/support/units.h"
#include "traces/event_kinds.h"

namespace rdusim {

enum class PathPiece : std::uint8_t {
  launch,
  compute,  // a firing of a compute stage, from its start to its pages
  load,
  store,
  landing,
  sending,   // a page leaves its source buffer
  crossing,  // a page is on its way between sites or chips
  signal,    // a credit or a ready is on its way back
  waiting_input,
  waiting_room,
  waiting_memory,
  waiting_network,
  waiting_link,
  waiting_bank,
  waiting_engine,
  waiting_credit,
  drain,  // after the last store: credits and signals on their way home, which a section waits for
};
inline constexpr std::size_t path_pieces = 17;
std::string_view name_of(PathPiece piece);

// A piece is about a stage instance, a sender, a channel, or a section.
struct About {
  PathPiece piece{};
  EventSubject subject = EventSubject::section;
  std::uint32_t unit = 0;
  friend auto operator<=>(const About&, const About&) = default;
};

struct PathStep {
  Cycle from = 0, to = 0;
  About about;
};

// Of consecutive pieces of a path, told from its end back: how many there are where neighbours about the same are one,
// what they take by what they are about, and the longest. Two that follow each other join into what one would have told
// of both.
class PathTally {
 public:
  explicit PathTally(std::size_t most) : most_(most) {}

  // What comes before all that was told; nothing, if it takes no time.
  void add(const PathStep& earlier);
  void add(const PathTally& earlier);
  // No more will be told. After it, what there is to know:
  void close();
  std::uint64_t pieces() const { return pieces_; }
  const std::vector<std::pair<About, Cycles>>& sums() const { return sums_; }  // rising
  // The `most` longest, of equally long ones the earliest; in time.
  std::vector<PathStep> longest() const;

 private:
  void settle(const PathStep& s);
  void keep(const PathStep& s);
  void sum(const About& about, Cycles cycles);

  std::size_t most_;
  // The outermost may go on in what is told next, or was told before.
  std::optional<PathStep> latest_, earliest_;
  // Of those between:
  std::uint64_t pieces_ = 0;
  std::vector<std::pair<About, Cycles>> sums_;
  std::vector<PathStep> longest_;  // a heap with the shortest on top
};

}  // namespace rdusim
