// A program as the checker looks at it: who fills and who empties each buffer, and how often each stage fires.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim::certificate {

// One that takes pages out of a buffer: a stage over a local edge, or a crossing edge that sends them.
struct Consumer {
  bool crossing = false;
  StageId stage;         // local
  std::size_t port = 0;  // local: index into its ports
  EdgeId edge;
};
struct Producer {
  StageId stage;
  std::size_t port = 0;
};

// What a Load or a Store reads or writes; no pattern: another stage.
struct Access {
  const AccessPattern* pattern = nullptr;
  const Tensor* tensor = nullptr;
  std::uint64_t firings_a_page = 1;
};
Access access_of(const SpatialProgram& program, const Stage& stage);

std::string to_string(const Site& site);  // "chip0.site(1,2)"

class Subject {
 public:
  Subject(const SpatialProgram& program, const Target& target);

  const SpatialProgram& p;
  const Target& t;

  // Why the flow of pages cannot be read at all (no placement, an empty rate, a collective not expanded yet); empty:
  // it can. What follows requires that it is empty.
  std::string unreadable;

  // By buffer id; consumers in the order of BufferClaim::popped.
  std::vector<std::vector<Producer>> producers;
  std::vector<std::vector<Consumer>> consumers;

  std::size_t instances(const Stage& s) const { return p.sites_of(s).sites.size(); }
  std::uint64_t trips(const Stage& s) const { return p.sections[s.section.value].trips; }

  // Firings of an instance in one trip that can take place: for a Load or Store, those whose pages can be moved.
  std::uint64_t firings(const Stage& s, std::size_t instance) const;
  // Whether all instances of all stages fire `Stage::firings` times, and all maps are one to one: then instance i meets
  // instances i only (or, at a multicast read, its likes), every instance does the same, and one stands for all.
  bool uniform = false;

 private:
  void read();
  void index();
  std::vector<std::vector<std::uint64_t>> short_firings_;  // by stage; empty: all fire Stage::firings times
};

// Sum of a rate over the first n firings; too_many on overflow. Requires a rate that is not empty.
std::uint64_t total(const Cyclic<std::uint32_t>& rate, std::uint64_t n);

// Receivers of a page of instance `sender`.
std::vector<std::uint32_t> targets_of(const Edge& edge, std::size_t sender);

}  // namespace rdusim::certificate
