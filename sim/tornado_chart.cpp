#include "sim/tornado_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/svg.h"

namespace rdusim {

namespace {

constexpr double chart_width = 900, bar_height = 22, name_width = 250, side = 110, head = 44, foot = 56;

// One end's bar and its words, outside of it; without a number the words stand at the middle.
std::string half(double middle, std::optional<double> to, double y, bool least, const std::string& words) {
  const double end = to.value_or(middle);
  const char* colour = svg::colours[least ? 0 : 1];
  std::string out;
  if (to && end != middle) {
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
                       std::min(middle, end), y + 3, std::abs(end - middle), bar_height - 6, colour);
  }
  // Two ends that lie on one side would write over each other: there the nearer one's words stay out.
  const bool left = to && end != middle ? end < middle : least;
  return out + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"11\">{}</text>\n",
                           end + (left ? -4 : 4), y + bar_height - 7, left ? "end" : "start", xml_text(words));
}

// The nearer end of two on one side; one at the middle is on the side where its words stand.
const std::optional<double>* hidden(const TornadoBar& b, double middle) {
  if (!b.least || !b.most) return nullptr;
  if (*b.least == middle && *b.most < middle) return &b.least;
  if (*b.most == middle && *b.least > middle) return &b.most;
  if ((*b.least - middle) * (*b.most - middle) <= 0) return nullptr;
  return std::abs(*b.least - middle) < std::abs(*b.most - middle) ? &b.least : &b.most;
}

}  // namespace

std::string to_svg(const TornadoChart& chart) {
  double least = chart.middle, most = chart.middle;
  for (const TornadoBar& b : chart.bars) {
    for (const auto& end : {b.least, b.most}) {
      if (!end) continue;
      least = std::min(least, *end);
      most = std::max(most, *end);
    }
  }
  if (most <= least) most = least + 1;
  const double from = name_width + side, to = chart_width - side;
  const double height = head + foot + bar_height * static_cast<double>(chart.bars.size());
  const auto px = [&](double x) { return from + (x - least) / (most - least) * (to - from); };
  std::string out = svg::opening(chart_width, height, chart.title);
  const double step = svg::tick_step(most - least, 6);
  for (double tick = std::ceil(least / step); tick * step <= most; ++tick) {
    out += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#dddddd\"/><text x=\"{0:.1f}\" y=\"{3:.1f}\" "
        "text-anchor=\"middle\">{4:.6g}</text>\n",
        px(tick * step), head, height - foot, height - foot + 18, tick * step);
  }
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    const TornadoBar& b = chart.bars[i];
    const double y = head + bar_height * static_cast<double>(i), middle = px(chart.middle);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", name_width,
                       y + bar_height - 7, xml_text(b.name));
    const auto* under = hidden(b, chart.middle);
    const auto at = [&](const std::optional<double>& x) { return x ? std::optional(px(*x)) : std::nullopt; };
    // The farther one first, so that the nearer one is seen on it.
    const std::string low = half(middle, at(b.least), y, true, under == &b.least ? "" : b.at_least);
    const std::string high = half(middle, at(b.most), y, false, under == &b.most ? "" : b.at_most);
    out += under == &b.least ? high + low : low + high;
  }
  out +=
      fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#000000\"/>\n", px(chart.middle), head, height - foot);
  out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", (from + to) / 2, height - 14,
                     xml_text(chart.x_label));
  return out + "</svg>\n";
}

}  // namespace rdusim
