// Reduction completeness, by a symbolic execution: every page says which elements it holds and which products they sum.
//
// The streams of pages do not depend on the order of firings (rates are static, a buffer has one producer), so one
// execution shows what every run computes. Instances that are translations of each other (classes.h) are executed once.
// Each trip of a section moves the same pages, perhaps of other tensors (trips.h); the first is executed.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "compiler/certificate/classes.h"
#include "compiler/certificate/contributions.h"
#include "compiler/certificate/execution.h"
#include "compiler/certificate/moves.h"
#include "compiler/certificate/obligations.h"
#include "compiler/certificate/pages.h"
#include "compiler/certificate/rows.h"
#include "compiler/certificate/terms.h"
#include "compiler/certificate/trips.h"
#include "compiler/support/summation_tree.h"

namespace rdusim::certificate {

namespace {

constexpr std::uint64_t most_pages_held = std::uint64_t{1} << 22;

// A page, as far as it matters: elements [begin, end), row-major, of a box of an operand or of an operator's output.
struct Page {
  enum class Kind : std::uint8_t {
    zeros,    // initial pages, or nothing yet
    operand,  // as loaded; `of`: the operand
    sum,      // of products of operator `of`, and perhaps addends
    value,    // whole: what a stage made of whole pages, by its formula
    folded,   // made of items of a stream: of no place, and whatever its stage makes
  } kind = Kind::zeros;
  std::uint32_t of = 0;     // operand: which; sum: of which products; value: the operator that its stage works for
  std::uint32_t set = 0;    // sum: contributions
  TermId term = no_term;    // operand, sum (once complete), value: its formula
  std::uint32_t whole = 0;  // extents that it is cut from, by number
  Box box;
  std::uint64_t begin = 0, end = 0;
  std::uint64_t elements() const { return end - begin; }
};

class Symbolic {
 public:
  Symbolic(const Subject& s, Provenance& result)
      : s_(s), result_(result), terms_(s.p), operators_(most_operator(s.p) + 1), wholes_(1) {
    k_of_.assign(operators_ + s.p.stages.size(), 0);
  }

  // Gives false where something is wrong, or was left unchecked; `result.finding` says what.
  bool run(const Section& section) {
    section_ = &section;
    if (!find_updates(section)) return false;
    Extent extent;
    if (s_.uniform) {
      classes_ = classes_of(s_, section.id);
      extent.instances = classes_.representatives;
    }
    const Net net = Net::of(s_, section.id, extent);
    if (net.all_firings > most_firings) {
      result_.finding = unchecked("section '{}' has {} firings of instances that differ; {} are looked at",
                                  section.name, net.all_firings, most_firings);
      return false;
    }
    net_ = &net;
    const std::vector<std::uint64_t> pushed = most_pushed(net);
    base_.assign(net.queues.size() + 1, 0);
    for (std::size_t q = 0; q < net.queues.size(); ++q)
      base_[q + 1] = sum(base_[q], std::max<std::uint64_t>(std::min(net.queues[q].depth, pushed[q]), 1));
    if (base_.back() > most_pages_held) {
      result_.finding = unchecked("section '{}' holds up to {} pages in instances that differ; {} are looked at",
                                  section.name, base_.back(), most_pages_held);
      return false;
    }
    pages_.assign(base_.back(), Page{});
    held_.assign(net.actors.size(), Page{});
    joined_.assign(net.actors.size(), no_term);
    run_begin_.assign(net.actors.size(), 0);
    run_end_.assign(net.actors.size(), 0);
    Execution execution(net);
    execution_ = &execution;
    if (execution.run(most_firings, [this](std::uint32_t actor, std::uint64_t f) { return fire(actor, f); }))
      return true;
    if (result_.finding.status == ProofStatus::proved)
      result_.finding = unchecked("section '{}' does not run to its end", section.name);
    return false;
  }

  // What was found of the first trip holds of the later ones, which are alike.
  void end_trips(const Section& section) {
    for (const Stage& stage : s_.p.stages) {
      const auto* store = std::get_if<Store>(&stage.kind);
      if (store == nullptr || stage.section != section.id) continue;
      const auto found = contributions.find(store->tensor);
      for (std::uint64_t trip = 1; trip <= store->later.size(); ++trip) {
        const Tensor& t = s_.p.tensor(of_trip(*store, trip));
        if (found != contributions.end()) contributions[t.id] = found->second;
        if (const auto state = holds_.find(s_.p.tensor(store->tensor).operand.value); state != holds_.end()) {
          const std::uint64_t op = writer_of(state->second) + trip * section.operators_a_trip;
          holds_[t.operand.value] = s_.p.operators->operators[op].out.value;
        }
      }
    }
  }

  // Numbers of what was found, by tensor.
  std::map<TensorId, std::uint64_t> contributions;

 private:
  static std::uint32_t most_operator(const SpatialProgram& p) {
    std::uint32_t most = 0;
    for (const Stage& s : p.stages)
      if (const auto* m = std::get_if<MatmulTiles>(&s.kind)) most = std::max(most, m->op.value);
    if (p.operators) most = std::max(most, static_cast<std::uint32_t>(p.operators->operators.size()));
    return std::min(most, std::uint32_t{1} << 20);
  }

