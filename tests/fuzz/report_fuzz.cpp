// Any bytes as a report: read or refused with its code, never a crash; what is read compares with itself as unchanged,
// folds and prints.
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/report_fuzz.cpp sim/compare/*.cpp
//     compiler/support/*.cpp -lfmt -lcrypto -o report_fuzz && ./report_fuzz CORPUS tests/errors/reports
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/compare/compare.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto report = rdusim::parse_report(text, "fuzz.json");
  if (!report.ok()) {
    if (!report.diagnostics().contains(rdusim::Code::RDU8001)) std::abort();
    return 0;
  }
  if (rdusim::fold_chips(report->metrics).size() > report->metrics.size()) std::abort();
  rdusim::SetComparison set;
  set.pairs.push_back(rdusim::compare_reports(*report, *report, {}));
  if (!set.pairs[0].changes.empty() || !set.pairs[0].decisions.empty() || set.regressed()) std::abort();
  rdusim::ReportFile none = *report;
  none.metrics.clear();
  none.decisions.clear();
  set.pairs.push_back(rdusim::compare_reports(std::move(none), *report, {}));
  if (rdusim::comparison_text(set, true, false).empty() || rdusim::comparison_markdown(set).empty()) std::abort();
  return 0;
}
