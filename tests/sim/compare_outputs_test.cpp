#include <doctest/doctest.h>

#include <cstring>

#include "compiler/workload/npy.h"
#include "sim/compare_outputs.h"
#include "tests/sim/small_program.h"

namespace rdusim::compare_outputs_test {
namespace {

using namespace test;

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// The small program's images with the right output, made the long way.
struct Right {
  explicit Right(SpatialProgram p) : program(std::move(p)) {
    sources = operand_sources(program, "", {}).value();
    images = fill_images(program, sources).value();
    whole = fill_whole(sources).value();
    const auto& x = whole[0];
    const auto& w = whole[1];
    for (std::size_t i = 0; i < 32; ++i) {
      for (std::size_t j = 0; j < 32; ++j) {
        std::int32_t sum = 0;
        for (std::size_t k = 0; k < 64; ++k)
          sum += static_cast<std::int8_t>(x[i * 64 + k]) * static_cast<std::int8_t>(w[k * 32 + j]);
        std::memcpy(images[4].data() + (i * 32 + j) * 4, &sum, 4);
      }
    }
  }
  SpatialProgram program;
  std::vector<OperandSource> sources;
  TensorImages images;
  OperandBytes whole;
};

TEST_CASE("slices hold the whole's elements at their places, and gather puts them together again") {
  const Right r(small_program());
  CHECK(gather(r.program, OperandId{0u}, r.images) == r.whole[0]);
  CHECK(gather(r.program, OperandId{1u}, r.images) == r.whole[1]);
}

TEST_CASE("slices that leave a gap are not gathered") {
  Right r(small_program());
  r.program.tensors[1].operand = OperandId{2u};
  CHECK_FALSE(gather(r.program, OperandId{0u}, r.images));
}

TEST_CASE("right values pass, and one wrong element is named with both values") {
  Right r(small_program());
  const auto good = compare_outputs(r.program, r.images, r.whole, CheckLevel::exact);
  REQUIRE(good);
  CHECK_MESSAGE(good->diagnostics.empty(), good->diagnostics.to_text());
  REQUIRE(good->outputs.size() == 1);
  CHECK(good->outputs.front().checked == CheckLevel::exact);
  CHECK(good->outputs.front().max_abs_error == 0.0);
  CHECK(good->outputs.front().sha256.size() == 64);

  r.images[4][(3 * 32 + 5) * 4] ^= std::byte{1};
  const auto bad = compare_outputs(r.program, r.images, r.whole, CheckLevel::exact);
  REQUIRE(bad);
  REQUIRE(bad->diagnostics.contains(Code::RDU7015));
  CHECK(bad->diagnostics.to_text().find("(3, 5)") != std::string::npos);
  CHECK(bad->diagnostics.to_text().find("1 of 1024 elements") != std::string::npos);
  const auto unchecked = compare_outputs(r.program, r.images, r.whole, CheckLevel::none);
  REQUIRE(unchecked);
  CHECK(unchecked->diagnostics.empty());
  CHECK(unchecked->outputs.front().checked == CheckLevel::none);
}

TEST_CASE("a bound catches what a bound can catch, and lets rounding pass") {
  SpatialProgram p = small_program();
  for (auto& o : p.operators->operands) o.dtype = DType::fp32;
  for (auto& t : p.tensors) t.dtype = DType::fp32;
  const auto sources = operand_sources(p, "", {}).value();
  TensorImages images = fill_images(p, sources).value();
  const OperandBytes given = fill_whole(sources).value();
  OperandBytes whole = given;
  REQUIRE(evaluate(*p.operators, {}, true, whole));
  images[4] = whole[2];
  const auto good = compare_outputs(p, images, given, CheckLevel::bound);
  REQUIRE(good);
  CHECK_MESSAGE(good->diagnostics.empty(), good->diagnostics.to_text());
  float v = 0;
  std::memcpy(&v, images[4].data(), 4);
  const float off = v + 1;
  std::memcpy(images[4].data(), &off, 4);
  const auto bad = compare_outputs(p, images, given, CheckLevel::bound);
  REQUIRE(bad);
  CHECK(bad->diagnostics.contains(Code::RDU7016));
  CHECK_FALSE(bad->diagnostics.contains(Code::RDU7015));
  CHECK(bad->outputs.front().max_abs_error == doctest::Approx(1.0));
}

TEST_CASE("replicas that differ in one bit are told apart") {
  Right r(small_program());
  Tensor copy = r.program.tensors[4];
  copy.id = TensorId{5u};
  copy.name = "y_c1";
  copy.chip = ChipId{1u};
  copy.replicas = r.program.tensors[4].replicas = 2;
  r.program.tensors.push_back(copy);
  r.images.push_back(r.images[4]);
  const auto same = compare_outputs(r.program, r.images, r.whole, CheckLevel::exact);
  REQUIRE(same);
  CHECK(same->replicas_checked);
  CHECK(same->diagnostics.empty());
  r.images[5].back() ^= std::byte{0x80};
  const auto different = compare_outputs(r.program, r.images, r.whole, CheckLevel::exact);
  REQUIRE(different);
  REQUIRE(different->diagnostics.contains(Code::RDU7017));
  CHECK(different->diagnostics.to_text().find("(31, 31)") != std::string::npos);
}

TEST_CASE("trees of chips that sum columns of their own hold for the columns of those chips") {
  SpatialProgram p = small_program();
  const auto one_chip = [](std::uint32_t chip, std::int64_t cut) {
    SummationTree t;
    t.id = SummationTreeId{chip};
    t.nodes = {{true, ChipId{chip}, 0, cut, 0, 0}, {true, ChipId{chip}, cut, 64, 0, 0}, {false, ChipId{}, 0, 0, 0, 1}};
    return t;
  };
  p.work[0].n = p.work[1].n = 16;
  p.work[1].offset_n = 16;
  p.trees = {one_chip(0, 32), one_chip(1, 32)};
  auto plans = reduction_plans(p, OperatorId{0u});
  REQUIRE(plans.size() == 1);
  CHECK(plans.front().col_end == 32);
  p.trees = {one_chip(0, 32), one_chip(1, 16)};
  plans = reduction_plans(p, OperatorId{0u});
  REQUIRE(plans.size() == 2);
  CHECK(plans[0].col_begin == 0);
  CHECK(plans[0].col_end == 16);
  CHECK(plans[1].col_begin == 16);
  CHECK(plans[1].plan.trees.front().nodes.front().k_end == 16);
}

TEST_CASE("what --set names must be an input of the program") {
  const SpatialProgram p = small_program();
  const auto unknown = operand_sources(p, "", {{"ww", "w.npy"}});
  REQUIRE_FALSE(unknown);
  CHECK(unknown.diagnostics().contains(Code::RDU6003));
  const auto written = operand_sources(p, "", {{"y", "y.npy"}});
  REQUIRE_FALSE(written);
  CHECK(written.diagnostics().contains(Code::RDU6003));
  const auto missing_file = operand_sources(p, "", {{"w", "/nonexistent/w.npy"}});
  REQUIRE_FALSE(missing_file);
  CHECK(missing_file.diagnostics().contains(Code::RDU1001));
}

TEST_CASE("an external operand must be given") {
  SpatialProgram p = small_program();
  p.operators->operands[1].fill = ExternalFill{};
  const auto sources = operand_sources(p, "", {}).value();
  const auto images = fill_images(p, sources);
  REQUIRE_FALSE(images);
  CHECK(images.diagnostics().contains(Code::RDU6002));
}

TEST_CASE("a written .npy reads back with its dtype and shape") {
  for (const DType t : all_dtypes) {
    for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{{3}, {2, 3}, {2, 3, 5}}) {
      CAPTURE(name_of(t));
      const std::vector<std::byte> bytes(static_cast<std::size_t>(*element_count(shape)) * bytes_of(t), std::byte{7});
      const std::string file = to_npy(t, shape, bytes);
      const auto header = parse_npy_header(as_bytes(file), "y.npy", "test");
      REQUIRE_MESSAGE(header, header.diagnostics().to_text());
      CHECK(header->shape == shape);
      CHECK_FALSE(header->fortran_order);
      CHECK(header->data_offset % 64 == 0);
      CHECK(file.size() - header->data_offset == bytes.size());
    }
  }
}

TEST_CASE("the estimate counts the tensors of all chips, and nothing of values where there are none") {
  const SpatialProgram p = small_program();
  auto sources = operand_sources(p, "", {}).value();
  const MemoryEstimate with = estimate_memory(p, sources, true, true);
  CHECK(with.images == 4 * 1024 + 4096);
  CHECK(with.reference >= 2048 + 2048 + 4096);
  const MemoryEstimate without = estimate_memory(p, sources, false, false);
  CHECK(without.images == 0);
  CHECK(without.reference == 0);
  // Weights in a file are read where they lie.
  sources[1].operand.fill = FileFill{"w.npy", "", 2176, "", 128};
  const MemoryEstimate mapped = estimate_memory(p, sources, true, true);
  CHECK(mapped.images == with.images - 2 * 1024);
  CHECK(mapped.reference == with.reference - 2048);
}

}  // namespace
}  // namespace rdusim::compare_outputs_test