  // Which states the section's appends update. Loads of the section wait for all of its stores (program.h), so they find
  // what the last of them makes; the appends of a state follow one another.
  bool find_updates(const Section& section) {
    std::map<std::uint32_t, std::vector<const Operator*>> updates;  // by operand of a state
    for (const Stage& stage : s_.p.stages) {
      const auto* store = std::get_if<Store>(&stage.kind);
      if (store == nullptr || stage.section != section.id) continue;
      const OperandId state = s_.p.tensor(store->tensor).operand;
      const Operator* op = mover_into(s_.p, state, stage.origin);
      if (op == nullptr || op->kind != OperatorKind::append || op->in.empty()) continue;
      std::vector<const Operator*>& all = updates[state.value];
      if (std::find(all.begin(), all.end(), op) == all.end()) all.push_back(op);
    }
    for (auto& [state, left] : updates)
      while (!left.empty()) {
        const auto next = std::find_if(left.begin(), left.end(), [&, of = state](const Operator* op) {
          return op->in[0].value == held(OperandId{of});
        });
        if (next == left.end()) {
          result_.finding =
              refuted("section '{}' carries out '{}' on a state that does not hold what it appends to then",
                      section.name, left.front()->name);
          return false;
        }
        holds_[state] = (*next)->out.value;
        left.erase(next);
      }
    return true;
  }
  // Requires an operand that an operator of the program makes.
  std::uint64_t writer_of(std::uint32_t operand) const {
    std::uint64_t op = 0;
    while (s_.p.operators->operators[op].out.value != operand) ++op;
    return op;
  }
  // What the tensors of an operand hold now: of a state, what the last append made of it.
  std::uint32_t held(OperandId o) const {
    const auto at = holds_.find(o.value);
    return at == holds_.end() ? o.value : at->second;
  }

  // By queue: no more pages than this are ever in it, its first ones included.
  std::vector<std::uint64_t> most_pushed(const Net& net) const {
    std::vector<std::uint64_t> pages;
    for (const Net::Queue& q : net.queues) pages.push_back(q.initial);
    for (const Net::Actor& a : net.actors)
      for (std::uint32_t u = a.first_use; u < a.first_use + a.uses; ++u) {
        if (net.uses[u].slot != Net::nobody) continue;
        std::uint32_t most = 1;
        if (!a.crossing)
          for (const auto& run : s_.p.stage(a.stage).ports[net.uses[u].port].push) most = std::max(most, run.value);
        pages[net.uses[u].queue] = sum(pages[net.uses[u].queue], product(a.firings, most));
      }
    return pages;
  }

  std::uint64_t cells_of(std::uint32_t queue) const { return base_[queue + std::size_t{1}] - base_[queue]; }
  Page& cell(std::uint32_t queue, std::uint64_t index) { return pages_[base_[queue] + index % cells_of(queue)]; }
  const Page& head(const Net::Use& use) { return cell(use.queue, execution_->popped(use.slot)); }
  void push(const Net::Use& use, const Page& page, std::uint64_t times) {
    const Net::Queue& q = net_->queues[use.queue];
    const std::uint64_t cells = cells_of(use.queue);
    for (std::uint64_t i = times > cells ? times - cells : 0; i < times; ++i)  // more would only overwrite these
      cell(use.queue, q.initial + execution_->pushed(use.queue) + i) = page;
  }
  // How many instances of `stage` the actor stands for.
  std::uint64_t weight(const Net::Actor& a, const Stage& stage) const {
    return s_.uniform ? classes_.weight(a.instance, s_.instances(stage)) : 1;
  }

  template <class... Args>
  bool fault(const Net::Actor& a, std::uint64_t f, fmt::format_string<Args...> format, Args&&... args) {
    result_.finding = refuted("stage '{}', instance {}, firing {}: {}", s_.p.stage(a.stage).name, a.instance, f,
                              fmt::format(format, std::forward<Args>(args)...));
    return false;
  }
  // Sums of a matmul operator are that operator's, whichever stage adds products. For another kind of operator several
  // products may be worked out: each by what is multiplied, and whether by a transposed operand, has a number of its own.
  std::uint32_t products_of(const Net::Actor& a, const MatmulTiles& m, TermId left) {
    const bool matmul = !s_.p.operators || m.op.value >= s_.p.operators->operators.size() ||
                        s_.p.operators->operators[m.op.value].kind == OperatorKind::matmul;
    if (matmul) return m.op.value;
    return others_.try_emplace({m.op.value, m.transposed, left}, operators_ + a.stage.value).first->second;
  }
  std::uint32_t number_of(Whole whole) {
    const auto [at, fresh] = whole_ids_.try_emplace(whole, static_cast<std::uint32_t>(wholes_.size()));
    if (fresh) wholes_.push_back(std::move(whole));
    return at->second;
  }
  DType type_of(const Net::Use& use) const { return s_.p.buffer(net_->queues[use.queue].buffer).dtype; }
  std::string text(const Page& page) const {
    const std::string part =
        page.elements() == page.box.elements() ? "" : fmt::format(" elements [{}, {})", page.begin, page.end);
    switch (page.kind) {
      case Page::Kind::zeros:
        return "zeros";
      case Page::Kind::operand:
        return fmt::format("operand {} {}{}", page.of, to_string(page.box), part);
      case Page::Kind::sum:
        return fmt::format("a sum of operator {} {}{}", page.of, to_string(page.box), part);
      case Page::Kind::value:
        return fmt::format("{} {}{}", terms_.text(page.term), to_string(page.box), part);
      case Page::Kind::folded:
        return fmt::format("a fold of {} elements", page.elements());
    }
    return "";
  }

