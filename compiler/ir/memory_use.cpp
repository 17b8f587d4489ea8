#include "compiler/ir/memory_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "compiler/ir/print.h"

namespace rdusim {

namespace {

constexpr Bytes too_many_bytes = std::numeric_limits<Bytes>::max();

Bytes bytes_in(const Tensor& t) {
  Bytes bytes = 0;
  const auto elements = element_count(t.shape);
  if (!elements || __builtin_mul_overflow(static_cast<Bytes>(*elements), bytes_of(t.dtype), &bytes))
    return too_many_bytes;
  return bytes;
}

// "3,758,096,384 B, 3.76 GB (3.50 GiB)"
std::string exactly(Bytes bytes) {
  return bytes < 1024 ? format_bytes(bytes) : fmt::format("{} B, {}", with_commas(bytes), format_bytes(bytes));
}

// "model.layers.12.mlp" -> "model.layers.*.mlp"
std::string without_numbers(const std::string& name) {
  std::string folded;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    const bool number = end > at && std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at),
                                                name.begin() + static_cast<std::ptrdiff_t>(end),
                                                [](char c) { return c >= '0' && c <= '9'; });
    folded += number ? "*" : name.substr(at, end - at);
    if (end < name.size()) folded += '.';
    at = end + 1;
  }
  return folded;
}

std::string_view plural_of(TensorRole role) {
  switch (role) {
    case TensorRole::input:
      return "inputs";
    case TensorRole::weight:
      return "weights";
    case TensorRole::output:
      return "outputs";
    case TensorRole::intermediate:
      return "intermediate results";
    case TensorRole::state:
      return "state";
  }
  return "";
}

Bytes capacity_of(const Target& t, MemorySpace space) {
  if (space == MemorySpace::hbm) return t.hbm.capacity_bytes;
  if (space == MemorySpace::ddr) return t.ddr ? t.ddr->capacity_bytes : 0;
  return t.pmu.capacity_bytes * t.sites();
}

// The most that a section leaves on one PMU, and which section; nothing without a memory plan.
std::string fullest_pmu(const SpatialProgram& p, const Target& target, ChipId chip) {
  // What is shown may break any rule but that its references resolve.
  if (!p.memory || !p.placement || p.memory->buffers.size() != p.buffers.size()) return "";
  const auto is_here = [&](const Stage& s) {
    const auto& sites = p.sites_of(s).sites;
    return !sites.empty() && sites.front().chip == chip;
  };
  Bytes most = 0;
  const Section* in = nullptr;
  for (const Stage& s : p.stages) {
    if (!is_here(s)) continue;
    for (const Port& port : s.ports) {
      const Buffer& b = p.buffer(port.buffer);
      const Bytes end = p.memory->buffers[b.id.value].address + b.depth_pages * b.page_bytes;
      if (end > most) most = end, in = &p.sections[s.section.value];
    }
  }
  for (const AccumulatorPlace& a : p.memory->accumulators)
    if (is_here(p.stage(a.stage)) && a.address + a.bytes > most)
      most = a.address + a.bytes, in = &p.sections[p.stage(a.stage).section.value];
  if (in == nullptr) return "";
  return fmt::format("    a PMU at most        {} of {}, in section '{}'\n", exactly(most),
                     format_bytes(target.pmu.capacity_bytes), in->name);
}

std::string table(const SpatialProgram& p, const Target& target, const std::vector<MemoryUse>& rows, ChipId chip) {
  std::string text;
  for (std::size_t first = 0; first < rows.size();) {
    const MemorySpace space = rows[first].space;
    Bytes total = 0;
    std::size_t end = first;
    for (; end < rows.size() && rows[end].space == space; ++end) total += rows[end].bytes;
    const Bytes capacity = capacity_of(target, space);
    text += fmt::format("  {}: {} of {}", name_of(space), exactly(total), format_bytes(capacity));
    if (capacity > 0)
      text += fmt::format(", {:.1f} %", 100.0 * static_cast<double>(total) / static_cast<double>(capacity));
    text += '\n';
    while (first < end) {
      const TensorRole role = rows[first].role;
      Bytes bytes = 0;
      std::uint64_t tensors = 0;
      std::string detail;
      for (; first < end && rows[first].role == role; ++first) {
        const MemoryUse& row = rows[first];
        bytes += row.bytes;
        tensors += row.tensors;
        if (role != TensorRole::weight && role != TensorRole::state) continue;
        detail += fmt::format("      {:<52} {}{}{}\n", row.name, exactly(row.bytes),
                              row.tensors > 1 ? fmt::format(" in {} tensors", row.tensors) : "",
                              row.replicas > 1 ? fmt::format(", on {} chips alike", row.replicas) : "");
      }
      text += fmt::format("    {:<20} {} in {} tensor{}\n", plural_of(role), exactly(bytes), tensors,
                          tensors == 1 ? "" : "s");
      text += detail;
    }
  }
  return text + fullest_pmu(p, target, chip);
}

}  // namespace

