#include "models/events/provenance.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "models/events/events.h"

namespace rdusim::provenance_test {
namespace {

Contribution part(std::size_t chip, std::uint64_t begin, std::uint64_t end) {
  return {ChipId{chip}, begin, end};
}

TEST_CASE("adjacent ranges of one chip join, whichever comes first") {
  ProvenanceTable t;
  const ProvenanceId low = t.single(part(0, 0, 32)), high = t.single(part(0, 32, 64));
  CHECK(t.contributions(t.sum(low, high)) == std::vector{part(0, 0, 64)});
  CHECK(t.sum(low, high) == t.sum(high, low));
}

TEST_CASE("ranges of different chips, and ranges with a gap, stay apart") {
  ProvenanceTable t;
  CHECK(t.contributions(t.sum(t.single(part(0, 0, 32)), t.single(part(1, 32, 64)))).size() == 2);
  CHECK(t.contributions(t.sum(t.single(part(0, 0, 32)), t.single(part(0, 33, 64)))).size() == 2);
}

TEST_CASE("a repeated contribution is kept twice, and neither half of it is swallowed") {
  ProvenanceTable t;
  const ProvenanceId a = t.single(part(0, 0, 32));
  CHECK(t.contributions(t.sum(a, a)).size() == 2);
  const ProvenanceId overlap = t.sum(t.single(part(0, 0, 48)), t.single(part(0, 32, 64)));
  CHECK(t.contributions(overlap).size() == 2);
  const ProvenanceId next = t.single(part(0, 32, 64));
  const ProvenanceId twice = t.sum(t.sum(a, a), t.sum(next, next));
  std::uint64_t length = 0;
  for (const Contribution& c : t.contributions(twice)) length += c.k_end - c.k_begin;
  CHECK(length == 128);
}

TEST_CASE("equal sets have one number, and nothing is number 0") {
  ProvenanceTable t;
  const ProvenanceId a = t.single(part(0, 0, 32));
  CHECK(a != 0);
  CHECK(t.single(part(0, 0, 32)) == a);
  CHECK(t.sum(a, 0) == a);
  CHECK(t.sum(0, a) == a);
  CHECK(t.sum(0, 0) == 0);
  CHECK(t.contributions(0).empty());
}

TEST_CASE("a page joins what lies before it and what lies after it") {
  ProvenanceTable t;
  const ProvenanceId ends = t.sum(t.single(part(0, 0, 32)), t.single(part(0, 64, 96)));
  CHECK(t.contributions(t.extend(ends, part(0, 32, 64))) == std::vector{part(0, 0, 96)});
}

TEST_CASE("what is remembered is what would be worked out") {
  ProvenanceTable t, fresh;
  ProvenanceId held = 0, slow = 0;
  for (int round = 0; round < 3; ++round)
    for (std::uint64_t k = 0; k < 20000; k += 2) {
      const Contribution c = part(k % 7, k, k + 1);
      held = t.extend(k % 100 == 0 ? 0 : held, c);
      slow = fresh.sum(k % 100 == 0 ? 0 : slow, fresh.single(c));
      REQUIRE(t.contributions(held) == fresh.contributions(slow));
    }
}

TEST_CASE("chips that follow each other are one run, in whatever order they were added") {
  ProvenanceTable t;
  const auto sum_of = [&](std::vector<std::size_t> chips) {
    ProvenanceId held = 0;
    for (const std::size_t c : chips) held = t.sum(held, t.single(part(c, 48 * c, 48 * c + 48)));
    return held;
  };
  const ProvenanceId rising = sum_of({0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(t.runs(rising).size() == 1);
  CHECK(t.runs(rising).front() == ContributionRun{ChipId{std::size_t{0}}, 8, 0, 48});
  CHECK(sum_of({7, 6, 5, 4, 3, 2, 1, 0}) == rising);
  CHECK(sum_of({5, 2, 7, 0, 3, 6, 1, 4}) == rising);
  CHECK(t.sum(sum_of({0, 2, 4, 6}), sum_of({1, 3, 5, 7})) == rising);
  // A ring begins anywhere.
  CHECK(t.runs(sum_of({6, 7, 0, 1})).size() == 2);
  CHECK(t.sum(sum_of({6, 7, 0, 1}), sum_of({2, 3, 4, 5})) == rising);
  CHECK(t.contributions(sum_of({2, 3})) == std::vector{part(2, 96, 144), part(3, 144, 192)});
  // One more of what is there stays, and tells a set from the others.
  const ProvenanceId twice = t.sum(rising, sum_of({3}));
  CHECK(twice != rising);
  CHECK(t.contributions(twice).size() == 9);
  CHECK(t.sum(sum_of({0, 1, 2, 3}), sum_of({3, 4, 5, 6, 7})) == twice);
}

// Against multisets that are sorted and joined as the words say.
TEST_CASE("sums of random sets are what a sorted list of all their members is") {
  ProvenanceTable t;
  std::uint64_t state = 7;
  const auto draw = [&](std::uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33U) % below;
  };
  std::vector<std::pair<ProvenanceId, std::vector<Contribution>>> known;
  for (std::size_t c = 0; c < 12; ++c)
    known.push_back({t.single(part(c, 32 * c, 32 * c + 32)), {part(c, 32 * c, 32 * c + 32)}});
  for (int round = 0; round < 400; ++round) {
    const auto& [a, of_a] = known[draw(known.size())];
    const auto& [b, of_b] = known[draw(known.size())];
    std::vector<Contribution> both = of_a;
    both.insert(both.end(), of_b.begin(), of_b.end());
    std::sort(both.begin(), both.end());
    if (both.size() > 40) continue;
    const ProvenanceId sum = t.sum(a, b);
    REQUIRE(t.contributions(sum) == both);  // these ranges never touch within a chip: nothing joins
    REQUIRE(t.intern(both) == sum);
    known.emplace_back(sum, std::move(both));
  }
  CHECK(known.size() > 100);
}

struct Count final : EventSink {
  int credits = 0, all = 0;
  void on(const CreditTaken&) override { ++credits; }
  void on(const PageStored&) override { ++all; }
};

TEST_CASE("every listener hears every event") {
  Count a, b;
  EventSink* const both[] = {&a, &b};
  FanOut f(both);
  EventSink& sink = f;
  sink.on(CreditTaken{});
  sink.on(PageStored{});
  sink.on(PagePushed{});
  CHECK(a.credits == 1);
  CHECK(b.credits == 1);
  CHECK(a.all == 1);
}

}  // namespace
}  // namespace rdusim::provenance_test
