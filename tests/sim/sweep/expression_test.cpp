#include "sim/sweep/expression.h"

#include <doctest/doctest.h>

#include <map>

namespace rdusim::expression_test {
namespace {

bool holds(const char* text, const std::map<std::string, Cell>& row = {}) {
  const auto e = Expression::parse(text, "test");
  INFO(std::string(text));
  INFO(e.diagnostics().to_text());
  REQUIRE(e);
  std::vector<Cell> values;
  for (const std::string& name : e->columns()) values.push_back(row.contains(name) ? row.at(name) : Cell());
  return e->holds(values);
}

const std::map<std::string, Cell> row = {
    {"chips", Cell(std::int64_t{4})},          {"rate", Cell(31.25)},
    {"collective", Cell(std::string("ring"))}, {"pad", Cell(true)},
    {"target.links[0].gb_per_s", Cell(15.5)},  {"run.max-seconds", Cell(std::int64_t{3})}};

TEST_CASE("comparisons are of numbers with numbers and texts with texts") {
  CHECK(holds("chips == 4", row));
  CHECK(holds("chips == 4.0", row));
  CHECK(holds("rate > chips", row));
  CHECK(holds("collective == 'ring'", row));
  CHECK(holds("collective < \"tree\"", row));
  CHECK(holds("pad == true", row));
  CHECK(holds("pad", row));
  CHECK_FALSE(holds("chips", row));  // no truth
  CHECK_FALSE(holds("collective == 4", row));
  CHECK(holds("collective != 4", row));
  CHECK_FALSE(holds("collective < 4", row));
}

TEST_CASE("nothing compares with what is absent") {
  CHECK_FALSE(holds("none == 4", row));
  CHECK_FALSE(holds("none != 4", row));
  CHECK_FALSE(holds("none + 1 > 0", row));
}

TEST_CASE("precedence is that of the header") {
  CHECK(holds("1 + 2 * 3 == 7"));
  CHECK(holds("(1 + 2) * 3 == 9"));
  CHECK(holds("-2 * -3 == 6"));
  CHECK(holds("10 - 2 - 3 == 5"));
  CHECK(holds("8 / 2 / 2 == 2"));
  CHECK(holds("true or false and false"));
  CHECK_FALSE(holds("(true or false) and false"));
  CHECK(holds("not 1 == 2"));
  CHECK(holds("not not true"));
  CHECK(holds("chips * 2 <= 8 and collective == 'ring' or false", row));
  CHECK_FALSE(holds("1 / 0 > 0"));
}

TEST_CASE("columns have dots, brackets, and in backticks anything") {
  CHECK(holds("target.links[0].gb_per_s == 15.5", row));
  CHECK(holds("`run.max-seconds` == 3", row));
  CHECK(Expression::parse("a + b < a", "test").value().columns() == std::vector<std::string>{"a", "b"});
}

TEST_CASE("what is no expression is refused with its place") {
  for (const char* text :
       {"", "chips <", "chips <=", "chips 4", "(chips == 4", "chips == 4)", "'open", "`open", "and", "chips == and",
        "1.2.3 == 1", "chips = 4", "chips & 2", "not", "1 < 2 < 3", "chips == \x01"}) {
    CAPTURE(text);
    const auto e = Expression::parse(text, "test");
    REQUIRE_FALSE(e);
    CHECK(e.diagnostics().error_count() == 1);
    CHECK(e.diagnostics().contains(Code::RDU8065));
  }
  CHECK_FALSE(Expression::parse(std::string(100000, '('), "test"));
  CHECK_FALSE(Expression::parse(std::string(100000, '-') + "1 == 1", "test"));
  std::string nots;
  for (int i = 0; i < 100000; ++i) nots += "not ";
  CHECK_FALSE(Expression::parse(nots + "true", "test"));
}

TEST_CASE("a column that is not there is named, with the nearest") {
  const auto d = check_columns({"chip"}, {"chips", "cycles"}, "--where");
  CHECK(d.contains(Code::RDU8066));
  CHECK(d.to_text().find("did you mean 'chips'?") != std::string::npos);
  CHECK_FALSE(check_columns({"chips"}, {"chips"}, "--where").has_errors());
}

}  // namespace
}  // namespace rdusim::expression_test
