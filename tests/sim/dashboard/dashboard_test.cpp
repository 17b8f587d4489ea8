#include "sim/dashboard/dashboard.h"

#include <fstream>

#include "sim/page/html_page.h"
#include "tests/sim/history/fixture.h"

namespace rdusim::test::dashboard_test {
namespace {

std::string page(History& h, const DashboardTables& tables = {}, const std::optional<std::string>& echarts = {}) {
  auto html = dashboard_html(h, tables, echarts);
  INFO(html.diagnostics().to_text());
  REQUIRE(html);
  return *std::move(html);
}

Json data_of(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t from = html.find(open) + open.size();
  auto json = parse_json(html.substr(from, html.find("</script>", from) - from), "data", Code::RDU8001);
  INFO(json.diagnostics().to_text());
  REQUIRE(json);
  return *std::move(json);
}

std::size_t index_of(const Json& data, const std::string& metric) {
  const JsonArray& metrics = *data.find("metrics")->as_array();
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (*metrics[i].find("name")->as_string() == metric) return i;
  }
  FAIL("there is no such metric");
  return 0;
}

TEST_CASE("the page holds every run, metric and acceptance, one number where a metric never moved") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  accept(h, add(h, {}, commit(0)));
  ReportText r;
  r.cycles = "1100";
  add(h, r, commit(1));
  const Json data = data_of(page(h));
  CHECK(data.find("series")->as_array()->size() == 1);
  CHECK(data.find("runs")->as_array()->size() == 2);
  CHECK(*data.find("runs")->as_array()->at(1).find("commit")->as_string() == "c1");
  CHECK(*data.find("accepted")->as_array()->at(0).find("reason")->as_string() == "because");
  const Json& values = data.find("values")->as_array()->at(0);
  const Json* cycles = values.find(std::to_string(index_of(data, "cycles.simulated")));
  REQUIRE(cycles->as_array() != nullptr);
  CHECK(cycles->as_array()->at(0).as_int64() == 1000);
  CHECK(cycles->as_array()->at(1).as_int64() == 1100);
  CHECK(values.find(std::to_string(index_of(data, "links.bytes")))->as_int64() == 8192);
}

TEST_CASE("a run that lacks a metric has null in its place") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  add(h, {}, commit(0));
  ReportText r;
  r.wall = "null";
  add(h, r, commit(1));
  const Json data = data_of(page(h));
  const Json* wall = data.find("values")->as_array()->at(0).find(std::to_string(index_of(data, "host.wall_s")));
  REQUIRE(wall->as_array() != nullptr);
  CHECK(wall->as_array()->at(0).as_number() == 0.5);
  CHECK(wall->as_array()->at(1).is_null());
}

TEST_CASE("a timed metric comes with the limit of its next run, on the host of its last") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  for (int n = 0; n < 6; ++n) accept(h, add(h, {}, commit(n)));
  const Json data = data_of(page(h));
  const Json* limit = data.find("limits")->as_array()->at(0).find(std::to_string(index_of(data, "host.wall_s")));
  REQUIRE(limit != nullptr);
  CHECK(limit->as_array()->at(0).as_number() == 0.5);
  CHECK(*limit->as_array()->at(1).as_number() == doctest::Approx(0.55));
  CHECK(*limit->as_array()->at(2).as_string() == "host1");
}

TEST_CASE("no name or reason ends the script that it is put into") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  ReportText r;
  r.program = "</script><script>alert(1)</script><!--";
  const auto run = add(h, r, commit(0));
  REQUIRE(h.accept({run}, "", "</SCRIPT>", "x", 0));
  const std::string html = page(h);
  CHECK(html.find("alert(1)</script>") == std::string::npos);
  CHECK(html.find("</SCRIPT>") == std::string::npos);
  CHECK(html.find("<!--") == std::string::npos);
  CHECK(*data_of(html).find("series")->as_array()->at(0).find("name")->as_string() == r.program);
}

