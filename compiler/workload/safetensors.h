// The safetensors format: where each tensor of a file lies.
//
//   layout   8 bytes little-endian: the header's length; a JSON object from tensor names to
//            {"dtype": ..., "shape": [...], "data_offsets": [begin, end]} (and "__metadata__": strings), padded with
//            spaces; then the data, to which the offsets are relative
//   source   https://github.com/huggingface/safetensors (README, "Format")
//   holds    the ranges tile the data: no hole, no overlap, nothing behind the last; names are unique
//   taken    BF16 F32 I8 I32 I64 F8_E4M3 F8_E5M2; other tensors may be in the file, and only their ranges are looked at
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/dtype.h"
#include "compiler/support/result.h"
#include "compiler/workload/data_file.h"

namespace rdusim {

struct SafetensorsTensor {
  std::string name;
  std::string dtype;                // as the file says: "BF16"
  std::vector<std::int64_t> shape;  // extents of 0 and the empty shape of a single number are possible
  std::uint64_t begin = 0;          // bytes, from the start of the data
  std::uint64_t end = 0;
};

struct SafetensorsIndex {
  std::vector<SafetensorsTensor> tensors;  // in the order of the header
  std::uint64_t data_offset = 0;           // of the data in the file
};

inline constexpr std::uint64_t safetensors_header_limit = 100'000'000;  // bytes; the reference implementation's
// Reading the header takes memory for every value in it; this bounds that to a few hundred MB.
inline constexpr std::uint64_t safetensors_values_limit = 4'000'000;

// rdusim's name of a dtype as safetensors writes it; nothing for those that rdusim has not.
std::optional<DType> safetensors_dtype(std::string_view name);

// Of the JSON text alone; `data_bytes` is what follows it in the file. Errors: RDU1019.
Result<SafetensorsIndex> parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                                  const std::string& file, const std::string& where);

// Errors: RDU1001, RDU1019.
Result<SafetensorsIndex> read_safetensors_index(const DataFile& data, const std::string& file,
                                                const std::string& where);

// Where element 0 of `tensor` is in the file, given that it has just this dtype and shape. Errors: RDU1020.
Result<std::uint64_t> safetensors_data_offset(const SafetensorsIndex& index, const std::string& tensor, DType dtype,
                                              const std::vector<std::int64_t>& shape, const std::string& file,
                                              const std::string& where);

}  // namespace rdusim
