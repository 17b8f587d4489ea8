// What a test (or `rdusim run --inject`) may break in the machine, at which hand-off, at which page.
#pragma once

#include <cstdint>
#include <optional>

#include "models/events/events.h"

namespace rdusim {

enum class FaultKind : std::uint8_t {
  page_drop,         // buffer or edge: page `nth` is pushed (or landed) nowhere, its count is lost
  page_duplicate,    // page `nth` is pushed twice
  page_swap,         // pages `nth` and `nth + 1` change places
  page_bit_flip,     // one bit of page `nth`
  credit_drop,       // edge: the `nth` credit returned is lost
  credit_duplicate,  // edge: the `nth` credit is returned twice
  ready_drop,
  ready_duplicate,  // semaphore edges
  valid_drop,
  valid_duplicate,
  partial_double,  // stage: firing `nth` of a fold adds its operand twice
  partial_skip,    // stage: firing `nth` of a fold leaves its operand out
};

struct Fault {
  FaultKind kind{};
  std::optional<BufferAt> buffer;  // exactly one of these, as the kind asks for
  std::optional<EdgeId> edge;
  std::optional<StageAt> stage;
  std::uint32_t instance = 0;  // sending instance of `edge`
  std::uint64_t nth = 0;       // from 0
};

}  // namespace rdusim
