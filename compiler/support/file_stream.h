// Files piece by piece: written beside their path and renamed when they are complete, read front to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/support/result.h"

namespace rdusim {

// Appears at `path` whole, or not at all: what was not committed is removed. "-" is standard output; a device, FIFO or
// socket is written in place.
class FileWriter {
 public:
  // Errors: RDU5008.
  static Result<FileWriter> create(const std::string& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&& other) noexcept;
  ~FileWriter();

  // After the first failure nothing more is written; commit() says what it was.
  void write(std::string_view bytes);
  bool failed() const { return error_.has_value(); }
  std::uint64_t size() const { return size_; }  // bytes written so far
  // Where the bytes lie until then; empty where they go straight to their place.
  const std::string& beside() const { return beside_; }
  // Errors: RDU5008; nothing is left behind then.
  Result<bool> commit();

 private:
  FileWriter() = default;
  void discard();

  std::string path_;    // as asked for
  std::string target_;  // what a symbolic link stands for
  std::string beside_;
  int fd_ = -1;
  bool owned_ = false;
  std::uint64_t size_ = 0;
  std::optional<int> error_;
};

// What a writer of many small pieces gathers before it writes.
inline constexpr std::size_t flush_bytes = std::size_t{1} << 16;

// A regular file, or standard input ("-").
class FileReader {
 public:
  // Errors: RDU1001.
  static Result<FileReader> open(const std::string& path);
  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&& other) noexcept;
  ~FileReader();

  // Up to `count` bytes; fewer only where the file ends or cannot be read further.
  std::size_t read(char* to, std::size_t count);
  bool failed() const { return failed_; }
  std::uint64_t position() const { return position_; }
  // Of a regular file; standard input has none and cannot be sought.
  std::optional<std::uint64_t> size() const { return size_; }
  bool seek(std::uint64_t position);

 private:
  FileReader() = default;

  int fd_ = -1;
  bool owned_ = false;
  bool failed_ = false;
  std::uint64_t position_ = 0;
  std::optional<std::uint64_t> size_;
};

}  // namespace rdusim
