// What a section stores and loads again: a load's firing waits for the cells that its page touches, and nothing else of the
// tensor.
//
//   law      a page that is stored (Agcu) is told to all who load it by the control network: a load knows of it after the way
//            from the site, of those that store the tensor, that is farthest from it; of several members, after the
//            longest. A firing waits until it knows of every page that lies in a cell of its own, and one of a load whose
//            rows are named by indices until it knows of all.
//   never    waits for what no store of the section writes: rows of a state that were there before are there.
#include <algorithm>
#include <tuple>
#include <utility>

#include "models/units/chip.h"
#include "models/units/page_region.h"

namespace rdusim {

Chip::CellRange Chip::cells_of(const MemoryWait& wait, const PageRegion& page) const {
  const auto cut = [](std::uint64_t begin, std::uint64_t size, std::uint64_t cell, std::uint64_t first,
                      std::uint64_t count) {
    const std::uint64_t from = std::max(begin / cell, first),
                        to = std::min(ceil_div(begin + size, cell), first + count);
    return std::pair{from - first, to > from ? to - from : 0};
  };
  CellRange r;
  std::tie(r.row, r.rows) = cut(page.row, page.rows, wait.cell_rows, wait.first_row, wait.rows);
  std::tie(r.col, r.cols) = cut(page.col, page.cols, wait.cell_cols, wait.first_col, wait.cols);
  return r;
}

namespace {

std::vector<MemoryWait::Cell>& cells_in(MemoryWait& wait, MemoryWait::Trip& trip) {
  if (trip.cells.empty()) {
    trip.cells.resize(wait.writes.size());
    for (std::size_t i = 0; i < wait.writes.size(); ++i) trip.cells[i].to_come = wait.writes[i];
  }
  return trip.cells;
}

}  // namespace

// A store's firing has been acknowledged.
void Chip::apply_stored(const StageState& s, std::uint64_t firing) {
  const StageSpec& sp = spec(s);
  const std::uint64_t phases = std::max<std::uint64_t>(sp.store->chunks.size(), 1);
  const PageRegion page =
      page_region(sp.store->pattern, *sp.tensor, laws_.native_tile, s.instance, firing % sp.firings / phases);
  for (std::uint32_t w = c_.stores[s.detail].memory_wait; w != 0; w = c_.memory_waits[w - 1].next) {
    MemoryWait& wait = c_.memory_waits[w - 1];
    MemoryWait::Trip& trip = wait.trips[firing / sp.firings];
    wait.last = now_;
    if (--trip.to_come == 0) trip.at = now_;
    const CellRange range = cells_of(wait, page);
    std::vector<MemoryWait::Cell>& cells = cells_in(wait, trip);
    for (std::uint64_t row = range.row; row < range.row + range.rows; ++row)
      for (std::uint64_t col = range.col; col < range.col + range.cols; ++col) {
        MemoryWait::Cell& cell = cells[row * wait.cols + col];
        if (--cell.to_come != 0) continue;
        cell.at = now_;
        for (std::uint32_t next = std::exchange(cell.first_waiting, 0); next != 0;) {
          HeldLoad& load = c_.held_loads[next - 1];
          load.listed = false;
          const std::uint32_t told = std::exchange(next, load.next_waiting) - 1;
          if (c_.stages[load.stage].held) may_read(told);
        }
      }
  }
}

void Chip::apply_written(std::uint32_t held_load) {
  StageState& s = c_.stages[c_.held_loads[held_load].stage];
  if (!s.held) return;
  hold(s);
  if (!s.held) touch_stage(c_.held_loads[held_load].stage);
}

// Whether a load's next firing has to wait for what is stored.
void Chip::hold(StageState& s) {
  s.held = false;
  if (s.next == s.total) return;
  for (std::uint32_t h = c_.loads[s.detail].first_held; h != 0; h = c_.held_loads[h - 1].next)
    s.held = !may_read(h - 1) || s.held;
}

// Whether it knows that all has been written that its next firing reads. Where it does not it will be asked again.
bool Chip::may_read(std::uint32_t held_load) {
  HeldLoad& load = c_.held_loads[held_load];
  const StageState& s = c_.stages[load.stage];
  const StageSpec& sp = spec(s);
  if (s.next / sp.firings < load.lag) return true;
  MemoryWait& wait = c_.memory_waits[load.wait];
  MemoryWait::Trip& trip = wait.trips[s.next / sp.firings - load.lag];
  if (trip.to_come == 0 && trip.at + load.signal <= now_) {
    if (trip.at + wait.signal <= now_) std::vector<MemoryWait::Cell>().swap(trip.cells);
    return true;
  }
  CellRange range{0, 0, wait.rows, wait.cols};
  if (!load.whole)
    range =
        cells_of(wait, page_region(sp.load->pattern, *sp.tensor, laws_.native_tile, s.instance, s.next % sp.firings));
  if (range.rows == 0 || range.cols == 0) return true;
  std::vector<MemoryWait::Cell>& cells = cells_in(wait, trip);
  Cycle last = 0;
  for (std::uint64_t row = range.row; row < range.row + range.rows; ++row)
    for (std::uint64_t col = range.col; col < range.col + range.cols; ++col) {
      MemoryWait::Cell& cell = cells[row * wait.cols + col];
      last = std::max(last, cell.at);
      if (cell.to_come == 0) continue;
      if (!load.listed) {
        load.listed = true;
        load.next_waiting = std::exchange(cell.first_waiting, held_load + 1);
      }
      return false;
    }
  if (last == 0 || last + load.signal <= now_) return true;
  put(last + load.signal, written, held_load);
  return false;
}

std::pair<const MemoryWait*, std::uint64_t> Chip::waits_for(const StageState& s) const {
  std::pair<const MemoryWait*, std::uint64_t> found{nullptr, 0};
  for (std::uint32_t h = c_.loads[s.detail].first_held; h != 0; h = c_.held_loads[h - 1].next) {
    const HeldLoad& load = c_.held_loads[h - 1];
    const std::uint64_t trip = s.next / spec(s).firings;
    if (trip < load.lag) continue;
    const MemoryWait& wait = c_.memory_waits[load.wait];
    if (found.first == nullptr || wait.trips[trip - load.lag].to_come != 0) found = {&wait, trip - load.lag};
  }
  return found;
}

}  // namespace rdusim
