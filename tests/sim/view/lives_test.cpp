#include "sim/view/lives.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <random>

namespace rdusim::test::lives_test {
namespace {

// One stage on two sites, one link, two channels of HBM.
Roster two_sites() {
  Roster r;
  r.chips = 2;
  r.width = 2;
  r.height = 1;
  r.groups = {{Site{ChipId{0}, {0, 0}}, Site{ChipId{0}, {1, 0}}}};
  RosterStage s;
  s.name = "work";
  s.kind = "matmul";
  r.stages = {s};
  r.links = {RosterLink{0, 1, true}};
  r.sections = {"only"};
  r.memory_channels[static_cast<std::size_t>(MemorySpace::hbm)] = 2;
  REQUIRE(r.index());
  return r;
}

FiringStarted firing(Cycle at, std::uint32_t instance, Cycles busy, Cycles stall = 0,
                     StallCause cause = StallCause::input_starvation) {
  return {at, {StageId{0}, instance}, 0, busy, stall, cause};
}

// The symbols of a row, as numbers.
std::vector<std::uint32_t> unfold(const std::string& row) {
  std::vector<std::uint32_t> cells;
  for (std::size_t i = 0; i < row.size();) {
    const std::size_t symbol = life_symbols.find(row[i++]);
    REQUIRE(symbol != std::string_view::npos);
    std::size_t digits = i;
    while (digits < row.size() && std::isdigit(static_cast<unsigned char>(row[digits])) != 0) ++digits;
    const std::size_t times = digits == i ? 1 : std::stoul(row.substr(i, digits - i));
    cells.insert(cells.end(), times, static_cast<std::uint32_t>(symbol));
    i = digits;
  }
  return cells;
}

TEST_CASE("a bin says how much of it a stage was busy, in sevenths, and what it waited for in the rest") {
  const Roster r = two_sites();
  Lives lives(r, 1280);  // 128 bins of 10 cycles
  CHECK(lives.width() == 10);
  CHECK(lives.bins() == 128);
  // [0, 5) waits for memory, [5, 15) is busy; [15, 17) waits for room, [17, 18) is busy.
  lives.on(firing(5, 0, 10, 5, StallCause::memory));
  lives.on(firing(17, 0, 1, 2, StallCause::back_pressure));
  lives.finish();
  const Lives::Life& life = lives.lives()[lives.life_of(0)];
  const auto cells = unfold(life.row);
  REQUIRE(cells.size() == 128);
  CHECK(cells[0] == 4 * 8 + 1 + static_cast<std::uint32_t>(StallCause::memory));         // 5 of 10: 3.5 sevenths
  CHECK(cells[1] == 5 * 8 + 1 + static_cast<std::uint32_t>(StallCause::back_pressure));  // 6 of 10: 4.2 sevenths
  CHECK(cells[2] == 0);
  CHECK(life.totals.firings == 2);
  CHECK(life.totals.busy == 11);
  CHECK(life.totals.stall[static_cast<std::size_t>(StallCause::memory)] == 5);
  CHECK(life.row.ends_with("A126"));
}

TEST_CASE("instances that lived alike share a life, and one that never fired has its own") {
  const Roster r = two_sites();
  Lives alike(r, 100), apart(r, 100);
  for (const std::uint32_t i : {0U, 1U}) alike.on(firing(3, i, 4));
  apart.on(firing(3, 1, 4));
  alike.finish();
  apart.finish();
  CHECK(alike.lives().size() == 1);
  CHECK(apart.lives().size() == 2);
  CHECK(apart.lives()[apart.life_of(0)].row == "A100");
}

TEST_CASE("a link's overlapping spans count once, and what lies after the end does not") {
  const Roster r = two_sites();
  Lives lives(r, 20);
  lives.on(LinkUsed{0, LinkId{0}, 2, 6, 64, false});
  lives.on(LinkUsed{1, LinkId{0}, 5, 8, 64, false});
  lives.on(LinkUsed{2, LinkId{0}, 18, 30, 64, false});
  lives.finish();
  const Lives::Load load = lives.link(LinkId{0});
  CHECK(load.bytes == 192);
  CHECK(load.busy == 8);
  const auto cells = unfold(load.row);
  for (std::size_t c = 0; c < 20; ++c) CHECK((cells[c] == 7) == ((c >= 2 && c < 8) || c >= 18));
}

TEST_CASE("a memory is as busy as its channels on average") {
  const Roster r = two_sites();
  Lives lives(r, 10);
  const auto hbm = static_cast<std::uint8_t>(MemorySpace::hbm);
  lives.on(MemoryUsed{0, ChipId{1}, hbm, 0, 0, 10, 100, false});
  lives.finish();
  CHECK(lives.memory(ChipId{1}, hbm).busy == 5);
  CHECK(lives.memory(ChipId{1}, hbm).bytes == 100);
  CHECK(unfold(lives.memory(ChipId{1}, hbm).row)[0] == 4);  // half: 3.5 sevenths
  CHECK(lives.memory(ChipId{0}, hbm).busy == 0);
}

TEST_CASE("any firings give the rows that a count cycle by cycle gives") {
  std::mt19937 random(7);
  const Roster r = two_sites();
  for (int round = 0; round < 200; ++round) {
    const Cycle cycles = 1 + random() % 700;
    Lives lives(r, cycles);
    std::vector<std::uint32_t> fate(cycles, 8);  // by cycle: 0 busy, 1 + cause, 8 neither
    Cycle now = 0;
    while (now < cycles) {
      const Cycles gap = random() % 40, stall = random() % 60, busy = random() % 50;
      const auto cause = random() % stall_causes;
      const Cycle at = now + gap + stall;
      lives.on(firing(at, 1, busy, stall, static_cast<StallCause>(cause)));
      for (Cycle c = now + gap; c < std::min(cycles, at); ++c) fate[c] = static_cast<std::uint32_t>(1 + cause);
      for (Cycle c = at; c < std::min(cycles, at + busy); ++c) fate[c] = 0;
      now = at + busy;
    }
    lives.finish();
    const auto cells = unfold(lives.lives()[lives.life_of(1)].row);
    REQUIRE(cells.size() == lives.bins());
    for (std::uint32_t b = 0; b < lives.bins(); ++b) {
      const Cycle from = b * lives.width(), to = std::min(cycles, (b + 1) * lives.width());
      std::uint32_t spent[9] = {};
      for (Cycle c = from; c < to; ++c) ++spent[fate[c]];
      const std::uint32_t* most = std::max_element(spent + 1, spent + 8);
      const auto level = static_cast<std::uint32_t>(std::ceil(7.0 * spent[0] / static_cast<double>(to - from)));
      CHECK(cells[b] == level * 8 + (*most == 0 ? 0 : static_cast<std::uint32_t>(most - spent)));
    }
  }
}

}  // namespace
}  // namespace rdusim::test::lives_test
