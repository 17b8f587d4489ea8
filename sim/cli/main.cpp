// The process: signals, the last resort, and one command.
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "sim/cli/commands.h"
#include "sim/cli/terminal.h"

namespace {

using namespace rdusim;

// A signal handler has nothing but what is global.
std::atomic<bool> running{false};  // a run can say what it learnt; any other command just ends
std::atomic<bool> stop_requested{false};

void on_interrupt(int) {
  // The second time somebody has lost patience.
  if (!running || stop_requested.exchange(true)) _exit(static_cast<int>(ExitStatus::interrupted));
}

// A mapped data file (DataFile::map) was cut short by somebody while it was read: nothing that it lost can be had.
void on_lost_file(int) {
  constexpr std::string_view line = "error RDU1001 file-unreadable: a data file became shorter while it was read\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  _exit(static_cast<int>(ExitStatus::request_fault));
}

ExitStatus internal_fault(const std::string& what) {
  Diagnostics d;
  d.error(Code::RDU9001, "rdusim", "{}", what)
      .suggest("this is a fault of rdusim: report it with the command line, the input and this line");
  cli::report(d);
  return ExitStatus::internal;
}

[[noreturn]] void last_resort() {
  std::string what = "ended without a reason";
  if (const auto e = std::current_exception()) {
    try {
      std::rethrow_exception(e);
    } catch (const std::exception& x) {
      what = x.what();
    } catch (...) {
      what = "something was thrown that is no exception";
    }
  }
  _exit(static_cast<int>(internal_fault(what)));
}

struct Dispatch {
  ExitStatus operator()(const cli::CompileRequest& r) const { return cli::compile(r); }
  ExitStatus operator()(const cli::RunRequest& r) const {
    running = true;
    return cli::run(r, stop_requested);
  }
  ExitStatus operator()(const cli::AssembleRequest& r) const { return cli::assemble(r); }
  ExitStatus operator()(const cli::CheckRequest& r) const { return cli::check(r); }
  ExitStatus operator()(const cli::ShowRequest& r) const { return cli::show(r); }
  ExitStatus operator()(const cli::TargetsRequest& r) const { return cli::targets(r); }
  ExitStatus operator()(const cli::ExplainRequest& r) const { return cli::explain(r); }
  ExitStatus operator()(const cli::CompareRequest& r) const { return cli::compare(r); }
  ExitStatus operator()(const cli::FaultsRequest& r) const {
    running = true;
    return cli::faults(r, stop_requested);
  }
  ExitStatus operator()(const cli::HistoryRequest& r) const { return cli::history(r); }
  ExitStatus operator()(const cli::DashboardRequest& r) const { return cli::dashboard(r); }
  ExitStatus operator()(const cli::SweepRequest& r) const {
    running = true;
    return cli::sweep(r, stop_requested);
  }
  ExitStatus operator()(const cli::TraceRequest& r) const { return cli::trace(r); }
  ExitStatus operator()(const cli::ViewRequest& r) const { return cli::view(r); }
  ExitStatus operator()(const cli::ModelRequest& r) const { return cli::model(r); }
  ExitStatus operator()(const cli::NetRequest& r) const { return cli::net(r); }
  ExitStatus operator()(const cli::TextRequest& r) const { return cli::print_result(r.text, ExitStatus::done); }
};

ExitStatus command(const std::vector<std::string>& arguments) {
  try {
    const auto request = cli::parse_command_line(arguments);
    if (!request) return cli::fail(request.diagnostics());
    return std::visit(Dispatch{}, *request);
  } catch (const std::bad_alloc&) {
    return internal_fault("memory ran out");
  } catch (const std::exception& e) {
    return internal_fault(e.what());
  } catch (...) {
    return internal_fault("something was thrown that is no exception");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(last_resort);
  // A reader that goes away is seen by write(), not by a signal.
  std::signal(SIGPIPE, SIG_IGN);
  // So is a file that grows beyond what the user may write.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGBUS, on_lost_file);
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A terminal that is closed; but nohup's wish is kept.
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  return static_cast<int>(command({argv + (argc > 0 ? 1 : 0), argv + argc}));
}

// libsystemc carries a main() of its own that asks for sc_main; ours wins, and this satisfies its reference.
extern "C" int sc_main(int, char*[]) {
  return 0;
}
