// Where a page's charts come from.
#pragma once

#include <optional>
#include <string>

#include "compiler/support/result.h"

namespace rdusim::cli {

// The text of echarts.min.js: from `given`, or where it is empty from its place beside the binary (a build) or in the
// share folder of an installation. Nothing, and a warning, where it is in neither; an error where it is no such file.
// Codes: RDU8042, RDU1001.
std::optional<std::string> chart_library(const std::string& given, const std::string& command, Diagnostics& problems);

}  // namespace rdusim::cli
