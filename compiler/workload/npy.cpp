#include "compiler/workload/npy.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "compiler/support/units.h"
#include "compiler/workload/operator_graph.h"
#include "compiler/workload/shape_text.h"

namespace rdusim {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);

// The part of Python's literals that the header uses. Every function leaves the cursor behind what it read and gives
// nothing where the text is something else.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r\f\v").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool next_is_quote() {
    skip_space();
    return at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"');
  }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  // No escapes: no `descr` that rdusim takes has one.
  std::optional<std::string> string() {
    if (!next_is_quote()) return std::nullopt;
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    if (out.find('\\') != std::string::npos || out.find('\n') != std::string::npos) return std::nullopt;
    return out;
  }
  std::optional<bool> boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {std::string_view("False"), false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    return std::nullopt;
  }
  std::optional<std::int64_t> integer() {
    skip_space();
    std::optional<std::int64_t> value;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      const auto shifted = checked_multiply(value.value_or(0), 10);
      value = shifted ? checked_add(*shifted, text_[at_] - '0') : std::nullopt;
      if (!value) return std::nullopt;
      ++at_;
    }
    return value;
  }
  // "()", "(3,)", "(3, 4)"; "(3)" is a number in brackets, not a tuple.
  std::optional<std::vector<std::int64_t>> tuple() {
    std::vector<std::int64_t> out;
    if (!take('(')) return std::nullopt;
    bool comma = true;
    while (!take(')')) {
      if (!comma) return std::nullopt;
      const auto value = integer();
      if (!value) return std::nullopt;
      out.push_back(*value);
      comma = take(',');
    }
    if (out.size() == 1 && !comma) return std::nullopt;
    return out;
  }
  // Skips a list, tuple or dictionary, whatever is in it.
  bool skip_brackets() {
    skip_space();
    std::size_t open = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\'' || c == '"') {
        if (!string()) return false;
        continue;
      }
      ++at_;
      if (c == '[' || c == '(' || c == '{') ++open;
      if (c == ']' || c == ')' || c == '}') {
        if (open == 0) return false;
        if (--open == 0) return true;
      } else if (open == 0) {
        return false;
      }
    }
    return false;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

std::uint32_t byte_at(std::span<const std::byte> bytes, std::size_t i) {
  return std::to_integer<std::uint32_t>(bytes[i]);
}

// The header's place in the file: where it starts and how long it says that it is. Nothing where `start` is shorter
// than what comes before the header, or the version is unknown.
struct HeaderSpan {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
};
std::optional<HeaderSpan> header_span(std::span<const std::byte> start) {
  if (start.size() < 10) return std::nullopt;
  const std::uint32_t major = byte_at(start, 6);
  if (major == 1) return HeaderSpan{10, byte_at(start, 8) | byte_at(start, 9) << 8U};
  if (start.size() < 12 || major < 1 || major > 3) return std::nullopt;
  return HeaderSpan{
      12, byte_at(start, 8) | byte_at(start, 9) << 8U | byte_at(start, 10) << 16U | byte_at(start, 11) << 24U};
}

// Every `descr` that holds a dtype's bits. ml_dtypes (https://github.com/jax-ml/ml_dtypes) has NumPy write bf16 and
// e4m3 as raw bytes (V) and e5m2 as a one-byte float (f1).
bool suits(std::string_view descr, DType dtype) {
  const auto any_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), descr) != names.end();
  };
  switch (dtype) {
    case DType::int8:
      return any_of({"|i1", "<i1"});
    case DType::int32:
      return any_of({"<i4"});
    case DType::int64:
      return any_of({"<i8"});
    case DType::fp32:
      return any_of({"<f4"});
    case DType::bf16:
      return any_of({"<u2", "|V2", "<V2"});
    case DType::fp8_e4m3:
      return any_of({"|u1", "<u1", "|V1", "<V1"});
    case DType::fp8_e5m2:
      return any_of({"|u1", "<u1", "|V1", "<V1", "|f1", "<f1"});
  }
  return false;
}

