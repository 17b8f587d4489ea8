#include "tests/system/command.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

extern char** environ;

namespace rdusim::test {

namespace {

// In memory, so that the working folder holds only what rdusim wrote.
int anonymous_file(std::string_view bytes) {
  const int fd = memfd_create("rdusim-test", MFD_CLOEXEC);
  REQUIRE(fd >= 0);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    REQUIRE(n > 0);
    done += static_cast<std::size_t>(n);
  }
  lseek(fd, 0, SEEK_SET);
  return fd;
}

std::string contents(int fd) {
  std::string text;
  lseek(fd, 0, SEEK_SET);
  char block[65536];
  for (ssize_t n = 0; (n = read(fd, block, sizeof block)) > 0;) text.append(block, static_cast<std::size_t>(n));
  return text;
}

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

}  // namespace

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "rdusim-system-XXXXXX").string();
  REQUIRE(mkdtemp(name.data()) != nullptr);
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Folder::file(std::string_view name) const {
  return path_ + "/" + std::string(name);
}

void Folder::write(std::string_view name, std::string_view bytes) const {
  std::ofstream out(file(name), std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  REQUIRE(out.good());
}

std::string Folder::read(std::string_view name) const {
  std::ifstream in(file(name), std::ios::binary);
  INFO("the file ", std::string(name));
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

bool Folder::has(std::string_view name) const {
  return std::filesystem::exists(file(name));
}

std::vector<std::string> Folder::names() const {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) all.push_back(entry.path().filename().string());
  std::sort(all.begin(), all.end());
  return all;
}

Running::Running(const std::vector<std::string>& arguments, const Folder& folder, std::string_view input,
                 std::string program) {
  std::vector<std::string> words = arguments;
  std::vector<char*> argv = {program.data()};
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);

  const int in = anonymous_file(input);
  out_ = anonymous_file({});
  err_ = anonymous_file({});
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out_, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err_, STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(&actions, folder.path().c_str());
  const int failed = posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in);
  REQUIRE(failed == 0);
}

Running::~Running() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(out_);
  close(err_);
}

void Running::send(int signal) {
  const std::string status = "/proc/" + std::to_string(pid_) + "/status";
  for (int tries = 0; tries < 10000; ++tries) {
    std::ifstream in(status);
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("SigCgt:", 0) != 0) continue;
      const std::uint64_t caught = std::strtoull(line.c_str() + 7, nullptr, 16);
      if ((caught >> (signal - 1) & 1) == 0) continue;
      REQUIRE(kill(pid_, signal) == 0);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  FAIL("the child installs no handler for the signal");
}

Outcome Running::finish() {
  int state = 0;
  rusage usage{};
  REQUIRE(wait4(pid_, &state, 0, &usage) == pid_);
  pid_ = -1;
  Outcome outcome;
  outcome.status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  outcome.out = contents(out_);
  outcome.err = contents(err_);
  outcome.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  outcome.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  return outcome;
}

Outcome rdusim(const std::vector<std::string>& arguments, const Folder& folder, std::string_view input) {
  return Running(arguments, folder, input).finish();
}

Outcome rdusim_ok(const std::vector<std::string>& arguments, const Folder& folder, std::string_view input) {
  Outcome outcome = rdusim(arguments, folder, input);
  std::string line = "rdusim";
  for (const std::string& a : arguments) line += " " + a;
  INFO(line, "\n", outcome.out, outcome.err);
  REQUIRE(outcome.status == 0);
  return outcome;
}

Outcome shell(const std::string& line, const Folder& folder) {
  return Running({"-c", "rdusim='" RDUSIM_BINARY "'; " + line}, folder, {}, "/bin/bash").finish();
}

std::string errors_of(const Outcome& outcome) {
  std::string codes;
  std::istringstream in(outcome.err);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find("error RDU");
    if (at == 0 || (at != std::string::npos && line[at - 1] == ' '))
      codes += (codes.empty() ? "" : " ") + line.substr(at + 6, 7);
  }
  return codes;
}

}  // namespace rdusim::test
