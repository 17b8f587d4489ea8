// Pages are what their place in the stream asks for. A load's n-th page is the one that its pattern names, on its way
// into the buffer as well; a matmul's n-th result is its n-th work item's block; what lands is what was sent, in the
// order in which it was sent; a store writes the page that its pattern names, and where it works for a move, is given
// just the elements that the move leaves there. And a page has the bytes that its extents make.
//
// RDU7029 page-wrong, RDU7030 page-size-wrong. Needs no values: swapped pages are found in timing-only runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/events/events.h"
#include "sim/instances.h"
#include "sim/places.h"
#include "sim/violations.h"

namespace rdusim {

class PageChecker final : public EventSink {
 public:
  PageChecker(const Instances& instances, const MatmulPlaces& matmuls, Violations& violations);

  void on(const PageLoaded& e) override;
  void on(const PagePushed& e) override;
  void on(const PageSent& e) override;
  void on(const PageLanded& e) override;
  void on(const PageStored& e) override;

 private:
  // The last pages of a stream, by page number modulo a power of two.
  struct Slot {
    std::uint64_t page = ~std::uint64_t{0};
    PageTag tag{};
  };
  struct StoreInput {
    const Stage* stage = nullptr;
    std::vector<std::uint32_t> phases;  // of the store, in which it takes a page of this buffer
    const Port* port = nullptr;         // by which it does
  };
  // What is asked of every page that is pushed into a buffer.
  struct Watched {
    const Stage* load = nullptr;    // pushes its pages, one a firing
    const Stage* matmul = nullptr;  // does
    std::uint32_t element = 1;      // bytes
    bool stored = false;            // by_store_ has something to say
    bool crosses = false;           // its pages are sent on
    bool lands = false;             // its pages came over a crossing
  };
  struct Ring {
    std::size_t first = 0;
    std::uint64_t mask = 0;
  };
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  const PagePlaces& places(StageId s) const { return places_[s.value]; }
  Ring ring(std::uint64_t pages);  // takes slots
  Slot& slot(const Ring& r, std::uint64_t page) { return slots_[r.first + (page & r.mask)]; }
  void check_stored(const PagePushed& e, const StoreInput& input);
  void check_moved(const PagePushed& e, const Stage& store, const Operator& op, const Place& at, const Chunk& chunk);
  void wrong(Cycle at, const std::string& unit, const std::string& what, std::uint64_t number, const std::string& got,
             const std::string& expected);

  const Instances& instances_;
  const MatmulPlaces& matmuls_;
  Violations& violations_;
  std::vector<PagePlaces> places_;  // by stage: of Loads and Stores
  // A load completes just before it pushes: what place its page has is worked out once.
  struct {
    StageAt stage;
    std::uint64_t firing = 0;
    std::optional<Place> place;
  } loaded_;
  std::vector<Watched> watched_;                      // by buffer
  std::vector<StoreInput> by_store_;                  // by buffer: the store that takes its pages, one a phase
  std::vector<std::optional<OperandId>> operand_;     // by buffer: page_operands()
  std::vector<std::optional<OperatorId>> handed_on_;  // by buffer: whose values it brings from several makers
  std::vector<std::uint32_t> source_;                 // by buffer instance: ring of pages that are to cross, or none
  std::vector<Ring> source_rings_;
  std::vector<Ring> channel_rings_;  // by channel
  std::vector<Slot> slots_;          // of all rings, made when it is known how many
  std::size_t slots_needed_ = 0;
};

}  // namespace rdusim
