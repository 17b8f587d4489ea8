#include "compiler/ir/untimed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "compiler/ir/access_pattern.h"
#include "compiler/ir/clusters.h"
#include "compiler/ir/collective_order.h"
#include "compiler/ir/page_frames.h"
#include "compiler/ir/rates.h"
#include "compiler/ir/row_places.h"
#include "compiler/ir/sum_findings.h"
#include "compiler/ir/token_run.h"

namespace rdusim {
namespace {

using Index = TokenRun::Index;
constexpr Index none = no_box;  // no box

// What the pages of a run hold: follows it firing by firing.
class Contents {
 public:
  Contents(const SpatialProgram& p, SumFindings& findings, const std::vector<PageFrame>& frames, const TokenRun& run);

  // To the start of the run, which has been started.
  void start();
  // Before the run lets `actor` (and its joint) fire.
  void fire(Index actor);

 private:
  struct Held {  // by an actor
    CyclicCursor<Expr> body;
    PageContent value;         // Generic: of the firing before; MatmulTiles: the range that is being added up
    std::optional<SumId> sum;  // MatmulTiles: ranges that did not join
    std::int64_t k_begin = 0, k_end = 0;
  };
  struct Pages {  // of a channel, from number `first` on
    std::uint64_t first = 0;
    std::deque<PageContent> pages;
  };

  void fire_recv(const TokenRun::Actor& a);
  void fire_collective(const std::vector<Index>& members);
  const PageContent& page(Index channel, std::uint64_t number);
  void push(Index channel, const PageContent& content, std::uint32_t pages);
  PageContent front(const TokenRun::PortState& port);
  PageContent evaluate(const TokenRun::Actor& a, Held& held);
  PageContent fold(const TokenRun::Actor& a, Held& held);
  PageContent value(const TokenRun::Actor& a, Held& held);
  PageContent by_rows(const TokenRun::Actor& a, Held& held);
  PageContent mixed(const TokenRun::Actor& a, const std::string& what);
  PageContent gathered(const TokenRun::Actor& a, const Load& load);
  PageContent combine(const TokenRun::Actor& a, ExprOp op, const PageContent& left, const PageContent& right);
  PageContent not_a_sum(const TokenRun::Actor& a, PageContent content);
  void accumulate(const TokenRun::Actor& actor, Held& a);

