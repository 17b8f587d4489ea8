// Two reports of one program, older and newer, set against each other: verdicts, every metric that moved, every
// decision that the compiler took otherwise, and what of it goes beyond the thresholds.
//
// The law: a regression is a verdict that was "pass" and is no more, a metric or report that was there and is gone, or
// a change beyond a threshold. Without thresholds, `cycles>0%` stands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/compare/read_report.h"
#include "sim/compare/threshold.h"

namespace rdusim {

// A metric that differs; one of the two is absent where it appeared or vanished.
struct MetricChange {
  std::string name, unit;
  Exactness exactness = Exactness::exact;
  Better better = Better::lower;
  std::optional<Quantity> old, now;
  double difference() const;              // now - old; an absent one counts as 0
  std::optional<double> percent() const;  // of the old one, where it is there and not 0
};

struct DecisionChange {
  std::string name;
  std::optional<std::string> old, now;
};

// Why a pair counts as a regression, as a sentence: "cycles.simulated rose from 100 to 120 (cycles>0%)".
struct Regression {
  std::string metric;     // empty of a verdict
  std::string threshold;  // as it was written; empty of a verdict and of what vanished
  std::string text;
};

struct ReportComparison {
  std::string name;  // the program's; of files in folders, their name
  ReportFile old, now;
  std::vector<MetricChange> changes;  // in the order of the reports
  std::size_t same = 0;               // exact metrics that agree
  std::vector<DecisionChange> decisions;
  std::vector<Regression> regressions;
};

ReportComparison compare_reports(ReportFile old, ReportFile now, const std::vector<Threshold>& thresholds);

// Two folders' reports, or just two: pairs by name, and what is on one side only.
struct SetComparison {
  std::vector<ReportComparison> pairs;
  std::vector<std::string> vanished;  // a regression
  std::vector<std::string> appeared;
  bool regressed() const;
};

// `old` and `now`: two reports, or two folders of which every .json file is a report. Errors: RDU8033 a file and a
// folder, or folders without a common name; RDU8001 and those of files; RDU8031, RDU8032 a threshold that is of no
// metric.
Result<SetComparison> compare_paths(const std::string& old, const std::string& now,
                                    const std::vector<Threshold>& thresholds);

// What a person reads. `all`: every change of every chip; else chips folded and the largest of each list.
std::string comparison_text(const SetComparison& set, bool all, bool colour);
// For a pull request: GitHub's and GitLab's Markdown.
std::string comparison_markdown(const SetComparison& set);
Json comparison_json(const SetComparison& set);  // schema "rdusim.compare/1": compare.md

}  // namespace rdusim
