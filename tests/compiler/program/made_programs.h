// Programs that are made, not compiled: what a file can hold, whether or not it means anything. They go through the
// lists of fields (program_fields.h), so that a field which is added is in these tests without an edit here.
#pragma once

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "compiler/ir/enum_names.h"
#include "compiler/program/json_io.h"
#include "compiler/program/program_fields.h"
#include "compiler/support/file.h"

namespace rdusim::made {

namespace pf = program_file;

// SplitMix64: the same numbers everywhere.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30U) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27U) * 0x94D049BB133111EBU;
    return z ^ z >> 31U;
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }

 private:
  std::uint64_t state_;
};

// Sets every field. `Choice` says how: every value different from its default and from its neighbours, or at random.
template <class Choice>
class Filler {
 public:
  template <class T>
  using Ref = T&;

  explicit Filler(Choice choice) : choice_(choice) {}

  template <class T>
  void required(std::string_view, T& value) {
    set(value);
  }
  template <class T>
  void shown(std::string_view, T& value) {
    set(value);
  }
  template <class T>
  void brief(std::string_view, T& value, const T& = {}) {
    if (choice_.brief()) set(value);
  }
  template <class T>
  void optional(std::string_view, std::optional<T>& value) {
    if (choice_.optional()) set(value.emplace());
  }

  template <class T>
  void set(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = choice_.flag(value);
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(choice_.below(enum_count<T>(), static_cast<std::size_t>(value)));
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(choice_.integer());
    } else if constexpr (std::is_floating_point_v<T>) {
      value = choice_.real();
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = choice_.text();
    } else if constexpr (pf::IsId<T>::value) {
      set(value.value);
    } else if constexpr (pf::IsPair<T>::value) {
      set(value.first);
      set(value.second);
    } else if constexpr (pf::IsRun<T>::value) {
      set(value.repeat);
      set(value.value);
    } else if constexpr (pf::IsVector<T>::value) {
      using Element = typename T::value_type;
      std::size_t most = 2;
      if constexpr (std::is_same_v<Element, Stage>) most = std::variant_size_v<StageKind>;
      if constexpr (std::is_same_v<Element, Tensor> || std::is_same_v<Element, Operand>)
        most = std::variant_size_v<Fill>;
      value.assign(choice_.length(most), Element{});
      for (auto& element : value) set(element);
    } else if constexpr (std::is_same_v<T, Fill>) {
      set_alternative(value, choice_.below(std::variant_size_v<Fill>, value.index(), ++fills_));
    } else if constexpr (std::is_same_v<T, StageKind>) {
      set_alternative(value, choice_.below(std::variant_size_v<StageKind>, value.index(), ++kinds_));
    } else if constexpr (std::is_same_v<T, Site>) {
      auto& [chip, at] = value;
      auto& [x, y] = at;
      set(chip);
      set(x);
      set(y);
    } else if constexpr (!std::is_empty_v<T>) {
      pf::fields(*this, value);
    }
  }

 private:
  template <std::size_t I = 0, class V>
  void set_alternative(V& value, std::size_t index) {
    if constexpr (I < std::variant_size_v<V>) {
      if (index == I) {
        set(value.template emplace<I>());
      } else {
        set_alternative<I + 1>(value, index);
      }
    }
  }

  Choice choice_;
  std::size_t fills_ = 0;
  std::size_t kinds_ = 0;
};

// Nothing has its default, all alternatives are there, and no two numbers near each other are the same.
class EveryField {
 public:
  bool brief() { return true; }
  bool optional() { return true; }
  bool flag(bool usual) { return !usual; }
  std::size_t length(std::size_t most) { return most; }
  std::uint64_t integer() { return 1000 + ++count_; }
  double real() { return 0.5 + static_cast<double>(++count_); }
  std::string text() { return "t" + std::to_string(++count_); }
  std::size_t below(std::size_t n, std::size_t usual) { return (usual + 1) % n; }
  std::size_t below(std::size_t n, std::size_t, std::size_t turn) { return turn % n; }

 private:
  std::uint64_t count_ = 0;
};

class AtRandom {
 public:
  explicit AtRandom(std::uint64_t seed) : numbers_(seed) {}

