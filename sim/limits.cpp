#include "sim/limits.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

namespace rdusim {

namespace {

constexpr std::array<std::string_view, 4> limit_names = {"none", "seconds", "memory", "computer"};

// The beginning of a file of /proc or /sys, without taking memory: the thread that looks has no need of a heap of its own.
class Text {
 public:
  explicit Text(const char* file) {
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t n = read(fd, bytes_.data(), bytes_.size());
    size_ = n > 0 ? static_cast<std::size_t>(n) : 0;
    close(fd);
  }
  std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, 8192> bytes_{};
  std::size_t size_ = 0;
};

// The first number at or behind a place.
std::optional<Bytes> number_at(std::string_view text, std::size_t from) {
  while (from < text.size() && (text[from] == ' ' || text[from] == '\t')) ++from;
  Bytes n = 0;
  if (from >= text.size() || std::from_chars(text.data() + from, text.data() + text.size(), n).ec != std::errc())
    return std::nullopt;
  return n;
}

// The number behind a word at the start of a line.
std::optional<Bytes> number_after(std::string_view text, std::string_view word) {
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(word)) return number_at(text, at + word.size());
    const std::size_t end = text.find('\n', at);
    at = end == std::string_view::npos ? text.size() : end + 1;
  }
  return std::nullopt;
}

// Where the control group (version 2) of this process says `file`; the empty text where there is no such group.
std::array<char, 512> of_group(std::string_view file) {
  std::array<char, 512> path{};
  const Text groups("/proc/self/cgroup");
  const std::string_view text = groups.view();
  const std::size_t at = text.starts_with("0::") ? 0 : text.find("\n0::");
  if (at == std::string_view::npos) return path;
  std::string_view name = text.substr(text.find("0::", at) + 3);
  name = name.substr(0, name.find('\n'));
  if (name == "/") name = "";
  constexpr std::string_view root = "/sys/fs/cgroup";
  if (root.size() + name.size() + 1 + file.size() >= path.size()) return path;
  char* to = std::copy(root.begin(), root.end(), path.data());
  to = std::copy(name.begin(), name.end(), to);
  *to++ = '/';
  std::copy(file.begin(), file.end(), to);
  return path;
}

}  // namespace

std::string_view name_of(Limit limit) {
  return limit_names[static_cast<std::size_t>(limit)];
}

std::optional<Limit> limit_of(std::string_view name) {
  const auto it = std::find(limit_names.begin(), limit_names.end(), name);
  if (it == limit_names.end()) return std::nullopt;
  return static_cast<Limit>(it - limit_names.begin());
}

Bytes resident_bytes() {
  const Text text("/proc/self/statm");  // size resident shared ...
  const std::size_t second = text.view().find(' ');
  const std::size_t third = second == std::string_view::npos ? second : text.view().find(' ', second + 1);
  const long page = sysconf(_SC_PAGE_SIZE);
  if (third == std::string_view::npos || page <= 0) return 0;
  const Bytes resident = number_at(text.view(), second).value_or(0), shared = number_at(text.view(), third).value_or(0);
  return (resident - std::min(resident, shared)) * static_cast<Bytes>(page);
}

ComputerMemory computer_memory() {
  ComputerMemory m;
  const Text info("/proc/meminfo");
  if (const auto kib = number_after(info.view(), "MemTotal:")) m.total = *kib * 1024;
  if (const auto kib = number_after(info.view(), "MemAvailable:")) m.left = *kib * 1024;
  const auto most = number_at(Text(of_group("memory.max").data()).view(), 0);  // "max" where there is no limit
  const auto held = number_at(Text(of_group("memory.current").data()).view(), 0);
  if (!most || !held) return m;
  const Text statistics(of_group("memory.stat").data());
  const Bytes cache = std::min(number_after(statistics.view(), "inactive_file ").value_or(0) +
                                   number_after(statistics.view(), "active_file ").value_or(0),
                               *held);
  m.total = std::min(m.total, *most);
  m.left = std::min(m.left, *most - std::min(*most, *held - cache));
  return m;
}

LimitWatch::LimitWatch(Limits limits, std::atomic<bool>& stop) {
  using Clock = std::chrono::steady_clock;
  const auto span = std::chrono::duration<double>(std::clamp(limits.seconds.value_or(1e8), 0.0, 1e8));
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(span);
  thread_ = std::thread([this, end, &stop, l = std::move(limits)] {
    constexpr auto look = std::chrono::milliseconds(20);
    std::unique_lock lock(mutex_);
    while (!finished_) {
      if (l.each_look) l.each_look();
      const ComputerMemory computer = computer_memory();
      Limit limit = Limit::none;
      if (l.seconds && Clock::now() >= end) {
        limit = Limit::seconds;
      } else if (l.memory && l.held() > *l.memory) {
        limit = Limit::memory;
      } else if (computer.left < computer.total / 32) {
        limit = Limit::computer;
      }
      if (limit != Limit::none) {
        reached_.store(limit);
        stop.store(true);
        return;
      }
      done_.wait_until(lock, std::min(end, Clock::now() + look), [this] { return finished_; });
    }
  });
}

void LimitWatch::finish() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  done_.notify_all();
  thread_.join();
}

}  // namespace rdusim
