// rdusim as its users meet it: a child process in a temporary folder of its own.
//
// SystemC allows one simulation a process, so every run is a child; what it leaves in the folder is what a user would
// find there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rdusim::test {

// A temporary folder, removed with all that is in it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const;  // its path
  void write(std::string_view name, std::string_view bytes) const;
  std::string read(std::string_view name) const;  // fails the test where there is none
  bool has(std::string_view name) const;
  std::vector<std::string> names() const;  // of all that is there, sorted

 private:
  std::string path_;
};

struct Outcome {
  int status = 0;  // as a shell gives it: 128 + n after signal n
  std::string out;
  std::string err;
  double cpu_s = 0;
  std::uint64_t peak_bytes = 0;  // resident
};

// A child that was started and not yet waited for.
class Running {
 public:
  // `folder` is its working folder; `input` is its standard input.
  Running(const std::vector<std::string>& arguments, const Folder& folder, std::string_view input = {},
          std::string program = RDUSIM_BINARY);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  pid_t pid() const { return pid_; }
  // Sends the signal as soon as the child has installed a handler for it (else it would die before it could say
  // anything).
  void send(int signal);
  Outcome finish();

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
};

// Runs `rdusim ARGUMENTS...` in `folder` and waits for it.
Outcome rdusim(const std::vector<std::string>& arguments, const Folder& folder, std::string_view input = {});

// As above, and fails the test unless the status is 0.
Outcome rdusim_ok(const std::vector<std::string>& arguments, const Folder& folder, std::string_view input = {});

// Runs a line of bash in `folder`, in which $rdusim is the binary: for pipes, redirections and limits.
Outcome shell(const std::string& line, const Folder& folder);

// The codes of the errors on standard error, in order, each as often as it stands there: "RDU3024 RDU3032".
std::string errors_of(const Outcome& outcome);

}  // namespace rdusim::test
