// What small accesses cost a memory may be stated, all of it or nothing.
#include <doctest/doctest.h>

#include <string>

#include "compiler/target/target.h"

namespace rdusim::memory_keys_test {
namespace {

std::string with(const std::string& keys) {
  std::string text(find_target("sn50")->text);
  const auto at = text.find("row_bytes ");
  REQUIRE(at != std::string::npos);
  return text.insert(at, keys);
}

const std::string four = R"(banks = { value = 32, published = "p" }
row_cycle_ns = { value = 42, published = "p" }
activation_ns = { value = 1.5, published = "p" }
access_bytes = { value = 32, published = "p" }
)";

}  // namespace

TEST_CASE("banks, row cycle, activation, access and queue are read in cycles of the clock") {
  const auto t = read_target(with(four + "queue_requests = { value = 16, published = \"p\" }\n"), "t");
  INFO(t.diagnostics().to_text());
  REQUIRE(t.ok());
  CHECK(t->hbm.banks == 32);
  CHECK(t->hbm.row_cycle_cycles == 76);                      // 75.6 at 1.8 GHz
  CHECK(t->hbm.activation_cycles == make_fraction(27, 10));  // exact
  CHECK(t->hbm.access_bytes == 32);
  CHECK(t->hbm.queue_requests == 16);
}

TEST_CASE("banks without a queue are refused") {
  const auto t = read_target(with(four), "t");
  REQUIRE_FALSE(t.ok());
  CHECK(t.diagnostics().list().size() == 1);
  CHECK(t.diagnostics().contains(Code::RDU2004));
}

}  // namespace rdusim::memory_keys_test
