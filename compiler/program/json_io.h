// How C++ values stand in JSON, both ways, so that the two cannot drift apart.
//
// A struct is an object whose keys a function template `fields(io, value)` of this namespace lists once; it is run with
// an ObjectWriter and with an ObjectReader. What stands otherwise has a Form of its own.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "compiler/ir/enum_names.h"
#include "compiler/support/file.h"
#include "compiler/support/json.h"

namespace rdusim::program_file {

class JsonReader;

// Specialised for types that are not objects of their fields:
//   static Json write(const T&);
//   static void read(JsonReader&, const Json&, T&);
template <class T>
struct Form {};

template <class T>
Json to_value(const T& value);
template <class T>
void from_value(JsonReader& reader, const Json& json, T& out);

// ---- writing --------------------------------------------------------------------------------------------------------

// The keys of one object, in the order of the calls.
class ObjectWriter {
 public:
  template <class T>
  using Ref = const T&;

  template <class T>
  void required(std::string_view key, const T& value) {
    members_.emplace_back(std::string(key), to_value(value));
  }
  // May be absent when read, and then has its type's default.
  template <class T>
  void shown(std::string_view key, const T& value) {
    required(key, value);
  }
  // As shown(), and is left out where it has that default.
  template <class T>
  void brief(std::string_view key, const T& value, const T& usual = {}) {
    if (!(value == usual)) required(key, value);
  }
  template <class T>
  void optional(std::string_view key, const std::optional<T>& value) {
    if (value) required(key, *value);
  }

  Json take() { return Json(std::move(members_)); }

 private:
  JsonObject members_;
};

// ---- reading --------------------------------------------------------------------------------------------------------

// Where the reader is, and what it found wrong. A value that is wrong is reported and left as it was; reading goes on.
class JsonReader {
 public:
  JsonReader(Diagnostics& faults, const std::string& where) : faults_(faults), where_(where) {}

