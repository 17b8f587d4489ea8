#include "sim/cli/view_command.h"

#include "compiler/support/file.h"
#include "sim/cli/chart_library.h"
#include "sim/cli/commands.h"
#include "sim/cli/terminal.h"
#include "sim/view/view.h"

namespace rdusim::cli {

CommandWords words(ViewRequest& r) {
  return {"view",
          "writes one page to look at a run",
          "rdusim run prog.bin --trace run.rdulog && rdusim view run.rdulog -o run.html",
          {{"run", "a report (run --report) or an event log (run --trace FILE.rdulog)", &r.input, true},
           {"-o,--output", "the page", &r.output, true},
           {"--echarts", "echarts.min.js; default: as the target dashboard_assets leaves it", &r.echarts}}};
}

ExitStatus view(const ViewRequest& r) {
  Diagnostics problems;
  const auto echarts = chart_library(r.echarts, "view", problems);
  if (problems.has_errors()) return fail(problems);
  const auto data = view_data(r.input);
  if (!data) return fail(data.diagnostics());
  report(problems);
  const auto written = write_file(r.output, view_html(*data, echarts));
  return written ? ExitStatus::done : fail(written.diagnostics());
}

}  // namespace rdusim::cli
