// JSON as text for people: a value a line, a list of like objects as a table.
#pragma once

#include <string>

#include "compiler/support/json.h"

namespace rdusim {

std::string to_table(const Json& value);

}  // namespace rdusim
