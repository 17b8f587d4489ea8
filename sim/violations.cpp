#include "sim/violations.h"

namespace rdusim {

namespace {
std::size_t slot(Code code) {
  return static_cast<std::size_t>(code) % 1000;
}
}  // namespace

std::uint64_t Violations::count(Code code) const {
  return by_code_[slot(code)];
}

bool Violations::keep(Code code, Cycle at) {
  const bool kept = collect_ || total_ == 0;
  ++total_;
  ++by_code_[slot(code)];
  if (!first_at_) first_at_ = at;
  if (kept && !collect_) stop_.store(true, std::memory_order_relaxed);
  return kept;
}

}  // namespace rdusim
