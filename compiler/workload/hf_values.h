// Values of a config.json by their keys: kind and range checked, `null` counted as absent, and every key that was asked
// for remembered, so that the rest can be named.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/json.h"

namespace rdusim {

class HfValues {
 public:
  // `object`: an object, `inside` the name of the key that holds it, or empty. Both places outlive this.
  HfValues(const Json& object, const std::string& where, std::string inside, Diagnostics& out)
      : object_(object), where_(where), inside_(std::move(inside)), out_(out) {}

  // What stands at `key`; null where it is absent or `null`.
  const Json* find(std::string_view key);

  // Something where the key is there and its value is right. What is wrong is reported: RDU1006 kind, RDU1007 range.
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high);
  std::optional<double> number(std::string_view key, double above, double high);  // above < value <= high
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  std::optional<std::vector<std::string>> texts(std::string_view key);

  // Numbers, each in range; the key must be there (RDU1005). Empty after a fault.
  std::vector<double> numbers(std::string_view key, double above, double high);

  // The same where the key must be there (RDU1005); 0 or empty after a fault.
  std::int64_t required_integer(std::string_view key, std::int64_t low, std::int64_t high);
  double required_number(std::string_view key, double above, double high);

  // For a key that rdusim reads only to make sure that it asks for nothing special.
  void must_be(std::string_view key, bool value);

  // Reports at the value of `key`, or at the object.
  Diagnostic& error(Code code, std::string_view key, std::string_view message);

  // RDU1044 for each key that nobody asked for, but those in `harmless`.
  void warn_of_unread(std::vector<std::string_view> harmless);

 private:
  std::string place(const Json& value) const;
  std::string shown(std::string_view key) const;
  void missing(std::string_view key);
  Diagnostic& wrong_kind(std::string_view key, const Json& value, std::string_view wanted);

  const Json& object_;
  const std::string& where_;
  std::string inside_;
  Diagnostics& out_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace rdusim
