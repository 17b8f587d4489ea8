#include "sim/history/timed_law.h"

#include <doctest/doctest.h>

namespace rdusim::timed_law_test {
namespace {

TEST_CASE("median and median distance are those of the definition") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
  CHECK(median_distance({1, 2, 3, 4, 100}) == 1);
}

TEST_CASE("a steady metric is worse beyond ten percent, on the bad side only") {
  const std::vector<double> before(5, 100.0);
  CHECK_FALSE(worse_than_before(before, 110, Better::lower));
  CHECK(worse_than_before(before, 110.1, Better::lower));
  CHECK_FALSE(worse_than_before(before, 50, Better::lower));
  CHECK(worse_than_before(before, 89.9, Better::higher));
  CHECK_FALSE(worse_than_before(before, 150, Better::higher));
  CHECK_FALSE(worse_than_before(before, 1000, Better::neither));
}

TEST_CASE("a noisy metric gets the room of its noise, and one outlier does not widen it") {
  const std::vector<double> noisy = {100, 110, 90, 105, 95, 120, 80, 100};
  // Distances from 100: 0 10 10 5 5 20 20 0, median 7.5; 3 * 1.4826 * 7.5 = 33.36.
  CHECK_FALSE(worse_than_before(noisy, 133.3, Better::lower));
  CHECK(worse_than_before(noisy, 133.4, Better::lower));
  std::vector<double> outlier = noisy;
  outlier.push_back(10000);
  CHECK(worse_than_before(outlier, 150, Better::lower));
}

TEST_CASE("fewer than five runs judge nothing, and only the last twenty count") {
  CHECK_FALSE(worse_than_before({100, 100, 100, 100}, 1000, Better::lower));
  std::vector<double> long_ago(50, 1000.0);
  long_ago.insert(long_ago.end(), 20, 100.0);
  CHECK(worse_than_before(long_ago, 150, Better::lower));
}

TEST_CASE("a drift of one percent a run passes every level and is caught as a step") {
  std::vector<double> values;
  double v = 100;
  bool caught = false;
  for (int n = 0; n < 40 && !caught; ++n) {
    if (n >= 15) v *= 1.01;
    CHECK_FALSE(worse_than_before(values, v, Better::lower));
    values.push_back(v);
    caught = drifted(values, Better::lower).has_value();
  }
  CHECK(caught);
  CHECK(values.size() < 26);  // found within ten runs of where it began
}

TEST_CASE("a steady metric does not drift, and fourteen runs are too few to say") {
  CHECK_FALSE(drifted(std::vector<double>(30, 100.0), Better::lower));
  std::vector<double> step(9, 100.0);
  step.insert(step.end(), 5, 200.0);
  CHECK_FALSE(drifted(step, Better::lower));
  step.insert(step.begin(), 100.0);
  CHECK(drifted(step, Better::lower));
  CHECK_FALSE(drifted(step, Better::higher));
}

}  // namespace
}  // namespace rdusim::timed_law_test
