// Everyone who listens to a run: checkers, statistics, the flight recorder. A run and a replay have the same.
#pragma once

#include <vector>

#include "sim/barrier_checker.h"
#include "sim/collective_checker.h"
#include "sim/coverage_checker.h"
#include "sim/flight_recorder.h"
#include "sim/handshake_checker.h"
#include "sim/load.h"
#include "sim/page_checker.h"
#include "sim/provenance_checker.h"
#include "sim/run.h"
#include "sim/semaphore_checker.h"
#include "sim/statistics.h"
#include "sim/token_checker.h"
#include "sim/value_checker.h"

namespace rdusim {

struct Listeners {
  Listeners(const LoadedProgram& loaded, const RunOptions& options, std::atomic<bool>& stop)
      : instances(loaded.program),
        matmuls(loaded.program),
        violations(stop, options.collect_violations),
        handshakes(instances, violations),
        tokens(instances, violations),
        semaphores(instances, violations),
        barriers(instances, violations),
        pages(instances, matmuls, violations),
        provenance(instances, matmuls, violations),
        made(instances, violations),
        coverage(instances, violations),
        collectives(instances, violations),
        statistics(instances, loaded.target, options.reached),
        flight(instances) {}

  Instances instances;
  MatmulPlaces matmuls;
  Violations violations;
  HandshakeChecker handshakes;
  TokenChecker tokens;
  SemaphoreChecker semaphores;
  BarrierChecker barriers;
  PageChecker pages;
  ProvenanceChecker provenance;
  ValueChecker made;
  CoverageChecker coverage;
  CollectiveChecker collectives;
  Statistics statistics;
  FlightRecorder flight;

  std::vector<EventSink*> sinks() {
    std::vector<EventSink*> all = {&handshakes, &tokens,   &semaphores,  &barriers,   &pages, &provenance,
                                   &made,       &coverage, &collectives, &statistics, &flight};
    if (!made.watches()) std::erase(all, &made);
    return all;
  }
  // After the last event of a run that finished.
  void finish(Cycle at) {
    handshakes.finish(at);
    tokens.finish(at);
    semaphores.finish(at);
    barriers.finish(at);
    coverage.finish(at);
    collectives.finish(at);
  }
};

}  // namespace rdusim
