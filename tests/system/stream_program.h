// Programs put together stage by stage, as people do who bring their own: streams of pages that are loaded, copied,
// folded and stored, with hand-offs, depths and rates as a case asks for. They go through `rdusim assemble` as JSON;
// memory, schedule and certificate are left to it.
//
// Pages are one element each (a machine whose native tile is 1), of int32: page i of a tensor of n elements is element
// i.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/program.h"
#include "tests/system/command.h"

namespace rdusim::test {

// tests/support/barrier.toml, or the shipped machine of a name, with tiles of one element.
std::string single_element_target(const std::string& name = "barrier");

class StreamProgram {
 public:
  explicit StreamProgram(const std::string& name, const std::string& target_text = single_element_target());

  SpatialProgram p;

  // Sites from (0,0) on, row by row, of a chip's mesh; a group of its own.
  GroupId group(std::uint32_t sites = 1, std::uint32_t chip = 0, std::uint32_t first = 0);

  BufferId buffer(const std::string& name, GroupId group, std::uint64_t depth);
  // `elements` for each site of the group that loads or stores it; value(i) = i mod modulus.
  TensorId tensor(const std::string& name, TensorRole role, std::uint64_t elements, std::int64_t modulus = 1,
                  std::uint32_t chip = 0);

  // Pages `firings` an instance, instance i from element i * firings on; `broadcast`: all read the same pages, once.
  StageId load(const std::string& name, TensorId tensor, GroupId group, BufferId out, std::uint64_t firings,
               bool broadcast = false);
  StageId store(const std::string& name, TensorId tensor, GroupId group, BufferId in, std::uint64_t firings);
  // Hands every page of `in` to all of `out`.
  StageId copy(const std::string& name, GroupId group, BufferId in, std::vector<BufferId> out, std::uint64_t firings);
  // Folds `firings` pages of `items`, beside the one page of each of `constants`, with `op`, and pushes the result with
  // the last.
  StageId fold(const std::string& name, GroupId group, BufferId items, std::vector<BufferId> constants, BufferId out,
               std::uint64_t firings, ExprOp op = ExprOp::add);
  // Any kind, rates and bodies, on an engine of its own.
  StageId stage(const std::string& name, StageKind kind, GroupId group, std::vector<Port> ports, std::uint64_t firings);
  StageId generic(const std::string& name, GroupId group, std::vector<Port> ports, Generic body, std::uint64_t firings);
  static Port input(BufferId b, Cyclic<std::uint32_t> need, Cyclic<std::uint32_t> pop);
  static Port output(BufferId b, Cyclic<std::uint32_t> push);

  // One page a firing from the crossing edge that cross() makes end there.
  StageId receive(const std::string& name, GroupId group, BufferId landing, std::uint64_t firings);

  EdgeId join(StageId from, BufferId buffer, std::vector<StageId> to);  // a local hand-off
  EdgeId cross(StageId from, BufferId buffer, StageId receive, Handshake handshake);

  std::string json() const;

 private:
  StageId add(const std::string& name, StageKind kind, GroupId group, StageRole role, std::vector<Port> ports,
              std::uint64_t firings);
  std::vector<std::uint32_t> movements_, contexts_;  // by group: engines given out
};

// `rdusim assemble` of it to prog.bin in `folder`.
Outcome assemble(const Folder& folder, const StreamProgram& program, bool allow_refuted = false);

}  // namespace rdusim::test
