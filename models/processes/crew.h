// The processes of one run. On one computer: forked from the one that was started, which is number 0, watched by it, and
// none is left behind. Those that mpirun started (mpi_crew.h) are watched by mpirun.
//
//   life   a child dies with its parent (PR_SET_PDEATHSIG), and is killed and waited for when the parent's Crew goes
//   exits  with 0 once it has said all it has to say; anything else is a process that was lost
//   Ctrl-C reaches process 0 alone
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/processes/mail.h"

namespace rdusim {

class Crew {
 public:
  // Returns in every process, in each with another rank. Nothing where the system does not start them (none is left
  // then). Requires processes >= 2.
  static std::optional<Crew> start(std::uint32_t processes);
  // Those that `mail` joins.
  static Crew joined(std::unique_ptr<Mail> mail);
  Crew(Crew&&) = default;
  Crew& operator=(Crew&&) = delete;
  ~Crew();

  std::uint32_t rank() const { return mail_->rank(); }
  std::uint32_t size() const { return mail_->size(); }
  Mail& mail() { return *mail_; }

  // In process 0: how a process ended that should not have ended ("process 2 of 4 was killed by signal 9"); nothing
  // while all is well.
  std::optional<std::string> lost();
  // Of the children that live, for who wants to know what they hold.
  std::vector<pid_t> children() const;

 private:
  struct Child {
    pid_t pid = -1;
    bool gone = false;
  };
  Crew() = default;

  std::unique_ptr<Mail> mail_;
  std::vector<Child> children_;  // of ranks 1, 2, ...
};

}  // namespace rdusim
