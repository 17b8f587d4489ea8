// Links that break some of what they carry: what came broken is what the link carries next, again and again until it has
// come, and never more often than the target allows. RDU7065 link-given-up.
//
// That it then came once is the other checkers' to say: a page that lands twice or never is one to them like any other.
#pragma once

#include <vector>

#include "compiler/target/target.h"
#include "models/events/events.h"
#include "sim/violations.h"

namespace rdusim {

class LinkChecker final : public EventSink {
 public:
  LinkChecker(const Target& target, Violations& violations);

  // Whether any link breaks anything.
  bool watches() const { return !links_.empty(); }
  void on(const LinkUsed& e) override;
  void finish(Cycle at);

 private:
  // What a link has to carry again.
  struct Owed {
    std::uint32_t times = 0;  // that it came broken; 0: nothing is owed
    Bytes bytes = 0;
    bool signal = false;
  };
  std::string name(std::size_t link) const;

  const Target& target_;
  Violations& violations_;
  std::vector<Owed> links_;
};

}  // namespace rdusim
