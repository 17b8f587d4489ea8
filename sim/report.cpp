#include "sim/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/support/units.h"
#include "sim/compare/chip_names.h"
#include "sim/run_processes.h"
#include "sim/statistics.h"

namespace rdusim {

std::string_view name_of(Verdict v) {
  switch (v) {
    case Verdict::pass:
      return "pass";
    case Verdict::check_failed:
      return "check-failed";
    case Verdict::circular_wait:
      return "circular-wait";
    case Verdict::starvation:
      return "starvation";
    case Verdict::lost_token:
      return "lost-token";
    case Verdict::missing_participant:
      return "missing-participant";
    case Verdict::limit:
      return "limit";
  }
  return "";
}

namespace {

std::string_view name_of(CheckRow::Status s) {
  switch (s) {
    case CheckRow::Status::pass:
      return "pass";
    case CheckRow::Status::fail:
      return "fail";
    case CheckRow::Status::unchecked:
      return "unchecked";
  }
  return "";
}

std::string code_name(Code code) {
  return fmt::format("RDU{}", static_cast<int>(code));
}

template <class T>
Json or_null(const std::optional<T>& v) {
  return v ? Json(*v) : Json();
}

// Empty lists stay lists.
template <class Row, class Make>
Json list(const std::vector<Row>& rows, Make&& make) {
  JsonArray array;
  for (const Row& r : rows) array.push_back(make(r));
  return Json(std::move(array));
}

Json processes_of(const Report& r) {
  if (r.processes.empty()) return {};
  JsonArray rows;
  for (const ProcessWork& p : r.processes) {
    const double windows = static_cast<double>(std::max<std::uint64_t>(p.windows, 1));
    rows.push_back(Json()
                       .set("first_chip", p.chips == 0 ? Json() : Json(p.first_chip))
                       .set("chips", p.chips)
                       .set("windows", p.windows)
                       .set("work_s", p.work_seconds)
                       .set("work_us_per_window", p.work_seconds / windows * 1e6)
                       .set("wait_s", p.wait_seconds)
                       .set("listening_s", p.rank == 0 ? r.listening_seconds : 0.0));
  }
  return Json(std::move(rows));
}

Json reuse_json(const Report& r) {
  JsonArray rows;
  for (const ReuseRow& row : r.reuse)
    rows.push_back(Json()
                       .set("section", row.section)
                       .set("simulated", or_null(row.simulated))
                       .set("reused", row.reused)
                       .set("why_not", row.why_not.empty() ? Json() : Json(row.why_not)));
  return Json(std::move(rows));
}

Json forecast_of(const Report& r) {
  if (!r.forecast) return {};
  const Forecast& f = *r.forecast;
  return Json()
      .set("after_s", f.after_seconds)
      .set("machine_s", or_null(f.seconds()))
      .set("memory_bytes", f.memory)
      .set("pages", f.expected)
      .set("pages_per_s", f.pages_per_second());
}

}  // namespace

Json to_json(const Report& r) {
  Json j;
  j.set("schema", "rdusim.report/1");
  j.set("rdusim", Json().set("version", r.version));
  j.set("program", Json()
                       .set("name", r.program)
                       .set("sha256", r.program_sha256)
                       .set("chips", r.chips)
                       .set("target", r.target)
                       .set("target_sha256", r.target_sha256));
  j.set("options", Json(r.options));
  j.set("verdict", rdusim::name_of(r.verdict));
  Json residual;
  Json split;
  if (r.residual) {
    Json simulated;
    Json predicted;
    for (std::size_t c = 0; c < causes; ++c) {
      const std::string name(rdusim::name_of(static_cast<Cause>(c)));
      residual.set(name, r.residual->of(static_cast<Cause>(c)));
      simulated.set(name, r.residual->simulated[c]);
      predicted.set(name, r.residual->predicted[c]);
    }
    split.set("simulated", std::move(simulated)).set("predicted", std::move(predicted));
  }
  j.set("cycles", Json()
                      .set("simulated", r.cycles)
                      .set("predicted", r.predicted)
                      .set("lower_bound", r.lower_bound)
                      .set("residual", std::move(residual))
                      .set("causes", std::move(split)));
  j.set("time", Json().set("clock_ghz", r.clock_ghz).set("simulated_us", r.microseconds));
  j.set("tokens_per_s", or_null(r.tokens_per_s));
  j.set("macs", Json().set("useful", r.useful_macs).set("padding", r.padding_macs));
  j.set("roofline", Json()
                        .set("macs_per_cycle", r.peaks.macs_per_cycle)
                        .set("hbm_bytes_per_cycle", r.peaks.hbm_bytes_per_cycle)
                        .set("link_bytes_per_cycle", r.peaks.link_bytes_per_cycle)
                        .set("pmu_bytes_per_cycle", r.peaks.pmu_bytes_per_cycle));
  j.set("checks", list(r.checks, [](const CheckRow& c) {
          return Json()
              .set("code", code_name(c.code))
              .set("name", info(c.code).name)
              .set("scope", c.scope)
              .set("status", name_of(c.status))
              .set("observed", c.observed)
              .set("expected", c.expected);
        }));
  j.set("collectives", list(r.collectives, [](const CollectiveRow& c) {
          return Json()
              .set("name", c.name)
              .set("kind", c.kind)
              .set("algorithm", c.algorithm)
              .set("chips", c.chips)
              .set("trips", c.trips)
              .set("bytes", c.bytes)
              .set("sent_bytes", c.sent)
              .set("cycles", or_null(c.cycles))
              .set("predicted_cycles", or_null(c.predicted))
              .set("algbw_gb_per_s", or_null(c.algorithm_gb_per_s))
              .set("busbw_gb_per_s", or_null(c.bus_gb_per_s))
              .set("contributions", or_null(c.contributions));
        }));
  j.set("stages", list(r.stages, [](const StageRow& s) {
          Json stall;
          for (std::size_t c = 0; c < stall_causes; ++c)
            stall.set(std::string(rdusim::name_of(static_cast<StallCause>(c))), s.stall[c]);
          return Json()
              .set("name", s.name)
              .set("site", s.site)
              .set("instances", s.instances)
              .set("firings", s.firings)
              .set("cycles", s.cycles)
              .set("predicted_cycles", s.predicted)
              .set("busy", s.busy)
              .set("stall", std::move(stall))
              .set("idle", s.idle)
              .set("macs", or_null(s.macs))
              .set("moved_bytes", s.moved);
        }));
  j.set("buffers", list(r.buffers, [](const BufferRow& b) {
          return Json()
              .set("name", b.name)
              .set("site", b.site)
              .set("instances", b.instances)
              .set("depth_pages", b.depth)
              .set("peak_pages", b.peak)
              .set("reserved", b.reserved)
              .set("pushed", b.pushed)
              .set("popped", b.popped)
              .set("bytes", b.bytes);
        }));
  j.set("links", list(r.links, [](const LinkRow& l) {
          return Json()
              .set("name", l.name)
              .set("bytes", l.bytes)
              .set("busy_cycles", l.busy)
              .set("retries", l.retries)
              .set("utilisation", l.utilisation);
        }));
  j.set("memories", list(r.memories, [](const MemoryRow& m) {
          return Json()
              .set("name", m.name)
              .set("read_bytes", m.read)
              .set("write_bytes", m.written)
              .set("peak_bytes", m.peak)
              .set("capacity_bytes", m.capacity)
              .set("first_cycle", or_null(m.first))
              .set("last_cycle", or_null(m.last))
              .set("busy_cycles", m.busy)
              .set("utilisation", m.utilisation);
        }));
  j.set("outputs", list(r.outputs, [](const OutputCheck& o) {
          JsonArray shape;
          for (std::int64_t extent : o.shape) shape.emplace_back(extent);
          return Json()
              .set("name", o.name)
              .set("shape", std::move(shape))
              .set("dtype", rdusim::name_of(o.dtype))
              .set("sha256", o.sha256.empty() ? Json() : Json(o.sha256))
              .set("checked", rdusim::name_of(o.checked))
              .set("max_abs_error", or_null(o.max_abs_error));
        }));
  j.set("decisions", r.decisions);
  j.set("proved", r.proved);
  j.set("flight", r.flight);
  const double seconds = r.wall_seconds;
  j.set("host", Json()
                    .set("wall_s", seconds)
                    .set("machine_s", r.machine_seconds)
                    .set("events", r.events)
                    .set("events_per_s", seconds > 0 ? static_cast<double>(r.events) / seconds : 0.0)
                    .set("simulated_cycles_per_s", seconds > 0 ? static_cast<double>(r.cycles) / seconds : 0.0)
                    .set("peak_rss_bytes", r.peak_rss_bytes)
                    .set("reuse", r.reuse.empty() ? Json() : reuse_json(r))
                    .set("processes", processes_of(r))
                    .set("forecast", forecast_of(r))
                    .set("traces", r.traces));
  return j;
}

namespace {

std::string percent(double fraction) {
  return fmt::format("{:.1f} %", fraction * 100);
}

struct Style {
  const char* good = "";
  const char* bad = "";
  const char* dim = "";
  const char* off = "";
};

}  // namespace

std::string summary(const Report& r, bool colour) {
  const Style style = colour ? Style{"\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[0m"} : Style{};
  std::string out;
  const auto line = [&out](std::string_view label, const std::string& text) {
    out += fmt::format("{:<12}{}\n", label, text);
  };

  line("verdict",
       fmt::format("{}{}{}  {} on {}, {} chip{}", r.verdict == Verdict::pass ? style.good : style.bad,
                   rdusim::name_of(r.verdict), style.off, r.program, r.target, r.chips, r.chips == 1 ? "" : "s"));
  std::string cycles = fmt::format("{} simulated, {} predicted", with_commas(r.cycles), with_commas(r.predicted));
  if (r.predicted > 0 && r.residual) {
    cycles += fmt::format(" ({:+.1f} %)", (static_cast<double>(r.cycles) / static_cast<double>(r.predicted) - 1) * 100);
  }
  line("cycles", fmt::format("{}, at least {}; {:.3f} us at {} GHz", cycles, with_commas(r.lower_bound), r.microseconds,
                             r.clock_ghz));

  if (r.tokens_per_s) line("tokens", fmt::format("{:.1f} a second", *r.tokens_per_s));

  for (const CollectiveRow& c : r.collectives) {
    std::string text = fmt::format("{}{} {} over {} chips, {}", c.trips > 1 ? fmt::format("{} times ", c.trips) : "",
                                   c.algorithm, c.kind, c.chips, format_bytes(c.bytes));
    if (c.cycles) text += fmt::format(", {} cycles", with_commas(*c.cycles));
    if (c.predicted) text += fmt::format(" ({} predicted)", with_commas(*c.predicted));
    if (c.bus_gb_per_s) text += fmt::format(", {:.1f} GB/s on the busiest path", *c.bus_gb_per_s);
    text += c.complete ? ", every contribution present" : ", contributions not all seen";
    line("collective", text);
  }

  std::size_t passed = 0;
  std::size_t failed = 0;
  std::string failures;
  for (const CheckRow& c : r.checks) {
    if (c.status == CheckRow::Status::pass) ++passed;
    if (c.status != CheckRow::Status::fail) continue;
    ++failed;
    failures += fmt::format("{}{} {}", failures.empty() ? "" : ", ", code_name(c.code), info(c.code).name);
  }
  std::string checks =
      fmt::format("{} passed, {} failed, {} not applicable", passed, failed, r.checks.size() - passed - failed);
  if (failed != 0) checks += fmt::format(": {}{}{}", style.bad, failures, style.off);
  line("checks", checks);
  for (const OutputCheck& o : r.outputs) {
    std::string text = fmt::format("'{}' {} [{}]", o.name, rdusim::name_of(o.dtype), fmt::join(o.shape, " x "));
    if (o.checked == CheckLevel::none) {
      text += !r.values ? ", no values (timing only)"
              : o.sha256.empty()
                  ? (r.residual ? ", not compared: a trace carries no values" : ", not there: the run did not finish")
                  : ", not compared";
    } else {
      text += fmt::format(", checked {}", o.checked == CheckLevel::exact ? "to the bit" : "within the error bound");
      if (o.max_abs_error && !is_integer(o.dtype))
        text += fmt::format(", at most {:.3g} from the sum in double", *o.max_abs_error);
    }
    if (!o.sha256.empty()) text += fmt::format("{}, sha256 {}{}", style.dim, o.sha256.substr(0, 16), style.off);
    line("output", text);
  }

  // Chips do the same on their own slices: of each stage the chip with the most to do.
  std::map<std::string, std::pair<const StageRow*, std::size_t>> by_name;
  for (const StageRow& s : r.stages) {
    auto& [busiest, chips] = by_name.try_emplace(std::string(without_chip(s.name)), &s, 0).first->second;
    ++chips;
    if (s.busy > busiest->busy) busiest = &s;
  }
  std::vector<std::pair<const StageRow*, std::size_t>> slowest;
  for (const auto& [name, stage] : by_name) slowest.push_back(stage);
  std::stable_sort(slowest.begin(), slowest.end(),
                   [](const auto& a, const auto& b) { return a.first->busy > b.first->busy; });
  for (std::size_t i = 0; i < slowest.size() && i < 5; ++i) {
    const auto& [stage, chips] = slowest[i];
    const StageRow& s = *stage;
    if (s.cycles == 0) continue;
    const Cycles stalled = std::accumulate(s.stall.begin(), s.stall.end(), Cycles{0});
    const auto share = [&](Cycles n) { return percent(static_cast<double>(n) / static_cast<double>(s.cycles)); };
    line(i == 0 ? "stages" : "", fmt::format("{:<24} {:>10} cycles, busy {:>7}, stalled {:>7}  {}{}", s.name,
                                             with_commas(s.cycles), share(s.busy), share(stalled), s.site,
                                             chips == 1 ? "" : fmt::format(", the busiest of {}", chips)));
  }

  // What went on last, where a run did not end well.
  const JsonArray* flight = r.flight.as_array();
  constexpr std::size_t told = 5;
  for (std::size_t i = flight == nullptr || flight->size() < told ? 0 : flight->size() - told;
       flight != nullptr && i < flight->size(); ++i) {
    const Json& e = (*flight)[i];
    line(&e == &flight->back() ? "last event" : "",
         fmt::format("cycle {}: {}: {}", to_text(*e.find("cycle"), true), *e.find("unit")->as_string(),
                     *e.find("event")->as_string()));
  }

  // Shares of a run that did not finish would be shares of nothing in particular.
  if (!r.residual) return out;
  double memory = 0;
  for (const MemoryRow& m : r.memories) memory = std::max(memory, m.utilisation);
  std::string use =
      fmt::format("HBM {}, PCU {} of {} in use", percent(memory), percent(r.pcu_utilisation), with_commas(r.pcus));
  if (!r.links.empty()) {
    double busiest = 0;
    for (const LinkRow& l : r.links) busiest = std::max(busiest, l.utilisation);
    use += fmt::format(", busiest link {}", percent(busiest));
    std::uint64_t retries = 0;
    for (const LinkRow& l : r.links) retries += l.retries;
    if (retries != 0) use += fmt::format(", {} transfers sent again", with_commas(retries));
  }
  if (!r.bound_by.empty()) use += fmt::format("; {}", r.bound_by);
  line("utilisation", use);
  if (r.rows != 0 && r.rows < r.tile_rows) {
    line("", fmt::format("utilisation of the tile {}/{} = {}", r.rows, r.tile_rows, percent(r.tile_utilisation)));
  }
  if (r.padding_macs != 0) {
    line("padding", fmt::format("{} of {} multiply-accumulates", with_commas(r.padding_macs),
                                with_commas(r.padding_macs + r.useful_macs)));
  }
  return out;
}

std::string explanation(const Report& r) {
  std::string out;
  if (r.forecast)
    out += fmt::format("{}; it took {:.1f} s and {}\n\n", to_text(*r.forecast), r.machine_seconds,
                       format_bytes(r.peak_rss_bytes));
  for (const ReuseRow& row : r.reuse)
    out += row.reused != 0 ? fmt::format("'{}': {} of {} launches went as the one before, and were not simulated\n\n",
                                         row.section, row.reused, row.simulated.value_or(0) + row.reused)
                           : fmt::format("'{}': each launch was simulated: {}\n\n", row.section, row.why_not);
  if (!r.processes.empty()) out += to_text(r.processes, r.listening_seconds) + "\n\n";
  if (!r.residual) return out + "no explanation: the run did not finish\n";
  out += fmt::format("{:<20} {:>14} {:>14} {:>14}\n", "cause", "simulated", "predicted", "difference");
  for (std::size_t c = 0; c < causes; ++c) {
    const std::int64_t simulated = r.residual->simulated[c];
    const std::int64_t predicted = r.residual->predicted[c];
    if (simulated == 0 && predicted == 0) continue;
    out += fmt::format("{:<20} {:>14} {:>14} {:>+14}\n", rdusim::name_of(static_cast<Cause>(c)), simulated, predicted,
                       simulated - predicted);
  }
  const std::int64_t simulated = total(r.residual->simulated);
  const std::int64_t predicted = total(r.residual->predicted);
  out += fmt::format("{:<20} {:>14} {:>14} {:>+14}\n", "total", simulated, predicted, simulated - predicted);
  return out;
}

}  // namespace rdusim
