// The commands, one a source file. Each prints its results on standard output and everything else on standard error,
// and gives the status that the process ends with.
#pragma once

#include <atomic>

#include "sim/cli/command_line.h"
#include "sim/exit_status.h"

namespace rdusim::cli {

ExitStatus compile(const CompileRequest& request);
// `stop` is raised by Ctrl-C; what was learnt so far is printed.
ExitStatus run(RunRequest request, std::atomic<bool>& stop);
ExitStatus assemble(const AssembleRequest& request);
ExitStatus check(const CheckRequest& request);
ExitStatus show(const ShowRequest& request);
ExitStatus targets(const TargetsRequest& request);
ExitStatus explain(const ExplainRequest& request);
ExitStatus compare(const CompareRequest& request);
ExitStatus faults(const FaultsRequest& request, std::atomic<bool>& stop);
ExitStatus history(const HistoryRequest& request);
ExitStatus dashboard(const DashboardRequest& request);
// `stop` as of run(); the points that were run are kept.
ExitStatus sweep(const SweepRequest& request, std::atomic<bool>& stop);
ExitStatus trace(const TraceRequest& request);
ExitStatus view(const ViewRequest& request);
ExitStatus model(const ModelRequest& request);
ExitStatus net(const NetRequest& request);

// Prints `text` as a command's result. `status` stands where it could be written; else RDU5008 is reported.
ExitStatus print_result(std::string_view text, ExitStatus status);
// Reports and gives the status that follows.
ExitStatus fail(const Diagnostics& diagnostics);
// The same where whatever is wrong is the request's fault: a workload that cannot be compiled as asked.
ExitStatus refuse(const Diagnostics& diagnostics);

}  // namespace rdusim::cli
