#include "compiler/workload/fill_rules.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

namespace rdusim::fill_rules_test {

namespace {

Operand pattern(std::int64_t modulus, std::vector<std::int64_t> shape) {
  Operand out;
  out.name = "x";
  out.role = TensorRole::input;
  out.shape = std::move(shape);
  out.dtype = DType::int32;
  out.fill = PatternFill{modulus, 0};
  return out;
}

std::string warning(std::int64_t modulus, std::vector<std::int64_t> shape) {
  Diagnostics out;
  check_pattern(pattern(modulus, std::move(shape)), "here", out);
  CHECK_FALSE(out.has_errors());
  std::string text;
  for (const Diagnostic& d : out.list()) {
    CHECK(d.code == Code::RDU1023);
    text += d.message + "\n";
    for (const Note& n : d.notes) text += n.message + "\n";
  }
  return text;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("with modulus 7 all rows of a 32 x 14336 operand are the same, and the warning says so") {
  const std::string text = warning(7, {32, 14336});
  CHECK(says(text, "its period 7 divides the row length 14336: all 32 rows are equal"));
  CHECK(says(text, "split by columns"));
  CHECK(says(text, "65536 whole periods"));
}

TEST_CASE("a prime above the chips that divides no stride warns of nothing") {
  CHECK(warning(61, {32, 14336}) == "");
  CHECK(warning(89, {14336, 4096}) == "");
}

TEST_CASE("one row cannot be swapped with another") {
  CHECK(warning(19, {1, 19}) == "");  // one period
  CHECK(says(warning(19, {2, 19}), "rows are equal"));
}

TEST_CASE("shards are equal where the period divides their distance") {
  // 12 columns over 2, 3, 4, 6, 12 chips: 6, 4, 3, 2, 1 apart.
  CHECK(says(warning(6, {5, 12}), "split by columns"));
  CHECK(says(warning(17 * 4, {17, 12}), "whole periods of") == ((17 * 12) % (17 * 4) == 0));
  CHECK(says(warning(24, {8, 12}), "split by rows over this many chips, shards that far apart are equal"));
  CHECK(warning(59, {59, 7}) != "");  // 7 whole periods
  CHECK(warning(59, {58, 7}) == "");
}

TEST_CASE("a period of one makes every element equal") {
  CHECK(says(warning(1, {4, 4}), "all 4 rows are equal"));
  CHECK(says(warning(1, {4, 4}), "all elements are equal"));
  CHECK(says(warning(1, {4}), "all elements are equal"));
  CHECK(warning(1, {1}) == "");
}

TEST_CASE("the modulus that a warning suggests warns of nothing") {
  CHECK(rc::check("suggestion", [] {
    const auto modulus = *rc::gen::inRange<std::int64_t>(1, 64);
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 200);
    const auto columns = *rc::gen::inRange<std::int64_t>(1, 200);
    Diagnostics out;
    check_pattern(pattern(modulus, {rows, columns}), "here", out);
    if (out.empty()) return;
    RC_ASSERT(out.list().size() == 1U);
    RC_ASSERT(out.list()[0].help.size() == 1U);
    std::int64_t better = 0;
    RC_ASSERT(std::sscanf(out.list()[0].help[0].c_str(), "modulus %ld", &better) == 1);
    Diagnostics none;
    check_pattern(pattern(better, {rows, columns}), "here", none);
    RC_ASSERT(none.empty());
  }));
}

TEST_CASE(
    "a pattern is warned of exactly where two shards, or two neighbouring rows, are equal, or it ends on a period") {
  CHECK(rc::check("brute force", [] {
    const auto modulus = *rc::gen::inRange<std::int64_t>(1, 40);
    const std::vector<std::int64_t> shape = {*rc::gen::inRange<std::int64_t>(1, 40),
                                             *rc::gen::inRange<std::int64_t>(1, 40)};
    const std::int64_t rows = shape[0];
    const std::int64_t columns = shape[1];
    const auto value = [&](std::int64_t i, std::int64_t j) { return (i * columns + j) % modulus; };
    const auto equal = [&](std::int64_t i, std::int64_t j, std::int64_t di, std::int64_t dj, std::int64_t h,
                           std::int64_t w) {
      for (std::int64_t a = 0; a < h; ++a) {
        for (std::int64_t b = 0; b < w; ++b) {
          if (value(i + a, j + b) != value(i + di + a, j + dj + b)) return false;
        }
      }
      return true;
    };
    bool hidden = modulus < rows * columns && rows * columns % modulus == 0;
    if (rows > 1) hidden = hidden || equal(0, 0, 1, 0, 1, columns);
    for (std::int64_t n = 2; n <= 16; ++n) {
      for (std::int64_t c = 0; c < n; ++c) {
        for (std::int64_t d = c + 1; d < n; ++d) {
          if (rows % n == 0) hidden = hidden || equal(c * rows / n, 0, (d - c) * rows / n, 0, rows / n, columns);
          if (columns % n == 0)
            hidden = hidden || equal(0, c * columns / n, 0, (d - c) * columns / n, rows, columns / n);
        }
      }
    }
    RC_ASSERT(hidden == !warning(modulus, shape).empty());
  }));
}

}  // namespace rdusim::fill_rules_test
