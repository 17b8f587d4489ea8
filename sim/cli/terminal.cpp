#include "sim/cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>

namespace rdusim::cli {

namespace {

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EPIPE;  // the reader has had enough
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

bool colour_on(int descriptor) {
  const char* no = std::getenv("NO_COLOR");
  return isatty(descriptor) == 1 && (no == nullptr || *no == '\0');
}

bool write_out(std::string_view text) {
  return write_all(STDOUT_FILENO, text);
}
void write_err(std::string_view text) {
  write_all(STDERR_FILENO, text);
}

void report(const Diagnostics& diagnostics) {
  if (diagnostics.empty()) return;
  std::string text = diagnostics.to_text();
  if (colour_on(STDERR_FILENO)) {
    for (const auto& [word, code] : {std::pair{": error RDU", "\x1b[31m"}, std::pair{": warning RDU", "\x1b[33m"}}) {
      for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
        std::size_t end = text.find(' ', at + 2);  // after "error"
        end = end == std::string::npos ? text.size() : end;
        text.insert(end, "\x1b[0m");
        text.insert(at + 2, code);
        at = end;
      }
    }
  }
  write_err(text);
}

Progress::Progress(const std::atomic<Cycle>& reached, const std::atomic<std::uint64_t>& pages, std::uint64_t expected) {
  if (isatty(STDERR_FILENO) != 1) return;
  thread_ = std::thread([this, &reached, &pages, expected] {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    auto next = start + std::chrono::seconds(1);
    bool shown = false;
    while (!done_.load()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (Clock::now() < next) continue;
      next = Clock::now() + std::chrono::milliseconds(250);
      const Cycle at = reached.load(std::memory_order_relaxed);
      std::string line = fmt::format("\r\x1b[Kcycle {}", with_commas(at));
      const std::uint64_t pushed = pages.load(std::memory_order_relaxed);
      if (expected > 0 && pushed > 0) {
        const double share = static_cast<double>(pushed) / static_cast<double>(expected);
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        line += fmt::format(", {:.0f} % of {} pages", std::min(share, 1.0) * 100, with_commas(expected));
        if (share < 1) line += fmt::format(", about {:.0f} s left", seconds * (1 - share) / share);
      }
      write_err(line);
      shown = true;
    }
    if (shown) write_err("\r\x1b[K");
  });
}

Progress::~Progress() {
  done_.store(true);
  if (thread_.joinable()) thread_.join();
}

}  // namespace rdusim::cli
