// What hangs on what is assumed: each assumed number of a machine at both ends of its range, one at a time, all else as
// it is, and how far a metric moves. Sorted by effect this is the tornado table.
//
// A number whose end the machine, the compiler or the program does not bear (a mesh that is too narrow for a placement)
// stays in the table, with what became of it there.
#pragma once

#include <string>
#include <vector>

#include "sim/sweep/table.h"

namespace rdusim {

// One end of a number's range.
struct RangeEnd {
  Cell value;             // whole where it can be
  std::size_t point = 0;  // of the plan; the base's own where the number stands at this end already
};

// A number that the target assumes, with a range.
struct MovedNumber {
  std::string key;     // "hbm.latency_ns"
  std::string value;   // as the target has it
  std::string source;  // why it is assumed so
  RangeEnd least, most;
};

// A point of the plan that was asked about, and what is moved of it.
struct SensitivityBase {
  std::size_t point = 0;
  double clock_ghz = 1;
  std::vector<MovedNumber> numbers;  // in the order of its target
};

struct SensitivityPlan {
  SweepPlan plan;  // each point of the one that was given, and after it those that move a number of it
  std::vector<SensitivityBase> bases;
};

// The time that a run takes: its cycles over the clock, which is one of the numbers that may be moved.
inline constexpr const char* simulated_time = "time.simulated_us";

// Adds `metric`, or what it is made of, to the plan's metrics where it is not among them. `only`: numbers whose keys begin
// with one of these; empty: all. Errors: those of the points' targets; RDU8063 where one of `only` begins none; RDU8064
// where the points become too many.
Result<SensitivityPlan> sensitivity_plan(const SweepPlan& plan, const std::string& metric,
                                         const std::vector<std::string>& only = {});

// What the metric was at an end, or why it has none.
struct EndOutcome {
  Cell value;
  std::string verdict, error;    // of the run; "pass" and "" where the metric counts
  std::optional<double> metric;  // of a run that passed
  std::optional<double> change;  // of the base's, as a share of it
};

struct SensitivityRow {
  std::string key, value, source;
  EndOutcome least, most;
  // The greatest less the least of what the metric is at the base and at the ends that have one; absent where no end has.
  std::optional<double> effect;
};

struct Sensitivity {
  std::string name;    // of the point: "chips = 4, collective = ring"; "" where the plan has no axes
  std::string metric;  // "cycles.simulated"
  EndOutcome base;
  std::vector<SensitivityRow> rows;  // by falling effect, equal ones in the order of the target; then those without
};

// One table a base. Errors: RDU8066 where a run passed and its report lacks the metric.
Result<std::vector<Sensitivity>> sensitivities(const SensitivityPlan& plan, const std::vector<PointOutcome>& outcomes,
                                               const std::string& metric);

// For reading, and for machines (schema "rdusim.sensitivity/1").
std::string to_text(const std::vector<Sensitivity>& tables, const std::string& plan);
Json to_json(const std::vector<Sensitivity>& tables, const std::string& plan);

}  // namespace rdusim
