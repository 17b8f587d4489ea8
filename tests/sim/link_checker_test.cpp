#include "sim/link_checker.h"

#include <doctest/doctest.h>

namespace rdusim::link_checker_test {
namespace {

// Two chips, whose links break half of what they carry and are given up after two retries.
Target machine(Fraction error_rate) {
  Target t;
  t.name = "two";
  t.chips = 2;
  for (std::uint32_t from : {0U, 1U})
    t.links.push_back({LinkId{from}, ChipId{from}, ChipId{1 - from}, {32, 1}, 10, 8, 0, error_rate, 2, 0});
  return t;
}

// What the checker says of these transfers of link 0, broken or not, in bytes.
struct Used {
  Bytes bytes;
  bool broken;
  bool signal = false;
};
std::string said(const std::vector<Used>& transfers, bool ended = true) {
  const Target t = machine({1, 2});
  std::atomic<bool> stop = false;
  Violations violations(stop, true);
  LinkChecker checker(t, violations);
  Cycle at = 100;
  for (const Used& u : transfers) {
    checker.on(LinkUsed{at, LinkId{0}, at, at + 4, u.bytes, u.signal, u.broken});
    // The other link has no part in it.
    checker.on(LinkUsed{at, LinkId{1}, at, at + 4, 7, false, false});
    at += 10;
  }
  if (ended) checker.finish(at);
  std::string all;
  for (const Diagnostic& d : violations.diagnostics().list()) {
    CHECK(d.code == Code::RDU7065);
    all += d.where + ": " + d.message + "\n";
  }
  return all;
}

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("what came broken and is carried next, as often as it takes, is right") {
  CHECK(said({{64, false}, {64, true}, {64, true}, {64, false}, {32, true, true}, {32, false, true}, {64, false}})
            .empty());
}

TEST_CASE("something else, or nothing, after what came broken is wrong") {
  CHECK(holds(said({{64, true}, {32, false}}), "cycle 110, link0 chip0->chip1: it carries 32 bytes"));
  CHECK(holds(said({{64, true}, {64, false, true}}), "before it has carried again the 64 bytes"));
  CHECK(holds(said({{64, true}}), "64 bytes came broken, and were not sent again"));
  CHECK(said({{64, true}}, false).empty());
}

TEST_CASE("a link that is given up says so once, when it is") {
  const std::string text = said({{64, true}, {64, true}, {64, true}});
  CHECK(text == "cycle 120, link0 chip0->chip1: a page of 64 bytes came broken 3 times, and the link is given up\n");
}

TEST_CASE("where no link breaks anything there is nothing to watch") {
  const Target t = machine({0, 1});
  std::atomic<bool> stop = false;
  Violations violations(stop, true);
  CHECK_FALSE(LinkChecker(t, violations).watches());
}

}  // namespace
}  // namespace rdusim::link_checker_test
