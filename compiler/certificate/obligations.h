// The obligations, one function each: worked out from the subject alone, whatever the program's own certificate says.
#pragma once

#include <map>
#include <vector>

#include "compiler/certificate/finding.h"
#include "compiler/certificate/subject.h"

namespace rdusim::certificate {

// Pages reserved = pushed, and = popped by every consumer, for every instance of every buffer, over all trips. Fills in
// the counts of one instance (of the first that differs, if one does).
Finding counting_balance(const Subject& s, std::vector<BufferClaim>& claims);

// Every section runs to its end with the depths given, whatever the order of firings: rates are static and every buffer
// has one producer, so that all orders give the same streams of pages, and one untimed execution stands for all.
Finding deadlock_freedom(const Subject& s, const Finding& balance);

// Fills in depth and least depth. Refuted where a buffer is shallower than its least depth.
Finding buffer_depth(const Subject& s, const Finding& balance, std::vector<BufferClaim>& claims);

// Local hand-offs within a site, crossing ones between sites, each of a kind that the target provides, chip crossings
// over a route that leads there.
Finding handshake_locality(const Subject& s, std::uint64_t& local_edges, std::uint64_t& crossing_edges);

// No credit count, semaphore or barrier can leave its width.
Finding counter_range(const Subject& s, std::vector<CounterClaim>& claims);

// Every contribution to every output exactly once, by a symbolic execution that carries with every page which products
// it sums.
struct Provenance {
  Finding finding;
  bool complete = false;                            // all was executed; else what follows is not to be relied on
  std::map<TensorId, std::uint64_t> contributions;  // of stored tensors: most partial sums that a page adds up
  std::vector<std::vector<Bytes>> sent;             // [collective][chip]: what each chip hands to it, one trip
  std::vector<std::uint64_t> first_instance_macs;   // [stage]: multiply-accumulates of a matmul's instance 0, one trip
  std::vector<std::vector<Bytes>> edge_bytes;       // [edge][to]: crossing data of all pairs, all trips
};
Provenance reduction_completeness(const Subject& s);

// Every element of every stored output written once in every replica.
// Fills in the outputs; their contributions are the provenance's.
Finding write_coverage(const Subject& s, const Provenance& provenance, std::vector<OutputClaim>& outputs);

// Members, order and byte vectors of the collectives.
Finding collective_agreement(const Subject& s, const Provenance& provenance);

// Buffers and accumulators of a site, tensors of a chip, without overlap and within the capacity.
Finding memory_fit(const Subject& s, MemoryClaim& claim);

// Pages enter the network only where room to land is reserved, and no channels wait for each other in a cycle.
Finding network_progress(const Subject& s);

// Of each circle that the program's certificate claims, the claim, where a run than which none is faster takes as long
// and goes round as it says; else how long that run takes, without a circle (pace.cpp). Nothing where the flow of pages
// cannot be read.
std::vector<CircleClaim> circles(const Subject& s, const std::vector<CircleClaim>& claimed);

// A bound that no run can beat: see bounds.cpp. `circles`: what circles() found.
Cycles lower_bound(const Subject& s, const Provenance& provenance, const std::vector<CircleClaim>& circles);

}  // namespace rdusim::certificate
