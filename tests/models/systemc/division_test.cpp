// Who simulates which chips: everything once, in order, and nobody without work.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "models/systemc/division.h"

namespace rdusim::division_test {
namespace {

using Work = std::vector<std::uint64_t>;

std::uint64_t sum(const Work& work, const Block& b) {
  return std::accumulate(work.begin() + b.begin, work.begin() + b.end, std::uint64_t{0});
}

TEST_CASE("every chip is in one block, blocks are in order, and each but the first has work") {
  for (std::uint32_t chips = 1; chips <= 20; ++chips) {
    for (std::uint32_t processes = 2; processes <= chips + 1; ++processes) {
      for (const double listening : {0.0, 0.3, 0.8, 3.0}) {
        CAPTURE(chips);
        CAPTURE(processes);
        CAPTURE(listening);
        Work work(chips);
        for (std::uint32_t i = 0; i < chips; ++i) work[i] = 100 + i * 37 % 11;
        const auto blocks = divide(work, processes, listening);
        REQUIRE(blocks.size() == processes);
        std::uint32_t at = 0;
        for (std::uint32_t r = 0; r < processes; ++r) {
          CHECK(blocks[r].begin == at);
          at = blocks[r].end;
          if (r != 0) CHECK(sum(work, blocks[r]) > 0);
        }
        CHECK(at == chips);
      }
    }
  }
}

TEST_CASE("chips without work go with their neighbours, and count for nobody") {
  const Work work = {0, 5, 0, 0, 5, 0, 5, 0};
  for (std::uint32_t processes = 2; processes <= 4; ++processes) {
    const auto blocks = divide(work, processes, 0.8);
    CHECK(blocks.back().end == work.size());
    for (std::uint32_t r = 1; r < processes; ++r) CHECK(sum(work, blocks[r]) >= 5);
  }
}

TEST_CASE("process 0 has fewer chips the more there is to listen to, down to none") {
  const Work work(16, 100);
  CHECK(divide(work, 2, 0).front().end == 8);
  CHECK(divide(work, 2, 0.5).front().end == 4);
  CHECK(divide(work, 2, 1).front().end == 0);
  CHECK(divide(work, 4, 0).front().end == 4);
  const auto three = divide(work, 4, 1);
  CHECK(three[0].empty());
  for (std::uint32_t r = 1; r < 4; ++r) CHECK(sum(work, three[r]) >= 500);
}

}  // namespace
}  // namespace rdusim::division_test
