#include "compiler/support/file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <system_error>
#include <utility>

#include "compiler/support/units.h"
#include "compiler/support/utf8.h"

namespace rdusim {
namespace {

std::string reason(int error) {
  return std::generic_category().message(error);
}

Diagnostics failure(Code code, const std::string& path, const std::string& why) {
  Diagnostics out;
  out.error(code, path, "{}", why);
  return out;
}

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a regular file";
}

// Closes on leaving the scope, and can say whether closing worked.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

// Reads to the end of `fd`, at most `max_bytes`.
Result<std::string> read_all(int fd, const std::string& name, std::uint64_t size_hint, std::uint64_t max_bytes) {
  std::string text;
  text.reserve(size_hint);
  std::vector<char> chunk(std::size_t{1} << 16);
  for (;;) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      pollfd ready{fd, POLLIN, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (got < 0) return failure(Code::RDU1001, name, "cannot be read: " + reason(errno));
    if (got == 0) return text;
    if (text.size() + static_cast<std::uint64_t>(got) > max_bytes) {
      return failure(Code::RDU1024, name, "is larger than the limit of " + format_bytes(max_bytes));
    }
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

std::optional<int> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (put < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return std::nullopt;
}

// The file that a symbolic link stands for, so that the link is kept and the file is what is replaced.
std::string resolved(const std::string& path) {
  struct stat link {};
  if (::lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) return path;
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : path;
}

// A device, FIFO or socket is written in place: renaming would replace it.
Result<bool> write_in_place(const std::string& path, std::string_view bytes) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (fd.get() < 0) return failure(Code::RDU5008, path, "cannot be opened: " + reason(errno));
  if (const auto error = write_all(fd.get(), bytes)) {
    return failure(Code::RDU5008, path, "cannot be written: " + reason(*error));
  }
  return true;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Edits (insert, delete, replace, swap two neighbours) from a to b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes) {
  if (path == "-") return read_all(STDIN_FILENO, "standard input", 0, max_bytes);
  if (path.find('\0') != std::string::npos) return failure(Code::RDU1001, path, "is not a path: it has a zero byte");

  // Asked before opening: opening a device or FIFO can have effects of its own.
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return failure(Code::RDU1001, path, "cannot be opened: " + reason(errno));
  if (!S_ISREG(info.st_mode)) {
    return failure(Code::RDU1001, path, "is " + kind_of(info.st_mode) + ", where a file is asked for");
  }
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) {
    return failure(Code::RDU1001, path, "cannot be opened: " + reason(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return failure(Code::RDU1001, path, "is " + kind_of(info.st_mode) + ", where a file is asked for");
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > max_bytes) {
    return failure(Code::RDU1024, path,
                   "has " + format_bytes(size) + ", more than the limit of " + format_bytes(max_bytes));
  }
  return read_all(fd.get(), path, size, max_bytes);
}

Result<bool> write_file(const std::string& path, std::string_view bytes) {
  if (path == "-") {
    if (const auto error = write_all(STDOUT_FILENO, bytes)) {
      return failure(Code::RDU5008, "standard output", "cannot be written: " + reason(*error));
    }
    return true;
  }
  if (path.empty() || path.find('\0') != std::string::npos) return failure(Code::RDU5008, path, "is not a path");

  const std::string target = resolved(path);
  struct stat info {};
  const bool exists = ::stat(target.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return failure(Code::RDU5008, path, "is a directory");
  if (exists && !S_ISREG(info.st_mode)) return write_in_place(path, bytes);
  if (exists && ::access(target.c_str(), W_OK) != 0) {
    return failure(Code::RDU5008, path, "cannot be replaced: " + reason(errno));
  }

  std::string beside;
  int raw = -1;
  for (int attempt = 0; attempt < 100 && raw < 0; ++attempt) {
    beside = target + ".tmp-" + std::to_string(::getpid()) + (attempt == 0 ? "" : "-" + std::to_string(attempt));
    raw = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
    if (raw < 0 && errno != EEXIST) break;
  }
  if (raw < 0) return failure(Code::RDU5008, path, "cannot be written beside: " + reason(errno));
  Descriptor fd(raw);

  const auto give_up = [&](int error) {
    fd.close();
    ::unlink(beside.c_str());
    return failure(Code::RDU5008, path, "cannot be written: " + reason(error));
  };
  if (exists && ::fchmod(fd.get(), info.st_mode & 07777) != 0) return give_up(errno);
  if (const auto error = write_all(fd.get(), bytes)) return give_up(*error);
  if (!fd.close()) return give_up(errno);
  if (::rename(beside.c_str(), target.c_str()) != 0) return give_up(errno);
  return true;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto point = first_code_point(text);
    if (!point) return false;
    text.remove_prefix(point->length);
  }
  return true;
}

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr);
  constexpr std::string_view hex = "0123456789abcdef";
  std::string out;
  for (unsigned i = 0; i < length; ++i) {
    out += hex[digest[i] >> 4U];
    out += hex[digest[i] & 15U];
  }
  return out;
}

std::string sha256(std::span<const std::byte> bytes) {
  return sha256(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
  constexpr std::size_t longest = 64;
  if (name.empty() || name.size() > longest) return {};
  const std::size_t allowed = std::max<std::size_t>(1, name.size() / 3);
  std::size_t best = allowed + 1;
  std::size_t best_prefix = std::numeric_limits<std::size_t>::max();  // of what is too far, so that it never wins a tie
  std::string_view found;
  for (std::string_view candidate : candidates) {
    if (candidate.size() > name.size() + allowed) continue;
    const std::size_t distance = edit_distance(lower(name), lower(candidate));
    const std::size_t prefix = common_prefix(name, candidate);
    if (distance < best || (distance == best && prefix > best_prefix)) {
      best = distance;
      best_prefix = prefix;
      found = candidate;
    }
  }
  return found;
}

}  // namespace rdusim
