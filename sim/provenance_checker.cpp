#include "sim/provenance_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/ir/page_frames.h"

namespace rdusim {

ProvenanceChecker::ProvenanceChecker(const Instances& instances, const MatmulPlaces& matmuls, Violations& violations)
    : instances_(instances),
      matmuls_(matmuls),
      violations_(violations),
      contraction_(contractions(instances.program())),
      stored_(contraction_.size()),
      joined_(instances.program().stages.size()),
      additions_(instances, violations) {
  const SpatialProgram& p = instances.program();
  for (const PageFrame& frame : page_frames(p)) wholes_.emplace_back(frame.begin(), frame.end());
  const auto streams = page_operands(p);
  for (const Stage& s : p.stages) {
    const auto* tiles = std::get_if<MatmulTiles>(&s.kind);
    if (tiles == nullptr || s.ports.size() < 2) continue;
    Joined& j = joined_[s.id.value];
    const BufferId a = s.ports[0].buffer, b = s.ports[1].buffer;
    j.tiles = tiles;
    j.a = &wholes_[a.value];
    j.b = &wholes_[b.value];
    if (j.b->size() > 1) j.rows_b = std::max<std::uint64_t>((*j.b)[j.b->size() - 2], 1);
    j.flat = j.a->size() == 2 && j.b->size() == 2;
    j.stream_a = streams[a.value];
    j.stream_b = streams[b.value];
    if (!p.operators || tiles->op.value >= p.operators->operators.size()) continue;
    const Operator& op = p.operators->operators[tiles->op.value];
    if (op.kind != OperatorKind::matmul || op.in.size() != 2) continue;
    j.memory_a = storage_of(*p.operators, op.in[0]);
    j.memory_b = storage_of(*p.operators, op.in[1]);
  }
}

std::span<const ContributionRun> ProvenanceChecker::set(ProvenanceId id) const {
  if (id == 0 || table_ == nullptr) return {};
  return table_->runs(id);
}

std::string ProvenanceChecker::text(ProvenanceId id) const {
  if (id == 0 || table_ == nullptr) return "nothing";
  const std::vector<Contribution> contributions = table_->contributions(id);
  std::string out;
  constexpr std::size_t most = 20;
  for (std::size_t i = 0; i < contributions.size() && i < most; ++i) {
    const Contribution& c = contributions[i];
    out += fmt::format("{}chip{} [{}, {})", i == 0 ? "" : ", ", c.chip.value, c.k_begin, c.k_end);
  }
  if (contributions.size() > most) out += fmt::format(" and {} more", contributions.size() - most);
  return out;
}

ProvenanceChecker::Sum ProvenanceChecker::judge(ProvenanceId id) {
  if (id >= judged_.size())
    judged_.resize(std::max<std::size_t>(id + std::size_t{1}, judged_.size() * 2), Sum::unknown);
  Sum& known = judged_[id];
  if (known != Sum::unknown) return known;
  ranges_.clear();
  for (const ContributionRun& r : set(id)) ranges_.emplace_back(r.k_begin, r.k_end());
  std::sort(ranges_.begin(), ranges_.end());
  known = Sum::distinct;
  for (std::size_t i = 1; i < ranges_.size(); ++i) {
    if (ranges_[i].first < ranges_[i - 1].second) known = Sum::doubled;
  }
  return known;
}

void ProvenanceChecker::on(const OperandsJoined& e) {
  additions_.on(e);
  const Joined& j = joined_[e.stage.stage.value];
  if (j.tiles == nullptr) return;
  const bool transposed = j.tiles->transposed;
  // Within its matrix.
  const std::uint64_t row_b = j.b->size() > 1 && e.b.row >= j.rows_b ? e.b.row % j.rows_b : e.b.row;
  // b's contraction, and the columns of the product.
  const Place b = transposed ? Place{e.b.col, row_b, e.b.cols, e.b.rows} : Place{row_b, e.b.col, e.b.rows, e.b.cols};
  std::string why;
  if (e.a.col != b.row || e.a.cols != b.rows) {
    why = fmt::format("columns [{}, {}) of a meet {} [{}, {}) of b", e.a.col, e.a.col + e.a.cols,
                      transposed ? "columns" : "rows", b.row, b.row + b.rows);
  } else if (j.a->size() > 1 && j.b->size() > 1 && e.a.rows != 0 && e.b.rows != 0 &&
             !(j.flat && e.a.row + e.a.rows <= (*j.a)[0] && e.b.row + e.b.rows <= j.rows_b)) {
    why = certificate::wrong_matrices({e.a.row, e.a.col, e.a.rows, e.a.cols}, *j.a,
                                      {e.b.row, e.b.col, e.b.rows, e.b.cols}, *j.b);
  }
  if (!why.empty()) {
    // said
  } else if (e.a.trip != e.b.trip) {
    why = fmt::format("a is of trip {} and b of trip {}", e.a.trip, e.b.trip);
  } else if (const auto expected = matmuls_.at(e.stage, e.firing)) {
    const auto& k = *expected;
    if (e.a.col != k.k_begin || e.a.col + e.a.cols != k.k_end) {
      why = fmt::format("contraction [{}, {}) where the work item asks for [{}, {})", e.a.col, e.a.col + e.a.cols,
                        k.k_begin, k.k_end);
    } else if (e.a.row != k.out.row || e.a.rows != k.out.rows || b.col != k.out.col || b.cols != k.out.cols) {
      why = fmt::format("rows [{}, {}) x columns [{}, {}) where the work item asks for {}", e.a.row, e.a.row + e.a.rows,
                        b.col, b.col + b.cols, to_string(k.out));
    }
  }
  if (why.empty() && ((j.stream_a && *j.stream_a != e.a.operand) || (j.stream_b && *j.stream_b != e.b.operand)))
    why = "a page is of another stream than the one that fills its port";
  // What values are is what the certificate proves.
  const auto differs = [](const std::optional<OperandId>& due, OperandId is) {
    return due && !is_value(is) && *due != is;
  };
  if (why.empty() && (differs(j.memory_a, e.a.operand) || differs(j.memory_b, e.b.operand)))
    why = "the pages are not of the operator's operands";
  if (why.empty()) return;
  const SpatialProgram& p = instances_.program();
  Diagnostic& d = violations_.found(Code::RDU7012, e.at, instances_.place(e.stage),
                                    "firing {} of '{}' joins pages that do not belong together: {}", e.firing,
                                    p.stage(e.stage.stage).name, why);
  d.note(instances_.place(e.stage), "a is {}", to_string(e.a, p))
      .note(instances_.place(e.stage), "b is {}", to_string(e.b, p));
}

void ProvenanceChecker::on(const PartialFolded& e) {
  additions_.on(e);
  const SpatialProgram& p = instances_.program();
  const bool holds = e.held.provenance != 0;
  const auto same = [](const PageTag& a, const PageTag& b) {
    return a.operand == b.operand && a.trip == b.trip && place_of(a) == place_of(b) && a.chunk == b.chunk &&
           a.chunks == b.chunks;
  };
  if (holds && !same(e.held, e.added)) {
    violations_.found(Code::RDU7011, e.at, instances_.place(e.stage), "firing {} of '{}' adds {} to {}", e.firing,
                      p.stage(e.stage.stage).name, to_string(e.added, p), to_string(e.held, p));
  }
  if (judge(e.sum.provenance) == Sum::doubled) {
    Diagnostic& d = violations_.found(Code::RDU7010, e.at, instances_.place(e.stage),
                                      "firing {} of '{}' adds a contribution to {} that is there already", e.firing,
                                      p.stage(e.stage.stage).name, to_string(e.sum, p));
    d.note(instances_.place(e.stage), "held: {}", text(e.held.provenance))
        .note(instances_.place(e.stage), "added: {}", text(e.added.provenance));
  }
}

void ProvenanceChecker::on(const PageStored& e) {
  const SpatialProgram& p = instances_.program();
  const OperandId operand = p.tensor(e.tensor).operand;
  if (operand.value >= contraction_.size() || !contraction_[operand.value].op) return;
  Stored& s = stored_[operand.value];
  ++s.pages;
  const ProvenanceId id = e.tag.provenance;
  const std::span<const ContributionRun> contributions = set(id);
  std::uint64_t chips = 0;
  for (std::size_t i = 0; i < contributions.size(); ++i) {
    const bool again = i != 0 && contributions[i].chip == contributions[i - 1].last();
    chips += contributions[i].count - (again ? 1 : 0);
  }
  s.contributions = s.pages == 1 ? chips : std::min(s.contributions, chips);

  if (judge(id) == Sum::doubled) {
    violations_.found(Code::RDU7010, e.at, instances_.place(e.stage),
                      "'{}' stores {} with a contribution added twice: {}", p.stage(e.stage.stage).name,
                      to_string(e.tag, p), text(id));
    return;
  }
  const std::uint64_t next = followed_until(contributions, ranges_);
  const ContractionRanges& have = ranges_;
  const std::uint64_t k = contraction_[operand.value].k.value_or(have.empty() ? 0 : have.back().second);
  if (next == k && !have.empty()) {
    ++s.complete;
    return;
  }
  const auto beyond = std::find_if(have.begin(), have.end(), [&](const auto& r) { return r.first > next; });
  const std::uint64_t until = beyond == have.end() ? k : beyond->first;
  Diagnostic& d = violations_.found(
      Code::RDU7009, e.at, instances_.place(e.stage),
      "'{}' stores {} without the contribution of contraction indices [{}, {}); its operator has [0, {})",
      p.stage(e.stage.stage).name, to_string(e.tag, p), next, until, k);
  d.note(instances_.place(e.stage), "it holds {}", text(id));
}

}  // namespace rdusim
