// What stands in one place of a sweep's table: nothing, a truth, a whole number, a number, a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "compiler/support/json.h"

namespace rdusim {

using Cell = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

std::optional<double> number_of(const Cell& c);  // of a whole number or a number
std::string to_string(const Cell& c);            // as in CSV: "" for nothing, "true", "12", "0.5", the text
Json to_json(const Cell& c);

}  // namespace rdusim