  static Page cut(const Page& page, const Chunk& chunk) {
    if (chunk.of <= 1) return page;
    const ElementRange range = chunk_range(page.elements(), chunk.index, chunk.of);
    Page part = page;
    part.begin = page.begin + range.begin;
    part.end = page.begin + range.end;
    return part;
  }

  bool fire(std::uint32_t id, std::uint64_t f) {
    const Net::Actor& a = net_->actors[id];
    if (a.crossing) return cross(a, f);
    const Stage& stage = s_.p.stage(a.stage);
    if (const auto* load = std::get_if<Load>(&stage.kind)) return fire(a, f, *load);
    if (const auto* matmul = std::get_if<MatmulTiles>(&stage.kind)) return fire(a, id, f, *matmul);
    if (const auto* generic = std::get_if<Generic>(&stage.kind)) return fire(a, id, f, *generic);
    if (const auto* store = std::get_if<Store>(&stage.kind)) return fire(a, f, *store);
    return true;
  }

  const Net::Use* use_of(const Net::Actor& a, std::size_t port) const {
    for (std::uint32_t u = a.first_use; u < a.first_use + a.uses; ++u)
      if (net_->uses[u].port == port) return &net_->uses[u];
    return nullptr;
  }
  void push_all(const Net::Actor& a, std::uint64_t f, const Page& page) {
    for (std::uint32_t u = a.first_use; u < a.first_use + a.uses; ++u) {
      const Net::Use& use = net_->uses[u];
      if (use.slot != Net::nobody) continue;
      const std::uint64_t times = net_->rates[use.rates].free.at(f);
      if (times == 0) continue;
      push(use, page, times);
      hand_over(a, use, page, times);
    }
  }
  // What a chip gives to a collective is what stages outside of it push for it.
  void hand_over(const Net::Actor& a, const Net::Use& use, const Page& page, std::uint64_t times) {
    const Stage& from = s_.p.stage(a.stage);
    if (from.collective) return;
    const Buffer& b = s_.p.buffer(net_->queues[use.queue].buffer);
    for (const Consumer& c : s_.consumers[b.id.value]) {
      std::optional<CollectiveId> into = s_.p.edge(c.edge).collective;
      if (!into && !c.crossing) into = s_.p.stage(c.stage).collective;
      if (!into || into->value >= result_.sent.size()) continue;
      const ChipId chip = s_.p.chip_of(from);
      std::vector<std::uint64_t>& sent = result_.sent[into->value];
      if (chip.value >= sent.size()) continue;
      sent[chip.value] =
          sum(sent[chip.value], product(product(page.elements() * bytes_of(b.dtype), times), weight(a, from)));
      return;
    }
  }

  bool cross(const Net::Actor& a, std::uint64_t f) {
    const Edge& e = s_.p.edge(a.edge);
    const Net::Use& source = net_->uses[a.first_use];
    const Page page = cut(head(source), e.chunk);
    const Stage& from = s_.p.stage(e.from);
    const Bytes bytes =
        product(product(page.elements() * bytes_of(s_.p.buffer(e.buffer).dtype), weight(a, from)), s_.trips(from));
    for (std::uint32_t u = 1; u < a.uses; ++u) {
      if (!a.uses_in(u, f)) continue;
      const Net::Use& use = net_->uses[a.first_use + u];
      push(use, page, 1);
      const BufferId landing = net_->queues[use.queue].buffer;
      for (std::size_t to = 0; to < e.to.size(); ++to)
        for (const Producer& p : s_.producers[landing.value])
          if (p.stage == e.to[to]) result_.edge_bytes[e.id.value][to] = sum(result_.edge_bytes[e.id.value][to], bytes);
    }
    return true;
  }

  // Rows of a table, where their indices lie: each is the row that its index names, whatever that is.
  bool gather(const Net::Actor& a, std::uint64_t f, const Load& load) {
    const Stage& stage = s_.p.stage(a.stage);
    const Tensor& t = s_.p.tensor(load.tensor);
    const Net::Use* in = use_of(a, 0);
    if (in == nullptr || in->slot == Net::nobody) return fault(a, f, "takes its indices from no port");
    Page index = cut(head(*in), at_phase(stage.ports[0].chunk, f));
    const auto box = box_of(load.pattern, t, s_.p.header.native_tile, a.instance, f);
    if (!settle(a, f, index, type_of(*in))) return false;
    if (!box || t.whole != t.shape || !is_whole(index) || index.box.rows != 1 || index.elements() != box->rows)
      return fault(a, f, "takes {} for rows of '{}'", text(index), t.name);
    Page page;
    page.kind = Page::Kind::value;
    page.of = stage.origin ? stage.origin->value : nobody;
    page.term = terms_.given(t.dtype, t.dtype, terms_.gather(terms_.operand(OperandId{held(t.operand)}), index.term),
                             stage.origin);
    page.whole = number_of({wholes_[index.whole].back(), whole_shape(t).back()});
    page.box = {index.box.col + index.begin, box->col, box->rows, box->cols};
    page.end = page.box.elements();
    push_all(a, f, page);
    return true;
  }

