// The verifier's rules, in the order in which verify() applies them, and what they share. Only verify*.cpp include
// this.
//
// A rule is one function, named after what it checks; the comment above its definition has its code and its sentence.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/program.h"
#include "compiler/support/result.h"

namespace rdusim {

// Who uses a buffer: worked out from the stages' ports and the edges.
struct BufferUses {
  struct End {
    StageId stage;
    std::uint32_t port = 0;
  };
  std::vector<End> producers;
  std::vector<End> consumers;
  std::vector<EdgeId> local;
  std::vector<EdgeId> crossing;
};

// Stages, buffers and semaphores that sites hold in common: all sites that lie in the same groups.
struct SiteClass {
  Site example;  // the first of its sites
  std::uint64_t sites = 0;
  std::vector<GroupId> groups;
};

// A program under verification. `uses` and `classes` are there once references have been found to resolve.
struct Subject {
  const SpatialProgram& p;
  const Target& target;
  bool complete = false;         // the schedule is there: nothing may be left abstract
  std::string where;             // of every diagnostic: the program's name
  std::vector<BufferUses> uses;  // by buffer
  std::vector<SiteClass> classes;
  std::vector<std::vector<StageId>> stages_of_group;
  std::vector<std::vector<BufferId>> buffers_of_group;

  const BufferUses& uses_of(BufferId b) const { return uses[b.value]; }
  std::uint32_t chips() const { return p.header.plan.chips; }
  // Section of the stages that use a buffer; nothing where none does.
  std::optional<SectionId> section_of(BufferId b) const {
    const BufferUses& u = uses[b.value];
    if (!u.producers.empty()) return p.stage(u.producers.front().stage).section;
    if (!u.consumers.empty()) return p.stage(u.consumers.front().stage).section;
    return std::nullopt;
  }
};

// "stage 'down.matmul'", "buffer 'down.b'", "edge 12": the place of a note.
std::string place_of(const Stage& s);
std::string place_of(const Buffer& b);
std::string place_of(const Tensor& t);
std::string place_of(const Edge& e);

// "chip 3, 128 sites from (4,7)"
std::string sites_text(const SpatialProgram& p, GroupId group);

// Ids, references, places: what every later rule reads by. verify_structure.cpp
void check_chips(const Subject&, Diagnostics&);       // RDU2009
void check_ids(const Subject&, Diagnostics&);         // RDU3001
void check_references(const Subject&, Diagnostics&);  // RDU3002
void check_sites(const Subject&, Diagnostics&);       // RDU3026

// Shapes of what is there. verify_structure.cpp
void check_sizes(const Subject&, Diagnostics&);   // RDU3003
void check_cycles(const Subject&, Diagnostics&);  // RDU3030
void check_names(const Subject&, Diagnostics&);   // RDU3035

// What is wrong with the bodies and maps of a Generic of `inputs` input ports, in words; empty: they fit, and are of a
// form that the machine takes. verify_bodies.cpp
std::vector<std::string> body_faults(const Generic& g, std::size_t inputs);

// Ports, maps, ends. verify_handoffs.cpp
void check_ports(const Subject&, Diagnostics&);           // RDU3027
void check_rates(const Subject&, Diagnostics&);           // RDU3030
void check_page_maps(const Subject&, Diagnostics&);       // RDU3028
void check_buffer_ends(const Subject&, Diagnostics&);     // RDU3004
void check_landings(const Subject&, Diagnostics&);        // RDU3005
void check_edge_ends(const Subject&, Diagnostics&);       // RDU3031
void check_local_edges(const Subject&, Diagnostics&);     // RDU3006
void check_crossing_edges(const Subject&, Diagnostics&);  // RDU3007
void check_handshakes(const Subject&, Diagnostics&);      // RDU3009
void check_semaphores(const Subject&, Diagnostics&);      // RDU3023
void check_counters(const Subject&, Diagnostics&);        // RDU3021
void check_routes(const Subject&, Diagnostics&);          // RDU3034
void check_dtypes(const Subject&, Diagnostics&);          // RDU3036

// Tensors and sections. verify_sections.cpp, verify_tensors.cpp
void check_sections(const Subject&, Diagnostics&);     // RDU3037
void check_trips(const Subject&, Diagnostics&);        // RDU3070
void check_operands(const Subject&, Diagnostics&);     // RDU3040
void check_slices(const Subject&, Diagnostics&);       // RDU3012, RDU3013
void check_outputs(const Subject&, Diagnostics&);      // RDU3014, RDU3015
void check_chip_memory(const Subject&, Diagnostics&);  // RDU3017, RDU3041, RDU3042

// What a site and a target give. verify_resources.cpp
void check_engine_kinds(const Subject&, Diagnostics&);       // RDU3011
void check_engine_sharing(const Subject&, Diagnostics&);     // RDU3010
void check_site_memory(const Subject&, Diagnostics&);        // RDU3016
void check_memory_units(const Subject&, Diagnostics&);       // RDU3049
void check_site_resources(const Subject&, Diagnostics&);     // RDU3022
void check_addresses(const Subject&, Diagnostics&);          // RDU3038
void check_requirements(const Subject&, Diagnostics&);       // RDU3033
void check_nothing_is_unsaid(const Subject&, Diagnostics&);  // RDU3033, of a complete program

// What was assigned and scheduled. verify_work.cpp
void check_work(const Subject&, Diagnostics&);      // RDU3047
void check_schedule(const Subject&, Diagnostics&);  // RDU3048

// Collectives and the order of sums. verify_collectives.cpp
void check_membership(const Subject&, Diagnostics&);        // RDU3018
void check_collective_order(const Subject&, Diagnostics&);  // RDU3019
void check_collective_bytes(const Subject&, Diagnostics&);  // RDU3020
void check_trees(const Subject&, Diagnostics&);             // RDU3032, of the trees alone

// What follows from running it. verify_flow.cpp
void check_balance(const Subject&, Diagnostics&);  // RDU3008, RDU3043
void check_depths(const Subject&, Diagnostics&);   // RDU3029
void check_flow(const Subject&,
                Diagnostics&);  // RDU3039, and where it runs to its end RDU3024, RDU3025, RDU3032, RDU3046

}  // namespace rdusim
