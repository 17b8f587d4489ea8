// What a test (or `rdusim run --inject`) may break in the machine, at which place, at which page, signal or firing.
//
// One table says it for the machine, the command line, its help, the fault matrix and the tests.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "compiler/support/diagnostics.h"
#include "models/events/events.h"

namespace rdusim {

// Where a fault strikes, and what `nth` counts there.
enum class FaultPlace : std::uint8_t {
  hand_off,        // a buffer, or a crossing edge: pages pushed, or received by a channel
  token_edge,      // credits received
  semaphore_edge,  // signals received
  fold,            // a stage that adds partial sums: firings
};

enum class FaultKind : std::uint8_t {
  page_drop,
  page_duplicate,
  page_swap,
  page_bit_flip,
  credit_drop,
  credit_duplicate,
  ready_drop,
  ready_duplicate,
  valid_drop,
  valid_duplicate,
  partial_double,
  partial_skip,
};

struct FaultLaw {
  // The checks that are meant for it; which of them is first depends on what the page or signal was for.
  class Checks {
   public:
    constexpr Checks(std::initializer_list<Code> codes) {
      for (const Code c : codes) codes_[count_++] = c;
    }
    constexpr const Code* begin() const { return codes_.data(); }
    constexpr const Code* end() const { return codes_.data() + count_; }
    constexpr bool has(Code code) const {
      for (const Code c : *this)
        if (c == code) return true;
      return false;
    }

   private:
    std::array<Code, 8> codes_{};
    std::size_t count_ = 0;
  };

  FaultKind kind;
  std::string_view name;
  FaultPlace place;
  bool values;  // it changes values and nothing else: a timing-only run cannot have it
  std::string_view what;
  Checks checks;
};

// clang-format off
inline constexpr std::array<FaultLaw, 12> fault_laws = {{
    {FaultKind::page_drop, "page_drop", FaultPlace::hand_off, false, "a page is lost", {Code::RDU7029, Code::RDU7020}},
    {FaultKind::page_duplicate, "page_duplicate", FaultPlace::hand_off, false, "a page comes twice",
     {Code::RDU7029, Code::RDU7025, Code::RDU7002, Code::RDU7004, Code::RDU7005, Code::RDU7006}},
    {FaultKind::page_swap, "page_swap", FaultPlace::hand_off, false, "a page and the next change places", {Code::RDU7029, Code::RDU7020}},
    {FaultKind::page_bit_flip, "page_bit_flip", FaultPlace::hand_off, true, "a bit of a page flips", {Code::RDU7015, Code::RDU7016, Code::RDU7017}},
    {FaultKind::credit_drop, "credit_drop", FaultPlace::token_edge, false, "a credit is lost on its way back", {Code::RDU7008, Code::RDU7020}},
    {FaultKind::credit_duplicate, "credit_duplicate", FaultPlace::token_edge, false, "a credit comes back twice", {Code::RDU7004}},
    {FaultKind::ready_drop, "ready_drop", FaultPlace::semaphore_edge, false, "a ready never comes", {Code::RDU7020}},
    {FaultKind::ready_duplicate, "ready_duplicate", FaultPlace::semaphore_edge, false, "a ready comes twice", {Code::RDU7005}},
    {FaultKind::valid_drop, "valid_drop", FaultPlace::semaphore_edge, false, "a valid never comes", {Code::RDU7020}},
    {FaultKind::valid_duplicate, "valid_duplicate", FaultPlace::semaphore_edge, false, "a valid comes twice", {Code::RDU7005}},
    {FaultKind::partial_double, "partial_double", FaultPlace::fold, false, "a firing adds its operand twice", {Code::RDU7010}},
    {FaultKind::partial_skip, "partial_skip", FaultPlace::fold, false, "a firing leaves its operand out", {Code::RDU7009}},
}};
// clang-format on

constexpr const FaultLaw& law_of(FaultKind k) {
  return fault_laws[static_cast<std::size_t>(k)];
}
static_assert([] {
  for (std::size_t i = 0; i < fault_laws.size(); ++i)
    if (fault_laws[i].kind != static_cast<FaultKind>(i)) return false;
  return true;
}());

struct Fault {
  FaultKind kind{};
  std::optional<BufferAt> buffer;  // exactly one of these, as the kind asks for
  std::optional<EdgeId> edge;
  std::optional<StageAt> stage;
  std::uint32_t instance = 0;  // sending instance of `edge`
  std::uint64_t nth = 0;       // from 0
};

}  // namespace rdusim
