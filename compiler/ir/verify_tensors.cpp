#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/ir/access_pattern.h"
#include "compiler/ir/memory_use.h"
#include "compiler/ir/print.h"
#include "compiler/ir/rates.h"
#include "compiler/ir/rules.h"
#include "compiler/ir/trips.h"
#include "compiler/workload/fill_rules.h"

namespace rdusim {
namespace {

Bytes bytes_of_tensor(const Tensor& t) {
  return static_cast<Bytes>(element_count(t.shape).value_or(0)) * bytes_of(t.dtype);
}

std::string slice_text(const Tensor& t) {
  std::string text;
  for (std::size_t d = 0; d < t.shape.size(); ++d)
    text += fmt::format("[{},{})", t.offset[d], t.offset[d] + t.shape[d]);
  return text;
}

// ---- writes of one tensor
// ----------------------------------------------------------------------------------------------

// A part of a page, as numerators over a common denominator: chunks of different counts meet where their fractions do.
struct Part {
  std::uint64_t begin_num, end_num, den;
};
bool less(std::uint64_t a_num, std::uint64_t a_den, std::uint64_t b_num, std::uint64_t b_den) {
  return a_num * b_den < b_num * a_den;  // 32-bit numbers
}

enum class Cover : std::uint8_t { exact, gap, twice };

// Whether parts tile [0, 1).
Cover cover_of(std::vector<Part> parts) {
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    if (less(a.begin_num, a.den, b.begin_num, b.den)) return true;
    if (less(b.begin_num, b.den, a.begin_num, a.den)) return false;
    return less(a.end_num, a.den, b.end_num, b.den);
  });
  std::uint64_t num = 0, den = 1;
  Cover cover = Cover::exact;
  for (const Part& part : parts) {
    if (less(part.begin_num, part.den, num, den)) return Cover::twice;
    if (less(num, den, part.begin_num, part.den)) cover = Cover::gap;
    num = part.end_num;
    den = part.den;
  }
  return less(num, den, 1, 1) ? Cover::gap : cover;
}

struct WriteFault {
  bool twice = false;
  std::vector<std::uint64_t> tile;  // the first
  std::uint64_t tiles = 0;          // how many
};

constexpr std::uint64_t most_tiles = std::uint64_t{1} << 24;

// What a map of the writes to `t` counts along an axis, in elements: a tile, or what divides the steps of all stores.
std::vector<std::uint64_t> cells_of(const Tensor& t, const std::vector<const Stage*>& stores,
                                    std::uint32_t native_tile) {
  std::vector<std::uint64_t> cells;
  for (std::size_t d = 0; d < t.shape.size(); ++d) {
    std::uint64_t cell = 0;
    for (const Stage* st : stores)
      cell = std::gcd(cell, step_of(std::get<Store>(st->kind).pattern, t.shape.size(), d, native_tile));
    cells.push_back(cell);
  }
  return cells;
}

// Which tiles (or cells) of a tensor are written not at all or more than once by `stores`: a map of them, filled page
// by page.
class WriteMap {
 public:
  WriteMap(const Tensor& t, std::vector<std::uint64_t> cells, std::uint32_t native_tile)
      : t_(t), cells_(std::move(cells)), native_tile_(native_tile) {
    std::uint64_t n = 1;
    for (std::size_t d = 0; d < cells_.size(); ++d) {
      tiles_.push_back(ceil_div(static_cast<std::uint64_t>(t.shape[d]), cells_[d]));
      n *= tiles_.back();
    }
    times_.assign(n, 0);
  }

  void add(const Stage& stage, const Store& store, std::size_t instances) {
    std::vector<Part> parts;
    for (const Chunk& c : store.chunks) parts.push_back({c.index, std::uint64_t{c.index} + 1, c.of});
    const bool whole = parts.empty() || cover_of(parts) == Cover::exact;
    const std::uint64_t pages = stage.firings / firings_per_page(stage);
    for (std::size_t i = 0; i < instances; ++i)
      for (std::uint64_t page = 0; page < pages; ++page) {
        TileBox box = page_at(store.pattern, i, page);
        if (!movable(box, store.pattern, t_)) continue;
        if (!store.pattern.grain.empty()) to_cells(box, store.pattern);
        if (whole) {
          mark(box);
        } else {
          auto& list = partial_[box];
          list.insert(list.end(), parts.begin(), parts.end());
        }
      }
  }

  // The faults, not written first.
  std::vector<WriteFault> faults() {
    for (const auto& [box, parts] : partial_) {
      const Cover cover = cover_of(parts);
      if (cover == Cover::gap) continue;
      mark(box);
      if (cover == Cover::twice) mark(box);
    }
    std::vector<WriteFault> found;
    for (const bool twice : {false, true}) {
      WriteFault f;
      f.twice = twice;
      for (std::uint64_t i = 0; i < times_.size(); ++i) {
        if (twice ? times_[i] < 2 : times_[i] != 0) continue;
        if (f.tiles++ == 0) f.tile = position(i);
      }
      if (f.tiles != 0) found.push_back(std::move(f));
    }
    return found;
  }