  bool fire(const Net::Actor& a, std::uint64_t f, const Load& load) {
    if (load.indexed) return gather(a, f, load);
    const Tensor& t = s_.p.tensor(load.tensor);
    Page page;
    if (const auto box = box_of(load.pattern, t, s_.p.header.native_tile, a.instance, f)) {
      const auto place = in_heads(*box, t, load.pattern.heads);
      if (!place)
        return fault(a, f, "loads {} of '{}', which lies in no one of {} heads", to_string(*box), t.name,
                     load.pattern.heads);
      page.kind = Page::Kind::operand;
      page.of = held(t.operand);
      page.term = terms_.by_head(terms_.operand(OperandId{page.of}), load.pattern.heads);
      page.whole = number_of(whole_shape(t, load.pattern.heads));
      page.box = *place;
      page.end = place->elements();
    }
    push_all(a, f, page);
    return true;
  }

  bool fire(const Net::Actor& a, std::uint32_t id, std::uint64_t f, const MatmulTiles& m) {
    const Net::Use* port_a = use_of(a, 0);
    const Net::Use* port_b = use_of(a, 1);
    if (port_a == nullptr || port_b == nullptr || port_a->slot == Net::nobody || port_b->slot == Net::nobody)
      return fault(a, f, "a matmul takes its operands from its first two ports");
    Page left = head(*port_a), right = head(*port_b);
    if (!settle(a, f, left, type_of(*port_a)) || !settle(a, f, right, type_of(*port_b))) return false;
    if (!is_whole(left) || !is_whole(right))
      return fault(a, f, "multiplies {} and {}: both must be whole", text(left), text(right));
    const Whole& all_left = wholes_[left.whole];
    const Whole& all_right = wholes_[right.whole];
    const std::uint64_t rows_right = all_right[all_right.size() - 2];
    const Box r = m.transposed ? Box{right.box.col, right.box.row % rows_right, right.box.cols, right.box.rows}
                               : Box{right.box.row % rows_right, right.box.col, right.box.rows, right.box.cols};
    if (left.box.col != r.row || left.box.cols != r.rows)
      return fault(a, f, "multiplies contraction [{}, {}) of its left operand with [{}, {}) of its right", left.box.col,
                   left.box.col + left.box.cols, r.row, r.row + r.rows);
    if (const std::string why = wrong_matrices(left.box, all_left, right.box, all_right); !why.empty())
      return fault(a, f, "multiplies {} and {}: {}", text(left), text(right), why);
    if (m.op.value >= operators_) return fault(a, f, "computes operator {}, which is out of range", m.op.value);
    const std::uint32_t of = products_of(a, m, left.term);
    if (of == m.op.value && (!is_operand_of(m.op, 0, left.term) || !is_operand_of(m.op, 1, right.term)))
      return fault(a, f, "multiplies {} and {}, which are not the operands of operator {}", terms_.text(left.term),
                   terms_.text(right.term), m.op.value);
    k_of_[of] = std::max(k_of_[of], all_left.back());

    Page& acc = held_[id];
    const Box block{left.box.row, r.col, left.box.rows, r.cols};
    const TermId term = terms_.product(m.accumulator, left.term, right.term, m.transposed);
    const bool first = f % m.k_pages == 0;
    if (first) {
      Whole all = all_left;
      all.back() = m.transposed ? rows_right : all_right.back();
      acc = Page{Page::Kind::sum, of, 0, term, number_of(std::move(all)), block, 0, block.elements()};
      run_begin_[id] = run_end_[id] = left.box.col;
    } else if (acc.box != block || acc.term != term) {
      return fault(a, f, "adds products of block {} to block {}", to_string(block), to_string(acc.box));
    }
    // Products of consecutive contraction indices are one contribution, as the accumulator adds them one by one.
    if (left.box.col != run_end_[id]) {
      close(a, id, acc);
      run_begin_[id] = left.box.col;
    }
    run_end_[id] = left.box.col + left.box.cols;
    if (a.instance == 0) {
      std::uint64_t& macs = result_.first_instance_macs[a.stage.value];
      macs = sum(macs, product(block.elements(), left.box.cols));
    }
    if (f % m.k_pages == m.k_pages - 1) close(a, id, acc);
    push_all(a, f, acc);
    return true;
  }
  void close(const Net::Actor& a, std::uint32_t id, Page& acc) {
    if (run_begin_[id] == run_end_[id]) return;
    acc.set = sets_.sum(acc.set, sets_.single({Contribution::Kind::products, acc.of, s_.p.chip_of(s_.p.stage(a.stage)),
                                               run_begin_[id], run_end_[id]}));
    run_begin_[id] = run_end_[id];
  }

