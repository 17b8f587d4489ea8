// A tornado chart as a picture: one self-contained SVG, the same bytes for the same data. A bar a line reaches from a
// common middle to either side.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rdusim {

// Where each end of a bar lies, and what stands there; an end that is absent has only its words.
struct TornadoBar {
  std::string name;
  std::optional<double> least, most;
  std::string at_least, at_most;
};

struct TornadoChart {
  std::string title, x_label;
  double middle = 0;
  std::vector<TornadoBar> bars;  // from the top
};

// Requires finite numbers.
std::string to_svg(const TornadoChart& chart);

}  // namespace rdusim
