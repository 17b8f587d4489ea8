// What a memory gives under a pattern of small requests: its share of the peak, in percent.
//
//   memory_pattern TARGET PATTERN READ_PERCENT [REQUEST_BYTES [OUTSTANDING [REQUESTS]]]
//
// PATTERN is streaming (one address after the other) or random (anywhere in the memory); of the requests, READ_PERCENT
// are reads, drawn at random; OUTSTANDING requests are on their way at any time, the next one is made when one is
// answered. TARGET is a shipped machine or a file; its HBM is asked. The model is models/units/memory.h, in cycles of
// the target's clock.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/split_mix.h"
#include "compiler/target/target.h"
#include "models/units/memory.h"

namespace {

struct Pattern {
  bool random = false;
  std::uint32_t read_percent = 100;
  rdusim::Bytes request = 32;
  std::uint64_t outstanding = 128;
  std::uint64_t requests = 1'000'000;
};

double share_of_peak(const rdusim::MemoryParameters& p, const Pattern& pattern) {
  rdusim::Memory memory(p);
  std::priority_queue<rdusim::Cycle, std::vector<rdusim::Cycle>, std::greater<>> flying;
  std::uint64_t state = 1;
  const rdusim::Bytes places = p.capacity_bytes / pattern.request;
  rdusim::Cycle now = 0, end = 0;
  for (std::uint64_t i = 0; i < pattern.requests; ++i) {
    if (flying.size() == pattern.outstanding) {
      now = flying.top();
      flying.pop();
    }
    const bool write = rdusim::draw_below(state, 100) >= pattern.read_percent;
    const rdusim::Bytes place = pattern.random ? rdusim::draw(state) % places : i % places;
    const rdusim::Cycle done = memory.access(now, place * pattern.request, pattern.request, write,
                                             [](std::uint32_t, rdusim::Cycle, rdusim::Cycle, rdusim::Bytes) {});
    end = std::max(end, done);
    flying.push(done);
  }
  const double bytes = static_cast<double>(pattern.requests) * static_cast<double>(pattern.request);
  return 100 * bytes / static_cast<double>(end) / to_double(p.peak_bytes_per_cycle());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const auto number = [&](int i, std::uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  Pattern p;
  const std::string_view kind = argv[2];
  p.random = kind == "random";
  p.read_percent = static_cast<std::uint32_t>(number(3, 100));
  p.request = number(4, p.request);
  p.outstanding = number(5, p.outstanding);
  p.requests = number(6, p.requests);
  const auto target = rdusim::find_target(argv[1]);
  if (!target) {
    std::fputs(target.diagnostics().to_text().c_str(), stderr);
    return 2;
  }
  const bool sound = p.request != 0 && p.outstanding != 0 && p.requests != 0 && p.read_percent <= 100 &&
                     target->hbm.capacity_bytes >= p.request;
  if (!sound || (!p.random && kind != "streaming")) return 2;
  std::printf("%.2f\n", share_of_peak(target->hbm, p));
  return 0;
}
