#include "sim/addition_counter.h"

#include <algorithm>

namespace rdusim {

namespace {

// What a stage that makes values says: a line for each port.
std::uint32_t ports_in(const Expr& body) {
  std::vector<std::uint32_t> ports;
  for (const ExprNode& node : body)
    if (node.op == ExprOp::operand && std::find(ports.begin(), ports.end(), node.index) == ports.end())
      ports.push_back(node.index);
  return static_cast<std::uint32_t>(ports.size());
}

// What a sum says: a line for each addition, and one for the operand that it starts with.
std::uint32_t additions_in(const Expr& body) {
  struct Entry {
    bool fresh = false, operand = false;
  };
  std::vector<Entry> stack;
  std::uint32_t n = 0;
  for (const ExprNode& node : body) {
    const std::size_t pops = arity(node.op);
    if (pops > stack.size()) return 0;
    if (pops == 0) stack.push_back({node.op == ExprOp::operand, node.op == ExprOp::operand});
    if (pops == 1) stack.back().operand = false;
    if (pops != 2) continue;
    stack.pop_back();
    if (node.op == ExprOp::add) n += stack.back().fresh ? 2 : 1;
    stack.back() = {};
  }
  return n + (!stack.empty() && stack.back().fresh && stack.back().operand ? 1 : 0);
}

}  // namespace

AdditionCounter::AdditionCounter(const Instances& instances, Violations& violations)
    : instances_(instances),
      violations_(violations),
      due_(instances.program().stages.size()),
      told_(instances.stages(), 0),
      by_matmul_(instances.program().buffers.size()),
      blocks_(instances.stages()) {
  for (const Stage& s : instances.program().stages) {
    if (std::holds_alternative<MatmulTiles>(s.kind))
      for (const Port& port : s.ports)
        if (port.direction == Direction::output) by_matmul_[port.buffer.value] = &s;
    const auto* generic = std::get_if<Generic>(&s.kind);
    if (generic == nullptr) continue;
    for (const auto& run : generic->bodies)
      due_[s.id.value].push_back({run.repeat, makes_values(*generic) ? ports_in(run.value) : additions_in(run.value)});
  }
}

void AdditionCounter::on(const FiringStarted& e) {
  std::uint32_t& told = told_[instances_.of(e.stage)];
  const auto& due = due_[e.stage.stage.value];
  if (!due.empty()) {
    const std::uint32_t expected = at_phase(due, e.firing);
    if (told != expected)
      violations_.found(told < expected ? Code::RDU7009 : Code::RDU7010, e.at, instances_.place(e.stage),
                        "firing {} of '{}' takes {} operands towards its result, and its body has {}", e.firing,
                        instances_.program().stage(e.stage.stage).name, told, expected);
  }
  told = 0;
}

void AdditionCounter::on(const OperandsJoined& e) {
  const auto* tiles = std::get_if<MatmulTiles>(&instances_.program().stage(e.stage.stage).kind);
  if (tiles == nullptr) return;
  Blocks& blocks = blocks_[instances_.of(e.stage)];
  blocks.under_way += e.a.cols;
  const std::uint64_t pages = std::max<std::uint64_t>(tiles->k_pages, 1);
  if (e.firing % instances_.program().stage(e.stage.stage).firings % pages != pages - 1) return;
  blocks.made.push_back(blocks.under_way);
  blocks.under_way = 0;
}

void AdditionCounter::on(const PagePushed& e) {
  const Stage* matmul = by_matmul_[e.buffer.buffer.value];
  if (matmul == nullptr || table_ == nullptr) return;
  const StageAt at{matmul->id, e.buffer.instance};
  Fifo<std::uint64_t>& made = blocks_[instances_.of(at)].made;
  if (made.empty()) return;  // pushed by nobody: the handshake checker says so
  const std::uint64_t due = made.front();
  made.pop_front();
  std::uint64_t held = 0;
  if (e.tag.provenance != 0)
    for (const ContributionRun& r : table_->runs(e.tag.provenance)) held += r.count * r.length;
  if (held == due) return;
  violations_.found(held < due ? Code::RDU7009 : Code::RDU7010, e.at, instances_.place(e.buffer),
                    "'{}' pushes page {} with {} contraction indices, and its firings have multiplied {}", matmul->name,
                    e.page, held, due);
}

}  // namespace rdusim
