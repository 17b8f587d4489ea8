#include "compiler/workload/read_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "compiler/support/file.h"
#include "compiler/support/toml.h"
#include "compiler/support/utf8.h"
#include "compiler/workload/data_file.h"
#include "compiler/workload/fill_rules.h"
#include "compiler/workload/float_bits.h"
#include "compiler/workload/graph_rules.h"
#include "compiler/workload/npy.h"
#include "compiler/workload/onnx_reader.h"
#include "compiler/workload/operator_traits.h"
#include "compiler/workload/safetensors.h"

namespace rdusim {
namespace {

// What TOML makes of a list of numbers takes about a hundred bytes a number; larger operands belong into .npy files.
constexpr std::uint64_t workload_limit = std::uint64_t{4} << 20;

struct Position {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  friend auto operator<=>(const Position&, const Position&) = default;
};

Position position_of(const TomlValue& value) {
  return {value.line, value.column};
}
Position position_of(const TomlMember& member) {
  return {member.line, member.column};
}

bool printable(std::string_view name) {
  while (!name.empty()) {
    const auto point = first_code_point(name);
    if (!point || point->value < 0x20 || (point->value >= 0x7F && point->value < 0xA0)) return false;
    name.remove_prefix(point->length);
  }
  return true;
}

class WorkloadReader {
 public:
  WorkloadReader(const std::string& where, const std::string& folder) : where_(where), folder_(folder) {}

  Result<OperatorGraph> read(const std::string& text) {
    if (!is_utf8(text)) {
      Diagnostics out;
      out.error(Code::RDU1002, where_, "the file is not UTF-8");
      return out;
    }
    const auto document = parse_toml(text, where_, Code::RDU1003);
    if (!document) return document.diagnostics();
    const TomlValue& root = *document;
    const auto meant = unknown_keys(root, "a workload",
                                    std::array<std::string_view, 5>{"name", "tokens", "tensors", "ops", "schedule"});
    read_name(root, meant);
    read_tokens(root);
    read_tensors(root, meant);
    read_operators(root, meant);
    check();
    read_pins(root);
    Diagnostics all = sorted();
    if (all.has_errors()) return all;
    return {std::move(graph_), std::move(all)};
  }

 private:
  // ---- what is said

  std::string place(Position at) const { return fmt::format("{}:{}:{}", where_, at.line, at.column); }

  template <class... Args>
  Diagnostic& error(Code code, Position at, fmt::format_string<Args...> format, Args&&... args) {
    return found_
        .emplace_back(
            at, Diagnostic{code, Severity::error, place(at), fmt::format(format, std::forward<Args>(args)...), {}, {}})
        .second;
  }

  // Says what others found at `at`; whether there was an error among it.
  bool pass_on(const Diagnostics& diagnostics, Position at) {
    for (const Diagnostic& d : diagnostics.list()) found_.emplace_back(at, d);
    return diagnostics.has_errors();
  }

  Diagnostics sorted() {
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    Diagnostics out;
    for (auto& [at, d] : found_) out.add(std::move(d));
    found_.clear();
    return out;
  }

  void suggest_nearest(Diagnostic& d, std::string_view name, std::span<const std::string_view> known) {
    const std::string_view likely = nearest(name, known);
    if (!likely.empty()) {
      d.suggest("did you mean '{}'?", likely);
    } else if (!known.empty() && known.size() <= 12) {
      d.suggest("known are: {}", fmt::join(known, ", "));
    }
  }

  // Names that one may have been meant by; none once more faults are found than are shown, for there may be very many.
  template <class Things, class NameOf>
  std::vector<std::string_view> candidates(const Things& things, NameOf name_of_thing) const {
    constexpr std::size_t most = 1000;
    std::vector<std::string_view> names;
    if (found_.size() > Diagnostics::limit) return names;
    for (const auto& thing : things) {
      if (names.size() == most) break;
      names.push_back(name_of_thing(thing));
    }
    return names;
  }

  // Names the keys that are none of `known`. Gives those that they were likely meant to be: such a key is not missing.
  std::vector<std::string_view> unknown_keys(const TomlValue& table, std::string_view what,
                                             std::span<const std::string_view> known) {
    std::vector<std::string_view> meant;
    for (const TomlMember& m : *table.as_table()) {
      if (std::find(known.begin(), known.end(), m.key) != known.end()) continue;
      suggest_nearest(error(Code::RDU1004, position_of(m), "{} has no key '{}'", what, m.key), m.key, known);
      meant.push_back(nearest(m.key, known));
    }
    return meant;
  }

