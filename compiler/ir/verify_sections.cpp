#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/memory_order.h"
#include "compiler/ir/rules.h"
#include "compiler/ir/trips.h"

namespace rdusim {

// RDU3037: every stage is in exactly one section, with all that it hands pages to; a section runs at least once; and
// sections come in an order in which tensors are written before they are read.
void check_sections(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  for (const Section& section : p.sections)
    if (section.trips == 0) out.error(Code::RDU3037, s.where, "section '{}' makes 0 trips", section.name);
  const auto together = [&](const Stage& a, const Stage& b, const std::string& by) {
    if (a.section == b.section) return;
    out.error(Code::RDU3037, s.where, "{} joins two sections", by)
        .note(place_of(a), "in section '{}'", p.sections[a.section.value].name)
        .note(place_of(b), "in section '{}'", p.sections[b.section.value].name);
  };
  for (const Edge& e : p.edges)
    for (StageId to : e.to) together(p.stage(e.from), p.stage(to), place_of(e));
  std::vector<const Stage*> last_store(p.tensors.size(), nullptr);
  for (const Stage& st : p.stages)
    if (const auto* store = std::get_if<Store>(&st.kind))
      for_each_tensor(*store, [&](TensorId t) {
        const Stage*& last = last_store[t.value];
        if (last == nullptr || last->section < st.section) last = &st;
      });
  for (const Stage& st : p.stages) {
    const auto* load = std::get_if<Load>(&st.kind);
    if (load == nullptr) continue;
    for_each_tensor(*load, [&](TensorId id) {
      const Tensor& t = p.tensor(id);
      const Stage* store = last_store[id.value];
      if (t.role == TensorRole::state) return;
      if (store == nullptr) {
        if (t.role == TensorRole::intermediate || t.role == TensorRole::output)
          out.error(Code::RDU3037, s.where, "{} reads '{}', which no stage writes", place_of(st), t.name);
      } else if (store->section > st.section) {
        out.error(Code::RDU3037, s.where, "{} reads '{}' in section '{}', and it is written in '{}'", place_of(st),
                  t.name, p.sections[st.section.value].name, p.sections[store->section.value].name)
            .note(place_of(*store), "writes it");
      }
    });
  }
  for (const MemoryDisorder& d : memory_disorders(p)) {
    const Section& section = p.sections[p.stage(d.load).section.value];
    out.error(Code::RDU3037, s.where, "section '{}' makes {} trips, and reads '{}' in trip {} and writes it in trip {}",
              section.name, section.trips, p.tensor(d.tensor).name, d.read, d.written)
        .note(place_of(p.stage(d.store)), "writes it")
        .note(place_of(p.stage(d.load)),
              "reads it; each trip may read what it or the one so many before it has written");
  }
}

namespace {

// The operators of one section's trips, where it says that they follow each other.
class TripOperators {
 public:
  TripOperators(const Subject& s, const Section& section, Diagnostics& out)
      : s_(s), p_(s.p), graph_(*s.p.operators), section_(section), out_(out) {
    for (const Operand& o : graph_.operands) storage_.push_back(o.id);
    for (const Operator& op : graph_.operators)
      if (op.kind == OperatorKind::append) storage_[op.out.value] = storage_[op.in[0].value];
  }

  void check(const std::vector<const Stage*>& stages) {
    std::set<OperatorId> first;
    for (const Stage* st : stages)
      if (st->origin) first.insert(*st->origin);
    for (std::uint64_t t = 1; t < section_.trips; ++t) {
      takes_.clear();
      for (const OperatorId op : first)
        if (!alike(op, t)) return;
      for (const Stage* st : stages) {
        if (const auto* load = std::get_if<Load>(&st->kind); load && !agrees(*st, *load, t)) return;
        if (const auto* store = std::get_if<Store>(&st->kind); store && !agrees(*st, *store, t)) return;
      }
    }
  }

