#include "models/units/body.h"

#include <algorithm>
#include <cstring>

namespace rdusim {

ElementOp element_op(ExprOp op) {
  switch (op) {
    case ExprOp::subtract:
      return ElementOp::subtract;
    case ExprOp::multiply:
      return ElementOp::multiply;
    case ExprOp::maximum:
      return ElementOp::maximum;
    case ExprOp::minimum:
      return ElementOp::minimum;
    case ExprOp::divide:
      return ElementOp::divide;
    case ExprOp::mask:
      return ElementOp::mask;
    default:
      return ElementOp::add;
  }
}

UnaryOp unary_op(ExprOp op) {
  switch (op) {
    case ExprOp::exponential:
      return UnaryOp::exponential;
    case ExprOp::square_root:
      return UnaryOp::square_root;
    case ExprOp::tanh:
      return UnaryOp::tanh;
    case ExprOp::erf:
      return UnaryOp::erf;
    default:
      return UnaryOp::negate;
  }
}

void fill_page(DType t, double number, std::byte* out, std::uint64_t n) {
  const auto put = [&](auto value) {
    for (std::uint64_t i = 0; i < n; ++i) std::memcpy(out + i * sizeof value, &value, sizeof value);
  };
  if (t == DType::fp32) put(static_cast<float>(number));
  // Constants of an integer body are integers in range; anything else is held to the nearest one.
  const double low = t == DType::int32 ? -2147483648.0 : -9223372036854774784.0;
  const double high = t == DType::int32 ? 2147483647.0 : 9223372036854774784.0;
  const double held = number == number ? std::clamp(number, low, high) : 0;
  if (t == DType::int32) put(static_cast<std::int32_t>(held));
  if (t == DType::int64) put(static_cast<std::int64_t>(held));
}

void fill_places(bool of_rows, std::uint64_t first_row, std::uint64_t first_col, std::uint32_t rows, std::uint32_t cols,
                 std::byte* out) {
  for (std::uint32_t r = 0; r < rows; ++r)
    for (std::uint32_t c = 0; c < cols; ++c) {
      const auto place = static_cast<float>(of_rows ? first_row + r : first_col + c);
      std::memcpy(out + (std::size_t{r} * cols + c) * sizeof place, &place, sizeof place);
    }
}

}  // namespace rdusim
