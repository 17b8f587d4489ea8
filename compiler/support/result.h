// A value, or the diagnostics that say why there is none. Warnings may come with a value.
#pragma once

#include <optional>
#include <utility>

#include "compiler/support/diagnostics.h"

namespace rdusim {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value, Diagnostics warnings = {}) : value_(std::move(value)), diagnostics_(std::move(warnings)) {}
  Result(Diagnostics errors) : diagnostics_(std::move(errors)) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }

  // Requires ok().
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }

  const Diagnostics& diagnostics() const { return diagnostics_; }

  // f(value) where there is one, f : T -> Result<U>; warnings are kept.
  template <class F>
  auto then(F&& f) && -> decltype(f(std::move(std::declval<T&>()))) {
    if (!ok()) return std::move(diagnostics_);
    auto next = f(std::move(*value_));
    Diagnostics all = std::move(diagnostics_);
    all.append(next.diagnostics());
    if (!next.ok()) return all;
    return {std::move(next).value(), std::move(all)};
  }

 private:
  std::optional<T> value_;
  Diagnostics diagnostics_;
};

}  // namespace rdusim
