#include "compiler/workload/fill_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "compiler/support/split_mix.h"
#include "compiler/support/units.h"
#include "compiler/workload/data_file.h"
#include "compiler/workload/fill_rules.h"
#include "compiler/workload/float_bits.h"
#include "compiler/workload/operator_graph.h"
#include "compiler/workload/shape_text.h"
#include "compiler/workload/slice_runs.h"

namespace rdusim {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as the host keeps them");
__extension__ using Wide = unsigned __int128;

Diagnostics failure(Code code, const std::string& message) {
  Diagnostics out;
  out.error(code, "", "{}", message);
  return out;
}

// One element of the dtype; false where the value is beyond it.
bool put(std::int64_t value, DType dtype, std::byte* at) {
  if (is_integer(dtype)) {
    if (!integer_range(dtype).holds(value)) return false;
    std::memcpy(at, &value, bytes_of(dtype));
    return true;
  }
  const auto code = round_to_float(static_cast<double>(value), float_format(dtype));
  if (code) std::memcpy(at, &*code, bytes_of(dtype));
  return code.has_value();
}
bool put(double value, DType dtype, std::byte* at) {
  const auto code = round_to_float(value, float_format(dtype));
  if (code) std::memcpy(at, &*code, bytes_of(dtype));
  return code.has_value();
}

struct SliceWriter {
  DType dtype;
  const SliceRuns& runs;
  std::span<std::byte> out;
  const std::string& folder;
  std::size_t size = bytes_of(dtype);
  Diagnostics fault = {};

  std::byte* at(std::int64_t element) const { return out.data() + static_cast<std::size_t>(element) * size; }

  bool beyond() {
    fault = failure(Code::RDU1022, fmt::format("a value of the fill is beyond {}", name_of(dtype)));
    return false;
  }

  template <class ValueAt>  // value_at(p): int64 or double
  bool each(ValueAt value_at) {
    return runs.for_each([&](std::int64_t p, std::int64_t first, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        if (!put(value_at(p + i), dtype, at(first + i))) return beyond();
      }
      return true;
    });
  }

  bool operator()(const ZeroFill&) {
    std::fill(out.begin(), out.end(), std::byte{0});
    return true;
  }

  bool operator()(const ConstantFill& fill) {
    if (out.empty()) return true;
    const bool fits = is_integer(dtype) ? put(fill.integer, dtype, out.data()) : put(fill.value, dtype, out.data());
    if (!fits) return beyond();
    for (std::size_t done = size; done < out.size(); done *= 2) {
      std::memcpy(out.data() + done, out.data(), std::min(done, out.size() - done));
    }
    return true;
  }

  bool operator()(const PatternFill& fill) {
    if (fill.modulus < 1) return beyond();
    constexpr std::int64_t table_elements = 4096;
    const std::int64_t elements = static_cast<std::int64_t>(out.size() / size);
    const auto value = [&](std::int64_t phase) { return checked_add(phase, -fill.shift); };
    if (fill.shift == std::numeric_limits<std::int64_t>::min()) return beyond();
    if (fill.modulus > table_elements || elements < fill.modulus) {
      return runs.for_each([&](std::int64_t p, std::int64_t first, std::int64_t length) {
        std::int64_t phase = p % fill.modulus;
        for (std::int64_t i = 0; i < length; ++i) {
          const auto v = value(phase);
          if (!v || !put(*v, dtype, at(first + i))) return beyond();
          if (++phase == fill.modulus) phase = 0;
        }
        return true;
      });
    }
    // Whole periods, encoded once; runs are copied from them.
    const std::int64_t periods = std::max<std::int64_t>(1, table_elements / fill.modulus);
    const std::size_t period_bytes = static_cast<std::size_t>(fill.modulus) * size;
    std::vector<std::byte> table(static_cast<std::size_t>(periods) * period_bytes);
    for (std::int64_t phase = 0; phase < fill.modulus; ++phase) {
      const auto v = value(phase);
      if (!v || !put(*v, dtype, table.data() + static_cast<std::size_t>(phase) * size)) return beyond();
    }
    for (std::size_t done = period_bytes; done < table.size(); done += period_bytes) {
      std::memcpy(table.data() + done, table.data(), period_bytes);
    }
    return runs.for_each([&](std::int64_t p, std::int64_t first, std::int64_t length) {
      auto from = static_cast<std::size_t>(p % fill.modulus) * size;
      std::byte* to = at(first);
      for (auto left = static_cast<std::size_t>(length) * size; left != 0;) {
        const std::size_t part = std::min(left, table.size() - from);
        std::memcpy(to, table.data() + from, part);
        to += part;
        left -= part;
        from = 0;
      }
      return true;
    });
  }

  bool operator()(const ValuesFill& fill) {
    if (is_integer(dtype)) return each([&](std::int64_t p) { return fill.integers[static_cast<std::size_t>(p)]; });
    return each([&](std::int64_t p) { return fill.floats[static_cast<std::size_t>(p)]; });
  }

  bool operator()(const RandomFill& fill) {
    if (!(fill.low <= fill.high)) return beyond();
    if (is_integer(dtype)) {
      constexpr double exact = 9007199254740992.0;  // 2^53
      if (fill.low < -exact || fill.high > exact) return beyond();
      const auto low = static_cast<std::int64_t>(fill.low);
      const auto values = static_cast<std::uint64_t>(static_cast<std::int64_t>(fill.high) - low) + 1;
      return each([&](std::int64_t p) {
        const Wide scaled = Wide{split_mix_64(fill.seed, static_cast<std::uint64_t>(p))} * values;
        return low + static_cast<std::int64_t>(static_cast<std::uint64_t>(scaled >> 64U));
      });
    }
    const double width = fill.high - fill.low;
    return each([&](std::int64_t p) {
      const double unit = static_cast<double>(split_mix_64(fill.seed, static_cast<std::uint64_t>(p)) >> 11U) * 0x1p-53;
      return std::min(fill.low + unit * width, fill.high);
    });
  }

