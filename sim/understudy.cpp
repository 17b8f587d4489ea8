#include "sim/understudy.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

namespace rdusim {

// What to run: with a buffer of that depth, and with one page less; or with that exchange, and without.
struct Understudy::Line {
  bool order = false;
  std::uint32_t buffer = 0;
  std::uint64_t depth = 0;
  PhaseExchange exchange;
};

namespace {

bool write_all(int fd, const void* data, std::size_t n) {
  const char* p = static_cast<const char*>(data);
  while (n > 0) {
    const ssize_t w = write(fd, p, n);
    if (w < 0 && errno == EINTR) continue;
    if (w <= 0) return false;
    p += w;
    n -= static_cast<std::size_t>(w);
  }
  return true;
}
bool read_all(int fd, void* data, std::size_t n) {
  char* p = static_cast<char*>(data);
  while (n > 0) {
    const ssize_t r = read(fd, p, n);
    if (r < 0 && errno == EINTR) continue;
    if (r <= 0) return false;
    p += r;
    n -= static_cast<std::size_t>(r);
  }
  return true;
}

// What of a run the other side asks about.
struct Told {
  bool ended = false;
  Verdict verdict{};
  Cycle cycles = 0;
};

// The two programs that a line asks for; none where it is nonsense.
template <class Line>
std::vector<SpatialProgram> asked_for(const SpatialProgram& given, const Line& line) {
  if (line.order) {
    if (line.exchange.stage.value >= given.stages.size()) return {};
    return {with_exchange(given, line.exchange), given};
  }
  if (line.buffer >= given.buffers.size() || line.depth == 0) return {};
  std::vector<SpatialProgram> two(2, given);
  two[0].buffers[line.buffer].depth_pages = line.depth;
  two[1].buffers[line.buffer].depth_pages = line.depth - 1;
  return two;
}

template <class Line>
[[noreturn]] void stand_by(LoadedProgram loaded, RunOptions options, int from, int to) {
  std::signal(SIGINT, SIG_IGN);
  const SpatialProgram given = loaded.program;
  options.values = false;
  const std::atomic<bool> stop{false};
  for (Line line; read_all(from, &line, sizeof line);) {
    for (SpatialProgram& program : asked_for(given, line)) {
      loaded.program = std::move(program);
      // The certificate is of the program as given.
      loaded.program.certificate.reset();
      const IsolatedRun run = run_isolated(loaded, {options}, {}, stop).front();
      const Told told{run.ended, run.verdict, run.cycles};
      if (!write_all(to, &told, sizeof told)) _exit(1);
    }
  }
  _exit(0);
}

}  // namespace

Understudy::Understudy(const LoadedProgram& loaded, const RunOptions& options) {
  int there[2], back[2];
  if (pipe(there) != 0) return;
  if (pipe(back) != 0) {
    close(there[0]), close(there[1]);
    return;
  }
  pid_ = fork();
  if (pid_ == 0) {
    close(there[1]), close(back[0]);
    stand_by<Line>(loaded, options, there[0], back[1]);
  }
  close(there[0]), close(back[1]);
  to_ = there[1];
  from_ = back[0];
}

Understudy::~Understudy() {
  if (to_ >= 0) close(to_);
  if (from_ >= 0) close(from_);
  // Without a line to read it goes.
  while (pid_ > 0 && waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<std::pair<IsolatedRun, IsolatedRun>> Understudy::ask(const Line& line) {
  if (pid_ <= 0 || to_ < 0) return std::nullopt;
  std::array<Told, 2> told{};
  if (!write_all(to_, &line, sizeof line) || !read_all(from_, told.data(), sizeof told)) return std::nullopt;
  const auto heard = [](const Told& t) {
    IsolatedRun run;
    run.ended = t.ended, run.verdict = t.verdict, run.cycles = t.cycles;
    return run;
  };
  return std::pair(heard(told[0]), heard(told[1]));
}

std::optional<Understudy::Confirmed> Understudy::confirm(const Cure& cure) {
  Line line;
  line.buffer = cure.buffer.value;
  line.depth = cure.needed;
  auto runs = ask(line);
  if (!runs) return std::nullopt;
  return Confirmed{std::move(runs->first), std::move(runs->second)};
}

std::optional<Understudy::ConfirmedOrder> Understudy::confirm(const PhaseExchange& exchange) {
  Line line;
  line.order = true;
  line.exchange = exchange;
  auto runs = ask(line);
  if (!runs) return std::nullopt;
  return ConfirmedOrder{std::move(runs->first), std::move(runs->second)};
}

}  // namespace rdusim
