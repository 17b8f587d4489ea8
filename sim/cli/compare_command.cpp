#include "sim/cli/compare_command.h"

#include <unistd.h>

#include "sim/cli/commands.h"
#include "sim/cli/terminal.h"
#include "sim/compare/compare.h"

namespace rdusim::cli {

CommandWords words(CompareRequest& r) {
  return {"compare",
          "what changed between two reports, or two folders of them",
          "rdusim compare old.json new.json --fail-on 'cycles>0%' --fail-on 'links.*.bytes>64KiB'",
          {{"old", "the older report, or a folder of them", &r.old, true},
           {"new", "the newer report, or a folder of them", &r.now, true},
           {"--fail-on", "METRIC>AMOUNT or METRIC<AMOUNT, in % or the metric's unit (repeatable; default cycles>0%)",
            &r.fail_on},
           {"--all", "every metric that moved, on every chip", &r.all},
           {"--markdown", "for a pull request", &r.markdown},
           {"--json", "as JSON", &r.json}}};
}

ExitStatus compare(const CompareRequest& request) {
  Diagnostics problems;
  if (request.markdown && request.json) {
    problems.error(Code::RDU6005, "rdusim", "--markdown and --json exclude each other");
    return fail(problems);
  }
  std::vector<Threshold> thresholds;
  for (const std::string& text : request.fail_on) {
    auto t = parse_threshold(text);
    problems.append(t.diagnostics());
    if (t) thresholds.push_back(*std::move(t));
  }
  if (problems.has_errors()) return fail(problems);
  if (request.fail_on.empty()) thresholds.push_back(parse_threshold("cycles>0%").value());
  const auto set = compare_paths(request.old, request.now, thresholds);
  if (!set) return fail(set.diagnostics());
  const ExitStatus status = set->regressed() ? ExitStatus::program_fault : ExitStatus::done;
  if (request.json) return print_result(to_text(comparison_json(*set)), status);
  if (request.markdown) return print_result(comparison_markdown(*set), status);
  return print_result(comparison_text(*set, request.all, colour_on(STDOUT_FILENO)), status);
}

}  // namespace rdusim::cli
