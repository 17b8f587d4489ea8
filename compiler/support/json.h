// JSON, in and out, without the library's header in sight.
//
// Reading keeps the order of keys and the position of every value, refuses a key that stands twice, a number that fits
// neither int64, uint64 nor double, bytes that are not UTF-8, and nesting or sizes beyond the limits. Writing is deterministic: keys in the
// order in which they were added, two spaces of indent, shortest exact doubles, no trailing space, one newline at the end.
// A double always has a '.' or an 'e', so that it reads back as one; infinities and NaN, which JSON lacks, become null;
// bytes of a string that is not UTF-8 become U+FFFD.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/support/result.h"

namespace rdusim {

class Json;
using JsonArray = std::vector<Json>;
using JsonMember = std::pair<std::string, Json>;
using JsonObject = std::vector<JsonMember>;  // in order; keys are unique

class Json {
 public:
  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool v) : value_(v) {}
  Json(std::int64_t v) : value_(v) {}
  Json(std::uint64_t v) : value_(v) {}
  Json(int v) : value_(std::int64_t{v}) {}
  Json(std::uint32_t v) : value_(std::uint64_t{v}) {}
  Json(double v) : value_(v) {}
  Json(std::string v) : value_(std::move(v)) {}
  Json(std::string_view v) : value_(std::string(v)) {}
  Json(const char* v) : value_(std::string(v)) {}
  Json(JsonArray v) : value_(std::move(v)) {}
  Json(JsonObject v) : value_(std::move(v)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  const bool* as_bool() const { return std::get_if<bool>(&value_); }
  const double* as_double() const { return std::get_if<double>(&value_); }
  const std::string* as_string() const { return std::get_if<std::string>(&value_); }
  const JsonArray* as_array() const { return std::get_if<JsonArray>(&value_); }
  const JsonObject* as_object() const { return std::get_if<JsonObject>(&value_); }
  JsonArray* as_array() { return std::get_if<JsonArray>(&value_); }
  JsonObject* as_object() { return std::get_if<JsonObject>(&value_); }
  std::optional<std::int64_t> as_int64() const;    // integers that fit; never a double
  std::optional<std::uint64_t> as_uint64() const;
  std::optional<double> as_number() const;         // any number
  std::string_view type_name() const;              // "null", "boolean", "integer", "number", "string", "array", "object"

  const Json* find(std::string_view key) const;    // null where this is no object or has no such key

  // Adds a member (writing). Requires that this is null or an object without that key. Returns *this.
  Json& set(std::string key, Json value);
  // Adds an element (writing). Requires that this is null or an array. Returns *this.
  Json& push(Json value);

  // 1-based position in the text that it was read from; 0 where it was made.
  std::uint32_t line = 0;
  std::uint32_t column = 0;

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, JsonArray, JsonObject> value_;
};

struct JsonLimits {
  std::size_t max_depth = 64;
  std::size_t max_bytes = std::size_t{1} << 31;
};

// Errors: `code` at where:line:column.
Result<Json> parse_json(std::string_view text, const std::string& where, Code code, const JsonLimits& limits = {});

// `compact`: on one line, without the newline at the end.
std::string to_text(const Json& value, bool compact = false);

}  // namespace rdusim
