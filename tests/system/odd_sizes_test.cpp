// Numbers of chips that divide nothing: every one of 1 to 16 ends as exact, uneven, padded, or refused with the reason.
#include <doctest/doctest.h>

#include <string>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::odd_sizes_test {
namespace {

constexpr std::uint64_t tile = 32;

// Products that the tiles of slices of `extent` elements, dealt as alike as can be, are more than those of the whole.
std::uint64_t padding(std::uint64_t extent, std::uint64_t chips, std::uint64_t others) {
  const auto up = [](std::uint64_t n) { return (n + tile - 1) / tile * tile; };
  std::uint64_t tiles = 0;
  for (std::uint64_t c = 0; c < chips; ++c) tiles += up(extent / chips + (c < extent % chips ? 1 : 0));
  return (tiles - up(extent)) * others;
}

void sweep(const Matmul& shape, const std::string& kind, std::uint64_t extent, std::uint64_t others) {
  const Folder folder;
  const std::string expected = shape.sha256();
  for (std::uint64_t chips = 1; chips <= 16; ++chips) {
    CAPTURE(chips);
    const std::vector<std::string> options = {"--chips", std::to_string(chips), "--shard", kind};
    const auto with = [&](const std::string& option) {
      std::vector<std::string> all = options;
      if (!option.empty()) all.push_back(option);
      return all;
    };
    const auto runs = [&](const std::string& option) {
      const Json report = compile_and_run(folder, shape, with(option));
      check_exact_pass(report);
      CHECK(text(report, "outputs", 0, "sha256") == expected);
      CHECK(number(report, "macs", "useful") == shape.m * shape.k * shape.n);
      return number(report, "macs", "padding");
    };
    const bool exact = chips == 1 || extent % (chips * tile) == 0;
    const std::string code = extent % chips == 0 ? "RDU4103" : "RDU4102";
    if (exact) {
      CHECK(runs("") == 0);
      CHECK(runs("--uneven") == 0);
      CHECK(runs("--pad") == 0);
      continue;
    }
    refused(folder, shape, with(""), code);
    if ((extent + tile - 1) / tile >= chips)
      CHECK(runs("--uneven") == 0);
    else
      refused(folder, shape, with("--uneven"), code);
    if (extent >= chips)
      CHECK(runs("--pad") == padding(extent, chips, others));
    else
      refused(folder, shape, with("--pad"), code);
  }
}

TEST_CASE("a contraction of eleven tiles and a bit over 1 to 16 chips is exact, uneven, padded, or refused") {
  const Matmul shape = matmul(33, 11 * 32 + 5, 40);
  sweep(shape, "row", shape.k, shape.m * 64);
}

TEST_CASE("nine columns over 1 to 16 chips are padded up to nine, and refused beyond") {
  const Matmul shape = matmul(5, 64, 9);
  sweep(shape, "column", shape.n, shape.m * 64);
}

TEST_CASE("columns over 1 to 16 chips are exact, uneven, padded, or refused") {
  const Matmul shape = matmul(3, 64, 6 * 32 + 1);
  sweep(shape, "column", shape.n, shape.m * 64);
}

}  // namespace
}  // namespace rdusim::test::odd_sizes_test
