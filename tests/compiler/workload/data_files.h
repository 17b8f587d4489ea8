// Bytes of .npy and safetensors files, well-formed or not, as tests want them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace rdusim {

inline std::string little_endian(std::uint64_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFFU);
  return out;
}

// A file of version `major`.0 with this header text, padded to a multiple of 64 as NumPy does.
inline std::string npy_with_header(std::string header, std::string_view data, int major = 1) {
  const std::size_t prefix = major == 1 ? 10 : 12;
  while ((prefix + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string out("\x93NUMPY", 6);
  out += static_cast<char>(major);
  out += '\0';
  out += little_endian(header.size(), major == 1 ? 2 : 4);
  return out + header + std::string(data);
}

inline std::string npy(std::string_view descr, std::string_view shape, std::string_view data, int major = 1,
                       std::string_view fortran_order = "False") {
  return npy_with_header("{'descr': '" + std::string(descr) + "', 'fortran_order': " + std::string(fortran_order) +
                             ", 'shape': " + std::string(shape) + ", }",
                         data, major);
}

inline std::string safetensors(std::string_view header, std::string_view data) {
  return little_endian(header.size(), 8) + std::string(header) + std::string(data);
}

}  // namespace rdusim
