#include "models/units/event_queue.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

namespace rdusim::event_queue_test {
namespace {

TEST_CASE("events come in rising time, those of one cycle together and sorted") {
  EventQueue q;
  CHECK(!q.next());
  q.put(7, {2, 5});
  q.put(7, {1, 9});
  q.put(3, {4, 4});
  q.put(7, {1, 9, 1});
  std::vector<Event> out;
  REQUIRE(q.next() == 3u);
  q.take(3, out);
  CHECK(out == std::vector<Event>{{4, 4}});
  REQUIRE(q.next() == 7u);
  q.take(7, out);
  CHECK(out == std::vector<Event>{{1, 9}, {1, 9, 1}, {2, 5}});
  CHECK(q.empty());
  CHECK(!q.next());
}

TEST_CASE("near and far events agree with a sorted map, whatever the order of putting") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    EventQueue q;
    std::multimap<Cycle, Event> expected;
    Cycle now = 0;
    std::vector<Event> out;
    for (int step = 0; step < 3000; ++step) {
      for (std::uint64_t n = random() % 4; n > 0; --n) {
        // Near, about the wheel's size, and far beyond it.
        const Cycle ahead = 1 + random() % (random() % 3 == 0 ? 1000000 : random() % 2 == 0 ? 4097 : 20);
        const Event e{static_cast<std::uint8_t>(random() % 5), static_cast<std::uint32_t>(random() % 100)};
        q.put(now + ahead, e);
        expected.emplace(now + ahead, e);
      }
      if (expected.empty()) {
        REQUIRE(!q.next());
        continue;
      }
      now = expected.begin()->first;
      REQUIRE(q.next() == now);
      q.take(now, out);
      std::vector<Event> due;
      for (auto [it, end] = expected.equal_range(now); it != end; ++it) due.push_back(it->second);
      std::sort(due.begin(), due.end());
      REQUIRE(out == due);
      expected.erase(now);
    }
    CHECK(q.empty() == expected.empty());
  }
}

TEST_CASE("many events of one cycle are sorted as well") {
  EventQueue q;
  for (std::uint32_t i = 0; i < 100; ++i) q.put(5, {0, (i * 37) % 100});
  std::vector<Event> out;
  q.take(5, out);
  REQUIRE(out.size() == 100);
  for (std::uint32_t i = 0; i < 100; ++i) CHECK(out[i].unit() == i);
}

}  // namespace
}  // namespace rdusim::event_queue_test
