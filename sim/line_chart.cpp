#include "sim/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/svg.h"

namespace rdusim {

namespace {

constexpr double width = 720, height = 440, left = 80, right = 20, top = 44, bottom = 60;

constexpr std::array<const char*, 4> dashes{"", "7 3", "2 3", "9 3 2 3"};

}  // namespace

std::string to_svg(const LineChart& chart) {
  double x_least = 0, x_most = 0, y_most = chart.y_most;
  for (const ChartSeries& s : chart.series) {
    for (const auto& [x, y] : s.points) {
      if (std::isfinite(x)) x_most = std::max(x_most, x);
      if (chart.y_most == 0 && std::isfinite(y)) y_most = std::max(y_most, y);
    }
  }
  if (x_most <= x_least) x_most = x_least + 1;
  if (y_most <= 0) y_most = 1;
  const double x_step = svg::tick_step(x_most - x_least, 8), y_step = svg::tick_step(y_most, 6);
  x_most = std::ceil(x_most / x_step - 1e-9) * x_step;
  if (chart.y_most == 0) y_most = std::ceil(y_most / y_step - 1e-9) * y_step;
  const auto px = [&](double x) { return left + (x - x_least) / (x_most - x_least) * (width - left - right); };
  const auto py = [&](double y) { return height - bottom - y / y_most * (height - top - bottom); };

  std::string out = svg::opening(width, height, chart.title);
  for (int i = 0; i * x_step <= x_most + 1e-9; ++i) {
    out += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#dddddd\"/><text x=\"{0:.1f}\" y=\"{3:.1f}\" "
        "text-anchor=\"middle\">{4:.4g}</text>\n",
        px(i * x_step), top, height - bottom, height - bottom + 18, i * x_step);
  }
  for (int i = 0; i * y_step <= y_most + 1e-9; ++i) {
    out += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}H{2:.1f}\" stroke=\"#dddddd\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5:.4g}</text>\n",
        left, py(i * y_step), width - right, left - 8, py(i * y_step) + 4, i * y_step);
  }
  out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", (left + width - right) / 2,
                     height - 18, xml_text(chart.x_label));
  out += fmt::format("<text transform=\"translate(20 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                     (top + height - bottom) / 2, xml_text(chart.y_label));
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const ChartSeries& s = chart.series[i];
    std::string path;
    bool pen = false;
    for (const auto& [x, y] : s.points) {
      if (!std::isfinite(x) || !std::isfinite(y) || y > y_most) {
        pen = false;
        continue;
      }
      path += fmt::format("{}{:.1f} {:.1f}", pen ? "L" : "M", px(x), py(y));
      pen = true;
    }
    const char* colour = svg::colours[i % svg::colours.size()];
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"/>\n",
                       path, colour, dashes[i % dashes.size()]);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n", left + 12,
                       top + 18 + 18 * static_cast<double>(i), colour, xml_text(s.name));
  }
  return out + "</svg>\n";
}

}  // namespace rdusim
