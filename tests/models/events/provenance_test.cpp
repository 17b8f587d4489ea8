#include "models/events/provenance.h"

#include <doctest/doctest.h>

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