  // The value of a key that has to be there.
  const TomlValue* required(const TomlValue& table, std::string_view key, Position at, std::string_view what,
                            const std::vector<std::string_view>& meant) {
    const TomlValue* node = table.find(key);
    if (node == nullptr && std::find(meant.begin(), meant.end(), key) == meant.end()) {
      error(Code::RDU1005, at, "{} has no '{}'", what, key);
    }
    return node;
  }

  // ---- values of one type

  void wrong_type(const TomlValue& node, std::string_view what, std::string_view asked) {
    error(Code::RDU1006, position_of(node), "{} is {}, where {} is asked for", what, node.type_name(), asked);
  }

  const std::string* string_at(const TomlValue& node, std::string_view what) {
    if (const auto* s = node.as_string()) return s;
    wrong_type(node, what, "a string");
    return nullptr;
  }
  std::optional<std::int64_t> integer_at(const TomlValue& node, std::string_view what) {
    if (const auto* i = node.as_integer()) return *i;
    wrong_type(node, what, "an integer");
    return std::nullopt;
  }
  std::optional<bool> boolean_at(const TomlValue& node, std::string_view what) {
    if (const auto* b = node.as_boolean()) return *b;
    wrong_type(node, what, "a boolean");
    return std::nullopt;
  }
  std::optional<double> number_at(const TomlValue& node, std::string_view what) {
    if (const auto* i = node.as_integer()) return static_cast<double>(*i);
    if (const auto* d = node.as_float()) return *d;
    wrong_type(node, what, "a number");
    return std::nullopt;
  }
  // A number of things, 1 or more; 1 where it is none.
  std::uint32_t count_at(const TomlValue& node, std::string_view what) {
    constexpr std::int64_t most = 1 << 20;
    const auto n = integer_at(node, what);
    if (!n) return 1;
    if (*n >= 1 && *n <= most) return static_cast<std::uint32_t>(*n);
    error(Code::RDU1033, position_of(node), "{} is {}; it is 1 to {}", what, *n, most);
    return 1;
  }
  std::vector<std::int64_t> integers_at(const TomlValue& node, std::string_view what) {
    std::vector<std::int64_t> out;
    const TomlArray* list = node.as_array();
    if (list == nullptr) {
      wrong_type(node, what, "an array of integers");
      return out;
    }
    for (const TomlValue& element : *list) {
      const auto n = integer_at(element, fmt::format("an element of {}", what));
      if (!n) break;
      out.push_back(*n);
    }
    return out;
  }
  const TomlValue* table_at(const TomlValue& node, std::string_view what) {
    if (node.as_table() != nullptr) return &node;
    wrong_type(node, what, "a table");
    return nullptr;
  }

  // One of `known`; RDU1007 otherwise.
  std::optional<std::size_t> choice_at(const TomlValue& node, std::string_view what,
                                       std::span<const std::string_view> known) {
    const std::string* s = string_at(node, what);
    if (s == nullptr) return std::nullopt;
    const auto found = std::find(known.begin(), known.end(), *s);
    if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
    Diagnostic& d =
        error(Code::RDU1007, position_of(node), "{} is '{}'; it is one of {}", what, *s, fmt::join(known, ", "));
    if (const std::string_view likely = nearest(*s, known); !likely.empty()) d.suggest("did you mean '{}'?", likely);
    return std::nullopt;
  }

  bool good_name(std::string_view name, Position at, std::string_view what) {
    constexpr std::size_t longest = 255;
    if (!name.empty() && name.size() <= longest && printable(name)) return true;
    error(Code::RDU1007, at, "the name of {} is {}", what,
          name.empty()            ? "empty"
          : name.size() > longest ? "longer than 255 bytes"
                                  : "not printable");
    return false;
  }

  // ---- name

  void read_name(const TomlValue& root, const std::vector<std::string_view>& meant) {
    const TomlValue* node = required(root, "name", {}, "the workload", meant);
    if (node == nullptr) return;
    if (const std::string* s = string_at(*node, "'name'")) {
      if (good_name(*s, position_of(*node), "the workload")) graph_.name = *s;
    }
  }

  void read_tokens(const TomlValue& root) {
    if (const TomlValue* node = root.find("tokens")) graph_.tokens = count_at(*node, "'tokens'");
  }

  // ---- tensors

  void read_tensors(const TomlValue& root, const std::vector<std::string_view>& meant) {
    const TomlValue* node = required(root, "tensors", {}, "the workload", meant);
    const TomlValue* tensors = node == nullptr ? nullptr : table_at(*node, "'tensors'");
    if (tensors == nullptr) {
      complete_ = false;
      return;
    }
    for (const TomlMember& m : *tensors->as_table()) read_tensor(m);
  }