 private:
  void to_cells(TileBox& box, const AccessPattern& pattern) const {
    for (std::size_t d = 0; d < cells_.size(); ++d) {
      const AxisRange range = elements_of(pattern, t_, box, d, native_tile_);
      const auto begin = static_cast<std::uint64_t>(range.begin - t_.offset[d]);
      const auto end = static_cast<std::uint64_t>(range.end - t_.offset[d]);
      box.begin[d] = begin / cells_[d];
      box.size[d] = ceil_div(end, cells_[d]) - box.begin[d];
    }
  }
  void mark(const TileBox& box) {
    std::vector<std::uint64_t> at = box.begin;
    while (true) {
      std::uint64_t i = 0;
      for (std::size_t d = 0; d < at.size(); ++d) i = i * tiles_[d] + at[d];
      if (times_[i] < 2) ++times_[i];
      std::size_t d = at.size();
      while (d > 0 && ++at[d - 1] == box.begin[d - 1] + box.size[d - 1]) {
        at[d - 1] = box.begin[d - 1];
        --d;
      }
      if (d == 0) return;
    }
  }
  std::vector<std::uint64_t> position(std::uint64_t i) const {
    std::vector<std::uint64_t> at(tiles_.size());
    for (std::size_t d = at.size(); d-- > 0;) {
      at[d] = i % tiles_[d];
      i /= tiles_[d];
    }
    return at;
  }

  const Tensor& t_;
  std::vector<std::uint64_t> cells_;  // elements, by axis
  std::uint32_t native_tile_;
  std::vector<std::uint64_t> tiles_;
  std::vector<std::uint8_t> times_;  // by tile: 0, 1, or more
  std::map<TileBox, std::vector<Part>> partial_;
};

}  // namespace

// RDU3040: a tensor has the element type, role and fill of its operand; where no operator graph says what those are,
// and for the value range, all slices of an operand agree. (Their whole extents are RDU3003 and RDU3012.)
void check_operands(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  std::map<std::uint32_t, const Tensor*> first_of;  // by operand
  for (const Tensor& t : p.tensors) {
    const Tensor& first = *first_of.try_emplace(t.operand.value, &t).first->second;
    const auto differs = [&](const char* what, const std::string& from) {
      out.error(Code::RDU3040, s.where, "{}: its {} is not that of {}", place_of(t), what, from);
    };
    const auto compare = [&](const auto& whole, const std::string& from) {
      if (t.role != whole.role) differs("role", from);
      if (t.fill != whole.fill) differs("fill", from);
    };
    if (p.operators) {
      const Operand& whole = p.operators->operand(t.operand);
      compare(whole, fmt::format("operand '{}'", whole.name));
    } else {
      compare(first, place_of(first));
      if (t.dtype != first.dtype) differs("element type", place_of(first));
    }
    if (t.range != first.range) differs("value range", place_of(first));
    const bool computed = t.role == TensorRole::output || t.role == TensorRole::intermediate;
    if (const auto known = computed ? std::nullopt : value_range(t.fill);
        known && t.range && (known->first < t.range->first || t.range->second < known->second))
      out.error(Code::RDU3040, s.where, "{}: its values are said to lie in [{}, {}], and its fill has [{}, {}]",
                place_of(t), t.range->first, t.range->second, known->first, known->second);
    if (t.layout != first.layout) differs("layout", place_of(first));
  }
}

