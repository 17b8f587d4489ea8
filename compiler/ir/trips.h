// What a section's trips work on: trip t of a Load or Store its tensor of that trip, trip t of a section that trip's
// operators (program.h, Section).
#pragma once

#include <cstdint>

#include "compiler/ir/program.h"

namespace rdusim {

// Of a Load or a Store. Any trip where all have one tensor; else 0 <= trip <= later.size().
template <class Access>
TensorId tensor_of_trip(const Access& access, std::uint64_t trip) {
  return trip == 0 || access.later.empty() ? access.tensor : access.later[trip - 1];
}
// How many tensors its trips work on, one after the other.
template <class Access>
std::uint64_t tensors_in_turn(const Access& access) {
  return access.later.size() + 1;
}
template <class Access, class F>
void for_each_tensor(const Access& access, F&& f) {
  f(access.tensor);
  for (const TensorId t : access.later) f(t);
}

// How often the host launches it.
inline std::uint64_t launches_of(const Section& section) {
  return section.relaunched ? section.trips : 1;
}
// What the stages of one launch do, in trips.
inline std::uint64_t trips_a_launch(const Section& section) {
  return section.relaunched ? 1 : section.trips;
}

// By tensor: whether trips of the section each work on one of their own.
std::vector<bool> tensors_of_single_trips(const SpatialProgram& program, SectionId section);

// Whether a Load or Store can work on either: they agree in all but what they are called and hold.
bool alike_in_trips(const Tensor& a, const Tensor& b);

// The operator of some section's first trip which stands for `op`; `op` itself where none does. Each section of several
// trips carries out operators that follow each other.
class FirstTrip {
 public:
  explicit FirstTrip(const SpatialProgram& program);
  OperatorId of(OperatorId op) const { return op.value < first_.size() ? first_[op.value] : op; }

 private:
  std::vector<OperatorId> first_;
};

}  // namespace rdusim