  void read_tensor(const TomlMember& member) {
    Operand operand;
    operand.id = OperandId{graph_.operands.size()};
    operand.name = member.key;
    operand.where = place(position_of(member));
    OperandGaps gaps;
    const std::string what = fmt::format("tensor '{}'", member.key);
    good_name(member.key, position_of(member), "a tensor");
    const TomlValue* table = table_at(member.value, what);
    if (table == nullptr) {
      complete_ = false;
    } else {
      read_tensor_table(*table, what, position_of(member), operand, gaps);
    }
    gaps.faulty = gaps.faulty || table == nullptr;
    graph_.operands.push_back(std::move(operand));
    gaps_.push_back(gaps);
  }

  void read_tensor_table(const TomlValue& table, std::string_view what, Position at, Operand& operand,
                         OperandGaps& gaps) {
    const std::size_t start = found_.size();
    const auto meant = unknown_keys(table, what, std::array<std::string_view, 4>{"role", "shape", "dtype", "fill"});
    const bool role_known =
        read_role(table, what, operand) && std::find(meant.begin(), meant.end(), "role") == meant.end();
    if (!role_known) complete_ = false;  // who has to write it cannot be asked
    const bool source =
        operand.role == TensorRole::input || operand.role == TensorRole::weight || operand.role == TensorRole::state;
    const auto given = [&](std::string_view key) {
      return role_known && source ? required(table, key, at, what, meant) : table.find(key);
    };
    const std::size_t before = found_.size();
    const TomlValue* dtype = given("dtype");
    const TomlValue* shape = given("shape");
    gaps.dtype = dtype == nullptr;
    gaps.shape = shape == nullptr;
    if (dtype != nullptr) read_dtype(*dtype, what, operand);
    if (shape != nullptr) read_shape(*shape, what, operand);
    const bool typed = dtype != nullptr && shape != nullptr && found_.size() == before;

    gaps.faulty = errors_since(start);  // a faulty fill leaves the operators' rules as they are
    const std::size_t before_fill = found_.size();
    const TomlValue* fill = given("fill");
    if (fill == nullptr) {
      if (found_.size() != before_fill) {
        found_.back().second.suggest("fill = \"external\" leaves it to the run (--set)");
      }
    } else if (source) {
      read_fill(*fill, what, typed, operand);
    } else if (role_known) {
      error(Code::RDU1022, position_of(*fill),
            "{} has a fill of no use: an operator writes this tensor, whose role is {}", what, name_of(operand.role))
          .suggest("give the tensor role = \"input\" or \"weight\", or remove the fill");
    }
  }

  bool errors_since(std::size_t before) const {
    return std::any_of(found_.begin() + static_cast<std::ptrdiff_t>(before), found_.end(),
                       [](const auto& f) { return f.second.severity == Severity::error; });
  }

  // False where what stands there is no role.
  bool read_role(const TomlValue& table, std::string_view what, Operand& operand) {
    const TomlValue* node = table.find("role");
    if (node == nullptr) return true;
    constexpr std::array roles = {TensorRole::input, TensorRole::weight, TensorRole::output, TensorRole::intermediate,
                                  TensorRole::state};
    std::array<std::string_view, roles.size()> names;
    std::transform(roles.begin(), roles.end(), names.begin(), [](TensorRole r) { return name_of(r); });
    const auto i = choice_at(*node, fmt::format("the role of {}", what), names);
    if (i) operand.role = roles[*i];
    return i.has_value();
  }

  void read_dtype(const TomlValue& node, std::string_view what, Operand& operand) {
    std::array<std::string_view, all_dtypes.size()> names;
    std::transform(all_dtypes.begin(), all_dtypes.end(), names.begin(), [](DType t) { return name_of(t); });
    if (const auto i = choice_at(node, fmt::format("the dtype of {}", what), names)) operand.dtype = all_dtypes[*i];
  }

  void read_shape(const TomlValue& node, std::string_view what, Operand& operand) {
    const TomlArray* extents = node.as_array();
    if (extents == nullptr) {
      wrong_type(node, fmt::format("the shape of {}", what), "an array of extents");
      return;
    }
    for (const TomlValue& extent : *extents) {
      const auto n = integer_at(extent, fmt::format("an extent of {}", what));
      if (!n) return;
      operand.shape.push_back(*n);
    }
    Diagnostics out;
    check_shape(operand, place(position_of(node)), out);
    pass_on(out, position_of(node));
  }

  // ---- fills

