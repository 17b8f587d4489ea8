// What the checkers found wrong in a run: recorded at once, with the cycle; the first stops the run unless all are
// asked for.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "compiler/support/diagnostics.h"
#include "compiler/support/units.h"

namespace rdusim {

class Violations {
 public:
  // `stop` is raised at the first violation unless `collect`; it outlives this.
  Violations(std::atomic<bool>& stop, bool collect) : stop_(stop), collect_(collect) {}

  // "cycle 1234, chip3.site(4,7).pmu: error RDU7001 ...". Once stopped, further ones are counted and not kept, nor put
  // into words: they may follow from the first.
  template <class... Args>
  Diagnostic& found(Code code, Cycle at, const std::string& unit, fmt::format_string<Args...> format, Args&&... args) {
    if (!keep(code, at)) return forget();
    return diagnostics_.add({code,
                             Severity::error,
                             fmt::format("cycle {}, {}", at, unit),
                             fmt::format(format, std::forward<Args>(args)...),
                             {},
                             {}});
  }
  // What found() gave back is not kept: notes need not be added to it.
  bool dropped(const Diagnostic& d) const { return &d == &dropped_; }

  bool any() const { return total_ != 0; }
  bool stopped() const { return any() && !collect_; }
  std::uint64_t total() const { return total_; }
  std::uint64_t count(Code code) const;
  std::optional<Cycle> first_at() const { return first_at_; }
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  // Whether it is one to keep.
  bool keep(Code code, Cycle at);
  Diagnostic& forget() {
    dropped_.notes.clear();
    dropped_.help.clear();
    return dropped_;
  }

  std::atomic<bool>& stop_;
  bool collect_;
  std::uint64_t total_ = 0;
  std::array<std::uint64_t, 1000> by_code_{};  // of the 7xxx
  std::optional<Cycle> first_at_;
  Diagnostics diagnostics_;
  Diagnostic dropped_{};
};

}  // namespace rdusim