TEST_CASE("the policy allows the page's own scripts by their hashes, and no network") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  add(h, {}, commit(0));
  const std::string without = page(h);
  CHECK(without.find("default-src 'none'; script-src 'sha256-") != std::string::npos);
  const std::string library = "var echarts = {};";
  const std::string with = page(h, {}, library);
  // printf 'var echarts = {};' | openssl sha256 -binary | base64
  CHECK(with.find("'sha256-LeS8kb6zl9DIBg2PhhAmTPv4cL4De881sWnoQ6ZtYGE='") != std::string::npos);
  CHECK(without.find("LeS8kb6zl9DIBg2PhhAmTPv4cL4De881sWnoQ6ZtYGE=") == std::string::npos);
  for (const char* outside : {"https://", "http://", "src=", "@import"}) {
    CAPTURE(outside);
    std::string rest = without;
    const std::string svg = "http://www.w3.org/2000/svg";  // a namespace, not an address
    for (std::size_t at = rest.find(svg); at != std::string::npos; at = rest.find(svg)) rest.erase(at, svg.size());
    CHECK(rest.find(outside) == std::string::npos);
  }
}

TEST_CASE("the same history gives the same page") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  for (int n = 0; n < 3; ++n) add(h, {}, commit(n));
  CHECK(page(h) == page(h));
}

TEST_CASE("an empty history is refused, and what is no chart library or no sweep") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  CHECK(dashboard_html(h, {}, std::nullopt).diagnostics().contains(Code::RDU8041));
  const auto write = [&](const std::string& text) { std::ofstream(folder.file("f")) << text; };
  write("var x = 1;");
  CHECK(read_echarts(folder.file("f")).diagnostics().contains(Code::RDU8042));
  write("echarts </ScRiPt>");
  CHECK(read_echarts(folder.file("f")).diagnostics().contains(Code::RDU8042));
  write("var echarts = {};");
  CHECK(read_echarts(folder.file("f")));
  CHECK(read_sweep(folder.file("f")).diagnostics().contains(Code::RDU8055));
  write("");
  CHECK(read_sweep(folder.file("f")).diagnostics().contains(Code::RDU8055));
  write("{}\n");
  CHECK(read_sweep(folder.file("f")).diagnostics().contains(Code::RDU8055));
  write("{\"point\":0,\"cycles\":5}\n{\"point\":1}\n");
  CHECK(read_sweep(folder.file("f")).diagnostics().contains(Code::RDU8055));
  write("{\"point\":0,\"cycles\":5}\n{\"point\":1,\"cycles\":null}\n");
  const auto sweep = read_sweep(folder.file("f"));
  REQUIRE(sweep);
  CHECK(sweep->columns == std::vector<std::string>{"point", "cycles"});
  CHECK(sweep->rows.size() == 2);
  const Json data = data_of(page(h, {.sweeps = {*sweep}, .accuracy = {}}));
  CHECK(data.find("sweeps")->as_array()->at(0).find("rows")->as_array()->size() == 2);
}

TEST_CASE("the accuracy table is read row by row, and what is no such table is refused") {
  const TemporaryFolder folder;
  History h = opened(folder.file("h.db"));
  add(h, {}, commit(0));
  const auto read = [&](const std::string& text) {
    std::ofstream(folder.file("f")) << text;
    return read_accuracy(folder.file("f"));
  };
  for (const char* wrong : {"", "{}", "[]", "[1]", R"([{"what":"a","reference":1,"value":1}])",
                            R"([{"what":"a","reference":0,"value":1,"bound":0.1}])",
                            R"([{"what":"a","reference":1,"value":"1","bound":0.1}])",
                            R"([{"what":1,"reference":1,"value":1,"bound":0.1}])",
                            R"([{"what":"a","reference":1,"value":1,"bound":-1}])"}) {
    CAPTURE(wrong);
    CHECK(read(wrong).diagnostics().contains(Code::RDU8055));
  }
  const auto rows = read(R"([{"what":"a","reference":10,"value":10.5,"error":0.05,"bound":0.1,"within":true},
                             {"what":"b","reference":2,"value":null,"error":null,"bound":0.1,"within":false}])");
  REQUIRE(rows);
  const Json data = data_of(page(h, {.sweeps = {}, .accuracy = *rows}));
  const JsonArray& shown = *data.find("accuracy")->as_array();
  REQUIRE(shown.size() == 2);
  CHECK(shown[0].find("value")->as_number() == 10.5);
  CHECK(shown[1].find("value")->is_null());
}

}  // namespace
}  // namespace rdusim::test::dashboard_test
