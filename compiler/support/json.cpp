// Why not a library: none of those at hand gives the position of every value to its callbacks, and all keep the last of
// two equal keys or turn 2^64 into a double. The tests hold this reader against nlohmann's.
#include "compiler/support/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "compiler/support/file.h"

namespace rdusim {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::string& where, Code code, const JsonLimits& limits)
      : text_(text), where_(where), code_(code), limits_(limits) {}

  Result<Json> parse() {
    if (text_.size() > limits_.max_bytes) {
      return fail_at(0, fmt::format("{} bytes, more than the limit of {}", text_.size(), limits_.max_bytes));
    }
    if (!is_utf8(text_)) return fail_at(0, "the text is not UTF-8");
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = line_start_ = 3;
    skip_space();
    Json value;
    if (!parse_value(value, 0)) return std::move(errors_);
    skip_space();
    if (at_ != text_.size()) return fail_at(at_, "text after the end of the value");
    if (errors_.has_errors()) return std::move(errors_);
    return value;
  }

 private:
  struct Mark {
    std::uint32_t line;
    std::uint32_t column;
  };

  Mark mark(std::size_t at) const { return {line_, static_cast<std::uint32_t>(at - line_start_ + 1)}; }

  bool fail(std::size_t at, std::string message) {
    const Mark m = mark(at);
    return fail(m, std::move(message));
  }
  bool fail(Mark m, std::string message) {
    errors_.error(code_, fmt::format("{}:{}:{}", where_, m.line, m.column), "{}", message);
    return false;
  }
  Diagnostics fail_at(std::size_t at, std::string message) {
    fail(at, std::move(message));
    return std::move(errors_);
  }

  bool done() const { return at_ >= text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }

  // Newlines stand only here: inside a string they are refused. So the line is known without a second look.
  void skip_space() {
    while (!done()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
      ++at_;
    }
  }

  std::string found() const {
    if (done()) return "the end of the text";
    const char c = text_[at_];
    return c > ' ' && c < '\x7f' ? fmt::format("'{}'", c) : fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c));
  }

  bool parse_value(Json& out, std::size_t depth) {
    const Mark start = mark(at_);
    bool good = false;
    switch (peek()) {
      case '{':
        good = parse_object(out, depth);
        break;
      case '[':
        good = parse_array(out, depth);
        break;
      case '"': {
        std::string text;
        good = parse_string(text);
        if (good) out = Json(std::move(text));
        break;
      }
      case 't':
        good = parse_word("true", Json(true), out);
        break;
      case 'f':
        good = parse_word("false", Json(false), out);
        break;
      case 'n':
        good = parse_word("null", Json(), out);
        break;
      default:
        good = parse_number(out);
        break;
    }
    out.line = start.line;
    out.column = start.column;
    return good;
  }

  bool parse_word(std::string_view word, Json value, Json& out) {
    if (text_.substr(at_, word.size()) != word) return fail(at_, fmt::format("'{}' expected", word));
    at_ += word.size();
    out = std::move(value);
    return true;
  }

  bool parse_array(Json& out, std::size_t depth) {
    if (depth >= limits_.max_depth) return fail(at_, too_deep());
    ++at_;
    JsonArray items;
    skip_space();
    if (peek() == ']') {
      ++at_;
      out = Json(std::move(items));
      return true;
    }
    for (;;) {
      skip_space();
      if (!parse_value(items.emplace_back(), depth + 1)) return false;
      skip_space();
      const char c = peek();
      if (c != ',' && c != ']') return fail(at_, fmt::format("',' or ']' expected, {} found", found()));
      ++at_;
      if (c == ']') break;
    }
    out = Json(std::move(items));
    return true;
  }

  bool parse_object(Json& out, std::size_t depth) {
    if (depth >= limits_.max_depth) return fail(at_, too_deep());
    ++at_;
    JsonObject members;
    std::vector<Mark> marks;
    skip_space();
    if (peek() == '}') {
      ++at_;
      out = Json(std::move(members));
      return true;
    }
    for (;;) {
      skip_space();
      if (peek() != '"') return fail(at_, fmt::format("a key in quotes expected, {} found", found()));
      marks.push_back(mark(at_));
      JsonMember& member = members.emplace_back();
      if (!parse_string(member.first)) return false;
      skip_space();
      if (peek() != ':') return fail(at_, fmt::format("':' expected, {} found", found()));
      ++at_;
      skip_space();
      if (!parse_value(member.second, depth + 1)) return false;
      skip_space();
      const char c = peek();
      if (c != ',' && c != '}') return fail(at_, fmt::format("',' or '}}' expected, {} found", found()));
      ++at_;
      if (c == '}') break;
    }
    report_duplicates(members, marks);
    out = Json(std::move(members));
    return true;
  }

  void report_duplicates(const JsonObject& members, const std::vector<Mark>& marks) {
    std::vector<std::size_t> order(members.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return members[a].first < members[b].first; });
    std::vector<std::size_t> repeated;
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (members[order[i - 1]].first == members[order[i]].first) repeated.push_back(order[i]);
    }
    std::sort(repeated.begin(), repeated.end());
    for (std::size_t i : repeated) fail(marks[i], fmt::format("key '{}' stands twice in one object", members[i].first));
  }

  std::string too_deep() const { return fmt::format("nesting deeper than the limit of {}", limits_.max_depth); }

  std::optional<std::uint32_t> parse_hex4() {
    std::uint32_t value = 0;
    if (text_.size() - at_ < 4) return std::nullopt;
    const char* begin = text_.data() + at_;
    const auto result = std::from_chars(begin, begin + 4, value, 16);
    // from_chars takes a sign, but not for an unsigned type, and stops early at what is no digit.
    if (result.ec != std::errc{} || result.ptr != begin + 4) return std::nullopt;
    at_ += 4;
    return value;
  }

  static void append_utf8(std::string& out, std::uint32_t c) {
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += static_cast<char>(0xC0U | c >> 6U);
      out += static_cast<char>(0x80U | (c & 0x3FU));
    } else if (c < 0x10000) {
      out += static_cast<char>(0xE0U | c >> 12U);
      out += static_cast<char>(0x80U | (c >> 6U & 0x3FU));
      out += static_cast<char>(0x80U | (c & 0x3FU));
    } else {
      out += static_cast<char>(0xF0U | c >> 18U);
      out += static_cast<char>(0x80U | (c >> 12U & 0x3FU));
      out += static_cast<char>(0x80U | (c >> 6U & 0x3FU));
      out += static_cast<char>(0x80U | (c & 0x3FU));
    }
  }

  bool parse_unicode_escape(std::string& out, std::size_t start) {
    const auto first = parse_hex4();
    if (!first) return fail(start, "\\u needs four hexadecimal digits");
    std::uint32_t point = *first;
    if (point >= 0xD800 && point <= 0xDFFF) {
      std::optional<std::uint32_t> second;
      if (point <= 0xDBFF && text_.substr(at_, 2) == "\\u") {
        at_ += 2;
        second = parse_hex4();
      }
      if (!second || *second < 0xDC00 || *second > 0xDFFF) return fail(start, "half of a surrogate pair");
      point = 0x10000 + ((point - 0xD800) << 10U) + (*second - 0xDC00);
    }
    append_utf8(out, point);
    return true;
  }

  bool parse_string(std::string& out) {
    ++at_;
    for (;;) {
      const std::size_t run = at_;
      while (!done() && text_[at_] != '"' && text_[at_] != '\\' && static_cast<unsigned char>(text_[at_]) >= 0x20)
        ++at_;
      out.append(text_.substr(run, at_ - run));
      if (done()) return fail(at_, "a string has no end");
      const std::size_t start = at_;
      const char c = text_[at_++];
      if (c == '"') return true;
      if (c != '\\') return fail(start, "a control character in a string");
      if (done()) return fail(at_, "a string has no end");
      switch (text_[at_++]) {
        case '"':
          out += '"';
          break;
        case '\\':
          out += '\\';
          break;
        case '/':
          out += '/';
          break;
        case 'b':
          out += '\b';
          break;
        case 'f':
          out += '\f';
          break;
        case 'n':
          out += '\n';
          break;
        case 'r':
          out += '\r';
          break;
        case 't':
          out += '\t';
          break;
        case 'u':
          if (!parse_unicode_escape(out, start)) return false;
          break;
        default:
          return fail(start, "an unknown escape in a string");
      }
    }
  }

  bool skip_digits() {
    const std::size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ != begin;
  }

  bool parse_number(Json& out) {
    const std::size_t begin = at_;
    const bool negative = peek() == '-';
    if (negative) ++at_;
    const bool zero = peek() == '0';
    const std::size_t first_digit = at_;
    if (!skip_digits()) {
      at_ = begin;
      return fail(begin, fmt::format("a value expected, {} found", found()));
    }
    if (zero && at_ != first_digit + 1) return fail(begin, "a number starts with a needless zero");
    bool integer = true;
    if (peek() == '.') {
      integer = false;
      ++at_;
      if (!skip_digits()) return fail(at_, "digits expected after the point");
    }
    if (peek() == 'e' || peek() == 'E') {
      integer = false;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!skip_digits()) return fail(at_, "digits expected in the exponent");
    }
    const char* from = text_.data() + begin;
    const char* to = text_.data() + at_;
    if (integer) {
      std::int64_t small = 0;
      if (std::from_chars(from, to, small).ec == std::errc{}) {
        out = Json(small);
        return true;
      }
      std::uint64_t large = 0;
      if (!negative && std::from_chars(from, to, large).ec == std::errc{}) {
        out = Json(large);
        return true;
      }
      return fail(begin, "an integer that does not fit 64 bits");
    }
    double value = 0;
    if (std::from_chars(from, to, value).ec != std::errc{} || !std::isfinite(value)) {
      return fail(begin, "a number that does not fit a double");
    }
    out = Json(value);
    return true;
  }

  std::string_view text_;
  const std::string& where_;
  Code code_;
  const JsonLimits& limits_;
  Diagnostics errors_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  std::uint32_t line_ = 1;
};

