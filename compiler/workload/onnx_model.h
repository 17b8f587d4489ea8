// An ONNX file as it stands, without the library's headers in sight: names, nodes, attributes, tensors.
//
// Format: https://github.com/onnx/onnx/blob/main/docs/IR.md; parsed by Debian's libonnx, no check of its own applied.
// Of tensor data only what is short or needed to work out shapes is held; larger tensors say where in the file their
// bytes are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/support/dtype.h"
#include "compiler/support/result.h"

namespace rdusim {

struct OnnxTensor {
  std::string name;
  std::vector<std::int64_t> dims;      // as in the file: may be empty, and hold anything
  std::int32_t type = 0;               // TensorProto.DataType
  std::vector<std::int64_t> integers;  // the values, where the type is INT8, INT32 or INT64 and they are held
  std::vector<double> floats;          // where it is FLOAT or BFLOAT16 and they are held
  bool held = false;
  // Else where the little-endian values are: from `offset` of `file` (empty: the model's own).
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

struct OnnxAttribute {
  std::optional<std::int64_t> integer;
  std::optional<float> real;
  std::vector<std::int64_t> integers;
  std::vector<float> reals;
  std::string text;
  std::optional<OnnxTensor> tensor;
};

struct OnnxNode {
  std::string name;
  std::string kind;              // op_type
  std::string domain;            // "" for ONNX's own
  std::vector<std::string> in;   // "" where an optional one is left out
  std::vector<std::string> out;  // the same
  std::map<std::string, OnnxAttribute> attributes;
};

struct OnnxValue {
  std::string name;
  std::int32_t type = 0;  // 0: no tensor
  bool shaped = false;
  std::vector<std::int64_t> dims;  // -1 where an extent has only a name, or none
};

struct OnnxModel {
  std::string name;
  std::int64_t opset = 0;  // of ONNX's own operators
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValue> inputs;
  std::vector<OnnxValue> outputs;
};

// The largest file, which protobuf's own limit is: 2 GiB - 1. Larger models keep their data in files beside them.
inline constexpr std::uint64_t onnx_size_limit = 0x7FFFFFFF;

// Of the file's bytes. Errors: RDU1050.
Result<OnnxModel> parse_onnx(const std::string& bytes, const std::string& where);

// A file that holds one tensor, such as ONNX's test data are; its values are held. Errors: RDU1050.
Result<OnnxTensor> parse_onnx_tensor(const std::string& bytes, const std::string& where);

// ONNX's name of an element type, "FLOAT16"; "type 99" for none of them.
std::string onnx_type_name(std::int32_t type);

// The dtype that holds just the values of an element type; nothing where there is none.
std::optional<DType> dtype_of_onnx(std::int32_t type);

}  // namespace rdusim
