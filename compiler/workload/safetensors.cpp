#include "compiler/workload/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "compiler/support/file.h"
#include "compiler/support/json.h"
#include "compiler/support/units.h"
#include "compiler/workload/shape_text.h"

namespace rdusim {
namespace {

struct DTypeName {
  std::string_view name;
  std::optional<DType> dtype;
  std::int64_t bits;
};
// All that the reference implementation defines; a name that is not here may come with a later version of the format.
constexpr std::array<DTypeName, 16> dtype_names = {{{"BOOL", {}, 8},
                                                    {"U8", {}, 8},
                                                    {"I8", DType::int8, 8},
                                                    {"F8_E5M2", DType::fp8_e5m2, 8},
                                                    {"F8_E4M3", DType::fp8_e4m3, 8},
                                                    {"F8_E8M0", {}, 8},
                                                    {"I16", {}, 16},
                                                    {"U16", {}, 16},
                                                    {"F16", {}, 16},
                                                    {"BF16", DType::bf16, 16},
                                                    {"I32", DType::int32, 32},
                                                    {"U32", {}, 32},
                                                    {"F32", DType::fp32, 32},
                                                    {"I64", DType::int64, 64},
                                                    {"U64", {}, 64},
                                                    {"F64", {}, 64}}};

const DTypeName* find_dtype(std::string_view name) {
  const auto* const found =
      std::find_if(dtype_names.begin(), dtype_names.end(), [&](const DTypeName& d) { return d.name == name; });
  return found == dtype_names.end() ? nullptr : found;
}

class HeaderReader {
 public:
  HeaderReader(std::uint64_t data_bytes, const std::string& file, const std::string& where)
      : data_bytes_(data_bytes), file_(file), where_(where) {}

  template <class... Args>
  Diagnostic& malformed(fmt::format_string<Args...> format, Args&&... args) {
    return faults_.error(Code::RDU1019, where_, "'{}' is not a well-formed safetensors file: {}", file_,
                         fmt::format(format, std::forward<Args>(args)...));
  }

  Result<SafetensorsIndex> read(std::string_view text) {
    if (!text.starts_with('{')) {
      malformed("its header does not start with '{{'");
      return faults_;
    }
    const auto values =
        std::count_if(text.begin(), text.end(), [](char c) { return c == ',' || c == '[' || c == '{'; });
    if (static_cast<std::uint64_t>(values) > safetensors_values_limit) {
      malformed("its header has {} values; the limit is {}", values, safetensors_values_limit);
      return faults_;
    }
    const auto json = parse_json(text, file_ + " (header)", Code::RDU1019);
    if (!json) {
      Diagnostic& d = malformed("its header is not JSON");
      for (const Diagnostic& inner : json.diagnostics().list()) d.note(inner.where, "{}", inner.message);
      return faults_;
    }
    SafetensorsIndex index;
    for (const auto& [name, value] : *json->as_object()) {
      if (name == "__metadata__") {
        check_metadata(value);
      } else if (auto tensor = read_tensor(name, value)) {
        index.tensors.push_back(std::move(*tensor));
      }
    }
    if (!faults_.has_errors()) check_tiling(index.tensors);
    if (faults_.has_errors()) return faults_;
    return index;
  }

 private:
  void check_metadata(const Json& value) {
    const JsonObject* object = value.as_object();
    const bool strings = object != nullptr && std::all_of(object->begin(), object->end(),
                                                          [](const JsonMember& m) { return m.second.as_string(); });
    if (!strings) malformed("__metadata__ is not an object of strings");
  }

  std::optional<SafetensorsTensor> read_tensor(const std::string& name, const Json& value) {
    SafetensorsTensor out;
    out.name = name;
    const Json* dtype = value.find("dtype");
    const Json* shape = value.find("shape");
    const Json* offsets = value.find("data_offsets");
    if (dtype == nullptr || shape == nullptr || offsets == nullptr) {
      malformed("tensor '{}' lacks {}", name,
                dtype == nullptr   ? "'dtype'"
                : shape == nullptr ? "'shape'"
                                   : "'data_offsets'");
      return std::nullopt;
    }
    if (dtype->as_string() == nullptr || shape->as_array() == nullptr) {
      malformed("tensor '{}' has a {} of the wrong type", name, dtype->as_string() == nullptr ? "dtype" : "shape");
      return std::nullopt;
    }
    out.dtype = *dtype->as_string();
    std::optional<std::int64_t> elements = 1;
    bool none = false;
    for (const Json& extent : *shape->as_array()) {
      const auto n = extent.as_int64();
      if (!n || *n < 0) {
        malformed("tensor '{}' has an extent that is not a whole number of 0 or more", name);
        return std::nullopt;
      }
      out.shape.push_back(*n);
      none = none || *n == 0;
      if (elements) elements = checked_multiply(*elements, *n);
    }
    if (none) elements = 0;
    const JsonArray* range = offsets->as_array();
    const auto begin = range != nullptr && range->size() == 2 ? (*range)[0].as_uint64() : std::nullopt;
    const auto end = begin ? (*range)[1].as_uint64() : std::nullopt;
    if (!end || *begin > *end) {
      malformed("tensor '{}' has data_offsets that are not [begin, end] with begin <= end", name);
      return std::nullopt;
    }
    out.begin = *begin;
    out.end = *end;
    if (out.end > data_bytes_) {
      malformed("tensor '{}' ends at byte {} of its data, which has {} bytes", name, out.end, data_bytes_);
      return std::nullopt;
    }
    if (const DTypeName* known = find_dtype(out.dtype)) {
      const auto bytes = elements ? checked_multiply(*elements, known->bits / 8) : std::nullopt;
      if (!bytes || static_cast<std::uint64_t>(*bytes) != out.end - out.begin) {
        malformed("tensor '{}' has {} bytes, where {} of {} needs {}", name, out.end - out.begin, shape_text(out.shape),
                  out.dtype, bytes ? std::to_string(*bytes) : "more than 2^63");
        return std::nullopt;
      }
    }
    return out;
  }

