// Numbers as bytes: what the event log is made of. Little-endian; a varint is 7 bits a byte, the lowest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rdusim {

constexpr std::uint64_t zigzag(std::uint64_t difference) {
  return (difference << 1U) ^ (std::uint64_t{0} - (difference >> 63U));
}
constexpr std::uint64_t unzigzag(std::uint64_t coded) {
  return (coded >> 1U) ^ (std::uint64_t{0} - (coded & 1U));
}

inline constexpr std::size_t longest_varint = 10;

// Writes at `to`, which has room for the longest; gives the end.
inline std::uint8_t* put_varint(std::uint8_t* to, std::uint64_t value) {
  while (value >= 0x80) {
    *to++ = static_cast<std::uint8_t>(value | 0x80U);
    value >>= 7U;
  }
  *to++ = static_cast<std::uint8_t>(value);
  return to;
}
inline void put_varint(std::string& out, std::uint64_t value) {
  std::uint8_t bytes[longest_varint];
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(put_varint(bytes, value) - bytes));
}
inline void put_text(std::string& out, std::string_view text) {
  put_varint(out, text.size());
  out.append(text);
}
inline void put_u32(std::string& out, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * i));
}
inline void put_u64(std::string& out, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i));
}

// Reads what the functions above wrote. Past the end, or where a number is malformed, it has failed and gives zeros.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes)
      : at_(reinterpret_cast<const std::uint8_t*>(bytes.data())), end_(at_ + bytes.size()) {}

  bool failed() const { return failed_; }
  bool done() const { return at_ == end_; }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  void fail() {
    failed_ = true;
    at_ = end_;
  }

  std::uint8_t byte() {
    if (at_ == end_) {
      fail();
      return 0;
    }
    return *at_++;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) break;
      const std::uint8_t b = *at_++;
      if (shift == 63 && b > 1) break;
      value |= static_cast<std::uint64_t>(b & 0x7FU) << shift;
      if (b < 0x80) return value;
    }
    fail();
    return 0;
  }
  // A number below `limit`.
  std::uint64_t below(std::uint64_t limit) {
    const std::uint64_t value = varint();
    if (value < limit) return value;
    fail();
    return 0;
  }
  // How many elements of at least `least_bytes` follow; never more than there are bytes for.
  std::size_t count(std::size_t least_bytes = 1) {
    const std::uint64_t n = varint();
    if (n <= left() / least_bytes) return static_cast<std::size_t>(n);
    fail();
    return 0;
  }
  std::string_view bytes(std::size_t n) {
    if (n > left()) {
      fail();
      return {};
    }
    const std::string_view text(reinterpret_cast<const char*>(at_), n);
    at_ += n;
    return text;
  }
  std::string_view text() { return bytes(count()); }
  std::uint64_t fixed(int n) {
    std::uint64_t value = 0;
    const std::string_view text = bytes(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < text.size(); ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])) << (8 * i);
    return value;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  bool failed_ = false;
};

// A checksum that finds damage, not malice: FNV-1a over words of eight bytes, the last one filled up with zeros, and
// the length; folded.
std::uint64_t checksum(std::string_view bytes);

}  // namespace rdusim