  // `typed`: dtype and shape are sound, so that values and files can be held against them.
  void read_fill(const TomlValue& node, std::string_view what, bool typed, Operand& operand) {
    const Position here = position_of(node);
    const std::string fill_what = fmt::format("the fill of {}", what);
    if (node.as_string() != nullptr) {
      if (const auto i = choice_at(node, fill_what, std::array<std::string_view, 2>{"zero", "external"})) {
        if (*i == 0) operand.fill = ZeroFill{};
        if (*i == 1) operand.fill = ExternalFill{};
      }
      return;
    }
    const TomlValue* fill = node.as_table() != nullptr ? &node : nullptr;
    if (fill == nullptr) {
      wrong_type(node, fill_what, "a string or a table");
      return;
    }
    constexpr std::array<std::string_view, 6> keys = {"constant", "pattern", "values", "random", "file", "tensor"};
    unknown_keys(*fill, fill_what, keys);
    std::vector<std::string_view> kinds;
    for (const std::string_view key : keys) {
      if (key != "tensor" && fill->find(key) != nullptr) kinds.push_back(key);
    }
    if (kinds.size() != 1) {
      // An unknown key has been named already, and is likely the misspelt kind.
      if (kinds.empty() && fill->as_table()->size() == (fill->find("tensor") != nullptr ? 1U : 0U)) {
        error(Code::RDU1005, here, "{} has none of: constant, pattern, values, random, file", fill_what);
      } else if (kinds.size() > 1) {
        error(Code::RDU1007, here, "{} has several kinds: {}", fill_what, fmt::join(kinds, ", "));
      }
      return;
    }
    const std::size_t before = found_.size();
    const std::string_view kind = kinds.front();
    if (fill->find("tensor") != nullptr && kind != "file") {
      error(Code::RDU1007, position_of(*fill->find("tensor")), "{} names a 'tensor', which only goes with 'file'",
            fill_what);
    }
    const TomlValue& value = *fill->find(kind);
    if (kind == "constant") read_constant(value, fill_what, typed, operand);
    if (kind == "pattern") read_pattern(value, fill_what, operand);
    if (kind == "values") read_values(value, fill_what, typed, operand);
    if (kind == "random") read_random(value, fill_what, operand);
    if (kind == "file") {
      read_file_fill(value, fill->find("tensor"), fill_what, typed, operand);
      return;
    }
    if (!typed || found_.size() != before) return;
    Diagnostics out;
    check_fill(operand, place(here), out);
    if (!out.has_errors()) check_pattern(operand, place(here), out);
    pass_on(out, here);
  }

  // A number of the operand's kind. Floats are rounded to the dtype here, so that what is printed is what is used; one
  // that does not fit is left for check_fill to name.
  bool number_at(const TomlValue& node, std::string_view what, DType dtype, std::int64_t& integer, double& real) {
    const auto* whole = node.as_integer();
    const auto* point = node.as_float();
    if (whole == nullptr && point == nullptr) {
      wrong_type(node, what, "a number");
      return false;
    }
    if (is_integer(dtype)) {
      if (whole == nullptr) {
        error(Code::RDU1022, position_of(node), "{} is {}, where {} takes integers", what, *point, name_of(dtype));
        return false;
      }
      integer = *whole;
      return true;
    }
    real = whole != nullptr ? static_cast<double>(*whole) : *point;
    const auto code = round_to_float(real, float_format(dtype));
    if (code) real = float_value(*code, float_format(dtype));
    return true;
  }

  void read_constant(const TomlValue& node, std::string_view what, bool typed, Operand& operand) {
    ConstantFill out;
    if (number_at(node, fmt::format("the constant in {}", what), typed ? operand.dtype : DType::fp32, out.integer,
                  out.value)) {
      operand.fill = out;
    }
  }

  void read_values(const TomlValue& node, std::string_view what, bool typed, Operand& operand) {
    const TomlArray* list = node.as_array();
    if (list == nullptr) {
      wrong_type(node, fmt::format("'values' in {}", what), "an array of numbers");
      return;
    }
    ValuesFill out;
    const DType dtype = typed ? operand.dtype : DType::fp32;
    for (const TomlValue& element : *list) {
      std::int64_t integer = 0;
      double real = 0;
      if (!number_at(element, fmt::format("a value in {}", what), dtype, integer, real)) return;
      if (is_integer(dtype)) {
        out.integers.push_back(integer);
      } else {
        out.floats.push_back(real);
      }
    }
    operand.fill = std::move(out);
  }

  void read_pattern(const TomlValue& node, std::string_view what, Operand& operand) {
    const TomlValue* table = table_at(node, fmt::format("the pattern in {}", what));
    if (table == nullptr) return;
    const auto meant = unknown_keys(*table, "a pattern", std::array<std::string_view, 2>{"modulus", "shift"});
    PatternFill out;
    if (const TomlValue* modulus = required(*table, "modulus", position_of(node), "a pattern", meant)) {
      if (const auto m = integer_at(*modulus, fmt::format("the modulus in {}", what))) out.modulus = *m;
      if (out.modulus < 1) {
        error(Code::RDU1007, position_of(*modulus), "the modulus in {} is {}; it is 1 or more", what, out.modulus);
      }
    }
    if (const TomlValue* shift = table->find("shift")) {
      if (const auto s = integer_at(*shift, fmt::format("the shift in {}", what))) out.shift = *s;
    }
    operand.fill = out;
  }

