#include "traces/wire.h"

#include <bit>
#include <cstring>

namespace rdusim {

std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t h = 0xcbf29ce484222325U ^ bytes.size();
  const auto take = [&h](std::uint64_t word) {
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    h = (h ^ word) * 0x100000001b3U;
    h ^= h >> 29U;
  };
  while (bytes.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    take(word);
    bytes.remove_prefix(8);
  }
  if (!bytes.empty()) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    take(word);
  }
  return h ^ (h >> 32U);
}

}  // namespace rdusim
