#include "sim/link_checker.h"

#include <algorithm>

namespace rdusim {

LinkChecker::LinkChecker(const Target& target, Violations& violations) : target_(target), violations_(violations) {
  if (std::any_of(target.links.begin(), target.links.end(), [](const auto& l) { return l.error_rate.num != 0; }))
    links_.resize(target.links.size());
}

std::string LinkChecker::name(std::size_t link) const {
  const ChipLinkParameters& l = target_.links[link];
  return fmt::format("link{} {}->{}", link, link_end(target_, l.from), link_end(target_, l.to));
}

void LinkChecker::on(const LinkUsed& e) {
  if (e.link.value >= links_.size()) return;
  Owed& owed = links_[e.link.value];
  if (owed.times != 0 && (owed.bytes != e.bytes || owed.signal != e.signal))
    violations_.found(Code::RDU7065, e.at, name(e.link.value),
                      "it carries {} bytes, before it has carried again the {} bytes that came broken", e.bytes,
                      owed.bytes);
  if (!e.broken) {
    owed.times = 0;
    return;
  }
  owed = {owed.times + 1, e.bytes, e.signal};
  const std::uint32_t most = target_.links[e.link.value].most_retries;
  if (owed.times != most + 1) return;
  violations_
      .found(Code::RDU7065, e.at, name(e.link.value), "{} of {} bytes came broken {} times, and the link is given up",
             e.signal ? "a signal" : "a page", e.bytes, owed.times)
      .suggest("it breaks {:.3g} of what it carries, and most_retries of '{}' is {}",
               to_double(target_.links[e.link.value].error_rate), target_.name, most);
}

void LinkChecker::finish(Cycle at) {
  for (std::size_t l = 0; l < links_.size(); ++l) {
    const Owed& owed = links_[l];
    if (owed.times != 0 && owed.times <= target_.links[l].most_retries)
      violations_.found(Code::RDU7065, at, name(l), "{} bytes came broken, and were not sent again", owed.bytes);
  }
}

}  // namespace rdusim
