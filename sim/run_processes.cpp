#include "sim/run_processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <fstream>

#include "sim/limits.h"

namespace rdusim {

namespace {

// What a process holds, pages that it shares counted in part; 0 where it has gone.
Bytes share_of(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/smaps_rollup", pid));
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("Pss:")) continue;
    return std::strtoull(line.c_str() + 4, nullptr, 10) * 1024;
  }
  return 0;
}

// All but the first end here.
void simulate_and_end(Machine& machine) {
  try {
    machine.run();
    _exit(0);
  } catch (const std::exception&) {
    _exit(1);  // the first one, or mpirun, says that this one was lost
  }
}

}  // namespace

Diagnostics start_processes(Machine& machine, const RunOptions& options, std::optional<Crew>& crew,
                            Diagnostics& notes) {
  const std::uint32_t asked = options.mpi ? options.mpi->size : options.processes;
  if (asked < 2) return {};
  const std::string where = options.mpi ? fmt::format("mpirun -n {}", asked) : fmt::format("--processes {}", asked);
  const bool first = !options.mpi || options.mpi->rank == 0;
  if (const auto why = machine.undivided()) {
    if (!first) _exit(0);
    notes.warning(Code::RDU6030, where, "the run takes one process: {}", *why);
    return {};
  }
  const std::uint32_t most = machine.most_processes();
  if (asked > most)
    notes.warning(Code::RDU6030, where, "the run takes {}: one for each chip, and one that listens to them", most);
  if (options.mpi) {
    auto mail = join_mpi();
    if (mail == nullptr) return failure(Code::RDU6032, where, "rdusim's module for MPI cannot be loaded");
    crew.emplace(Crew::joined(std::move(mail)));
  } else {
    auto started = Crew::start(std::min(asked, most));
    if (!started) return failure(Code::RDU6031, where, "the system does not start {} processes", std::min(asked, most));
    crew.emplace(std::move(*started));
  }
  machine.divide(*crew);
  if (crew->rank() != 0) simulate_and_end(machine);
  return {};
}

Bytes HeldByAll::operator()() {
  if (!several_.load()) return resident_bytes();
  if (looks_++ % 10 != 0) return last_;
  last_ = share_of(getpid());
  for (const pid_t pid : children_) last_ += share_of(pid);
  return last_;
}

std::string to_text(const std::vector<ProcessWork>& processes, double listening_seconds) {
  if (processes.empty()) return "";
  std::uint64_t windows = 0;
  double work = 0, wait = 0;
  for (const ProcessWork& p : processes) {
    windows = std::max(windows, p.windows);
    work += p.work_seconds;
    wait += p.wait_seconds;
  }
  const double each = windows == 0 ? 0 : (work + listening_seconds) / static_cast<double>(windows) * 1e6;
  std::string text =
      fmt::format("processes   {}: {} windows with {:.0f} us of work each, {:.1f} s listening, {:.1f} s waiting",
                  processes.size(), with_commas(windows), each, listening_seconds, wait);
  constexpr double worth_it = 150;
  if (each < worth_it) text += fmt::format("; a window of less than {:.0f} us is too little for a gain", worth_it);
  return text;
}

}  // namespace rdusim
