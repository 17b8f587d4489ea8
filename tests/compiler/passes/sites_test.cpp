#include "compiler/passes/sites.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "compiler/target/target.h"

namespace rdusim::sites_test {
namespace {

// AGCUs at the ends of every other row.
Target chip(std::uint32_t width, std::uint32_t height) {
  Target t;
  t.mesh = {width, height};
  for (const std::uint32_t x : {0u, width - 1})
    for (std::uint32_t y = 0; y < height; y += 2) t.agcu.at.push_back({x, y});
  return t;
}

// Of the instances, by row (or column) of the block: which rows and columns of the mesh they stand in.
struct Stand {
  std::set<std::uint32_t> x, y;
};
std::vector<Stand> stands(const Group& g, std::size_t rows, std::size_t columns, bool of_rows) {
  std::vector<Stand> all(of_rows ? rows : columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      Stand& s = all[of_rows ? i : j];
      s.x.insert(g.sites[i * columns + j].at.x);
      s.y.insert(g.sites[i * columns + j].at.y);
    }
  return all;
}

void check_each_once(const Group& g, const Target& t) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (const Site& s : g.sites) {
    CHECK(s.at.x < t.mesh.width);
    CHECK(s.at.y < t.mesh.height);
    CHECK(seen.insert({s.at.x, s.at.y}).second);
  }
  CHECK(g.agcus.size() == g.sites.size());
}

TEST_CASE("a block that fits the mesh is a rectangle of it") {
  const Target t = chip(10, 8);
  SiteAllocator sites(t, ChipId(3));
  const Group g = sites.block(8, 5);
  check_each_once(g, t);
  CHECK(g.sites.front().chip == ChipId(3));
  for (const Stand& s : stands(g, 8, 5, true)) CHECK(s.y.size() == 1);
  for (const Stand& s : stands(g, 8, 5, false)) CHECK(s.x.size() == 1);
  // The next one stands beside it.
  const Group beside = sites.block(8, 5);
  for (const Site& s : beside.sites) CHECK(s.at.x >= 5);
  CHECK(sites.free() == 0);
}

TEST_CASE("a block with more rows than the mesh stands in rectangles side by side") {
  const Target t = chip(10, 8);
  SiteAllocator sites(t, ChipId(0));
  const Group g = sites.block(16, 5);
  check_each_once(g, t);
  for (const Stand& s : stands(g, 16, 5, true)) CHECK(s.y.size() == 1);
  for (const Stand& s : stands(g, 16, 5, false)) CHECK(s.x.size() == 2);
}

TEST_CASE("rows that are left over are folded into the columns that are left over") {
  const Target t = chip(10, 8);
  SiteAllocator sites(t, ChipId(0));
  const Group g = sites.block(10, 7);  // two rows of seven beside, in columns 7, 8 and 9: three mesh rows each
  check_each_once(g, t);
  const std::vector<Stand> rows = stands(g, 10, 7, true);
  for (std::size_t i = 0; i < 8; ++i) CHECK(rows[i].y == std::set<std::uint32_t>{static_cast<std::uint32_t>(i)});
  CHECK(rows[8].x == std::set<std::uint32_t>{7, 8, 9});
  CHECK(rows[8].y == std::set<std::uint32_t>{0, 1, 2});
  CHECK(rows[9].y == std::set<std::uint32_t>{3, 4, 5});
  for (const Stand& s : stands(g, 10, 7, false)) CHECK(s.x.size() == 2);
}

TEST_CASE("rows of more columns than the mesh is wide stand in bands, column over column") {
  const Target t = chip(10, 8);
  SiteAllocator sites(t, ChipId(0));
  const Group g = sites.block(3, 17);  // two mesh rows of nine and of eight
  check_each_once(g, t);
  const std::vector<Stand> rows = stands(g, 3, 17, true);
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(rows[i].y == std::set<std::uint32_t>{2 * i, 2 * i + 1});
  for (const Stand& s : stands(g, 3, 17, false)) CHECK(s.x.size() == 1);
  // What is left over is given out.
  CHECK(sites.free() == 80 - 51);
  check_each_once(sites.block(1, 29), t);
}

TEST_CASE("a block without room of such a form takes the free sites as they come") {
  const Target t = chip(6, 4);
  SiteAllocator sites(t, ChipId(0));
  check_each_once(sites.near_agcus(3), t);
  const Group g = sites.block(3, 7);
  check_each_once(g, t);
  CHECK(sites.free() == 0);
  CHECK(std::is_sorted(g.sites.begin(), g.sites.end(), [](const Site& a, const Site& b) {
    return std::pair(a.at.y, a.at.x) < std::pair(b.at.y, b.at.x);
  }));
}

TEST_CASE("who reads for a row has an AGCU of that row or the next, each AGCU one, and the others have near ones") {
  const Target t = chip(10, 8);
  SiteAllocator sites(t, ChipId(0));
  const Group g = sites.block(8, 10);
  std::map<std::uint32_t, int> of_rows, of_all;
  for (std::size_t i = 0; i < 8; ++i) {
    const Position agcu = t.agcu.at[g.agcus[i * 10].value];
    const std::uint32_t y = g.sites[i * 10].at.y;
    CHECK((agcu.y > y ? agcu.y - y : y - agcu.y) <= 1);
    ++of_rows[g.agcus[i * 10].value];
  }
  for (const auto& [agcu, rows] : of_rows) CHECK(rows == 1);
  const auto links = [&](std::size_t i, std::uint32_t agcu) {
    const Position a = t.agcu.at[agcu], at = g.sites[i].at;
    return (a.x > at.x ? a.x - at.x : at.x - a.x) + (a.y > at.y ? a.y - at.y : at.y - a.y);
  };
  std::uint64_t near = 0, in_turn = 0;
  for (std::size_t i = 0; i < g.sites.size(); ++i) {
    ++of_all[g.agcus[i].value];
    if (i < 10 || i % 10 == 0) continue;
    near += links(i, g.agcus[i].value);
    in_turn += links(i, static_cast<std::uint32_t>(i % t.agcu.at.size()));
  }
  CHECK(2 * near < in_turn);
  for (const auto& [agcu, served] : of_all) CHECK(served == 10);  // 80 instances, 8 AGCUs
}

}  // namespace
}  // namespace rdusim::sites_test