const MemoryParameters& memory_of(const Tensor& t, const Target& target) {
  return t.space == MemorySpace::ddr && target.ddr ? *target.ddr : target.hbm;
}

std::vector<MemoryUse> memory_use(const SpatialProgram& p, ChipId chip) {
  std::map<std::tuple<MemorySpace, TensorRole, std::string, std::uint32_t>, MemoryUse> rows;
  for (const Tensor& t : p.tensors) {
    if (t.chip != chip) continue;
    const bool named = p.operators && t.operand.value < p.operators->operands.size();
    const std::string name = without_numbers(named ? p.operators->operand(t.operand).name : t.name);
    MemoryUse& row =
        rows.try_emplace({t.space, t.role, name, t.replicas}, MemoryUse{t.space, t.role, name, 0, t.replicas, 0})
            .first->second;
    ++row.tensors;
    if (__builtin_add_overflow(row.bytes, bytes_in(t), &row.bytes)) row.bytes = too_many_bytes;
  }
  std::vector<MemoryUse> list;
  for (auto& [key, row] : rows) list.push_back(std::move(row));
  std::stable_sort(list.begin(), list.end(), [](const MemoryUse& a, const MemoryUse& b) {
    const auto order = [](TensorRole r) { return r == TensorRole::weight ? 0 : r == TensorRole::state ? 1 : 2; };
    return std::tuple(a.space, order(a.role), a.role, b.bytes) < std::tuple(b.space, order(b.role), b.role, a.bytes);
  });
  return list;
}

void note_memory_use(Diagnostic& d, const SpatialProgram& p, ChipId chip, MemorySpace space, std::size_t most) {
  std::vector<MemoryUse> rows = memory_use(p, chip);
  std::erase_if(rows, [&](const MemoryUse& r) { return r.space != space; });
  std::stable_sort(rows.begin(), rows.end(), [](const MemoryUse& a, const MemoryUse& b) { return a.bytes > b.bytes; });
  for (std::size_t i = 0; i < std::min(most, rows.size()); ++i)
    d.note(rows[i].name, "{}, {}{}", exactly(rows[i].bytes), name_of(rows[i].role),
           rows[i].tensors > 1 ? fmt::format(", {} tensors", rows[i].tensors) : "");
  if (rows.size() > most) d.note("others", "{} kinds of tensors that take less", rows.size() - most);
}

std::string print_memory_use(const SpatialProgram& p, const Target& target) {
  std::vector<std::pair<std::vector<MemoryUse>, std::vector<ChipId>>> kinds;
  // Of the chips that hold something, however many the header speaks of.
  std::set<ChipId> holders;
  for (const Tensor& t : p.tensors) holders.insert(t.chip);
  for (const ChipId c : holders) {
    std::vector<MemoryUse> rows = memory_use(p, c);
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == rows; });
    if (known == kinds.end())
      kinds.push_back({std::move(rows), {c}});
    else
      known->second.push_back(c);
  }
  std::string text;
  for (const auto& [rows, chips] : kinds) {
    std::vector<std::uint32_t> numbers;
    for (const ChipId c : chips) numbers.push_back(c.value);
    text += fmt::format("memory of {} {}\n", chips.size() == 1 ? "chip" : "each of chips", ids_text(numbers));
    text += table(p, target, rows, chips.front());
  }
  return text;
}

}  // namespace rdusim
