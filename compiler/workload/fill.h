// What a tensor's elements are, without holding them: the same for a whole tensor and for a slice of it.
//
// A slice of a fill is the original's elements at their original positions: element (i, j) of a slice at offset (a, b) is
// element (a + i, b + j) of the whole tensor, and `p` below is always the flat row-major index in the whole tensor.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "compiler/support/dtype.h"

namespace rdusim {

struct ZeroFill {
  friend bool operator==(const ZeroFill&, const ZeroFill&) = default;
};
struct ConstantFill {
  double value = 0;          // exactly representable in the tensor's dtype
  std::int64_t integer = 0;  // the value for integer dtypes (int64 does not fit a double)
  friend bool operator==(const ConstantFill&, const ConstantFill&) = default;
};
// value(p) = (p mod modulus) - shift. modulus >= 1.
struct PatternFill {
  std::int64_t modulus = 1;
  std::int64_t shift = 0;
  friend bool operator==(const PatternFill&, const PatternFill&) = default;
};
struct ValuesFill {
  std::vector<std::int64_t> integers;  // for integer dtypes
  std::vector<double> floats;          // for the others
  friend bool operator==(const ValuesFill&, const ValuesFill&) = default;
};
// Element p is drawn from SplitMix64(seed, p), uniform in [low, high]: integers for integer dtypes.
struct RandomFill {
  std::uint64_t seed = 0;
  double low = 0;
  double high = 0;
  friend bool operator==(const RandomFill&, const RandomFill&) = default;
};
// A vendor generator over the whole shape: what it gives to an element depends on all of them, so it cannot be sliced.
struct WholeTensorRandomFill {
  std::uint64_t seed = 0;
  friend bool operator==(const WholeTensorRandomFill&, const WholeTensorRandomFill&) = default;
};
struct FileFill {
  std::string path;    // relative to the program (prog.bin), forward slashes
  std::string tensor;  // of a safetensors file; empty for .npy
  std::uint64_t size_bytes = 0;
  std::string sha256;
  std::uint64_t data_offset = 0;  // of element 0 in the file
  // A part of what lies there, in an order of its own (one expert's gates of a tensor of all): element p is that whose
  // place, counted from data_offset, is the sum of p's digits times `strides`; `extents` says how many there are of each
  // digit, the last the fastest, and their product is the tensor's elements. Empty: element p is at place p.
  std::vector<std::int64_t> extents = {}, strides = {};
  friend bool operator==(const FileFill&, const FileFill&) = default;
};
struct ExternalFill {  // given at run time with --set
  friend bool operator==(const ExternalFill&, const ExternalFill&) = default;
};

using Fill = std::variant<ZeroFill, ConstantFill, PatternFill, ValuesFill, RandomFill, WholeTensorRandomFill, FileFill,
                          ExternalFill>;

}  // namespace rdusim
