#include "compiler/support/pattern.h"

#include <doctest/doctest.h>

namespace rdusim::pattern_test {
namespace {

TEST_CASE("a pattern's star stands for anything") {
  CHECK(matches("cycles.simulated", "cycles.simulated"));
  CHECK(matches("stages.*.cycles", "stages.a.b.cycles"));
  CHECK(matches("*", ""));
  CHECK(matches("*a*b", "aXbXaXb"));
  CHECK_FALSE(matches("stages.*.cycles", "stages.a.cycles2"));
  CHECK_FALSE(matches("", "a"));
  CHECK_FALSE(matches("*a", "ab"));
}

}  // namespace
}  // namespace rdusim::pattern_test
