// A line chart as a picture: one self-contained SVG, the same bytes for the same data.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rdusim {

struct ChartSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // in the order in which they are joined
};

struct LineChart {
  std::string title, x_label, y_label;
  std::vector<ChartSeries> series;
  double y_most = 0;  // 0: from the data
};

// Points that are not finite, or above y_most, end the line. Series differ in colour and in dash, for those who do not
// tell colours apart.
std::string to_svg(const LineChart& chart);

}  // namespace rdusim
