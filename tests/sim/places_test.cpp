#include <doctest/doctest.h>

#include "sim/instances.h"
#include "sim/places.h"
#include "tests/sim/small_program.h"

namespace rdusim::places_test {
namespace {

using namespace test;

TEST_CASE("a pattern's pages follow its loops, are clipped, and lie where the slice lies in the whole") {
  Tensor t;
  t.shape = {70, 100};
  t.whole = {140, 300};
  t.offset = {70, 200};
  AccessPattern a;
  a.loops = {2, 3};
  a.stride = {{2, 0}, {0, 2}};
  a.first = {{0, 0}, {2, 2}};
  a.page_tiles = {2, 2};
  a.extent_tiles = {3, 4};
  const PagePlaces places(a, t, 32);
  CHECK(places.at(0, 0) == Place{70, 200, 64, 64});
  CHECK(places.at(0, 1) == Place{70, 264, 64, 36});
  CHECK(places.at(0, 3) == Place{134, 200, 6, 64});
  CHECK(places.at(1, 0) == Place{134, 264, 6, 36});
  // The next trip starts over.
  CHECK(places.at(0, 6) == places.at(0, 0));
  CHECK(places.at(0, 9) == places.at(0, 3));
  CHECK_FALSE(places.at(2, 0));
}

TEST_CASE("loops of one trip and a grain change what a page is, not how pages are counted") {
  Tensor t;
  t.shape = {4, 40, 64};
  t.whole = t.shape;
  AccessPattern a;
  a.loops = {4, 1, 5};
  a.stride = {{1, 0, 0}, {0, 9, 0}, {0, 1, 0}};
  a.first = {{0, 0, 0}};
  a.page_tiles = {1, 1, 2};
  a.extent_tiles = {4, 5, 2};
  a.grain = {1, 8, 32};
  const PagePlaces places(a, t, 32);
  CHECK(places.at(0, 0) == Place{0, 0, 8, 64});
  CHECK(places.at(0, 4) == Place{32, 0, 8, 64});
  CHECK(places.at(0, 5) == Place{40, 0, 8, 64});
  CHECK(places.at(0, 19) == Place{152, 0, 8, 64});
  // As two heads of 32 columns, blocks lie in the stack that the heads make.
  AccessPattern heads = a;
  heads.heads = 2;
  heads.page_tiles = {1, 1, 1};
  heads.first = {{0, 0, 1}};
  CHECK(PagePlaces(heads, t, 32).on_chip(0, 5) == Place{3 * 40, 0, 8, 32});
  a.page_tiles = {1, 1};
  CHECK_FALSE(PagePlaces(a, t, 32).at(0, 0));
}

TEST_CASE("a tensor of rank 3 is a matrix of all its leading rows") {
  Tensor t;
  t.shape = {2, 3, 5};
  t.whole = {4, 3, 5};
  t.offset = {2, 0, 0};
  const MatrixView v = matrix_view(t);
  CHECK(v.rows == 6);
  CHECK(v.cols == 5);
  CHECK(v.row == 6);
  CHECK(v.whole_rows == 12);
}

TEST_CASE("a work item says which block and contraction range a matmul's firing has") {
  const SpatialProgram p = small_program();
  const MatmulPlaces places(p);
  const auto at = places.at({StageId{matmul1}, 0}, 0);
  REQUIRE(at);
  CHECK(at->out == Place{0, 0, 32, 32});
  CHECK(at->k_begin == 32);
  CHECK(at->k_end == 64);
  CHECK_FALSE(places.at({StageId{fold}, 0}, 0));
}

TEST_CASE("the contraction of an output is known from the operators, or else from the work") {
  SpatialProgram p = small_program();
  CHECK(contractions(p)[2].k == 64);
  CHECK_FALSE(contractions(p)[0].op);
  p.operators.reset();
  CHECK(contractions(p)[2].k == 64);
}

// Three senders and two receivers of one edge, each with its instances.
SpatialProgram crossing(PageMap map) {
  SpatialProgram p = small_program();
  std::vector<Site> three;
  for (std::uint32_t i = 0; i < 3; ++i) three.push_back({ChipId{1u}, {i, 0}});
  p.placement->groups[1].sites = three;
  std::vector<Site> two;
  for (std::uint32_t i = 0; i < 2; ++i) two.push_back({ChipId{0u}, {i, 1}});
  p.placement->groups[0].sites = two;
  p.edges[crossing_edge].map = std::move(map);
  return p;
}

TEST_CASE("channels, receivers and buffers are numbered densely and named back") {
  const SpatialProgram p = crossing({PageMapKind::multicast, {{1, 0}, {0}, {1}}});
  const Instances in(p);
  CHECK(in.channels() == 4);
  CHECK(in.receivers().size() == 2);
  for (std::uint32_t c = 0; c < in.channels(); ++c) CHECK(in.of(in.channel_at(c)) == c);
  for (std::uint32_t s = 0; s < in.stages(); ++s) CHECK(in.of(in.stage_at(s)) == s);
  for (std::uint32_t b = 0; b < in.buffers(); ++b) CHECK(in.of(in.buffer_at(b)) == b);
  CHECK(in.channels_of(EdgeId{crossing_edge}, 0) == 2);
  CHECK(in.channels_of(EdgeId{crossing_edge}, 1) == 1);
  // Receiver 0 has senders 0 and 1, rising.
  const Receiver& r = in.receivers()[*in.receiver_into(in.of(BufferAt{BufferId{landing}, 0}))];
  REQUIRE(r.channels.size() == 2);
  CHECK(in.channel_at(r.channels[0]).from == 0);
  CHECK(in.channel_at(r.channels[1]).from == 1);
  CHECK(in.ends(BufferId{partial1}).consumers.size() == 1);
  CHECK(in.ends(BufferId{landing}).landing == EdgeId{crossing_edge});
  CHECK(in.describe(in.channel_at(0)).find("'matmul_c1' at chip1.site(0,0)") != std::string::npos);
}

}  // namespace
}  // namespace rdusim::places_test
