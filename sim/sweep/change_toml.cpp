#include "sim/sweep/change_toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "compiler/support/file.h"

namespace rdusim {

std::optional<std::vector<PathStep>> parse_path(std::string_view text) {
  std::vector<PathStep> path;
  bool key_next = true;
  while (!text.empty() || key_next) {
    if (!key_next && text.front() == '.') {
      text.remove_prefix(1);
      key_next = true;
    } else if (!key_next && text.front() == '[') {
      std::size_t index = 0;
      const auto r = std::from_chars(text.data() + 1, text.data() + text.size(), index);
      if (r.ec != std::errc() || r.ptr == text.data() + text.size() || *r.ptr != ']') return std::nullopt;
      text.remove_prefix(static_cast<std::size_t>(r.ptr - text.data()) + 1);
      path.push_back({"", index});
    } else if (key_next) {
      const auto end = std::min(text.find_first_of(".["), text.size());
      if (end == 0) return std::nullopt;
      path.push_back({std::string(text.substr(0, end)), 0});
      text.remove_prefix(end);
      key_next = false;
    } else {
      return std::nullopt;
    }
  }
  return path;
}

namespace {

TomlValue value_of(const Cell& c) {
  if (const auto* truth = std::get_if<bool>(&c)) return TomlValue(*truth);
  if (const auto* whole = std::get_if<std::int64_t>(&c)) return TomlValue(*whole);
  if (const auto* real = std::get_if<double>(&c)) return TomlValue(*real);
  return TomlValue(to_string(c));
}

// The value behind one step, where it can be changed.
TomlValue* below(TomlValue& v, const PathStep& step) {
  if (step.key.empty()) {
    TomlArray* array = v.as_array();
    return array != nullptr && step.index < array->size() ? &(*array)[step.index] : nullptr;
  }
  return v.find(step.key);
}

std::string text_of(const PathStep& step) {
  return step.key.empty() ? fmt::format("[{}]", step.index) : step.key;
}

}  // namespace

Diagnostics change(TomlValue& document, const std::vector<PathStep>& path, const Cell& value,
                   const std::string& where) {
  Diagnostics d;
  TomlValue* at = &document;
  for (const PathStep& step : path) {
    TomlValue* next = below(*at, step);
    if (next == nullptr) {
      Diagnostic& e = d.error(Code::RDU8063, where, "there is no '{}'", text_of(step));
      if (const TomlTable* table = at->as_table(); table != nullptr && !step.key.empty()) {
        std::vector<std::string_view> keys;
        for (const TomlMember& m : *table) keys.push_back(m.key);
        if (const auto near = nearest(step.key, keys); !near.empty()) e.suggest("did you mean '{}'?", near);
        e.suggest("there are {}", fmt::join(keys, ", "));
      } else if (const TomlArray* array = at->as_array()) {
        e.suggest("there are {} elements", array->size());
      }
      return d;
    }
    at = next;
  }
  const bool sourced =
      at->find("value") != nullptr && (at->find("assumed") != nullptr || at->find("published") != nullptr);
  if (sourced) {
    // One point has no range.
    TomlTable table;
    table.push_back({"value", 1, 1, value_of(value)});
    table.push_back({"published", 1, 1, TomlValue(std::string("set by a sweep"))});
    *at = TomlValue(std::move(table));
  } else if (at->as_table() != nullptr || at->as_array() != nullptr) {
    d.error(Code::RDU8063, where, "'{}' is {}, which a sweep does not set as a whole", text_of(path.back()),
            at->type_name());
  } else {
    *at = value_of(value);
  }
  return d;
}

namespace {

void make_absolute(TomlValue& v, const std::string& folder, bool fill, int depth) {
  if (depth > 64) return;
  if (TomlArray* array = v.as_array()) {
    for (TomlValue& element : *array) make_absolute(element, folder, false, depth + 1);
  } else if (TomlTable* table = v.as_table()) {
    for (TomlMember& m : *table) {
      const std::string* file = m.value.as_string();
      if (fill && m.key == "file" && file != nullptr) {
        std::error_code error;
        m.value = TomlValue((std::filesystem::absolute(folder, error) / *file).lexically_normal().string());
      } else {
        make_absolute(m.value, folder, m.key == "fill", depth + 1);
      }
    }
  }
}

std::string basic_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\u{:04X}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string key_text(const std::string& key) {
  const bool bare = !key.empty() && key.find_first_not_of(
                                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                        "_-") == std::string::npos;
  return bare ? key : basic_string(key);
}

std::string real_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", v);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string inline_text(const TomlValue& v) {
  if (const auto* truth = v.as_boolean()) return *truth ? "true" : "false";
  if (const auto* whole = v.as_integer()) return fmt::format("{}", *whole);
  if (const auto* real = v.as_float()) return real_text(*real);
  if (const auto* text = v.as_string()) return basic_string(*text);
  std::string out;
  if (const TomlArray* array = v.as_array()) {
    for (const TomlValue& e : *array) out += (out.empty() ? "" : ", ") + inline_text(e);
    return "[" + out + "]";
  }
  if (const TomlTable* table = v.as_table()) {
    for (const TomlMember& m : *table)
      out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", key_text(m.key), inline_text(m.value));
    return "{ " + out + " }";
  }
  return "\"\"";  // a date: no key of ours has one, and no reader takes a text in its place
}

}  // namespace

void make_files_absolute(TomlValue& document, const std::string& folder) {
  make_absolute(document, folder, false, 0);
}

std::string to_toml(const TomlValue& document) {
  std::string out;
  for (const TomlMember& m : *document.as_table())
    out += fmt::format("{} = {}\n", key_text(m.key), inline_text(m.value));
  return out;
}

}  // namespace rdusim
