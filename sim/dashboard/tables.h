// Tables that a dashboard shows beside its history: sweeps, and how near the models come to what others measured.
//
// Both readers: errors RDU8055 where it is no such table, RDU1001, RDU1024.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/support/json.h"

namespace rdusim {

// A sweep's table.jsonl.
struct SweepFile {
  std::string name;
  std::vector<std::string> columns;
  std::vector<JsonArray> rows;  // a value a column
};

// A row of what scripts/accuracy --json writes.
struct AccuracyRow {
  std::string what;
  double reference = 0;
  std::optional<double> value;  // absent: rdusim gave none
  double bound = 0;             // that the relative error is held to
};

struct DashboardTables {
  std::vector<SweepFile> sweeps;
  std::vector<AccuracyRow> accuracy;
};

// `path`: the folder of a sweep, or its table.jsonl.
Result<SweepFile> read_sweep(const std::string& path);

Result<std::vector<AccuracyRow>> read_accuracy(const std::string& path);

}  // namespace rdusim
