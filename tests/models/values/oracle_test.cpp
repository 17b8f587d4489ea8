// The kernels against Eigen's products, in types that hold every sum exactly, or within the bound of rounding.
#include <doctest/doctest.h>

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "models/values/kernels.h"

namespace rdusim::oracle_test {

namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
const std::byte* bytes(const T* p) {
  return reinterpret_cast<const std::byte*>(p);
}

struct Shape {
  std::uint32_t rows, depth, cols;
};
const Shape shapes[] = {{1, 1, 1}, {32, 32, 32}, {1, 300, 17}, {97, 130, 50}, {129, 257, 65}, {256, 256, 256}};

// The product by the kernel: a and b as given, result in Acc from zero.
template <class Acc, class In>
Matrix<Acc> product(DType type, const std::vector<In>& a, const std::vector<In>& b, const Shape& s) {
  Matrix<Acc> c = Matrix<Acc>::Zero(s.rows, s.cols);
  matmul_accumulate(type, bytes(a.data()), bytes(b.data()), reinterpret_cast<std::byte*>(c.data()), s.rows, s.depth,
                    s.cols);
  return c;
}

template <class In>
std::vector<In> drawn(std::size_t n, std::uint64_t seed, std::int64_t least, std::int64_t greatest) {
  std::mt19937_64 draw(seed);
  std::vector<In> v(n);
  for (In& x : v)
    x = static_cast<In>(least + static_cast<std::int64_t>(draw() % static_cast<std::uint64_t>(greatest - least + 1)));
  return v;
}

template <class Wide, class In, class Value>
Matrix<Wide> widened(const std::vector<In>& v, std::uint32_t rows, std::uint32_t cols, Value value) {
  Matrix<Wide> m(rows, cols);
  for (std::size_t i = 0; i < v.size(); ++i) m.data()[i] = static_cast<Wide>(value(v[i]));
  return m;
}

}  // namespace

TEST_CASE("integer matmuls are Eigen's, element for element") {
  for (const Shape& s : shapes) {
    CAPTURE(s.depth);
    const auto same = [](auto x) { return x; };
    {
      const auto a = drawn<std::int8_t>(s.rows * s.depth, 1, -128, 127),
                 b = drawn<std::int8_t>(s.depth * s.cols, 2, -128, 127);
      CHECK(product<std::int32_t>(DType::int8, a, b, s) ==
            Matrix<std::int32_t>(widened<std::int32_t>(a, s.rows, s.depth, same) *
                                 widened<std::int32_t>(b, s.depth, s.cols, same)));
    }
    {
      const auto a = drawn<std::int64_t>(s.rows * s.depth, 3, -1'000'000'000, 1'000'000'000),
                 b = drawn<std::int64_t>(s.depth * s.cols, 4, -1'000'000, 1'000'000);
      CHECK(product<std::int64_t>(DType::int64, a, b, s) ==
            Matrix<std::int64_t>(widened<std::int64_t>(a, s.rows, s.depth, same) *
                                 widened<std::int64_t>(b, s.depth, s.cols, same)));
    }
  }
}

TEST_CASE("bf16 and fp8 matmuls of whole numbers are Eigen's, exactly") {
  for (const Shape& s : shapes) {
    CAPTURE(s.depth);
    {
      std::vector<std::uint16_t> a, b;
      for (const int v : drawn<int>(s.rows * s.depth, 5, -100, 100)) a.push_back(bf16_from_fp32(static_cast<float>(v)));
      for (const int v : drawn<int>(s.depth * s.cols, 6, -100, 100)) b.push_back(bf16_from_fp32(static_cast<float>(v)));
      const Matrix<double> right =
          widened<double>(a, s.rows, s.depth, fp32_from_bf16) * widened<double>(b, s.depth, s.cols, fp32_from_bf16);
      CHECK(product<float>(DType::bf16, a, b, s).cast<double>() == right);
    }
    {
      const auto finite = [](std::vector<std::uint8_t> v) {  // codes of 16 and less, of either sign
        for (std::uint8_t& x : v) x = fp8_e4m3_from_fp32(static_cast<float>(x % 33) - 16, true);
        return v;
      };
      const auto a = finite(drawn<std::uint8_t>(s.rows * s.depth, 7, 0, 255)),
                 b = finite(drawn<std::uint8_t>(s.depth * s.cols, 8, 0, 255));
      const Matrix<double> right = widened<double>(a, s.rows, s.depth, fp32_from_fp8_e4m3) *
                                   widened<double>(b, s.depth, s.cols, fp32_from_fp8_e4m3);
      CHECK(product<float>(DType::fp8_e4m3, a, b, s).cast<double>() == right);
    }
  }
}

TEST_CASE("an fp32 matmul lies within the bound of rounding of Eigen's in fp64") {
  for (const Shape& s : shapes) {
    CAPTURE(s.depth);
    std::vector<float> a, b;
    for (const int v : drawn<int>(s.rows * s.depth, 9, -1'000'000, 1'000'000))
      a.push_back(static_cast<float>(v) * 1e-3f);
    for (const int v : drawn<int>(s.depth * s.cols, 10, -1'000'000, 1'000'000))
      b.push_back(static_cast<float>(v) * 1e-3f);
    const auto same = [](float x) { return x; };
    const Matrix<double> wide_a = widened<double>(a, s.rows, s.depth, same),
                         wide_b = widened<double>(b, s.depth, s.cols, same);
    const Matrix<double> right = wide_a * wide_b;
    // Of a sum of n products, each step rounded: gamma(n) = n u / (1 - n u), u = 2^-24 (Higham, Accuracy and Stability
    // of Numerical Algorithms, section 3.1).
    const double n = s.depth, u = 0x1p-24, gamma = n * u / (1 - n * u);
    const Matrix<double> bound = gamma * (wide_a.cwiseAbs() * wide_b.cwiseAbs());
    const Matrix<double> error = (product<float>(DType::fp32, a, b, s).cast<double>() - right).cwiseAbs();
    CHECK((error.array() <= bound.array()).all());
  }
}

}  // namespace rdusim::oracle_test
