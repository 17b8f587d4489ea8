// Everyone who listens to a run: checkers, statistics, the flight recorder. A run and a replay have the same.
//
// An event goes to those who look at its kind, known at compile time, and then to the traces: there are a dozen events a
// page and a dozen listeners, most of which have no use for it.
#pragma once

#include <vector>

#include "sim/barrier_checker.h"
#include "sim/collective_checker.h"
#include "sim/coverage_checker.h"
#include "sim/flight_recorder.h"
#include "sim/handshake_checker.h"
#include "sim/link_checker.h"
#include "sim/load.h"
#include "sim/page_checker.h"
#include "sim/provenance_checker.h"
#include "sim/run.h"
#include "sim/semaphore_checker.h"
#include "sim/statistics.h"
#include "sim/token_checker.h"
#include "sim/value_checker.h"

namespace rdusim {

// A listener that has no word for an event hides that of EventSink, which does nothing.
template <class Listener, class Event>
void tell(Listener& listener, const Event& e) {
  if constexpr (requires { listener.on(e); }) listener.on(e);
}

struct Listeners final : EventSink {
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
        links(loaded.target, violations),
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
  LinkChecker links;
  Statistics statistics;
  FlightRecorder flight;

  EventSink* traces = nullptr;  // hears every event after them

#define RDU_DECLARE(Event) void on(const Event&) override;
  RDU_EVENTS(RDU_DECLARE)
#undef RDU_DECLARE

  // Of those who count over a whole run, or keep something of every tensor. The others hold what is under way, and nothing is.
  void repeated(const Repetition& r) override {
    handshakes.repeated(r);
    coverage.repeated(r);
    collectives.repeated(r);
    statistics.repeated(r);
  }

  // After the last event of a run that finished.
  void finish(Cycle at) {
    handshakes.finish(at);
    tokens.finish(at);
    semaphores.finish(at);
    barriers.finish(at);
    coverage.finish(at);
    collectives.finish(at);
    links.finish(at);
  }
};

}  // namespace rdusim
