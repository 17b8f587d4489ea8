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

#include "compiler/support/file_stream.h"
#include "compiler/support/units.h"
#include "compiler/support/utf8.h"

namespace rdusim {
namespace {

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a regular file";
}

// Closes on leaving the scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

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
    if (got < 0) return failure(Code::RDU1001, name, "cannot be read: {}", system_reason(errno));
    if (got == 0) return text;
    if (text.size() + static_cast<std::uint64_t>(got) > max_bytes) {
      return failure(Code::RDU1024, name, "is larger than the limit of {}", format_bytes(max_bytes));
    }
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
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

std::string system_reason(int error) {
  return std::generic_category().message(error);
}

Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes) {
  if (path == "-") return read_all(STDIN_FILENO, "standard input", 0, max_bytes);
  if (path.find('\0') != std::string::npos) return failure(Code::RDU1001, path, "is not a path: it has a zero byte");

  // Asked before opening: opening a device or FIFO can have effects of its own.
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return failure(Code::RDU1001, path, "cannot be opened: {}", system_reason(errno));
  if (!S_ISREG(info.st_mode)) {
    return failure(Code::RDU1001, path, "is {}, where a file is asked for", kind_of(info.st_mode));
  }
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) {
    return failure(Code::RDU1001, path, "cannot be opened: {}", system_reason(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return failure(Code::RDU1001, path, "is {}, where a file is asked for", kind_of(info.st_mode));
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > max_bytes) {
    return failure(Code::RDU1024, path, "has {}, more than the limit of {}", format_bytes(size),
                   format_bytes(max_bytes));
  }
  return read_all(fd.get(), path, size, max_bytes);
}

Result<bool> write_file(const std::string& path, std::string_view bytes) {
  auto file = FileWriter::create(path);
  if (!file) return file.diagnostics();
  file->write(bytes);
  return file->commit();
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
