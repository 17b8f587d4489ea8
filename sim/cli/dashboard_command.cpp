#include "sim/cli/dashboard_command.h"

#include <fmt/format.h>

#include <filesystem>

#include "compiler/support/file.h"
#include "sim/cli/commands.h"
#include "sim/cli/terminal.h"
#include "sim/dashboard/dashboard.h"

namespace rdusim::cli {

CommandWords words(DashboardRequest& r) {
  return {"dashboard",
          "writes a history, and sweeps, as one HTML page",
          "rdusim dashboard --db history.db --sweep links.sweep -o dashboard.html",
          {{"--db", "the history", &r.db, true},
           {"-o,--output", "the page", &r.output, true},
           {"--sweep", "the folder of a sweep, to be shown too (repeatable)", &r.sweeps},
           {"--echarts", "echarts.min.js; default: as the target dashboard_assets leaves it", &r.echarts}}};
}

namespace {

// Beside the binary (a build), or in the share folder of an installation.
std::optional<std::string> installed_echarts() {
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"share/rdusim/echarts.min.js", "../share/rdusim/echarts.min.js"}) {
    if (std::filesystem::exists(here / place, error)) return (here / place).string();
  }
  return std::nullopt;
}

}  // namespace

ExitStatus dashboard(const DashboardRequest& r) {
  std::vector<SweepFile> sweeps;
  Diagnostics problems;
  for (const std::string& path : r.sweeps) {
    auto s = read_sweep(path);
    problems.append(s.diagnostics());
    if (s) sweeps.push_back(*std::move(s));
  }
  std::optional<std::string> echarts;
  const auto where = r.echarts.empty() ? installed_echarts() : std::optional(r.echarts);
  if (where) {
    auto text = read_echarts(*where);
    problems.append(text.diagnostics());
    if (text) echarts = *std::move(text);
  } else {
    problems.warning(Code::RDU8042, "dashboard",
                     "echarts.min.js is not beside rdusim: the page has tables and no charts");
  }
  if (problems.has_errors()) return fail(problems);
  auto history = History::open(r.db, History::Open::read);
  if (!history) return fail(history.diagnostics());
  const auto html = dashboard_html(*history, sweeps, echarts);
  if (!html) return fail(html.diagnostics());
  report(problems);
  const auto written = write_file(r.output, *html);
  return written ? ExitStatus::done : fail(written.diagnostics());
}

}  // namespace rdusim::cli
