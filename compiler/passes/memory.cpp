// Addresses are given out upwards. A buffer has the same address on every site of its group, so it starts above
// whatever any of those sites holds. Sections run one after the other and share the PMUs; tensors stay.
#include <algorithm>
#include <functional>
#include <map>

#include "compiler/ir/memory_use.h"
#include "compiler/ir/print.h"
#include "compiler/ir/trips.h"
#include "compiler/passes/extents.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/passes.h"

namespace rdusim {
namespace {

// A PMU's vector port is 128 bytes wide on the RDUs; a buffer that starts on such a boundary straddles no bank
// needlessly.
constexpr Bytes alignment = 128;

Bytes align(Bytes b, Bytes to) {
  return ceil_div(b, to) * to;
}

// How full each site of every chip is.
class SiteTops {
 public:
  explicit SiteTops(Mesh mesh) : mesh_(mesh) {}
  void clear() { chips_.clear(); }
  Bytes highest(const Group& g) {
    Bytes top = 0;
    for (const Site& s : g.sites) top = std::max(top, at(s));
    return top;
  }
  void raise(const Group& g, Bytes top) {
    for (const Site& s : g.sites) at(s) = mutated("memory.buffers_overlap", top, 0);
  }

 private:
  Bytes& at(const Site& s) {
    auto& chip = chips_[s.chip];
    if (chip.empty()) chip.assign(std::size_t{mesh_.width} * mesh_.height, 0);
    return chip[std::size_t{s.at.y} * mesh_.width + s.at.x];
  }
  Mesh mesh_;
  std::map<ChipId, std::vector<Bytes>> chips_;
};

Bytes bytes_of_tensor(const Tensor& t) {
  return static_cast<Bytes>(element_count(t.shape).value_or(0)) * bytes_of(t.dtype);
}

// A tensor begins at a channel's first bytes. Those of single launches have all the rows that they lie in, from the start of
// one: so all launches find the same channels and rows, whichever tensors they work on.
void place_tensors(SpatialProgram& p, const Target& target, Diagnostics& out) {
  std::map<std::pair<ChipId, MemorySpace>, Bytes> used;
  p.memory->tensors.resize(p.tensors.size());
  std::vector<bool> own(p.tensors.size(), false);
  for (const Section& section : p.sections) {
    if (!section.relaunched) continue;
    const std::vector<bool> single = tensors_of_single_trips(p, section.id);
    std::transform(own.begin(), own.end(), single.begin(), own.begin(), std::logical_or<bool>());
  }
  for (const Tensor& t : p.tensors) {
    Bytes& top = used[{t.chip, t.space}];
    const Bytes unit =
        own[t.id.value] ? memory_of(t, target).stripe_bytes() : std::max<Bytes>(1, target.hbm.interleave_bytes);
    top = align(top, unit);
    p.memory->tensors[t.id.value] = {mutated("memory.tensors_overlap", top, 0), bytes_of_tensor(t)};
    top = align(top + bytes_of_tensor(t), unit);
  }
  for (const auto& [key, bytes] : used) {
    const auto& [chip, space] = key;
    const Bytes capacity = space == MemorySpace::hbm                 ? target.hbm.capacity_bytes
                           : space == MemorySpace::ddr && target.ddr ? target.ddr->capacity_bytes
                                                                     : 0;
    if (bytes <= capacity) continue;
    auto& d = out.error(Code::RDU3017, p.header.name, "chip {} holds {} in {}, which has {}", chip.value,
                        format_bytes(bytes), name_of(space), format_bytes(capacity));
    note_memory_use(d, p, chip, space);
    d.suggest("use more chips: each holds a slice of every sharded weight");
  }
}

}  // namespace

Result<SpatialProgram> memory(SpatialProgram program, const Target& target) {
  if (program.memory) return program;
  Diagnostics out;
  program.memory = MemoryPlan{};
  MemoryPlan& plan = *program.memory;
  place_tensors(program, target, out);

  const Bytes bank_bytes = std::max<Bytes>(1, target.pmu.capacity_bytes / std::max(1u, target.pmu.banks));
  plan.buffers.resize(program.buffers.size());
  std::vector<bool> placed(program.buffers.size(), false);
  SiteTops tops(target.mesh);
  for (const Section& section : program.sections) {
    tops.clear();
    Bytes fullest = 0;
    const Stage* fullest_at = nullptr;
    const auto take = [&](const Stage& s, GroupId group, Bytes bytes) {
      const Group& g = program.group(group);
      const Bytes address = align(tops.highest(g), alignment);
      tops.raise(g, address + bytes);
      if (address + bytes > fullest) {
        fullest = address + bytes;
        fullest_at = &s;
      }
      return address;
    };
    for (const Stage& s : program.stages) {
      if (s.section != section.id) continue;
      for (const Port& port : s.ports) {
        const Buffer& b = program.buffer(port.buffer);
        if (placed[b.id.value]) continue;
        placed[b.id.value] = true;
        BufferPlace& at = plan.buffers[b.id.value];
        at = b.alias_of && placed[b.alias_of->value] ? plan.buffers[b.alias_of->value]
                                                     : BufferPlace{take(s, b.group, b.depth_pages * b.page_bytes), 0};
        at.bank = static_cast<std::uint32_t>((at.address / bank_bytes + mutated("memory.wrong_bank", 0, 1)) %
                                             std::max(1u, target.pmu.banks));
      }
      if (const auto* m = std::get_if<MatmulTiles>(&s.kind)) {
        const Port& result = s.ports.back();
        const Bytes bytes = program.buffer(result.buffer).page_bytes / bytes_of(m->result) * bytes_of(m->accumulator);
        plan.accumulators.push_back({s.id, m->block_m * m->block_n, take(s, s.group, bytes),
                                     bytes / mutated("memory.accumulator_too_small", 1, 2)});
      }
    }
    if (fullest > target.pmu.capacity_bytes) {
      const Site& site = program.sites_of(*fullest_at).sites.front();
      out.error(Code::RDU3016, to_string(site), "section '{}' needs {} of a PMU of {}, at stage '{}'", section.name,
                format_bytes(fullest), format_bytes(target.pmu.capacity_bytes), fullest_at->name)
          .suggest(
              "pin smaller blocks, pages or depths in [schedule.OP], or choose a collective with fewer landing buffers "
              "(ring)");
    }
  }
  if (out.has_errors()) return out;
  return program;
}

}  // namespace rdusim
