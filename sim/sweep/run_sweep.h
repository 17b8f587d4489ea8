// Runs the points of a plan, each as processes of rdusim itself, several at a time, and keeps what became of them in a
// folder, so that a sweep that was killed goes on where it was.
//
// The folder: `sweep.json` says of which plan it is; `rows/N.json` is the outcome of point N, written beside and
// renamed, so that it is there whole or not at all; `work/N/` is where point N runs, and is gone when it has;
// `table.csv` and `table.jsonl` are written at the end. Children end when their sweep does, however it ends.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/table.h"

namespace rdusim {

struct SweepOptions {
  std::string folder;
  std::string rdusim;      // the program that runs a point
  std::uint32_t jobs = 1;  // points at a time; at least 1
  // Task t of n of a job array: points t, t + n, t + 2 n, ... and no table.
  std::optional<std::pair<std::size_t, std::size_t>> task;
  std::vector<std::string> words;     // what a task of a job array is told besides the plan
  std::atomic<bool>* stop = nullptr;  // raised from outside (Ctrl-C); may be null
  std::function<void(std::size_t done, std::size_t of)> progress;  // after each point, from any thread, one at a time
};

struct SweepResult {
  std::vector<PointOutcome> outcomes;  // of the points that were run, now or before; rising
  bool stopped = false;
};

// The machine of a point: its base, with what the point sets of it. Errors: RDU8063, those of the target.
struct PointTarget {
  std::string name, text;
};
Result<PointTarget> target_of(const SweepPlan& plan, std::size_t point);

// Errors: RDU8067 the folder is of another plan, RDU8068 another sweep works in it, RDU8063 the first point sets what
// its target or workload lacks, those of its target and workload, RDU5008 and RDU1001 of the folder.
Result<SweepResult> run_sweep(const SweepPlan& plan, const SweepOptions& options);

// What is there, without running anything. Errors: those above; RDU8069 where points are missing.
Result<std::vector<PointOutcome>> collect(const SweepPlan& plan, const SweepOptions& options);

// A job-array script for Slurm that runs every point of the plan, at most 1,000 tasks (Slurm's default MaxArraySize is
// 1,001).
std::string slurm_script(const SweepPlan& plan, const SweepOptions& options, const std::string& plan_path);

}  // namespace rdusim
