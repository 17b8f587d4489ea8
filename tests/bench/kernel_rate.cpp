// What the kernels do on one core: multiplications and additions a second, of square matmuls.
//
//   kernel_rate EXTENT [SECONDS]      prints a line a dtype: its name and the median rate, Gop/s (a product and a sum
//                                     are two)
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "compiler/support/dtype.h"
#include "models/values/kernels.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double rate(rdusim::DType type, std::uint32_t extent, double for_seconds) {
  const std::size_t elements = std::size_t{extent} * extent;
  // Small whole numbers in every dtype, and no two rows alike. Bytes taken as they come would be denormals in some, for
  // which processors differ by a factor of forty.
  const auto operand = [&](std::uint32_t period) {
    std::vector<float> values(elements);
    for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i % period);
    std::vector<std::byte> out(elements * rdusim::bytes_of(type));
    rdusim::convert(rdusim::DType::fp32, reinterpret_cast<const std::byte*>(values.data()), type, out.data(), elements,
                    true);
    return out;
  };
  const std::vector<std::byte> a = operand(61), b = operand(53);
  std::vector<std::byte> c(elements * rdusim::bytes_of(rdusim::accumulator_of(type)));
  std::vector<double> rates;
  const auto begin = Clock::now();
  while (rates.size() < 5 || seconds_since(begin) < for_seconds) {
    const auto start = Clock::now();
    rdusim::matmul_accumulate(type, a.data(), b.data(), c.data(), extent, extent, extent);
    rates.push_back(2.0 * double(elements) * extent / seconds_since(start) / 1e9);
  }
  std::nth_element(rates.begin(), rates.begin() + std::ptrdiff_t(rates.size() / 2), rates.end());
  return rates[rates.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const auto extent = static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 10));
  const double seconds = argc > 2 ? std::strtod(argv[2], nullptr) : 0.2;
  if (extent == 0) return 2;
  for (const rdusim::DType type : rdusim::all_dtypes)
    std::printf("%s %.1f\n", std::string(rdusim::name_of(type)).c_str(), rate(type, extent, seconds));
  return 0;
}
