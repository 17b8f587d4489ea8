#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/ir/collective_order.h"
#include "compiler/ir/hypercube.h"
#include "compiler/passes/expansion.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"

namespace rdusim {
namespace {

// A stage's ports and bodies, written down a phase at a time. Inputs are added before outputs.
class Phases {
 public:
  std::uint32_t input(BufferId buffer) { return add(Direction::input, buffer); }
  std::uint32_t output(BufferId buffer) { return add(Direction::output, buffer); }

  void next(Expr body) {
    bodies_.push_back(std::move(body));
    for (Use& u : uses_) {
      u.held.push_back(0);
      u.moved.push_back(0);
      u.chunk.push_back({});
    }
  }
  // In the phase at hand: the page must be there; it is taken as well; so many must be there; one is given.
  void look(std::uint32_t port, Chunk chunk) {
    wait(port, 1);
    uses_[port].chunk.back() = chunk;
  }
  void pop(std::uint32_t port) {
    wait(port, 1);
    uses_[port].moved.back() = 1;
  }
  void wait(std::uint32_t port, std::uint32_t pages) {
    uses_[port].held.back() = std::max(uses_[port].held.back(), pages);
  }
  void give(std::uint32_t port) { uses_[port].moved.back() = 1; }

  std::uint32_t count() const { return static_cast<std::uint32_t>(bodies_.size()); }
  std::vector<Port> ports() const {
    std::vector<Port> ports;
    for (const Use& u : uses_) {
      Port port{u.direction, u.buffer};
      if (u.direction == Direction::input) {
        port.need = by_phase(u.held);
        port.pop = by_phase(u.moved);
        port.chunk = by_phase(u.chunk);
      } else {
        port.reserve = port.push = by_phase(u.moved);
      }
      ports.push_back(std::move(port));
    }
    return ports;
  }
  Cyclic<Expr> bodies() const { return by_phase(bodies_); }