  void read_random(const TomlValue& node, std::string_view what, Operand& operand) {
    const TomlValue* table = table_at(node, fmt::format("'random' in {}", what));
    if (table == nullptr) return;
    const auto meant = unknown_keys(*table, "a random fill", std::array<std::string_view, 3>{"seed", "low", "high"});
    RandomFill out;
    const bool whole = is_integer(operand.dtype);
    out.low = whole ? -128 : -1;
    out.high = whole ? 127 : 1;
    if (const TomlValue* seed = required(*table, "seed", position_of(node), "a random fill", meant)) {
      if (const auto s = integer_at(*seed, fmt::format("the seed in {}", what))) {
        if (*s < 0) {
          error(Code::RDU1007, position_of(*seed), "the seed in {} is {}; it is 0 or more", what, *s);
        } else {
          out.seed = static_cast<std::uint64_t>(*s);
        }
      }
    }
    for (const auto& [key, bound] : {std::pair{"low", &out.low}, {"high", &out.high}}) {
      const TomlValue* value = table->find(key);
      if (value == nullptr) continue;
      if (const auto* i = value->as_integer()) {
        *bound = static_cast<double>(*i);
        if (*i > exact_in_double || *i < -exact_in_double) {
          error(Code::RDU1022, position_of(*value), "'{}' in {} is {}, beyond 2^53", key, what, *i);
        }
      } else if (const auto* d = value->as_float()) {
        *bound = *d;
      } else {
        wrong_type(*value, fmt::format("'{}' in {}", key, what), "a number");
      }
    }
    operand.fill = out;
  }

  void read_file_fill(const TomlValue& node, const TomlValue* tensor_node, std::string_view what, bool typed,
                      Operand& operand) {
    const std::string* path = string_at(node, fmt::format("'file' in {}", what));
    if (path == nullptr) return;
    const Position at = position_of(node);
    const std::string here = place(at);
    const bool safetensors = path->ends_with(".safetensors");
    if (!safetensors && !path->ends_with(".npy")) {
      error(Code::RDU1007, at, "'{}' ends neither in .npy nor in .safetensors", *path);
      return;
    }
    FileFill out;
    if (safetensors && tensor_node == nullptr) {
      error(Code::RDU1005, at, "{} names a safetensors file and no 'tensor' in it", what);
      return;
    }
    if (tensor_node != nullptr) {
      if (!safetensors) {
        error(Code::RDU1007, position_of(*tensor_node), "{} names a 'tensor' of an .npy file, which holds just one",
              what);
        return;
      }
      const std::string* tensor = string_at(*tensor_node, fmt::format("'tensor' in {}", what));
      if (tensor == nullptr) return;
      out.tensor = *tensor;
    }
    const auto full = path_within(folder_, *path, here);
    if (!full) {
      pass_on(full.diagnostics(), at);
      return;
    }
    const auto data = DataFile::open(*full, *path, here);
    if (!data) {
      pass_on(data.diagnostics(), at);
      return;
    }
    if (!typed) return;
    const auto offset = safetensors ? offset_in_safetensors(*data, *full, *path, out.tensor, here, operand)
                                    : npy_data_offset(*data, operand.dtype, operand.shape, *path, here);
    if (!offset) {
      pass_on(offset.diagnostics(), at);
      return;
    }
    out.path = *path;
    out.size_bytes = data->size();
    out.data_offset = *offset;
    auto& digest = digests_[*full];
    if (digest.empty()) digest = data->sha256().value_or("");
    if (digest.empty()) {
      error(Code::RDU1001, at, "'{}' cannot be read to its end", *path);
      return;
    }
    out.sha256 = digest;
    operand.fill = std::move(out);
  }

  Result<std::uint64_t> offset_in_safetensors(const DataFile& data, const std::string& full, const std::string& path,
                                              const std::string& tensor, const std::string& here,
                                              const Operand& operand) {
    auto known = indices_.find(full);
    if (known == indices_.end()) {
      auto index = read_safetensors_index(data, path, here);
      if (!index) return index.diagnostics();
      known = indices_.emplace(full, std::move(index).value()).first;
    }
    return safetensors_data_offset(known->second, tensor, operand.dtype, operand.shape, path, here);
  }

  // ---- operators

