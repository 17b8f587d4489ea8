#include "traces/slack.h"

#include <functional>
#include <queue>

namespace rdusim {

// Dijkstra from the end, against the direction of time.
std::vector<std::optional<Cycles>> SlackFold::slack() const {
  std::vector<std::optional<Cycles>> least(early_.size());
  using Reached = std::pair<Cycles, std::size_t>;
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> queue;
  for (std::size_t u = 0; u < at_end_.size(); ++u)
    if (at_end_[u]) queue.emplace(*at_end_[u], u);
  while (!queue.empty()) {
    const auto [sum, unit] = queue.top();
    queue.pop();
    if (least[unit]) continue;
    least[unit] = sum;
    for (const auto& [supplier, gap] : early_[unit])
      if (!least[supplier]) queue.emplace(sum + gap, supplier);
  }
  return least;
}

}  // namespace rdusim
