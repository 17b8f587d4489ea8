// Reports as text, with what a test changes in them.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "sim/compare/read_report.h"

namespace rdusim::test {

// A small report of two chips: one stage a chip, one link each way.
struct ReportText {
  std::string schema = "rdusim.report/1";
  std::string program = "small_tp2";
  std::string verdict = "pass";
  std::string algorithm = "ring";
  std::string target_sha256 = "aa";
  std::string cycles = "1000";  // as it stands in the text
  std::string link = "300";     // of the causes
  std::string stage = "900";    // cycles of fold_c1
  std::string stall = "200";    // of fold_c1 on links
  std::string link_bytes = "4096";
  std::string peak = "2";
  std::string wall = "0.5";
  std::string extra;  // further members, each with a comma before it

  std::string text() const {
    return R"({"schema": ")" + schema + R"(", "rdusim": {"version": "0.1.0"},
 "program": {"name": ")" +
           program + R"(", "sha256": "01", "chips": 2, "target": "two", "target_sha256": ")" + target_sha256 + R"("},
 "options": {"check": "exact"}, "verdict": ")" +
           verdict + R"(",
 "cycles": {"simulated": )" +
           cycles + R"(, "predicted": 900, "lower_bound": 500, "residual": null,
   "causes": {"simulated": {"compute": 700, "link": )" +
           link + R"(}, "predicted": {"compute": 900}}},
 "tokens_per_s": null, "macs": {"useful": 64, "padding": 0}, "checks": [],
 "collectives": [{"name": "reduce", "kind": "all_reduce", "algorithm": ")" +
           algorithm + R"(", "chips": 2,
   "bytes": 4096, "sent_bytes": 8192, "cycles": 640, "contributions": 2}],
 "stages": [
  {"name": "fold_c0", "site": "chip0", "firings": 4, "cycles": 800, "busy": 60, "stall": {"link": 100}, "idle": 10},
  {"name": "fold_c1", "site": "chip1", "firings": 4, "cycles": )" +
           stage + R"(, "busy": 60,
   "stall": {"link": )" +
           stall + R"(}, "idle": 10}],
 "buffers": [{"name": "a_c0", "depth_pages": 4, "peak_pages": )" +
           peak + R"(, "bytes": 4096}],
 "links": [{"name": "link0 chip0->chip1", "bytes": )" +
           link_bytes + R"(, "busy_cycles": 64, "retries": 2},
           {"name": "link1 chip1->chip0", "bytes": 4096, "busy_cycles": 64, "retries": 3}],
 "memories": [{"name": "chip0.hbm", "read_bytes": 10, "write_bytes": 20, "peak_bytes": 30},
              {"name": "chip1.hbm", "read_bytes": 11, "write_bytes": 20, "peak_bytes": 31}],
 "outputs": [],
 "decisions": {"tile": 32, "collectives": [{
    "name" : "reduce",
             "algorithm" : ")" +
           algorithm + R"("}]},
 "host": {"wall_s": )" +
           wall + R"(, "events": 100, "events_per_s": 200.0, "peak_rss_bytes": 1000})" + extra + "}\n";
  }
  ReportFile read() const {
    auto file = parse_report(text(), "report.json");
    INFO(file.diagnostics().to_text());
    REQUIRE(file);
    return *std::move(file);
  }
};

inline const Metric* metric(const std::vector<Metric>& all, std::string_view name) {
  for (const Metric& m : all) {
    if (m.name == name) return &m;
  }
  return nullptr;
}

}  // namespace rdusim::test
