// What a chip is given and what it says when it cannot go on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/support/element_bytes.h"
#include "models/events/events.h"

namespace rdusim {

// Elements of the program's tensors, by tensor id: bytes of the slice, or a view of its whole operand, of which the slice
// is read where it lies. Empty in a timing-only run. Outputs are written in place.
using TensorImages = std::vector<ElementBytes>;

// Who has not finished, and what it waits for. One entry a blocked instance.
struct Waiting {
  // written: a load, for the stores of its section that write what it reads; have and want are firings of theirs
  enum class For : std::uint8_t { page, room, credit, ready, valid, barrier, firing, written };
  For what{};
  std::optional<StageAt> stage;      // a stage instance, or
  std::optional<ChannelAt> channel;  // a channel
  std::optional<BufferAt> buffer;    // where it waits for a page or for room
  std::uint64_t have = 0;
  std::uint64_t want = 0;
  std::uint64_t firing = 0;  // the firing (or page) that waits
  Cycle since = 0;
};

// Stages by id, then channels by id; what is equal stays as it is.
inline void in_order(std::vector<Waiting>& waiting) {
  std::stable_sort(waiting.begin(), waiting.end(), [](const Waiting& a, const Waiting& b) {
    if (a.stage.has_value() != b.stage.has_value()) return a.stage.has_value();
    if (a.stage) return *a.stage < *b.stage;
    return a.channel < b.channel;
  });
}

}  // namespace rdusim
