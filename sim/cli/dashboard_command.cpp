#include "sim/cli/dashboard_command.h"

#include "compiler/support/file.h"
#include "sim/cli/chart_library.h"
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
           {"--accuracy", "what scripts/accuracy --json wrote, to be shown too", &r.accuracy},
           {"--echarts", "echarts.min.js; default: as the target dashboard_assets leaves it", &r.echarts}}};
}

ExitStatus dashboard(const DashboardRequest& r) {
  DashboardTables tables;
  Diagnostics problems;
  for (const std::string& path : r.sweeps) {
    auto s = read_sweep(path);
    problems.append(s.diagnostics());
    if (s) tables.sweeps.push_back(*std::move(s));
  }
  if (!r.accuracy.empty()) {
    auto rows = read_accuracy(r.accuracy);
    problems.append(rows.diagnostics());
    if (rows) tables.accuracy = *std::move(rows);
  }
  const auto echarts = chart_library(r.echarts, "dashboard", problems);
  if (problems.has_errors()) return fail(problems);
  auto history = History::open(r.db, History::Open::read);
  if (!history) return fail(history.diagnostics());
  const auto html = dashboard_html(*history, tables, echarts);
  if (!html) return fail(html.diagnostics());
  report(problems);
  const auto written = write_file(r.output, *html);
  return written ? ExitStatus::done : fail(written.diagnostics());
}

}  // namespace rdusim::cli