void write_string(std::string& out, std::string_view text) {
  out += '"';
  const bool clean = is_utf8(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case '"':
        out += "\\\"";
        continue;
      case '\\':
        out += "\\\\";
        continue;
      case '\n':
        out += "\\n";
        continue;
      case '\t':
        out += "\\t";
        continue;
      case '\r':
        out += "\\r";
        continue;
      default:
        break;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      out += fmt::format("\\u{:04x}", byte);
    } else if (byte >= 0x80 && !clean) {
      // A name that is no UTF-8 (a path, say) must not make the whole document unreadable.
      out += "\\ufffd";
    } else {
      out += c;
    }
  }
  out += '"';
}

void write_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

bool is_scalar(const Json& value) {
  return value.as_array() == nullptr && value.as_object() == nullptr;
}

void write_scalar(std::string& out, const Json& value) {
  if (value.is_null()) {
    out += "null";
  } else if (const bool* b = value.as_bool()) {
    out += *b ? "true" : "false";
  } else if (const std::string* s = value.as_string()) {
    write_string(out, *s);
  } else if (const double* d = value.as_double()) {
    write_double(out, *d);
  } else if (const auto i = value.as_int64()) {
    out += fmt::format("{}", *i);
  } else if (const auto u = value.as_uint64()) {
    out += fmt::format("{}", *u);
  }
}

