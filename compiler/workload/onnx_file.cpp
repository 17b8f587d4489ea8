// The one file that knows libonnx.
#include <bit>
#include <cstring>
#include <utility>

#include "compiler/workload/onnx_model.h"

#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include <google/protobuf/io/coded_stream.h>
#include <onnx/onnx_pb.h>

namespace rdusim {
namespace {

constexpr std::size_t held_elements = 4096;  // more stay in the file

std::uint32_t width_of(std::int32_t type) {
  const auto dtype = dtype_of_onnx(type);
  return dtype ? bytes_of(*dtype) : 0;
}

template <class T>
T value_at(const std::string& bytes, std::size_t i) {
  T v;
  std::memcpy(&v, bytes.data() + i * sizeof(T), sizeof(T));
  return v;
}

void hold_raw(const std::string& raw, std::int32_t type, OnnxTensor& out) {
  const std::size_t n = raw.size() / width_of(type);
  for (std::size_t i = 0; i < n; ++i) {
    switch (type) {
      case onnx::TensorProto::FLOAT:
        out.floats.push_back(value_at<float>(raw, i));
        break;
      case onnx::TensorProto::BFLOAT16:
        out.floats.push_back(std::bit_cast<float>(std::uint32_t{value_at<std::uint16_t>(raw, i)} << 16));
        break;
      case onnx::TensorProto::INT8:
        out.integers.push_back(value_at<std::int8_t>(raw, i));
        break;
      case onnx::TensorProto::INT32:
        out.integers.push_back(value_at<std::int32_t>(raw, i));
        break;
      default:
        out.integers.push_back(value_at<std::int64_t>(raw, i));
    }
  }
}

// Values in a field of their own, which is not where a file fill could read them from.
void hold_fields(const onnx::TensorProto& t, OnnxTensor& out) {
  for (const float v : t.float_data()) out.floats.push_back(v);
  for (const std::int32_t v : t.int32_data()) {
    if (t.data_type() == onnx::TensorProto::BFLOAT16) {
      out.floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(v) << 16));
    } else {
      out.integers.push_back(v);
    }
  }
  for (const std::int64_t v : t.int64_data()) out.integers.push_back(v);
}

// Where raw_data of an initializer lies: its first byte, by walking the file's fields from the start. Protobuf writes
// messages as fields of (number, wire type), and a message within a message by its length.
class RawDataWalk {
 public:
  explicit RawDataWalk(const std::string& bytes) : bytes_(bytes) {}

  // Of the initializers of the graph, in their order; 0 where one has no raw data.
  std::vector<std::uint64_t> offsets() {
    each_field(0, bytes_.size(), [&](std::uint64_t field, std::uint64_t from, std::uint64_t to) {
      if (field != 7) return;  // ModelProto.graph
      each_field(from, to, [&](std::uint64_t inner, std::uint64_t begin, std::uint64_t end) {
        if (inner != 5) return;  // GraphProto.initializer
        offsets_.push_back(0);
        each_field(begin, end, [&](std::uint64_t data, std::uint64_t first, std::uint64_t) {
          if (data == 9) offsets_.back() = first;  // TensorProto.raw_data
        });
      });
    });
    return offsets_;
  }

 private:
  bool varint(std::uint64_t& at, std::uint64_t end, std::uint64_t& value) const {
    value = 0;
    for (int shift = 0; shift < 64 && at < end; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at++]);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  template <class Visit>
  void each_field(std::uint64_t at, std::uint64_t end, Visit visit) {
    while (at < end) {
      std::uint64_t key = 0, length = 0;
      if (!varint(at, end, key)) return;
      switch (key & 7U) {
        case 0:
          if (!varint(at, end, length)) return;
          break;
        case 1:
          at += 8;
          break;
        case 2:
          if (!varint(at, end, length) || length > end - at) return;
          visit(key >> 3, at, at + length);
          at += length;
          break;
        case 5:
          at += 4;
          break;
        default:
          return;
      }
    }
  }

  const std::string& bytes_;
  std::vector<std::uint64_t> offsets_;
};

