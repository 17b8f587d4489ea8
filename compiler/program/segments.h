// The frame of prog.bin: a header with a table of segments, then the segments. What is in a segment, prog_bin.fbs says;
// this file knows none of it. prog-bin.md describes the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/result.h"

namespace rdusim::program_file {

// A list may be cut into several segments of its kind, its pieces, one after the other.
enum class SegmentKind : std::uint32_t {
  header = 1,
  operators,
  collectives,
  tensors,
  stages,
  buffers,
  edges,
  semaphores,
  sections,
  work,
  placement,
  memory,
  schedule,
  trees,
  certificate,
};

// Empty for what is no kind.
std::string_view name_of(SegmentKind kind);

// Whether a list of this kind may have several pieces.
constexpr bool may_have_pieces(SegmentKind kind) {
  return kind == SegmentKind::collectives || kind == SegmentKind::tensors || kind == SegmentKind::stages ||
         kind == SegmentKind::buffers || kind == SegmentKind::edges || kind == SegmentKind::semaphores ||
         kind == SegmentKind::sections || kind == SegmentKind::work || kind == SegmentKind::placement ||
         kind == SegmentKind::trees;
}

inline constexpr std::string_view magic = "RDUSIMPB";
inline constexpr std::size_t version_bytes = 16;   // of the compiler's version, NUL-padded text
inline constexpr std::size_t fixed_bytes = 48;     // before the table
inline constexpr std::size_t entry_bytes = 56;     // of the table
inline constexpr std::size_t checksum_bytes = 32;  // SHA-256
inline constexpr std::size_t alignment = 16;       // of every segment in the file; the gaps are zeros
// FlatBuffers' offsets are signed 32-bit numbers: no segment is larger.
inline constexpr std::uint64_t max_segment_bytes = (std::uint64_t{1} << 31U) - 2;

struct Segment {
  SegmentKind kind = SegmentKind::header;
  std::string bytes;
};

struct SegmentView {
  SegmentKind kind = SegmentKind::header;
  std::string_view bytes;  // of the file's
};

// The file. Requires kinds in rising order, the header first.
std::string join(const std::vector<Segment>& segments, std::uint32_t schema_version);

// The segments of a file whose magic, version, lengths, padding and checksums are as they should be: kinds rising, the
// header just once and first, pieces only where a kind may have them. Allocates nothing but the result, which has an
// entry for each 56 bytes of the file at most. Errors: RDU5001-RDU5005, one line.
Result<std::vector<SegmentView>> split(std::string_view file, std::uint32_t schema_version, const std::string& where);

}  // namespace rdusim::program_file
