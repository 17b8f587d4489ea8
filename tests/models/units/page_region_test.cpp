#include "models/units/page_region.h"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace rdusim::page_region_test {
namespace {

Tensor matrix(std::int64_t rows, std::int64_t cols, std::uint32_t tile) {
  Tensor t;
  t.shape = t.whole = {rows, cols};
  t.offset = {0, 0};
  t.tiles = {ceil_div(static_cast<std::uint64_t>(rows), tile), ceil_div(static_cast<std::uint64_t>(cols), tile)};
  t.dtype = DType::int32;
  return t;
}
AccessPattern pages(const Tensor& t, std::uint64_t m, std::uint64_t n) {
  AccessPattern a;
  a.loops = {ceil_div(t.tiles[0], m), ceil_div(t.tiles[1], n)};
  a.stride = {{m, 0}, {0, n}};
  a.first = {{0, 0}};
  a.page_tiles = {m, n};
  a.extent_tiles = t.tiles;
  return a;
}

ElementBytes bytes_of_all(const std::vector<std::int32_t>& elements) {
  const auto bytes = std::as_bytes(std::span(elements));
  return ElementBytes(std::vector<std::byte>(bytes.begin(), bytes.end()));
}

TEST_CASE("pages follow the loops, the last one the fastest, clipped at the ragged edge") {
  const Tensor t = matrix(10, 13, 4);
  const AccessPattern a = pages(t, 2, 3);
  const PageRegion first = page_region(a, t, 4, 0, 0);
  CHECK(first.comes);
  CHECK(first.rows == 8);
  CHECK(first.cols == 12);
  const PageRegion second = page_region(a, t, 4, 0, 1);
  CHECK(second.col == 12);
  CHECK(second.cols == 1);
  const PageRegion third = page_region(a, t, 4, 0, 2);
  CHECK(third.row == 8);
  CHECK(third.rows == 2);
}

TEST_CASE("the pages of a walk tile the tensor") {
  const Tensor t = matrix(10, 13, 4);
  const AccessPattern a = pages(t, 2, 3);
  std::vector<int> seen(130);
  for (std::uint64_t p = 0; p < 4; ++p) {
    const PageRegion r = page_region(a, t, 4, 0, p);
    for (std::uint64_t i = 0; i < r.rows; ++i)
      for (std::uint64_t j = 0; j < r.cols; ++j) ++seen[(r.row + i) * 13 + r.col + j];
  }
  for (const int n : seen) CHECK(n == 1);
}

TEST_CASE("coordinates in the whole count from the slice's offset") {
  Tensor t = matrix(8, 8, 4);
  t.whole = {32, 64};
  t.offset = {8, 16};
  const PageRegion r = page_region(pages(t, 1, 1), t, 4, 0, 3);
  CHECK(r.row == 4);
  CHECK(r.whole_row == 12);
  CHECK(r.whole_col == 20);
}

TEST_CASE("a page that does not lie in the tensor's own grid never comes") {
  // Lowered for 16 tiles along the contraction, then cut to 8 without lowering again.
  Tensor t = matrix(4, 32, 4);
  AccessPattern a = pages(matrix(4, 64, 4), 1, 1);
  CHECK(page_region(a, t, 4, 0, 7).comes);
  CHECK(!page_region(a, t, 4, 0, 8).comes);
  CHECK(!page_region(a, t, 4, 5, 0).comes);  // no such instance
  a.stride.pop_back();
  CHECK(!page_region(a, t, 4, 0, 0).comes);
}

TEST_CASE("leading extents of a higher rank count in elements and are rows of a matrix") {
  Tensor t;
  t.shape = t.whole = {3, 5, 6};
  t.offset = {0, 0, 0};
  t.tiles = {3, 2, 2};
  t.dtype = DType::int32;
  AccessPattern a;
  a.loops = {3};
  a.stride = {{1, 0, 0}};
  a.first = {{0, 1, 0}};
  a.page_tiles = {1, 1, 2};
  a.extent_tiles = t.tiles;
  const PageRegion r = page_region(a, t, 4, 0, 2);
  CHECK(r.comes);
  CHECK(r.row == 2 * 5 + 4);
  CHECK(r.rows == 1);
  CHECK(r.cols == 6);
  std::vector<std::int32_t> image(90), page(6);
  for (int i = 0; i < 90; ++i) image[i] = i;
  copy_from_image(r, t, bytes_of_all(image), reinterpret_cast<std::byte*>(page.data()));
  for (int i = 0; i < 6; ++i) CHECK(page[i] == 14 * 6 + i);
}

TEST_CASE("a chunk is written to its own elements and to no others, across rows") {
  const Tensor t = matrix(10, 13, 4);
  const PageRegion r = page_region(pages(t, 2, 3), t, 4, 0, 0);  // 8 x 12
  std::vector<std::int32_t> image(130), part(20, 7);
  ElementBytes bytes = bytes_of_all(image);
  copy_to_image(r, t, bytes, reinterpret_cast<const std::byte*>(part.data()), 10, 20);
  std::memcpy(image.data(), bytes.data(), bytes.size());
  for (std::uint64_t i = 0; i < 10; ++i)
    for (std::uint64_t j = 0; j < 13; ++j) {
      const bool in = i < 8 && j < 12 && i * 12 + j >= 10 && i * 12 + j < 30;
      CHECK(image[i * 13 + j] == (in ? 7 : 0));
    }
}

TEST_CASE("a slice is read where it lies in a view of its whole operand, and a view is not written to") {
  Tensor t = matrix(8, 8, 4);
  t.whole = {13, 11};
  t.offset = {4, 3};
  const PageRegion r = page_region(pages(t, 1, 1), t, 4, 0, 0);
  std::vector<std::int32_t> whole(13 * 11), page(16), of_slice(16), slice(64);
  for (int i = 0; i < 13 * 11; ++i) whole[i] = i;
  for (int i = 0; i < 64; ++i) slice[i] = whole[(4 + i / 8) * 11 + 3 + i % 8];
  const auto holder = std::make_shared<std::vector<std::int32_t>>(whole);
  ElementBytes view(std::as_bytes(std::span(*holder)), holder);
  copy_from_image(r, t, view, reinterpret_cast<std::byte*>(page.data()));
  copy_from_image(r, t, bytes_of_all(slice), reinterpret_cast<std::byte*>(of_slice.data()));
  CHECK(page == of_slice);
  CHECK(page[0] == 4 * 11 + 3);
  page.assign(16, -1);
  copy_to_image(r, t, view, reinterpret_cast<const std::byte*>(page.data()), 0, 16);
  CHECK(*holder == whole);
}

TEST_CASE("an image that is too small is neither read nor written beyond its end") {
  const Tensor t = matrix(8, 8, 4);
  const PageRegion r = page_region(pages(t, 2, 2), t, 4, 0, 0);
  ElementBytes image(5 * 8 * 4);
  std::vector<std::byte> page(256, std::byte{9});
  copy_to_image(r, t, image, page.data(), 0, 64);
  copy_from_image(r, t, image, page.data());
  CHECK(page[5 * 32 - 1] == std::byte{9});
  CHECK(page[5 * 32] == std::byte{0});
}

}  // namespace
}  // namespace rdusim::page_region_test
