// Files, in and out: whole, bounded, and never half-written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/result.h"

namespace rdusim {

// All bytes of a regular file ("-": standard input). Refuses directories, FIFOs, devices and what is larger than
// `max_bytes`, before taking memory. Errors: RDU1001, RDU1024.
Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes);

// Writes beside `path` and renames, so that a reader sees the old file or the whole new one ("-": standard output).
// Errors: RDU5008 (nothing is left behind).
Result<bool> write_file(const std::string& path, std::string_view bytes);

// What the system says of a value of errno.
std::string system_reason(int error);

bool is_utf8(std::string_view text);

// Lower-case hexadecimal SHA-256.
std::string sha256(std::string_view bytes);
std::string sha256(std::span<const std::byte> bytes);

// The candidate nearest to `name` by edit distance, where it is near enough to be a slip of the keyboard; else empty.
// Of equals, the one that begins most alike, then the first.
std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace rdusim
