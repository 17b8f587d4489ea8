// A TOML document with one value changed: what a sweep does to a target or a workload.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/toml.h"
#include "sim/sweep/cell.h"

namespace rdusim {

// One step of a path: a key, or a place in an array.
struct PathStep {
  std::string key;  // empty: `index`
  std::size_t index = 0;
};

// "links[0].gb_per_s"; nothing where it is malformed.
std::optional<std::vector<PathStep>> parse_path(std::string_view text);

// Sets the value at `path`, which must be there. Of a number with its source (a target's { value = ..., published = ...
// }) the value is set, and its source becomes "set by a sweep". Errors: RDU8063 at `where`, with the nearest key.
Diagnostics change(TomlValue& document, const std::vector<PathStep>& path, const Cell& value, const std::string& where);

// Every relative `file` of a `fill` becomes relative to no folder.
void make_files_absolute(TomlValue& document, const std::string& folder);

// The document as TOML, a line a key of the root; tables within are written inline. Requires a table. Reads back as the
// same values, without comments; numbers keep their shortest decimal.
std::string to_toml(const TomlValue& document);

}  // namespace rdusim
