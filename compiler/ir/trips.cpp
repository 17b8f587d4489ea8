#include "compiler/ir/trips.h"

namespace rdusim {

std::vector<bool> tensors_of_single_trips(const SpatialProgram& program, SectionId section) {
  std::vector<bool> own(program.tensors.size(), false);
  const auto mark = [&](const auto* access) {
    if (access != nullptr && !access->later.empty()) for_each_tensor(*access, [&](TensorId t) { own[t.value] = true; });
  };
  for (const Stage& s : program.stages) {
    if (s.section != section) continue;
    mark(std::get_if<Load>(&s.kind));
    mark(std::get_if<Store>(&s.kind));
  }
  return own;
}

bool alike_in_trips(const Tensor& a, const Tensor& b) {
  return a.role == b.role && a.shape == b.shape && a.tiles == b.tiles && a.dtype == b.dtype && a.layout == b.layout &&
         a.space == b.space && a.range == b.range && a.chip == b.chip && a.whole == b.whole && a.offset == b.offset &&
         a.replicas == b.replicas;
}

FirstTrip::FirstTrip(const SpatialProgram& program) {
  if (!program.operators) return;
  for (std::size_t i = 0; i < program.operators->operators.size(); ++i) first_.emplace_back(i);
  for (const Stage& s : program.stages) {
    if (!s.origin || s.section.value >= program.sections.size()) continue;
    const Section& section = program.sections[s.section.value];
    if (section.operators_a_trip == 0) continue;
    std::uint64_t op = s.origin->value;
    for (std::uint64_t t = 1; t < section.trips; ++t) {
      op += section.operators_a_trip;
      if (op >= first_.size()) break;
      first_[op] = *s.origin;
    }
  }
}

}  // namespace rdusim
