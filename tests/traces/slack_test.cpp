#include "traces/slack.h"

#include <doctest/doctest.h>

#include <random>

namespace rdusim::test::slack_test {
namespace {

TEST_CASE("a unit's slack is the least sum of gaps on its way to the end") {
  // 0 -> 1 -> 3 loses 5 + 0; 0 -> 2 -> 3 loses 1 + 7; 3 is what the end waits for.
  SlackFold fold(5);
  fold.met(1, 0, 5);
  fold.met(2, 0, 1);
  fold.met(3, 1, 0);
  fold.met(3, 2, 7);
  fold.ended(3, 0);
  const auto slack = fold.slack();
  CHECK(slack[3] == Cycles{0});
  CHECK(slack[2] == Cycles{7});
  CHECK(slack[1] == Cycles{0});
  CHECK(slack[0] == Cycles{5});
  CHECK_FALSE(slack[4].has_value());
}

TEST_CASE("of several meetings the one that was least early counts, and so does an early end") {
  SlackFold fold(2);
  for (const Cycles gap : {9U, 4U, 6U}) fold.met(1, 0, gap);
  fold.ended(1, 3);
  CHECK(fold.slack()[0] == Cycles{7});
  fold.ended(0, 5);
  CHECK(fold.slack()[0] == Cycles{5});
  fold.ended(0, 6);
  CHECK(fold.slack()[0] == Cycles{5});
}

TEST_CASE("units that feed each other in a circle have one slack each, as an exhaustive search finds it") {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    constexpr std::size_t units = 7;
    SlackFold fold(units);
    constexpr Cycles far = 1'000'000;
    std::vector<std::vector<Cycles>> gap(units, std::vector<Cycles>(units, far));
    std::vector<Cycles> best(units, far);
    for (int e = 0; e < 14; ++e) {
      const std::size_t from = random() % units, to = random() % units;
      const Cycles g = random() % 10;
      fold.met(to, from, g);
      if (from != to) gap[from][to] = std::min(gap[from][to], g);
    }
    for (int e = 0; e < 2; ++e) {
      const std::size_t u = random() % units;
      const Cycles g = random() % 10;
      fold.ended(u, g);
      best[u] = std::min(best[u], g);
    }
    for (std::size_t pass = 0; pass < units; ++pass)
      for (std::size_t u = 0; u < units; ++u)
        for (std::size_t v = 0; v < units; ++v) best[u] = std::min(best[u], gap[u][v] + best[v]);
    const auto slack = fold.slack();
    for (std::size_t u = 0; u < units; ++u) CHECK(slack[u].value_or(far) == std::min(far, best[u]));
  }
}

}  // namespace
}  // namespace rdusim::test::slack_test
