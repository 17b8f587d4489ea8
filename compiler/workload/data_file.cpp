#include "compiler/workload/data_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "compiler/support/file.h"

namespace rdusim {
namespace {

std::string joined(const std::string& folder, const std::string& relative) {
  return folder.empty() || relative.starts_with('/') ? relative : folder + "/" + relative;
}

// What was found out about a file, and the lock under which it is.
struct CheckedFile {
  std::mutex lock;
  std::string identity;  // of the file when it was hashed; empty: not yet
  std::string sha256;
};

// A fact about the file system, remembered for the process: it changes no answer, only how often a file is hashed.
std::shared_ptr<CheckedFile> checked_file(const std::string& path) {
  static std::mutex lock;
  static std::map<std::string, std::shared_ptr<CheckedFile>> files;
  const std::lock_guard guard(lock);
  auto& entry = files[path];
  if (!entry) entry = std::make_shared<CheckedFile>();
  return entry;
}

}  // namespace

Result<DataFile> DataFile::open(const std::string& path, const std::string& shown, const std::string& where) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return failure(Code::RDU1001, where, "'{}' is not a path", shown);
  }
  // Asked before opening: opening a device or FIFO can have effects of its own.
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return failure(Code::RDU1001, where, "'{}' cannot be opened: {}", shown, system_reason(errno));
  }
  if (!S_ISREG(info.st_mode)) return failure(Code::RDU1001, where, "'{}' is not a regular file", shown);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return failure(Code::RDU1001, where, "'{}' cannot be opened: {}", shown, system_reason(errno));
  DataFile file(descriptor, 0);
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    return failure(Code::RDU1001, where, "'{}' is not a regular file", shown);
  }
  file.size_ = static_cast<std::uint64_t>(info.st_size);
  return file;
}

DataFile::DataFile(DataFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), size_(std::exchange(other.size_, 0)) {}

DataFile& DataFile::operator=(DataFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

DataFile::~DataFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool DataFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_ || out.size() > size_ - offset) return false;
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;  // cut short since it was opened
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

std::optional<ElementBytes> DataFile::map(std::uint64_t offset, std::uint64_t bytes) const {
  if (bytes == 0 || offset > size_ || bytes > size_ - offset) return std::nullopt;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = offset / page * page, before = offset - begin;
  const std::size_t length = static_cast<std::size_t>(before + bytes);
  void* at = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor_, static_cast<off_t>(begin));
  if (at == MAP_FAILED) return std::nullopt;
  std::shared_ptr<const void> holder(at, [length](const void* p) { ::munmap(const_cast<void*>(p), length); });
  return ElementBytes({static_cast<const std::byte*>(at) + before, static_cast<std::size_t>(bytes)}, std::move(holder));
}

std::optional<std::string> DataFile::sha256() const {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) return std::nullopt;
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < size_;) {
    const std::size_t length = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), size_ - at));
    if (!read(at, std::span(block).first(length))) return std::nullopt;
    if (EVP_DigestUpdate(context.get(), block.data(), length) != 1) return std::nullopt;
    at += length;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  if (EVP_DigestFinal_ex(context.get(), digest.data(), &length) != 1) return std::nullopt;
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string DataFile::identity() const {
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) return {};
  return fmt::format("{}:{}:{}:{}.{:09}:{}.{:09}", info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

Result<std::string> path_within(const std::string& folder, const std::string& relative, const std::string& where) {
  namespace fs = std::filesystem;
  if (relative.empty()) return failure(Code::RDU1007, where, "the path of a file is empty");
  for (const char c : relative) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      return failure(Code::RDU1007, where, "the path of a file has a control character (byte {})", unsigned{byte});
    }
  }
  if (relative.front() == '/') {
    Diagnostics out;
    out.error(Code::RDU1021, where, "'{}' is an absolute path", relative)
        .suggest("write it relative to the workload's folder");
    return out;
  }
  for (const fs::path& part : fs::path(relative)) {
    if (part == "..") return failure(Code::RDU1021, where, "'{}' steps out of a folder with '..'", relative);
  }
  const std::string path = joined(folder, relative);
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return failure(Code::RDU1001, where, "'{}' cannot be opened: {}", relative, error.message());
  const fs::path root = fs::canonical(folder.empty() ? "." : folder, error);
  if (error) return failure(Code::RDU1001, where, "the folder '{}' cannot be opened: {}", folder, error.message());
  auto inside = real.begin();
  for (const fs::path& part : root) {
    if (inside == real.end() || *inside != part) {
      return failure(Code::RDU1021, where, "'{}' is a symbolic link that leads out of the workload's folder", relative);
    }
    ++inside;
  }
  return path;
}

Result<DataFile> open_unchanged(const FileFill& fill, const std::string& folder) {
  const std::string path = joined(folder, fill.path);
  auto file = DataFile::open(path, fill.path, path);
  if (!file) return file;
  if (file->size() != fill.size_bytes) {
    return failure(Code::RDU1025, path, "has {} bytes, where the program recorded {}", file->size(), fill.size_bytes);
  }
  const auto checked = checked_file(path);
  const std::lock_guard guard(checked->lock);
  const std::string identity = file->identity();
  if (identity.empty() || identity != checked->identity) {
    const auto digest = file->sha256();
    if (!digest) return failure(Code::RDU1001, path, "cannot be read to its end");
    checked->identity = identity;
    checked->sha256 = *digest;
  }
  if (checked->sha256 != fill.sha256) {
    return failure(Code::RDU1025, path, "has the SHA-256 {}, where the program recorded {}", checked->sha256,
                   fill.sha256);
  }
  return file;
}

}  // namespace rdusim