  bool brief() { return numbers_.below(2) == 0; }
  bool optional() { return numbers_.below(2) == 0; }
  bool flag(bool) { return numbers_.below(2) == 0; }
  std::size_t length(std::size_t) { return numbers_.below(4); }
  std::uint64_t integer() {
    constexpr std::uint64_t edges[] = {0,
                                       1,
                                       std::numeric_limits<std::uint32_t>::max(),
                                       std::uint64_t{1} << 32U,
                                       (std::uint64_t{1} << 53U) + 1,
                                       std::numeric_limits<std::int64_t>::max(),
                                       std::uint64_t{1} << 63U,
                                       std::numeric_limits<std::uint64_t>::max()};
    switch (numbers_.below(4)) {
      case 0:
        return edges[numbers_.below(std::size(edges))];
      case 1:
        return numbers_.next();
      default:
        return numbers_.below(100);
    }
  }
  double real() {
    constexpr double edges[] = {0.0,
                                -0.0,
                                1.0,
                                0.1,
                                5e-324,
                                1.7976931348623157e308,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity()};
    switch (numbers_.below(3)) {
      case 0:
        return edges[numbers_.below(std::size(edges))];
      case 1:
        return static_cast<double>(numbers_.below(1000)) - 500;
      default: {
        const double any = std::bit_cast<double>(numbers_.next());
        return any == any ? any : 2.5;  // a NaN is not equal to itself: it has a test of its own
      }
    }
  }
  std::string text() {
    constexpr std::string_view pieces[] = {"a", "w_c3", " ", "\"", "\\", "\n", "\x01", "\xC3\xA4", "\xF0\x9F\x98\x80",
                                           "]", "\x7F"};
    std::string out;
    for (std::size_t n = numbers_.below(5); n > 0; --n) out += pieces[numbers_.below(std::size(pieces))];
    if (numbers_.below(8) == 0) out += '\0';
    return out;
  }
  std::size_t below(std::size_t n, std::size_t) { return numbers_.below(n); }
  std::size_t below(std::size_t n, std::size_t, std::size_t) { return numbers_.below(n); }

 private:
  Numbers numbers_;
};

inline SpatialProgram every_field() {
  SpatialProgram program;
  Filler<EveryField>(EveryField{}).set(program);
  return program;
}

inline SpatialProgram random_program(std::uint64_t seed) {
  SpatialProgram program;
  Filler<AtRandom>(AtRandom{seed}).set(program);
  return program;
}

// One tensor, one stage, one buffer, one edge.
inline SpatialProgram small_program() {
  SpatialProgram p;
  p.header.name = "small";
  p.header.target_name = "t";
  p.header.native_tile = 32;
  Tensor x;
  x.name = "x";
  x.shape = {32, 64};
  x.tiles = {1, 2};
  x.fill = PatternFill{61, 30};
  x.whole = x.shape;
  x.offset = {0, 0};
  p.tensors = {x};
  Load load;
  load.pattern = {{2}, {{0, 1}}, {{0, 0}}, {1, 1}, {1, 2}};
  Stage stage;
  stage.name = "load_x";
  stage.kind = load;
  stage.role = StageRole::movement;
  Port port;
  port.direction = Direction::output;
  port.reserve = port.push = always(1U);
  stage.ports = {port};
  stage.firings = 2;
  p.stages = {stage};
  Buffer buffer;
  buffer.name = "x0";
  buffer.page_bytes = 4096;
  p.buffers = {buffer};
  Edge edge;
  edge.to = {StageId{std::size_t{0}}};
  p.edges = {edge};
  Section section;
  section.name = "s";
  p.sections = {section};
  return p;
}

// Changes one leaf (a number, name, enumerator, the length of a list, an alternative, whether an optional part is
// there), the one with the given number.
class ChangeOne {
 public:
  template <class T>
  using Ref = T&;

  explicit ChangeOne(std::size_t leaf) : left_(leaf) {}

  bool changed() const { return changed_; }
  // There are fewer leaves than that.
  bool beyond() const { return left_ > 0; }
  const std::string& key() const { return key_; }

