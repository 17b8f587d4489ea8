// The units of a trace that a name on the command line stands for.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "compiler/support/result.h"
#include "traces/event_kinds.h"

namespace rdusim {

// By EventSubject, by number: whether it is meant.
class NamedUnits {
 public:
  //   down, down#3                      a stage or buffer: all its instances, or one
  //   chip3.site(4,7)[.pcu]             the stages and buffers there
  //   edge7, edge7#2                    a crossing: what is told of its channels, from all sending instances or one
  //   link5, "link5 chip0->chip1"       a link
  //   chip3.hbm, "chip3.hbm channel 2"  a memory: all its channels, or one; sram, hbm, ddr
  //   down, section down                a section: its start and end
  //   chip3                             all of a chip, and the links that begin or end there
  //
  // Errors: RDU8017, with the name that is nearest.
  static Result<NamedUnits> find(const Roster& roster, const std::string& name);

  bool hold(EventSubject s, std::uint32_t n) const { return units_[static_cast<std::size_t>(s)][n]; }

 private:
  explicit NamedUnits(const Roster& roster);
  void add(EventSubject s, std::uint32_t n) { units_[static_cast<std::size_t>(s)][n] = any_ = true; }

  std::array<std::vector<bool>, 8> units_;
  bool any_ = false;
};

// "x" or "x#3" of a buffer. Errors: RDU8017.
Result<BufferAt> find_buffer(const Roster& roster, const std::string& name);

}  // namespace rdusim
