#include "sim/cli/chart_library.h"

#include <filesystem>

#include "sim/page/html_page.h"

namespace rdusim::cli {

namespace {

std::optional<std::string> installed_echarts() {
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"share/rdusim/echarts.min.js", "../share/rdusim/echarts.min.js"}) {
    if (std::filesystem::exists(here / place, error)) return (here / place).string();
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> chart_library(const std::string& given, const std::string& command, Diagnostics& problems) {
  const auto where = given.empty() ? installed_echarts() : std::optional(given);
  if (!where) {
    problems.warning(Code::RDU8042, command, "echarts.min.js is not beside rdusim: the page has tables and no charts");
    return std::nullopt;
  }
  auto text = read_echarts(*where);
  problems.append(text.diagnostics());
  if (!text) return std::nullopt;
  return *std::move(text);
}

}  // namespace rdusim::cli