  const SpatialProgram& p_;
  SumFindings& findings_;
  const std::vector<PageFrame>& frames_;  // by buffer
  const TokenRun& run_;
  std::vector<Held> held_;
  std::vector<Pages> pages_;
};

const Cyclic<Expr>& no_body() {
  static const Cyclic<Expr> none_at_all = {{1, {}}};
  return none_at_all;
}

CyclicCursor<Expr> first_body(const Stage& s) {
  const auto* generic = std::get_if<Generic>(&s.kind);
  return CyclicCursor<Expr>(generic != nullptr ? generic->bodies : no_body());
}

Contents::Contents(const SpatialProgram& p, SumFindings& findings, const std::vector<PageFrame>& frames,
                   const TokenRun& run)
    : p_(p), findings_(findings), frames_(frames), run_(run) {}

void Contents::start() {
  held_.clear();
  for (const TokenRun::Actor& a : run_.actors()) held_.push_back({first_body(*a.stage), {}, {}, 0, 0});
  pages_.resize(run_.channels().size());
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    pages_[i].first = 0;
    pages_[i].pages.assign(run_.channels()[i].pushed, PageContent{});
  }
}

// What has been freed is dropped when the buffer is next looked at.
const PageContent& Contents::page(Index channel, std::uint64_t number) {
  Pages& p = pages_[channel];
  const std::uint64_t freed = run_.channels()[channel].freed;
  for (; p.first < freed; ++p.first) p.pages.pop_front();
  return p.pages[number - p.first];
}

void Contents::push(Index channel, const PageContent& content, std::uint32_t pages) {
  const TokenRun::Channel& to = run_.channels()[channel];
  if (content.kind == PageContent::Kind::sum && pages > 0 && to.producer != TokenRun::none &&
      p_.buffer(to.buffer).kind != BufferKind::interm && !findings_.complete(content.source)) {
    const Stage& stage = *run_.actors()[to.producer].stage;
    findings_.fault(Code::RDU3046, stage.id,
                    fmt::format("'{}' pushes the partial sum {} into '{}', which is not Interm", stage.name,
                                findings_.sums.text(content.source), p_.buffer(to.buffer).name));
  }
  if (to.consumers.empty()) return;
  pages_[channel].pages.insert(pages_[channel].pages.end(), pages, content);
}

PageContent Contents::front(const TokenRun::PortState& port) {
  return part_of(page(port.channel, run_.channels()[port.channel].popped[port.slot]), port.chunk.value());
}

void Contents::fire_recv(const TokenRun::Actor& a) {
  const TokenRun::Link& link = run_.link_of(a);
  const PageContent content =
      part_of(page(link.channel, run_.channels()[link.channel].popped[link.slot]), link.edge->chunk);
  push(a.ports[0].channel, content, 1);
}

void Contents::fire(Index i) {
  const TokenRun::Actor& a = run_.actors()[i];
  const std::vector<Index>* const joint = run_.joint_of(i);
  if (std::holds_alternative<Recv>(a.stage->kind)) {
    if (joint == nullptr) return fire_recv(a);
    for (const Index member : *joint) fire_recv(run_.actors()[member]);
    return;
  }
  if (joint != nullptr) return fire_collective(*joint);
  Held& held = held_[i];
  if (!run_.moves(a)) {
    held.body.advance();
    return;
  }
  PageContent result;
  if (const auto* load = std::get_if<Load>(&a.stage->kind); load != nullptr && load->indexed) {
    result = gathered(a, *load);
  } else if (load != nullptr) {
    const Index box =
        findings_.box_of(load->pattern, p_.tensor(load->tensor), page_at(load->pattern, a.instance, a.fired));
    result = {PageContent::Kind::data, load->tensor.value, box, 0, findings_.size(box)};
  } else if (const auto* store = std::get_if<Store>(&a.stage->kind)) {
    const Tensor& tensor = p_.tensor(store->tensor);
    const std::uint64_t phases = firings_per_page(*a.stage);
    const Index box = findings_.box_of(store->pattern, tensor, page_at(store->pattern, a.instance, a.fired / phases));
    const Chunk chunk = store->chunks.empty() ? Chunk{} : store->chunks[a.fired % phases];
    for (const TokenRun::PortState& port : a.ports)
      if (port.pop.value() > 0) findings_.check_stored(*a.stage, tensor, box, chunk, front(port));
  } else if (std::holds_alternative<MatmulTiles>(a.stage->kind)) {
    accumulate(a, held);
    result = held.value;
  } else {
    result = evaluate(a, held);
  }
  for (std::size_t n = 0; n < a.ports.size(); ++n)
    if (a.stage->ports[n].direction == Direction::output) push(a.ports[n].channel, result, a.ports[n].push.value());
  held.body.advance();
}

// The matrix of a stack that a page lies in; nothing where it lies in several.
std::optional<std::int64_t> matrix_of(const ElementBox& box, const PageFrame& frame) {
  std::int64_t matrix = 0;
  for (std::size_t d = 0; d + 2 < box.size(); ++d) {
    if (box[d].size() != 1) return std::nullopt;
    matrix = matrix * frame[d] + box[d].begin;
  }
  return matrix;
}

// Why two pages are not of matrices that a stack of products multiplies with each other: each of the right operand
// serves as many consecutive ones of the left as there are more of them. Empty: they are.
std::string mixed_matrices(const ElementBox& left, const PageFrame& whole_left, const ElementBox& right,
                           const PageFrame& whole_right) {
  const auto count = [](const PageFrame& f) {
    std::int64_t n = 1;
    for (std::size_t d = 0; d + 2 < f.size(); ++d) n *= f[d];
    return n;
  };
  const std::int64_t lefts = count(whole_left), rights = count(whole_right);
  if (rights == 0 || lefts % rights != 0) return fmt::format("a stack of {} matrices by one of {}", lefts, rights);
  const auto i = matrix_of(left, whole_left), j = matrix_of(right, whole_right);
  if (!i || !j) return "a page of several matrices of a stack";
  if (*j != *i / (lefts / rights)) return fmt::format("matrix {} of {} by matrix {} of {}", *i, lefts, *j, rights);
  return {};
}

// out += a b for the pages in front.
void Contents::accumulate(const TokenRun::Actor& actor, Held& a) {
  const auto& kind = std::get<MatmulTiles>(actor.stage->kind);
  const OperatorId products = findings_.products_of(*actor.stage);
  const PageContent left = front(actor.ports[0]);
  const PageContent right = front(actor.ports[1]);
  const bool first = actor.fired % kind.k_pages == 0;
  bool spoilt = !first && a.value.kind == PageContent::Kind::spoilt;
  for (const PageContent* operand : {&left, &right}) {
    spoilt = spoilt || operand->kind == PageContent::Kind::spoilt;
    if (operand->kind != PageContent::Kind::sum || findings_.complete(operand->source)) continue;
    findings_.fault(
        Code::RDU3025, actor.stage->id,
        fmt::format("'{}' multiplies a partial sum: {}", actor.stage->name, findings_.sums.text(operand->source)));
    spoilt = true;
  }
  if (left.box == none || right.box == none) {
    if (first) a.value = {PageContent::Kind::computed, actor.stage->id.value, none, 0, 0};
    return;
  }
  const ElementBox& l = findings_.box(left.box);
  const ElementBox& r = findings_.box(right.box);
  const AxisRange k = l.back();
  const AxisRange k_right = kind.transposed ? r.back() : r[r.size() - 2];
  if (k != k_right) {
    findings_.fault(Code::RDU3024, actor.stage->id,
                    fmt::format("'{}' multiplies contraction [{},{}) of its left operand with [{},{}) of its right",
                                actor.stage->name, k.begin, k.end, k_right.begin, k_right.end));
    spoilt = true;
  }
  const PageFrame& whole_left = frames_[actor.stage->ports[0].buffer.value];
  const PageFrame& whole_right = frames_[actor.stage->ports[1].buffer.value];
  if (!whole_left.empty() && !whole_right.empty()) {
    if (const std::string why = mixed_matrices(l, whole_left, r, whole_right); !why.empty()) {
      findings_.fault(Code::RDU3024, actor.stage->id, fmt::format("'{}' multiplies {}", actor.stage->name, why));
      spoilt = true;
    }
    findings_.contraction(products, kind.transposed ? whole_right.back() : whole_right[whole_right.size() - 2]);
  }
  ElementBox out(l.begin(), l.end() - 1);
  out.push_back(kind.transposed ? r[r.size() - 2] : r.back());
  const Index box = findings_.box_id(out);
  if (first) {
    a.sum.reset();
    a.value = {PageContent::Kind::sum, 0, box, 0, findings_.size(box)};
    a.k_begin = k.begin;
    a.k_end = k.end;
  } else if (!spoilt && a.value.box != box) {
    PageContent here = a.value;
    here.box = box;
    here.end = findings_.size(box);
    findings_.fault(Code::RDU3024, actor.stage->id,
                    fmt::format("'{}' adds products of {} to products of {}", actor.stage->name, findings_.place(here),
                                findings_.place(a.value)));
    spoilt = true;
  }
  if (spoilt) a.value.kind = PageContent::Kind::spoilt;
  const auto close = [&] {
    const SumLeaf leaf{SumLeaf::Kind::partial, products, p_.chip_of(*actor.stage), a.k_begin, a.k_end, {}};
    findings_.computes(leaf, actor.stage->id);
    const SumId id = findings_.sums.leaf(leaf);
    a.sum = a.sum ? findings_.sums.add(*a.sum, id) : id;
  };
  if (!first) {
    if (k.begin == a.k_end) {
      a.k_end = k.end;
    } else {
      close();
      a.k_begin = k.begin;
      a.k_end = k.end;
    }
  }
  if (actor.fired % kind.k_pages == kind.k_pages - 1) {
    close();
    a.value.source = *a.sum;
  }
}

PageContent Contents::not_a_sum(const TokenRun::Actor& a, PageContent content) {
  using Kind = PageContent::Kind;
  if (content.kind == Kind::sum && !findings_.complete(content.source)) {
    findings_.fault(Code::RDU3025, a.stage->id,
                    fmt::format("'{}' does more than add to a partial sum: {}", a.stage->name,
                                findings_.sums.text(content.source)));
    content.kind = Kind::spoilt;
  }
  if (content.kind == Kind::sum || content.kind == Kind::data) {
    content.kind = Kind::computed;
    content.source = a.stage->id.value;
  }
  return content;
}

PageContent Contents::combine(const TokenRun::Actor& a, ExprOp op, const PageContent& left, const PageContent& right) {
  using Kind = PageContent::Kind;
  if (left.kind == Kind::spoilt) return left;
  if (right.kind == Kind::spoilt) return right;
  if (left.box != none && right.box != none &&
      (left.box != right.box || left.begin != right.begin || left.end != right.end)) {
    findings_.fault(
        Code::RDU3024, a.stage->id,
        fmt::format("'{}' combines {} with {}", a.stage->name, findings_.place(left), findings_.place(right)));
    PageContent out = left;
    out.kind = Kind::spoilt;
    return out;
  }
  if (op != ExprOp::add) {
    const PageContent l = not_a_sum(a, left);
    const PageContent r = not_a_sum(a, right);
    if (l.kind == Kind::spoilt || r.kind == Kind::spoilt) return l.kind == Kind::spoilt ? l : r;
    return l.box != none ? l : r;
  }
  if (left.kind == Kind::nothing) return right;
  if (right.kind == Kind::nothing) return left;
  if (left.kind != Kind::sum && right.kind != Kind::sum) {
    if (left.box == none && right.box == none) return left;
    PageContent out = left.box != none ? left : right;
    out.kind = Kind::computed;
    out.source = a.stage->id.value;
    return out;
  }
  const auto as_sum = [&](const PageContent& c) -> SumId {
    switch (c.kind) {
      case Kind::sum:
        return c.source;
      case Kind::data:
        return findings_.sums.leaf({SumLeaf::Kind::addend,
                                    {},
                                    {},
                                    0,
                                    0,
                                    fmt::format("operand {}", p_.tensor(TensorId{c.source}).operand.value)});
      case Kind::computed:
        return findings_.sums.leaf(
            {SumLeaf::Kind::addend, {}, {}, 0, 0, fmt::format("result of '{}'", p_.stage(StageId{c.source}).name)});
      default:
        return findings_.sums.leaf({SumLeaf::Kind::addend, {}, {}, 0, 0, "constant"});
    }
  };
  PageContent out = left.box != none ? left : right;
  out.kind = Kind::sum;
  out.source = findings_.sums.add(as_sum(left), as_sum(right));
  return out;
}

// One more item of a fold: what comes of it is whatever it is meant to be, but its items must be whole and alike.
PageContent Contents::fold(const TokenRun::Actor& a, Held& held) {
  using Kind = PageContent::Kind;
  PageContent out{Kind::computed, a.stage->id.value, none, 0, held.value.kind == Kind::computed ? held.value.end : 0};
  for (const ExprNode& node : held.body.value()) {
    if (node.op != ExprOp::operand) continue;
    const PageContent item = front(a.ports[node.index]);
    if (item.kind == Kind::spoilt) return held.value = item;
    if (item.kind == Kind::sum) {
      findings_.fault(Code::RDU3025, a.stage->id,
                      fmt::format("'{}' folds sums ({}); this version folds what is loaded", a.stage->name,
                                  findings_.sums.text(item.source)));
      out.kind = Kind::spoilt;
    }
    if (item.kind != Kind::data) continue;
    if (out.end != 0 && item.end - item.begin != out.end) {
      findings_.fault(
          Code::RDU3024, a.stage->id,
          fmt::format("'{}' folds {} into items of {} elements", a.stage->name, findings_.place(item), out.end));
      out.kind = Kind::spoilt;
    }
    out.end = item.end - item.begin;
  }
  return held.value = out;
}

PageContent Contents::mixed(const TokenRun::Actor& a, const std::string& what) {
  findings_.fault(Code::RDU3044, a.stage->id,
                  fmt::format("'{}' takes pages that do not belong together: {}", a.stage->name, what));
  return {PageContent::Kind::spoilt, 0, none, 0, 0};
}

// Rows of a table, where their indices lie.
PageContent Contents::gathered(const TokenRun::Actor& a, const Load& load) {
  const PageContent index = not_a_sum(a, front(a.ports[0]));
  if (index.kind == PageContent::Kind::spoilt) return index;
  ElementBox box =
      findings_.box(findings_.box_of(load.pattern, p_.tensor(load.tensor), page_at(load.pattern, a.instance, a.fired)));
  const auto count = static_cast<std::int64_t>(index.end - index.begin);
  if (index.box == none || findings_.box(index.box).size() != 2 || findings_.box(index.box)[0].size() != 1 ||
      box[0].size() != count)
    return mixed(a, fmt::format("{} indices for {} rows", count, box[0].size()));
  const std::int64_t first = findings_.box(index.box)[1].begin + static_cast<std::int64_t>(index.begin);
  box[0] = {first, first + count};
  const Index id = findings_.box_id(box);
  return {PageContent::Kind::computed, a.stage->id.value, id, 0, findings_.size(id)};
}

// An element-wise body that does more than add: its operands are whole, and of one place.
PageContent Contents::value(const TokenRun::Actor& a, Held& held) {
  using Kind = PageContent::Kind;
  PageContent out{Kind::computed, a.stage->id.value, none, 0, 0};
  for (const ExprNode& node : held.body.value()) {
    const bool taken = node.op == ExprOp::operand;
    if (!taken && node.op != ExprOp::accumulator) continue;
    const PageContent page = not_a_sum(a, taken ? front(a.ports[node.index]) : held.value);
    if (page.kind == Kind::spoilt) return held.value = page;
    if (page.box == none) continue;
    if (out.box != none && (out.box != page.box || out.begin != page.begin || out.end != page.end))
      return held.value = mixed(a, fmt::format("{} and {}", findings_.place(out), findings_.place(page)));
    out.box = page.box;
    out.begin = page.begin;
    out.end = page.end;
  }
  return held.value = out;
}

// Rows and columns; of a row that is joined, every page in turn.
PageContent Contents::by_rows(const TokenRun::Actor& a, Held& held) {
  using Kind = PageContent::Kind;
  const auto& generic = std::get<Generic>(a.stage->kind);
  std::vector<TakenPage> taken;
  std::vector<const PageFrame*> frames;
  for (const Port& port : a.stage->ports)
    if (port.direction == Direction::input) frames.push_back(&frames_[port.buffer.value]);
  for (const ExprNode& node : held.body.value()) {
    if (node.op != ExprOp::operand) continue;
    const PageContent page = not_a_sum(a, front(a.ports[node.index]));
    if (page.kind == Kind::spoilt) return held.value = page;
    const std::string& name = p_.buffer(a.stage->ports[node.index].buffer).name;
    if (page.box == none || frames[node.index]->empty())
      return held.value = mixed(a, fmt::format("what '{}' holds has no place", name));
    const AffineMap& map = generic.maps[node.index];
    taken.push_back(
        {&findings_.box(page.box), frames[node.index], map[0][0] != 0, map[1][1] != 0, fmt::format("'{}'", name)});
  }
  const PageFrame frame = row_frame(frames);
  const RowPlace place = generic.shifted ? shifted_place(taken) : row_place(taken, frame);
  if (!place.box) return held.value = mixed(a, place.fault);
  ElementBox box = *place.box;
  if (joins_rows(generic)) {
    const std::uint64_t pages = cycle_length(generic.bodies), at = a.fired % pages;
    const AxisRange cols = box.back();
    box.back() = {0, 1};
    const bool goes_on =
        at == 0 ? cols.begin == 0
                : held.value.kind == Kind::computed && cols.begin == held.k_end && findings_.box(held.value.box) == box;
    if (!goes_on || (at + 1 == pages && cols.end != frame.back()))
      return held.value = mixed(a, fmt::format("page {} of {} of a row of {} columns has columns [{},{})", at, pages,
                                               frame.back(), cols.begin, cols.end));
    held.k_end = cols.end;
  }
  const Index id = findings_.box_id(box);
  return held.value = {Kind::computed, a.stage->id.value, id, 0, findings_.size(id)};
}

PageContent Contents::evaluate(const TokenRun::Actor& a, Held& held) {
  const auto& generic = std::get<Generic>(a.stage->kind);
  if (folds_items(generic)) return fold(a, held);
  if (by_row(generic)) return by_rows(a, held);
  if (makes_values(generic)) return value(a, held);
  std::vector<PageContent> stack;
  for (const ExprNode& node : held.body.value()) {
    switch (node.op) {
      case ExprOp::operand:
        stack.push_back(front(a.ports[node.index]));
        break;
      case ExprOp::accumulator:
        stack.push_back(held.value);
        break;
      case ExprOp::constant: {
        PageContent c;
        if (node.number != 0) c.kind = PageContent::Kind::constant;
        stack.push_back(c);
        break;
      }
      case ExprOp::negate:
      case ExprOp::exponential:
      case ExprOp::square_root:
      case ExprOp::tanh:
      case ExprOp::erf:
        stack.back() = not_a_sum(a, stack.back());
        break;
      default: {
        const PageContent right = stack.back();
        stack.pop_back();
        stack.back() = combine(a, node.op, stack.back(), right);
      }
    }
  }
  held.value = stack.back();
  return held.value;
}

// All members take a page each; what each output gets follows from the collective's kind.
void Contents::fire_collective(const std::vector<Index>& members) {
  using Kind = PageContent::Kind;
  const TokenRun::Actor& first = run_.actors()[members[0]];
  const auto id = std::get<CollectiveStage>(first.stage->kind).collective;
  const Collective& collective = p_.collectives[id.value];
  std::vector<std::optional<PageContent>> contributed(collective.members.size());
  for (const Index i : members) {
    const TokenRun::Actor& a = run_.actors()[i];
    const auto at = std::find(collective.members.begin(), collective.members.end(), p_.chip_of(*a.stage));
    if (at != collective.members.end() && a.stage->ports[0].direction == Direction::input)
      contributed[static_cast<std::size_t>(at - collective.members.begin())] = front(a.ports[0]);
  }
  const bool reduces = collective.kind == CollectiveKind::reduce || collective.kind == CollectiveKind::all_reduce ||
                       collective.kind == CollectiveKind::reduce_scatter;
  const bool scatters =
      collective.kind == CollectiveKind::reduce_scatter || collective.kind == CollectiveKind::all_to_all;
  PageContent sum;
  if (reduces)
    for (const auto& c : contributed)
      if (c) sum = combine(first, ExprOp::add, sum, *c);
  for (const Index i : members) {
    const TokenRun::Actor& a = run_.actors()[i];
    for (std::size_t n = 0; n < a.ports.size(); ++n) {
      if (a.stage->ports[n].direction == Direction::input) continue;
      PageContent out = sum;
      if (collective.kind == CollectiveKind::broadcast)
        out = contributed[0].value_or(PageContent{Kind::computed, a.stage->id.value, none, 0, 0});
      else if (!reduces)
        out = n - 1 < contributed.size() && contributed[n - 1]
                  ? *contributed[n - 1]
                  : PageContent{Kind::computed, a.stage->id.value, none, 0, 0};
      const auto at = std::find(collective.members.begin(), collective.members.end(), p_.chip_of(*a.stage));
      if (scatters && at != collective.members.end()) {
        const auto place = static_cast<std::size_t>(at - collective.members.begin());
        out = part_of(out, {parts_kept(collective.members)[place], static_cast<std::uint32_t>(contributed.size())});
      }
      push(a.ports[n].channel, out, a.ports[n].push.value());
    }
  }
}

}  // namespace

