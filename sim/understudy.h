// A process that stands by before a run begins, and can run the same program again, changed: once a process has
// simulated, neither it nor its children can do so again.
#pragma once

#include <sys/types.h>

#include <optional>
#include <utility>

#include "compiler/ir/phase_order.h"
#include "sim/cure.h"
#include "sim/isolated_run.h"

namespace rdusim {

class Understudy {
 public:
  // Requires that this process has one thread and has not simulated.
  Understudy(const LoadedProgram& loaded, const RunOptions& options);
  ~Understudy();
  Understudy(const Understudy&) = delete;
  Understudy& operator=(const Understudy&) = delete;

  struct Confirmed {
    IsolatedRun with, one_less;  // runs with the depth of the cure, and with one page less
  };
  struct ConfirmedOrder {
    IsolatedRun with, without;  // runs with the exchange, and of the program as it is
  };
  // Nothing where the runs could not be made.
  std::optional<Confirmed> confirm(const Cure& cure);
  std::optional<ConfirmedOrder> confirm(const PhaseExchange& exchange);

 private:
  struct Line;
  std::optional<std::pair<IsolatedRun, IsolatedRun>> ask(const Line& line);

  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

}  // namespace rdusim
