// A process that stands by before a run begins, and can run the same program again, changed: once a process has
// simulated, neither it nor its children can do so again.
#pragma once

#include <sys/types.h>

#include <vector>

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
  // Nothing where the runs could not be made. Once.
  std::optional<Confirmed> confirm(const Cure& cure);

 private:
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

}  // namespace rdusim