// RDU3012, RDU3013: the slices of a sharded tensor cover the parent exactly, no gap and no overlap; slices that are the
// same are declared replicas.
void check_slices(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  std::map<std::uint32_t, std::vector<const Tensor*>> slices_of;  // by operand
  for (const Tensor& t : p.tensors) slices_of[t.operand.value].push_back(&t);
  if (p.operators && !p.stages.empty())
    for (const Operand& o : p.operators->operands)
      // What one stage hands to the next never lies in memory.
      if (o.role != TensorRole::intermediate && !slices_of.contains(o.id.value))
        out.error(Code::RDU3012, s.where, "operand '{}' has no tensor", o.name);

  for (auto& [operand, slices] : slices_of) {
    const Tensor& first = *slices.front();
    bool agree = true;
    for (const Tensor* t : slices)
      if (t->whole != first.whole) {
        out.error(Code::RDU3012, s.where, "{} and {} are slices of one operand and differ in its extents",
                  place_of(first), place_of(*t));
        agree = false;
        break;
      }
    if (!agree) continue;
    // Equal slices together, then each once.
    std::stable_sort(slices.begin(), slices.end(), [](const Tensor* a, const Tensor* b) {
      return std::tie(a->offset, a->shape) < std::tie(b->offset, b->shape);
    });
    std::vector<const Tensor*> distinct;
    for (std::size_t i = 0; i < slices.size();) {
      std::size_t end = i;
      while (end < slices.size() && slices[end]->offset == slices[i]->offset && slices[end]->shape == slices[i]->shape)
        ++end;
      for (std::size_t j = i; j < end; ++j)
        if (slices[j]->replicas != end - i) {
          const bool fewer = slices[j]->replicas > end - i;
          out.error(fewer ? Code::RDU3012 : Code::RDU3013, s.where,
                    "{} tensors hold {} of '{}', and '{}' declares {} replicas", end - i, slice_text(*slices[j]),
                    first.name, slices[j]->name, slices[j]->replicas);
          break;
        }
      distinct.push_back(slices[i]);
      i = end;
    }
    // Swept along the axis that tells the slices apart best, only neighbours need be compared.
    std::size_t axis = 0;
    std::size_t most = 0;
    for (std::size_t d = 0; d < first.whole.size(); ++d) {
      std::vector<std::int64_t> offsets;
      for (const Tensor* t : distinct) offsets.push_back(t->offset[d]);
      std::sort(offsets.begin(), offsets.end());
      const auto different = static_cast<std::size_t>(std::unique(offsets.begin(), offsets.end()) - offsets.begin());
      if (different > most) {
        most = different;
        axis = d;
      }
    }
    std::stable_sort(distinct.begin(), distinct.end(),
                     [&](const Tensor* a, const Tensor* b) { return a->offset[axis] < b->offset[axis]; });
    bool overlap = false;
    for (std::size_t i = 0; i < distinct.size() && !overlap; ++i)
      for (std::size_t j = i + 1; j < distinct.size() && !overlap; ++j) {
        const Tensor& a = *distinct[i];
        const Tensor& b = *distinct[j];
        if (b.offset[axis] >= a.offset[axis] + a.shape[axis]) break;
        bool meets = true;
        for (std::size_t d = 0; d < a.shape.size(); ++d)
          meets = meets && a.offset[d] < b.offset[d] + b.shape[d] && b.offset[d] < a.offset[d] + a.shape[d];
        if (!meets) continue;
        overlap = true;
        out.error(Code::RDU3013, s.where, "two slices of one operand overlap: '{}' and '{}'", a.name, b.name)
            .note(place_of(a), "holds {} on chip {}", slice_text(a), a.chip.value)
            .note(place_of(b), "holds {} on chip {}", slice_text(b), b.chip.value);
      }
    if (overlap) continue;
    std::int64_t held = 0;
    for (const Tensor* t : distinct) held += *element_count(t->shape);
    const std::int64_t whole = *element_count(first.whole);
    if (held != whole) {
      Diagnostic& d =
          out.error(Code::RDU3012, s.where, "the slices of '{}' hold {} of its {} elements", first.name, held, whole);
      for (std::size_t i = 0; i < std::min<std::size_t>(distinct.size(), 8); ++i)
        d.note(place_of(*distinct[i]), "holds {} on chip {}", slice_text(*distinct[i]), distinct[i]->chip.value);
    }
  }
}

