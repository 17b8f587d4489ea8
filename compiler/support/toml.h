// TOML 1.0, in, without the library's header in sight.
//
// Reading keeps the position of every key and value, and the order of the file. Floats are the doubles nearest to what
// is written. Beside what TOML forbids, nesting deeper than 32 is refused: of arrays and inline tables, and of the
// tables that one dotted key makes.
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

class TomlValue;
struct TomlMember;
using TomlArray = std::vector<TomlValue>;
using TomlTable = std::vector<TomlMember>;  // in the order of the file; keys are unique

class TomlValue {
 public:
  struct DateOrTime {};  // there is one; nothing here reads it

  TomlValue() = default;
  explicit TomlValue(bool v);
  explicit TomlValue(std::int64_t v);
  explicit TomlValue(double v);
  explicit TomlValue(std::string v);
  explicit TomlValue(TomlArray v);
  explicit TomlValue(TomlTable v);

  const bool* as_boolean() const { return std::get_if<bool>(&value_); }
  const std::int64_t* as_integer() const { return std::get_if<std::int64_t>(&value_); }
  const double* as_float() const {
    return std::get_if<double>(&value_);
  }  // written with a point, an exponent, inf or nan
  const std::string* as_string() const { return std::get_if<std::string>(&value_); }
  const TomlArray* as_array() const { return std::get_if<TomlArray>(&value_); }
  const TomlTable* as_table() const { return std::get_if<TomlTable>(&value_); }
  TomlArray* as_array() { return std::get_if<TomlArray>(&value_); }
  TomlTable* as_table() { return std::get_if<TomlTable>(&value_); }
  std::string_view type_name() const;  // "a boolean", "an integer", "a float", "a string", "an array", "a table", ...

  const TomlValue* find(std::string_view key) const;  // null where this is no table or has no such key
  TomlValue* find(std::string_view key) { return const_cast<TomlValue*>(std::as_const(*this).find(key)); }

  // 1-based, of the first character (of a table: of its header); columns count code points.
  std::uint32_t line = 1;
  std::uint32_t column = 1;

 private:
  std::variant<DateOrTime, bool, std::int64_t, double, std::string, TomlArray, TomlTable> value_;
};

struct TomlMember {
  std::string key;
  std::uint32_t line = 1;  // of the key
  std::uint32_t column = 1;
  TomlValue value;
};

// Here, and not in the class, where a member is not yet complete.
inline TomlValue::TomlValue(bool v) : value_(v) {}
inline TomlValue::TomlValue(std::int64_t v) : value_(v) {}
inline TomlValue::TomlValue(double v) : value_(v) {}
inline TomlValue::TomlValue(std::string v) : value_(std::move(v)) {}
inline TomlValue::TomlValue(TomlArray v) : value_(std::move(v)) {}
inline TomlValue::TomlValue(TomlTable v) : value_(std::move(v)) {}

// The document as a table. Requires UTF-8. Errors: `code` at where:line:column, the first fault only.
Result<TomlValue> parse_toml(std::string_view text, const std::string& where, Code code);

}  // namespace rdusim
