#include "compiler/workload/fill_reader.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "compiler/support/file.h"
#include "compiler/workload/operator_graph.h"
#include "tests/compiler/workload/temporary_folder.h"

namespace rdusim::fill_reader_test {

namespace {

using Shape = std::vector<std::int64_t>;

std::vector<std::byte> slice(const Fill& fill, DType dtype, const Shape& whole, const Shape& offset, const Shape& shape,
                             const std::string& folder = ".") {
  std::vector<std::byte> out(static_cast<std::size_t>(*element_count(shape)) * bytes_of(dtype), std::byte{0xA5});
  const auto result = read_fill(fill, dtype, whole, offset, shape, folder, out);
  INFO(result.diagnostics().to_text());
  REQUIRE(result.ok());
  return out;
}

std::vector<std::byte> all(const Fill& fill, DType dtype, const Shape& whole, const std::string& folder = ".") {
  return slice(fill, dtype, whole, Shape(whole.size(), 0), whole, folder);
}

template <class T>
std::vector<T> values(const std::vector<std::byte>& bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

Code code_of(const Fill& fill, DType dtype, const Shape& whole, const Shape& offset, const Shape& shape,
             const std::string& folder = ".", std::size_t bytes = 0) {
  std::vector<std::byte> out(bytes != 0 ? bytes : static_cast<std::size_t>(*element_count(shape)) * bytes_of(dtype));
  const auto result = read_fill(fill, dtype, whole, offset, shape, folder, out);
  REQUIRE_FALSE(result.ok());
  return result.diagnostics().list()[0].code;
}

FileFill file_of(const TemporaryFolder& folder, const std::string& name, const std::string& head,
                 const std::string& data) {
  folder.write(name, head + data);
  return {name, "", head.size() + data.size(), sha256(head + data), head.size()};
}

// The definition: element by element, from the whole.
std::vector<std::byte> cut(const std::vector<std::byte>& whole_bytes, std::size_t size, const Shape& whole,
                           const Shape& offset, const Shape& shape) {
  std::vector<std::byte> out;
  const std::int64_t count = *element_count(shape);
  for (std::int64_t e = 0; e < count; ++e) {
    std::int64_t rest = e;
    std::int64_t p = 0;
    std::int64_t scale = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      p += (offset[axis] + rest % shape[axis]) * scale;
      rest /= shape[axis];
      scale *= whole[axis];
    }
    const auto* const from = whole_bytes.data() + static_cast<std::size_t>(p) * size;
    out.insert(out.end(), from, from + size);
  }
  return out;
}

}  // namespace

TEST_CASE("a pattern is its formula, in every dtype") {
  const PatternFill fill{7, 3};
  CHECK(values<std::int8_t>(all(fill, DType::int8, {2, 5})) ==
        std::vector<std::int8_t>{-3, -2, -1, 0, 1, 2, 3, -3, -2, -1});
  CHECK(values<std::int64_t>(slice(fill, DType::int64, {4, 5}, {1, 2}, {2, 2})) ==
        std::vector<std::int64_t>{-3, -2, 2, 3});
  CHECK(values<std::int32_t>(all(PatternFill{1'000'000'007, -2}, DType::int32, {3})) ==
        std::vector<std::int32_t>{2, 3, 4});
  CHECK(values<float>(all(fill, DType::fp32, {4})) == std::vector<float>{-3, -2, -1, 0});
  CHECK(values<std::uint16_t>(all(fill, DType::bf16, {4})) == std::vector<std::uint16_t>{0xC040, 0xC000, 0xBF80, 0});
  CHECK(values<std::uint8_t>(all(fill, DType::fp8_e4m3, {4})) == std::vector<std::uint8_t>{0xC4, 0xC0, 0xB8, 0});
  CHECK(values<std::uint8_t>(all(fill, DType::fp8_e5m2, {4})) == std::vector<std::uint8_t>{0xC2, 0xC0, 0xBC, 0});
}

TEST_CASE("a pattern far into a tensor of 10^18 elements is read without the tensor") {
  const Shape whole = {1'000'000'000, 1'000'000'000};
  const auto v =
      values<std::int64_t>(slice(PatternFill{1'000'003, 0}, DType::int64, whole, {999'999'999, 999'999'998}, {1, 2}));
  CHECK(v[0] == 999'999'999'999'999'998 % 1'000'003);
  CHECK(v[1] == 999'999'999'999'999'999 % 1'000'003);
}

TEST_CASE("zero, constants and lists give what they say") {
  CHECK(values<std::int32_t>(all(ZeroFill{}, DType::int32, {3})) == std::vector<std::int32_t>{0, 0, 0});
  CHECK(values<std::int64_t>(all(ConstantFill{0, INT64_MIN}, DType::int64, {3})) ==
        std::vector<std::int64_t>{INT64_MIN, INT64_MIN, INT64_MIN});
  CHECK(values<float>(all(ConstantFill{0.5, 0}, DType::fp32, {5})) == std::vector<float>(5, 0.5F));
  CHECK(values<std::int8_t>(slice(ValuesFill{{1, 2, 3, 4, 5, 6}, {}}, DType::int8, {2, 3}, {0, 1}, {2, 2})) ==
        std::vector<std::int8_t>{2, 3, 5, 6});
  CHECK(values<float>(all(ValuesFill{{}, {0.1, -2}}, DType::fp32, {2})) == std::vector<float>{0.1F, -2});
}

TEST_CASE("a random fill is SplitMix64's published sequence, scaled") {
  // The first outputs of the generator seeded with 1234567, as in the reference implementation by Vigna,
  // https://prng.di.unimi.it/splitmix64.c.
  const std::vector<std::uint64_t> published = {6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                                4593380528125082431U, 16408922859458223821U};
  const auto v = values<std::int64_t>(all(RandomFill{1234567, 0, 255}, DType::int64, {5}));
  for (std::size_t i = 0; i < published.size(); ++i) CHECK(v[i] == static_cast<std::int64_t>(published[i] >> 56U));
  const auto f = values<float>(all(RandomFill{1234567, 0, 1}, DType::fp32, {5}));
  for (std::size_t i = 0; i < published.size(); ++i) {
    CHECK(f[i] == static_cast<float>(static_cast<double>(published[i] >> 11U) * 0x1p-53));
  }
}

TEST_CASE("random integers reach both ends of their range and stay in it") {
  const auto v = values<std::int8_t>(all(RandomFill{1, -3, 3}, DType::int8, {10'000}));
  std::vector<int> count(7, 0);
  for (const std::int8_t x : v) {
    REQUIRE(x >= -3);
    REQUIRE(x <= 3);
    ++count[static_cast<std::size_t>(x + 3)];
  }
  for (const int c : count) {
    CHECK(c > 1200);
    CHECK(c < 1700);
  }
  for (const float x : values<float>(all(RandomFill{1, -0.25, 0.5}, DType::fp32, {10'000}))) {
    REQUIRE(x >= -0.25F);
    REQUIRE(x <= 0.5F);
  }
  CHECK(values<float>(all(RandomFill{1, 2, 2}, DType::fp32, {2})) == std::vector<float>{2, 2});
  CHECK(values<std::int64_t>(all(RandomFill{1, -9007199254740992.0, 9007199254740992.0}, DType::int64, {100})).size() ==
        100);
}

TEST_CASE("a slice of a fill is the whole's elements at its offset, for every kind, dtype and rank") {
  const TemporaryFolder folder;
  std::string data;
  for (int i = 0; i < 12 * 12 * 12 * 8; ++i) data += static_cast<char>(i * 37 + i / 256);
  const FileFill file = file_of(folder, "data.npy", "some header", data);
  CHECK(rc::check("slices", [&] {
    const auto rank = *rc::gen::inRange<std::size_t>(1, 4);
    Shape whole;
    Shape offset;
    Shape shape;
    for (std::size_t i = 0; i < rank; ++i) {
      const auto extent = *rc::gen::inRange<std::int64_t>(1, 13);
      const auto begin = *rc::gen::inRange<std::int64_t>(0, extent);
      const auto length = *rc::gen::inRange<std::int64_t>(1, extent - begin + 1);
      const bool full = *rc::gen::arbitrary<bool>();  // whole axes make longer runs
      whole.push_back(extent);
      offset.push_back(full ? 0 : begin);
      shape.push_back(full ? extent : length);
    }
    const DType dtype = *rc::gen::elementOf(std::vector<DType>(all_dtypes.begin(), all_dtypes.end()));
    const auto count = static_cast<std::size_t>(*element_count(whole));
    ValuesFill list;
    for (std::size_t i = 0; i < count; ++i) {
      if (is_integer(dtype)) list.integers.push_back(static_cast<std::int64_t>(i * 7 % 251) - 125);
      if (!is_integer(dtype)) list.floats.push_back(static_cast<double>(i * 7 % 251) / 4);
    }
    const std::vector<Fill> fills = {ZeroFill{},
                                     ConstantFill{1.5, 3},
                                     PatternFill{*rc::gen::inRange<std::int64_t>(1, 120), 20},
                                     PatternFill{100'003, 100},
                                     list,
                                     RandomFill{*rc::gen::arbitrary<std::uint32_t>(), -100, 100},
                                     file};
    for (const Fill& fill : fills) {
      if (std::holds_alternative<PatternFill>(fill) && dtype == DType::int8 && count > 200 &&
          std::get<PatternFill>(fill).modulus > 200) {
        continue;  // beyond int8
      }
      const auto expected = cut(all(fill, dtype, whole, folder.path()), bytes_of(dtype), whole, offset, shape);
      RC_ASSERT(slice(fill, dtype, whole, offset, shape, folder.path()) == expected);
    }
  }));
}

TEST_CASE("a long slice of a pattern is the formula as well") {
  CHECK(rc::check("patterns", [] {
    const auto modulus = *rc::gen::inRange<std::int64_t>(1, 9000);
    const auto columns = *rc::gen::inRange<std::int64_t>(1, 30'000);
    const auto begin = *rc::gen::inRange<std::int64_t>(0, columns);
    const auto v = values<std::int32_t>(
        slice(PatternFill{modulus, 5}, DType::int32, {3, columns}, {1, begin}, {2, columns - begin}));
    for (std::int64_t i = 0; i < 2; ++i) {
      for (std::int64_t j = begin; j < columns; ++j) {
        RC_ASSERT(v[static_cast<std::size_t>(i * (columns - begin) + j - begin)] ==
                  ((i + 1) * columns + j) % modulus - 5);
      }
    }
  }));
}

TEST_CASE("what cannot be sliced is refused with the reason") {
  CHECK(code_of(WholeTensorRandomFill{1}, DType::fp32, {4}, {0}, {4}) == Code::RDU4105);
  CHECK(code_of(ValuesFill{{1, 2, 3}, {}}, DType::int8, {4}, {0}, {1}) == Code::RDU4105);
  CHECK(code_of(ValuesFill{{}, {1, 2, 3, 4}}, DType::int8, {4}, {0}, {1}) == Code::RDU4105);
  CHECK(code_of(ExternalFill{}, DType::int8, {4}, {0}, {4}) == Code::RDU6002);
  CHECK(why_not_sliceable(WholeTensorRandomFill{1}, {4}) != "");
  CHECK(why_not_sliceable(ValuesFill{{1, 2, 3}, {}}, {4}) != "");
  CHECK(why_not_sliceable(ValuesFill{{1, 2, 3, 4}, {}}, {2, 2}) == "");
  for (const Fill& fill : {Fill{ZeroFill{}}, Fill{ConstantFill{}}, Fill{PatternFill{}}, Fill{RandomFill{}},
                           Fill{FileFill{}}, Fill{ExternalFill{}}}) {
    CHECK(why_not_sliceable(fill, {4}) == "");
  }
}

TEST_CASE("a slice that does not lie in the tensor, or bytes that are not its size, are refused") {
  CHECK(code_of(ZeroFill{}, DType::int8, {4, 4}, {1, 0}, {4, 4}) == Code::RDU4105);
  CHECK(code_of(ZeroFill{}, DType::int8, {4, 4}, {-1, 0}, {2, 2}) == Code::RDU4105);
  CHECK(code_of(ZeroFill{}, DType::int8, {4, 4}, {0}, {4}) == Code::RDU4105);
  CHECK(code_of(ZeroFill{}, DType::int8, {4}, {INT64_MAX}, {2}) == Code::RDU4105);
  CHECK(code_of(ZeroFill{}, DType::int8, {4}, {0}, {4}, ".", 3) == Code::RDU4105);
  CHECK(code_of(ZeroFill{}, DType::int8, {4}, {0}, {4}, ".", 5) == Code::RDU4105);
}

TEST_CASE("a value beyond the dtype is refused, not wrapped") {
  CHECK(code_of(ConstantFill{0, 128}, DType::int8, {4}, {0}, {4}) == Code::RDU1022);
  CHECK(code_of(PatternFill{300, 0}, DType::int8, {300}, {0}, {300}) == Code::RDU1022);
  CHECK(code_of(PatternFill{10'000, 0}, DType::int8, {300}, {0}, {300}) == Code::RDU1022);
  CHECK(code_of(PatternFill{0, 0}, DType::int8, {4}, {0}, {4}) == Code::RDU1022);
  CHECK(code_of(PatternFill{4, INT64_MIN}, DType::int64, {4}, {0}, {4}) == Code::RDU1022);
  CHECK(code_of(RandomFill{1, 2, 1}, DType::fp32, {4}, {0}, {4}) == Code::RDU1022);
  CHECK(code_of(RandomFill{1, -1e300, 1e300}, DType::int64, {4}, {0}, {4}) == Code::RDU1022);
  CHECK(code_of(RandomFill{1, 1e39, 2e39}, DType::fp32, {4}, {0}, {4}) == Code::RDU1022);
}

TEST_CASE("a file that has changed since it was recorded is refused, even after it was read once") {
  const TemporaryFolder folder;
  FileFill fill = file_of(folder, "x.npy", "head", "abcdefgh");
  CHECK(values<char>(all(fill, DType::int8, {8}, folder.path())) ==
        std::vector<char>{'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'});
  folder.write("x.npy", "headabcdefgi");
  CHECK(code_of(fill, DType::int8, {8}, {0}, {8}, folder.path()) == Code::RDU1025);
  folder.write("x.npy", "headabcdefghi");
  CHECK(code_of(fill, DType::int8, {8}, {0}, {8}, folder.path()) == Code::RDU1025);
  folder.write("x.npy", "headabcdefgh");
  CHECK(all(fill, DType::int8, {8}, folder.path()).size() == 8);
  fill.sha256[0] = fill.sha256[0] == '0' ? '1' : '0';
  CHECK(code_of(fill, DType::int8, {8}, {0}, {8}, folder.path()) == Code::RDU1025);
  std::filesystem::remove(folder / "x.npy");
  CHECK(code_of(fill, DType::int8, {8}, {0}, {8}, folder.path()) == Code::RDU1001);
  std::filesystem::create_directory(folder / "x.npy");
  CHECK(code_of(fill, DType::int8, {8}, {0}, {8}, folder.path()) == Code::RDU1001);
}

TEST_CASE("an offset that a program made up reads nothing beyond the file") {
  const TemporaryFolder folder;
  FileFill fill = file_of(folder, "x.npy", "head", "abcdefgh");
  fill.data_offset = 5;
  CHECK(code_of(fill, DType::int8, {8}, {0}, {8}, folder.path()) == Code::RDU1001);
  fill.data_offset = ~std::uint64_t{0} - 2;
  CHECK(code_of(fill, DType::int8, {8}, {4}, {4}, folder.path()) == Code::RDU1001);
}

TEST_CASE("a fill may take a part of a file in an order of its own, and a slice of it is that part's") {
  const TemporaryFolder folder;
  std::string data;
  for (int i = 0; i < 60; ++i) data += static_cast<char>(i);
  FileFill fill = file_of(folder, "x.npy", "head", data);
  fill.data_offset += 21;
  fill.extents = {4, 2, 3};  // of a tensor of 4 rows of 6
  fill.strides = {8, 1, 2};
  std::vector<char> due;
  for (int row = 0; row < 4; ++row)
    for (int half = 0; half < 2; ++half)
      for (int pair = 0; pair < 3; ++pair) due.push_back(static_cast<char>(21 + row * 8 + half + pair * 2));
  CHECK(values<char>(all(fill, DType::int8, {4, 6}, folder.path())) == due);
  std::vector<std::byte> part(2 * 3);
  REQUIRE(read_fill(fill, DType::int8, {4, 6}, {1, 2}, {2, 3}, folder.path(), part).ok());
  CHECK(values<char>(part) == std::vector<char>{due[8], due[9], due[10], due[14], due[15], due[16]});
  CHECK(code_of(fill, DType::int8, {4, 7}, {0, 0}, {4, 7}, folder.path()) == Code::RDU1022);
  fill.strides.pop_back();
  CHECK(code_of(fill, DType::int8, {4, 6}, {0, 0}, {4, 6}, folder.path()) == Code::RDU1022);
  fill.strides = {8, 1, 9};
  CHECK(code_of(fill, DType::int8, {4, 6}, {0, 0}, {4, 6}, folder.path()) == Code::RDU1001);
}

TEST_CASE("threads may read one file at once") {
  const TemporaryFolder folder;
  std::string data(1 << 20, 'x');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 31 % 251);
  const FileFill fill = file_of(folder, "x.npy", "", data);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::byte> out(1024);
      for (std::int64_t row = t; row < 1024; row += 8) {
        const auto result = read_fill(fill, DType::int8, {1024, 1024}, {row, 0}, {1, 1024}, folder.path(), out);
        if (!result.ok() || std::memcmp(out.data(), data.data() + row * 1024, 1024) != 0) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

}  // namespace rdusim::fill_reader_test