  template <class T>
  void required(std::string_view key, T& value) {
    if (passed_) return;
    visit(value);
    if (passed_ && key_.empty()) key_ = key;
  }
  template <class T>
  void shown(std::string_view key, T& value) {
    required(key, value);
  }
  template <class T>
  void brief(std::string_view key, T& value, const T& = {}) {
    required(key, value);
  }
  template <class T>
  void optional(std::string_view key, std::optional<T>& value) {
    if (passed_) return;
    if (value) visit(*value);
    if (!passed_ && mine()) {
      change(value.has_value());
      if (value) {
        value.reset();
      } else {
        value.emplace();
      }
    }
    if (passed_ && key_.empty()) key_ = key;
  }

  template <class T>
  void visit(T& value) {
    if (passed_) return;
    if constexpr (std::is_same_v<T, bool>) {
      if (mine()) value = !value, change(true);
    } else if constexpr (std::is_enum_v<T>) {
      // An enumeration of one value cannot be changed.
      constexpr std::size_t n = enum_count<T>();
      if (mine()) value = static_cast<T>((static_cast<std::size_t>(value) + 1) % n), change(n > 1);
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (mine()) value = static_cast<T>(value + 1), change(true);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (mine()) value += 'x', change(true);
    } else if constexpr (pf::IsId<T>::value) {
      visit(value.value);
    } else if constexpr (pf::IsPair<T>::value) {
      visit(value.first);
      visit(value.second);
    } else if constexpr (pf::IsRun<T>::value) {
      visit(value.repeat);
      visit(value.value);
    } else if constexpr (pf::IsVector<T>::value) {
      for (auto& element : value) visit(element);
      if (!passed_ && mine()) value.emplace_back(), change(true);
    } else if constexpr (std::is_same_v<T, Fill> || std::is_same_v<T, StageKind>) {
      std::visit([this](auto& alternative) { visit(alternative); }, value);
      if (!passed_ && mine()) next_alternative(value), change(true);
    } else if constexpr (std::is_same_v<T, Site>) {
      auto& [chip, at] = value;
      auto& [x, y] = at;
      visit(chip);
      visit(x);
      visit(y);
    } else if constexpr (!std::is_empty_v<T>) {
      pf::fields(*this, value);
    }
  }

 private:
  bool mine() {
    if (left_ == 0) return passed_ = true;
    --left_;
    return false;
  }
  void change(bool really) { changed_ = really; }

  template <std::size_t I = 0, class V>
  static void next_alternative(V& value) {
    if constexpr (I < std::variant_size_v<V>) {
      if (value.index() == I) {
        value.template emplace<(I + 1) % std::variant_size_v<V>>();
      } else {
        next_alternative<I + 1>(value);
      }
    }
  }

  std::size_t left_;
  bool passed_ = false;
  bool changed_ = false;
  std::string key_;
};

// Calls use(other) for each program that differs from `program` in one leaf; more than a thousand for every_field().
template <class Use>
void each_change(const SpatialProgram& program, Use&& use) {
  std::size_t changes = 0;
  for (std::size_t leaf = 0;; ++leaf) {
    SpatialProgram other = program;
    ChangeOne change(leaf);
    change.visit(other);
    if (change.beyond()) break;
    if (!change.changed()) continue;
    ++changes;
    CAPTURE(leaf);
    CAPTURE(change.key());
    use(other);
  }
  CHECK(changes > 1000);
}

// Whether holds(program) asserts nothing false of 300 programs made at random, the same every time.
template <class Holds>
bool of_any_program(Holds&& holds) {
  setenv("RC_PARAMS", "seed=20240607 max_success=300", 1);
  return rc::check([&] { holds(random_program(*rc::gen::arbitrary<std::uint64_t>())); });
}

// Calls use(bytes, code) for the inputs of the errors folder that end in `extension`; gives how many there are. The
// code is what the name starts with: what the input is to be refused with.
template <class Use>
std::size_t each_refused_file(const std::string& extension, Use&& use) {
  std::size_t inputs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(RDUSIM_SOURCE_DIR) + "/tests/errors/files")) {
    if (entry.path().extension() != extension) continue;
    ++inputs;
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    const auto bytes = read_file(entry.path().string(), 1U << 20U);
    REQUIRE(bytes.ok());
    use(*bytes, static_cast<Code>(std::stoi(name.substr(3, 4))));
  }
  return inputs;
}

}  // namespace rdusim::made
