#include "tests/system/untimed_executor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>

namespace rdusim::test {
namespace {

// The phase is found by counting runs off, firing after firing.
template <class T>
T in_phase(const Cyclic<T>& cycle, std::uint64_t firing) {
  std::uint64_t length = 0;
  for (const auto& run : cycle) length += run.repeat;
  std::uint64_t at = firing % length;
  for (const auto& run : cycle) {
    if (at < run.repeat) return run.value;
    at -= run.repeat;
  }
  return {};
}

std::int32_t wrapped(std::int64_t value) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(value)));
}

struct Queue {
  std::vector<std::int32_t> pages;  // all that were ever there, those from the start first
  std::uint64_t reserved = 0, depth = 0;
  std::vector<std::uint64_t> taken;  // by reader
  std::uint64_t slowest() const { return taken.empty() ? 0 : *std::min_element(taken.begin(), taken.end()); }
};

class Executor {
 public:
  Executor(const SpatialProgram& p, std::uint64_t seed)
      : p_(p), random_(seed), queues_(p.buffers.size()), reader_(p.stages.size()), held_(p.stages.size(), 0) {
    REQUIRE(p.sections.size() == 1);
    for (const Buffer& b : p.buffers) {
      REQUIRE(p.group(b.group).sites.size() == 1);
      Queue& q = queues_[b.id.value];
      q.depth = b.depth_pages;
      q.reserved = b.initial_pages;
      q.pages.assign(b.initial_pages, 0);
    }
    for (Stage const& s : p.stages) reader_[s.id.value].assign(s.ports.size(), 0);
    // Everyone to whom an edge brings pages takes them for himself.
    for (const Edge& e : p.edges)
      for (const StageId to : e.to) {
        Queue& q = queues_[e.buffer.value];
        if (const auto* recv = std::get_if<Recv>(&p.stages[to.value].kind); recv != nullptr && recv->edge == e.id) {
          source_reader_[to.value] = q.taken.size();
        } else {
          for (std::size_t i = 0; i < p.stages[to.value].ports.size(); ++i)
            if (p.stages[to.value].ports[i].buffer == e.buffer &&
                p.stages[to.value].ports[i].direction == Direction::input)
              reader_[to.value][i] = q.taken.size();
        }
        q.taken.push_back(0);
      }
    done_.firings.assign(p.stages.size(), 0);
    for (const Tensor& t : p.tensors)
      if (t.role == TensorRole::output) done_.outputs[t.name].assign(static_cast<std::size_t>(t.shape[0]), 0);
  }

  Executed run() {
    while (true) {
      std::vector<const Stage*> ready;
      for (const Stage& s : p_.stages)
        if (can_fire(s)) ready.push_back(&s);
      if (ready.empty()) break;
      fire(*ready[random_() % ready.size()]);
    }
    done_.ended = true;
    for (const Stage& s : p_.stages) done_.ended = done_.ended && done_.firings[s.id.value] == due(s);
    for (const Queue& q : queues_) {
      done_.reserved.push_back(q.reserved);
      done_.pushed.push_back(q.pages.size());
      done_.popped.push_back(q.slowest());
    }
    return std::move(done_);
  }

 private:
  std::uint64_t due(const Stage& s) const { return s.firings * p_.sections[0].trips; }

  bool has(const Queue& q, std::size_t reader, std::uint64_t pages) const {
    return q.pages.size() >= q.taken[reader] + pages;
  }
  bool takes(const Queue& q, std::uint64_t pages) const { return q.reserved + pages <= q.slowest() + q.depth; }

  bool can_fire(const Stage& s) const {
    const std::uint64_t f = done_.firings[s.id.value];
    if (f == due(s)) return false;
    if (const auto* recv = std::get_if<Recv>(&s.kind))
      return has(queues_[p_.edges[recv->edge.value].buffer.value], source_reader_.at(s.id.value), 1) &&
             takes(queues_[s.ports[0].buffer.value], 1);
    for (std::size_t i = 0; i < s.ports.size(); ++i) {
      const Port& port = s.ports[i];
      const Queue& q = queues_[port.buffer.value];
      if (port.direction == Direction::input) {
        if (const std::uint32_t n = in_phase(port.need, f); n != 0 && !has(q, reader_[s.id.value][i], n)) return false;
      } else if (const std::uint32_t n = in_phase(port.reserve, f); n != 0 && !takes(q, n)) {
        return false;
      }
    }
    return true;
  }

