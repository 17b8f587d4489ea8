// What the user asked for: the words of the command line as data. The only user of CLI11 is the source beside this.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/compile.h"
#include "compiler/workload/hf_request.h"
#include "sim/cli/compare_command.h"
#include "sim/cli/dashboard_command.h"
#include "sim/cli/faults_command.h"
#include "sim/cli/history_command.h"
#include "sim/cli/model_command.h"
#include "sim/cli/net_command.h"
#include "sim/cli/sweep_command.h"
#include "sim/cli/trace_command.h"
#include "sim/cli/view_command.h"
#include "sim/compare_outputs.h"
#include "sim/operands.h"
#include "sim/run_traces.h"

namespace rdusim::cli {

struct CompileRequest {
  std::string workload;
  std::string output;
  std::string target = "sn40l";
  CompileOptions options;
  DecoderRequest decoder;  // where the workload is a Hugging Face model
  bool json = false;
};

struct RunRequest {
  std::string program;
  std::optional<std::uint32_t> chips;
  std::string target;  // empty: the program's own
  std::string report;  // empty: none
  CheckLevel check = CheckLevel::exact;
  bool explain = false;
  bool timing_only = false;
  bool no_reuse = false;
  bool collect_violations = false;
  bool allow_refuted = false;
  bool flit_network = false;
  bool json = false;  // the report on standard output instead of the summary
  std::vector<std::string> faults;
  std::optional<std::uint64_t> jitter;
  std::vector<Assignment> set, save;
  std::string dot;  // who waits for whom, of a run that is stuck
  TraceOptions trace;
  std::uint32_t processes = 1;
  std::optional<Cycle> max_cycles;
  std::optional<double> max_seconds;
  std::optional<Bytes> max_memory;
};

struct AssembleRequest {
  std::string file;
  std::string output;
  bool allow_refuted = false;
};

struct CheckRequest {
  std::string program;
  bool minimum_depths = false;
  bool json = false;
};

struct ShowRequest {
  std::string program;
  std::string name;  // of one stage, buffer, tensor; empty: all
  bool json = false;
  bool dot = false;
};

struct TargetsRequest {
  std::string name;  // empty: the list
  bool json = false;
};

struct ExplainRequest {
  std::string code;  // empty: the list
  bool json = false;
};

// --help, --version, `man` and `completion`.
struct TextRequest {
  std::string text;
};

using Request = std::variant<CompileRequest, RunRequest, AssembleRequest, CheckRequest, ShowRequest, TargetsRequest,
                             ExplainRequest, CompareRequest, FaultsRequest, HistoryRequest, DashboardRequest,
                             SweepRequest, ModelRequest, NetRequest, TraceRequest, ViewRequest, TextRequest>;

// `arguments` without the program's name. Errors: RDU6005 usage, RDU6006 what this version does not do yet.
Result<Request> parse_command_line(const std::vector<std::string>& arguments);

// "512", "64 GB" (10^9), "64GiB" (2^30); nothing for anything else or for what does not fit.
std::optional<Bytes> parse_size(std::string_view text);

}  // namespace rdusim::cli