  void read_operators(const TomlValue& root, const std::vector<std::string_view>& meant) {
    const TomlValue* node = root.find("ops");
    if (std::find(meant.begin(), meant.end(), "ops") != meant.end()) complete_ = false;
    if (node == nullptr) return;  // RDU1016
    const TomlArray* list = node->as_array();
    if (list == nullptr) {
      wrong_type(*node, "'ops'", "an array of tables");
      complete_ = false;
      return;
    }
    std::map<std::string_view, OperandId> ids;
    for (const Operand& operand : graph_.operands) ids.emplace(operand.name, operand.id);
    std::size_t position = 0;
    for (const TomlValue& element : *list) {
      const std::size_t before = found_.size();
      read_operator(element, position++, ids);
      if (errors_since(before)) complete_ = false;
    }
  }

  void read_operator(const TomlValue& node, std::size_t position, const std::map<std::string_view, OperandId>& ids) {
    Operator op;
    op.where = place(position_of(node));
    const TomlValue* table = table_at(node, "an operator");
    if (table == nullptr) return;
    const Position at = position_of(node);
    const auto meant = unknown_keys(*table, "an operator", operator_keys());

    bool sound = true;
    if (const TomlValue* kind = required(*table, "kind", at, "an operator", meant)) {
      sound = read_kind(*kind, op);
    } else {
      sound = false;
    }
    op.name = fmt::format("{}{}", name_of(op.kind), position);
    if (const TomlValue* name = table->find("name")) {
      const std::string* s = string_at(*name, "the name of an operator");
      sound = sound && s != nullptr;
      if (s != nullptr && good_name(*s, position_of(*name), "an operator")) op.name = *s;
    }
    const auto [named, fresh] = operator_positions_.emplace(op.name, at);
    if (!fresh) {
      error(Code::RDU1007, at, "two operators have the name '{}'", op.name)
          .note(place(named->second), "the first is here");
      return;
    }

    const std::string what = fmt::format("operator '{}'", op.name);
    if (const TomlValue* in = required(*table, "in", at, what, meant)) {
      if (const TomlArray* names = in->as_array()) {
        for (const TomlValue& name : *names) {
          const auto id = tensor_at(name, "an element of 'in'", ids);
          if (id) op.in.push_back(*id);
          sound = sound && id.has_value();
        }
      } else {
        sound = false;
        wrong_type(*in, fmt::format("'in' of operator '{}'", op.name), "an array of names of tensors");
      }
    } else {
      sound = false;
    }
    if (const TomlValue* result = required(*table, "out", at, what, meant)) {
      const auto id = tensor_at(*result, "'out'", ids);
      if (id) op.out = *id;
      sound = sound && id.has_value();
    } else {
      sound = false;
    }
    if (!sound || !read_attributes(*table, what, at, meant, op)) return;
    graph_.operators.push_back(std::move(op));
  }

  static std::vector<std::string_view> operator_keys() {
    std::vector<std::string_view> keys = {"kind", "in", "out", "name"};
    for (const Attribute a : all_attributes) keys.push_back(name_of(a));
    return keys;
  }

  bool read_kind(const TomlValue& node, Operator& op) {
    const std::string* s = string_at(node, "the kind of an operator");
    if (s == nullptr) return false;
    std::vector<std::string_view> names;
    for (const OperatorKind kind : all_operator_kinds) names.push_back(name_of(kind));
    const auto found = std::find(names.begin(), names.end(), *s);
    if (found == names.end()) {
      Diagnostic& d = error(Code::RDU1011, position_of(node), "there is no operator of the kind '{}'", *s);
      const std::string_view likely = nearest(*s, names);
      if (likely.empty()) {
        d.suggest("known are: {}", fmt::join(names, ", "));
      } else {
        d.suggest("did you mean '{}'?", likely);
      }
      return false;
    }
    op.kind = all_operator_kinds[static_cast<std::size_t>(found - names.begin())];
    return true;
  }

