// NumPy's .npy format, versions 1.0, 2.0 and 3.0, as far as a tensor can be read from it in place.
//
//   layout   "\x93NUMPY", major, minor, header length (2 bytes little-endian; 4 from version 2.0 on); a Python literal,
//            a dictionary with the keys descr, fortran_order and shape, padded and ended by a newline; the data
//   source   NumPy Enhancement Proposal 1, https://numpy.org/neps/nep-0001-npy-format.html, and numpy.lib.format
//   taken    little-endian, row-major, plain element types (workload-file.md says which `descr` suits which dtype)
//   refused  everything else, by name: big-endian, Fortran order, structures, Python objects
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/support/dtype.h"
#include "compiler/support/result.h"
#include "compiler/workload/data_file.h"

namespace rdusim {

struct NpyHeader {
  std::string descr;  // "<i4"; empty: something else than a string (a structure)
  bool fortran_order = false;
  std::vector<std::int64_t> shape;  // extents of 0 and the empty shape of a single number are possible
  std::uint64_t data_offset = 0;
};

// The longest header that is read; NumPy itself stops at 10,000 bytes unless told otherwise.
inline constexpr std::uint64_t npy_header_limit = 1 << 20;

// Of the file's first bytes: all of them, or at least up to the end of the header. `file` and `where` are for messages.
// Errors: RDU1017.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> start, const std::string& file, const std::string& where);

// Where element 0 of the file is, given that the file holds a tensor of just this dtype and shape.
// Errors: RDU1001, RDU1017, RDU1018.
Result<std::uint64_t> npy_data_offset(const DataFile& data, DType dtype, const std::vector<std::int64_t>& shape,
                                      const std::string& file, const std::string& where);

}  // namespace rdusim
