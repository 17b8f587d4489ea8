#include "compiler/support/toml.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace rdusim::toml_test {

namespace {

Result<TomlValue> parse(const std::string& text) {
  return parse_toml(text, "f.toml", Code::RDU1003);
}

const TomlValue& at(const TomlValue& table, const std::string& key) {
  const TomlValue* value = table.find(key);
  REQUIRE(value != nullptr);
  return *value;
}

std::string place_of_fault(const std::string& text) {
  const auto result = parse(text);
  if (result.ok()) return "ok";
  CHECK(result.diagnostics().list().size() == 1);
  CHECK(result.diagnostics().contains(Code::RDU1003));
  return result.diagnostics().list()[0].where;
}

std::string repeated(const std::string& part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += part;
  return out;
}

}  // namespace

TEST_CASE("each kind of value is read with its position") {
  const auto document = parse(
      "a = true\nb = -9223372036854775808\nc = 0.85\nd = \"\\u03B1\"\ne = [1, 'x']\n"
      "f = { g = 2 }\nh = 1979-05-27\n[i.j]\nk = inf\n");
  INFO(document.diagnostics().to_text());
  REQUIRE(document.ok());
  CHECK(*at(*document, "a").as_boolean());
  CHECK(*at(*document, "b").as_integer() == INT64_MIN);
  CHECK(*at(*document, "c").as_float() == 0.85);
  CHECK(*at(*document, "d").as_string() == "\u03B1");
  REQUIRE(at(*document, "e").as_array()->size() == 2);
  CHECK(*at(*document, "e").as_array()->at(1).as_string() == "x");
  CHECK(at(*document, "e").as_array()->at(1).line == 5);
  CHECK(at(*document, "e").as_array()->at(1).column == 9);
  CHECK(*at(at(*document, "f"), "g").as_integer() == 2);
  CHECK(at(*document, "h").type_name() == "a date or time");
  CHECK(std::isinf(*at(at(at(*document, "i"), "j"), "k").as_float()));
  CHECK(document->find("l") == nullptr);
  CHECK(at(*document, "a").find("l") == nullptr);
  CHECK(at(*document, "a").as_integer() == nullptr);
}

TEST_CASE("members come in the order of the file, with the position of the key") {
  const auto document = parse("z = 1\n[b]\n[a]\nx = 1\n'\u03B1 ' = { y = 1 }\n[[m]]\n[[m]]\n");
  REQUIRE(document.ok());
  std::vector<std::string> keys;
  for (const TomlMember& m : *document->as_table()) keys.push_back(m.key);
  CHECK(keys == std::vector<std::string>{"z", "b", "a", "m"});
  const TomlTable& a = *at(*document, "a").as_table();
  REQUIRE(a.size() == 2);
  CHECK(a[1].key == "\u03B1 ");
  CHECK(a[1].line == 5);
  CHECK(a[1].column == 1);
  CHECK(a[1].value.as_table()->at(0).column == 10);  // code points, not bytes
  CHECK(at(*document, "m").as_array()->at(1).line == 7);
}

TEST_CASE("a fault has the position where it is") {
  CHECK(place_of_fault("a = 1\nb = \n").starts_with("f.toml:2:"));
  CHECK(place_of_fault("a = 1\na = 2\n").starts_with("f.toml:2:"));
  CHECK(place_of_fault("a = 9223372036854775808\n").starts_with("f.toml:1:"));
  CHECK(place_of_fault("{\"json\": true}").starts_with("f.toml:1:"));
  CHECK(place_of_fault("a = \"\xFF\"\n").starts_with("f.toml:1:"));
  CHECK(place_of_fault("") == "ok");
  CHECK(place_of_fault("\uFEFF# with a byte order mark\na = 1\n") == "ok");
}

TEST_CASE("keys of more than 33 parts are refused, wherever they stand") {
  const std::string deep = repeated("a.", 32) + "a";
  const std::string too_deep = repeated("a.", 33) + "a";
  struct Around {
    std::string before;
    std::string after;
  };
  for (const Around& text : std::vector<Around>{
           {"", " = 1\n"},
           {"[", "]\n"},
           {"[[", "]]\n"},
           {"x = {", " = 1}\n"},
           {"x = [{", " = 1}]\n"},
           {"x = \"\"\"a\"\"\"\"\n", " = 1\n"},
           {"x = {y = \"\"\"a\"\"\"\"\", ", " = 1}\n"},
           {"x = {y = '''a''''', ", " = 1}\n"},
           {"x = {y = \"\\\\\", ", " = 1}\n"},
           {"x = '\\'\n", " = 1\n"},
           {"x = 1 # \"\n", " = 1\n"},
           {"x = 1 # '''\n", " = 1\n"},
       }) {
    CAPTURE(text.before);
    CHECK(place_of_fault(text.before + deep + text.after) == "ok");
    CHECK(place_of_fault(text.before + too_deep + text.after) != "ok");
  }
  CHECK(place_of_fault(repeated("\"a\" . ", 33) + "a = 1") != "ok");
}

TEST_CASE("dots in strings and comments are no nesting") {
  const std::string dots(1000, '.');
  CHECK(place_of_fault("# " + dots + "\na = '" + dots + "' # " + dots + "\n") == "ok");
  CHECK(place_of_fault("a = \"\\\"" + dots + "\"\n'" + dots + "' = 1\n") == "ok");
  CHECK(place_of_fault("a = \"\"\"\n" + dots + "\"" + dots + "\"\"\"\nb = '''" + dots + "'" + dots + "'''\n") == "ok");
  CHECK(place_of_fault("a = [" + repeated("1.5, ", 1000) + "]\n") == "ok");
  CHECK(place_of_fault("a = [" + repeated("\n1.5,", 1000) + "]\n") == "ok");
}

TEST_CASE("text that nests a million deep does not overrun the stack") {
  constexpr int deep = 1'000'000;
  for (const char* part : {"a.", "[", "a=[", "{a=", "[[a]]", "\"a\"."}) {
    for (const char* before : {"", "a = ", "["}) {
      CAPTURE(part);
      CAPTURE(before);
      CHECK(place_of_fault(before + repeated(part, deep)) != "ok");
    }
  }
  // As deep as the limits together allow.
  std::string nested = "x = ";
  for (int i = 0; i < 31; ++i) nested += "{" + repeated("a.", 32) + "a = ";
  CHECK(place_of_fault(nested + "1" + std::string(31, '}') + "\n") == "ok");
}

// Found by fuzzing: toml++ 3.3 takes for unreachable what characters of this range reach.
TEST_CASE("characters from U+FE26 to U+FEFE outside of a string are a fault of syntax, inside they are not") {
  for (const char* text : {"\uFE38", "\uFE38xnput\"\n", "name\uFE26= 1", "a = \uFEFE", "a = 1\uFE70"}) {
    CAPTURE(text);
    CHECK(place_of_fault(text) != "ok");
  }
  CHECK(place_of_fault("a = \"\uFE38\" # \uFEFE\n") == "ok");
}

}  // namespace rdusim::toml_test
