#include "sim/token_checker.h"

#include <algorithm>

namespace rdusim {

TokenChecker::TokenChecker(const Instances& instances, Violations& violations)
    : instances_(instances),
      violations_(violations),
      counts_(instances.channels()),
      share_(instances.channels()),
      landed_(instances.receivers().size()),
      returned_(instances.receivers().size()) {
  const SpatialProgram& p = instances.program();
  greatest_.resize(p.edges.size());
  for (const Edge& e : p.edges) token_.push_back(e.handshake == Handshake::token);
  for (const Receiver& r : instances.receivers()) {
    const Buffer& landing = p.buffer(instances.buffer_at(r.buffer).buffer);
    depth_.push_back(landing.depth_pages);
    initial_.push_back(landing.initial_pages);
    landed_[initial_.size() - 1] = landing.initial_pages;
    const std::uint64_t free = landing.depth_pages - std::min(landing.depth_pages, landing.initial_pages);
    const std::uint64_t senders = r.channels.size();
    for (std::uint64_t rank = 0; rank < senders; ++rank) {
      share_[r.channels[rank]] = free / senders + (rank < free % senders ? 1 : 0);
      greatest_[r.edge.value] = std::max(greatest_[r.edge.value], share_[r.channels[rank]]);
    }
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
  if (c.taken > share_[n] + c.arrived)
    violated(Code::RDU7004, e.at, e.channel, "a page is sent for which no credit was held");
}

void TokenChecker::on(const PageLanded& e) {
  if (!is_token(e.channel.edge)) return;
  const std::uint32_t n = instances_.of(e.channel);
  Counts& c = counts_[n];
  if (e.page != c.landed) {
    violations_.found(Code::RDU7025, e.at, instances_.describe(e.channel), "page {} lands where page {} is next",
                      e.page, c.landed);
  }
  ++c.landed;
  ++landed_[instances_.receiver_of(n)];
  if (c.landed > c.taken) violated(Code::RDU7004, e.at, e.channel, "a page lands that was not sent");
}

void TokenChecker::on(const CreditReturned& e) {
  if (!is_token(e.channel.edge)) return;
  const std::uint32_t n = instances_.of(e.channel);
  const std::uint32_t r = instances_.receiver_of(n);
  ++counts_[n].returned;
  ++returned_[r];
  if (returned_[r] > landed_[r])
    violated(Code::RDU7004, e.at, e.channel, "a credit is returned for a page that did not land");
}

void TokenChecker::on(const CreditArrived& e) {
  if (!is_token(e.channel.edge)) return;
  const std::uint32_t n = instances_.of(e.channel);
  Counts& c = counts_[n];
  ++c.arrived;
  greatest_[e.channel.edge.value] =
      std::max(greatest_[e.channel.edge.value], share_[n] + c.arrived - std::min(share_[n] + c.arrived, c.taken));
  if (c.arrived > c.returned) violated(Code::RDU7004, e.at, e.channel, "a credit arrives that was not returned");
}

void TokenChecker::violated(Code code, Cycle at, const ChannelAt& channel, const char* what) {
  const std::uint32_t n = instances_.of(channel);
  const Counts& c = counts_[n];
  const std::uint32_t r = instances_.receiver_of(n);
  const SpatialProgram& p = instances_.program();
  // Over all channels of the receiver.
  std::int64_t held = 0;
  std::int64_t in_flight = 0;
  std::int64_t returning = 0;
  for (std::uint32_t other : instances_.receivers()[r].channels) {
    const Counts& o = counts_[other];
    held += static_cast<std::int64_t>(share_[other] + o.arrived) - static_cast<std::int64_t>(o.taken);
    in_flight += static_cast<std::int64_t>(o.taken) - static_cast<std::int64_t>(o.landed);
    returning += static_cast<std::int64_t>(o.returned) - static_cast<std::int64_t>(o.arrived);
  }
  Diagnostic& d = violations_.found(code, at, instances_.describe(channel),
                                    "{}: credits held {} + pages in flight {} + pages held {} + credits returning {}, "
                                    "and the landing buffer has depth {}",
                                    what, held, in_flight,
                                    static_cast<std::int64_t>(landed_[r]) - static_cast<std::int64_t>(returned_[r]),
                                    returning, depth_[r]);
  const StageAt from{p.edge(channel.edge).from, channel.from};
  const StageAt to{p.edge(channel.edge).to[channel.to], channel.receiver};
  d.note(instances_.place(from), "sender '{}': {} pages sent, {} credits back", p.stage(from.stage).name, c.taken,
         c.arrived);
  d.note(instances_.place(to), "receiver '{}': {} pages landed, {} credits returned", p.stage(to.stage).name, c.landed,
         c.returned);
}

void TokenChecker::finish(Cycle at) {
  for (std::uint32_t n = 0; n < counts_.size(); ++n) {
    if (!is_token(instances_.channel_at(n).edge)) continue;
    const Counts& c = counts_[n];
    const std::uint32_t r = instances_.receiver_of(n);
    if (c.taken == c.landed && c.returned == c.arrived && landed_[r] == returned_[r] + initial_[r]) continue;
    violated(Code::RDU7008, at, instances_.channel_at(n), "not all credits are back at the end");
  }
}

}  // namespace rdusim
