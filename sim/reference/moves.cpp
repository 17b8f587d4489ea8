// What only moves elements: to the bit, whatever they are.
#include <algorithm>
#include <cstring>

#include "sim/reference/elements.h"
#include "sim/reference/operators.h"

namespace rdusim::reference {
namespace {

// Elements of the axes [from, to) of a shape.
std::size_t count(const std::vector<std::int64_t>& shape, std::size_t from, std::size_t to) {
  std::size_t n = 1;
  for (std::size_t i = from; i < to; ++i) n *= static_cast<std::size_t>(shape[i]);
  return n;
}

// The result's elements, by the place of its first and the stride of each of its axes in the operand. `size`: bytes of
// what lies together.
std::vector<std::byte> picked(std::span<const std::byte> from, const std::vector<std::size_t>& extent,
                              const std::vector<std::size_t>& stride, std::size_t first, std::size_t size) {
  std::size_t total = 1;
  for (const std::size_t e : extent) total *= e;
  std::vector<std::byte> out(total * size);
  std::vector<std::size_t> index(extent.size(), 0);
  std::size_t at = first;
  for (std::size_t i = 0; i < total; ++i) {
    std::memcpy(out.data() + i * size, from.data() + at * size, size);
    for (std::size_t axis = extent.size(); axis-- > 0;) {
      at += stride[axis];
      if (++index[axis] < extent[axis]) break;
      at -= stride[axis] * extent[axis];
      index[axis] = 0;
    }
  }
  return out;
}

Result<std::vector<std::byte>> gather(const Problem& p) {
  const auto& table = p.in(0);
  const std::size_t row = static_cast<std::size_t>(table.shape[1]) * bytes_of(table.dtype);
  const auto n = static_cast<std::size_t>(p.in(1).shape[0]);
  std::vector<std::uint64_t> indices(n);
  read_elements(p.in(1).dtype, p.bytes(1), 0, n, indices.data());
  std::vector<std::byte> out(n * row);
  for (std::size_t i = 0; i < n; ++i) {
    if (indices[i] >= static_cast<std::uint64_t>(table.shape[0])) {
      Diagnostics d;
      d.error(Code::RDU1035, "operator '" + p.op.name + "'", "index {} of '{}' is {}; '{}' has {} rows", i,
              p.in(1).name, static_cast<std::int64_t>(indices[i]), table.name, table.shape[0]);
      return d;
    }
    std::memcpy(out.data() + i * row, p.bytes(0).data() + indices[i] * row, row);
  }
  return out;
}

std::vector<std::byte> transpose(const Problem& p) {
  const auto& shape = p.in(0).shape;
  const auto& axes = p.op.attributes.axes;
  std::size_t size = bytes_of(p.in(0).dtype);
  // Last axes that stay where they are lie together.
  std::size_t rank = shape.size();
  while (rank > 0 && axes[rank - 1] == static_cast<std::int64_t>(rank - 1))
    size *= static_cast<std::size_t>(shape[--rank]);
  std::vector<std::size_t> extent, stride;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    extent.push_back(static_cast<std::size_t>(shape[axis]));
    stride.push_back(count(shape, axis + 1, rank));
  }
  return picked(p.bytes(0), extent, stride, 0, size);
}

std::vector<std::byte> slice(const Problem& p) {
  const auto& shape = p.in(0).shape;
  const auto& begin = p.op.attributes.begin;
  const std::size_t size = bytes_of(p.in(0).dtype);
  std::vector<std::size_t> extent, stride;
  std::size_t first = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    extent.push_back(static_cast<std::size_t>(p.op.attributes.end[i] - begin[i]));
    stride.push_back(count(shape, i + 1, shape.size()));
    first += static_cast<std::size_t>(begin[i]) * stride.back();
  }
  return picked(p.bytes(0), extent, stride, first, size);
}

std::vector<std::byte> concat(const Problem& p) {
  const auto axis = static_cast<std::size_t>(p.op.attributes.axes[0]);
  const auto& shape = p.out().shape;
  const std::size_t outer = count(shape, 0, axis);
  const std::size_t size = bytes_of(p.out().dtype);
  const std::size_t row = count(shape, axis, shape.size()) * size;
  std::vector<std::byte> out(outer * row);
  std::size_t at = 0;
  for (std::size_t i = 0; i < p.op.in.size(); ++i) {
    const std::size_t part = count(p.in(i).shape, axis, shape.size()) * size;
    for (std::size_t o = 0; o < outer; ++o) std::memcpy(out.data() + o * row + at, p.bytes(i).data() + o * part, part);
    at += part;
  }
  return out;
}

std::vector<std::byte> append(const Problem& p) {
  const auto& shape = p.out().shape;
  const std::size_t last = shape.size() - 1, size = bytes_of(p.out().dtype);
  const std::size_t matrix = count(shape, last - 1, shape.size()) * size, row = count(shape, last, shape.size()) * size;
  const std::size_t fresh = count(p.in(1).shape, last - 1, shape.size()) * size;
  std::vector<std::byte> out(p.bytes(0).begin(), p.bytes(0).end());
  for (std::size_t m = 0; m < count(shape, 0, last - 1); ++m)
    std::memcpy(out.data() + m * matrix + static_cast<std::size_t>(p.op.attributes.begin[0]) * row,
                p.bytes(1).data() + m * fresh, fresh);
  return out;
}

}  // namespace

Result<std::vector<std::byte>> move(const Problem& p) {
  switch (p.op.kind) {
    case OperatorKind::gather:
      return gather(p);
    case OperatorKind::transpose:
      return transpose(p);
    case OperatorKind::slice:
      return slice(p);
    case OperatorKind::concat:
      return concat(p);
    case OperatorKind::append:
      return append(p);
    default:
      return std::vector<std::byte>(p.bytes(0).begin(), p.bytes(0).end());  // reshape
  }
}

WideMatrix exactly(DType dtype, std::span<const std::byte> bytes) {
  WideMatrix wide;
  const std::size_t n = bytes.size() / bytes_of(dtype);
  if (is_integer(dtype)) {
    std::vector<std::uint64_t> values(n);
    read_elements(dtype, bytes, 0, n, values.data());
    wide.integer.assign(values.begin(), values.end());
  } else {
    wide.value.resize(n);
    read_elements(dtype, bytes, 0, n, wide.value.data());
    wide.error.assign(n, 0);
  }
  return wide;
}

}  // namespace rdusim::reference