void write_compact(std::string& out, const Json& value) {
  if (const JsonArray* items = value.as_array()) {
    out += '[';
    for (std::size_t i = 0; i < items->size(); ++i) {
      if (i != 0) out += ',';
      write_compact(out, (*items)[i]);
    }
    out += ']';
  } else if (const JsonObject* members = value.as_object()) {
    out += '{';
    for (std::size_t i = 0; i < members->size(); ++i) {
      if (i != 0) out += ',';
      write_string(out, (*members)[i].first);
      out += ':';
      write_compact(out, (*members)[i].second);
    }
    out += '}';
  } else {
    write_scalar(out, value);
  }
}

constexpr std::size_t line_width = 120;

// Scalars side by side, as many as a line holds: a shape reads as a shape, and a long list of values stays short.
void write_scalars(std::string& out, const JsonArray& items, std::size_t indent) {
  const std::size_t line_begin = out.rfind('\n') + 1;  // npos + 1 is 0
  std::string line = "[";
  for (std::size_t i = 0; i < items.size() && line.size() < line_width; ++i) {
    if (i != 0) line += ", ";
    write_scalar(line, items[i]);
  }
  line += ']';
  if (out.size() - line_begin + line.size() < line_width) {
    out += line;
    return;
  }
  const std::string margin(indent + 2, ' ');
  out += "[\n" + margin;
  std::size_t used = margin.size();
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::string item;
    write_scalar(item, items[i]);
    if (i + 1 != items.size()) item += ',';
    if (used != margin.size() && used + 1 + item.size() > line_width) {
      out += "\n" + margin;
      used = margin.size();
    } else if (used != margin.size()) {
      out += ' ';
      ++used;
    }
    out += item;
    used += item.size();
  }
  out += "\n" + std::string(indent, ' ') + "]";
}