 private:
  struct Use {
    Direction direction;
    BufferId buffer;
    std::vector<std::uint32_t> held, moved;
    std::vector<Chunk> chunk;
  };
  std::uint32_t add(Direction direction, BufferId buffer) {
    uses_.push_back({direction, buffer, {}, {}, {}});
    return static_cast<std::uint32_t>(uses_.size() - 1);
  }
  std::vector<Use> uses_;
  std::vector<Expr> bodies_;
};

// Ports of a corner's stage.
struct Corner {
  std::uint32_t own = 0;
  std::optional<std::uint32_t> guest;
  std::vector<std::uint32_t> landing;  // by step of the halving
  std::vector<std::uint32_t> next;     // the same
  std::optional<std::uint32_t> kept;   // blocks that are sent again in the doubling's next step: taken from here,
  std::optional<std::uint32_t> keep;   // and put back
  std::uint32_t done = 0;
};

// The sum of one block: of what the corner has, its guest's, and what came in the first `steps` steps, one by one in this
// order. The phase of the last is at hand afterwards. A step's first block waits until the one before has wholly come,
// `whole` pages.
void add_block(Phases& phases, const Corner& at, Chunk block, std::uint32_t steps, std::uint32_t whole) {
  std::vector<std::uint32_t> operands = {at.own};
  if (at.guest) operands.push_back(*at.guest);
  for (std::uint32_t t = 0; t < steps; ++t) operands.push_back(at.landing[t]);
  const bool last_block = steps == at.landing.size();
  const auto use = [&](std::uint32_t port) {
    const bool of_whole_page = port == at.own || port == at.guest;
    if (of_whole_page) phases.look(port, block);
    if (!of_whole_page || last_block) phases.pop(port);
  };
  phases.next(operands.size() == 1 ? take(operands[0]) : sum_of(operands[0], operands[1]));
  use(operands[0]);
  if (operands.size() > 1) use(operands[1]);
  if (whole > 0) phases.wait(at.landing[steps - 1], whole);
  for (std::size_t i = 2; i < operands.size(); ++i) {
    phases.next(mutated("expand.halving_drops_a_step", false, true) ? take(operands[i]) : add_to_last(operands[i]));
    use(operands[i]);
  }
}

void halve(Phases& phases, const Corner& at, const Hypercube& cube, std::uint32_t corner) {
  for (std::uint32_t t = 0; t < cube.steps(); ++t) {
    std::uint32_t whole = t == 0 ? 0 : cube.crossing(t - 1);
    for (const std::uint32_t block : cube.sent(corner, t)) {
      add_block(phases, at, {block, cube.corners()}, t, whole);
      phases.give(at.next[t]);
      whole = 0;
    }
  }
  add_block(phases, at, {cube.block(corner), cube.corners()}, cube.steps(), 0);
}

// From the phase in which the own block is at hand.
void double_up(Phases& phases, const Corner& at, const Hypercube& cube) {
  const std::uint32_t k = cube.steps();
  phases.give(at.next[k - 1]);
  phases.give(at.done);
  if (at.keep) phases.give(*at.keep);
  for (std::uint32_t j = 1; j <= k; ++j) {
    const std::uint32_t from = at.landing[k - j], blocks = 1u << (j - 1);
    const auto hand_on = [&] {
      if (j < k) phases.give(at.next[k - 1 - j]);
      if (j + 1 < k) phases.give(*at.keep);
    };
    for (std::uint32_t i = 0; i < blocks; ++i) {
      phases.next(take(from));
      phases.pop(from);
      if (i == 0) phases.wait(from, blocks);
      phases.give(at.done);
      hand_on();
    }
    for (std::uint32_t i = 0; j < k && i < blocks; ++i) {
      phases.next(take(*at.kept));
      phases.pop(*at.kept);
      hand_on();
    }
  }
}

// In the order in which double_up() gives them.
std::vector<std::uint32_t> blocks_done(const Hypercube& cube, std::uint32_t corner) {
  std::vector<std::uint32_t> blocks = {cube.block(corner)};
  for (std::uint32_t j = 1; j <= cube.steps(); ++j) {
    const std::vector<std::uint32_t> came = cube.held(corner ^ 1u << (cube.steps() - j), j - 1);
    blocks.insert(blocks.end(), came.begin(), came.end());
  }
  return blocks;
}

// What `corner` has of any block after the first `steps` steps.
Sum sum_at(const Hypercube& cube, const std::vector<Sum>& by_chip, std::uint32_t corner, std::uint32_t steps) {
  std::vector<Sum> parts = {by_chip[cube.member(corner)]};
  if (const auto g = cube.guest(corner)) parts.push_back(by_chip[*g]);
  for (std::uint32_t t = 0; t < steps; ++t) parts.push_back(sum_at(cube, by_chip, corner ^ 1u << t, t));
  return left_deep(parts);
}

}  // namespace

std::vector<Sum> halving_sums(const std::vector<ChipId>& members, const std::vector<Sum>& parts) {
  const Hypercube cube(static_cast<std::uint32_t>(parts.size()));
  std::vector<Sum> by_chip;
  for (const std::uint32_t m : in_order_of_chips(members)) by_chip.push_back(parts[m]);
  std::vector<Sum> sums;
  for (std::uint32_t block = 0; block < cube.corners(); ++block)
    sums.push_back(sum_at(cube, by_chip, cube.owner(block), cube.steps()));
  return sums;
}

// One stage a corner does both: the halving's sums, and then the doubling's forwarding; between partners there is one
// edge each way for both. What is sent again in a later step of the doubling goes round in a buffer of its own (kept).
void Expansion::halving_doubling() {
  const Hypercube cube(n_);
  const std::uint32_t k = cube.steps(), corners = cube.corners();
  const std::vector<std::uint32_t> by_chip = in_order_of_chips(collective_.members);
  const auto member = [&](std::uint32_t corner) { return by_chip[cube.member(corner)]; };

  struct Side {
    Corner at;
    StageId stage;
    std::vector<BufferId> next;
    BufferId done;
  };
  std::vector<Side> sides(corners);
  for (std::uint32_t c = 0; c < corners; ++c) {
    const std::uint32_t m = member(c);
    Side& side = sides[c];
    Phases phases;
    side.at.own = phases.input(members_[m].buffer);
    std::optional<Landing> guest;
    if (const auto g = cube.guest(c)) {
      const Member& from = members_[by_chip[*g]];
      guest = cross(from.source, from.buffer, Chunk{}, by_chip[*g], {m}, "recv", firings()).front();
      side.at.guest = phases.input(guest->buffer);
    }
    for (std::uint32_t t = 0; t < k; ++t) side.at.landing.push_back(phases.input({}));
    const auto block_buffer = [&](const std::string& what, BufferKind kind) {
      return add_buffer(what, m, kind, accumulator(), partial(), corners);
    };
    std::optional<BufferId> kept;
    if (k > 1) {
      kept = block_buffer("kept", BufferKind::fifo);
      holds(*kept, corners / 4 + 2);
      side.at.kept = phases.input(*kept);
    }
    for (std::uint32_t t = 0; t < k; ++t) {
      side.next.push_back(block_buffer("next" + at(member(c ^ 1u << t)), BufferKind::interm));
      side.at.next.push_back(phases.output(side.next.back()));
    }
    if (kept) side.at.keep = phases.output(*kept);
    side.done = block_buffer(accumulator() != result() ? "sum" : "done", BufferKind::fifo);
    side.at.done = phases.output(side.done);
    halve(phases, side.at, cube, c);
    double_up(phases, side.at, cube);
    std::vector<Port> ports = phases.ports();
    const auto inputs = static_cast<std::size_t>(
        std::count_if(ports.begin(), ports.end(), [](const Port& p) { return p.direction == Direction::input; }));
    Generic exchange = element_wise(phases.bodies(), inputs);
    exchange.result = accumulator();
    side.stage = add_stage("exchange", m, std::move(exchange), {StageRole::compute, context(m)},
                           firings() * phases.count(), std::move(ports));
    local(members_[m].source, members_[m].buffer, side.stage);
    if (guest) local(guest->recv, guest->buffer, side.stage);
    if (kept) local(side.stage, *kept, side.stage);
  }
  for (std::uint32_t c = 0; c < corners; ++c)
    for (std::uint32_t t = 0; t < k; ++t) {
      const std::uint32_t partner = c ^ 1u << mutated("expand.halving_partners_swapped", t, k - 1 - t);
      const Landing landing = cross(sides[c].stage, sides[c].next[t], Chunk{}, member(c), {member(partner)}, "recv",
                                    firings() * 2 * cube.crossing(t))
                                  .front();
      Side& to = sides[partner];
      p_.stages[to.stage.value].ports[to.at.landing[t]].buffer = landing.buffer;
      holds(landing.buffer, cube.crossing(t));
      local(landing.recv, landing.buffer, to.stage);
    }
  for (std::uint32_t c = 0; c < corners; ++c) {
    const std::uint32_t m = member(c);
    std::vector<std::uint32_t> order = blocks_done(cube, c);
    if (mutated("expand.halving_blocks_stored_in_rising_order", false, true)) std::sort(order.begin(), order.end());
    const Landing done = converted(m, sides[c].stage, sides[c].done, corners);
    const auto store_at = [&](std::uint32_t where, const Landing& from) {
      const StageId store = members_[where].outcomes.front().store;
      local(from.recv, from.buffer, store);
      store_chunks(store, {input_port(from.buffer)}, order, corners);
    };
    store_at(m, done);
    if (const auto g = cube.guest(c)) {
      const Landing back =
          cross(done.recv, done.buffer, Chunk{}, m, {by_chip[*g]}, "result", firings() * corners).front();
      holds(back.buffer, corners);
      store_at(by_chip[*g], back);
    }
  }
}

}  // namespace rdusim