// RDU3014, RDU3015: every element of every output (and of every tensor between operators) is written once for each
// declared replica: each replica is a tensor of its own, and its stores cover it exactly.
void check_outputs(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  if (p.stages.empty()) return;
  std::vector<std::vector<const Stage*>> stores_of(p.tensors.size());
  for (const Stage& st : p.stages) {
    if (const auto* store = std::get_if<Store>(&st.kind))
      for_each_tensor(*store, [&](TensorId t) { stores_of[t.value].push_back(&st); });
  }
  // Replicas and alike slices are stored alike: what was found for the last tensor holds for one that differs from it
  // in nothing that matters here.
  const Tensor* last = nullptr;
  std::vector<WriteFault> faults;
  for (const Tensor& t : p.tensors) {
    const auto& stores = stores_of[t.id.value];
    const bool must = t.role == TensorRole::output || t.role == TensorRole::intermediate;
    if (stores.empty()) {
      if (t.role == TensorRole::output) out.error(Code::RDU3015, s.where, "{}: no stage stores it", place_of(t));
      continue;
    }
    std::uint64_t tiles = 1;
    bool countable = true;
    const std::vector<std::uint64_t> cells = cells_of(t, stores, p.header.native_tile);
    for (std::size_t d = 0; d < cells.size(); ++d)
      countable = countable &&
                  !__builtin_mul_overflow(tiles, ceil_div(static_cast<std::uint64_t>(t.shape[d]), cells[d]), &tiles);
    std::uint64_t pages = 0;
    for (const Stage* st : stores) {
      std::uint64_t n = 0;
      countable = countable &&
                  !__builtin_mul_overflow(st->firings / firings_per_page(*st), p.sites_of(*st).sites.size(), &n) &&
                  !__builtin_add_overflow(pages, n, &pages);
    }
    if (!countable || tiles > most_tiles || pages > most_tiles) {
      out.error(Code::RDU3015, s.where, "{}: {} tiles in {} pages are more than this version checks ({})", place_of(t),
                tiles, pages, most_tiles);
      continue;
    }
    const bool alike = [&] {
      if (last == nullptr || last->tiles != t.tiles || last->shape != t.shape) return false;
      const auto& before = stores_of[last->id.value];
      if (before.size() != stores.size()) return false;
      for (std::size_t i = 0; i < stores.size(); ++i) {
        const auto& a = std::get<Store>(before[i]->kind);
        const auto& b = std::get<Store>(stores[i]->kind);
        if (before[i]->firings != stores[i]->firings || a.chunks != b.chunks || a.pattern != b.pattern) return false;
      }
      return true;
    }();
    if (!alike) {
      WriteMap map(t, cells, p.header.native_tile);
      for (const Stage* st : stores) map.add(*st, std::get<Store>(st->kind), p.sites_of(*st).sites.size());
      faults = map.faults();
      last = &t;
    }
    for (const WriteFault& f : faults) {
      if (!f.twice && !must) continue;
      std::string at;
      for (std::uint64_t x : f.tile) at += fmt::format("{}{}", at.empty() ? "" : ",", x);
      Diagnostic& d = out.error(f.twice ? Code::RDU3014 : Code::RDU3015, s.where,
                                "{}: {} of its {} tiles are {}, the first at ({})", place_of(t), f.tiles, tiles,
                                f.twice ? "written more than once" : "not written, or not whole", at);
      for (std::size_t i = 0; i < std::min<std::size_t>(stores.size(), 4); ++i)
        d.note(place_of(*stores[i]), "stores into it");
    }
  }
}

// RDU3017: weights and tensors fit the memory space that they live in. RDU3041: each has a place of just its bytes.
// RDU3042: no two of them overlap there.
void check_chip_memory(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  const auto capacity = [&](MemorySpace space) -> Bytes {
    switch (space) {
      case MemorySpace::sram:
        return s.target.pmu.capacity_bytes * s.target.sites();
      case MemorySpace::hbm:
        return s.target.hbm.capacity_bytes;
      case MemorySpace::ddr:
        return s.target.ddr ? s.target.ddr->capacity_bytes : 0;
    }
    return 0;
  };
  std::map<std::pair<ChipId, MemorySpace>, std::vector<const Tensor*>> held;
  for (const Tensor& t : p.tensors) held[{t.chip, t.space}].push_back(&t);
  for (auto& [key, tensors] : held) {
    const auto [chip, space] = key;
    Bytes total = 0;
    bool fits = true;
    for (const Tensor* t : tensors) fits = fits && !__builtin_add_overflow(total, bytes_of_tensor(*t), &total);
    if (!fits || total > capacity(space)) {
      Diagnostic& d = out.error(Code::RDU3017, s.where, "chip {} holds {} in {}, which has {}", chip.value,
                                format_bytes(total), name_of(space), format_bytes(capacity(space)));
      note_memory_use(d, p, chip, space);
      continue;
    }
    if (!p.memory) continue;
    std::stable_sort(tensors.begin(), tensors.end(), [&](const Tensor* a, const Tensor* b) {
      return p.memory->tensors[a->id.value].address < p.memory->tensors[b->id.value].address;
    });
    const Tensor* before = nullptr;
    Bytes end = 0;
    for (const Tensor* t : tensors) {
      const TensorPlace& place = p.memory->tensors[t->id.value];
      Bytes reach = 0;
      if (__builtin_add_overflow(place.address, place.bytes, &reach) || reach > capacity(space)) {
        out.error(Code::RDU3017, s.where, "{}: {} at address {} of {}, which has {}", place_of(*t),
                  format_bytes(place.bytes), place.address, name_of(space), format_bytes(capacity(space)));
        break;
      }
      if (place.bytes != bytes_of_tensor(*t))
        out.error(Code::RDU3041, s.where, "{}: it has {} bytes, and its place {}", place_of(*t), bytes_of_tensor(*t),
                  place.bytes);
      if (before != nullptr && place.address < end) {
        out.error(Code::RDU3042, s.where, "'{}' and '{}' overlap in {} of chip {}", before->name, t->name,
                  name_of(space), chip.value)
            .note(place_of(*before), "ends at {}", end)
            .note(place_of(*t), "starts at {}", place.address);
        break;
      }
      before = t;
      end = reach;
    }
  }
}

}  // namespace rdusim
