#include "sim/sweep/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace rdusim {

std::optional<int> run_child(const std::vector<std::string>& arguments, const std::string& error_file,
                             const std::atomic<bool>* stop) {
  // All that takes memory is done before the fork: other threads may hold the allocator's lock.
  std::vector<std::string> words = arguments;
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return 127;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    const int null = open("/dev/null", O_RDWR);
    const int errors = open(error_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (null < 0 || errors < 0) _exit(127);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  auto pause = std::chrono::microseconds(500);
  for (;;) {
    int state = 0;
    const pid_t ended = waitpid(child, &state, WNOHANG);
    if (ended == child) return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    if (ended < 0 && errno != EINTR) return 127;
    if (stop != nullptr && stop->load()) {
      kill(child, SIGKILL);
      waitpid(child, &state, 0);
      return std::nullopt;
    }
    std::this_thread::sleep_for(pause);
    if (pause < std::chrono::milliseconds(10)) pause += pause / 4;
  }
}

}  // namespace rdusim
