#include "compiler/program/segments.h"

#include <algorithm>

#include "compiler/support/file.h"

namespace rdusim::program_file {
namespace {

constexpr std::string_view compiler_version = RDUSIM_VERSION;
static_assert(compiler_version.size() < version_bytes);

void put(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFFU);
}

std::uint64_t get(std::string_view file, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{static_cast<unsigned char>(file[at + i])} << (8 * i);
  return value;
}

// The 32 bytes of a SHA-256.
std::string checksum(std::string_view bytes) {
  const auto nibble = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  const std::string digits = sha256(bytes);
  std::string out;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    out += static_cast<char>(nibble(digits[i]) << 4U | nibble(digits[i + 1]));
  return out;
}

constexpr std::uint64_t aligned(std::uint64_t at) {
  return (at + alignment - 1) / alignment * alignment;
}

bool all_zero(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == '\0'; });
}

// The writer's version as it may be shown: its printable characters.
std::string printable(std::string_view version) {
  std::string out;
  for (char c : version) {
    if (c == '\0') break;
    out += c > ' ' && c <= '~' ? c : '?';
  }
  return out.empty() ? "unknown" : out;
}

}  // namespace

std::string_view name_of(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::header:
      return "header";
    case SegmentKind::operators:
      return "operators";
    case SegmentKind::collectives:
      return "collectives";
    case SegmentKind::tensors:
      return "tensors";
    case SegmentKind::stages:
      return "stages";
    case SegmentKind::buffers:
      return "buffers";
    case SegmentKind::edges:
      return "edges";
    case SegmentKind::semaphores:
      return "semaphores";
    case SegmentKind::sections:
      return "sections";
    case SegmentKind::work:
      return "work";
    case SegmentKind::placement:
      return "placement";
    case SegmentKind::memory:
      return "memory";
    case SegmentKind::schedule:
      return "schedule";
    case SegmentKind::trees:
      return "trees";
    case SegmentKind::certificate:
      return "certificate";
  }
  return {};
}

std::string join(const std::vector<Segment>& segments, std::uint32_t schema_version) {
  const std::uint64_t header_bytes = fixed_bytes + segments.size() * entry_bytes + checksum_bytes;
  std::uint64_t file_bytes = header_bytes;
  for (const Segment& s : segments) file_bytes = aligned(file_bytes) + s.bytes.size();

  std::string out;
  out.reserve(file_bytes);
  out += magic;
  put(out, schema_version, 4);
  put(out, header_bytes, 4);
  put(out, file_bytes, 8);
  out += compiler_version;
  out.resize(out.size() + version_bytes - compiler_version.size(), '\0');
  put(out, segments.size(), 4);
  put(out, 0, 4);
  std::uint64_t end = header_bytes;
  for (const Segment& s : segments) {
    const std::uint64_t offset = aligned(end);
    put(out, static_cast<std::uint32_t>(s.kind), 4);
    put(out, 0, 4);
    put(out, offset, 8);
    put(out, s.bytes.size(), 8);
    out += checksum(s.bytes);
    end = offset + s.bytes.size();
  }
  out += checksum(out);
  for (const Segment& s : segments) {
    out.resize(aligned(out.size()), '\0');
    out += s.bytes;
  }
  return out;
}