  bool operator()(const WholeTensorRandomFill&) {
    fault = failure(Code::RDU4105, "a vendor's whole-tensor random fill can be neither sliced nor computed here");
    return false;
  }

  bool operator()(const FileFill& fill) {
    const auto file = open_unchanged(fill, folder);
    if (!file) {
      fault = file.diagnostics();
      return false;
    }
    const auto read = [&](std::int64_t place, std::span<std::byte> to) {
      const auto offset = checked_multiply(place, static_cast<std::int64_t>(size));
      const std::uint64_t from = fill.data_offset + static_cast<std::uint64_t>(offset.value_or(0));
      if (offset && from >= fill.data_offset && file->read(from, to)) return true;
      fault = failure(Code::RDU1001, fmt::format("'{}' cannot be read at byte {}", fill.path, from));
      return false;
    };
    return runs.for_each([&](std::int64_t p, std::int64_t first, std::int64_t length) {
      if (fill.extents.empty()) return read(p, {at(first), static_cast<std::size_t>(length) * size});
      return in_steps(fill, p, first, length, read);
    });
  }

  // Elements [p, p + length) of a fill in an order of its own, to those from `first` on: a read for each run of the last
  // digit, of which every stride-th element is kept.
  template <class Read>
  bool in_steps(const FileFill& fill, std::int64_t p, std::int64_t first, std::int64_t length, Read read) {
    const std::int64_t last = fill.extents.back(), stride = fill.strides.back();
    std::vector<std::byte> run;
    while (length > 0) {
      std::int64_t place = 0, rest = p;
      for (std::size_t d = fill.extents.size(); d-- > 0; rest /= fill.extents[d])
        place += rest % fill.extents[d] * fill.strides[d];
      const std::int64_t count = std::min(length, last - p % last);
      run.resize(static_cast<std::size_t>((count - 1) * stride + 1) * size);
      if (!read(place, run)) return false;
      for (std::int64_t i = 0; i < count; ++i)
        std::memcpy(at(first + i), run.data() + static_cast<std::size_t>(i * stride) * size, size);
      p += count, first += count, length -= count;
    }
    return true;
  }

  bool operator()(const ExternalFill&) {
    fault = failure(Code::RDU6002, "an external tensor has no elements until the run is given them");
    return false;
  }
};

}  // namespace

std::string why_not_sliceable(const Fill& fill, const std::vector<std::int64_t>& whole) {
  if (std::holds_alternative<WholeTensorRandomFill>(fill)) {
    return "a whole-tensor random fill gives each element a value that depends on the whole shape";
  }
  if (const auto* values = std::get_if<ValuesFill>(&fill)) {
    const std::size_t given = std::max(values->integers.size(), values->floats.size());
    const auto count = element_count(whole);
    if (!count || given != static_cast<std::uint64_t>(*count)) {
      return fmt::format("the fill lists {} values for a tensor of {}", given, shape_text(whole));
    }
  }
  return {};
}

Result<bool> read_fill(const Fill& fill, DType dtype, const std::vector<std::int64_t>& whole,
                       const std::vector<std::int64_t>& offset, const std::vector<std::int64_t>& shape,
                       const std::string& folder, std::span<std::byte> out) {
  const bool inside = element_count(whole).has_value() && SliceRuns::lie_within(whole, offset, shape);
  if (!inside || out.size() != static_cast<std::size_t>(element_count(shape).value_or(0)) * bytes_of(dtype)) {
    return failure(Code::RDU4105,
                   fmt::format("a slice of {} at {} does not lie in a tensor of {}, or {} bytes are not its "
                               "size",
                               shape_text(shape), shape_text(offset), shape_text(whole), out.size()));
  }
  if (const std::string why = why_not_sliceable(fill, whole); !why.empty()) return failure(Code::RDU4105, why);
  if (const auto* values = std::get_if<ValuesFill>(&fill);
      values != nullptr && (is_integer(dtype) ? values->integers.empty() : values->floats.empty())) {
    return failure(Code::RDU4105, fmt::format("the fill lists no values of {}'s kind", name_of(dtype)));
  }
  if (const auto* file = std::get_if<FileFill>(&fill);
      file != nullptr && !elements_reached(*file, *element_count(whole)))
    return failure(Code::RDU1022, "the steps of a fill from a file are no order of its tensor's elements");
  const SliceRuns runs(whole, offset, shape);
  SliceWriter writer{dtype, runs, out, folder};
  if (!std::visit(std::ref(writer), fill)) return writer.fault;
  return true;
}

bool can_map(const Fill& fill, DType dtype) {
  const auto* in_file = std::get_if<FileFill>(&fill);
  return in_file != nullptr && in_file->extents.empty() && in_file->data_offset % bytes_of(dtype) == 0;
}

Result<std::optional<ElementBytes>> map_fill(const Fill& fill, DType dtype, const std::vector<std::int64_t>& whole,
                                             const std::string& folder) {
  const auto* in_file = std::get_if<FileFill>(&fill);
  const auto elements = element_count(whole);
  if (!can_map(fill, dtype) || !elements) return std::optional<ElementBytes>();
  const auto file = open_unchanged(*in_file, folder);
  if (!file) return file.diagnostics();
  return file->map(in_file->data_offset, static_cast<std::uint64_t>(*elements) * bytes_of(dtype));
}

}  // namespace rdusim
