#include "compiler/workload/fill_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "compiler/support/units.h"
#include "compiler/workload/float_bits.h"

namespace rdusim {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

std::string range_text(DType t) {
  if (is_integer(t)) return fmt::format("{} to {}", integer_range(t).low, integer_range(t).high);
  const double largest = float_value(float_format(t).largest, float_format(t));
  return fmt::format("{} to {}", -largest, largest);
}

bool fits(std::int64_t v, DType t) {
  return is_integer(t) ? integer_range(t).holds(v)
                       : round_to_float(static_cast<double>(v), float_format(t)).has_value();
}

bool fits(double v, DType t) {
  return is_integer(t) ? false : round_to_float(v, float_format(t)).has_value();
}

bool is_prime(std::int64_t n) {
  if (n < 2) return false;
  for (std::int64_t d = 2; d <= n / d; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

// Elements from one index to the next along each axis.
std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

// The least distance d >= 1 at which elements d * stride apart are equal.
std::int64_t repeats_after(std::int64_t modulus, std::int64_t stride) {
  return modulus / std::gcd(modulus, stride);
}

std::string axis_name(std::size_t axis, std::size_t rank) {
  if (rank == 2) return axis == 0 ? "rows" : "columns";
  return fmt::format("axis {}", axis);
}

constexpr std::int64_t most_chips = 16;

// What the pattern hides, a line each; the first is the gravest.
std::vector<std::string> hidden(std::int64_t modulus, const std::vector<std::int64_t>& shape) {
  std::vector<std::string> out;
  const auto strides = strides_of(shape);
  const std::size_t rank = shape.size();
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (shape[axis] < 2 || strides[axis] % modulus != 0) continue;
    if (axis + 1 == rank) {
      out.push_back("all elements are equal, so any two can be swapped unnoticed");
    } else if (rank == 2) {
      out.push_back(
          fmt::format("its period {} divides the row length {}: all {} rows are equal, and can be swapped "
                      "unnoticed",
                      modulus, strides[axis], shape[axis]));
    } else {
      out.push_back(
          fmt::format("its period {} divides the stride {} of axis {}: all {} slices along it are equal, and "
                      "can be swapped unnoticed",
                      modulus, strides[axis], axis, shape[axis]));
    }
  }
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (strides[axis] % modulus == 0) continue;  // said above
    std::vector<std::string> splits;
    for (std::int64_t chips = 2; chips <= std::min(most_chips, shape[axis]); ++chips) {
      if (shape[axis] % chips != 0) continue;
      const std::int64_t apart = repeats_after(modulus, shape[axis] / chips * strides[axis]);
      if (apart < chips) splits.push_back(fmt::format("{} ({} apart)", chips, apart));
    }
    if (!splits.empty()) {
      out.push_back(
          fmt::format("split by {} over this many chips, shards that far apart are equal, and can be swapped "
                      "unnoticed: {}",
                      axis_name(axis, rank), fmt::join(splits, ", ")));
    }
  }
  // Requires a count that fits, as all of these do.
  const std::int64_t count = *element_count(shape);
  if (modulus < count && count % modulus == 0) {
    out.push_back(
        fmt::format("the tensor is {} whole periods of {}: an address that wraps past its end reads what it "
                    "would have read, unnoticed",
                    count / modulus, modulus));
  }
  return out;
}

// The least prime from `from` on whose pattern hides nothing; none where none is near.
std::optional<std::int64_t> better_modulus(std::int64_t from, const std::vector<std::int64_t>& shape) {
  constexpr std::int64_t tries = 1024;
  constexpr std::int64_t large = 1 << 20;  // beyond it the search costs more than the advice is worth
  for (std::int64_t m = from; m < std::min(from, large) + tries; ++m) {
    if (is_prime(m) && hidden(m, shape).empty()) return m;
  }
  return std::nullopt;
}

}  // namespace

