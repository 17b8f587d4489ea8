#include "traces/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "compiler/support/units.h"

namespace rdusim {

namespace {

std::string cell(const Json& v) {
  if (v.is_null()) return "-";
  if (const auto* text = v.as_string()) return *text;
  if (const auto* truth = v.as_bool()) return *truth ? "yes" : "no";
  if (const auto n = v.as_uint64()) return with_commas(*n);
  if (const auto n = v.as_int64()) return fmt::format("{}", *n);
  if (const auto* n = v.as_double()) return fmt::format("{:.4g}", *n);
  if (const JsonObject* object = v.as_object()) {
    std::string out;
    for (const auto& [key, inner] : *object)
      if (!inner.is_null()) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", key, cell(inner));
    return out;
  }
  std::string out;
  for (const Json& inner : *v.as_array()) out += (out.empty() ? "" : ", ") + cell(inner);
  return out;
}

bool is_number(const Json& v) {
  return v.as_number().has_value();
}

std::string table(const std::string& title, const JsonArray& rows) {
  std::string out = title + "\n";
  if (rows.empty()) return out + "  none\n";
  std::vector<std::string> keys;
  for (const Json& row : rows) {
    if (row.as_object() == nullptr) {
      out += "  " + cell(row) + "\n";
      continue;
    }
    for (const auto& [key, value] : *row.as_object())
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  }
  if (keys.empty()) return out;
  std::vector<std::size_t> width;
  std::vector<bool> numeric;
  for (const std::string& key : keys) {
    std::size_t w = key.size();
    bool numbers = true;
    for (const Json& row : rows) {
      const Json* v = row.find(key);
      if (v == nullptr) continue;
      w = std::max(w, cell(*v).size());
      numbers = numbers && (v->is_null() || is_number(*v));
    }
    width.push_back(w);
    numeric.push_back(numbers);
  }
  const auto line = [&](const auto& text) {
    std::string l = " ";
    for (std::size_t i = 0; i < keys.size(); ++i)
      l += numeric[i] ? fmt::format(" {:>{}}", text(i), width[i]) : fmt::format(" {:<{}}", text(i), width[i]);
    while (l.ends_with(' ')) l.pop_back();
    out += l + "\n";
  };
  line([&](std::size_t i) { return keys[i]; });
  for (const Json& row : rows) {
    line([&](std::size_t i) {
      const Json* v = row.find(keys[i]);
      return v == nullptr ? std::string("-") : cell(*v);
    });
  }
  return out;
}

}  // namespace

std::string to_table(const Json& value) {
  const JsonObject* object = value.as_object();
  if (object == nullptr) return cell(value) + "\n";
  std::string out;
  for (const auto& [key, inner] : *object) {
    const JsonArray* rows = inner.as_array();
    const bool list = rows != nullptr && (rows->empty() || rows->front().as_object() != nullptr);
    out += list ? table(key, *rows) : fmt::format("{:<18}{}\n", key, cell(inner));
  }
  return out;
}

}  // namespace rdusim
