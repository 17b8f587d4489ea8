#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/print.h"
#include "compiler/ir/rules.h"

namespace rdusim {
namespace {

std::string chips_text(const std::set<ChipId>& chips) {
  std::string text;
  std::size_t n = 0;
  for (ChipId c : chips) {
    if (++n > 8) return text + fmt::format(" and {} more", chips.size() - 8);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", c.value);
  }
  return text.empty() ? "none" : text;
}

// The chips whose stages carry out each collective: those that fold, send or receive for it.
std::vector<std::set<ChipId>> participants(const SpatialProgram& p) {
  std::vector<std::set<ChipId>> chips(p.collectives.size());
  for (const Stage& st : p.stages) {
    if (st.collective) chips[st.collective->value].insert(p.chip_of(st));
    if (const auto* c = std::get_if<CollectiveStage>(&st.kind)) chips[c->collective.value].insert(p.chip_of(st));
  }
  for (const Edge& e : p.edges)
    if (e.collective) {
      chips[e.collective->value].insert(p.chip_of(p.stage(e.from)));
      for (StageId to : e.to) chips[e.collective->value].insert(p.chip_of(p.stage(to)));
    }
  return chips;
}

// Whether every member contributes as much as every other.
bool equal_shares(CollectiveKind k) {
  return k == CollectiveKind::reduce || k == CollectiveKind::all_reduce || k == CollectiveKind::reduce_scatter;
}

}  // namespace

// RDU3018: every chip of a collective's group takes part in it, and no other does. One chip alone has nothing to do.
void check_membership(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  if (p.stages.empty()) return;
  const auto taking_part = participants(p);
  for (const Collective& c : p.collectives) {
    const std::set<ChipId> members(c.members.begin(), c.members.end());
    const auto wrong = [&](const std::string& what) {
      out.error(Code::RDU3018, s.where, "collective '{}': {}", c.name, what);
    };
    if (members.empty() || members.size() != c.members.size()) {
      wrong(members.empty() ? "it has no members" : "it names a member twice");
      continue;
    }
    if (members.size() == 1 && taking_part[c.id.value].empty()) continue;
    std::set<ChipId> missing, foreign;
    std::set_difference(members.begin(), members.end(), taking_part[c.id.value].begin(), taking_part[c.id.value].end(),
                        std::inserter(missing, missing.end()));
    std::set_difference(taking_part[c.id.value].begin(), taking_part[c.id.value].end(), members.begin(), members.end(),
                        std::inserter(foreign, foreign.end()));
    if (!missing.empty())
      wrong(fmt::format("of its {} members these have no stage for it: chips {}", members.size(), chips_text(missing)));
    if (!foreign.empty())
      wrong(fmt::format("these are no members and have stages for it: chips {}", chips_text(foreign)));
  }
}

// RDU3019: every chip takes part in its collectives in the same order: no two of one chip have the same place, and the
// sections that carry them out come in that order.
void check_collective_order(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  std::vector<std::map<ChipId, SectionId>> section(p.collectives.size());
  for (const Stage& st : p.stages)
    if (st.collective) section[st.collective->value].try_emplace(p.chip_of(st), st.section);
  std::map<ChipId, std::vector<const Collective*>> of_chip;
  for (const Collective& c : p.collectives)
    for (ChipId m : c.members) of_chip[m].push_back(&c);
  std::set<std::pair<std::uint32_t, std::uint32_t>> reported;
  for (auto& [chip, list] : of_chip) {
    std::stable_sort(list.begin(), list.end(),
                     [](const Collective* a, const Collective* b) { return a->order < b->order; });
    for (std::size_t i = 1; i < list.size(); ++i) {
      const Collective& a = *list[i - 1];
      const Collective& b = *list[i];
      const auto at_a = section[a.id.value].find(chip), at_b = section[b.id.value].find(chip);
      const bool same_place = a.order == b.order;
      const bool later =
          at_a != section[a.id.value].end() && at_b != section[b.id.value].end() && at_a->second > at_b->second;
      if ((!same_place && !later) || !reported.insert({a.id.value, b.id.value}).second) continue;
      if (same_place)
        out.error(Code::RDU3019, s.where, "collectives '{}' and '{}' both have place {} on chip {}", a.name, b.name,
                  a.order, chip.value);
      else
        out.error(Code::RDU3019, s.where, "chip {} carries out '{}' (place {}) in a later section than '{}' (place {})",
                  chip.value, a.name, a.order, b.name, b.order)
            .note(fmt::format("collective '{}'", a.name), "in section '{}'", p.sections[at_a->second.value].name)
            .note(fmt::format("collective '{}'", b.name), "in section '{}'", p.sections[at_b->second.value].name);
    }
  }
}

// RDU3020: all members agree on the vector of bytes that each contributes: one entry a member, equal for a reduction,
// and what the member's own matmul makes.
void check_collective_bytes(const Subject& s, Diagnostics& out) {
  const SpatialProgram& p = s.p;
  std::map<std::pair<std::uint32_t, ChipId>, const Work*> work_of;  // (operator, chip)
  for (const Work& w : p.work) work_of[{w.op.value, w.chip}] = &w;
  std::map<std::pair<std::uint32_t, ChipId>, DType> result_of;
  for (const Stage& st : p.stages)
    if (const auto* m = std::get_if<MatmulTiles>(&st.kind))
      result_of.try_emplace({m->op.value, p.chip_of(st)}, m->result);
  for (const Collective& c : p.collectives) {
    const auto wrong = [&](const std::string& what) {
      out.error(Code::RDU3020, s.where, "collective '{}': {}", c.name, what);
    };
    if (c.bytes.size() != c.members.size()) {
      wrong(fmt::format("{} byte counts for {} members", c.bytes.size(), c.members.size()));
      continue;
    }
    for (std::size_t i = 0; i < c.members.size(); ++i) {
      if (equal_shares(c.kind) && c.bytes[i] != c.bytes[0]) {
        wrong(fmt::format("chip {} contributes {} bytes and chip {} {}", c.members[0].value, c.bytes[0],
                          c.members[i].value, c.bytes[i]));
        break;
      }
      if (c.kind == CollectiveKind::broadcast && i > 0 && c.bytes[i] != 0) {
        wrong(fmt::format("chip {} contributes {} bytes to what the first of its members, chip {}, sends to all",
                          c.members[i].value, c.bytes[i], c.members[0].value));
        break;
      }
      const auto work = work_of.find({c.op.value, c.members[i]});
      const auto result = result_of.find({c.op.value, c.members[i]});
      if (work == work_of.end() || result == result_of.end()) continue;
      // What is gathered has left the reduction: it has the operand's type, though a matmul split on chip pushes
      // partials.
      DType type = result->second;
      if (!equal_shares(c.kind) && p.operators)
        type = p.operators->operand(p.operators->operators[c.op.value].out).dtype;
      const auto elements = checked_multiply(work->second->m, work->second->n);
      const auto bytes = elements ? checked_multiply(*elements, bytes_of(type)) : std::nullopt;
      if (!bytes || static_cast<Bytes>(*bytes) != c.bytes[i]) {
        wrong(fmt::format("chip {} contributes {} bytes, and its {} x {} elements of {} are {}", c.members[i].value,
                          c.bytes[i], work->second->m, work->second->n, name_of(type), bytes.value_or(-1)));
        break;
      }
    }
  }
}

// RDU3032, first half: a summation tree adds every node below its root once; its leaves are ranges of the contraction;
// the trees of an operator tile its pages' chunks (one set of trees, or one a chip), and sum in as many lanes as its
// matmuls do.
void check_trees(const Subject& s, Diagnostics& out) {
  std::map<std::uint32_t, const Stage*> matmuls;  // by operator: one of its stages
  for (const Stage& st : s.p.stages)
    if (const auto* m = std::get_if<MatmulTiles>(&st.kind)) {
      const Stage& first = *matmuls.try_emplace(m->op.value, &st).first->second;
      if (std::get<MatmulTiles>(first.kind).lanes != m->lanes)
        out.error(Code::RDU3032, s.where, "{} sums in {} lanes, and {} of its operator in {} (0: a systolic array)",
                  place_of(st), m->lanes, place_of(first), std::get<MatmulTiles>(first.kind).lanes);
    }
  std::map<std::uint32_t, std::uint32_t> chunks_of;  // by operator
  for (const SummationTree& tree : s.p.trees) {
    const auto wrong = [&](const std::string& what) {
      out.error(Code::RDU3032, s.where, "summation tree {}: {}", tree.id.value, what);
    };
    std::vector<std::uint32_t> uses(tree.nodes.size(), 0);
    bool ok = true;
    for (const SummationNode& node : tree.nodes) {
      if (node.leaf) {
        ok = ok && node.k_begin >= 0 && node.k_begin < node.k_end;
      } else {
        ++uses[node.left];
        ++uses[node.right];
      }
    }
    if (!ok) wrong("a leaf of no contraction range");
    if (const auto matmul = matmuls.find(tree.op.value); matmul != matmuls.end()) {
      const std::uint32_t lanes = std::max(std::get<MatmulTiles>(matmul->second->kind).lanes, 1u);
      if (tree.lanes != lanes)
        wrong(fmt::format("sums in {} lanes, and {} in {}", tree.lanes, place_of(*matmul->second), lanes));
    }
    for (std::size_t i = 0; i + 1 < uses.size(); ++i)
      if (uses[i] != 1) {
        wrong(fmt::format("node {} is added {} times", i, uses[i]));
        break;
      }
    const auto at = chunks_of.try_emplace(tree.op.value, tree.chunks).first;
    if (at->second != tree.chunks)
      wrong(fmt::format("{} chunks, and other trees of its operator have {}", tree.chunks, at->second));
  }
}

}  // namespace rdusim
