#include "compiler/support/json.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

namespace rdusim::json_test {

namespace {

Result<Json> read(std::string_view text, const JsonLimits& limits = {}) {
  return parse_json(text, "t.json", Code::RDU5006, limits);
}

std::string refusal(std::string_view text, const JsonLimits& limits = {}) {
  const auto result = read(text, limits);
  if (result.ok()) return "accepted";
  return result.diagnostics().list().front().where + " " + result.diagnostics().list().front().message;
}

bool same(const Json& ours, const nlohmann::json& theirs) {
  if (const auto* members = ours.as_object()) {
    if (!theirs.is_object() || theirs.size() != members->size()) return false;
    for (const auto& [key, value] : *members) {
      if (!theirs.contains(key) || !same(value, theirs[key])) return false;
    }
    return true;
  }
  if (const auto* items = ours.as_array()) {
    if (!theirs.is_array() || theirs.size() != items->size()) return false;
    for (std::size_t i = 0; i < items->size(); ++i) {
      if (!same((*items)[i], theirs[i])) return false;
    }
    return true;
  }
  if (ours.is_null()) return theirs.is_null();
  if (const auto* b = ours.as_bool()) return theirs.is_boolean() && theirs.get<bool>() == *b;
  if (const auto* s = ours.as_string()) return theirs.is_string() && theirs.get<std::string>() == *s;
  if (const auto* d = ours.as_double()) return theirs.is_number_float() && theirs.get<double>() == *d;
  if (const auto i = ours.as_int64()) return theirs.is_number_integer() && theirs.get<std::int64_t>() == *i;
  return theirs.is_number_unsigned() && theirs.get<std::uint64_t>() == *ours.as_uint64();
}

}  // namespace

TEST_CASE("JSON keeps the order of keys and the place of every value") {
  const auto result = read("{\n  \"b\": [1, -2],\n  \"a\": {\"x\": null}\n}\n");
  REQUIRE(result.ok());
  const JsonObject& top = *result->as_object();
  REQUIRE(top.size() == 2);
  CHECK(top[0].first == "b");
  CHECK(top[1].first == "a");
  CHECK(top[0].second.line == 2);
  CHECK(top[0].second.column == 8);
  const Json& second = (*top[0].second.as_array())[1];
  CHECK(second.as_int64() == -2);
  CHECK(second.line == 2);
  CHECK(second.column == 12);
  CHECK(top[1].second.find("x")->line == 3);
  CHECK(top[1].second.find("x")->column == 14);
  CHECK(top[1].second.find("y") == nullptr);
}

TEST_CASE("a key that stands twice is refused, at its second place, and all such are reported") {
  const auto result = read("{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2},\n \"a\": 3}");
  REQUIRE_FALSE(result.ok());
  REQUIRE(result.diagnostics().error_count() == 2);
  CHECK(result.diagnostics().list()[0].where == "t.json:2:16");
  CHECK(result.diagnostics().list()[1].where == "t.json:3:2");
  CHECK(result.diagnostics().list()[1].message == "key 'a' stands twice in one object");
}

TEST_CASE("keys that are spelled differently and read the same are the same key") {
  CHECK(refusal(R"({"a": 1, "\u0061": 2})").find("stands twice") != std::string::npos);
}

TEST_CASE("integers keep all their bits, and one that does not fit is refused rather than rounded") {
  CHECK(read("9223372036854775807")->as_int64() == std::numeric_limits<std::int64_t>::max());
  CHECK(read("-9223372036854775808")->as_int64() == std::numeric_limits<std::int64_t>::min());
  CHECK(read("18446744073709551615")->as_uint64() == std::numeric_limits<std::uint64_t>::max());
  CHECK_FALSE(read("18446744073709551615")->as_int64());
  CHECK_FALSE(read("-1")->as_uint64());
  CHECK(refusal("18446744073709551616") == "t.json:1:1 an integer that does not fit 64 bits");
  CHECK(refusal("-9223372036854775809") == "t.json:1:1 an integer that does not fit 64 bits");
  CHECK(refusal("[0, 1e999]") == "t.json:1:5 a number that does not fit a double");
}

TEST_CASE("an integer is no double and a double is no integer") {
  CHECK(read("1")->as_double() == nullptr);
  CHECK_FALSE(read("1.0")->as_int64());
  CHECK(read("1.0")->as_number() == 1.0);
  CHECK(read("1")->as_number() == 1.0);
  CHECK(read("1")->type_name() == "integer");
  CHECK(read("1.0")->type_name() == "number");
}

TEST_CASE("what is no JSON is refused with its place") {
  CHECK(refusal("") == "t.json:1:1 a value expected, the end of the text found");
  CHECK(refusal("{\"a\": 1,}") == "t.json:1:9 a key in quotes expected, '}' found");
  CHECK(refusal("[1 2]") == "t.json:1:4 ',' or ']' expected, '2' found");
  CHECK(refusal("[1,\n\n  oops]") == "t.json:3:3 a value expected, 'o' found");
  CHECK(refusal("01") == "t.json:1:1 a number starts with a needless zero");
  CHECK(refusal("\"a\nb\"") == "t.json:1:3 a control character in a string");
  CHECK(refusal("1 1") == "t.json:1:3 text after the end of the value");
  CHECK(refusal("\"\\ud800\"").find("surrogate") != std::string::npos);
  CHECK(refusal("\"\\ud800\\u0041\"").find("surrogate") != std::string::npos);
  CHECK(refusal("\"\\q\"").find("escape") != std::string::npos);
  CHECK(refusal("\"abc").find("no end") != std::string::npos);
  CHECK(refusal("\"\xff\"") == "t.json:1:1 the text is not UTF-8");
  for (const char* text :
       {"-", "1.", "1e", ".5", "+1", "nan", "Infinity", "tru", "[", "{", "{\"a\"", "{\"a\":", "'a'", "//x\n1"}) {
    CAPTURE(text);
    CHECK(refusal(text) != "accepted");
  }
}

TEST_CASE("nesting and size have limits, and the deepest that is allowed is read") {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(read(nested(64)).ok());
  CHECK(refusal(nested(65)) == "t.json:1:65 nesting deeper than the limit of 64");
  CHECK(refusal(std::string(10'000'000, '[')) == "t.json:1:65 nesting deeper than the limit of 64");
  CHECK(read("[1]", {.max_depth = 1, .max_bytes = 3}).ok());
  CHECK(refusal("[12]", {.max_depth = 1, .max_bytes = 3}).find("more than the limit of 3") != std::string::npos);
}

TEST_CASE("escapes are read, and a byte order mark is passed over") {
  CHECK(*read(R"("\u00e9\ud83d\ude00\n\t\"\\\/\b\f\r")")->as_string() == "\xc3\xa9\xf0\x9f\x98\x80\n\t\"\\/\b\f\r");
  CHECK(read("\xEF\xBB\xBF 1")->column == 2);
}

TEST_CASE("JSON is written one way") {
  Json shape;
  shape.push(32).push(14336);
  Json object;
  object.set("name", "a\"b\\\n\x01").set("shape", shape).set("empty", JsonArray{}).set("none", JsonObject{});
  object.set("pi", 3.25)
      .set("one", 1.0)
      .set("big", std::numeric_limits<std::uint64_t>::max())
      .set("ok", true)
      .set("no", nullptr);
  CHECK(to_text(object) ==
        "{\n"
        "  \"name\": \"a\\\"b\\\\\\n\\u0001\",\n"
        "  \"shape\": [32, 14336],\n"
        "  \"empty\": [],\n"
        "  \"none\": {},\n"
        "  \"pi\": 3.25,\n"
        "  \"one\": 1.0,\n"
        "  \"big\": 18446744073709551615,\n"
        "  \"ok\": true,\n"
        "  \"no\": null\n"
        "}\n");
  CHECK(to_text(shape, true) == "[32,14336]");
}

TEST_CASE("long lists wrap, within 120 columns, without a trailing space") {
  Json list;
  for (int i = 0; i < 200; ++i) list.push(i * 1001);
  const std::string text = to_text(Json().set("values", list));
  std::size_t begin = 0;
  std::size_t lines = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    CHECK(end - begin <= 120);
    CHECK(text[end - 1] != ' ');
    begin = end + 1;
    ++lines;
  }
  CHECK(lines > 10);
  CHECK(to_text(*read(text)) == text);
}