  bool is_operand_of(OperatorId op, std::size_t place, TermId term) const {
    if (!s_.p.operators || op.value >= s_.p.operators->operators.size()) return true;
    const Operator& o = s_.p.operators->operators[op.value];
    return place < o.in.size() && terms_.is(term, o.in[place]);
  }
  static bool is_whole(const Page& page) { return page.kind == Page::Kind::operand || page.kind == Page::Kind::value; }

  // One more item of a fold. Items are pages of operands, all of one size, or other folds.
  bool fold(const Net::Actor& a, std::uint32_t id, std::uint64_t f, const Generic& g) {
    Page out;
    out.kind = Page::Kind::folded;
    if (held_[id].kind == Page::Kind::folded) out.end = held_[id].elements();
    for (const ExprNode& node : at_phase(g.bodies, f)) {
      if (node.op != ExprOp::operand) continue;
      const Net::Use* use = use_of(a, node.index);
      if (use == nullptr || use->slot == Net::nobody || net_->rates[use->rates].take.at(f) == 0)
        return fault(a, f, "its body reads port {}, which has no page in this phase", node.index);
      const Page item = cut(head(*use), at_phase(s_.p.stage(a.stage).ports[node.index].chunk, f));
      if (item.kind != Page::Kind::operand && item.kind != Page::Kind::folded)
        return fault(a, f, "folds {}, which is no item of a tensor", text(item));
      if (out.end != 0 && item.elements() != out.end)
        return fault(a, f, "folds {} into items of {} elements", text(item), out.end);
      out.end = item.elements();
    }
    held_[id] = out;
    push_all(a, f, out);
    return true;
  }

  bool fire(const Net::Actor& a, std::uint32_t id, std::uint64_t f, const Generic& g) {
    if (folds_items(g)) return fold(a, id, f, g);
    if (makes_values(g)) return values(a, id, f, g);
    struct Term {
      Page page;
      std::optional<double> number;
    };
    std::vector<Term> stack;
    const auto as_addend = [&](Term& t) {
      if (t.number && *t.number != 0) {
        t.page.kind = Page::Kind::sum;
        t.page.of = nobody;
        t.page.set = sets_.single({Contribution::Kind::constant, 0, {}, 0, 0});
      } else if (t.page.kind == Page::Kind::operand) {
        t.page.set = sets_.single({Contribution::Kind::operand, t.page.of, {}, 0, 0});
        t.page.kind = Page::Kind::sum;
        t.page.of = nobody;
      }
    };
    for (const ExprNode& node : at_phase(g.bodies, f)) {
      switch (node.op) {
        case ExprOp::operand: {
          const Net::Use* use = use_of(a, node.index);
          if (use == nullptr || use->slot == Net::nobody)
            return fault(a, f, "its body reads port {}, which is no input", node.index);
          if (net_->rates[use->rates].take.at(f) == 0)
            return fault(a, f, "its body reads port {}, which has no page in this phase", node.index);
          const Stage& stage = s_.p.stage(a.stage);
          stack.push_back({cut(head(*use), at_phase(stage.ports[node.index].chunk, f)), {}});
          break;
        }
        case ExprOp::accumulator:
          stack.push_back({held_[id], {}});
          break;
        case ExprOp::constant:
          stack.push_back({{}, node.number});
          break;
        case ExprOp::row:
        case ExprOp::column:
          return fault(a, f, "its body has a place, and does not work by row");
        case ExprOp::negate:
        case ExprOp::exponential:
        case ExprOp::square_root:
        case ExprOp::tanh:
        case ExprOp::erf:
          if (stack.empty()) return fault(a, f, "its body is malformed");
          if (!settle(a, f, stack.back().page, g.accumulator)) return false;
          stack.back().page.term = terms_.apply(node.op, g.accumulator, stack.back().page.term);
          break;
        case ExprOp::add:
        case ExprOp::subtract:
        case ExprOp::multiply:
        case ExprOp::divide:
        case ExprOp::maximum:
        case ExprOp::minimum:
        case ExprOp::mask: {
          if (stack.size() < 2) return fault(a, f, "its body is malformed");
          Term right = stack.back();
          stack.pop_back();
          Term& left = stack.back();
          if (node.op != ExprOp::add) {
            if (!settle(a, f, left.page, g.accumulator) || !settle(a, f, right.page, g.accumulator)) return false;
            const auto term_of = [&](const Term& t) {
              return t.number ? terms_.constant(g.accumulator, *t.number) : t.page.term;
            };
            const TermId term = terms_.apply(node.op, g.accumulator, term_of(left), term_of(right));
            if (left.page.kind == Page::Kind::zeros) left.page = right.page;
            left.page.term = term;
            left.number.reset();
            break;
          }
          as_addend(left);
          as_addend(right);
          if (!add(a, f, left.page, right.page, g.accumulator)) return false;
          left.number.reset();
          break;
        }
      }
    }
    if (stack.size() != 1) return fault(a, f, "its body is malformed");
    held_[id] = stack.back().page;
    push_all(a, f, held_[id]);
    return true;
  }

