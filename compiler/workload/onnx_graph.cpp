#include "compiler/workload/onnx_graph.h"

#include <algorithm>
#include <cmath>

#include "compiler/support/units.h"
#include "compiler/support/utf8.h"
#include "compiler/workload/data_file.h"
#include "compiler/workload/operator_traits.h"
#include "compiler/workload/shape_text.h"

namespace rdusim {
namespace {

using OnnxShape = OnnxGraph::Shape;

// A name that a workload could give: printable, 1 to 255 bytes.
bool is_plain_name(std::string_view name) {
  if (name.empty() || name.size() > 255) return false;
  while (!name.empty()) {
    const auto point = first_code_point(name);
    if (!point || point->value < 0x20 || (point->value >= 0x7F && point->value < 0xA0)) return false;
    name.remove_prefix(point->length);
  }
  return true;
}

OnnxShape with_axis(const OnnxShape& shape) {
  return shape.empty() ? OnnxShape{1} : shape;
}

}  // namespace

OnnxGraph::OnnxGraph(const OnnxModel& model, std::string where, std::string folder, std::string file)
    : model_(model), where_(std::move(where)), folder_(std::move(folder)), file_(std::move(file)), place_(where_) {
  graph_.name = is_plain_name(model.name) ? model.name : "model";
  for (const OnnxTensor& t : model.initializers) constants_.emplace(t.name, t);
  for (const OnnxValue& v : model.inputs) {
    if (!constants_.contains(v.name)) inputs_.emplace(v.name, &v);
  }
}

void OnnxGraph::begin(const OnnxNode& node) {
  node_ = &node;
  failed_ = false;
  place_ = fmt::format("{}: node '{}' ({})", where_,
                       node.name.empty() ? node.out.empty() ? "" : node.out[0] : node.name, node.kind);
  for (const std::string& name : node.in) failed_ = failed_ || lost_.contains(name);
}

void OnnxGraph::end() {
  if (failed_) lost_.insert(node_->out.begin(), node_->out.end());
  node_ = nullptr;
}

// ---- values

std::string OnnxGraph::unique(const std::string& wish) {
  const std::string base = is_plain_name(wish) ? wish : "value";
  std::string name = base;
  for (std::size_t i = 1; !names_.insert(name).second; ++i) name = fmt::format("{}.{}", base, i);
  return name;
}

OperandId OnnxGraph::add(Operand operand) {
  operand.id = OperandId{graph_.operands.size()};
  if (operand.where.empty()) operand.where = where_;
  graph_.operands.push_back(std::move(operand));
  gaps_.emplace_back();
  return graph_.operands.back().id;
}

OnnxShape OnnxGraph::shape(OperandId id) const {
  return scalars_.contains(id) ? Shape{} : graph_.operand(id).shape;
}

const OnnxTensor* OnnxGraph::constant(const std::string& name) {
  const auto found = constants_.find(name);
  return found == constants_.end() || !found->second.held ? nullptr : &found->second;
}

std::optional<OnnxShape> OnnxGraph::shape_of(const std::string& name) {
  if (const auto found = constants_.find(name); found != constants_.end()) return found->second.dims;
  const OperandId id = operand(name);
  if (failed_) return std::nullopt;
  return shape(id);
}

OperandId OnnxGraph::operand(const std::string& name) {
  const OperandId none{std::size_t{0}};
  if (failed_) return none;
  if (const auto found = operands_.find(name); found != operands_.end()) return found->second;
  if (const auto found = constants_.find(name); found != constants_.end()) {
    const OperandId id = weight_of(found->second);
    if (!failed_) operands_.emplace(name, id);
    return id;
  }
  const auto found = inputs_.find(name);
  if (found == inputs_.end()) {
    refuse(Code::RDU1050, "the value '{}' is neither an input nor written before", name);
    return none;
  }
  const OnnxValue& value = *found->second;
  const auto type = dtype_of_onnx(value.type);
  if (!type) {
    refuse(Code::RDU1052, "the input '{}' is of {}", name, value.type == 0 ? "no tensor" : onnx_type_name(value.type));
    return none;
  }
  if (!value.shaped || std::any_of(value.dims.begin(), value.dims.end(), [](std::int64_t n) { return n < 1; })) {
    refuse(Code::RDU1052, "the input '{}' has extents that are not given", name);
    return none;
  }
  Operand o;
  o.name = unique(name);
  o.role = TensorRole::input;
  o.shape = with_axis(value.dims);
  o.dtype = *type;
  o.fill = ExternalFill{};
  const OperandId id = add(std::move(o));
  if (value.dims.empty()) scalars_.insert(id);
  operands_.emplace(name, id);
  return id;
}

OperandId OnnxGraph::weight_of(const OnnxTensor& tensor) {
  const OperandId none{std::size_t{0}};
  const auto type = dtype_of_onnx(tensor.type);
  if (!type) {
    refuse(Code::RDU1052, "the constant '{}' is of {}", tensor.name, onnx_type_name(tensor.type));
    return none;
  }
  const auto count = element_count(tensor.dims);
  const auto bytes = count ? checked_multiply(*count, bytes_of(*type)) : std::nullopt;
  if (!bytes) {
    refuse(Code::RDU1052, "the constant '{}' is {}", tensor.name, shape_text(tensor.dims));
    return none;
  }
  Operand o;
  o.name = unique(tensor.name);
  o.role = TensorRole::weight;
  o.shape = with_axis(tensor.dims);
  o.dtype = *type;
  if (tensor.held) {
    const std::size_t held = is_integer(*type) ? tensor.integers.size() : tensor.floats.size();
    if (held != static_cast<std::uint64_t>(*count)) {
      refuse(Code::RDU1050, "the constant '{}' has {} values for {}", tensor.name, held, shape_text(tensor.dims));
      return none;
    }
    if (!std::all_of(tensor.floats.begin(), tensor.floats.end(), [](double v) { return std::isfinite(v); })) {
      refuse(Code::RDU1052, "the constant '{}' has infinities or NaN", tensor.name);
      return none;
    }
    o.fill = is_integer(*type) ? ValuesFill{tensor.integers, {}} : ValuesFill{{}, tensor.floats};
  } else {
    auto fill = file_fill(tensor, static_cast<std::uint64_t>(*bytes));
    if (!fill) return none;
    o.fill = std::move(*fill);
  }
  const OperandId id = add(std::move(o));
  if (tensor.dims.empty()) scalars_.insert(id);
  return id;
}

std::optional<FileFill> OnnxGraph::file_fill(const OnnxTensor& tensor, std::uint64_t bytes) {
  FileFill fill;
  fill.path = tensor.file.empty() ? file_ : tensor.file;
  fill.data_offset = tensor.offset;
  const auto full = path_within(folder_, fill.path, place_);
  auto data = full ? DataFile::open(*full, fill.path, place_) : Result<DataFile>(full.diagnostics());
  if (!data) {
    diagnostics_.append(data.diagnostics());
    failed_ = true;
    return std::nullopt;
  }
  auto& [size, digest] = files_[*full];
  if (digest.empty()) {
    size = data->size();
    digest = data->sha256().value_or("");
  }
  fill.size_bytes = size;
  fill.sha256 = digest;
  const std::uint64_t length = tensor.length == 0 ? bytes : tensor.length;
  if (digest.empty() || length != bytes || fill.data_offset > size || bytes > size - fill.data_offset) {
    refuse(Code::RDU1050, "the constant '{}' needs {} bytes from byte {} on of '{}', which has {}; it names {}",
           tensor.name, bytes, fill.data_offset, fill.path, size, length);
    return std::nullopt;
  }
  return fill;
}

void OnnxGraph::bind(const std::string& name, OperandId id) {
  if (failed_ || name.empty()) return;
  Operand& o = graph_.operands[id.value];
  if (o.role == TensorRole::intermediate && o.name.starts_with('%')) {
    names_.erase(o.name);
    o.name = unique(name);
  }
  if (operands_.contains(name) || constants_.contains(name) || inputs_.contains(name)) {
    refuse(Code::RDU1050, "the value '{}' is written twice", name);
    return;
  }
  operands_.emplace(name, id);
}

void OnnxGraph::bind(const std::string& name, OnnxTensor constant) {
  if (failed_ || name.empty()) return;
  constant.name = name;
  if (operands_.contains(name) || inputs_.contains(name) || !constants_.emplace(name, std::move(constant)).second)
    refuse(Code::RDU1050, "the value '{}' is written twice", name);
}

// ---- operators

OperandId OnnxGraph::append(OperatorKind kind, std::vector<OperandId> in, OperatorAttributes attributes, Shape given,
                            DType dtype) {
  const OperandId none{std::size_t{0}};
  if (failed_) return none;
  if (is_integer(dtype) && bytes_of(dtype) == 1 && kind != OperatorKind::cast && !is_move(kind) &&
      kind != OperatorKind::maximum && kind != OperatorKind::minimum && kind != OperatorKind::relu &&
      kind != OperatorKind::reduce_max && kind != OperatorKind::reduce_min) {
    refuse(Code::RDU1052, "int8 results of a {} would wrap around, and rdusim's saturate", name_of(kind));
    return none;
  }
  const bool scalar = std::all_of(in.begin(), in.end(), [&](OperandId id) { return scalars_.contains(id); });
  Operand result;
  result.name = unique(fmt::format("%{}", graph_.operators.size()));
  result.dtype = dtype;
  result.shape = given;
  result.where = place_;
  Operator op;
  op.id = OperatorId{graph_.operators.size()};
  op.name = fmt::format("{}{}", name_of(kind), graph_.operators.size());
  op.kind = kind;
  op.in = std::move(in);
  op.attributes = std::move(attributes);
  op.where = place_;
  op.out = add(std::move(result));
  gaps_.back().shape = given.empty();
  graph_.operators.push_back(op);
  Diagnostics wrong;
  check_operator(graph_, graph_.operators.size() - 1, gaps_, wrong);
  if (wrong.has_errors()) {
    refuse(Code::RDU1052, "{}", wrong.list().front().message);
    return none;
  }
  if (scalar && kind != OperatorKind::reshape) scalars_.insert(op.out);
  return op.out;
}

OperandId OnnxGraph::emit(OperatorKind kind, std::vector<OperandId> in, OperatorAttributes attributes,
                          std::optional<DType> dtype) {
  if (failed_) return OperandId{std::size_t{0}};
  const DType first = graph_.operand(in[0]).dtype;
  return append(kind, std::move(in), std::move(attributes), {}, dtype.value_or(first));
}

OperandId OnnxGraph::reshape(OperandId x, const Shape& to) {
  if (failed_ || shape(x) == to) return x;
  const OperandId id = append(OperatorKind::reshape, {x}, {}, with_axis(to), dtype(x));
  if (!failed_ && to.empty()) scalars_.insert(id);
  return id;
}

OperandId OnnxGraph::transpose(OperandId x, const std::vector<std::int64_t>& axes) {
  if (std::is_sorted(axes.begin(), axes.end()) && axes.size() == shape(x).size()) return x;
  OperatorAttributes a;
  a.axes = axes;
  return emit(OperatorKind::transpose, {x}, a);
}

OperandId OnnxGraph::slice(OperandId x, std::size_t axis, std::int64_t begin, std::int64_t end) {
  if (failed_) return x;
  OperatorAttributes a;
  a.end = graph_.operand(x).shape;
  a.begin.assign(a.end.size(), 0);
  a.begin[axis] = begin;
  a.end[axis] = end;
  return emit(OperatorKind::slice, {x}, a);
}

OperandId OnnxGraph::filled(double value, const Shape& to, DType type) {
  if (!element_count(to)) {
    refuse(Code::RDU1052, "a constant of {}", shape_text(to));
    return OperandId{std::size_t{0}};
  }
  Operand o;
  o.name = unique("constant");
  o.role = TensorRole::weight;
  o.shape = with_axis(to);
  o.dtype = type;
  o.where = place_;
  o.fill = ConstantFill{value, static_cast<std::int64_t>(value)};
  const OperandId id = add(std::move(o));
  if (to.empty()) scalars_.insert(id);
  return id;
}

// ---- the end

void OnnxGraph::output(const OnnxValue& value) {
  failed_ = lost_.contains(value.name);
  place_ = fmt::format("{}: output '{}'", where_, value.name);
  OperandId id = operand(value.name);
  if (failed_) return;
  if (graph_.operand(id).role != TensorRole::intermediate) {
    if (graph_.operand(id).role == TensorRole::weight) {  // the output is to have the name
      names_.erase(graph_.operand(id).name);
      graph_.operands[id.value].name = unique(graph_.operand(id).name + ".value");
    }
    id = append(OperatorKind::reshape, {id}, {}, graph_.operand(id).shape, dtype(id));
    if (failed_) return;
    names_.erase(graph_.operands[id.value].name);
    graph_.operands[id.value].name = unique(value.name);
  }
  graph_.operands[id.value].role = TensorRole::output;
  const Shape& has = graph_.operand(id).shape;
  const bool told = value.shaped && std::none_of(value.dims.begin(), value.dims.end(), [](auto n) { return n < 1; });
  if (told && with_axis(value.dims) != has)
    refuse(Code::RDU1050, "the model says {}, and it is {}", shape_text(value.dims), shape_text(has));
  if (const auto type = dtype_of_onnx(value.type); !failed_ && type != dtype(id))
    refuse(Code::RDU1052, "the model says {}, and it is {}", onnx_type_name(value.type), name_of(dtype(id)));
}

Result<OperatorGraph> OnnxGraph::finish() {
  for (const OnnxValue& value : model_.outputs) output(value);
  // What no operator reads and nobody asked for is no part of the graph: its operators go, from the last to the first.
  std::vector<bool> needed(graph_.operands.size(), false);
  for (const Operand& o : graph_.operands) needed[o.id.value] = o.role == TensorRole::output;
  std::vector<Operator> kept;
  for (auto op = graph_.operators.rbegin(); op != graph_.operators.rend(); ++op) {
    if (!needed[op->out.value]) continue;
    for (const OperandId in : op->in) needed[in.value] = true;
    kept.push_back(std::move(*op));
  }
  std::reverse(kept.begin(), kept.end());
  std::vector<OperandId> now(graph_.operands.size());
  std::vector<Operand> operands;
  for (Operand& o : graph_.operands) {
    if (!needed[o.id.value]) continue;
    now[o.id.value] = OperandId{operands.size()};
    o.id = OperandId{operands.size()};
    operands.push_back(std::move(o));
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    kept[i].id = OperatorId{i};
    kept[i].out = now[kept[i].out.value];
    for (OperandId& in : kept[i].in) in = now[in.value];
  }
  graph_.operators = std::move(kept);
  graph_.operands = std::move(operands);
  if (diagnostics_.has_errors()) return diagnostics_;
  return std::move(graph_);
}

}  // namespace rdusim