  // The one element that a firing of a load or store touches.
  std::size_t element(const AccessPattern& a, std::uint64_t firing) const {
    std::uint64_t at = a.first[0][0];
    for (std::size_t l = a.loops.size(); l-- > 0;) {
      at += firing % a.loops[l] * a.stride[l][0];
      firing /= a.loops[l];
    }
    return static_cast<std::size_t>(at);
  }

  std::int32_t operand(const Stage& s, std::size_t port) const {
    const Queue& q = queues_[s.ports[port].buffer.value];
    return q.pages[q.taken[reader_[s.id.value][port]]];
  }

  std::int32_t value(const Stage& s, std::uint64_t f) {
    if (const auto* load = std::get_if<Load>(&s.kind)) {
      const auto& fill = std::get<PatternFill>(p_.tensors[load->tensor.value].fill);
      return static_cast<std::int32_t>(static_cast<std::int64_t>(element(load->pattern, f % s.firings)) % fill.modulus -
                                       fill.shift);
    }
    if (std::holds_alternative<Store>(s.kind)) return operand(s, 0);
    std::vector<std::int64_t> stack;
    const auto pop = [&] {
      const std::int64_t top = stack.back();
      stack.pop_back();
      return top;
    };
    for (const ExprNode& node : in_phase(std::get<Generic>(s.kind).bodies, f)) {
      switch (node.op) {
        case ExprOp::operand:
          stack.push_back(operand(s, node.index));
          continue;
        case ExprOp::accumulator:
          stack.push_back(held_[s.id.value]);
          continue;
        case ExprOp::constant:
          stack.push_back(static_cast<std::int64_t>(node.number));
          continue;
        default:
          break;
      }
      const std::int64_t right = pop(), left = pop();
      if (node.op == ExprOp::add)
        stack.push_back(wrapped(left + right));
      else if (node.op == ExprOp::maximum)
        stack.push_back(std::max(left, right));
      else
        FAIL("an operation that this executor does not know");
    }
    return held_[s.id.value] = wrapped(pop());
  }

  void fire(const Stage& s) {
    const std::uint64_t f = done_.firings[s.id.value]++;
    if (const auto* recv = std::get_if<Recv>(&s.kind)) {
      Queue& from = queues_[p_.edges[recv->edge.value].buffer.value];
      Queue& to = queues_[s.ports[0].buffer.value];
      to.pages.push_back(from.pages[from.taken[source_reader_.at(s.id.value)]++]);
      ++to.reserved;
      return;
    }
    const std::int32_t made = value(s, f);
    if (const auto* store = std::get_if<Store>(&s.kind))
      done_.outputs[p_.tensors[store->tensor.value].name][element(store->pattern, f % s.firings)] = made;
    for (std::size_t i = 0; i < s.ports.size(); ++i) {
      const Port& port = s.ports[i];
      Queue& q = queues_[port.buffer.value];
      if (port.direction == Direction::input) {
        q.taken[reader_[s.id.value][i]] += in_phase(port.pop, f);
      } else {
        q.reserved += in_phase(port.reserve, f);
        q.pages.insert(q.pages.end(), in_phase(port.push, f), made);
      }
    }
  }

  const SpatialProgram& p_;
  std::mt19937_64 random_;
  std::vector<Queue> queues_;
  std::vector<std::vector<std::size_t>> reader_;        // by stage and port: of its buffer's readers
  std::map<std::uint32_t, std::size_t> source_reader_;  // of a receive, by stage
  std::vector<std::int64_t> held_;                      // by stage: the value of its firing before
  Executed done_;
};

}  // namespace

Executed execute(const SpatialProgram& program, std::uint64_t seed) {
  return Executor(program, seed).run();
}

}  // namespace rdusim::test
