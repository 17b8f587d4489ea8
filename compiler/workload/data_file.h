// A file of tensor data that a workload or a program names: opened for reading at positions, hashed piece by piece,
// never held whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "compiler/support/element_bytes.h"
#include "compiler/support/result.h"
#include "compiler/workload/fill.h"

namespace rdusim {

// Regular files only; closes itself. Reading moves no position, so threads may share one.
class DataFile {
 public:
  // `shown` is the path as the user wrote it, for messages; `where` the place that asked. Errors: RDU1001.
  static Result<DataFile> open(const std::string& path, const std::string& shown, const std::string& where);

  DataFile(DataFile&& other) noexcept;
  DataFile& operator=(DataFile&& other) noexcept;
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;
  ~DataFile();

  std::uint64_t size() const { return size_; }

  // Fills `out` from the bytes at `offset`. False where the file cannot be read or has fewer bytes.
  bool read(std::uint64_t offset, std::span<std::byte> out) const;

  // The bytes at `offset`, as the system reads them when they are looked at: they take memory only as long as there is
  // some, and go on being there when the file is closed. Nothing where the file has fewer, or cannot be mapped. If the
  // file is cut short later, reading what it lost is the signal SIGBUS.
  std::optional<ElementBytes> map(std::uint64_t offset, std::uint64_t bytes) const;

  // Lower-case hexadecimal SHA-256 of the whole; nothing where the file cannot be read. Memory: one block.
  std::optional<std::string> sha256() const;

  // Changes whenever the file is written to or replaced: device, inode, size and times of last change.
  std::string identity() const;

 private:
  DataFile(int descriptor, std::uint64_t size) : descriptor_(descriptor), size_(size) {}

  int descriptor_ = -1;  // of a moved-from object; never seen outside
  std::uint64_t size_ = 0;
};

// `relative` below `folder`: not absolute, no '..', and no symbolic link that leads out of the folder. Gives the path
// to open. Errors: RDU1001, RDU1007, RDU1021.
Result<std::string> path_within(const std::string& folder, const std::string& relative, const std::string& where);

// Opens `folder`/fill.path and makes sure that it has the size and the SHA-256 that `fill` records. A file is hashed
// once a process, and again only where its identity() has changed since. Threads may call at once: the first hashes,
// the others wait for it. Errors: RDU1001, RDU1025.
Result<DataFile> open_unchanged(const FileFill& fill, const std::string& folder);

}  // namespace rdusim
