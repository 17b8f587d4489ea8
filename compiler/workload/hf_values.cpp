#include "compiler/workload/hf_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/support/file.h"

namespace rdusim {

std::string HfValues::place(const Json& value) const {
  return value.line == 0 ? where_ : fmt::format("{}:{}:{}", where_, value.line, value.column);
}

std::string HfValues::shown(std::string_view key) const {
  return inside_.empty() ? std::string(key) : fmt::format("{}.{}", inside_, key);
}

const Json* HfValues::find(std::string_view key) {
  asked_.emplace(key);
  const Json* value = object_.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void HfValues::missing(std::string_view key) {
  out_.error(Code::RDU1005, place(object_), "'{}' is missing", shown(key));
}

Diagnostic& HfValues::wrong_kind(std::string_view key, const Json& value, std::string_view wanted) {
  return out_.error(Code::RDU1006, place(value), "'{}' is {}, where {} is asked for", shown(key), value.type_name(),
                    wanted);
}

Diagnostic& HfValues::error(Code code, std::string_view key, std::string_view message) {
  const Json* value = object_.find(key);
  return out_.error(code, place(value == nullptr ? object_ : *value), "{}", message);
}

std::optional<std::int64_t> HfValues::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->as_int64() && !value->as_uint64()) {
    wrong_kind(key, *value, "a whole number");
    return std::nullopt;
  }
  const auto n = value->as_int64();
  if (!n || *n < low || *n > high) {
    out_.error(Code::RDU1007, place(*value), "'{}' is {}; {} to {} is accepted", shown(key),
               n ? std::to_string(*n) : "beyond 64 bits", low, high);
    return std::nullopt;
  }
  return n;
}

std::optional<double> HfValues::number(std::string_view key, double above, double high) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto n = value->as_number();
  if (!n) {
    wrong_kind(key, *value, "a number");
    return std::nullopt;
  }
  if (!(*n > above && *n <= high)) {
    out_.error(Code::RDU1007, place(*value), "'{}' is {}; above {} and up to {} is accepted", shown(key), *n, above,
               high);
    return std::nullopt;
  }
  return n;
}

std::optional<bool> HfValues::boolean(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const bool* b = value->as_bool()) return *b;
  wrong_kind(key, *value, "true or false");
  return std::nullopt;
}

std::optional<std::string> HfValues::text(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const std::string* s = value->as_string()) return *s;
  wrong_kind(key, *value, "a string");
  return std::nullopt;
}

std::optional<std::vector<std::string>> HfValues::texts(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const JsonArray* list = value->as_array();
  const bool strings = list != nullptr &&
                       std::all_of(list->begin(), list->end(), [](const Json& j) { return j.as_string() != nullptr; });
  if (!strings) {
    wrong_kind(key, *value, "an array of strings");
    return std::nullopt;
  }
  std::vector<std::string> out;
  for (const Json& j : *list) out.push_back(*j.as_string());
  return out;
}

std::vector<double> HfValues::numbers(std::string_view key, double above, double high) {
  const Json* value = find(key);
  if (value == nullptr) {
    missing(key);
    return {};
  }
  const JsonArray* list = value->as_array();
  if (list == nullptr ||
      !std::all_of(list->begin(), list->end(), [](const Json& j) { return j.as_number().has_value(); })) {
    wrong_kind(key, *value, "an array of numbers");
    return {};
  }
  std::vector<double> out;
  for (const Json& j : *list) {
    out.push_back(*j.as_number());
    if (out.back() > above && out.back() <= high) continue;
    out_.error(Code::RDU1007, place(j), "a number of '{}' is {}; above {} and up to {} is accepted", shown(key),
               out.back(), above, high);
    return {};
  }
  return out;
}

std::int64_t HfValues::required_integer(std::string_view key, std::int64_t low, std::int64_t high) {
  if (find(key) == nullptr) missing(key);
  return integer(key, low, high).value_or(0);
}

double HfValues::required_number(std::string_view key, double above, double high) {
  if (find(key) == nullptr) missing(key);
  return number(key, above, high).value_or(0);
}

void HfValues::must_be(std::string_view key, bool value) {
  const auto is = boolean(key);
  if (is && *is != value)
    error(Code::RDU1007, key, fmt::format("'{}' is {}; this architecture has it {} only", shown(key), *is, value));
}

void HfValues::warn_of_unread(std::vector<std::string_view> harmless) {
  const JsonObject* members = object_.as_object();
  if (members == nullptr) return;
  std::vector<std::string_view> known(asked_.begin(), asked_.end());
  for (const auto& [key, value] : *members) {
    if (asked_.contains(key) || std::find(harmless.begin(), harmless.end(), key) != harmless.end()) continue;
    Diagnostic& d = out_.warning(Code::RDU1044, place(value), "'{}' is not read", shown(key));
    if (const auto near = nearest(key, known); !near.empty()) d.suggest("did you mean '{}'?", near);
  }
}

}  // namespace rdusim
