#include <doctest/doctest.h>

#include "sim/report.h"

namespace rdusim::report_test {
namespace {

Report finished() {
  Report r;
  r.version = "1.2.3";
  r.program = "small_tp2";
  r.program_sha256 = "ab";
  r.target = "two";
  r.chips = 2;
  r.options = {{"check", Json("exact")}};
  r.cycles = 1000;
  r.predicted = 900;
  r.lower_bound = 500;
  r.clock_ghz = 1.6;
  r.microseconds = 0.625;
  Residual residual;
  residual.simulated[static_cast<std::size_t>(Cause::compute)] = 700;
  residual.simulated[static_cast<std::size_t>(Cause::drain)] = 300;
  residual.predicted[static_cast<std::size_t>(Cause::memory)] = 900;
  r.residual = residual;
  r.useful_macs = 10;
  r.checks.push_back({Code::RDU7001, "every event", CheckRow::Status::pass, "0 violations", "0 violations"});
  CollectiveRow c;
  c.name = "reduce_y", c.kind = "all_reduce", c.algorithm = "ring", c.chips = 2, c.bytes = 4096;
  c.cycles = 640, c.predicted = 600, c.contributions = 2, c.complete = true;
  r.collectives.push_back(c);
  StageRow s;
  s.name = "matmul_c0", s.site = "chip0.site(1,2)", s.instances = 1, s.firings = 4, s.cycles = 100, s.busy = 60,
  s.idle = 10;
  s.stall[0] = 30;
  r.stages.push_back(s);
  r.buffers.push_back({"x_c0.pages", "chip0.site(1,2)", 1, 2, 1, 4, 4, 4, 4096});
  r.links.push_back({"link0 chip0->chip1", 4096, 64, 0.064});
  MemoryRow m;
  m.name = "chip0.hbm";
  r.memories.push_back(m);
  r.outputs.push_back({OperandId{2u}, "y", {32, 32}, DType::int32, std::string(64, '0'), CheckLevel::exact, 0.0});
  r.wall_seconds = 0.5;
  r.events = 100;
  return r;
}

void has(const Json* object, std::initializer_list<const char*> keys) {
  REQUIRE(object != nullptr);
  for (const char* k : keys) {
    CAPTURE(k);
    CHECK(object->find(k) != nullptr);
  }
}

const Json* first(const Json& report, const char* list) {
  const Json* l = report.find(list);
  REQUIRE(l != nullptr);
  REQUIRE(l->as_array() != nullptr);
  REQUIRE_FALSE(l->as_array()->empty());
  return &l->as_array()->front();
}

TEST_CASE("a report has every key of the contract") {
  const Json j = to_json(finished());
  has(&j, {"schema", "rdusim", "program", "options", "verdict", "cycles", "time", "tokens_per_s", "macs", "checks",
           "collectives", "stages", "buffers", "links", "memories", "outputs", "host"});
  CHECK(*j.find("schema")->as_string() == "rdusim.report/1");
  has(j.find("rdusim"), {"version"});
  has(j.find("program"), {"name", "sha256", "chips", "target"});
  has(j.find("cycles"), {"simulated", "predicted", "lower_bound", "residual"});
  has(j.find("time"), {"clock_ghz", "simulated_us"});
  has(j.find("macs"), {"useful", "padding"});
  has(first(j, "checks"), {"code", "name", "scope", "status", "observed", "expected"});
  has(first(j, "collectives"), {"name", "kind", "algorithm", "chips", "bytes", "cycles", "predicted_cycles",
                                "algbw_gb_per_s", "busbw_gb_per_s", "contributions"});
  has(first(j, "stages"), {"name", "site", "firings", "cycles", "predicted_cycles", "busy", "stall", "idle"});
  has(first(j, "buffers"), {"name", "site", "depth_pages", "peak_pages", "reserved", "pushed", "popped", "bytes"});
  has(first(j, "links"), {"name", "bytes", "busy_cycles", "utilisation"});
  has(first(j, "memories"), {"name", "read_bytes", "write_bytes", "peak_bytes", "capacity_bytes", "first_cycle",
                             "last_cycle", "utilisation"});
  has(first(j, "outputs"), {"name", "shape", "dtype", "sha256", "checked", "max_abs_error"});
  has(j.find("host"), {"wall_s", "events", "events_per_s", "simulated_cycles_per_s", "peak_rss_bytes"});
}

TEST_CASE("the residuals of a report add up to simulated - predicted") {
  const Json j = to_json(finished());
  const JsonObject* residual = j.find("cycles")->find("residual")->as_object();
  REQUIRE(residual != nullptr);
  CHECK(residual->size() == causes);
  std::int64_t sum = 0;
  for (const auto& [cause, cycles] : *residual) sum += cycles.as_int64().value();
  CHECK(sum == 100);
}

TEST_CASE("what does not apply is null") {
  Report r = finished();
  r.residual.reset();
  r.collectives.front().cycles.reset();
  r.outputs.front().sha256.clear();
  const Json j = to_json(r);
  CHECK(j.find("tokens_per_s")->is_null());
  CHECK(j.find("cycles")->find("residual")->is_null());
  CHECK(first(j, "collectives")->find("cycles")->is_null());
  CHECK(first(j, "outputs")->find("sha256")->is_null());
  CHECK(first(j, "memories")->find("first_cycle")->is_null());
}

TEST_CASE("a report without rows has lists, not nulls") {
  const Json j = to_json(Report{});
  for (const char* list : {"checks", "collectives", "stages", "buffers", "links", "memories", "outputs"}) {
    CAPTURE(list);
    CHECK(j.find(list)->as_array() != nullptr);
  }
}

TEST_CASE("every verdict has the word that scripts look for") {
  CHECK(name_of(Verdict::pass) == "pass");
  CHECK(name_of(Verdict::check_failed) == "check-failed");
  CHECK(name_of(Verdict::circular_wait) == "circular-wait");
  CHECK(name_of(Verdict::starvation) == "starvation");
  CHECK(name_of(Verdict::lost_token) == "lost-token");
  CHECK(name_of(Verdict::missing_participant) == "missing-participant");
  CHECK(name_of(Verdict::limit) == "limit");
}

TEST_CASE("the summary says verdict, cycles, the collective and its contributions, and what bounds the run") {
  Report r = finished();
  r.rows = 1, r.tile_rows = 32, r.tile_utilisation = 1.0 / 32;
  r.bound_by = "memory-bound";
  const std::string text = summary(r, false);
  CHECK(text.find("pass") != std::string::npos);
  CHECK(text.find("1,000 simulated, 900 predicted") != std::string::npos);
  CHECK(text.find("1.6 GHz") != std::string::npos);
  CHECK(text.find("ring all_reduce over 2 chips") != std::string::npos);
  CHECK(text.find("every contribution present") != std::string::npos);
  CHECK(text.find("matmul_c0") != std::string::npos);
  CHECK(text.find("memory-bound") != std::string::npos);
  CHECK(text.find("utilisation of the tile 1/32 = 3.1 %") != std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(summary(r, true).find('\x1b') != std::string::npos);
  r.collectives.front().complete = false;
  CHECK(summary(r, false).find("every contribution present") == std::string::npos);
}

}  // namespace
}  // namespace rdusim::report_test
