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
  buffer,          // a buffer that nothing crosses into: pages pushed, or reserved
  edge,            // a crossing edge: pages sent, or received
  token_edge,      // credits received
  semaphore_edge,  // signals received
  barrier_edge,    // signals received; generations
  stage,           // any but a Recv: firings
  mover,           // a Load or Store: firings
  load,            // firings
  sum,             // a stage that adds partial sums: firings
  fold,            // one that adds the pages of its ports: firings
  bias,            // one that adds an operand to values by row: firings
  matmul,          // firings
  link,            // a link between chips: transfers, of pages and signals alike
};

enum class FaultKind : std::uint8_t {
  page_drop,
  page_duplicate,
  page_swap,
  page_bit_flip,
  page_stale,
  page_short,
  page_long,
  page_overwrite,
  half_swap,
  page_misroute,
  page_chip,
  chunk_wrong,
  collective_order,
  reserve_skip,
  reserve_twice,
  depth_less,
  credit_drop,
  credit_duplicate,
  ready_drop,
  ready_duplicate,
  valid_drop,
  valid_duplicate,
  valid_early,
  arrive_drop,
  arrive_early,
  leave_drop,
  start_early,
  start_full,
  address_page,
  address_chip,
  address_bank,
  shard_swap,
  mask_wrong,
  partial_double,
  partial_skip,
  partial_block,
  partial_trip,
  partial_chip,
  sum_order,
  activation_early,
  bias_again,
  accumulator_stale,
  accumulator_narrow,
  link_stall,
  link_retry,
  link_duplicate,
  link_down,
  flit_misroute,
  flit_interleave,
  read_early,
};