OnnxTensor tensor_of(const onnx::TensorProto& t, std::uint64_t raw_offset) {
  OnnxTensor out;
  out.name = t.name();
  out.type = t.data_type();
  out.dims.assign(t.dims().begin(), t.dims().end());
  if (t.data_location() == onnx::TensorProto::EXTERNAL) {
    for (const auto& entry : t.external_data()) {
      if (entry.key() == "location") out.file = entry.value();
      if (entry.key() == "offset") out.offset = std::strtoull(entry.value().c_str(), nullptr, 10);
      if (entry.key() == "length") out.length = std::strtoull(entry.value().c_str(), nullptr, 10);
    }
    if (out.file.empty()) out.file = "?";
    return out;
  }
  const std::uint32_t width = width_of(out.type);
  if (!t.has_raw_data()) {
    hold_fields(t, out);
    out.held = true;
  } else if (raw_offset == 0 || (width != 0 && t.raw_data().size() / width <= held_elements)) {
    if (width != 0) hold_raw(t.raw_data(), out.type, out);
    out.held = true;
  }
  out.offset = raw_offset;
  out.length = t.raw_data().size();
  return out;
}

OnnxAttribute attribute_of(const onnx::AttributeProto& a) {
  OnnxAttribute out;
  if (a.has_i()) out.integer = a.i();
  if (a.has_f()) out.real = a.f();
  if (a.has_s()) out.text = a.s();
  if (a.has_t()) out.tensor = tensor_of(a.t(), 0);
  out.integers.assign(a.ints().begin(), a.ints().end());
  out.reals.assign(a.floats().begin(), a.floats().end());
  return out;
}

OnnxNode node_of(const onnx::NodeProto& n) {
  OnnxNode out;
  out.name = n.name();
  out.kind = n.op_type();
  out.domain = n.domain() == "ai.onnx" ? "" : n.domain();
  out.in.assign(n.input().begin(), n.input().end());
  out.out.assign(n.output().begin(), n.output().end());
  for (const auto& a : n.attribute()) out.attributes.emplace(a.name(), attribute_of(a));
  return out;
}

OnnxValue value_of(const onnx::ValueInfoProto& v) {
  OnnxValue out;
  out.name = v.name();
  if (!v.has_type() || !v.type().has_tensor_type()) return out;
  const auto& type = v.type().tensor_type();
  out.type = type.elem_type();
  out.shaped = type.has_shape();
  for (const auto& dim : type.shape().dim()) out.dims.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
  return out;
}

}  // namespace

Result<OnnxModel> parse_onnx(const std::string& bytes, const std::string& where) {
  Diagnostics wrong;
  onnx::ModelProto model;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    wrong.error(Code::RDU1050, where, "the file is no ONNX model: it does not parse as one");
    return wrong;
  }
  if (!model.has_graph()) {
    wrong.error(Code::RDU1050, where, "the model has no graph");
    return wrong;
  }
  OnnxModel out;
  const auto& graph = model.graph();
  out.name = graph.name();
  for (const auto& set : model.opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") out.opset = set.version();
  }
  const auto offsets = RawDataWalk(bytes).offsets();
  for (int i = 0; i < graph.initializer_size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    out.initializers.push_back(tensor_of(graph.initializer(i), at < offsets.size() ? offsets[at] : 0));
  }
  for (const auto& n : graph.node()) out.nodes.push_back(node_of(n));
  for (const auto& v : graph.input()) out.inputs.push_back(value_of(v));
  for (const auto& v : graph.output()) out.outputs.push_back(value_of(v));
  if (graph.sparse_initializer_size() != 0) {
    wrong.error(Code::RDU1052, where, "the model has sparse initializers");
    return wrong;
  }
  return out;
}

Result<OnnxTensor> parse_onnx_tensor(const std::string& bytes, const std::string& where) {
  onnx::TensorProto tensor;
  if (!tensor.ParseFromString(bytes)) {
    Diagnostics wrong;
    wrong.error(Code::RDU1050, where, "the file is no ONNX tensor: it does not parse as one");
    return wrong;
  }
  return tensor_of(tensor, 0);
}

std::string onnx_type_name(std::int32_t type) {
  if (!onnx::TensorProto::DataType_IsValid(type)) return "type " + std::to_string(type);
  return onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(type));
}

std::optional<DType> dtype_of_onnx(std::int32_t type) {
  switch (type) {
    case onnx::TensorProto::FLOAT:
      return DType::fp32;
    case onnx::TensorProto::BFLOAT16:
      return DType::bf16;
    case onnx::TensorProto::INT8:
      return DType::int8;
    case onnx::TensorProto::INT32:
      return DType::int32;
    case onnx::TensorProto::INT64:
      return DType::int64;
    default:
      return std::nullopt;
  }
}

}  // namespace rdusim
