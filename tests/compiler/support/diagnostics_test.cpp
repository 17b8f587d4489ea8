#include "compiler/support/diagnostics.h"

#include <doctest/doctest.h>

namespace rdusim::diagnostics_test {

TEST_CASE("a diagnostic says where, what, why and what to do") {
  Diagnostics out;
  out.error(Code::RDU4102, "down.toml:12:1", "the axis of '{}' is {} long", "down", 14336)
      .note("down.toml:3:1", "{} chips", 12)
      .suggest("use {}", 16);
  CHECK(out.to_text() ==
        "down.toml:12:1: error RDU4102 axis-not-divisible: the axis of 'down' is 14336 long\n"
        "down.toml:3:1: note: 12 chips\n"
        "help: use 16\n");
}

TEST_CASE("where a diagnostic has no help, the cure of its code stands there, once") {
  Diagnostics out;
  out.error(Code::RDU1016, "a", "none");
  out.error(Code::RDU1016, "b", "none");
  CHECK(out.to_text() ==
        "a: error RDU1016 no-operators: none\n"
        "help: add one\n"
        "b: error RDU1016 no-operators: none\n");
}

TEST_CASE("what a file brings cannot drive a terminal") {
  Diagnostics out;
  out.error(Code::RDU1003, "a\x1b[2J", "x\ny\tz \x07 \xff \xc2\x9b \xe2\x80\xae \xc3\xa9").suggest("h");
  CHECK(out.to_text() ==
        "a\\x1b[2J: error RDU1003 toml-syntax: x\\ny\\tz \\x07 \\xff \\u009b \\u202e \xc3\xa9\nhelp: h\n");
}

TEST_CASE("faults beyond the limit are counted, and the text says so") {
  Diagnostics out;
  for (int i = 0; i < 60; ++i) out.error(Code::RDU3001, "", "number {}", i).note("here", "note {}", i);
  CHECK(out.error_count() == 60);
  CHECK(out.list().size() == Diagnostics::limit);
  const std::string text = out.to_text();
  CHECK(text.find("number 49") != std::string::npos);
  CHECK(text.find("number 50") == std::string::npos);
  CHECK(text.find("10 more not shown") != std::string::npos);
}

TEST_CASE("an error is not hidden behind warnings") {
  Diagnostics out;
  for (int i = 0; i < 60; ++i) out.warning(Code::RDU1023, "", "warning {}", i);
  CHECK_FALSE(out.has_errors());
  out.error(Code::RDU3001, "", "the error");
  CHECK(out.has_errors());
  CHECK(out.contains(Code::RDU3001));
  CHECK(out.list().size() == Diagnostics::limit);
}

TEST_CASE("appending keeps order and counts, those not listed included") {
  Diagnostics many;
  for (int i = 0; i < 55; ++i) many.error(Code::RDU3001, "", "{}", i);
  Diagnostics all;
  all.warning(Code::RDU1023, "", "first");
  all.append(many);
  CHECK(all.error_count() == 55);
  CHECK(all.list().size() == Diagnostics::limit);
  all.append(all);
  CHECK(all.error_count() == 110);
}

TEST_CASE("a warning is no error") {
  Diagnostics out;
  CHECK(out.empty());
  out.warning(Code::RDU1023, "w.toml:1:1", "period {}", 7);
  CHECK_FALSE(out.empty());
  CHECK_FALSE(out.has_errors());
  CHECK(out.to_text().starts_with("w.toml:1:1: warning RDU1023 pattern-hides-swaps: period 7\n"));
}

TEST_CASE("every code is found with its own entry") {
  REQUIRE(all_codes().size() > 100);
  for (const CodeInfo& c : all_codes()) CHECK(info(c.code).name == c.name);
  CHECK(info(static_cast<Code>(1)).code == Code::RDU9001);
}

}  // namespace rdusim::diagnostics_test
