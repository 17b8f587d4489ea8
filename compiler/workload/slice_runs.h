// Where the elements of a slice lie in the whole tensor, in runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rdusim {

// A slice as runs of elements that follow each other in the whole tensor: calls run(p, at, length) with the first
// element's index in the whole and in the slice. Stops at the first false.
class SliceRuns {
 public:
  // Whether there is such a slice: the same rank, at least an element along each axis, none beyond the whole.
  static bool lie_within(const std::vector<std::int64_t>& whole, const std::vector<std::int64_t>& offset,
                         const std::vector<std::int64_t>& shape) {
    bool inside = offset.size() == whole.size() && shape.size() == whole.size();
    for (std::size_t axis = 0; inside && axis < whole.size(); ++axis)
      inside = offset[axis] >= 0 && shape[axis] >= 1 && shape[axis] <= whole[axis] &&
               offset[axis] <= whole[axis] - shape[axis];
    return inside;
  }

  // Requires lie_within(). Keeps references.
  SliceRuns(const std::vector<std::int64_t>& whole, const std::vector<std::int64_t>& offset,
            const std::vector<std::int64_t>& shape)
      : whole_(whole), offset_(offset), shape_(shape) {
    // The innermost axes that the slice takes whole, and the next one, make one run.
    outer_ = shape.size();
    while (outer_ > 0) {
      --outer_;
      length_ *= shape[outer_];
      if (shape[outer_] != whole[outer_]) break;
    }
  }

  template <class Run>
  bool for_each(Run run) const {
    std::vector<std::int64_t> index(outer_, 0);
    for (std::int64_t at = 0;; at += length_) {
      std::int64_t p = 0;
      for (std::size_t axis = 0; axis < whole_.size(); ++axis) {
        p = p * whole_[axis] + offset_[axis] + (axis < outer_ ? index[axis] : 0);
      }
      if (!run(p, at, length_)) return false;
      std::size_t axis = outer_;
      for (;;) {
        if (axis == 0) return true;
        --axis;
        if (++index[axis] < shape_[axis]) break;
        index[axis] = 0;
      }
    }
  }

 private:
  const std::vector<std::int64_t>& whole_;
  const std::vector<std::int64_t>& offset_;
  const std::vector<std::int64_t>& shape_;
  std::size_t outer_ = 0;  // axes outside of a run
  std::int64_t length_ = 1;
};

}  // namespace rdusim