  // A body that makes whole values of whole pages: the formula that it gives, and the block.
  bool values(const Net::Actor& a, std::uint32_t id, std::uint64_t f, const Generic& g) {
    const Stage& stage = s_.p.stage(a.stage);
    Page& held = held_[id];
    std::vector<TermId> stack;
    std::vector<TakenBlock> taken;
    std::optional<Page> flat;  // element-wise: the place of all; shifted: that of the first
    for (const ExprNode& node : at_phase(g.bodies, f)) {
      const std::uint32_t pops = arity(node.op);
      if (stack.size() < pops) return fault(a, f, "its body is malformed");
      if (pops == 2) {
        const TermId right = stack.back();
        stack.pop_back();
        stack.back() = terms_.apply(node.op, g.accumulator, stack.back(), right);
      } else if (pops == 1) {
        stack.back() = terms_.apply(node.op, g.accumulator, stack.back());
      } else if (node.op == ExprOp::constant) {
        stack.push_back(terms_.constant(g.accumulator, node.number));
      } else if (node.op == ExprOp::row || node.op == ExprOp::column) {
        if (!by_row(g)) return fault(a, f, "its body has a place, and does not work by row");
        stack.push_back(terms_.place(node.op, g.accumulator));
      } else {
        Page page = held;
        DType type = g.accumulator;
        if (node.op == ExprOp::operand) {
          const Net::Use* use = use_of(a, node.index);
          if (use == nullptr || use->slot == Net::nobody || net_->rates[use->rates].take.at(f) == 0)
            return fault(a, f, "its body reads port {}, which has no page in this phase", node.index);
          page = cut(head(*use), at_phase(stage.ports[node.index].chunk, f));
          type = type_of(*use);
        }
        if (!settle(a, f, page, type)) return false;
        if (!is_whole(page)) return fault(a, f, "computes with {}, which is no whole value", text(page));
        stack.push_back(terms_.converted(type, g.accumulator, page.term));
        if (g.shifted) {
          if (!flat) flat = page;
          if (flat->box.row != page.box.row || flat->box.rows != page.box.rows || flat->box.cols != page.box.cols ||
              matrices(flat->whole) != matrices(page.whole))
            return fault(a, f, "computes {} and {} together", text(*flat), text(page));
          const auto columns = static_cast<std::int64_t>(page.box.col - flat->box.col);
          stack.back() = terms_.shifted(stack.back(), columns);
        } else if (!by_row(g)) {
          if (flat && (flat->box != page.box || flat->begin != page.begin || flat->end != page.end))
            return fault(a, f, "computes {} and {} together", text(*flat), text(page));
          flat = page;
        } else if (node.index >= g.maps.size() || g.maps[node.index].size() != 2) {
          return fault(a, f, "port {} has no map", node.index);
        } else {
          const AffineMap& map = g.maps[node.index];
          taken.push_back({page.box, &wholes_[page.whole], map[0].at(0) != 0, map[1].at(1) != 0});
        }
      }
    }
    if (stack.size() != 1) return fault(a, f, "its body is malformed");
    Page out = flat.value_or(Page{});
    out.kind = Page::Kind::value;
    out.of = stage.origin ? stage.origin->value : nobody;
    out.set = 0;
    TermId term = stack.back();
    if (g.shifted && !flat) return fault(a, f, "takes no page");
    if (by_row(g) && !g.shifted) {
      Whole whole;
      for (const TakenBlock& t : taken) whole = spread_over(std::move(whole), *t.whole);
      if (const std::string why = block_of(taken, whole, out.box); !why.empty()) return fault(a, f, "{}", why);
      if (joins_rows(g)) {
        const std::uint64_t pages = cycle_length(g.bodies), at = f % pages;
        const std::uint64_t next = out.box.col + out.box.cols;
        if (at == 0 ? out.box.col != 0
                    : out.box.col != run_end_[id] || out.box.row != held.box.row || out.box.rows != held.box.rows)
          return fault(a, f, "joins {} to a row of which it has columns [0, {})", to_string(out.box),
                       at == 0 ? 0 : run_end_[id]);
        if (at + 1 == pages && next != whole.back())
          return fault(a, f, "joins columns [0, {}) of a row that has {}", next, whole.back());
        if (at != 0 && term != joined_[id]) term = no_term;
        joined_[id] = term;
        run_end_[id] = next;
        out.box.col = 0;
        out.box.cols = whole.back() = 1;
        term = terms_.join(g.join.value_or(ExprOp::operand), g.accumulator, term);
      }
      out.whole = number_of(std::move(whole));
      out.begin = 0;
      out.end = out.box.elements();
    }
    out.term = terms_.given(g.accumulator, g.result, term, stage.origin);
    push_all(a, f, out);
    out.term = term;  // what it keeps is not converted
    held = out;
    return true;
  }