struct FaultLaw {
  // The checks that are meant for it; which of them is first depends on what the page or signal was for. None: it costs
  // time, and must change nothing else.
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
    std::array<Code, 9> codes_{};
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
inline constexpr std::array<FaultLaw, 50> fault_laws = {{
    {FaultKind::page_drop, "page_drop", FaultPlace::hand_off, false, "a page is lost", {Code::RDU7029, Code::RDU7020, Code::RDU7001, Code::RDU7004, Code::RDU7011}},
    {FaultKind::page_duplicate, "page_duplicate", FaultPlace::hand_off, false, "a page comes twice", {Code::RDU7029, Code::RDU7025, Code::RDU7002, Code::RDU7004, Code::RDU7005, Code::RDU7006, Code::RDU7003, Code::RDU7011}},
    {FaultKind::page_swap, "page_swap", FaultPlace::hand_off, false, "a page and the next change places; the last one is lost", {Code::RDU7029, Code::RDU7020, Code::RDU7011}},
    {FaultKind::page_bit_flip, "page_bit_flip", FaultPlace::hand_off, true, "a bit of a page flips", {Code::RDU7015, Code::RDU7016, Code::RDU7017}},
    {FaultKind::page_stale, "page_stale", FaultPlace::hand_off, false, "a page is handed on unwritten: what lay in its place before is read for it, at the start nothing", {Code::RDU7029, Code::RDU7011, Code::RDU7012, Code::RDU7030, Code::RDU7009}},
    {FaultKind::page_short, "page_short", FaultPlace::hand_off, false, "half a page comes: a transfer that is too short", {Code::RDU7030}},
    {FaultKind::page_long, "page_long", FaultPlace::hand_off, false, "a page and a half comes: a transfer that is too long", {Code::RDU7030}},
    {FaultKind::page_overwrite, "page_overwrite", FaultPlace::buffer, false, "a page is written over the one before it while that is in use", {Code::RDU7029, Code::RDU7011, Code::RDU7012, Code::RDU7010, Code::RDU7009, Code::RDU7015}},
    {FaultKind::half_swap, "half_swap", FaultPlace::buffer, false, "two pages that wait in a buffer change places: the halves of a double buffer are taken for each other", {Code::RDU7029, Code::RDU7011, Code::RDU7012, Code::RDU7010, Code::RDU7009, Code::RDU7015}},
    {FaultKind::page_misroute, "page_misroute", FaultPlace::edge, false, "a page arrives at another edge of the chip", {Code::RDU7029, Code::RDU7004, Code::RDU7005, Code::RDU7006, Code::RDU7020, Code::RDU7003, Code::RDU7025, Code::RDU7011}},
    {FaultKind::page_chip, "page_chip", FaultPlace::edge, false, "a page goes to another chip: a wrong neighbour", {Code::RDU7029, Code::RDU7004, Code::RDU7005, Code::RDU7006, Code::RDU7020, Code::RDU7003, Code::RDU7025, Code::RDU7011, Code::RDU7009}},
    {FaultKind::chunk_wrong, "chunk_wrong", FaultPlace::edge, false, "another chunk of the page is sent: a collective's wrong step", {Code::RDU7029}},
    {FaultKind::collective_order, "collective_order", FaultPlace::buffer, false, "a chip takes part in another collective before this one: orders differ between chips", {Code::RDU7026, Code::RDU7018, Code::RDU7019, Code::RDU7020, Code::RDU7021}},
    {FaultKind::reserve_skip, "reserve_skip", FaultPlace::buffer, false, "a page is pushed for which no room was reserved", {Code::RDU7002, Code::RDU7029}},
    {FaultKind::reserve_twice, "reserve_twice", FaultPlace::buffer, false, "room for a page is reserved that never comes", {Code::RDU7003, Code::RDU7007, Code::RDU7018}},
    {FaultKind::depth_less, "depth_less", FaultPlace::buffer, false, "the buffer is a page smaller than it should be", {Code::RDU7018}},
    {FaultKind::credit_drop, "credit_drop", FaultPlace::token_edge, false, "a credit is lost on its way back", {Code::RDU7008, Code::RDU7020}},
    {FaultKind::credit_duplicate, "credit_duplicate", FaultPlace::token_edge, false, "a credit comes back twice", {Code::RDU7004}},
    {FaultKind::ready_drop, "ready_drop", FaultPlace::semaphore_edge, false, "a ready never comes: the semaphore is one less", {Code::RDU7020}},
    {FaultKind::ready_duplicate, "ready_duplicate", FaultPlace::semaphore_edge, false, "a ready comes twice: the semaphore is one more", {Code::RDU7005}},
    {FaultKind::valid_drop, "valid_drop", FaultPlace::semaphore_edge, false, "a valid never comes", {Code::RDU7020}},
    {FaultKind::valid_duplicate, "valid_duplicate", FaultPlace::semaphore_edge, false, "a valid comes twice", {Code::RDU7005}},
    {FaultKind::valid_early, "valid_early", FaultPlace::semaphore_edge, false, "a valid is raised before the page can be seen", {Code::RDU7024}},
    {FaultKind::arrive_drop, "arrive_drop", FaultPlace::barrier_edge, false, "a member's arrival is never told", {Code::RDU7020}},
    {FaultKind::arrive_early, "arrive_early", FaultPlace::barrier_edge, false, "a member is a generation ahead", {Code::RDU7006}},
    {FaultKind::leave_drop, "leave_drop", FaultPlace::barrier_edge, false, "a member is not told to leave", {Code::RDU7020}},
    {FaultKind::start_early, "start_early", FaultPlace::stage, false, "a firing does not wait for its pages: it pops from an empty buffer, or reads what nobody wrote", {Code::RDU7024, Code::RDU7029, Code::RDU7001, Code::RDU7012, Code::RDU7011, Code::RDU7009, Code::RDU7010}},
    {FaultKind::start_full, "start_full", FaultPlace::stage, false, "a firing does not wait for room: it pushes to a full buffer", {Code::RDU7003}},
    {FaultKind::address_page, "address_page", FaultPlace::mover, false, "a page is read from, or written to, the next page's address", {Code::RDU7029, Code::RDU7013}},
    {FaultKind::address_chip, "address_chip", FaultPlace::load, false, "a page is read from the shard of another chip", {Code::RDU7029}},
    {FaultKind::address_bank, "address_bank", FaultPlace::mover, false, "a page is read from, or written to, the same place of the next memory channel", {Code::RDU7029, Code::RDU7013}},
    {FaultKind::shard_swap, "shard_swap", FaultPlace::load, false, "from a firing on, the shards of two chips are read for each other", {Code::RDU7029}},
    {FaultKind::mask_wrong, "mask_wrong", FaultPlace::load, false, "a ragged page's mask lets in a row or column too many", {Code::RDU7029}},
    {FaultKind::partial_double, "partial_double", FaultPlace::sum, false, "a firing adds its operand twice", {Code::RDU7010}},
    {FaultKind::partial_skip, "partial_skip", FaultPlace::sum, false, "a firing leaves its operand out", {Code::RDU7009}},
    {FaultKind::partial_block, "partial_block", FaultPlace::fold, false, "a partial sum of another block is added", {Code::RDU7011, Code::RDU7010, Code::RDU7009, Code::RDU7029}},
    {FaultKind::partial_trip, "partial_trip", FaultPlace::fold, false, "a partial sum of the trip before is added", {Code::RDU7011, Code::RDU7029, Code::RDU7013}},
    {FaultKind::partial_chip, "partial_chip", FaultPlace::fold, false, "one chip's partial sum is added in the place of another's", {Code::RDU7010, Code::RDU7009}},
    {FaultKind::sum_order, "sum_order", FaultPlace::fold, false, "from the start, a sum takes its operands from the last to the first", {Code::RDU7024, Code::RDU7015, Code::RDU7016, Code::RDU7017}},
    {FaultKind::activation_early, "activation_early", FaultPlace::fold, false, "a partial sum goes through an activation before it is added", {Code::RDU7011, Code::RDU7009, Code::RDU7029}},
    {FaultKind::bias_again, "bias_again", FaultPlace::bias, false, "a bias is added twice", {Code::RDU7010}},
    {FaultKind::accumulator_stale, "accumulator_stale", FaultPlace::matmul, false, "the accumulator is not cleared before a block", {Code::RDU7010}},
    {FaultKind::accumulator_narrow, "accumulator_narrow", FaultPlace::matmul, true, "the accumulator is half as wide", {Code::RDU7015, Code::RDU7016}},
    {FaultKind::link_stall, "link_stall", FaultPlace::link, false, "the link stands still for a while", {}},
    {FaultKind::link_retry, "link_retry", FaultPlace::link, false, "a bit error: the transfer is noticed to be broken, and sent again", {}},
    {FaultKind::link_duplicate, "link_duplicate", FaultPlace::link, false, "an acknowledgement is lost: what was transferred is sent again, and comes twice", {Code::RDU7004, Code::RDU7005, Code::RDU7006, Code::RDU7008, Code::RDU7029, Code::RDU7025, Code::RDU7003, Code::RDU7011}},
    {FaultKind::link_down, "link_down", FaultPlace::link, false, "the link carries nothing from then on", {Code::RDU7020, Code::RDU7021}},
    {FaultKind::flit_misroute, "flit_misroute", FaultPlace::edge, false, "a flit of a page leaves a switch by the wrong port, and the next one knows no such flow", {Code::RDU7030, Code::RDU7029, Code::RDU7020, Code::RDU7001, Code::RDU7004, Code::RDU7011}},
    {FaultKind::flit_interleave, "flit_interleave", FaultPlace::edge, false, "the flits of a page and of the next one of its channel mix: each comes with half of the other", {Code::RDU7029, Code::RDU7011}},
    {FaultKind::read_early, "read_early", FaultPlace::load, false, "a page is read that a store of its section has not written yet", {Code::RDU7031}},
}};
// clang-format on

// Whether it needs a run whose network works flit by flit (--network flit).
constexpr bool needs_flits(FaultKind k) {
  return k == FaultKind::flit_misroute || k == FaultKind::flit_interleave;
}

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
  std::optional<BufferAt> buffer;  // exactly one of these, or `link`, as the kind asks for
  std::optional<EdgeId> edge;
  std::optional<StageAt> stage;
  std::uint32_t instance = 0;  // sending instance of `edge`
  std::uint64_t nth = 0;       // from 0
  std::optional<LinkId> link = std::nullopt;
  std::optional<StageId> partner = std::nullopt;  // shard_swap: the load whose shard is read; elaboration finds it
};

}  // namespace rdusim
