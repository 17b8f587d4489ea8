// Rotary embeddings and attention: heads, widths, and who may look at whom.
#include <algorithm>

#include "compiler/support/units.h"
#include "compiler/workload/operator_rules.h"
#include "compiler/workload/operator_traits.h"

namespace rdusim {
namespace {

std::int64_t rows(const Shape& shape) {
  return shape[shape.size() - 2];
}

bool are_matrices(const OperatorCase& c) {
  for (std::size_t i = 0; i < c.op.in.size(); ++i) {
    if (c.shape(i).size() >= 2) continue;
    c.error(Code::RDU1031, "operator '{}' is a {} of '{}', which has {} axis; it takes {}", c.op.name,
            name_of(c.op.kind), c.in(i).name, c.shape(i).size(), traits_of(c.op.kind).form);
    return false;
  }
  return true;
}

bool heads_divide(const OperatorCase& c, std::int64_t columns, std::int64_t heads, std::size_t in = 0) {
  if (columns % heads == 0) return true;
  c.error(Code::RDU1034, "operator '{}' has {} heads on the {} columns of '{}', {:.2f} a head", c.op.name, heads,
          columns, c.in(in).name, static_cast<double>(columns) / static_cast<double>(heads));
  return false;
}

// Further queries and keys have rows as queries and keys have, of heads of a width of their own.
bool further_fit(const OperatorCase& c) {
  const auto further = further_at(c.op.in.size());
  if (!further) return true;
  const Shape& q = c.shape(*further);
  if (!heads_divide(c, q.back(), c.op.attributes.heads, *further)) return false;
  const std::int64_t width = q.back() / std::int64_t{c.op.attributes.heads};
  Shape like_q = c.shape(0), like_k = c.shape(1);
  like_q.back() = q.back();
  like_k.back() = width * std::int64_t{c.op.attributes.kv_heads};
  for (const auto& [in, due] : {std::pair(*further, &like_q), std::pair(*further + 1, &like_k)}) {
    if (c.shape(in) == *due) continue;
    c.error(Code::RDU1009, "operator '{}' has further columns of its queries and keys, and '{}' is {}, not {}",
            c.op.name, c.in(in).name, shape_text(c.shape(in)), shape_text(*due));
    return false;
  }
  return true;
}

bool sinks_fit(const OperatorCase& c) {
  const auto sinks = sinks_at(c.op.in.size());
  const Shape due = c.op.attributes.heads == 1 ? Shape{1, 1} : Shape{c.op.attributes.heads, 1, 1};
  if (!sinks || c.shape(*sinks) == due) return true;
  c.error(Code::RDU1009, "operator '{}' has a sink for each of its {} heads, and '{}' is {}, not {}", c.op.name,
          c.op.attributes.heads, c.in(*sinks).name, shape_text(c.shape(*sinks)), shape_text(due));
  return false;
}

}  // namespace

std::optional<Shape> rotary_shape(const OperatorCase& c) {
  if (!are_matrices(c)) return std::nullopt;
  const Shape& x = c.shape(0);
  const std::int64_t heads = c.op.attributes.heads;
  if (!heads_divide(c, x.back(), heads)) return std::nullopt;
  const std::int64_t width = x.back() / heads;
  if (width % 2 != 0) {
    c.error(Code::RDU1034, "operator '{}' turns pairs of columns, and a head of '{}' is {} wide, which is odd",
            c.op.name, c.in(0).name, width);
    return std::nullopt;
  }
  Shape whole = x;
  whole.back() = width / 2;
  const Shape one = {rows(x), width / 2};
  for (std::size_t i = 1; i < 3; ++i) {
    if (c.shape(i) == whole || c.shape(i) == one) continue;
    c.error(Code::RDU1009, "operator '{}' needs {} of '{}', which is {}: a row for each row of '{}', and half a head",
            c.op.name, shape_text(one), c.in(i).name, shape_text(c.shape(i)), c.in(0).name);
    return std::nullopt;
  }
  return x;
}

std::optional<Shape> attention_shape(const OperatorCase& c) {
  if (!are_matrices(c)) return std::nullopt;
  const Shape& q = c.shape(0);
  const Shape& k = c.shape(1);
  const Shape& v = c.shape(2);
  const OperatorAttributes& a = c.op.attributes;
  const std::int64_t heads = a.heads, kv_heads = a.kv_heads;
  if (!heads_divide(c, q.back(), heads)) return std::nullopt;
  if (heads % kv_heads != 0) {
    c.error(Code::RDU1034, "operator '{}' has {} heads of queries and {} of keys and values, which do not divide them",
            c.op.name, heads, kv_heads);
    return std::nullopt;
  }
  const std::int64_t width = q.back() / heads;
  if (k.back() != kv_heads * width) {
    c.error(Code::RDU1009, "operator '{}' has {} heads of keys, {} wide as those of '{}': {} columns, and '{}' has {}",
            c.op.name, kv_heads, width, c.in(0).name, kv_heads * width, c.in(1).name, k.back());
    return std::nullopt;
  }
  if (k != v) {
    c.error(Code::RDU1009, "operator '{}' has a value for each key, and '{}' is {}, where '{}' is {}", c.op.name,
            c.in(2).name, shape_text(v), c.in(1).name, shape_text(k));
    return std::nullopt;
  }
  if (!further_fit(c) || !sinks_fit(c)) return std::nullopt;
  if (q.size() != k.size() || !std::equal(q.begin(), q.end() - 2, k.begin())) {
    c.error(Code::RDU1009, "operator '{}' has stacks of different extents in '{}', {}, and '{}', {}", c.op.name,
            c.in(0).name, shape_text(q), c.in(1).name, shape_text(k));
    return std::nullopt;
  }
  const std::int64_t m = rows(q), context = rows(k);
  if (a.causal && context < m) {
    c.error(Code::RDU1036, "operator '{}' is causal and has {} queries, but {} keys: the first {} look at nothing",
            c.op.name, m, context, m - context);
    return std::nullopt;
  }
  const auto scores = element_count(q);
  const auto macs = scores ? checked_multiply(*scores, context) : std::nullopt;
  if (!macs || !checked_multiply(*macs, 2)) {
    c.error(Code::RDU1008, "operator '{}' has {} queries on {} keys, whose multiply-accumulates 64 bits do not count",
            c.op.name, m, context);
    return std::nullopt;
  }
  return q;
}

}  // namespace rdusim
