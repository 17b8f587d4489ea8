#include "sim/token_checker.h"

#include <algorithm>

namespace rdusim {

TokenChecker::TokenChecker(const Instances& instances, Violations& violations)
    : instances_(instances),
      violations_(violations),
      counts_(instances.channels()),
      out_(instances.receivers().size()) {
  const SpatialProgram& p = instances.program();
  greatest_.resize(p.edges.size());
  for (const Edge& e : p.edges) token_.push_back(e.handshake == Handshake::token);
  for (const Receiver& r : instances.receivers()) {
    const std::uint64_t depth = p.buffer(instances.buffer_at(r.buffer).buffer).depth_pages;
    depth_.push_back(depth);
    greatest_[r.edge.value] = std::max(greatest_[r.edge.value], depth);
  }
}

void TokenChecker::on(const CreditTaken& e) {
  if (!is_token(e.channel.edge)) return;
  const std::uint32_t n = instances_.of(e.channel);
  Counts& c = counts_[n];
  if (e.page != c.taken) {
    violations_.found(Code::RDU7025, e.at, instances_.describe(e.channel), "page {} is sent where page {} is next",
                      e.page, c.taken);
  }
  ++c.taken;
  const std::uint32_t r = instances_.receiver_of(n);
  if (++out_[r] > depth_[r]) violated(Code::RDU7004, e.at, e.channel, "a page is sent for which no credit was held");
}

void TokenChecker::on(const PageLanded& e) {
  if (!is_token(e.channel.edge)) return;
  Counts& c = counts_[instances_.of(e.channel)];
  if (e.page != c.landed) {
    violations_.found(Code::RDU7025, e.at, instances_.describe(e.channel), "page {} lands where page {} is next",
                      e.page, c.landed);
  }
  ++c.landed;
  if (c.landed > c.taken) violated(Code::RDU7004, e.at, e.channel, "a page lands that was not sent");
}

void TokenChecker::on(const CreditReturned& e) {
  if (!is_token(e.channel.edge)) return;
  Counts& c = counts_[instances_.of(e.channel)];
  ++c.returned;
  if (c.returned > c.landed)
    violated(Code::RDU7004, e.at, e.channel, "a credit is returned for a page that did not land");
}

void TokenChecker::on(const CreditArrived& e) {
  if (!is_token(e.channel.edge)) return;
  const std::uint32_t n = instances_.of(e.channel);
  Counts& c = counts_[n];
  ++c.arrived;
  std::uint64_t& out = out_[instances_.receiver_of(n)];
  if (out > 0) --out;
  if (c.arrived > c.returned) violated(Code::RDU7004, e.at, e.channel, "a credit arrives that was not returned");
}

void TokenChecker::violated(Code code, Cycle at, const ChannelAt& channel, const char* what) {
  const std::uint32_t n = instances_.of(channel);
  const Counts& c = counts_[n];
  const std::uint32_t r = instances_.receiver_of(n);
  const SpatialProgram& p = instances_.program();
  const auto difference = [](std::uint64_t a, std::uint64_t b) {
    return static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b);
  };
  Diagnostic& d = violations_.found(code, at, instances_.describe(channel),
                                    "{}: credits held {} + pages in flight {} + pages held {} + credits returning {}, "
                                    "and the landing buffer has depth {}",
                                    what, difference(depth_[r], out_[r]), difference(c.taken, c.landed),
                                    difference(c.landed, c.returned), difference(c.returned, c.arrived), depth_[r]);
  const StageAt from{p.edge(channel.edge).from, channel.from};
  const StageAt to{p.edge(channel.edge).to[channel.to], channel.receiver};
  d.note(instances_.place(from), "sender '{}': {} pages sent, {} credits back", p.stage(from.stage).name, c.taken,
         c.arrived);
  d.note(instances_.place(to), "receiver '{}': {} pages landed, {} credits returned", p.stage(to.stage).name, c.landed,
         c.returned);
}

void TokenChecker::finish(Cycle at) {
  for (std::uint32_t n = 0; n < counts_.size(); ++n) {
    const Counts& c = counts_[n];
    if (c.taken == c.landed && c.landed == c.returned && c.returned == c.arrived) continue;
    violated(Code::RDU7008, at, instances_.channel_at(n), "not all credits are back at the end");
  }
}

}  // namespace rdusim