  bool add(const Net::Actor& a, std::uint64_t f, Page& left, const Page& right, DType in) {
    const auto is_empty = [](const Page& p) { return p.kind == Page::Kind::zeros; };
    if (left.kind == Page::Kind::folded || right.kind == Page::Kind::folded)
      return fault(a, f, "adds {} to {}: a fold has no place", text(right), text(left));
    if (is_empty(right)) return true;
    if (is_empty(left)) {
      left = right;
      return true;
    }
    const auto has_place = [](const Page& p) { return p.box.elements() != 0; };  // a constant has none
    if (has_place(left) && has_place(right) &&
        (left.box != right.box || left.begin != right.begin || left.end != right.end))
      return fault(a, f, "adds {} to {}", text(right), text(left));
    if (left.of != nobody && right.of != nobody && left.of != right.of && left.kind == Page::Kind::sum &&
        right.kind == Page::Kind::sum)
      return fault(a, f, "adds {} to {}", text(right), text(left));
    Page all = has_place(left) ? left : right;
    // Partial sums of one product add up to it.
    const bool partials = left.of == right.of && left.term == right.term && left.kind == right.kind;
    if (!partials) all.term = terms_.apply(ExprOp::add, in, left.term, right.term);
    all.of = left.of != nobody ? left.of : right.of;
    all.kind = left.kind == Page::Kind::value || right.kind == Page::Kind::value ? Page::Kind::value : Page::Kind::sum;
    all.set = sets_.sum(left.set, right.set);
    left = all;
    return true;
  }

  // Something that is not an addition is applied to `page` of a buffer of `type`: a sum must be complete by then.
  bool settle(const Net::Actor& a, std::uint64_t f, Page& page, DType type) {
    if (page.kind != Page::Kind::sum || page.of >= k_of_.size()) return true;
    const std::string& wrong = sets_.fault(page.set, page.of, k_of_[page.of]);
    if (!wrong.empty())
      return fault(a, f, "applies a function that does not only add to {} before it is complete: {}", text(page),
                   wrong);
    page.kind = Page::Kind::value;
    page.term = terms_.given(DType::fp32, type, page.term, OperatorId(page.of));
    return true;
  }

  // Why the values of `page` are not what `stage` stores into `t`; empty: they are. Where the program has its
  // operators, by formula; else they are made for the operator that the store works for.
  std::string not_due(const Page& page, const Stage& stage, const Tensor& t) {
    const std::string due = terms_.formula(t.operand);
    if (!due.empty())
      return terms_.is(page.term, t.operand, page.box.col, page.box.col + page.box.cols)
                 ? std::string()
                 : fmt::format("stores {} into tensor '{}', which holds {}", text(page), t.name, due);
    std::optional<std::uint32_t> of;
    if (s_.p.operators) {
      for (const Operator& op : s_.p.operators->operators)
        if (op.out == t.operand) of = op.id.value;
    } else if (stage.origin) {
      of = stage.origin->value;
    }
    return of && page.of != *of ? fmt::format("stores {} into tensor '{}', which is not its output", text(page), t.name)
                                : std::string();
  }

  // Whole rows of a block are a block.
  static Page as_page_of_rows(Page page) {
    const std::uint64_t cols = page.box.cols;
    if (cols == 0 || page.elements() == 0 || page.elements() == page.box.elements()) return page;
    if (page.begin % cols != 0 || page.end % cols != 0) return page;
    page.box.row += page.begin / cols;
    page.box.rows = (page.end - page.begin) / cols;
    page.begin = 0;
    page.end = page.box.elements();
    return page;
  }

