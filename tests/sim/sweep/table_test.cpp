#include "sim/sweep/table.h"

#include <doctest/doctest.h>

namespace rdusim::table_test {
namespace {

SweepTable table() {
  const auto row = [](std::int64_t point, std::int64_t chips, const char* verdict, Cell cycles) {
    return std::vector<Cell>{Cell(point), Cell(chips), Cell(std::string(verdict)), cycles};
  };
  return {{"point", "chips", "verdict", "cycles"},
          {row(0, 1, "pass", Cell(std::int64_t{100})), row(1, 2, "pass", Cell(std::int64_t{60})),
           row(2, 2, "pass", Cell(std::int64_t{70})), row(3, 4, "pass", Cell(std::int64_t{60})),
           row(4, 8, "starvation", Cell(std::int64_t{1})), row(5, 3, "refused", Cell()),
           row(6, 2, "pass", Cell(std::int64_t{60}))}};
}

std::vector<std::int64_t> points(const SweepTable& t) {
  std::vector<std::int64_t> all;
  for (const auto& row : t.rows) all.push_back(std::get<std::int64_t>(row[0]));
  return all;
}

using Points = std::vector<std::int64_t>;

TEST_CASE("outcomes become rows in the order of the plan, whatever the order in which they came") {
  SweepPlan plan;
  plan.axes = {"chips"};
  plan.metrics = {"cycles.simulated", "links.bytes"};
  plan.points = {{{Cell(std::int64_t{1})}}, {{Cell(std::int64_t{3})}}};
  const SweepTable t = table_of(plan, {{1, "refused", "RDU4102", {Cell(), Cell()}},
                                       {0, "pass", "", {Cell(std::int64_t{99}), Cell(std::int64_t{8})}}});
  CHECK(to_csv(t) == "point,chips,verdict,error,cycles,links.bytes\r\n0,1,pass,,99,8\r\n1,3,refused,RDU4102,,\r\n");
  CHECK(
      to_json_lines(t) ==
      "{\"point\":0,\"chips\":1,\"verdict\":\"pass\",\"error\":null,\"cycles\":99,\"links.bytes\":8}\n"
      "{\"point\":1,\"chips\":3,\"verdict\":\"refused\",\"error\":\"RDU4102\",\"cycles\":null,\"links.bytes\":null}\n");
}

TEST_CASE("a field with a comma, a quote or a line's end is quoted") {
  const SweepTable t{{"a,b"}, {{Cell(std::string("say \"x\"\n"))}}};
  CHECK(to_csv(t) == "\"a,b\"\r\n\"say \"\"x\"\"\n\"\r\n");
}

TEST_CASE("where keeps the rows of which it holds") {
  CHECK(points(where(table(), "chips == 2 and cycles < 65").value()) == Points{1, 6});
  CHECK(points(where(table(), "verdict != 'pass'").value()) == Points{4, 5});
  CHECK(where(table(), "chip == 2").diagnostics().contains(Code::RDU8066));
  CHECK(where(table(), "chips ==").diagnostics().contains(Code::RDU8065));
}

TEST_CASE("the Pareto front has what none beats, equals included, failed and absent ones not") {
  CHECK(points(pareto(table(), "chips,cycles").value()) == Points{0, 1, 6});
  CHECK(points(pareto(table(), "cycles").value()) == Points{1, 3, 6});
  CHECK(points(pareto(table(), "-chips,cycles").value()) == Points{3});
  CHECK(pareto(table(), "chips,cycle").diagnostics().contains(Code::RDU8066));
  CHECK(pareto(table(), "").diagnostics().contains(Code::RDU8066));
}

}  // namespace
}  // namespace rdusim::table_test
