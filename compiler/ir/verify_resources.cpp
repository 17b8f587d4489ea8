#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/print.h"
#include "compiler/ir/rates.h"
#include "compiler/ir/rules.h"

namespace rdusim {
namespace {

StageRole role_of(const StageKind& kind) {
  return std::holds_alternative<MatmulTiles>(kind) || std::holds_alternative<Generic>(kind) ? StageRole::compute
                                                                                            : StageRole::movement;
}

// The stages of each section at the sites of a class.
std::map<SectionId, std::vector<StageId>> stages_at(const Subject& s, const SiteClass& c) {
  std::map<SectionId, std::vector<StageId>> by_section;
  for (GroupId g : c.groups)
    for (StageId st : s.stages_of_group[g.value]) by_section[s.p.stage(st).section].push_back(st);
  for (auto& [section, stages] : by_section) std::sort(stages.begin(), stages.end());
  return by_section;
}

std::map<SectionId, std::vector<BufferId>> buffers_at(const Subject& s, const SiteClass& c) {
  std::map<SectionId, std::vector<BufferId>> by_section;
  for (GroupId g : c.groups)
    for (BufferId b : s.buffers_of_group[g.value])
      if (const auto section = s.section_of(b)) by_section[*section].push_back(b);
  for (auto& [section, buffers] : by_section) std::sort(buffers.begin(), buffers.end());
  return by_section;
}

std::string class_text(const SiteClass& c) {
  return c.sites == 1 ? to_string(c.example) : fmt::format("{} and {} alike", to_string(c.example), c.sites - 1);
}

// Most input and output ports of `st` that move pages in one phase.
std::pair<std::size_t, std::size_t> busiest_phase(const Stage& st) {
  std::vector<CyclicCursor<std::uint32_t>> cursors;
  bool constant = true;
  for (const Port& port : st.ports) {
    cursors.emplace_back(port.direction == Direction::input ? port.need : port.push);
    constant = constant && cursors.back().constant();
  }
  std::size_t inputs = 0, outputs = 0;
  const std::uint64_t phases = constant ? 1 : *hyperperiod(st);
  for (std::uint64_t phase = 0; phase < phases; ++phase) {
    std::size_t in = 0, on = 0;
    for (std::size_t i = 0; i < cursors.size(); ++i) {
      if (cursors[i].value() != 0) ++(st.ports[i].direction == Direction::input ? in : on);
      cursors[i].advance();
    }
    inputs = std::max(inputs, in);
    outputs = std::max(outputs, on);
  }
  return {inputs, outputs};
}

}  // namespace

// RDU3011: compute stages sit on compute engines, loads, stores and receives on movement engines.
void check_engine_kinds(const Subject& s, Diagnostics& out) {
  const auto text = [](StageRole r) { return r == StageRole::compute ? "compute" : "movement"; };
  for (const Stage& st : s.p.stages) {
    // A collective's part is still to be expanded into stages of both kinds.
    if (std::holds_alternative<CollectiveStage>(st.kind) ? st.role == st.engine.kind
                                                         : st.role == role_of(st.kind) && st.engine.kind == st.role)
      continue;
    out.error(Code::RDU3011, s.where, "{} is a {} of role {} on a {} engine", place_of(st), kind_name(st),
              text(st.role), text(st.engine.kind));
  }
}

// RDU3010: two movement stages of one site do not share an engine unless the schedule orders them.
void check_engine_sharing(const Subject& s, Diagnostics& out) {
  if (!s.complete) return;  // the order is still to come
  std::vector<std::vector<std::size_t>> orders_of(s.p.stages.size());
  for (std::size_t i = 0; i < s.p.schedule->engine_orders.size(); ++i)
    for (StageId st : s.p.schedule->engine_orders[i].stages) orders_of[st.value].push_back(i);
  std::set<std::pair<std::uint32_t, std::uint32_t>> reported;
  for (const SiteClass& c : s.classes)
    for (const auto& [section, stages] : stages_at(s, c)) {
      std::map<std::uint32_t, StageId> last;  // by engine: neighbours must be ordered, and order is transitive
      for (StageId id : stages) {
        const Stage& st = s.p.stage(id);
        if (st.engine.kind != StageRole::movement) continue;
        const auto [at, fresh] = last.try_emplace(st.engine.index, id);
        if (fresh) continue;
        const StageId other = std::exchange(at->second, id);
        const auto& a = orders_of[other.value];
        const auto& b = orders_of[id.value];
        const bool ordered = std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
        if (ordered || !reported.insert({other.value, id.value}).second) continue;
        out.error(Code::RDU3010, s.where, "'{}' and '{}' share movement engine {} of {}, and no order is given",
                  s.p.stage(other).name, st.name, st.engine.index, class_text(c))
            .note(place_of(s.p.stage(other)), "a {}", kind_name(s.p.stage(other)))
            .note(place_of(st), "a {}", kind_name(st));
      }
    }
}

// RDU3049: what sites use of others' memory units is there: every site has one, and a section's own sites use theirs.
void check_memory_units(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  if (std::none_of(p.buffers.begin(), p.buffers.end(), [](const Buffer& b) { return b.pmu != 0; })) return;
  std::map<std::pair<SectionId, Site>, std::uint64_t> units;  // of every site that a section uses
  for (const Stage& st : p.stages)
    for (const Site& at : p.sites_of(st).sites) units.try_emplace({st.section, at}, 1);
  for (const Buffer& b : p.buffers)
    if (const auto section = s.section_of(b.id))
      for (const Site& at : p.group(b.group).sites) {
        std::uint64_t& used = units[{*section, at}];
        used = std::max(used, std::uint64_t{b.pmu} + 1);
      }
  std::map<std::pair<SectionId, ChipId>, std::uint64_t> of_chips;
  for (const auto& [at, used] : units) of_chips[{at.first, at.second.chip}] += used;
  for (const auto& [at, used] : of_chips) {
    if (used <= s.target.sites()) continue;
    out.error(Code::RDU3049, s.where, "section '{}' spreads its buffers on chip {} over {} memory units, and it has {}",
              p.sections[at.first.value].name, at.second.value, used, s.target.sites());
    return;
  }
}

// RDU3016: the buffers and accumulators of a site fit its memory and banks. Sections run one after the other and share
// it.
void check_site_memory(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  std::vector<Bytes> accumulator(p.stages.size(), 0);
  if (p.memory) {
    const std::uint32_t banks = std::max(1u, s.target.pmu.banks);
    const Bytes bank_bytes = std::max<Bytes>(1, s.target.pmu.capacity_bytes / banks);
    for (std::size_t i = 0; i < p.memory->buffers.size(); ++i) {
      const BufferPlace& place = p.memory->buffers[i];
      if (place.bank == place.address / bank_bytes % banks) continue;
      out.error(Code::RDU3016, s.where, "{} is said to begin in bank {} of {}, and its address {} is in bank {}",
                place_of(p.buffers[i]), place.bank, s.target.pmu.banks, place.address,
                place.address / bank_bytes % banks);
      break;
    }
    for (const AccumulatorPlace& a : p.memory->accumulators) {
      Bytes& sum = accumulator[a.stage.value];
      if (__builtin_add_overflow(sum, a.bytes, &sum)) sum = ~Bytes{0};
    }
  }
  for (const SiteClass& c : s.classes) {
    const auto stages = stages_at(s, c);
    for (const auto& [section, buffers] : buffers_at(s, c)) {
      Bytes total = 0;
      bool fits = true;
      for (BufferId id : buffers) {
        const Buffer& b = p.buffer(id);
        if (!b.alias_of) fits = fits && !__builtin_add_overflow(total, b.depth_pages * b.page_bytes, &total);
      }
      if (const auto at = stages.find(section); at != stages.end())
        for (StageId st : at->second) fits = fits && !__builtin_add_overflow(total, accumulator[st.value], &total);
      if (fits && total <= s.target.pmu.capacity_bytes) continue;
      Diagnostic& d = out.error(Code::RDU3016, s.where, "section '{}' needs {} at {}, and a PMU has {}",
                                p.sections[section.value].name, format_bytes(total), class_text(c),
                                format_bytes(s.target.pmu.capacity_bytes));
      std::vector<BufferId> largest = buffers;
      std::stable_sort(largest.begin(), largest.end(), [&](BufferId a, BufferId b) {
        return p.buffer(a).depth_pages * p.buffer(a).page_bytes > p.buffer(b).depth_pages * p.buffer(b).page_bytes;
      });
      for (std::size_t i = 0; i < std::min<std::size_t>(largest.size(), 4); ++i) {
        const Buffer& b = p.buffer(largest[i]);
        d.note(place_of(b), "{} pages of {} bytes", b.depth_pages, b.page_bytes);
      }
    }
  }
}

// Lanes of its PCU that a stage asks for; 0: it takes what there is.
std::uint32_t lanes_used(const Stage& s) {
  if (const auto* m = std::get_if<MatmulTiles>(&s.kind)) return m->lanes;
  if (const auto* g = std::get_if<Generic>(&s.kind)) return g->lanes;
  return 0;
}

// RDU3022: a site uses no more ports, buffers, semaphores, movement engines and compute contexts than the target gives
// it.
void check_site_resources(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  const SiteResources& has = s.target.site;
  const auto wrong = [&](const std::string& who, const char* what, std::uint64_t uses, std::uint64_t gives) {
    out.error(Code::RDU3022, s.where, "{} uses {} {}, and a site of target '{}' has {}", who, uses, what, s.target.name,
              gives);
  };
  for (const Stage& st : p.stages) {
    const bool compute = st.engine.kind == StageRole::compute;
    const std::uint32_t engines = compute ? has.pcu_contexts : has.movement_engines;
    if (st.engine.index >= engines)
      out.error(Code::RDU3022, s.where, "{} is on {} {}, and a site of target '{}' has {}", place_of(st),
                compute ? "compute context" : "movement engine", st.engine.index, s.target.name, engines);
    const std::uint32_t lanes = lanes_used(st);
    if (lanes > s.target.pcu.lanes) wrong(place_of(st), "lanes", lanes, s.target.pcu.lanes);
    if (!std::holds_alternative<MatmulTiles>(st.kind) && !std::holds_alternative<Generic>(st.kind)) continue;
    const auto [inputs, outputs] = busiest_phase(st);
    if (inputs > has.vector_inputs) wrong(place_of(st), "vector inputs in one firing", inputs, has.vector_inputs);
    if (outputs > has.vector_outputs) wrong(place_of(st), "vector outputs in one firing", outputs, has.vector_outputs);
  }
  for (const SiteClass& c : s.classes) {
    for (const auto& [section, stages] : stages_at(s, c)) {
      const auto contexts = std::count_if(stages.begin(), stages.end(), [&](StageId st) {
        return p.stage(st).engine.kind == StageRole::compute &&
               !std::holds_alternative<CollectiveStage>(p.stage(st).kind);
      });
      if (static_cast<std::uint64_t>(contexts) > has.pcu_contexts)
        wrong(class_text(c), "compute contexts", static_cast<std::uint64_t>(contexts), has.pcu_contexts);
    }
    for (const auto& [section, buffers] : buffers_at(s, c)) {
      const auto count =
          std::count_if(buffers.begin(), buffers.end(), [&](BufferId b) { return !p.buffer(b).alias_of; });
      if (static_cast<std::uint64_t>(count) > has.buffers)
        wrong(class_text(c), "buffers", static_cast<std::uint64_t>(count), has.buffers);
    }
  }
  if (p.semaphores.empty()) return;
  std::vector<std::uint64_t> semaphores(p.placement->groups.size(), 0);
  for (const Semaphore& sem : p.semaphores) ++semaphores[sem.group.value];
  for (const SiteClass& c : s.classes) {
    std::uint64_t count = 0;
    for (GroupId g : c.groups) count += semaphores[g.value];
    if (count > has.semaphores) wrong(class_text(c), "semaphores", count, has.semaphores);
  }
}

// RDU3038: the addresses of a site's buffers and accumulators do not overlap, unless the buffers are aliases. (One that
// ends beyond the site's memory does not fit it: RDU3016.)
void check_addresses(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  if (!p.memory) return;
  struct Span {
    Bytes begin, end;
    std::string name;
    BufferId root;
    bool buffer;
  };
  std::vector<std::vector<const AccumulatorPlace*>> accumulators(p.stages.size());
  for (const AccumulatorPlace& a : p.memory->accumulators) accumulators[a.stage.value].push_back(&a);
  std::set<std::pair<std::string, std::string>> reported;
  for (const SiteClass& c : s.classes) {
    std::map<SectionId, std::vector<Span>> spans;
    for (const auto& [section, buffers] : buffers_at(s, c))
      for (BufferId id : buffers) {
        const Buffer& b = p.buffer(id);
        const Bytes at = p.memory->buffers[id.value].address;
        spans[section].push_back({at, at + b.depth_pages * b.page_bytes, place_of(b), b.alias_of.value_or(id), true});
      }
    for (const auto& [section, stages] : stages_at(s, c))
      for (StageId st : stages)
        for (const AccumulatorPlace* a : accumulators[st.value])
          spans[section].push_back(
              {a->address, a->address + a->bytes, "the accumulator of " + place_of(p.stage(st)), {}, false});
    for (auto& [section, list] : spans) {
      std::stable_sort(list.begin(), list.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
      const Span* before = nullptr;
      for (const Span& span : list) {
        if (span.end == span.begin) continue;
        if (span.end < span.begin || span.end > s.target.pmu.capacity_bytes) {
          if (reported.insert({span.name, ""}).second)
            out.error(Code::RDU3016, s.where, "{} at {} ends beyond the {} bytes of a PMU", span.name, span.begin,
                      s.target.pmu.capacity_bytes);
          continue;
        }
        if (before != nullptr && span.begin < before->end &&
            !(span.buffer && before->buffer && span.root == before->root) &&
            reported.insert({before->name, span.name}).second)
          out.error(Code::RDU3038, s.where, "{} and {} overlap at {}", before->name, span.name, class_text(c))
              .note(before->name, "[{}, {})", before->begin, before->end)
              .note(span.name, "[{}, {})", span.begin, span.end);
        if (before == nullptr || span.end > before->end) before = &span;
      }
    }
  }
}

// RDU3033: the target provides what the program requires: says it requires, and uses.
void check_requirements(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  for (Handshake h : p.required.handshakes) {
    const bool provided =
        h == Handshake::valid_ready       ? s.target.local == LocalHandshake::valid_ready
        : h == Handshake::circular_buffer ? s.target.local == LocalHandshake::circular_buffer
        : h == Handshake::fifo
            ? false
            : std::any_of(s.target.crossing.begin(), s.target.crossing.end(), [&](CrossingHandshake c) {
                return (h == Handshake::token && c == CrossingHandshake::token) ||
                       (h == Handshake::semaphore && c == CrossingHandshake::semaphore) ||
                       (h == Handshake::barrier && c == CrossingHandshake::barrier);
              });
    if (!provided)
      out.error(Code::RDU3033, s.where, "the program requires {}, and target '{}' does not provide it", name_of(h),
                s.target.name);
  }
  std::set<DType> dtypes(p.required.operand_dtypes.begin(), p.required.operand_dtypes.end());
  std::set<MemorySpace> spaces(p.required.spaces.begin(), p.required.spaces.end());
  for (const Stage& st : p.stages)
    if (const auto* m = std::get_if<MatmulTiles>(&st.kind)) dtypes.insert(m->operand);
  for (const Tensor& t : p.tensors) spaces.insert(t.space);
  for (DType t : dtypes)
    if (s.target.pcu.macs(t) == 0)
      out.error(Code::RDU3033, s.where, "the program multiplies {}, and target '{}' cannot", name_of(t), s.target.name);
  if (spaces.contains(MemorySpace::ddr) && !s.target.ddr)
    out.error(Code::RDU3033, s.where, "the program keeps tensors in DDR, and target '{}' has none", s.target.name);
}

// RDU3033 again: once it is complete, a program says all that it uses.
void check_nothing_is_unsaid(const Subject& s, Diagnostics& out) {
  if (!s.complete) return;
  const Requires& says = s.p.required;
  std::set<Handshake> handshakes;
  std::set<DType> dtypes;
  std::set<MemorySpace> spaces;
  for (const Edge& e : s.p.edges) handshakes.insert(e.handshake);
  for (const Stage& st : s.p.stages)
    if (const auto* m = std::get_if<MatmulTiles>(&st.kind)) dtypes.insert(m->operand);
  for (const Tensor& t : s.p.tensors) spaces.insert(t.space);
  for (const Handshake h : says.handshakes) handshakes.erase(h);
  for (const DType t : says.operand_dtypes) dtypes.erase(t);
  for (const MemorySpace m : says.spaces) spaces.erase(m);
  const auto unsaid = [&](std::string_view what) {
    out.error(Code::RDU3033, s.where, "the program uses {}, and does not say that it requires it", what);
  };
  for (const Handshake h : handshakes) unsaid(name_of(h));
  for (const DType t : dtypes) unsaid(name_of(t));
  for (const MemorySpace m : spaces) unsaid(name_of(m));
}

}  // namespace rdusim
