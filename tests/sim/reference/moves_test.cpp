// Gather, transpose, reshape, slice, concat: every element where it belongs, to the bit. And matmuls of stacks.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/sim/reference/operators.h"

namespace rdusim::moves_test {
using namespace rdusim::test;

namespace {

std::vector<std::int32_t> counting(std::size_t n) {
  std::vector<std::int32_t> out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

// Integers that follow no pattern, in int8.
std::vector<std::int8_t> small(std::size_t n, std::uint32_t seed) {
  std::vector<std::int8_t> out(n);
  const auto values = spread(n, -128, 128, seed);
  std::transform(values.begin(), values.end(), out.begin(), [](float v) { return static_cast<std::int8_t>(v); });
  return out;
}

// stacks of (rows x k) by stacks / serves of (k x cols), or (cols x k) where transposed.
void check_stacks(std::int64_t stacks, std::int64_t serves, std::int64_t rows, std::int64_t k, std::int64_t cols,
                  bool transposed) {
  OperatorAttributes attributes;
  attributes.transposed = transposed;
  const Shape a_shape = {stacks, rows, k};
  const Shape b_shape = transposed ? Shape{stacks / serves, cols, k} : Shape{stacks / serves, k, cols};
  const auto a = small(count_of(a_shape), 1), b = small(count_of(b_shape), 2);
  OneOperator op(OperatorKind::matmul, attributes);
  op.with(a_shape, DType::int8, a).with(b_shape, DType::int8, b).run({stacks, rows, cols}, DType::int32);
  std::vector<std::int32_t> got(op.bytes()[2].size() / 4);
  std::memcpy(got.data(), op.bytes()[2].data(), op.bytes()[2].size());
  std::size_t wrong = 0;
  // Three columns and the last of each row: enough to see any place, and quick without optimisation.
  for (std::int64_t s = 0; s < stacks; ++s)
    for (std::int64_t i = 0; i < rows; ++i)
      for (const std::int64_t j : {std::int64_t{0}, (i * 7 + s) % cols, (i * 13 + 5) % cols, cols - 1}) {
        std::int32_t sum = 0;
        const std::int64_t base = s / serves * k * cols;
        for (std::int64_t x = 0; x < k; ++x)
          sum += a[(s * rows + i) * k + x] * b[base + (transposed ? j * k + x : x * cols + j)];
        wrong += got[(s * rows + i) * cols + j] != sum;
      }
  CAPTURE(stacks);
  CAPTURE(rows);
  CAPTURE(k);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("matmuls of stacks, transposed and shared") {
  for (const bool transposed : {false, true}) {
    check_stacks(1, 1, 3, 5, 7, transposed);
    check_stacks(6, 1, 3, 65, 7, transposed);
    check_stacks(6, 3, 4, 130, 600, transposed);
    check_stacks(6, 6, 1, 64, 2, transposed);
  }
}

TEST_CASE("shapes that broke other tools: primes, 197 tokens in 60 heads, one row") {
  check_stacks(5 * 12, 1, 197, 197, 64, false);
  check_stacks(5 * 12, 1, 197, 64, 197, true);
  check_stacks(1, 1, 241, 241, 241, false);
  check_stacks(1, 1, 16, 43264, 3, false);
  check_stacks(1, 1, 2, 38809, 5, true);
}

TEST_CASE("a float matmul of a stack has the bits and the bound of its matrices one by one") {
  const auto a = spread(4 * 3 * 70, -1, 1, 1), b = spread(2 * 70 * 5, -1, 1, 2);
  OneOperator op(OperatorKind::matmul);
  op.reals({4, 3, 70}, DType::fp32, a).reals({2, 70, 5}, DType::fp32, b).run({4, 3, 5}, DType::bf16);
  const auto whole = op.result();
  const auto wide = op.wide();
  for (std::size_t s = 0; s < 4; ++s) {
    OneOperator one(OperatorKind::matmul);
    one.reals(
        {3, 70}, DType::fp32,
        {a.begin() + static_cast<std::ptrdiff_t>(s * 210), a.begin() + static_cast<std::ptrdiff_t>((s + 1) * 210)});
    const std::size_t g = s / 2;
    one.reals(
        {70, 5}, DType::fp32,
        {b.begin() + static_cast<std::ptrdiff_t>(g * 350), b.begin() + static_cast<std::ptrdiff_t>((g + 1) * 350)});
    one.run({3, 5}, DType::bf16);
    const auto part = one.result();
    const auto part_wide = one.wide();
    for (std::size_t i = 0; i < 15; ++i) {
      CHECK(part[i] == whole[s * 15 + i]);
      CHECK(part_wide.value[i] == wide.value[s * 15 + i]);
      CHECK(part_wide.error[i] == wide.error[s * 15 + i]);
    }
  }
}

TEST_CASE("a transpose puts every element where its axes say") {
  const Shape shape = {2, 3, 4, 5};
  std::vector<std::int64_t> axes = {0, 1, 2, 3};
  do {
    OperatorAttributes a;
    a.axes = axes;
    Shape out;
    for (const auto axis : axes) out.push_back(shape[static_cast<std::size_t>(axis)]);
    OneOperator op(OperatorKind::transpose, a);
    op.with(shape, DType::int32, counting(120)).run(out, DType::int32);
    const auto got = op.result();
    std::size_t wrong = 0;
    std::array<std::int64_t, 4> index{};
    for (std::size_t i = 0; i < 120; ++i) {
      std::size_t rest = i;
      for (std::size_t axis = 4; axis-- > 0;) {
        index[static_cast<std::size_t>(axes[axis])] = static_cast<std::int64_t>(rest) % out[axis];
        rest /= static_cast<std::size_t>(out[axis]);
      }
      wrong += got[i] != static_cast<double>(((index[0] * 3 + index[1]) * 4 + index[2]) * 5 + index[3]);
    }
    CHECK(wrong == 0);
  } while (std::next_permutation(axes.begin(), axes.end()));
}

TEST_CASE("a slice takes its part, a concat puts parts together, a reshape changes nothing") {
  OperatorAttributes s;
  s.begin = {1, 0, 2};
  s.end = {3, 2, 5};
  OneOperator slice(OperatorKind::slice, s);
  slice.with({3, 2, 5}, DType::int32, counting(30)).run({2, 2, 3}, DType::int32);
  CHECK(slice.result() == std::vector<double>{12, 13, 14, 17, 18, 19, 22, 23, 24, 27, 28, 29});

  OperatorAttributes c;
  c.axes = {1};
  OneOperator concat(OperatorKind::concat, c);
  concat.with({2, 2, 2}, DType::int32, counting(8)).with({2, 1, 2}, DType::int32, counting(4));
  concat.run({2, 3, 2}, DType::int32);
  CHECK(concat.result() == std::vector<double>{0, 1, 2, 3, 0, 1, 4, 5, 6, 7, 2, 3});

  OneOperator reshape(OperatorKind::reshape);
  reshape.with({2, 6}, DType::int32, counting(12)).run({3, 1, 4}, DType::int32);
  CHECK(reshape.bytes()[1] == reshape.bytes()[0]);
}

TEST_CASE("a gather copies rows, whatever is in them, and refuses an index beyond the table") {
  const std::vector<std::uint16_t> table = {0x7FC1, 0x8000, 1, 0x7F80, 5, 6};  // bf16: NaN with a payload, -0, ...
  OneOperator op(OperatorKind::gather);
  op.with({3, 2}, DType::bf16, table).with({4}, DType::int64, std::vector<std::int64_t>{2, 0, 0, 1});
  const auto& bytes = op.run({4, 2}, DType::bf16);
  std::vector<std::uint16_t> got(8);
  std::memcpy(got.data(), bytes.data(), 16);
  CHECK(got == std::vector<std::uint16_t>{5, 6, 0x7FC1, 0x8000, 0x7FC1, 0x8000, 1, 0x7F80});
  CHECK(op.wide().error == std::vector<double>(8, 0));
  for (const std::int64_t index : {std::int64_t{3}, std::int64_t{-1}}) {
    std::memcpy(op.bytes()[1].data(), &index, 8);
    const auto refused = evaluate(op.graph(), {}, true, op.bytes());
    CHECK(!refused.ok());
    CHECK(refused.diagnostics().contains(Code::RDU1035));
  }
}

TEST_CASE("bytes that are not those of a shape, and trees for what is not summed by trees, are refused") {
  OneOperator op(OperatorKind::add);
  op.reals({4}, DType::fp32, {1, 2, 3, 4}).reals({4}, DType::fp32, {1, 2, 3, 4}).run({4}, DType::fp32);
  SummationTree tree;
  tree.nodes.push_back({true, ChipId(0), 0, 4, 0, 0});
  const ReductionPlan plan{OperatorId(0), {tree}, {}};
  CHECK(evaluate(op.graph(), {&plan, 1}, true, op.bytes()).diagnostics().contains(Code::RDU3032));
  op.bytes()[1].resize(op.bytes()[1].size() - 1);
  CHECK(evaluate(op.graph(), {}, true, op.bytes()).diagnostics().contains(Code::RDU3003));
  CHECK(evaluate_wide(op.graph(), OperatorId(0), op.bytes()).diagnostics().contains(Code::RDU3003));
}

}  // namespace rdusim::moves_test
