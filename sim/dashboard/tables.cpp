#include "sim/dashboard/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "compiler/support/file.h"

namespace rdusim {

namespace {

constexpr std::uint64_t table_bytes_limit = std::uint64_t{256} << 20;

std::optional<AccuracyRow> accuracy_row(const Json& json) {
  const Json* what = json.find("what");
  const Json* reference = json.find("reference");
  const Json* value = json.find("value");
  const Json* bound = json.find("bound");
  if (what == nullptr || what->as_string() == nullptr || reference == nullptr || value == nullptr || bound == nullptr)
    return std::nullopt;
  const auto positive = [](const std::optional<double>& v) { return v && std::isfinite(*v) && *v > 0; };
  if (!positive(reference->as_number()) || !positive(bound->as_number())) return std::nullopt;
  AccuracyRow row{*what->as_string(), *reference->as_number(), value->as_number(), *bound->as_number()};
  if (!row.value && !value->is_null()) return std::nullopt;
  return row;
}

}  // namespace

Result<SweepFile> read_sweep(const std::string& path) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  const std::string file = folder ? path + "/table.jsonl" : path;
  const auto text = read_file(file, table_bytes_limit);
  if (!text) return text.diagnostics();
  SweepFile s;
  s.name = std::filesystem::path(folder ? path : file).lexically_normal().stem().string();
  Diagnostics d;
  std::size_t number = 0;
  for (std::size_t from = 0; from < text->size();) {
    const std::size_t end = std::min(text->find('\n', from), text->size());
    const std::string_view line = std::string_view(*text).substr(from, end - from);
    from = end + 1;
    ++number;
    auto row = parse_json(line, fmt::format("{} line {}", file, number), Code::RDU8055);
    if (!row) return row.diagnostics();
    const JsonObject* members = row->as_object();
    std::vector<std::string> columns;
    JsonArray values;
    for (const auto& [name, value] : members == nullptr ? JsonObject() : *members) {
      columns.push_back(name);
      values.push_back(value);
    }
    if (s.rows.empty()) s.columns = columns;
    if (columns.empty() || columns != s.columns) {
      d.error(Code::RDU8055, fmt::format("{}:{}", file, number), "it is no row of a sweep's table like the first");
      return d;
    }
    s.rows.push_back(std::move(values));
  }
  if (s.rows.empty()) d.error(Code::RDU8055, file, "it has no row");
  if (d.has_errors()) return d;
  return s;
}

Result<std::vector<AccuracyRow>> read_accuracy(const std::string& path) {
  const auto text = read_file(path, table_bytes_limit);
  if (!text) return text.diagnostics();
  const auto json = parse_json(*text, path, Code::RDU8055);
  if (!json) return json.diagnostics();
  std::vector<AccuracyRow> rows;
  Diagnostics d;
  if (json->as_array() == nullptr || json->as_array()->empty()) d.error(Code::RDU8055, path, "it is no list of rows");
  if (d.has_errors()) return d;
  for (const Json& element : *json->as_array()) {
    auto row = accuracy_row(element);
    if (!row) {
      d.error(Code::RDU8055, fmt::format("{}:{}:{}", path, element.line, element.column),
              "it is no row of the accuracy table: what, reference, value, bound");
      return d;
    }
    rows.push_back(*std::move(row));
  }
  return rows;
}

}  // namespace rdusim
