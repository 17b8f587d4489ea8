// A program file with the checksums that its bytes call for, as far as its table of segments can be read: for tests
// that want to get past them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/program/segments.h"
#include "compiler/support/file.h"

namespace rdusim::made {

inline std::uint64_t number_at(std::string_view file, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{static_cast<unsigned char>(file[at + i])} << (8 * i);
  return value;
}

inline void set_number(std::string& file, std::size_t at, std::size_t bytes, std::uint64_t value) {
  for (std::size_t i = 0; i < bytes; ++i) file[at + i] = static_cast<char>(value >> (8 * i) & 0xFFU);
}

inline std::string raw_sha256(std::string_view bytes) {
  const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  const std::string digits = sha256(bytes);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    out += static_cast<char>(value(digits[i]) * 16 + value(digits[i + 1]));
  return out;
}

inline std::string repaired(std::string file) {
  namespace pf = program_file;
  if (file.size() < pf::fixed_bytes) return file;
  const std::uint64_t count = number_at(file, 40, 4);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t entry = pf::fixed_bytes + i * pf::entry_bytes;
    if (file.size() < entry + pf::entry_bytes) return file;
    const std::uint64_t offset = number_at(file, entry + 8, 8);
    const std::uint64_t length = number_at(file, entry + 16, 8);
    if (offset > file.size() || length > file.size() - offset) continue;
    file.replace(entry + 24, pf::checksum_bytes, raw_sha256(std::string_view(file).substr(offset, length)));
  }
  const std::uint64_t end = pf::fixed_bytes + count * pf::entry_bytes;
  if (file.size() < end + pf::checksum_bytes) return file;
  file.replace(end, pf::checksum_bytes, raw_sha256(std::string_view(file).substr(0, end)));
  return file;
}

}  // namespace rdusim::made