UntimedRun run_untimed(const SpatialProgram& p, std::uint32_t native_tile, const UntimedLimits& limits) {
  UntimedRun out;
  if (p.stages.empty()) return out;
  SumFindings findings(p, native_tile);
  const std::vector<PageFrame> frames = page_frames(p);
  const std::vector<Cluster> clusters = clusters_of(p);

  const auto times = [](std::uint64_t a, std::uint64_t b) {
    return __builtin_mul_overflow(a, b, &a) ? ~std::uint64_t{0} : a;
  };
  const auto plus = [](std::uint64_t a, std::uint64_t b) {
    return __builtin_add_overflow(a, b, &a) ? ~std::uint64_t{0} : a;
  };
  std::vector<std::uint64_t> trip_steps;  // of one run
  std::uint64_t everything = 0;
  for (const Cluster& c : clusters) {
    trip_steps.push_back(steps_of(p, c));
    everything = plus(everything, times(trip_steps.back(), c.instances));
  }
  const bool all = everything <= limits.steps;
  std::uint64_t left = plus(times(limits.steps, 4), times(limits.steps_a_stage, p.stages.size()));

  for (std::size_t n = 0; n < clusters.size(); ++n) {
    const Cluster& c = clusters[n];
    const std::uint64_t parts = all ? 1 : c.repeats;
    const std::uint64_t steps = trip_steps[n] / parts;
    const std::uint64_t most = std::min(left, plus(limits.steps, times(limits.steps_a_stage, c.stages.size())));
    if (steps > most) {
      if (!out.undecided) {
        out.undecided = c.stages.front();
        out.undecided_steps = steps;
        out.limit = most;
      }
      continue;
    }
    TokenRun run(p, c);
    Contents contents(p, findings, frames, run);
    for (std::size_t i = 0; i < c.instances; ++i) {
      if (!all && i != 0 && (i + 1 != c.instances || steps > left)) continue;
      left -= std::min(left, steps);
      run.start(parts, c.one_to_one ? std::optional(static_cast<Index>(i)) : std::nullopt);
      contents.start();
      while (const auto actor = run.next()) {
        contents.fire(*actor);
        run.take(*actor);
      }
      if (run.finished()) continue;
      run.explain(out);
      // Instances have the same rates: what stops one stops all.
      out.stuck += run.unfinished() * (c.instances - 1);
      break;
    }
  }
  if (out.stuck == 0 && !out.undecided) out.sums = findings.faults();
  return out;
}

}  // namespace rdusim
