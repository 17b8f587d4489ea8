#include "compiler/support/file_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "compiler/support/file.h"

namespace rdusim {
namespace {

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

}  // namespace

// ---- writing

Result<FileWriter> FileWriter::create(const std::string& path) {
  FileWriter w;
  w.path_ = path;
  if (path == "-") {
    w.path_ = "standard output";
    w.fd_ = STDOUT_FILENO;
    return w;
  }
  if (path.empty() || path.find('\0') != std::string::npos) return failure(Code::RDU5008, path, "is not a path");
  w.target_ = resolved(path);
  struct stat info {};
  const bool exists = ::stat(w.target_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return failure(Code::RDU5008, path, "is a directory");
  if (exists && !S_ISREG(info.st_mode)) {
    // Renaming would replace it.
    w.fd_ = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (w.fd_ < 0) return failure(Code::RDU5008, path, "cannot be opened: {}", system_reason(errno));
    w.owned_ = true;
    return w;
  }
  if (exists && ::access(w.target_.c_str(), W_OK) != 0)
    return failure(Code::RDU5008, path, "cannot be replaced: {}", system_reason(errno));
  for (int attempt = 0; attempt < 100 && w.fd_ < 0; ++attempt) {
    w.beside_ = w.target_ + ".tmp-" + std::to_string(::getpid()) + (attempt == 0 ? "" : "-" + std::to_string(attempt));
    w.fd_ = ::open(w.beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
    if (w.fd_ < 0 && errno != EEXIST) break;
  }
  if (w.fd_ < 0) {
    const int error = errno;
    w.beside_.clear();
    return failure(Code::RDU5008, path, "cannot be written beside: {}", system_reason(error));
  }
  w.owned_ = true;
  if (exists && ::fchmod(w.fd_, info.st_mode & 07777) != 0) w.error_ = errno;
  return w;
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      beside_(std::exchange(other.beside_, {})),
      fd_(std::exchange(other.fd_, -1)),
      owned_(std::exchange(other.owned_, false)),
      size_(other.size_),
      error_(other.error_) {}

FileWriter& FileWriter::operator=(FileWriter&& other) noexcept {
  if (this == &other) return *this;
  discard();
  path_ = std::move(other.path_);
  target_ = std::move(other.target_);
  beside_ = std::exchange(other.beside_, {});
  fd_ = std::exchange(other.fd_, -1);
  owned_ = std::exchange(other.owned_, false);
  size_ = other.size_;
  error_ = other.error_;
  return *this;
}

FileWriter::~FileWriter() {
  discard();
}

void FileWriter::discard() {
  if (owned_ && fd_ >= 0) ::close(fd_);
  if (!beside_.empty()) ::unlink(beside_.c_str());
  fd_ = -1;
  owned_ = false;
  beside_.clear();
}

void FileWriter::write(std::string_view bytes) {
  if (error_ || fd_ < 0) return;
  error_ = write_all(fd_, bytes);
  if (!error_) size_ += bytes.size();
}

Result<bool> FileWriter::commit() {
  if (!error_ && owned_) {
    owned_ = false;
    if (::close(std::exchange(fd_, -1)) != 0) error_ = errno;
  }
  if (!error_ && !beside_.empty()) {
    if (::rename(beside_.c_str(), target_.c_str()) != 0) {
      error_ = errno;
    } else {
      beside_.clear();
    }
  }
  if (error_) {
    discard();
    return failure(Code::RDU5008, path_, "cannot be written: {}", system_reason(*error_));
  }
  return true;
}

// ---- reading

Result<FileReader> FileReader::open(const std::string& path) {
  FileReader r;
  if (path == "-") {
    r.fd_ = STDIN_FILENO;
    return r;
  }
  if (path.find('\0') != std::string::npos) return failure(Code::RDU1001, path, "is not a path: it has a zero byte");
  // Asked before opening: opening a device or FIFO can have effects of its own.
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return failure(Code::RDU1001, path, "cannot be opened: {}", system_reason(errno));
  if (!S_ISREG(info.st_mode)) return failure(Code::RDU1001, path, "is no file");
  r.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (r.fd_ < 0 || ::fstat(r.fd_, &info) != 0) {
    const int error = errno;
    if (r.fd_ >= 0) ::close(r.fd_);
    return failure(Code::RDU1001, path, "cannot be opened: {}", system_reason(error));
  }
  r.owned_ = true;
  r.size_ = static_cast<std::uint64_t>(info.st_size);
  return r;
}

FileReader::FileReader(FileReader&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      owned_(std::exchange(other.owned_, false)),
      failed_(other.failed_),
      position_(other.position_),
      size_(other.size_) {}

FileReader& FileReader::operator=(FileReader&& other) noexcept {
  if (this == &other) return *this;
  if (owned_ && fd_ >= 0) ::close(fd_);
  fd_ = std::exchange(other.fd_, -1);
  owned_ = std::exchange(other.owned_, false);
  failed_ = other.failed_;
  position_ = other.position_;
  size_ = other.size_;
  return *this;
}

FileReader::~FileReader() {
  if (owned_ && fd_ >= 0) ::close(fd_);
}

std::size_t FileReader::read(char* to, std::size_t count) {
  std::size_t done = 0;
  while (done < count && fd_ >= 0) {
    const ssize_t got = ::read(fd_, to + done, std::min<std::size_t>(count - done, std::size_t{1} << 30));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      pollfd ready{fd_, POLLIN, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (got < 0) failed_ = true;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  position_ += done;
  return done;
}

bool FileReader::seek(std::uint64_t position) {
  if (!size_ || ::lseek(fd_, static_cast<off_t>(position), SEEK_SET) < 0) return false;
  position_ = position;
  return true;
}

}  // namespace rdusim
