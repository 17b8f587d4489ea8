#include "compiler/ir/memory_order.h"

#include <doctest/doctest.h>

namespace rdusim::memory_order_test {
namespace {

// One section with a Store and a Load of the tensors given, a trip each.
SpatialProgram program(std::uint64_t trips, std::vector<std::uint32_t> stored, std::vector<std::uint32_t> loaded) {
  SpatialProgram p;
  p.sections = {{SectionId{0u}, "s", trips}};
  const auto ids = [](const std::vector<std::uint32_t>& list) {
    std::vector<TensorId> later;
    for (std::size_t i = 1; i < list.size(); ++i) later.push_back(TensorId{list[i]});
    return later;
  };
  Stage store;
  store.id = StageId{0u};
  store.kind = Store{TensorId{stored[0]}, {}, {}, ids(stored)};
  Stage load;
  load.id = StageId{1u};
  load.kind = Load{TensorId{loaded[0]}, {}, {}, false, ids(loaded)};
  p.stages = {store, load};
  return p;
}

}  // namespace

TEST_CASE("a load waits for the trip that stores what it reads") {
  struct Case {
    std::vector<std::uint32_t> stored, loaded;
    std::uint64_t lag;
  };
  for (const Case& c : {Case{{1, 2, 3}, {1, 2, 3}, 0}, Case{{1, 2, 3}, {0, 1, 2}, 1}, Case{{1, 2, 3}, {8, 9, 1}, 2}}) {
    const SpatialProgram p = program(3, c.stored, c.loaded);
    const std::vector<MemoryOrder> orders = memory_orders(p);
    REQUIRE(orders.size() == 1);
    CHECK(orders[0].lag == c.lag);
    CHECK(orders[0].tensor == TensorId{1u});
    CHECK(orders[0].stores == std::vector{StageId{0u}});
    CHECK(orders[0].loads == std::vector{StageId{1u}});
    CHECK(memory_disorders(p).empty());
  }
}

TEST_CASE("a load of what nobody stores waits for nobody") {
  const SpatialProgram p = program(3, {1, 2, 3}, {4, 5, 6});
  CHECK(memory_orders(p).empty());
  CHECK(memory_disorders(p).empty());
}

TEST_CASE("a load that would read what a later trip stores, or now this trip's and now another's, is in no order") {
  for (const auto& [stored, loaded] :
       std::vector<std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>>{{{1, 2, 3}, {2, 3, 4}},
                                                                                      {{1, 2, 3}, {1, 1, 2}},
                                                                                      {{1, 2, 3}, {1, 2, 9}},
                                                                                      {{1, 2, 3}, {9, 9, 2}},
                                                                                      {{1}, {1}},
                                                                                      {{1}, {1, 2, 3}}}) {
    const SpatialProgram p = program(3, stored, loaded);
    CHECK(memory_orders(p).empty());
    REQUIRE(memory_disorders(p).size() == 1);
    CHECK(memory_disorders(p)[0].load == StageId{1u});
  }
}

}  // namespace rdusim::memory_order_test
