// Protocol buffer messages, written: tags, varints, fixed64 and length-delimited fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "traces/wire.h"

namespace rdusim {

class Message {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    put_varint(bytes_, std::uint64_t{field} << 3U);
    put_varint(bytes_, value);
  }
  void fixed64(std::uint32_t field, std::uint64_t value) {
    put_varint(bytes_, std::uint64_t{field} << 3U | 1U);
    put_u64(bytes_, value);
  }
  void text(std::uint32_t field, std::string_view value) {
    put_varint(bytes_, std::uint64_t{field} << 3U | 2U);
    put_text(bytes_, value);
  }
  void message(std::uint32_t field, const Message& m) { text(field, m.bytes_); }

  void clear() { bytes_.clear(); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace rdusim