void check_fill(const Operand& operand, const std::string& where, Diagnostics& out) {
  const DType t = operand.dtype;
  const auto count = element_count(operand.shape);
  const auto wrong = [&](std::string_view what) -> Diagnostic& {
    return out.error(Code::RDU1022, where, "the fill of '{}' {}", operand.name, what);
  };
  const auto too_large = [&](auto value) {
    wrong(fmt::format("has the value {}, which {} does not hold: its range is {}", value, name_of(t), range_text(t)));
  };
  if (operand.role == TensorRole::output || operand.role == TensorRole::intermediate) {
    if (!std::holds_alternative<ZeroFill>(operand.fill)) {
      wrong(fmt::format("has no use: an operator writes this tensor, whose role is {}", name_of(operand.role)))
          .suggest("give the tensor role = \"input\" or \"weight\", or remove the fill");
    }
    return;
  }
  if (!count) return;
  std::visit(Overloaded{
                 [](const ZeroFill&) {},
                 [&](const ConstantFill& f) {
                   if (is_integer(t)) {
                     if (!fits(f.integer, t)) too_large(f.integer);
                   } else if (!fits(f.value, t)) {
                     too_large(f.value);
                   }
                 },
                 [&](const PatternFill& f) {
                   if (f.modulus < 1) {
                     wrong(fmt::format("has the modulus {}; it is 1 or more", f.modulus));
                     return;
                   }
                   const auto least = checked_multiply(f.shift, -1);
                   const auto greatest = least ? checked_add(*least, std::min(f.modulus, *count) - 1) : std::nullopt;
                   if (!greatest) {
                     wrong(fmt::format("has values beyond 64 bits: modulus {}, shift {}", f.modulus, f.shift));
                   } else if (!fits(*least, t) || !fits(*greatest, t)) {
                     wrong(fmt::format("has the values {} to {}, which {} does not hold: its range is {}", *least,
                                       *greatest, name_of(t), range_text(t)));
                   }
                 },
                 [&](const ValuesFill& f) {
                   const std::size_t given = is_integer(t) ? f.integers.size() : f.floats.size();
                   if (!(is_integer(t) ? f.floats.empty() : f.integers.empty())) {
                     wrong(fmt::format("lists values of another kind than {}", name_of(t)));
                   } else if (given != static_cast<std::uint64_t>(*count)) {
                     wrong(fmt::format("lists {} values, where the tensor has {} elements", given, *count));
                   }
                   for (const std::int64_t v : f.integers) {
                     if (is_integer(t) && !fits(v, t)) return too_large(v);
                   }
                   for (const double v : f.floats) {
                     if (!is_integer(t) && !fits(v, t)) return too_large(v);
                   }
                 },
                 [&](const RandomFill& f) {
                   if (!std::isfinite(f.low) || !std::isfinite(f.high) || f.low > f.high) {
                     wrong(fmt::format("draws from {} to {}, which is no range", f.low, f.high));
                     return;
                   }
                   for (const double bound : {f.low, f.high}) {
                     if (!is_integer(t)) {
                       if (!fits(bound, t)) return too_large(bound);
                     } else if (std::trunc(bound) != bound || std::fabs(bound) > static_cast<double>(exact_in_double)) {
                       wrong(fmt::format("draws {} from {} to {}; the bounds of integers are whole, and within 2^53",
                                         name_of(t), f.low, f.high));
                       return;
                     } else if (!fits(static_cast<std::int64_t>(bound), t)) {
                       return too_large(bound);
                     }
                   }
                 },
                 [](const WholeTensorRandomFill&) {},
                 [&](const FileFill& f) {
                   const auto reach = elements_reached(f, *count);
                   const auto bytes = checked_multiply(reach.value_or(0), bytes_of(t));
                   const bool hash =
                       f.sha256.size() == 64 && f.sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
                   if (f.path.empty() || !hash) {
                     wrong("names no file, or not its SHA-256");
                   } else if (!reach) {
                     wrong(fmt::format("takes steps of [{}] by [{}] in its file, which give no {} elements",
                                       fmt::join(f.strides, ", "), fmt::join(f.extents, ", "), *count));
                   } else if (!bytes || f.data_offset > f.size_bytes ||
                              static_cast<std::uint64_t>(*bytes) > f.size_bytes - f.data_offset) {
                     wrong(fmt::format("needs {} bytes from byte {} on of a file of {}", bytes ? *bytes : 0,
                                       f.data_offset, f.size_bytes));
                   }
                 },
                 [](const ExternalFill&) {},
             },
             operand.fill);
}

std::optional<std::int64_t> elements_reached(const FileFill& f, std::int64_t count) {
  if (f.extents.empty() && f.strides.empty()) return count;
  if (f.extents.size() != f.strides.size() || element_count(f.extents) != count) return std::nullopt;
  std::optional<std::int64_t> last = 0;
  for (std::size_t d = 0; d < f.extents.size() && last; ++d) {
    const auto steps = f.strides[d] < 0 ? std::nullopt : checked_multiply(f.extents[d] - 1, f.strides[d]);
    last = steps ? checked_add(*last, *steps) : std::nullopt;
  }
  return last ? checked_add(*last, 1) : std::nullopt;
}

std::optional<std::pair<std::int64_t, std::int64_t>> value_range(const Fill& fill) {
  if (std::holds_alternative<ZeroFill>(fill)) return {{0, 0}};
  if (const auto* f = std::get_if<PatternFill>(&fill)) return {{-f->shift, f->modulus - 1 - f->shift}};
  if (const auto* f = std::get_if<ValuesFill>(&fill); f && !f->integers.empty()) {
    const auto [low, high] = std::minmax_element(f->integers.begin(), f->integers.end());
    return {{*low, *high}};
  }
  return std::nullopt;
}

void check_pattern(const Operand& operand, const std::string& where, Diagnostics& out) {
  const auto* pattern = std::get_if<PatternFill>(&operand.fill);
  const auto count = element_count(operand.shape);
  if (pattern == nullptr || pattern->modulus < 1 || !count || *count < 2) return;
  const auto lines = hidden(pattern->modulus, operand.shape);
  if (lines.empty()) return;
  Diagnostic& d =
      out.warning(Code::RDU1023, where, "the pattern of '{}' hides mistakes: {}", operand.name, lines.front());
  for (std::size_t i = 1; i < lines.size(); ++i) d.note(where, "{}", lines[i]);
  constexpr std::int64_t above_chips = most_chips + 1;
  if (const auto better = better_modulus(std::max(pattern->modulus, above_chips), operand.shape)) {
    const auto least = checked_multiply(pattern->shift, -1);
    const auto greatest = least ? checked_add(*better - 1, *least) : std::nullopt;
    if (greatest && fits(*greatest, operand.dtype)) {
      d.suggest("modulus {} hides none of this", *better);
    } else {
      d.suggest("modulus {} hides none of this; shift it to fit {}", *better, name_of(operand.dtype));
    }
  }
}

}  // namespace rdusim