std::string_view expected_descr(DType dtype) {
  switch (dtype) {
    case DType::int8:
      return "'|i1'";
    case DType::int32:
      return "'<i4'";
    case DType::int64:
      return "'<i8'";
    case DType::fp32:
      return "'<f4'";
    case DType::bf16:
      return "the raw bits as '<u2' or '|V2'";
    case DType::fp8_e4m3:
      return "the raw bits as '|u1' or '|V1'";
    case DType::fp8_e5m2:
      return "the raw bits as '|u1', '|V1' or '<f1'";
  }
  return "";
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::span<const std::byte> start, const std::string& file,
                                   const std::string& where) {
  const auto malformed = [&](std::string_view what) {
    return failure(Code::RDU1017, where, "'{}' is not a well-formed .npy file: {}", file, what);
  };
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (!text.starts_with(magic)) return malformed("it does not start with \\x93NUMPY");
  if (text.size() < 10) return malformed("it ends within its first ten bytes");
  if (byte_at(start, 6) < 1 || byte_at(start, 6) > 3 || byte_at(start, 7) != 0) {
    return malformed(
        fmt::format("its version is {}.{}; rdusim reads 1.0, 2.0 and 3.0", byte_at(start, 6), byte_at(start, 7)));
  }
  const auto span = header_span(start);
  if (!span) return malformed("it ends within its first twelve bytes");
  if (span->length > npy_header_limit) {
    return malformed(fmt::format("its header says it has {} bytes; the limit is {}", span->length, npy_header_limit));
  }
  if (text.size() < span->begin + span->length) return malformed("it ends within its header");

  NpyHeader out;
  out.data_offset = span->begin + span->length;
  const std::string_view header = text.substr(span->begin, span->length);
  if (!header.ends_with('\n')) return malformed("its header does not end with a newline");
  Literal in(header);
  if (!in.take('{')) return malformed("its header is not a dictionary");
  bool descr = false;
  bool order = false;
  bool shape = false;
  bool comma = true;
  while (!in.take('}')) {
    const auto key = comma ? in.string() : std::nullopt;
    if (!key || !in.take(':')) return malformed("its header is not a dictionary of strings");
    if (*key == "descr" && !descr) {
      descr = true;
      if (in.next_is_quote()) {
        auto value = in.string();
        if (!value || value->empty()) return malformed("'descr' is not a string");
        out.descr = std::move(*value);
      } else if (!in.skip_brackets()) {
        return malformed("'descr' is neither a string nor a list");
      }
    } else if (*key == "fortran_order" && !order) {
      order = true;
      const auto value = in.boolean();
      if (!value) return malformed("'fortran_order' is neither True nor False");
      out.fortran_order = *value;
    } else if (*key == "shape" && !shape) {
      shape = true;
      auto value = in.tuple();
      if (!value) return malformed("'shape' is not a tuple of extents");
      out.shape = std::move(*value);
    } else {
      return malformed(fmt::format("its header has the key '{}' {}", *key,
                                   *key == "descr" || *key == "fortran_order" || *key == "shape"
                                       ? "twice"
                                       : "beside descr, fortran_order and shape"));
    }
    comma = in.take(',');
  }
  if (!in.at_end()) return malformed("there is more in its header than a dictionary");
  if (!descr || !order || !shape) {
    return malformed(fmt::format("its header lacks the key '{}'", !descr   ? "descr"
                                                                  : !order ? "fortran_order"
                                                                           : "shape"));
  }
  return out;
}

Result<std::uint64_t> npy_data_offset(const DataFile& data, DType dtype, const std::vector<std::int64_t>& shape,
                                      const std::string& file, const std::string& where) {
  const auto unreadable = [&] { return failure(Code::RDU1001, where, "'{}' cannot be read", file); };
  std::vector<std::byte> start(static_cast<std::size_t>(std::min<std::uint64_t>(data.size(), 12)));
  if (!data.read(0, start)) return unreadable();
  if (const auto span = header_span(start)) {
    const std::uint64_t want = span->begin + std::min(span->length, npy_header_limit);
    start.resize(static_cast<std::size_t>(std::min(data.size(), want)));
    if (!data.read(0, start)) return unreadable();
  }
  const auto header = parse_npy_header(start, file, where);
  if (!header) return header.diagnostics();

  const auto mismatch = [&](std::string_view what) { return failure(Code::RDU1018, where, "'{}' {}", file, what); };
  Diagnostics out;
  if (header->descr.empty()) {
    out.append(mismatch("holds structures, where plain numbers are asked for"));
  } else if (!suits(header->descr, dtype)) {
    const bool big = header->descr.starts_with('>');
    out.append(mismatch(fmt::format("holds {}elements of type '{}'; {} needs {}", big ? "big-endian " : "",
                                    header->descr, name_of(dtype), expected_descr(dtype))));
  }
  if (header->fortran_order) {
    out.append(mismatch("is in Fortran (column-major) order; rdusim reads C (row-major) order"));
  }
  if (header->shape != shape) {
    out.append(mismatch(
        fmt::format("has the shape {}, where the tensor has {}", shape_text(header->shape), shape_text(shape))));
  }
  if (out.has_errors()) return out;

  // The shapes agree, and the tensor's has been checked: this cannot overflow.
  const auto bytes = static_cast<std::uint64_t>(element_count(shape).value_or(0)) * bytes_of(dtype);
  const std::uint64_t have = data.size() - header->data_offset;
  if (have != bytes) {
    return failure(Code::RDU1017, where, "'{}' has {} bytes of data, where its shape {} asks for {}", file, have,
                   shape_text(shape), bytes);
  }
  return header->data_offset;
}

}  // namespace rdusim
