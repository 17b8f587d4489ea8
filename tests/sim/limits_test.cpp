// What ends a run from outside: each limit is seen, and says which it was.
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "sim/forecast.h"
#include "sim/limits.h"

namespace rdusim::limits_test {
namespace {

using namespace std::chrono_literals;

// Waits for a flag, for ten seconds at the most.
bool raised(const std::atomic<bool>& stop) {
  for (int i = 0; i < 1000 && !stop; ++i) std::this_thread::sleep_for(10ms);
  return stop;
}

TEST_CASE("what holds more than it may is stopped, and not before it does") {
  std::atomic<Bytes> held{99};
  std::atomic<bool> stop{false};
  LimitWatch watch({{}, 100, [&] { return held.load(); }, {}}, stop);
  std::this_thread::sleep_for(100ms);
  CHECK_FALSE(stop);
  CHECK(watch.reached() == Limit::none);
  held = 101;
  REQUIRE(raised(stop));
  CHECK(watch.reached() == Limit::memory);
}

TEST_CASE("a time that is over stops, and one that is longer than a clock can count does not") {
  std::atomic<bool> stop{false};
  LimitWatch watch({0.05, {}, resident_bytes, {}}, stop);
  REQUIRE(raised(stop));
  CHECK(watch.reached() == Limit::seconds);
  std::atomic<bool> never{false};
  LimitWatch patient({1e300, {}, resident_bytes, {}}, never);
  std::this_thread::sleep_for(50ms);
  patient.finish();
  CHECK_FALSE(never);
  CHECK(patient.reached() == Limit::none);
}

TEST_CASE("a process holds what it touches, and the computer has no more left than it has") {
  const Bytes before = resident_bytes();
  CHECK(before > 1 << 20);
  std::vector<char> more(64 << 20, 1);
  CHECK(resident_bytes() >= before + (60 << 20));
  CHECK(more.back() == 1);
  const ComputerMemory computer = computer_memory();
  CHECK(computer.left > 0);
  CHECK(computer.left <= computer.total);
  CHECK(computer.total < Bytes{1} << 50);
}

TEST_CASE("a limit's name reads back") {
  for (const Limit l : {Limit::none, Limit::seconds, Limit::memory, Limit::computer}) CHECK(limit_of(name_of(l)) == l);
  CHECK_FALSE(limit_of("hunger"));
}

TEST_CASE("a forecast goes by the pages that are left, and says so") {
  Forecast f{2.0, 1000, 45000, 1 << 30};
  REQUIRE(f.seconds());
  CHECK(*f.seconds() == doctest::Approx(90));
  CHECK(f.pages_per_second() == doctest::Approx(500));
  CHECK(to_text(f).find("about 90 s") != std::string::npos);
  CHECK(to_text(f).find("45,000 pages at 500 a second") != std::string::npos);
  f.pages = 0;
  CHECK_FALSE(f.seconds());
  f.pages = 50000;  // more than was thought
  CHECK(*f.seconds() == doctest::Approx(2));
}

}  // namespace
}  // namespace rdusim::limits_test
