// A chip's record of events, read again in another process: the same events, by that one's numbers of sets.
#include <doctest/doctest.h>

#include <vector>

#include "models/events/event_record.h"

namespace rdusim::event_record_test {
namespace {

PageTag tag(ProvenanceId id) {
  PageTag t;
  t.row = 100 + id;
  t.provenance = id;
  return t;
}

// Notes times and the sets that are named.
struct Noted final : EventSink {
  std::vector<Cycle> at;
  std::vector<ProvenanceId> sets;
  void on(const PagePushed& e) override { at.push_back(e.at), note(e.tag); }
  void on(const PartialFolded& e) override { at.push_back(e.at), note(e.held), note(e.added), note(e.sum); }
  void on(const OperandsJoined& e) override { at.push_back(e.at), note(e.a), note(e.b); }
  void on(const PageLanded& e) override { at.push_back(e.at), note(e.tag); }
  void on(const PageLoaded& e) override { at.push_back(e.at), note(e.tag); }
  void on(const PageStored& e) override { at.push_back(e.at), note(e.tag); }
  void on(const CreditReturned& e) override { at.push_back(e.at); }

 private:
  void note(const PageTag& t) { sets.push_back(t.provenance); }
};

EventRecord one_of_each() {
  EventRecord r;
  r.add(PagePushed{5, {}, 1, 64, tag(1)});
  r.add(CreditReturned{5, {}});
  r.add(PartialFolded{6, {}, 0, tag(0), tag(1), tag(2)});
  r.add(OperandsJoined{6, {}, 0, tag(2), tag(0)});
  r.add(PageLanded{9, {}, 0, tag(2)});
  r.add(PageLoaded{9, {}, 0, TensorId{3}, tag(1)});
  r.add(PageStored{12, {}, 0, TensorId{3}, tag(2)});
  return r;
}

Noted heard(const EventRecord& r) {
  Noted n;
  for (std::size_t g = 0; g < r.groups().size(); ++g) r.hand_on(g, n);
  return n;
}

TEST_CASE("a record that is read again is the same events in the same order, with the sets by other numbers") {
  const EventRecord there = one_of_each();
  EventRecord here;
  here.add(CreditReturned{1, {}});  // forgotten
  const std::vector<ProvenanceId> ids = {0, 40, 7};
  REQUIRE(here.read(std::as_bytes(there.words()), ids));
  CHECK(here.groups().size() == 4);
  const Noted n = heard(here);
  CHECK(n.at == std::vector<Cycle>{5, 5, 6, 6, 9, 9, 12});
  CHECK(n.sets == std::vector<ProvenanceId>{40, 0, 40, 7, 7, 0, 7, 40, 7});
  CHECK(heard(here.packed()).sets == n.sets);
  CHECK(here.packed().groups().size() == 4);
}

TEST_CASE("what is no record, or names a set that nobody knows, is refused") {
  const EventRecord there = one_of_each();
  EventRecord here;
  const std::vector<ProvenanceId> few = {0, 40}, all = {0, 40, 7};
  CHECK_FALSE(here.read(std::as_bytes(there.words()), few));
  for (std::size_t cut = 1; cut < there.words().size(); ++cut) {
    const auto words = there.words().first(there.words().size() - cut);
    if (here.read(std::as_bytes(words), all)) CHECK(heard(here).at.size() < 7);  // cut between two events
  }
  std::vector<std::uint64_t> strange(there.words().begin(), there.words().end());
  strange[0] = 1000;
  CHECK_FALSE(here.read(std::as_bytes(std::span<const std::uint64_t>(strange)), all));
}

}  // namespace
}  // namespace rdusim::event_record_test