TEST_CASE("a double reads back to the bit, as a double") {
  std::mt19937_64 random(7);
  std::vector<double> values = {0.0,
                                -0.0,
                                1.0,
                                1e22,
                                1e-7,
                                123456789012345680.0,
                                std::numeric_limits<double>::denorm_min(),
                                std::numeric_limits<double>::max()};
  for (int i = 0; i < 2000; ++i) values.push_back(std::bit_cast<double>(random()));
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    const auto back = read(to_text(Json(value)));
    REQUIRE(back.ok());
    REQUIRE(back->as_double() != nullptr);
    CHECK(std::bit_cast<std::uint64_t>(*back->as_double()) == std::bit_cast<std::uint64_t>(value));
  }
}

TEST_CASE("what JSON has no way to say does not make the text unreadable") {
  Json list;
  list.push(std::numeric_limits<double>::infinity()).push("\xff");
  CHECK(to_text(list) == "[null, \"\\ufffd\"]\n");
  CHECK(read(to_text(list)).ok());
}

TEST_CASE("on mutated texts this reader accepts what nlohmann's accepts, but for what it refuses on purpose") {
  const std::string seed =
      R"({"name": "x\u00e9", "list": [1, -2, 3.5e2, true, null, {"k": []}], "n": 18446744073709551615})";
  std::mt19937_64 random(11);
  int accepted = 0;
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = seed;
    for (std::uint64_t edits = random() % 3 + 1; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      constexpr std::string_view alphabet = "{}[]\",:0123456789.eE+-tfn\\u \n\xc3";
      switch (random() % 3) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.erase(at, 1);
          break;
        default:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
      }
    }
    const auto ours = read(text);
    const auto theirs = nlohmann::json::parse(text, nullptr, false);
    CAPTURE(text);
    if (ours.ok()) {
      ++accepted;
      REQUIRE_FALSE(theirs.is_discarded());
      CHECK(same(*ours, theirs));
      CHECK(to_text(*read(to_text(*ours))) == to_text(*ours));
    } else {
      ++refused;
      const std::string& why = ours.diagnostics().list().front().message;
      const bool on_purpose =
          why.find("stands twice") != std::string::npos || why.find("does not fit") != std::string::npos;
      CHECK((theirs.is_discarded() || on_purpose));
    }
  }
  CHECK(accepted > 100);
  CHECK(refused > 100);
}

}  // namespace rdusim::json_test