Result<std::vector<SegmentView>> split(std::string_view file, std::uint32_t schema_version, const std::string& where) {
  Diagnostics out;
  if (file.size() < magic.size() && magic.starts_with(file)) {
    out.error(Code::RDU5003, where, "the file has {} bytes, less than a program's header", file.size());
    return out;
  }
  if (!file.starts_with(magic)) {
    out.error(Code::RDU5001, where, "the file does not start with '{}'", magic);
    return out;
  }
  if (file.size() < magic.size() + 4) {
    out.error(Code::RDU5003, where, "the file has {} bytes, less than a program's header", file.size());
    return out;
  }
  // The version comes before all else: another one's header may look different.
  const std::uint64_t version = get(file, 8, 4);
  if (version != schema_version) {
    const std::string writer = file.size() < fixed_bytes ? "unknown" : printable(file.substr(24, version_bytes));
    out.error(Code::RDU5002, where,
              "the program has schema version {}, written by rdusim {}; this is rdusim {}, which reads {}", version,
              writer, compiler_version, schema_version);
    return out;
  }
  if (file.size() < fixed_bytes) {
    out.error(Code::RDU5003, where, "the file has {} bytes, less than a program's header", file.size());
    return out;
  }
  const std::uint64_t header_bytes = get(file, 12, 4);
  const std::uint64_t count = get(file, 40, 4);
  if (header_bytes != fixed_bytes + count * entry_bytes + checksum_bytes) {
    out.error(Code::RDU5005, where, "a header of {} bytes does not hold a table of {} segments", header_bytes, count);
    return out;
  }
  if (file.size() < header_bytes) {
    out.error(Code::RDU5003, where, "the file has {} bytes, its header {}", file.size(), header_bytes);
    return out;
  }
  const std::string_view header = file.substr(0, header_bytes - checksum_bytes);
  if (checksum(header) != file.substr(header.size(), checksum_bytes)) {
    out.error(Code::RDU5004, where, "the header's SHA-256 is not the one recorded");
    return out;
  }
  const std::uint64_t file_bytes = get(file, 16, 8);
  if (file.size() < file_bytes) {
    out.error(Code::RDU5003, where, "the file has {} bytes, its header says {}", file.size(), file_bytes);
    return out;
  }
  if (file.size() > file_bytes) {
    out.error(Code::RDU5005, where, "{} bytes follow the program's {}", file.size() - file_bytes, file_bytes);
    return out;
  }
  if (get(file, 44, 4) != 0) {
    out.error(Code::RDU5005, where, "a reserved field of the header is not 0");
    return out;
  }

  std::vector<SegmentView> segments;
  segments.reserve(count);
  std::uint64_t end = header_bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t entry = fixed_bytes + i * entry_bytes;
    const std::uint64_t raw_kind = get(file, entry, 4);
    const auto kind = static_cast<SegmentKind>(raw_kind);
    const std::uint64_t offset = get(file, entry + 8, 8);
    const std::uint64_t length = get(file, entry + 16, 8);
    if (name_of(kind).empty() || get(file, entry + 4, 4) != 0) {
      out.error(Code::RDU5005, where, "segment {} is of kind {}, which does not exist", i, raw_kind);
      return out;
    }
    if (length > max_segment_bytes) {
      out.error(Code::RDU5005, where, "segment {} ({}) has {} bytes, more than the limit of {}", i, name_of(kind),
                length, max_segment_bytes);
      return out;
    }
    // Segments lie behind each other in the order of the table, so that they cannot overlap. Requires no overflow:
    // end <= file size, length < 2^31.
    if (offset != aligned(end) || offset > file_bytes || length > file_bytes - offset) {
      out.error(Code::RDU5005, where,
                "segment {} ({}) lies at {} and has {} bytes, in a file of {} where {} comes next", i, name_of(kind),
                offset, length, file_bytes, aligned(end));
      return out;
    }
    if (!all_zero(file.substr(end, offset - end))) {
      out.error(Code::RDU5005, where, "the bytes before segment {} ({}) are not 0", i, name_of(kind));
      return out;
    }
    const bool first = segments.empty();
    if (first != (kind == SegmentKind::header)) {
      out.error(Code::RDU5005, where, "segment {} is '{}'; a program has one 'header', and it comes first", i,
                name_of(kind));
      return out;
    }
    if (!first && (kind < segments.back().kind || (kind == segments.back().kind && !may_have_pieces(kind)))) {
      out.error(Code::RDU5005, where, "segment {} is '{}' and follows '{}'", i, name_of(kind),
                name_of(segments.back().kind));
      return out;
    }
    const std::string_view bytes = file.substr(offset, length);
    if (checksum(bytes) != file.substr(entry + 24, checksum_bytes)) {
      out.error(Code::RDU5004, where, "the SHA-256 of segment {} ({}) is not the one recorded", i, name_of(kind));
      return out;
    }
    segments.push_back({kind, bytes});
    end = offset + length;
  }
  if (segments.empty()) {
    out.error(Code::RDU5005, where, "the file has no segments");
    return out;
  }
  if (end != file_bytes) {
    out.error(Code::RDU5005, where, "the last segment ends at {}, the file at {}", end, file_bytes);
    return out;
  }
  return segments;
}

}  // namespace rdusim::program_file
