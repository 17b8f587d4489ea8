// The blocks of an event log; event-log.md says what is in them.
#pragma once

#include <cstdint>
#include <string_view>

#include "traces/wire.h"

namespace rdusim::log_block {

inline constexpr std::string_view magic = "\x89RDULOG\n";
inline constexpr std::string_view tail_magic = "RDUINDEX";

inline constexpr std::uint32_t head = 1, program = 2, events = 3, end = 4, index = 5;

inline constexpr std::size_t header_bytes = 20;                    // type, payload bytes, records: 4 each; checksum: 8
inline constexpr std::size_t tail_bytes = 16;                      // offset of the index: 8; tail_magic
inline constexpr std::size_t part_bytes = std::size_t{1} << 20;    // of a program
inline constexpr std::size_t events_bytes = std::size_t{1} << 16;  // after which a block of events is closed
inline constexpr std::uint64_t restart_bytes = std::uint64_t{1} << 24;  // after which one begins anew
inline constexpr std::uint64_t longest_payload = std::uint64_t{1} << 30;
inline constexpr std::uint8_t begins_anew = 1;  // flag of a block of events

inline std::uint64_t sum_of(std::uint32_t type, std::uint32_t records, std::string_view payload) {
  return checksum(payload) ^ (type * 0x9e3779b97f4a7c15U) ^ (records * 0xff51afd7ed558ccdU);
}

}  // namespace rdusim::log_block
