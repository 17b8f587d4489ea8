// The table of a sweep: one row a point, in the order of the plan, whatever the order in which they were run.
#pragma once

#include <string>
#include <vector>

#include "sim/sweep/expression.h"
#include "sim/sweep/plan.h"

namespace rdusim {

// What became of one point. A point that was refused, or whose run failed, is a row like any other.
struct PointOutcome {
  std::size_t point = 0;
  std::string verdict;        // a report's; "refused" (nothing ran), "crashed" (a fault of rdusim itself)
  std::string error;          // the first code on standard error; "" where there is none
  std::vector<Cell> metrics;  // of SweepPlan::metrics; absent where the report has none
};

struct SweepTable {
  std::vector<std::string>
      columns;  // "point", the axes, "verdict", "error", the metrics ("cycles" for cycles.simulated)
  std::vector<std::vector<Cell>> rows;
};

SweepTable table_of(const SweepPlan& plan, const std::vector<PointOutcome>& outcomes);

// Keeps the rows of which the condition holds. Errors: RDU8065, RDU8066.
Result<SweepTable> where(SweepTable table, std::string_view condition);

// Keeps the rows that no other beats: that is no worse in every column and better in one. `columns`: "chips,cycles";
// less is better, or more of a column with '-' before it. Only rows whose verdict is "pass" and that have all the
// numbers count. Errors: RDU8066.
Result<SweepTable> pareto(SweepTable table, std::string_view columns);

std::string to_csv(const SweepTable& table);         // RFC 4180, a line of names first
std::string to_json_lines(const SweepTable& table);  // an object a row; what is absent is null

}  // namespace rdusim
