// The chain of causes that adds stretches up, against every piece kept.
#include "traces/causes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

namespace rdusim::causes_test {
namespace {

// A piece and the number of the one before it: all of them, for good. 0 is the start.
struct Kept {
  PathStep step;
  std::size_t before = 0;
};

struct Told {
  std::vector<PathStep> pieces;  // neighbours about the same joined, in time
  std::map<About, Cycles> sums;
};

Told told(const std::vector<Kept>& all, std::size_t last) {
  Told t;
  for (; last != 0; last = all[last].before) {
    const PathStep& step = all[last].step;
    if (step.from == step.to) continue;
    if (!t.pieces.empty() && t.pieces.back().about == step.about)
      t.pieces.back().from = step.from;
    else
      t.pieces.push_back(step);
    t.sums[step.about] += step.to - step.from;
  }
  std::reverse(t.pieces.begin(), t.pieces.end());
  return t;
}

TEST_CASE("a chain that adds stretches up tells what its pieces were") {
  std::mt19937 random(11);
  const auto below = [&](std::uint32_t n) { return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random); };
  constexpr std::size_t tips = 12, most = 5;
  Chain adding(most, 64);
  std::vector<Chain::Ref> held(tips, 0);
  std::vector<Kept> every(1);
  std::vector<std::size_t> kept(tips, 0);
  for (int i = 0; i < 30000; ++i) {
    const std::size_t tip = below(tips);
    // Now and then a way takes over from another, or ends.
    const std::size_t from = below(40) == 0 ? below(tips) : tip;
    if (below(3000) == 0) {
      adding.replace(held[tip], 0);
      kept[tip] = 0;
      continue;
    }
    const Cycle before = every[kept[from]].step.to;
    const Cycle at = before + (below(3) == 0 ? 0 : below(50));
    const About about{static_cast<PathPiece>(below(3)), EventSubject::stage, below(2)};
    adding.replace(held[tip], adding.make(at, held[from], about));
    every.push_back({{before, at, about}, kept[from]});
    kept[tip] = every.size() - 1;
    REQUIRE(adding.at(held[tip]) == at);
    REQUIRE(adding.set_at(held[tip]) == before);
    if (i % 1000 != 0) continue;
    for (std::size_t t = 0; t < tips; ++t) {
      PathTally tally(most);
      adding.tell(held[t], tally);
      tally.close();
      Told all = told(every, kept[t]);
      REQUIRE(tally.pieces() == all.pieces.size());
      REQUIRE(std::map<About, Cycles>(tally.sums().begin(), tally.sums().end()) == all.sums);
      std::stable_sort(all.pieces.begin(), all.pieces.end(),
                       [](const PathStep& a, const PathStep& b) { return a.to - a.from > b.to - b.from; });
      all.pieces.resize(std::min(all.pieces.size(), most));
      std::sort(all.pieces.begin(), all.pieces.end(), [](const auto& a, const auto& b) { return a.from < b.from; });
      const auto longest = tally.longest();
      REQUIRE(longest.size() == all.pieces.size());
      for (std::size_t p = 0; p < longest.size(); ++p) {
        REQUIRE(longest[p].from == all.pieces[p].from);
        REQUIRE(longest[p].to == all.pieces[p].to);
        REQUIRE(longest[p].about == all.pieces[p].about);
      }
    }
  }
  // Twelve ways of 2,500 pieces each: what is left of them are stretches.
  CHECK(adding.nodes() < 400);
}

}  // namespace
}  // namespace rdusim::causes_test