  void check_tiling(const std::vector<SafetensorsTensor>& tensors) {
    std::vector<const SafetensorsTensor*> order;
    for (const SafetensorsTensor& t : tensors) order.push_back(&t);
    std::stable_sort(order.begin(), order.end(), [](const SafetensorsTensor* a, const SafetensorsTensor* b) {
      return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
    });
    std::uint64_t at = 0;
    std::string_view before;
    for (const SafetensorsTensor* t : order) {
      if (t->begin > at) malformed("bytes {} to {} of its data belong to no tensor", at, t->begin);
      if (t->begin < at) malformed("tensors '{}' and '{}' overlap at byte {} of the data", before, t->name, t->begin);
      if (t->end >= at) before = t->name;
      at = std::max(at, t->end);
    }
    if (at != data_bytes_) {
      malformed("bytes {} to {} of its data belong to no tensor", at, data_bytes_);
    }
  }

  std::uint64_t data_bytes_;
  const std::string& file_;
  const std::string& where_;
  Diagnostics faults_;
};

}  // namespace

std::optional<DType> safetensors_dtype(std::string_view name) {
  const DTypeName* found = find_dtype(name);
  return found == nullptr ? std::nullopt : found->dtype;
}

Result<SafetensorsIndex> parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                                  const std::string& file, const std::string& where) {
  return HeaderReader(data_bytes, file, where).read(json);
}

Result<SafetensorsIndex> read_safetensors_index(const DataFile& data, const std::string& file,
                                                const std::string& where) {
  const auto fault = [&](Code code, std::string_view what) {
    Diagnostics out;
    out.error(code, where, "'{}' {}", file, what);
    return out;
  };
  constexpr std::uint64_t prefix = 8;
  std::array<std::byte, prefix> start{};
  if (data.size() < prefix)
    return fault(Code::RDU1019, "is not a well-formed safetensors file: it ends within its first eight bytes");
  if (!data.read(0, start)) return fault(Code::RDU1001, "cannot be read");
  std::uint64_t length = 0;
  for (std::size_t i = prefix; i-- > 0;) length = length << 8U | std::to_integer<std::uint64_t>(start[i]);
  if (length > safetensors_header_limit) {
    return fault(Code::RDU1019,
                 fmt::format("is not a well-formed safetensors file: its header says it has {} bytes; the "
                             "limit is {}",
                             length, safetensors_header_limit));
  }
  if (length > data.size() - prefix) {
    return fault(
        Code::RDU1019,
        fmt::format("is not a well-formed safetensors file: its header says it has {} bytes, but only {} follow",
                    length, data.size() - prefix));
  }
  std::string json(static_cast<std::size_t>(length), '\0');
  if (!data.read(prefix, std::as_writable_bytes(std::span(json)))) return fault(Code::RDU1001, "cannot be read");
  auto index = parse_safetensors_header(json, data.size() - prefix - length, file, where);
  if (index) index->data_offset = prefix + length;
  return index;
}

Result<std::uint64_t> safetensors_data_offset(const SafetensorsIndex& index, const std::string& tensor, DType dtype,
                                              const std::vector<std::int64_t>& shape, const std::string& file,
                                              const std::string& where) {
  Diagnostics out;
  const auto found = std::find_if(index.tensors.begin(), index.tensors.end(),
                                  [&](const SafetensorsTensor& t) { return t.name == tensor; });
  if (found == index.tensors.end()) {
    Diagnostic& d = out.error(Code::RDU1020, where, "'{}' has no tensor '{}'", file, tensor);
    constexpr std::size_t most = 10'000;  // names looked through for a likely one
    std::vector<std::string_view> names;
    for (const SafetensorsTensor& t : index.tensors) {
      if (names.size() < most) names.push_back(t.name);
    }
    const std::string_view likely = nearest(tensor, names);
    if (!likely.empty()) {
      d.suggest("did you mean '{}'?", likely);
    } else if (names.size() <= 8) {
      d.suggest("it has: {}", fmt::format("{}", fmt::join(names, ", ")));
    }
    return out;
  }
  if (safetensors_dtype(found->dtype) != dtype) {
    out.error(Code::RDU1020, where, "tensor '{}' of '{}' has the dtype {}, where {} is asked for", tensor, file,
              found->dtype, name_of(dtype));
  }
  if (found->shape != shape) {
    out.error(Code::RDU1020, where, "tensor '{}' of '{}' has the shape {}, where {} is asked for", tensor, file,
              shape_text(found->shape), shape_text(shape));
  }
  if (out.has_errors()) return out;
  return index.data_offset + found->begin;
}

}  // namespace rdusim