void write_pretty(std::string& out, const Json& value, std::size_t indent) {
  const std::string margin(indent + 2, ' ');
  if (const JsonArray* items = value.as_array()) {
    if (std::all_of(items->begin(), items->end(), is_scalar)) {
      write_scalars(out, *items, indent);
      return;
    }
    out += "[\n";
    for (std::size_t i = 0; i < items->size(); ++i) {
      out += margin;
      write_pretty(out, (*items)[i], indent + 2);
      out += i + 1 == items->size() ? "\n" : ",\n";
    }
    out += std::string(indent, ' ') + "]";
  } else if (const JsonObject* members = value.as_object()) {
    if (members->empty()) {
      out += "{}";
      return;
    }
    out += "{\n";
    for (std::size_t i = 0; i < members->size(); ++i) {
      out += margin;
      write_string(out, (*members)[i].first);
      out += ": ";
      write_pretty(out, (*members)[i].second, indent + 2);
      out += i + 1 == members->size() ? "\n" : ",\n";
    }
    out += std::string(indent, ' ') + "}";
  } else {
    write_scalar(out, value);
  }
}

}  // namespace

std::optional<std::int64_t> Json::as_int64() const {
  if (const auto* i = std::get_if<std::int64_t>(&value_)) return *i;
  if (const auto* u = std::get_if<std::uint64_t>(&value_)) {
    if (*u <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return static_cast<std::int64_t>(*u);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> Json::as_uint64() const {
  if (const auto* u = std::get_if<std::uint64_t>(&value_)) return *u;
  if (const auto* i = std::get_if<std::int64_t>(&value_)) {
    if (*i >= 0) return static_cast<std::uint64_t>(*i);
  }
  return std::nullopt;
}

std::optional<double> Json::as_number() const {
  if (const double* d = as_double()) return *d;
  if (const auto* i = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*i);
  if (const auto* u = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*u);
  return std::nullopt;
}

std::string_view Json::type_name() const {
  constexpr std::array<std::string_view, 8> names = {"null",   "boolean", "integer", "integer",
                                                     "number", "string",  "array",   "object"};
  return names[value_.index()];
}

const Json* Json::find(std::string_view key) const {
  const JsonObject* members = as_object();
  if (members == nullptr) return nullptr;
  for (const JsonMember& m : *members) {
    if (m.first == key) return &m.second;
  }
  return nullptr;
}

Json& Json::set(std::string key, Json value) {
  if (is_null()) value_ = JsonObject{};
  std::get<JsonObject>(value_).emplace_back(std::move(key), std::move(value));
  return *this;
}

Json& Json::push(Json value) {
  if (is_null()) value_ = JsonArray{};
  std::get<JsonArray>(value_).push_back(std::move(value));
  return *this;
}

Result<Json> parse_json(std::string_view text, const std::string& where, Code code, const JsonLimits& limits) {
  return Parser(text, where, code, limits).parse();
}

std::string to_text(const Json& value, bool compact) {
  std::string out;
  if (compact) {
    write_compact(out, value);
    return out;
  }
  write_pretty(out, value, 0);
  out += '\n';
  return out;
}

}  // namespace rdusim
