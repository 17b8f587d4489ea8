#include "models/processes/crew.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>

#include "models/processes/shared_mail.h"

namespace rdusim {

std::optional<Crew> Crew::start(std::uint32_t processes) {
  Crew crew;
  // Sooner or later every page of a ring is written to: up to 16 processes take 16 MB for mail, 32 MB for records.
  const auto ring = [](std::size_t all, std::size_t rings, std::size_t least) {
    return std::max(std::bit_floor(all / rings), least);
  };
  auto mail = std::make_unique<SharedMail>(
      processes, ring(std::size_t{1} << 24, std::size_t{processes} * processes, std::size_t{1} << 14),
      ring(std::size_t{1} << 25, processes - 1, std::size_t{1} << 21));
  if (!mail->mapped()) return std::nullopt;
  SharedMail& shared = *mail;
  crew.mail_ = std::move(mail);
  const pid_t parent = getpid();
  for (std::uint32_t rank = 1; rank < processes; ++rank) {
    const pid_t pid = fork();
    if (pid < 0) return std::nullopt;  // those that were started go with `crew`
    if (pid > 0) {
      crew.children_.push_back({pid, false});
      continue;
    }
    crew.children_.clear();  // they are not this one's
    shared.is(rank);
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it died before it could be asked for
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    break;
  }
  return crew;
}

Crew Crew::joined(std::unique_ptr<Mail> mail) {
  Crew crew;
  crew.mail_ = std::move(mail);
  return crew;
}

Crew::~Crew() {
  for (const Child& c : children_)
    if (!c.gone) kill(c.pid, SIGKILL);
  for (const Child& c : children_)
    while (!c.gone && waitpid(c.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

std::optional<std::string> Crew::lost() {
  for (std::size_t i = 0; i < children_.size(); ++i) {
    Child& c = children_[i];
    int status = 0;
    if (c.gone || waitpid(c.pid, &status, WNOHANG) != c.pid) continue;
    c.gone = true;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    const std::string which = fmt::format("process {} of {}", i + 1, size());
    if (WIFSIGNALED(status)) return fmt::format("{} was killed by signal {}", which, WTERMSIG(status));
    return fmt::format("{} ended with status {}", which, WEXITSTATUS(status));
  }
  return std::nullopt;
}

std::vector<pid_t> Crew::children() const {
  std::vector<pid_t> list;
  for (const Child& c : children_)
    if (!c.gone) list.push_back(c.pid);
  return list;
}

}  // namespace rdusim
