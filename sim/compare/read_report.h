// A report as it is read again: who ran what, the verdict, every figure as a metric, every decision as a line.
//
// The one reader of what sim/report.h writes (the page sim/report.md says what each key means). It keeps to what
// compare, history and dashboard ask for, so that a report of an older or newer rdusim with keys less or more still
// reads; what is there is checked: a key of the wrong type, a number that is none, a name that would move a cursor are
// refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/support/json.h"

namespace rdusim {

inline constexpr std::uint64_t report_bytes_limit = std::uint64_t{1} << 30;

// Exact: cycles, bytes, counts, which are the same for the same program on every computer. Timed: what the host's clock
// and memory say.
enum class Exactness : std::uint8_t { exact, timed };
// Which way is good.
enum class Better : std::uint8_t { lower, higher, neither };

// A whole number as it is, so that an exact metric stays exact; anything else as a double, which is finite.
using Quantity = std::variant<std::int64_t, double>;
double to_double(const Quantity& q);
std::string to_string(const Quantity& q);  // "32171", "0.25"; shortest

struct Metric {
  std::string name;  // "cycles.simulated", "stages.down.matmul_c3.stall.link"
  std::string unit;  // "cycles", "bytes", "pages", "s", "1/s", ""
  Exactness exactness = Exactness::exact;
  Better better = Better::lower;
  Quantity value;
  friend bool operator==(const Metric&, const Metric&) = default;
};

struct ReportFile {
  std::string path;  // where it was read from
  std::string version;
  std::string program, program_sha256, target, target_sha256;  // the last is empty in reports that lack it
  std::uint32_t chips = 0;
  std::string options;                                         // as one line of JSON
  std::string verdict;                                         // one of those that report.h names
  std::vector<Metric> metrics;                                 // in the order of the report; names are unique
  std::vector<std::pair<std::string, std::string>> decisions;  // "collectives.down.all_reduce.algorithm" to "direct"
  std::string sha256;                                          // of the file's bytes
};

// Errors: RDU8001 where the text is no report; RDU1001, RDU1024 where the file cannot be read.
Result<ReportFile> read_report(const std::string& path);
Result<ReportFile> parse_report(std::string_view text, const std::string& path);

// The .json files below a folder, by their path in it, rising. Errors: RDU1001.
Result<std::vector<std::string>> report_names(const std::string& folder);

// Metrics with the chips folded: of "stages.down.matmul_c0.cycles", "..._c1.cycles", ... one
// "stages.down.matmul.cycles", the greatest where it is a time to an end or a peak, else the sum; links and memories
// likewise, as "links.bytes", "memories.hbm.read_bytes". What has no chip in its name stays. Rising by name.
std::vector<Metric> fold_chips(const std::vector<Metric>& metrics);

// "stages.down.matmul.cycles" of "stages.down.matmul_c3.cycles": the name that fold_chips gives.
std::string folded_name(std::string_view metric);

}  // namespace rdusim
