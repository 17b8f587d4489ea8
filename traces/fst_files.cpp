#include "traces/fst_files.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace {

struct Written {
  std::mutex mutex;
  std::map<std::FILE*, std::string> paths;  // of all that are open, that of the main file that they belong to
  std::map<std::string, std::FILE*> mains;  // of those
  std::map<std::string, int> errors;
};
Written& written() {
  static Written w;
  return w;
}
// fstapi opens its main file first, and all others straight after it.
thread_local std::string current;

void remember(std::FILE* file, int error) {
  Written& w = written();
  const std::lock_guard lock(w.mutex);
  if (const auto it = w.paths.find(file); it != w.paths.end()) w.errors.emplace(it->second, error);
}

}  // namespace

extern "C" {

FILE* rdusim_fst_temporary(void) {
  const int fd = memfd_create("fst", MFD_CLOEXEC);
  if (fd < 0) return nullptr;
  std::FILE* const file = fdopen(fd, "w+b");
  if (file == nullptr) {
    close(fd);
    return nullptr;
  }
  Written& w = written();
  const std::lock_guard lock(w.mutex);
  w.paths[file] = current;
  return file;
}

FILE* rdusim_fst_open(const char* path, const char* mode) {
  if (*mode != 'w') return std::fopen(path, mode);
  if (std::string_view(path).ends_with(".hier")) return rdusim_fst_temporary();
  std::FILE* const file = std::fopen(path, mode);
  if (file == nullptr) return nullptr;
  Written& w = written();
  const std::lock_guard lock(w.mutex);
  current = path;
  w.paths[file] = path;
  w.mains[path] = file;
  w.errors.erase(path);
  return file;
}

void* rdusim_fst_map(void* at, size_t bytes, int protection, int flags, int fd, long offset) {
  struct stat s {};
  if (fstat(fd, &s) == 0 && static_cast<std::size_t>(s.st_size) >= bytes + static_cast<std::size_t>(offset))
    return mmap(at, bytes, protection, flags, fd, offset);
  std::FILE* of = nullptr;
  {
    Written& w = written();
    const std::lock_guard lock(w.mutex);
    for (const auto& [file, path] : w.paths)
      if (fileno(file) == fd) of = file;
  }
  remember(of, ENOSPC);
  return mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

size_t rdusim_fst_write(const void* from, size_t size, size_t count, FILE* file) {
  const std::size_t written_count = std::fwrite(from, size, count, file);
  if (written_count != count) remember(file, errno);
  return written_count;
}

int rdusim_fst_flush(FILE* file) {
  const int result = std::fflush(file);
  if (result != 0) remember(file, errno);
  return result;
}

// A single byte that failed leaves the file's error flag behind, but not why.
int rdusim_fst_close(FILE* file) {
  if (std::fflush(file) != 0) remember(file, errno);
  if (std::ferror(file) != 0) remember(file, EIO);
  {
    Written& w = written();
    const std::lock_guard lock(w.mutex);
    if (const auto it = w.paths.find(file); it != w.paths.end()) {
      if (const auto main = w.mains.find(it->second); main != w.mains.end() && main->second == file)
        w.mains.erase(main);
      w.paths.erase(it);
    }
  }
  return std::fclose(file);
}

unsigned long long rdusim_fst_size(const char* path) {
  std::FILE* main = nullptr;
  {
    Written& w = written();
    const std::lock_guard lock(w.mutex);
    if (const auto it = w.mains.find(path); it != w.mains.end()) main = it->second;
  }
  if (main != nullptr) rdusim_fst_flush(main);
  struct stat s {};
  return stat(path, &s) == 0 ? static_cast<unsigned long long>(s.st_size) : 0;
}

int rdusim_fst_error(const char* path) {
  Written& w = written();
  const std::lock_guard lock(w.mutex);
  const auto it = w.errors.find(path);
  if (it == w.errors.end()) return 0;
  const int error = it->second;
  w.errors.erase(it);
  return error;
}

}  // extern "C"
