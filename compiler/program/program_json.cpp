// Most types are objects of their fields (program_fields.h). Here is what stands otherwise, and the document as a
// whole.
#include "compiler/program/program_json.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "compiler/program/json_io.h"
#include "compiler/program/program_fields.h"

namespace rdusim {
namespace program_file {

// As a workload has it: an integer where it is one, a float where there is no integer value.
template <>
struct Form<ConstantFill> {
  static Json write(const ConstantFill& fill) {
    const auto& [value, integer] = fill;
    if (std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(static_cast<double>(integer)))
      return Json(integer);
    if (integer == 0) return number_to_value(value);
    ObjectWriter io;
    fields(io, fill);
    return io.take();
  }
  static void read(JsonReader& reader, const Json& json, ConstantFill& fill) {
    if (json.as_object() != nullptr) {
      ObjectReader io(reader, json);
      fields(io, fill);
      io.finish();
    } else if (const auto integer = json.as_int64()) {
      fill = {static_cast<double>(*integer), *integer};
    } else if (const auto number = number_from_value(json); number && !json.as_uint64()) {
      fill = {*number, 0};
    } else {
      reader.expected(json, "a number");
    }
  }
};

template <>
struct Form<ValuesFill> {
  static Json write(const ValuesFill& fill) {
    const auto& [integers, floats] = fill;
    if (floats.empty()) return to_value(integers);
    if (integers.empty()) return to_value(floats);
    ObjectWriter io;
    fields(io, fill);
    return io.take();
  }
  static void read(JsonReader& reader, const Json& json, ValuesFill& fill) {
    if (json.as_object() != nullptr) {
      ObjectReader io(reader, json);
      fields(io, fill);
      io.finish();
    } else if (const JsonArray* items = json.as_array()) {
      const bool integers =
          std::all_of(items->begin(), items->end(), [](const Json& j) { return j.as_int64().has_value(); });
      if (integers) {
        from_value(reader, json, fill.integers);
      } else {
        from_value(reader, json, fill.floats);
      }
    } else {
      reader.expected(json, "an array of numbers");
    }
  }
};

// {"key": value}
template <class T>
Json tagged(std::string_view key, const T& value) {
  ObjectWriter io;
  io.required(key, value);
  return io.take();
}

template <>
struct Form<Fill> {
  static Json write(const Fill& fill) {
    struct Alternative {
      Json operator()(const ZeroFill&) const { return "zero"; }
      Json operator()(const ConstantFill& f) const { return tagged("constant", f); }
      Json operator()(const PatternFill& f) const { return tagged("pattern", f); }
      Json operator()(const ValuesFill& f) const { return tagged("values", f); }
      Json operator()(const RandomFill& f) const { return tagged("random", f); }
      Json operator()(const WholeTensorRandomFill& f) const { return tagged("whole_tensor_random", f); }
      Json operator()(const FileFill& f) const {
        ObjectWriter io;
        fields(io, f);
        return io.take();
      }
      Json operator()(const ExternalFill&) const { return "external"; }
    };
    return std::visit(Alternative{}, fill);
  }
  static void read(JsonReader& reader, const Json& json, Fill& fill) {
    constexpr std::string_view forms =
        "\"zero\", \"external\", or an object with constant, pattern, values, random, whole_tensor_random or file";
    const std::string* name = json.as_string();
    const JsonObject* members = json.as_object();
    if (name != nullptr && *name == "zero") {
      fill = ZeroFill{};
    } else if (name != nullptr && *name == "external") {
      fill = ExternalFill{};
    } else if (json.find("file") != nullptr) {
      from_value(reader, json, fill.emplace<FileFill>());
    } else if (members != nullptr && members->size() == 1) {
      const auto& [key, value] = members->front();
      if (key == "constant") {
        reader.read_at({key}, value, fill.emplace<ConstantFill>());
      } else if (key == "pattern") {
        reader.read_at({key}, value, fill.emplace<PatternFill>());
      } else if (key == "values") {
        reader.read_at({key}, value, fill.emplace<ValuesFill>());
      } else if (key == "random") {
        reader.read_at({key}, value, fill.emplace<RandomFill>());
      } else if (key == "whole_tensor_random") {
        reader.read_at({key}, value, fill.emplace<WholeTensorRandomFill>());
      } else {
        reader.fault(value, "unknown fill '{}'; expected {}", key, forms);
      }
    } else {
      reader.expected(json, "{}", forms);
    }
  }
};

// An expression nests as it is computed: "port 0", "accumulator", a number, ["add", left, right], ["negate", value].
// What cannot be said so (too deep, or no expression at all) is the list of its postfix nodes.
constexpr std::size_t deepest_nesting = 24;

std::optional<Json> nested(const Expr& expr) {
  struct Value {
    Json json;
    std::size_t depth;
  };
  const auto zero = [](double number) { return std::bit_cast<std::uint64_t>(number) == 0; };
  std::vector<Value> stack;
  for (const auto& [op, index, number] : expr) {
    if (!zero(number) && op != ExprOp::constant) return std::nullopt;
    if (index != 0 && op != ExprOp::operand) return std::nullopt;
    const std::size_t operands = arity(op);
    if (stack.size() < operands) return std::nullopt;
    if (op == ExprOp::operand) {
      stack.push_back({Json(fmt::format("port {}", index)), 0});
    } else if (op == ExprOp::accumulator) {
      stack.push_back({Json("accumulator"), 0});
    } else if (op == ExprOp::row || op == ExprOp::column) {
      stack.push_back({Json(std::string(enum_name(op))), 0});
    } else if (op == ExprOp::constant) {
      stack.push_back({number_to_value(number), 0});
    } else {
      JsonArray call;
      call.emplace_back(enum_name(op));
      std::size_t depth = 0;
      for (std::size_t i = stack.size() - operands; i < stack.size(); ++i) {
        depth = std::max(depth, stack[i].depth);
        call.push_back(std::move(stack[i].json));
      }
      if (depth + 1 > deepest_nesting) return std::nullopt;
      stack.resize(stack.size() - operands);
      stack.push_back({Json(std::move(call)), depth + 1});
    }
  }
  if (stack.size() != 1) return std::nullopt;
  return std::move(stack.front().json);
}

std::optional<std::uint32_t> port_number(std::string_view text) {
  constexpr std::string_view prefix = "port ";
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void unnest(JsonReader& reader, const Json& json, Expr& out) {
  constexpr std::string_view forms =
      "\"port N\", \"accumulator\", \"row\", \"column\", a number, or [operator, operand, ...]";
  const std::string* text = json.as_string();
  const JsonArray* call = json.as_array();
  if (text != nullptr && *text == "accumulator") {
    out.push_back({ExprOp::accumulator, 0, 0});
  } else if (text != nullptr && (*text == "row" || *text == "column")) {
    out.push_back({*text == "row" ? ExprOp::row : ExprOp::column, 0, 0});
  } else if (const auto port = text != nullptr ? port_number(*text) : std::nullopt) {
    out.push_back({ExprOp::operand, *port, 0});
  } else if (const auto number = number_from_value(json)) {
    out.push_back({ExprOp::constant, 0, *number});
  } else if (call != nullptr && !call->empty()) {
    const std::string* name = call->front().as_string();
    const auto op = name != nullptr ? enum_named<ExprOp>(*name) : std::nullopt;
    if (!op || arity(*op) == 0) {
      reader.expected(call->front(), "one of add, subtract, multiply, maximum, minimum, negate");
    } else if (call->size() != arity(*op) + 1) {
      reader.fault(json, "'{}' takes {} operand(s), found {}", *name, arity(*op), call->size() - 1);
    } else {
      for (std::size_t i = 1; i < call->size(); ++i) unnest(reader, (*call)[i], out);
      out.push_back({*op, 0, 0});
    }
  } else {
    reader.expected(json, "{}", forms);
  }
}

template <>
struct Form<Expr> {
  static Json write(const Expr& expr) {
    if (auto json = nested(expr)) return std::move(*json);
    JsonArray nodes;
    for (const ExprNode& node : expr) nodes.push_back(to_value(node));
    return Json(std::move(nodes));
  }
  static void read(JsonReader& reader, const Json& json, Expr& expr) {
    expr.clear();
    const JsonArray* items = json.as_array();
    if (items != nullptr && (items->empty() || items->front().as_object() != nullptr)) {
      for (std::size_t i = 0; i < items->size(); ++i) reader.read_at({{}, i}, (*items)[i], expr.emplace_back());
    } else {
      unnest(reader, json, expr);
    }
  }
};

// In the order of the alternatives.
constexpr std::array<std::string_view, std::variant_size_v<StageKind>> stage_kinds = {
    "load", "store", "matmul_tiles", "generic", "recv", "collective"};

// {"load": {...}}
template <std::size_t I = 0>
void read_alternative(JsonReader& reader, const JsonMember& member, StageKind& kind) {
  if constexpr (I < std::variant_size_v<StageKind>) {
    if (member.first == stage_kinds[I]) {
      reader.read_at({stage_kinds[I]}, member.second, kind.emplace<I>());
    } else {
      read_alternative<I + 1>(reader, member, kind);
    }
  } else {
    reader.fault(member.second, "unknown stage kind '{}'; expected one of {}", member.first,
                 fmt::join(stage_kinds, ", "));
  }
}

template <>
struct Form<StageKind> {
  static Json write(const StageKind& kind) {
    return std::visit([&](const auto& alternative) { return tagged(stage_kinds[kind.index()], alternative); }, kind);
  }
  static void read(JsonReader& reader, const Json& json, StageKind& kind) {
    const JsonObject* members = json.as_object();
    if (members == nullptr || members->size() != 1) {
      reader.expected(json, "an object with one of {}", fmt::join(stage_kinds, ", "));
      return;
    }
    read_alternative(reader, members->front(), kind);
  }
};

// [chip, x, y]
template <>
struct Form<Site> {
  static Json write(const Site& site) {
    const auto& [chip, at] = site;
    const auto& [x, y] = at;
    return Json(JsonArray{Json(chip.value), Json(x), Json(y)});
  }
  static void read(JsonReader& reader, const Json& json, Site& site) {
    auto& [chip, at] = site;
    auto& [x, y] = at;
    const JsonArray* items = json.as_array();
    if (items == nullptr || items->size() != 3) {
      reader.expected(json, "[chip, x, y]");
      return;
    }
    reader.read_at({{}, 0}, (*items)[0], chip);
    reader.read_at({{}, 1}, (*items)[1], x);
    reader.read_at({{}, 2}, (*items)[2], y);
  }
};

// The name of the schema and its version.
struct SchemaName {};

template <>
struct Form<SchemaName> {
  static constexpr std::string_view name = "rdusim.program/1";
  static Json write(SchemaName) { return Json(name); }
  static void read(JsonReader& reader, const Json& json, SchemaName&) {
    const std::string* text = json.as_string();
    if (text == nullptr || *text != name) reader.expected(json, "'{}'", name);
  }
};

}  // namespace program_file

Json to_json(const SpatialProgram& program) {
  program_file::ObjectWriter io;
  io.required("schema", program_file::SchemaName{});
  fields(io, program);
  return io.take();
}

Result<SpatialProgram> program_from_json(const Json& json, const std::string& where) {
  Diagnostics faults;
  program_file::JsonReader reader(faults, where);
  SpatialProgram program;
  if (json.as_object() == nullptr) {
    reader.expected(json, "an object");
    return faults;
  }
  program_file::ObjectReader io(reader, json);
  program_file::SchemaName schema;
  io.required("schema", schema);
  // What is of another schema has nothing more to say.
  if (faults.has_errors()) return faults;
  fields(io, program);
  io.finish();
  if (faults.has_errors()) return faults;
  return program;
}

}  // namespace rdusim
