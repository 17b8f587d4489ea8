#include "compiler/ir/repetition.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "compiler/ir/rates.h"

namespace rdusim {
namespace {

__extension__ using Wide = unsigned __int128;

Wide gcd(Wide a, Wide b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

// A positive fraction in lowest terms of numbers that fit 64 bits.
struct Ratio {
  std::uint64_t num = 1, den = 1;
  friend bool operator==(const Ratio&, const Ratio&) = default;
};
std::optional<Ratio> reduced(Wide num, Wide den) {
  const Wide g = gcd(num, den);
  num /= g;
  den /= g;
  constexpr Wide most = std::numeric_limits<std::uint64_t>::max();
  if (num > most || den > most) return std::nullopt;
  return Ratio{static_cast<std::uint64_t>(num), static_cast<std::uint64_t>(den)};
}
std::optional<Ratio> times(const Ratio& a, const Ratio& b) {
  // Crosswise first, so that what fits in the end fits on the way.
  const auto left = reduced(a.num, b.den), right = reduced(b.num, a.den);
  if (!left || !right) return std::nullopt;
  return reduced(Wide{left->num} * right->num, Wide{left->den} * right->den);
}
std::optional<std::uint64_t> lcm(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = 0;
  if (__builtin_mul_overflow(a / std::gcd(a, b), b, &out)) return std::nullopt;
  return out;
}

// Two stages that hand pages on: `to` fires `ratio` times as often as `from`. No ratio: one moves pages, the other
// none.
struct HandOff {
  std::size_t from, to;  // places in Cluster::stages
  BufferId buffer;
  std::optional<Ratio> ratio;
  bool overflows = false;
};

class Balance {
 public:
  Balance(const SpatialProgram& p, const Cluster& c) : p_(p), c_(c) {
    for (std::size_t i = 0; i < c.stages.size(); ++i) place_[c.stages[i].value] = i;
    find_hand_offs();
  }

  Repetition solve() {
    Repetition r;
    const std::size_t n = c_.stages.size();
    std::vector<std::vector<std::size_t>> at(n);
    for (std::size_t h = 0; h < hand_offs_.size(); ++h) {
      const HandOff& x = hand_offs_[h];
      if (!x.ratio && !x.overflows) {
        r.circle = x.from == x.to ? std::vector{c_.stages[x.from]} : std::vector{c_.stages[x.from], c_.stages[x.to]};
        r.buffers.assign(r.circle.size(), x.buffer);
        return r;
      }
      at[x.from].push_back(h);
      if (x.to != x.from) at[x.to].push_back(h);
    }
    std::vector<std::optional<Ratio>> rate(n);
    std::vector<std::size_t> came_by(n, none), came_from(n, none), order;
    rate[0] = Ratio{};
    order.push_back(0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t v = order[i];
      for (const std::size_t h : at[v]) {
        const HandOff& x = hand_offs_[h];
        const std::size_t w = x.from == v ? x.to : x.from;
        const auto there =
            x.overflows ? std::nullopt : times(*rate[v], x.from == v ? *x.ratio : Ratio{x.ratio->den, x.ratio->num});
        if (!there) {
          r.too_large = true;
          return r;
        }
        if (!rate[w]) {
          rate[w] = there;
          came_by[w] = h;
          came_from[w] = v;
          order.push_back(w);
        } else if (*rate[w] != *there) {
          close(r, v, w, h, came_from, came_by);
          return r;
        }
      }
    }
    // A CollectiveStage's members share no buffer: a cluster may fall apart into several.
    std::uint64_t scale = 1;
    for (std::size_t v = 0; v < n; ++v) {
      if (!rate[v]) rate[v] = Ratio{};
      // Whole firings, and whole cycles of rates.
      const auto cycle = hyperperiod(p_.stage(c_.stages[v]));
      const auto share = cycle ? reduced(Wide{*cycle} * rate[v]->den, rate[v]->num) : std::nullopt;
      const auto next = share ? lcm(scale, share->num) : std::nullopt;
      if (!next) {
        r.too_large = true;
        return r;
      }
      scale = *next;
    }
    for (std::size_t v = 0; v < n; ++v) {
      const auto firings = times({scale, 1}, *rate[v]);
      if (!firings) {
        r.too_large = true;
        r.firings.clear();
        return r;
      }
      r.firings.push_back(firings->num);
    }
    return r;
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  // The circle that v -> w by hand-off h closes with the ways by which both were reached.
  void close(Repetition& r, std::size_t v, std::size_t w, std::size_t h, const std::vector<std::size_t>& came_from,
             const std::vector<std::size_t>& came_by) const {
    const auto way = [&](std::size_t x) {
      std::vector<std::size_t> list{x};
      while (came_from[x] != none) list.push_back(x = came_from[x]);
      return list;
    };
    const std::vector<std::size_t> of_v = way(v), of_w = way(w);
    std::size_t i = of_v.size(), j = of_w.size();
    while (i > 0 && j > 0 && of_v[i - 1] == of_w[j - 1]) --i, --j;
    // From where both meet down to v, over to w, and back up.
    for (std::size_t k = i + 1; k-- > 0;) {
      r.circle.push_back(c_.stages[of_v[k]]);
      r.buffers.push_back(k == 0 ? hand_offs_[h].buffer : hand_offs_[came_by[of_v[k - 1]]].buffer);
    }
    for (std::size_t k = 0; k < j; ++k) {
      r.circle.push_back(c_.stages[of_w[k]]);
      r.buffers.push_back(hand_offs_[came_by[of_w[k]]].buffer);
    }
  }

  void add(StageId from, StageId to, BufferId buffer, std::optional<Wide> pushed, std::optional<Wide> popped) {
    HandOff h{place_[from.value], place_[to.value], buffer, std::nullopt, !pushed || !popped};
    if (pushed && popped) {
      if (*pushed == 0 && *popped == 0) return;
      if (*pushed != 0 && *popped != 0) {
        h.ratio = reduced(*pushed, *popped);
        h.overflows = !h.ratio;
      }
    }
    hand_offs_.push_back(h);
  }

  void find_hand_offs() {
    struct End {
      StageId stage;
      const Cyclic<std::uint32_t>* rate;
    };
    std::unordered_map<std::uint32_t, End> producer;
    for (const StageId id : c_.stages)
      for (const Port& port : p_.stage(id).ports)
        if (port.direction == Direction::output) producer.try_emplace(port.buffer.value, End{id, &port.push});
    // Pages a firing are sums over a cycle by its length: pushed / length of the one as popped / length of the other.
    const auto both = [&](const End& from, StageId to, const Cyclic<std::uint32_t>& pop, BufferId buffer,
                          std::uint64_t more, std::uint64_t less) {
      const auto pushed = sum_over(*from.rate, cycle_length(*from.rate));
      const auto popped = sum_over(pop, cycle_length(pop));
      const auto product = [](std::optional<std::uint64_t> a, std::uint64_t b, std::uint64_t c) -> std::optional<Wide> {
        std::uint64_t bc = 0;
        if (!a || __builtin_mul_overflow(b, c, &bc)) return std::nullopt;
        return Wide{*a} * bc;
      };
      add(from.stage, to, buffer, product(pushed, cycle_length(pop), more),
          product(popped, cycle_length(*from.rate), less));
    };
    for (const StageId id : c_.stages)
      for (const Port& port : p_.stage(id).ports)
        if (const auto from = producer.find(port.buffer.value);
            port.direction == Direction::input && from != producer.end())
          both(from->second, id, port.pop, port.buffer, 1, 1);
    const Cyclic<std::uint32_t> one = always(std::uint32_t{1});
    for (const EdgeId id : c_.crossing) {
      const Edge& e = p_.edge(id);
      const auto from = producer.find(e.buffer.value);
      if (from == producer.end()) continue;
      for (const StageId to : e.to) {
        const auto senders = senders_by_receiver(e, p_.sites_of(p_.stage(to)).sites.size());
        if (senders.empty() || senders.front().empty()) continue;
        const std::uint64_t shares =
            e.map.kind == PageMapKind::scatter ? e.map.targets[senders.front().front()].size() : 1;
        both(from->second, to, one, e.buffer, senders.front().size(), shares);
      }
    }
  }

  const SpatialProgram& p_;
  const Cluster& c_;
  std::unordered_map<std::uint32_t, std::size_t> place_;  // in the cluster, by stage
  std::vector<HandOff> hand_offs_;
};

}  // namespace

Repetition repetition_of(const SpatialProgram& program, const Cluster& cluster) {
  return Balance(program, cluster).solve();
}

}  // namespace rdusim
