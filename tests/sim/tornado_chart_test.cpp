#include "sim/tornado_chart.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace rdusim::tornado_chart_test {
namespace {

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

TEST_CASE("each end that differs from the middle is a bar, and one without a number has its words") {
  const TornadoChart chart{"a < b",
                           "cycles",
                           100,
                           {{"hbm.latency_ns", 90, 120, "100", "300"},
                            {"links", 100, 105, "1", "2"},
                            {"mesh", std::nullopt, 101, "20: RDU6003", "80"}}};
  const std::string svg = to_svg(chart);
  CHECK(count(svg, "<rect x=") == 4);
  CHECK(svg.find("a &lt; b") != std::string::npos);
  CHECK(svg.find(">20: RDU6003<") != std::string::npos);
  CHECK(svg == to_svg(chart));
}

TEST_CASE("of two ends on one side the nearer is drawn over the farther, and its words are left out") {
  const std::string svg = to_svg({"t", "x", 100, {{"n", 110, 130, "least", "most"}}});
  CHECK(svg.find(">least<") == std::string::npos);
  CHECK(svg.find(">most<") != std::string::npos);
  CHECK(svg.find("#d55e00") < svg.find("#0072b2"));
}

TEST_CASE("an end at the middle leaves its words out where the other end's bar lies") {
  const std::string svg = to_svg({"t", "x", 100, {{"n", 110, 100, "least", "most"}, {"m", 100, 90, "low", "high"}}});
  CHECK(svg.find(">least<") != std::string::npos);
  CHECK(svg.find(">most<") == std::string::npos);
  CHECK(svg.find(">low<") == std::string::npos);
  CHECK(svg.find(">high<") != std::string::npos);
}

TEST_CASE("a chart of nothing is a picture all the same") {
  CHECK(to_svg({"t", "x", 5, {}}).ends_with("</svg>\n"));
}

}  // namespace
}  // namespace rdusim::tornado_chart_test
