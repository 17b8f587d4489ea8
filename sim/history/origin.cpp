#include "sim/history/origin.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>

#include "compiler/support/utf8.h"

namespace rdusim {

namespace {

// The first line that a command prints; empty where it fails.
std::string line_of(const char* command) {
  std::string line;
  FILE* pipe = popen(command, "re");
  if (pipe == nullptr) return line;
  std::array<char, 512> block{};
  if (std::fgets(block.data(), block.size(), pipe) != nullptr) line = block.data();
  while (std::fgets(block.data(), block.size(), pipe) != nullptr) {
  }
  if (pclose(pipe) != 0) return "";
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return is_plain(line) ? line : "";
}

}  // namespace

Origin origin_of_here() {
  Origin o;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0 && is_plain(host.data())) o.host = host.data();
  o.time =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  o.commit = line_of("git rev-parse --verify -q HEAD 2>/dev/null");
  if (o.commit.empty()) return o;
  o.parent = line_of("git rev-parse --verify -q HEAD^ 2>/dev/null");
  o.branch = line_of("git symbolic-ref --short -q HEAD 2>/dev/null");
  return o;
}

}  // namespace rdusim