 private:
  template <class... Args>
  bool differ(fmt::format_string<Args...> format, Args&&... args) {
    out_.error(Code::RDU3070, s_.where, "section '{}': {}", section_.name,
               fmt::format(format, std::forward<Args>(args)...));
    return false;
  }

  bool alike(OperatorId first, std::uint64_t trip) {
    const std::uint64_t id = first.value + trip * section_.operators_a_trip;
    const Operator& a = graph_.operators[first.value];
    if (id >= graph_.operators.size())
      return differ("trip {} would carry out operator {} where the first carries out '{}', and there are {}", trip, id,
                    a.name, graph_.operators.size());
    const Operator& b = graph_.operators[id];
    if (a.kind != b.kind || a.attributes != b.attributes || a.in.size() != b.in.size())
      return differ("trip {} carries out '{}' where the first carries out '{}', which is not the same", trip, b.name,
                    a.name);
    for (std::size_t i = 0; i <= a.in.size(); ++i) {
      const OperandId of_a = i < a.in.size() ? a.in[i] : a.out, of_b = i < b.in.size() ? b.in[i] : b.out;
      const OperandId taken = takes_.try_emplace(of_a, of_b).first->second;
      if (taken != of_b)
        return differ("in trip {}, '{}' and '{}' both stand for '{}' of the first", trip, graph_.operand(taken).name,
                      graph_.operand(of_b).name, graph_.operand(of_a).name);
    }
    return true;
  }

  // What the stage works on in that trip holds what the operators of that trip take and give.
  template <class Access>
  bool agrees(const Stage& st, const Access& access, std::uint64_t trip) {
    const OperandId first = p_.tensor(access.tensor).operand;
    const Tensor& later = p_.tensor(tensor_of_trip(access, trip));
    const auto taken = takes_.find(first);
    if (taken != takes_.end() && storage_[taken->second.value] != later.operand)
      return differ("{} works on '{}' in trip {}, whose operators have '{}' there", place_of(st), later.name, trip,
                    graph_.operand(taken->second).name);
    return true;
  }

  const Subject& s_;
  const SpatialProgram& p_;
  const OperatorGraph& graph_;
  const Section& section_;
  Diagnostics& out_;
  std::vector<OperandId> storage_;        // by operand: storage_of
  std::map<OperandId, OperandId> takes_;  // of the trip at hand: its operand, by that of the first
};

}  // namespace

// RDU3070: later trips of a section do with other tensors and operators what the first trip does with its own.
void check_trips(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  std::vector<std::vector<const Stage*>> stages(p.sections.size());
  const auto check = [&](const Stage& st, const auto& access) {
    const Section& section = p.sections[st.section.value];
    if (access.later.empty()) return;
    if (access.later.size() + 1 != section.trips) {
      out.error(Code::RDU3070, s.where, "{} names tensors for {} trips, and section '{}' makes {}", place_of(st),
                access.later.size() + 1, section.name, section.trips);
      return;
    }
    if (p.operators && section.operators_a_trip == 0)
      out.error(Code::RDU3070, s.where,
                "{} works on other tensors in later trips, and section '{}' carries out the same operators",
                place_of(st), section.name);
    const Tensor& first = p.tensor(access.tensor);
    for (const TensorId id : access.later)
      if (!alike_in_trips(first, p.tensor(id))) {
        out.error(Code::RDU3070, s.where, "{} works on '{}' and in a later trip on '{}', which is not like it",
                  place_of(st), first.name, p.tensor(id).name);
        return;
      }
  };
  for (const Stage& st : p.stages) {
    stages[st.section.value].push_back(&st);
    if (const auto* load = std::get_if<Load>(&st.kind)) check(st, *load);
    if (const auto* store = std::get_if<Store>(&st.kind)) check(st, *store);
  }
  if (!p.operators || out.has_errors()) return;
  for (const Section& section : p.sections)
    if (section.operators_a_trip != 0) TripOperators(s, section, out).check(stages[section.id.value]);
}

}  // namespace rdusim
