// Why a run that makes no more progress does not finish: who waits for whom, and which fault it is.
//
// A node is a stage instance or a channel; it waits for the nodes that could give it what it lacks. In order of
// precedence:
//
//   lost-token           RDU7020  something under way never arrives: a page sent and not landed, a credit returned and
//   not
//                                 arrived, a semaphore signal raised and not seen
//   missing-participant  RDU7021  the wait ends at a member of a collective (or barrier) that finished without its part
//   starvation           RDU7019  the wait ends at a producer that finished: item 11 of 10
//   circular-wait        RDU7018  the nodes wait for each other in a cycle
//
// A loss comes first because behind one, everything else may wait in cycles.
#pragma once

#include <string>
#include <vector>

#include "models/systemc/machine.h"
#include "sim/barrier_checker.h"
#include "sim/collective_checker.h"
#include "sim/flight_recorder.h"
#include "sim/handshake_checker.h"
#include "sim/semaphore_checker.h"
#include "sim/statistics.h"
#include "sim/token_checker.h"

namespace rdusim {

enum class StuckKind : std::uint8_t { circular_wait, starvation, lost_token, missing_participant };

struct Diagnosis {
  StuckKind kind{};
  Diagnostic diagnostic;           // the notes are the wait chain in order, identical sites folded into ranges
  std::vector<std::size_t> chain;  // into MachineOutcome::waiting; for a circular wait it closes
  std::vector<BufferId> shallow;   // of a circular wait: buffers in which its members lack room or credits, rising
  std::string dot;                 // Graphviz: who waits for whom, the chain in red
};

struct Observed {
  const Instances& instances;
  const HandshakeChecker& handshakes;
  const TokenChecker& tokens;
  const SemaphoreChecker& semaphores;
  const BarrierChecker& barriers;
  const CollectiveChecker& collectives;
  const Statistics& statistics;
  const FlightRecorder& flight;
};

// Requires an outcome that ended quiescent.
Diagnosis diagnose(const MachineOutcome& outcome, const Observed& observed);

// "chip0.site(0..3,2)" for sites that differ along one axis, else a list of at most `most` and a count.
std::string fold_sites(std::vector<Site> sites, std::size_t most = 8);

}  // namespace rdusim
