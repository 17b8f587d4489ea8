#include "compiler/support/units.h"

#include <doctest/doctest.h>

#include <rapidcheck.h>
#include <cstdlib>
#include <limits>

namespace rdusim::units_test {

namespace {
constexpr std::uint64_t max64 = std::numeric_limits<std::uint64_t>::max();
// The same cases in every run.
const bool pinned = setenv("RC_PARAMS", "seed=20240607 max_success=500", 0) == 0;
}  // namespace

TEST_CASE("a decimal is read exactly") {
  CHECK(parse_decimal("31.25") == Fraction{125, 4});
  CHECK(parse_decimal("0.85") == Fraction{17, 20});
  CHECK(parse_decimal("1.8e3") == Fraction{1800, 1});
  CHECK(parse_decimal("1.8E+3") == Fraction{1800, 1});
  CHECK(parse_decimal("25e-2") == Fraction{1, 4});
  CHECK(parse_decimal("0") == Fraction{0, 1});
  CHECK(parse_decimal("0.000e999999999999999999") == Fraction{0, 1});
  CHECK(parse_decimal("1.50000000000000000000000000000000000000000000") == Fraction{3, 2});
  CHECK(parse_decimal("18446744073709551615") == Fraction{max64, 1});
}

TEST_CASE("what is no decimal, or does not fit, gives nothing") {
  for (const char* text : {"",
                           ".",
                           "1.",
                           ".5",
                           "-1",
                           "+1",
                           "1e",
                           "1e+",
                           "1.2.3",
                           "0x10",
                           "1_000",
                           " 1",
                           "1 ",
                           "inf",
                           "nan",
                           "18446744073709551616",
                           "1e20",
                           "1e-20",
                           "1e999999999999",
                           "12345678901234567890.5"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_decimal(text));
  }
}

TEST_CASE("a double stands for its shortest decimal") {
  CHECK(exact_fraction(0.85) == Fraction{17, 20});
  CHECK(exact_fraction(1.2) == Fraction{6, 5});
  CHECK(exact_fraction(0.0) == Fraction{0, 1});
  CHECK(exact_fraction(-0.0) == Fraction{0, 1});
  CHECK(exact_fraction(1800) == Fraction{1800, 1});
  CHECK_FALSE(exact_fraction(-1.0));
  CHECK_FALSE(exact_fraction(std::numeric_limits<double>::infinity()));
  CHECK_FALSE(exact_fraction(std::numeric_limits<double>::quiet_NaN()));
  CHECK_FALSE(exact_fraction(std::numeric_limits<double>::denorm_min()));
}

TEST_CASE("fractions come in lowest terms") {
  CHECK(make_fraction(6, 4) == Fraction{3, 2});
  CHECK(make_fraction(0, 7) == Fraction{0, 1});
  CHECK(multiply({2, 3}, {3, 4}) == Fraction{1, 2});
  CHECK(divide({1, 2}, {3, 4}) == Fraction{2, 3});
  CHECK_FALSE(divide({1, 2}, {0, 1}));
  CHECK(to_string(Fraction{625, 24}) == "625/24");
  CHECK(to_string(Fraction{64, 1}) == "64");
}

TEST_CASE("fractions that would overflow give nothing, unless they cancel") {
  CHECK_FALSE(multiply({max64, 1}, {2, 1}));
  CHECK(multiply({max64, 1}, {2, max64}) == Fraction{2, 1});
  CHECK(multiply({max64, 3}, {3, max64}) == Fraction{1, 1});
}

TEST_CASE("fractions compare by value where cross products exceed 64 bits") {
  CHECK(Fraction{max64, max64 - 1} < Fraction{max64 - 1, max64 - 2});
  CHECK(Fraction{1, 3} < Fraction{1, 2});
  CHECK((Fraction{1, 2} <=> Fraction{1, 2}) == std::strong_ordering::equal);
}

TEST_CASE("cycles round up, and do not wrap") {
  CHECK(ceil_div(0, Fraction{64, 1}) == 0);
  CHECK(ceil_div(1, Fraction{64, 1}) == 1);
  CHECK(ceil_div(64, Fraction{64, 1}) == 1);
  CHECK(ceil_div(65, Fraction{64, 1}) == 2);
  CHECK(ceil_div(4096, Fraction{625, 24}) == 158);
  CHECK(ceil_div(max64, Fraction{1, 2}) == max64);
}

TEST_CASE("checked arithmetic refuses what overflows") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(checked_multiply(3, 4) == 12);
  CHECK_FALSE(checked_multiply(most, 2));
  CHECK(checked_add(most, 0) == most);
  CHECK_FALSE(checked_add(most, 1));
  CHECK_FALSE(checked_add(std::numeric_limits<std::int64_t>::min(), -1));
}

TEST_CASE("numbers are written for people") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1234567) == "1,234,567");
  CHECK(format_bytes(512) == "512 B");
  CHECK(format_bytes(3670016) == "3.67 MB (3.50 MiB)");
  CHECK(format_bytes(std::uint64_t{1} << 36) == "68.72 GB (64.00 GiB)");
  CHECK(format_bytes(999'999) == "1.00 MB (976.56 KiB)");
}

TEST_CASE("ceil_div is the least number of cycles that suffices") {
  REQUIRE(pinned);
  CHECK(rc::check([] {
    const auto amount = *rc::gen::inRange<std::uint64_t>(0, 1'000'000);
    const auto num = *rc::gen::inRange<std::uint64_t>(1, 10'000);
    const auto den = *rc::gen::inRange<std::uint64_t>(1, 10'000);
    const Cycles cycles = ceil_div(amount, make_fraction(num, den));
    RC_ASSERT(cycles * num >= amount * den);
    RC_ASSERT(cycles == 0 || (cycles - 1) * num < amount * den);
  }));
}

TEST_CASE("dividing undoes multiplying") {
  CHECK(rc::check([] {
    const auto some = [] {
      const auto num = *rc::gen::inRange<std::uint64_t>(1, 1'000'000'000);
      return make_fraction(num, *rc::gen::inRange<std::uint64_t>(1, 1'000'000'000));
    };
    const Fraction a = some();
    const Fraction b = some();
    const auto product = multiply(a, b);
    RC_PRE(product.has_value());
    RC_ASSERT(divide(*product, b) == a);
  }));
}

TEST_CASE("a decimal that is printed and read is the same fraction") {
  CHECK(rc::check([] {
    const auto thousandths = *rc::gen::inRange<std::uint64_t>(0, 1'000'000'000);
    RC_ASSERT(exact_fraction(static_cast<double>(thousandths) / 1000.0) == make_fraction(thousandths, 1000));
  }));
}

}  // namespace rdusim::units_test