  // "stages[3].ports[0].need: expected ..., found ...". Beyond the limit of diagnostics, faults are only counted: a
  // file of millions of them takes no longer than one of none.
  template <class... Args>
  Diagnostic& fault(const Json& at, fmt::format_string<Args...> format, Args&&... args) {
    if (!wants_detail()) return faults_.error(Code::RDU5007, where_, "further");
    const std::string place = at.line == 0 ? where_ : fmt::format("{}:{}:{}", where_, at.line, at.column);
    const std::string path = this->path();
    return faults_.error(Code::RDU5007, place, "{}{}{}", path, path.empty() ? "" : ": ",
                         fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void expected(const Json& at, fmt::format_string<Args...> what, Args&&... args) {
    if (wants_detail())
      fault(at, "expected {}, found {}", fmt::format(what, std::forward<Args>(args)...), describe(at));
    else
      fault(at, "further");
  }
  bool wants_detail() const { return faults_.error_count() < Diagnostics::limit; }

  // Reads `json` as the member or element of the value at hand that `step` names.
  struct Step {
    std::string_view key;   // of an object
    std::size_t index = 0;  // of an array, where key is empty
  };
  template <class T>
  void read_at(Step step, const Json& json, T& out);

  // What `json` is, for a message: its value where that is short, else its type.
  static std::string describe(const Json& json) {
    if (const auto* text = json.as_string())
      return text->size() <= 40 ? fmt::format("the string '{}'", *text)
                                : fmt::format("a string of {} bytes", text->size());
    if (!json.as_array() && !json.as_object() && !json.is_null()) return to_text(json, true);
    return json.is_null() ? "null" : fmt::format("an {}", json.type_name());
  }

 private:
  std::string path() const {
    std::string out;
    for (const Step& step : steps_) {
      if (step.key.empty()) {
        out += fmt::format("[{}]", step.index);
      } else {
        if (!out.empty()) out += '.';
        out += step.key;
      }
    }
    return out;
  }

  Diagnostics& faults_;
  const std::string& where_;
  std::vector<Step> steps_;
};

// The keys of one object; finish() refuses what was not asked for.
class ObjectReader {
 public:
  template <class T>
  using Ref = T&;

  // Requires json.as_object().
  ObjectReader(JsonReader& reader, const Json& json) : reader_(reader), json_(json) {}

  template <class T>
  void required(std::string_view key, T& out) {
    if (const Json* value = member(key)) {
      reader_.read_at({key}, *value, out);
    } else {
      reader_.fault(json_, "the key '{}' is missing", key);
    }
  }
  template <class T>
  void shown(std::string_view key, T& out) {
    if (const Json* value = member(key)) reader_.read_at({key}, *value, out);
  }
  template <class T>
  void brief(std::string_view key, T& out, const T& usual = {}) {
    out = usual;
    shown(key, out);
  }
  template <class T>
  void optional(std::string_view key, std::optional<T>& out) {
    if (const Json* value = member(key)) reader_.read_at({key}, *value, out.emplace());
  }

  void finish() {
    for (const auto& [key, value] : *json_.as_object()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      const std::string_view close = reader_.wants_detail() ? nearest(key, known_) : std::string_view();
      Diagnostic& d = reader_.fault(value, "unknown key '{}'", key);
      if (!close.empty()) d.suggest("did you mean '{}'?", close);
    }
  }

 private:
  const Json* member(std::string_view key) {
    known_.push_back(key);
    return json_.find(key);
  }

  JsonReader& reader_;
  const Json& json_;
  std::vector<std::string_view> known_;
};

// ---- values ---------------------------------------------------------------------------------------------------------

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsPair : std::false_type {};
template <class A, class B>
struct IsPair<std::pair<A, B>> : std::true_type {};
template <class T>
struct IsId : std::false_type {};
template <class Tag>
struct IsId<Id<Tag>> : std::true_type {};
template <class T>
struct IsRun : std::false_type {};
template <class T>
struct IsRun<Run<T>> : std::true_type {};

// JSON has no number for these.
inline Json number_to_value(double number) {
  if (std::isnan(number)) return Json("nan");
  if (std::isinf(number)) return Json(number > 0 ? "inf" : "-inf");
  return Json(number);
}
inline std::optional<double> number_from_value(const Json& json) {
  if (const auto number = json.as_number()) return number;
  const std::string* text = json.as_string();
  if (text == nullptr) return std::nullopt;
  if (*text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (*text == "inf") return std::numeric_limits<double>::infinity();
  if (*text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

template <class T>
Json to_value(const T& value) {
  if constexpr (requires { Form<T>::write(value); }) {
    return Form<T>::write(value);
  } else if constexpr (std::is_enum_v<T>) {
    return Json(enum_name(value));
  } else if constexpr (std::same_as<T, bool> || std::same_as<T, std::string>) {
    return Json(value);
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>) return Json(std::int64_t{value});
    return Json(static_cast<std::uint64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return number_to_value(value);
  } else if constexpr (IsId<T>::value) {
    return Json(value.value);
  } else if constexpr (IsVector<T>::value) {
    JsonArray items;
    items.reserve(value.size());
    for (const auto& element : value) items.push_back(to_value(element));
    return Json(std::move(items));
  } else if constexpr (IsPair<T>::value) {
    return Json(JsonArray{to_value(value.first), to_value(value.second)});
  } else if constexpr (IsRun<T>::value) {
    return Json(JsonArray{to_value(value.repeat), to_value(value.value)});
  } else {
    ObjectWriter io;
    fields(io, value);
    return io.take();
  }
}

template <class T>
void integer_from_value(JsonReader& reader, const Json& json, T& out) {
  if constexpr (std::is_signed_v<T>) {
    if (const auto value = json.as_int64(); value && std::in_range<T>(*value)) {
      out = static_cast<T>(*value);
      return;
    }
  } else {
    if (const auto value = json.as_uint64(); value && std::in_range<T>(*value)) {
      out = static_cast<T>(*value);
      return;
    }
  }
  reader.expected(json, "an integer from {} to {}", std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
}

template <class A, class B>
void two_from_value(JsonReader& reader, const Json& json, A& first, B& second, const char* what) {
  const JsonArray* items = json.as_array();
  if (items == nullptr || items->size() != 2) {
    reader.expected(json, "{}", what);
    return;
  }
  reader.read_at({{}, 0}, (*items)[0], first);
  reader.read_at({{}, 1}, (*items)[1], second);
}

template <class T>
void from_value(JsonReader& reader, const Json& json, T& out) {
  if constexpr (requires { Form<T>::read(reader, json, out); }) {
    Form<T>::read(reader, json, out);
  } else if constexpr (std::is_enum_v<T>) {
    const std::string* text = json.as_string();
    const auto found = text != nullptr ? enum_named<T>(*text) : std::nullopt;
    if (found) {
      out = *found;
    } else {
      const auto names = enum_names<T>();
      reader.expected(json, "one of {}", fmt::join(names, ", "));
    }
  } else if constexpr (std::same_as<T, bool>) {
    if (const bool* value = json.as_bool()) {
      out = *value;
    } else {
      reader.expected(json, "true or false");
    }
  } else if constexpr (std::same_as<T, std::string>) {
    if (const std::string* value = json.as_string()) {
      out = *value;
    } else {
      reader.expected(json, "a string");
    }
  } else if constexpr (std::is_integral_v<T>) {
    integer_from_value(reader, json, out);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (const auto value = number_from_value(json)) {
      out = *value;
    } else {
      reader.expected(json, "a number, \"inf\", \"-inf\" or \"nan\"");
    }
  } else if constexpr (IsId<T>::value) {
    integer_from_value(reader, json, out.value);
  } else if constexpr (IsVector<T>::value) {
    const JsonArray* items = json.as_array();
    if (items == nullptr) {
      reader.expected(json, "an array");
      return;
    }
    out.clear();
    out.reserve(items->size());
    for (std::size_t i = 0; i < items->size(); ++i) reader.read_at({{}, i}, (*items)[i], out.emplace_back());
  } else if constexpr (IsPair<T>::value) {
    two_from_value(reader, json, out.first, out.second, "an array of two");
  } else if constexpr (IsRun<T>::value) {
    two_from_value(reader, json, out.repeat, out.value, "[repeat, value]");
  } else {
    if (json.as_object() == nullptr) {
      reader.expected(json, "an object");
      return;
    }
    ObjectReader io(reader, json);
    fields(io, out);
    io.finish();
  }
}

template <class T>
void JsonReader::read_at(Step step, const Json& json, T& out) {
  steps_.push_back(step);
  from_value(*this, json, out);
  steps_.pop_back();
}

}  // namespace rdusim::program_file