  bool read_attributes(const TomlValue& table, std::string_view what, Position at,
                       const std::vector<std::string_view>& meant, Operator& op) {
    const std::size_t before = found_.size();
    OperatorAttributes& a = op.attributes;
    for (const Attribute attribute : all_attributes) {
      const TomlValue* node = table.find(name_of(attribute));
      if (node == nullptr) continue;
      if (!takes(op.kind, attribute)) {
        error(Code::RDU1032, position_of(*node), "{} has '{}', which a {} does not know", what, name_of(attribute),
              name_of(op.kind));
        continue;
      }
      const std::string named = fmt::format("'{}' of {}", name_of(attribute), what);
      switch (attribute) {
        case Attribute::transposed:
          a.transposed = boolean_at(*node, named).value_or(false);
          break;
        case Attribute::causal:
          a.causal = boolean_at(*node, named).value_or(false);
          break;
        case Attribute::epsilon:
          a.epsilon = number_at(*node, named).value_or(1);
          break;
        case Attribute::scale:
          a.scale = number_at(*node, named).value_or(1);
          break;
        case Attribute::heads:
          a.heads = count_at(*node, named);
          break;
        case Attribute::kv_heads:
          a.kv_heads = count_at(*node, named);
          break;
        case Attribute::window:
          a.window = integer_at(*node, named).value_or(0);
          break;
        case Attribute::axes:
          a.axes = integers_at(*node, named);
          break;
        case Attribute::begin:
          a.begin = integers_at(*node, named);
          break;
        case Attribute::end:
          a.end = integers_at(*node, named);
          break;
        case Attribute::scattered:
          a.scattered = boolean_at(*node, named).value_or(false);
          break;
        case Attribute::alone:
          a.alone = integers_at(*node, named);
          break;
      }
    }
    for (const Attribute attribute :
         {Attribute::epsilon, Attribute::heads, Attribute::axes, Attribute::begin, Attribute::end}) {
      if (takes(op.kind, attribute)) required(table, name_of(attribute), at, what, meant);
    }
    if (op.kind == OperatorKind::attention && table.find("kv_heads") == nullptr) a.kv_heads = a.heads;
    if (op.kind == OperatorKind::attention && table.find("scale") == nullptr) scales_open_.insert(op.out);
    return found_.size() == before;
  }

  // The scale of an attention that has none of its own: 1 / sqrt(the width of a head).
  void settle_scales() {
    for (Operator& op : graph_.operators) {
      if (!scales_open_.contains(op.out) || op.in.empty() || op.attributes.heads == 0) continue;
      const auto& shape = graph_.operand(op.in[0]).shape;
      if (shape.empty() || shape.back() < op.attributes.heads) continue;
      op.attributes.scale = 1 / std::sqrt(static_cast<double>(shape.back() / op.attributes.heads));
    }
  }

  std::optional<OperandId> tensor_at(const TomlValue& node, std::string_view what,
                                     const std::map<std::string_view, OperandId>& ids) {
    const std::string* name = string_at(node, fmt::format("{} of an operator", what));
    if (name == nullptr) return std::nullopt;
    if (const auto found = ids.find(*name); found != ids.end()) return found->second;
    Diagnostic& d = error(Code::RDU1010, position_of(node), "there is no tensor '{}'", *name);
    suggest_nearest(d, *name, candidates(graph_.operands, [](const Operand& o) { return std::string_view(o.name); }));
    return std::nullopt;
  }

  // ---- the graph

  // Where a rule of the graph spoke: its place is that of an operand or an operator.
  Position position_in(std::string_view place) const {
    Position out;
    const std::size_t column = place.rfind(':');
    const std::size_t line = column == std::string_view::npos ? column : place.rfind(':', column - 1);
    if (line == std::string_view::npos) return out;
    std::from_chars(place.data() + line + 1, place.data() + column, out.line);
    std::from_chars(place.data() + column + 1, place.data() + place.size(), out.column);
    return out;
  }

  void check() {
    Diagnostics out;
    const bool all_there = complete_;
    if (all_there && graph_.operators.empty()) {
      error(Code::RDU1016, {}, "the workload has no operator").suggest("add an [[ops]] table");
    } else {
      check_writers(graph_, all_there, out);
    }
    const auto order = writing_order(graph_, out);
    check_operators(graph_, order, gaps_, out);
    settle_scales();
    for (const Diagnostic& d : out.list()) found_.emplace_back(position_in(d.where), d);

    std::vector<Operator> ordered;
    for (const std::size_t i : order) {
      ordered.push_back(std::move(graph_.operators[i]));
      ordered.back().id = OperatorId{ordered.size() - 1};
    }
    graph_.operators = std::move(ordered);
  }

  // ---- [schedule.OP]

  void read_pins(const TomlValue& root) {
    const TomlValue* node = root.find("schedule");
    if (node == nullptr) return;
    const TomlValue* schedule = table_at(*node, "'schedule'");
    if (schedule == nullptr) return;
    std::map<std::string_view, OperatorId> ids;
    for (const Operator& op : graph_.operators) ids.emplace(op.name, op.id);
    for (const TomlMember& m : *schedule->as_table()) read_pin(m, ids);
  }

