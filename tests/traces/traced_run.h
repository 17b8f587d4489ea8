// A whole run in this process (SystemC allows one), with what a listener heard of it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/events/provenance.h"
#include "sim/load.h"
#include "sim/run.h"
#include "traces/event_kinds.h"
#include "traces/roster.h"

namespace rdusim::test {

// Every event as numbers: kind, time, subject, fields; a multiset of contributions as its elements.
class Recorder final : public EventSink {
 public:
  using Record = std::vector<std::uint64_t>;

  Recorder(const Roster& roster, const ProvenanceTable* table) : roster_(roster), table_(table) {}
#define RDU_RECORD(Event)            \
  void on(const Event& e) override { \
    add(e);                          \
  }
  RDU_EVENTS(RDU_RECORD)
#undef RDU_RECORD

  std::vector<Record> events;

 private:
  template <class E>
  void add(E e) {
    Record r = {static_cast<std::uint64_t>(kind_of_event<E>), e.at, subject(e, roster_)};
    // Contributions by what they are, not by number.
    const auto spell = [&](PageTag& t) {
      const ProvenanceId id = std::exchange(t.provenance, 0);
      if (table_ == nullptr || id == 0) return;
      for (const Contribution& c : table_->contributions(id)) {
        r.push_back(c.chip.value);
        r.push_back(c.k_begin);
        r.push_back(c.k_end);
      }
    };
    if constexpr (requires { e.tag; }) spell(e.tag);
    if constexpr (requires { e.held; }) spell(e.held), spell(e.added), spell(e.sum);
    each_field(e, [&](const auto& value) { r.push_back(static_cast<std::uint64_t>(value)); });
    events.push_back(std::move(r));
  }

  const Roster& roster_;
  const ProvenanceTable* table_;
};

// A temporary folder, removed with all that is in it.
struct Scratch {
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return path + "/" + name; }
  std::string path;
};

std::string file_bytes(const std::string& path);
void put_file(const std::string& path, std::string_view bytes);

// The workload (TOML, or a file of examples/) compiled in this process.
LoadedProgram compiled(const std::string& workload, std::uint32_t chips, const std::string& target = "sn40l",
                       CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic);
// A matmul of 32 x 512 x 64 in int8: small, and with partial sums to reduce over four chips.
LoadedProgram small_matmul(std::uint32_t chips = 4, const std::string& target = "sn40l");

// Runs it with the traces; fails the test where it does not run.
RunResult traced(const LoadedProgram& loaded, std::vector<std::string> files, RunOptions options = {});

// Without `host`; as text.
std::string without_host(const Report& report);

}  // namespace rdusim::test