  bool fire(const Net::Actor& a, std::uint64_t f, const Store& store) {
    const Stage& stage = s_.p.stage(a.stage);
    const Tensor& t = s_.p.tensor(store.tensor);
    const Net::Use* from = nullptr;
    for (std::uint32_t u = a.first_use; u < a.first_use + a.uses && from == nullptr; ++u)
      if (net_->uses[u].slot != Net::nobody && net_->rates[net_->uses[u].rates].free.at(f) > 0) from = &net_->uses[u];
    if (from == nullptr) return fault(a, f, "stores a page of no port");
    Page page = cut(head(*from), at_phase(stage.ports[from->port].chunk, f));
    // Several stages may multiply for an operator that is no matmul: by its formula it is known which of them this is.
    if (page.kind == Page::Kind::sum && page.of >= operators_ && !settle(a, f, page, type_of(*from))) return false;
    if (page.kind != Page::Kind::sum) page.term = terms_.side_by_side(page.term, store.pattern.heads);
    const std::uint64_t phases = std::max<std::uint64_t>(store.chunks.size(), 1);
    const auto in_memory = box_of(store.pattern, t, s_.p.header.native_tile, a.instance, f / phases);
    if (!in_memory) return fault(a, f, "stores a page that lies outside of tensor '{}'", t.name);
    const auto box = in_heads(*in_memory, t, store.pattern.heads);
    if (!box)
      return fault(a, f, "stores {} of '{}', which lies in no one of {} heads", to_string(*in_memory), t.name,
                   store.pattern.heads);
    const Chunk chunk = store.chunks.empty() ? Chunk{} : store.chunks[f % phases];
    const ElementRange range = chunk_range(box->elements(), chunk.index, std::max(chunk.of, 1u));
    if (const Operator* op = mover_into(s_.p, t.operand, stage.origin)) {
      if (!is_whole(page)) return fault(a, f, "stores {} into '{}', and moves what it loads", text(page), t.name);
      const Whole whole = whole_shape(t);
      const std::string why =
          not_moved(*s_.p.operators, *op, OperandId{page.of}, {&page.box, &wholes_[page.whole], page.begin, page.end},
                    {&*box, &whole, range.begin, range.end});
      const bool as_it_lies = page.term == terms_.operand(OperandId{page.of}) && store.pattern.heads == 1;
      if (page.kind != Page::Kind::operand || !as_it_lies || !why.empty())
        return fault(a, f, "stores {} into '{}': {}", text(page), t.name, why);
      std::uint64_t& most = contributions[t.id];
      most = std::max<std::uint64_t>(most, 1);
      return true;
    }
    if (chunk.of <= 1) page = as_page_of_rows(page);
    if (page.kind == Page::Kind::folded ? page.elements() != range.end - range.begin
                                        : page.box != *box || page.begin != range.begin || page.end != range.end)
      return fault(a, f, "stores {} where '{}' holds {} elements [{}, {})", text(page), t.name, to_string(*box),
                   range.begin, range.end);
    std::uint64_t parts = 1;
    switch (page.kind) {
      case Page::Kind::zeros:
        return fault(a, f, "stores a page that nobody computed into '{}'", t.name);
      case Page::Kind::folded:
        break;
      case Page::Kind::operand:
        if (page.of != t.operand.value || !terms_.is(page.term, t.operand))
          return fault(a, f, "stores {} into tensor '{}'", text(page), t.name);
        break;
      case Page::Kind::value:
        if (page.set == 0 || page.of >= operators_) {
          if (const std::string wrong = not_due(page, stage, t); !wrong.empty()) return fault(a, f, "{}", wrong);
          if (page.set != 0) parts = sets_.products(page.set);
          break;
        }
        [[fallthrough]];  // a sum to which something was done when it was complete
      case Page::Kind::sum: {
        if (page.of == nobody || page.of >= k_of_.size())
          return fault(a, f, "stores {} into tensor '{}'", text(page), t.name);
        if (s_.p.operators && page.of < s_.p.operators->operators.size() &&
            s_.p.operators->operators[page.of].out != t.operand)
          return fault(a, f, "stores {} into tensor '{}', which is not its output", text(page), t.name);
        const std::string& wrong = sets_.fault(page.set, page.of, k_of_[page.of]);
        if (!wrong.empty()) return fault(a, f, "stores {} into '{}', but {}", text(page), t.name, wrong);
        parts = sets_.products(page.set);
        break;
      }
    }
    std::uint64_t& most = contributions[t.id];
    most = std::max(most, parts);
    return true;
  }

  // Matrices of the stack of extents `whole`.
  std::uint64_t matrices(std::uint32_t whole) const {
    std::uint64_t n = 1;
    for (std::size_t d = 0; d + 2 < wholes_[whole].size(); ++d) n = product(n, wholes_[whole][d]);
    return n;
  }

  static constexpr std::uint32_t nobody = 0xffffffff;

  const Subject& s_;
  Provenance& result_;
  const Section* section_ = nullptr;
  const Net* net_ = nullptr;
  Execution* execution_ = nullptr;
  Classes classes_;
  Contributions sets_;
  Terms terms_;
  std::uint32_t operators_ = 0;                                              // operator numbers lie below
  std::map<std::tuple<std::uint32_t, bool, TermId>, std::uint32_t> others_;  // operator, transposed, left: their number
  std::vector<Whole> wholes_;                                                // by number; 0: none
  std::map<Whole, std::uint32_t> whole_ids_;
  std::map<std::uint32_t, std::uint32_t> holds_;  // by operand of a state: what it holds, where appends changed it
  std::vector<TermId> joined_;                    // by actor: what the pages of its row were, before they were joined
  std::vector<std::uint64_t> base_;               // of each queue's cells in pages_, and their end
  std::vector<Page> pages_;
  std::vector<Page> held_;  // by actor: accumulator
  std::vector<std::uint64_t> run_begin_,
      run_end_;                      // by actor: contraction indices added since the last contribution was closed
  std::vector<std::uint64_t> k_of_;  // by products_of(): its contraction's extent
};

}  // namespace

Provenance reduction_completeness(const Subject& s) {
  Provenance result;
  if (!s.unreadable.empty()) {
    result.finding = unchecked("{}", s.unreadable);
    return result;
  }
  std::uint32_t chips = 0;
  for (const Group& g : s.p.placement->groups)
    for (const Site& site : g.sites) chips = std::max(chips, site.chip.value + 1);
  result.sent.assign(s.p.collectives.size(), std::vector<std::uint64_t>(std::min(chips, s.t.chips), 0));
  result.first_instance_macs.assign(s.p.stages.size(), 0);
  for (const Edge& e : s.p.edges) result.edge_bytes.emplace_back(e.to.size(), 0);
  Symbolic symbolic(s, result);
  for (const Section& section : s.p.sections) {
    result.finding = trips_are_alike(s, section);
    if (result.finding.status != ProofStatus::proved || !symbolic.run(section)) return result;
    symbolic.end_trips(section);
  }
  result.complete = true;
  result.contributions = std::move(symbolic.contributions);
  return result;
}

}  // namespace rdusim::certificate