  std::optional<UnitMode> unit_at(const TomlValue& node, const std::string& what) {
    const std::string* s = string_at(node, fmt::format("'unit' of {}", what));
    if (s == nullptr) return std::nullopt;
    for (const UnitMode mode : {UnitMode::systolic, UnitMode::simd})
      if (name_of(mode) == *s) return mode;
    error(Code::RDU1026, position_of(node), "'unit' of {} is '{}'; it is systolic or simd", what, *s);
    return std::nullopt;
  }

  void read_pin(const TomlMember& member, const std::map<std::string_view, OperatorId>& ids) {
    const std::string what = fmt::format("[schedule.{}]", member.key);
    const TomlValue* table = table_at(member.value, what);
    if (table == nullptr) return;
    using Number = std::optional<std::uint32_t> SchedulePin::*;
    constexpr std::array<std::pair<std::string_view, Number>, 11> numbers = {
        {{"sites", &SchedulePin::sites},
         {"unroll_m", &SchedulePin::unroll_m},
         {"unroll_n", &SchedulePin::unroll_n},
         {"unroll_k", &SchedulePin::unroll_k},
         {"block_m", &SchedulePin::block_m},
         {"block_n", &SchedulePin::block_n},
         {"page_k", &SchedulePin::page_k},
         {"depth", &SchedulePin::depth},
         {"lanes", &SchedulePin::lanes},
         {"stream_lanes", &SchedulePin::stream_lanes},
         {"pmus", &SchedulePin::pmus}}};
    std::array<std::string_view, numbers.size() + 2> keys;
    std::transform(numbers.begin(), numbers.end(), keys.begin(), [](const auto& n) { return n.first; });
    keys[numbers.size()] = "unit";
    keys.back() = "fold_apart";
    unknown_keys(*table, what, keys);

    SchedulePin pin;
    if (const auto op = ids.find(member.key); op != ids.end()) {
      pin.op = op->second;
    } else if (!operator_positions_.contains(member.key)) {  // else it has an error of its own
      suggest_nearest(error(Code::RDU1026, position_of(member), "{} pins an operator that there is not", what),
                      member.key,
                      candidates(operator_positions_, [](const auto& o) { return std::string_view(o.first); }));
    }
    for (const auto& [key, number] : numbers) {
      const TomlValue* value = table->find(key);
      if (value == nullptr) continue;
      const auto n = integer_at(*value, fmt::format("'{}' of {}", key, what));
      if (!n) continue;
      constexpr std::int64_t most = 1 << 20;
      if (*n < 1 || *n > most) {
        error(Code::RDU1026, position_of(*value), "'{}' of {} is {}; it is 1 to {}", key, what, *n, most);
      } else {
        pin.*number = static_cast<std::uint32_t>(*n);
      }
    }
    if (const TomlValue* value = table->find("unit")) pin.unit = unit_at(*value, what);
    if (const TomlValue* value = table->find("fold_apart"))
      pin.fold_apart = boolean_at(*value, fmt::format("'fold_apart' of {}", what)).value_or(false);
    // Of an attention not every site takes part in every loop.
    const bool attends = std::any_of(graph_.operators.begin(), graph_.operators.end(), [&](const Operator& op) {
      return op.name == member.key && op.kind == OperatorKind::attention;
    });
    const std::uint64_t unrolled = std::uint64_t{pin.unroll_m.value_or(1)} * pin.unroll_n.value_or(1);
    if (pin.sites && !attends && unrolled * pin.unroll_k.value_or(1) > *pin.sites) {
      error(Code::RDU1026, position_of(member), "{} unrolls over {} x {} x {} sites, and allows {}", what,
            pin.unroll_m.value_or(1), pin.unroll_n.value_or(1), pin.unroll_k.value_or(1), *pin.sites);
    }
    graph_.pins.push_back(pin);
  }

  const std::string where_;
  const std::string folder_;
  std::vector<std::pair<Position, Diagnostic>> found_;
  OperatorGraph graph_;
  std::vector<OperandGaps> gaps_;    // of each operand
  std::set<OperandId> scales_open_;  // what attentions write that have no scale of their own
  bool complete_ = true;             // every operator of the file is in the graph
  std::map<std::string, Position, std::less<>> operator_positions_;  // by name
  std::map<std::string, SafetensorsIndex> indices_;                  // by path
  std::map<std::string, std::string> digests_;                       // by path
};

}  // namespace

Result<OperatorGraph> parse_workload(const std::string& text, const std::string& where, const std::string& folder) {
  return WorkloadReader(where, folder).read(text);
}

Result<OperatorGraph> read_workload(const std::string& path) {
  if (path.ends_with(".onnx")) return read_onnx(path);
  auto text = read_file(path, workload_limit);
  if (!text) return text.diagnostics();
  if (path == "-") return parse_workload(*text, "<stdin>", ".");
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  return parse_workload(*text, path, folder);
}

}  // namespace rdusim
