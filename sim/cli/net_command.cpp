#include "sim/cli/net_command.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "compiler/support/file.h"
#include "compiler/support/json.h"
#include "compiler/target/target.h"
#include "models/network/traffic.h"
#include "sim/cli/commands.h"
#include "sim/line_chart.h"

namespace rdusim::cli {

CommandWords words(NetRequest& r) {
  return {
      "net",
      "the on-chip network alone, at its flit level, under synthetic traffic",
      "rdusim net sn40l --mesh 8x8 --pattern transpose --sweep --svg curve.svg",
      {{"target", "a machine by name, or its file: the mesh, and the cycles of a hop and of its ends", &r.target, true},
       {"--pattern",
        "uniform, transpose, tornado, neighbour, bit-complement, bit-reverse, shuffle or hotspot (default uniform)",
        &r.pattern},
       {"--rate", "flits a unit and cycle (repeatable; default 0.1)", &r.rates},
       {"--sweep", "rates up to where the network saturates, and that point", &r.sweep},
       {"--packet-flits", "flits of a packet (default 1)", &r.packet_flits},
       {"--hot", "a hot node, as X,Y (repeatable)", &r.hot},
       {"--hot-share", "share of the packets that go to the hot nodes (default 0.1)", &r.hot_share},
       {"--mesh", "another mesh, as WxH", &r.mesh},
       {"--vcs", "virtual channels of a link (default 4, as the public ancestors have; no machine publishes it)",
        &r.vcs},
       {"--buffer-flits", "buffer of a virtual channel (default 8; unpublished)", &r.buffer_flits},
       {"--switching", "wormhole or cut-through (default wormhole)", &r.switching},
       {"--wait-for-tail-credit", "a virtual channel is free again when the tail's credit is back",
        &r.wait_for_tail_credit},
       {"--routing", "cycles to route a head (default 0: worked out a router ahead)", &r.routing},
       {"--vc-allocation", "cycles; 0 is in the cycle of the switch allocation (default 0)", &r.vc_allocation},
       {"--switch-allocation", "cycles, at least 1 (default 1)", &r.switch_allocation},
       {"--traversal", "cycles through the switch; 0 is in the cycle of its allocation (default 0)", &r.traversal},
       {"--link", "cycles between routers beyond the register at the end (default: the target's hop less 1)", &r.link},
       {"--endpoint", "the same between unit and router (default: the target's endpoint less 1)", &r.endpoint},
       {"--credit", "cycles from a credit's arrival to its being counted (default 0)", &r.credit},
       {"--warm-up", "cycles before measurement (default 5000)", &r.warm_up},
       {"--measure", "cycles of measurement (default 20000)", &r.measure},
       {"--seed", "of every random number (default 1)", &r.seed},
       {"--svg", "writes the curve of latency against rate", &r.svg},
       {"--json", "as JSON", &r.json}}};
}

namespace {

std::optional<std::uint64_t> whole(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "8x6" or "3,4": two numbers.
std::optional<std::pair<std::uint32_t, std::uint32_t>> pair(std::string_view text, char between) {
  const auto at = text.find(between);
  if (at == std::string_view::npos) return std::nullopt;
  const auto a = whole(text.substr(0, at)), b = whole(text.substr(at + 1));
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  if (!a || !b || *a > most || *b > most) return std::nullopt;
  return std::pair{static_cast<std::uint32_t>(*a), static_cast<std::uint32_t>(*b)};
}

struct Experiment {
  FlitNetworkParameters network;
  TrafficOptions traffic;
  std::vector<Fraction> rates;
};

// Errors: RDU6005, and those of the target.
Result<Experiment> experiment(const NetRequest& r) {
  const auto target = find_target(r.target);
  if (!target) return target.diagnostics();
  Diagnostics problems;
  const auto refuse = [&](std::string_view option, std::string_view value, std::string_view wanted) {
    problems.error(Code::RDU6005, "rdusim", "{}: '{}' is not {}", option, value, wanted);
  };
  Experiment e;
  // The fast network's law: a hop takes hop_cycles, an end endpoint_cycles; here the register at the end of each is one
  // of them.
  const auto beyond_register = [](Cycles cycles) { return static_cast<std::uint32_t>(cycles == 0 ? 0 : cycles - 1); };
  FlitNetworkParameters& n = e.network;
  n.width = target->mesh.width;
  n.height = target->mesh.height;
  n.vcs = r.vcs.value_or(4);
  n.buffer_flits = r.buffer_flits.value_or(8);
  n.routing_cycles = r.routing.value_or(0);
  n.vc_allocation_cycles = r.vc_allocation.value_or(0);
  n.switch_allocation_cycles = r.switch_allocation.value_or(1);
  n.traversal_cycles = r.traversal.value_or(0);
  n.link_cycles = r.link.value_or(beyond_register(target->network.hop_cycles));
  n.endpoint_cycles = r.endpoint.value_or(beyond_register(target->network.endpoint_cycles));
  n.credit_cycles = r.credit.value_or(0);
  n.wait_for_tail_credit = r.wait_for_tail_credit;
  if (!r.mesh.empty()) {
    if (const auto mesh = pair(r.mesh, 'x')) {
      n.width = mesh->first;
      n.height = mesh->second;
    } else {
      refuse("--mesh", r.mesh, "a mesh such as 8x8");
    }
  }
  if (r.switching == "cut-through") {
    n.switching = Switching::cut_through;
  } else if (r.switching != "wormhole") {
    refuse("--switching", r.switching, "one of wormhole, cut-through");
  }
  TrafficOptions& t = e.traffic;
  if (const auto p = traffic_pattern(r.pattern)) {
    t.pattern = *p;
  } else {
    std::vector<std::string_view> known;
    for (std::size_t i = 0; i < traffic_patterns; ++i) known.push_back(name(static_cast<TrafficPattern>(i)));
    refuse("--pattern", r.pattern, fmt::format("one of {}", fmt::join(known, ", ")));
  }
  t.packet_flits = r.packet_flits.value_or(1);
  const auto number = [&](const char* option, const std::string& text, std::uint64_t& to) {
    if (text.empty()) return;
    if (const auto v = whole(text)) {
      to = *v;
    } else {
      refuse(option, text, "a whole number");
    }
  };
  number("--warm-up", r.warm_up, t.warm_up);
  number("--measure", r.measure, t.measure);
  number("--seed", r.seed, t.seed);
  for (const std::string& text : r.hot) {
    const auto at = pair(text, ',');
    if (at && at->first < n.width && at->second < n.height) {
      t.hot.push_back(at->second * n.width + at->first);
    } else {
      refuse("--hot", text, fmt::format("a node X,Y of the {} x {} mesh", n.width, n.height));
    }
  }
  if (!r.hot_share.empty()) {
    if (const auto share = parse_decimal(r.hot_share)) {
      t.hot_share = *share;
    } else {
      refuse("--hot-share", r.hot_share, "a number");
    }
  }
  if (r.sweep && !r.rates.empty())
    problems.error(Code::RDU6005, "rdusim", "--sweep chooses the rates: leave --rate out");
  for (const std::string& text : r.rates) {
    if (const auto rate = parse_decimal(text)) {
      e.rates.push_back(*rate);
    } else {
      refuse("--rate", text, "a number of flits a unit and cycle");
    }
  }
  if (e.rates.empty()) e.rates.push_back({1, 10});
  if (problems.has_errors()) return problems;
  if (const auto wrong = unsound(n)) {
    problems.error(Code::RDU6005, "rdusim", "{}", *wrong);
    return problems;
  }
  for (const Fraction& rate : e.rates) {
    t.rate = rate;
    if (const auto wrong = unsound(n, t)) problems.error(Code::RDU6005, "rdusim", "{}", *wrong);
  }
  if (problems.has_errors()) return problems;
  return e;
}

std::string row(const TrafficResult& r) {
  const auto latency = [&](auto value) {
    return r.packets == 0 || r.saturated ? std::string("-") : fmt::format("{}", value);
  };
  return fmt::format("{:>9.4f} {:>9.4f} {:>9} {:>8} {:>8} {:>9} {:>9.2f} {:>9.2f} {:>8.4f}  {}\n", to_double(r.offered),
                     r.accepted, r.saturated ? std::string("-") : fmt::format("{:.2f}", r.mean_latency),
                     latency(r.median_latency), latency(r.p99_latency), latency(r.greatest_latency), r.unloaded_latency,
                     r.mean_routers, r.busiest_link, r.saturated ? "saturated" : "");
}

Json as_json(const TrafficResult& r) {
  const auto latency = [&](Json value) { return r.saturated || r.packets == 0 ? Json() : std::move(value); };
  return Json()
      .set("offered_flits_per_cycle", to_double(r.offered))
      .set("generated_flits_per_cycle", r.generated)
      .set("accepted_flits_per_cycle", r.accepted)
      .set("saturated", r.saturated)
      .set("mean_latency_cycles", latency(r.mean_latency))
      .set("median_latency_cycles", latency(std::uint64_t{r.median_latency}))
      .set("p99_latency_cycles", latency(std::uint64_t{r.p99_latency}))
      .set("least_latency_cycles", latency(std::uint64_t{r.least_latency}))
      .set("greatest_latency_cycles", latency(std::uint64_t{r.greatest_latency}))
      .set("unloaded_latency_cycles", r.unloaded_latency)
      .set("mean_routers", r.mean_routers)
      .set("busiest_link_flits_per_cycle", r.busiest_link)
      .set("packets", r.packets)
      .set("unfinished_packets", r.unfinished)
      .set("router_traversals", r.traversals);
}

}  // namespace

ExitStatus net(const NetRequest& request) {
  const auto made = experiment(request);
  if (!made) return fail(made.diagnostics());
  const Experiment& e = *made;
  std::vector<TrafficResult> results;
  std::optional<Saturation> saturation;
  if (request.sweep) {
    saturation = find_saturation(e.network, e.traffic);
    // Ten rates up to the highest that is carried, then the one that is not.
    constexpr std::uint64_t points = 10;
    TrafficOptions t = e.traffic;
    for (std::uint64_t i = 1; i < points; ++i) {
      const Fraction top = saturation->below.offered;
      t.rate = make_fraction(top.num * i, top.den * points);
      results.push_back(run_traffic(e.network, t));
    }
    results.push_back(saturation->below);
    if (saturation->found) results.push_back(saturation->beyond);
  } else {
    TrafficOptions t = e.traffic;
    for (const Fraction& rate : e.rates) {
      t.rate = rate;
      results.push_back(run_traffic(e.network, t));
    }
  }
  const FlitNetworkParameters& n = e.network;
  const std::string what =
      fmt::format("{}: {} x {} routers, {} virtual channel{} of {} flits, {}; {} traffic, packets of {} flit{}",
                  request.target, n.width, n.height, n.vcs, n.vcs == 1 ? "" : "s", n.buffer_flits,
                  n.switching == Switching::wormhole ? "wormhole" : "cut-through", name(e.traffic.pattern),
                  e.traffic.packet_flits, e.traffic.packet_flits == 1 ? "" : "s");
  if (!request.svg.empty()) {
    LineChart chart{
        what, "offered, flits a unit and cycle", "mean latency, cycles", {{"measured", {}}, {"unloaded", {}}}};
    for (const TrafficResult& r : results) {
      if (r.saturated) continue;
      chart.series[0].points.emplace_back(to_double(r.offered), r.mean_latency);
      chart.series[1].points.emplace_back(to_double(r.offered), r.unloaded_latency);
    }
    if (const auto written = write_file(request.svg, to_svg(chart)); !written) return fail(written.diagnostics());
  }
  if (request.json) {
    JsonArray rows;
    for (const TrafficResult& r : results) rows.push_back(as_json(r));
    Json found;
    if (saturation) {
      found = Json()
                  .set("carried_flits_per_cycle", to_double(saturation->below.offered))
                  .set("saturated_flits_per_cycle",
                       saturation->found ? Json(to_double(saturation->beyond.offered)) : Json());
    }
    return print_result(to_text(Json()
                                    .set("schema", "rdusim.net/1")
                                    .set("target", request.target)
                                    .set("mesh", Json().set("width", n.width).set("height", n.height))
                                    .set("vcs", n.vcs)
                                    .set("buffer_flits", n.buffer_flits)
                                    .set("packet_flits", e.traffic.packet_flits)
                                    .set("pattern", name(e.traffic.pattern))
                                    .set("seed", e.traffic.seed)
                                    .set("points", std::move(rows))
                                    .set("saturation", std::move(found))),
                        ExitStatus::done);
  }
  std::string text = what + "\n";
  text += fmt::format("{:>9} {:>9} {:>9} {:>8} {:>8} {:>9} {:>9} {:>9} {:>8}\n", "offered", "accepted", "mean",
                      "median", "p99", "greatest", "unloaded", "routers", "link");
  for (const TrafficResult& r : results) text += row(r);
  if (saturation) {
    text += saturation->found
                ? fmt::format(
                      "saturates between {:.4f} and {:.4f} flits a unit and cycle (mean latency above {} times "
                      "the unloaded one, or packets left after draining)\n",
                      to_double(saturation->below.offered), to_double(saturation->beyond.offered),
                      saturation_latency_factor)
                : std::string("carries one flit a unit and cycle: it does not saturate\n");
  }
  return print_result(text, ExitStatus::done);
}

}  // namespace rdusim::cli
