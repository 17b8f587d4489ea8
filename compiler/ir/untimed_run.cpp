#include "compiler/ir/untimed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "compiler/ir/access_pattern.h"
#include "compiler/ir/partial_sums.h"
#include "compiler/ir/rates.h"

namespace rdusim {
namespace {

using Index = std::uint32_t;
constexpr Index none = std::numeric_limits<Index>::max();

// What a page holds, as far as sums are concerned.
struct PageContent {
  enum class Kind : std::uint8_t {
    nothing,   // zeros: a buffer's initial pages, a constant of 0
    constant,  // one number everywhere
    data,      // elements of a tensor
    sum,       // partial sums that were added
    computed,  // made of whole values by something that is not a sum
    spoilt,    // a fault has been reported; what follows from it is not
  };
  Kind kind = Kind::nothing;
  Index source = 0;         // data: tensor; sum: SumId; computed: stage
  Index box = none;         // of the whole operand; none: any (nothing, constant)
  std::uint64_t begin = 0;  // the row-major elements of the box that are here: [begin, end)
  std::uint64_t end = 0;
};

// ---- which instances run together
// -----------------------------------------------------------------------------------------

class Partition {
 public:
  explicit Partition(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), Index{0}); }
  Index find(Index i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(Index a, Index b) {
    a = find(a);
    b = find(b);
    if (a != b) parent_[std::max(a, b)] = std::min(a, b);  // the least stands for all
  }

 private:
  std::vector<Index> parent_;
};

struct StageInstance {
  StageId stage;
  Index instance = 0;
};

// Stages that hand-offs join. All one-to-one: instance i of each is a run of its own. Otherwise `runs` lists them.
struct Cluster {
  std::vector<StageId> stages;
  bool one_to_one = true;
  std::size_t instances = 0;  // one_to_one: runs
  std::vector<std::vector<StageInstance>> runs;
};

std::vector<Cluster> clusters_of(const SpatialProgram& p) {
  Partition stages(p.stages.size());
  std::vector<Index> user_of_buffer(p.buffers.size(), none);
  std::map<std::uint32_t, Index> stage_of_collective;
  for (const Stage& s : p.stages) {
    for (const Port& port : s.ports) {
      Index& user = user_of_buffer[port.buffer.value];
      if (user == none) user = s.id.value;
      stages.join(user, s.id.value);
    }
    if (const auto* c = std::get_if<CollectiveStage>(&s.kind)) {
      const auto at = stage_of_collective.try_emplace(c->collective.value, s.id.value).first;
      stages.join(at->second, s.id.value);
    }
  }
  for (const Edge& e : p.edges)
    for (StageId to : e.to) stages.join(e.from.value, to.value);

  std::vector<Cluster> clusters;
  std::vector<Index> cluster_of(p.stages.size(), none);
  for (const Stage& s : p.stages) {
    const Index root = stages.find(s.id.value);
    if (cluster_of[root] == none) {
      cluster_of[root] = static_cast<Index>(clusters.size());
      clusters.emplace_back();
    }
    cluster_of[s.id.value] = cluster_of[root];
    Cluster& c = clusters[cluster_of[root]];
    c.stages.push_back(s.id);
    const std::size_t instances = p.sites_of(s).sites.size();
    if (c.stages.size() == 1) c.instances = instances;
    c.one_to_one = c.one_to_one && c.instances == instances;
  }
  for (const Edge& e : p.edges)
    if (!is_local(e.handshake) && e.map.kind != PageMapKind::one_to_one)
      clusters[cluster_of[e.from.value]].one_to_one = false;

  for (Cluster& c : clusters) {
    if (c.one_to_one) continue;
    std::map<std::uint32_t, Index> base;
    Index count = 0;
    for (StageId s : c.stages) {
      base[s.value] = count;
      count += static_cast<Index>(p.sites_of(p.stage(s)).sites.size());
    }
    Partition instances(count);
    std::vector<bool> seen(p.edges.size(), false);
    std::map<std::uint32_t, Index> user;
    for (StageId id : c.stages) {
      const Stage& s = p.stage(id);
      const auto sites = static_cast<Index>(p.sites_of(s).sites.size());
      for (const Port& port : s.ports) {
        const auto at = user.try_emplace(port.buffer.value, base[id.value]).first;
        for (Index i = 0; i < sites; ++i) instances.join(at->second + i, base[id.value] + i);
      }
    }
    for (const Edge& e : p.edges) {
      if (is_local(e.handshake) || cluster_of[e.from.value] != static_cast<Index>(&c - clusters.data())) continue;
      for (StageId to : e.to) {
        const auto senders = senders_by_receiver(e, p.sites_of(p.stage(to)).sites.size());
        for (Index r = 0; r < senders.size(); ++r)
          for (Index s : senders[r]) instances.join(base[e.from.value] + s, base[to.value] + r);
      }
    }
    std::map<Index, std::size_t> run_of;
    for (StageId id : c.stages)
      for (Index i = 0; i < p.sites_of(p.stage(id)).sites.size(); ++i) {
        const auto [at, fresh] = run_of.try_emplace(instances.find(base[id.value] + i), c.runs.size());
        if (fresh) c.runs.emplace_back();
        c.runs[at->second].push_back({id, i});
      }
  }
  return clusters;
}

// Firings of a trip's repeating part: all firings divided by how often every stage's phases come round together.
std::uint64_t repeats(const SpatialProgram& p, const Cluster& c) {
  if (!c.one_to_one) return 1;
  std::uint64_t times = 0;
  for (StageId id : c.stages) {
    const Stage& s = p.stage(id);
    if (!counts_alike(p, s)) return 1;
    const auto period = hyperperiod(s);
    if (!period || s.firings % *period != 0) return 1;
    times = std::gcd(times, s.firings / *period);
  }
  return std::max<std::uint64_t>(times, 1);
}

// ---- what a run knows of the whole program
// ---------------------------------------------------------------------------------

// Boxes, sums and what is found wrong: shared by all runs.
class Findings {
 public:
  Findings(const SpatialProgram& p, std::uint32_t native_tile) : p_(p), native_tile_(native_tile) {
    for (const SummationTree& tree : p.trees)
      trees_[tree.op.value].push_back({sums.of_tree(tree), tree.chunk, tree.chunks, tree.id});
    if (p.operators)
      for (const Operator& op : p.operators->operators) {
        writer_of_operand_[op.out.value] = op.id;
        if (!op.in.empty() && !p.operators->operand(op.in[0]).shape.empty())
          contraction_[op.id.value] = p.operators->operand(op.in[0]).shape.back();
      }
  }

  Index box_id(const ElementBox& box) {
    const auto [at, fresh] = box_ids_.try_emplace(box, static_cast<Index>(boxes_.size()));
    if (fresh) {
      boxes_.push_back(box);
      sizes_.push_back(elements(box));
    }
    return at->second;
  }
  const ElementBox& box(Index id) const { return boxes_[id]; }
  std::uint64_t size(Index id) const { return sizes_[id]; }

  // The place of a movable page of `tensor`.
  Index box_of(const Tensor& tensor, const TileBox& page) {
    ElementBox box;
    if (tensor.shape.size() == 1) box.push_back({0, 1});
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) box.push_back(elements_of(tensor, page, d, native_tile_));
    return box_id(box);
  }

  void contraction(OperatorId op, std::int64_t k) { contraction_.try_emplace(op.value, k); }
  void computes(OperatorId op, const SumLeaf& leaf, StageId stage) {
    computed_by_[op.value].try_emplace({leaf.k_begin, leaf.k_end, leaf.chip.value}, stage);
  }

  void fault(Code code, StageId stage, std::string message) {
    if (seen_.insert({code, stage.value}).second) faults_.push_back({code, stage, std::move(message), {}});
  }

  // Every operator's partials in `sum` are there exactly once, as far as is known.
  bool complete(SumId sum) {
    const auto known = complete_.find(sum);
    if (known != complete_.end()) return known->second;
    const std::vector<SumLeaf> leaves = sums.leaves(sum);
    std::set<std::uint32_t> ops;
    bool ok = true;
    for (const SumLeaf& leaf : leaves)
      if (leaf.kind == SumLeaf::Kind::partial && ops.insert(leaf.op.value).second)
        ok = ok && gaps(leaves, leaf.op, contraction_of(leaf.op)).empty();
    ok = ok && !repeated_addend(leaves);
    complete_[sum] = ok;
    return ok;
  }

  void check_stored(const Stage& stage, const Tensor& tensor, Index page, Chunk chunk, const PageContent& content);

  std::vector<SumFault> faults() {
    for (const auto& [op, trees] : trees_)
      for (const Tree& tree : trees)
        if (!tree.used && stored_ops_.contains(op))
          fault_without_stage(Code::RDU3032,
                              fmt::format("summation tree {} (chunk {} of {}): no store receives the sum {}",
                                          tree.id.value, tree.chunk, tree.chunks, sums.text(tree.sum)),
                              *stored_ops_.find(op));
    std::stable_sort(faults_.begin(), faults_.end(), [](const SumFault& a, const SumFault& b) {
      return std::pair(a.code, a.stage) < std::pair(b.code, b.stage);
    });
    return std::move(faults_);
  }

  std::string place(const PageContent& c) const {
    if (c.box == none) return "anywhere";
    std::string text;
    for (const AxisRange& axis : boxes_[c.box]) text += fmt::format("[{},{})", axis.begin, axis.end);
    if (c.begin != 0 || c.end != sizes_[c.box]) text += fmt::format(", elements [{},{}) of it", c.begin, c.end);
    return text;
  }

  SumTable sums;

 private:
  struct Tree {
    SumId sum;
    std::uint32_t chunk;
    std::uint32_t chunks;
    SummationTreeId id;
    bool used = false;
  };
  struct StoredOp {
    std::uint32_t op;
    StageId stage;
    friend bool operator<(const StoredOp& a, const StoredOp& b) { return a.op < b.op; }
    friend bool operator<(const StoredOp& a, std::uint32_t b) { return a.op < b; }
    friend bool operator<(std::uint32_t a, const StoredOp& b) { return a < b.op; }
  };

  std::int64_t contraction_of(OperatorId op) const {
    const auto at = contraction_.find(op.value);
    return at == contraction_.end() ? 0 : at->second;
  }
  static bool repeated_addend(const std::vector<SumLeaf>& leaves) {
    std::set<std::string> seen;
    for (const SumLeaf& leaf : leaves)
      if (leaf.kind == SumLeaf::Kind::addend && !seen.insert(leaf.addend).second) return true;
    return false;
  }
  void fault_without_stage(Code code, std::string message, const StoredOp& at) {
    fault(code, at.stage, std::move(message));
  }
  void check_order(const Stage& stage, const PageContent& content, OperatorId op);
  std::string incomplete_text(const std::vector<SumGap>& gaps) const;

  const SpatialProgram& p_;
  std::uint32_t native_tile_;
  std::map<ElementBox, Index> box_ids_;
  std::vector<ElementBox> boxes_;
  std::vector<std::uint64_t> sizes_;
  std::map<std::uint32_t, std::int64_t> contraction_;  // by operator
  std::map<std::uint32_t, OperatorId> writer_of_operand_;
  std::map<std::uint32_t, std::map<std::tuple<std::int64_t, std::int64_t, std::uint32_t>, StageId>> computed_by_;
  std::map<std::uint32_t, std::vector<Tree>> trees_;  // by operator
  std::set<StoredOp, std::less<>> stored_ops_;
  std::map<SumId, bool> complete_;
  std::set<std::pair<Code, std::uint32_t>> seen_;
  std::vector<SumFault> faults_;
};

std::string Findings::incomplete_text(const std::vector<SumGap>& list) const {
  constexpr std::size_t most = 4;
  std::string text;
  for (std::size_t i = 0; i < list.size() && i < most; ++i) {
    const SumGap& g = list[i];
    text += i == 0 ? "" : "; ";
    if (g.times == 0) {
      text += fmt::format("contraction [{},{}) is missing", g.k_begin, g.k_end);
    } else {
      text += fmt::format("contraction [{},{}) is added {} times, by", g.k_begin, g.k_end, g.times);
      for (ChipId chip : g.chips) text += fmt::format(" chip {}", chip.value);
    }
  }
  if (list.size() > most) text += fmt::format("; and {} more", list.size() - most);
  return text;
}

void Findings::check_stored(const Stage& stage, const Tensor& tensor, Index page, Chunk chunk,
                            const PageContent& content) {
  std::optional<OperatorId> writer;
  if (const auto at = writer_of_operand_.find(tensor.operand.value); at != writer_of_operand_.end())
    writer = at->second;
  if (content.kind != PageContent::Kind::sum) {
    // What was computed from whole sums is one's own affair; a copy of an operand is not an operator's result.
    if (writer && content.kind != PageContent::Kind::computed && content.kind != PageContent::Kind::spoilt)
      fault(Code::RDU3024, stage.id,
            fmt::format("'{}' stores pages into '{}' that hold no partial sum of '{}'", stage.name, tensor.name,
                        p_.operators->operators[writer->value].name));
    return;
  }
  const ElementRange part = chunk_range(sizes_[page], chunk.index, chunk.of);
  if (content.box != page || content.begin != part.begin || content.end != part.end) {
    PageContent due = content;
    due.box = page;
    due.begin = part.begin;
    due.end = part.end;
    fault(Code::RDU3024, stage.id,
          fmt::format("'{}' stores the sum of {} where '{}' has {}", stage.name, place(content), tensor.name,
                      place(due)));
    return;
  }
  const std::vector<SumLeaf> leaves = complete(content.source) ? std::vector<SumLeaf>{} : sums.leaves(content.source);
  if (!leaves.empty()) {
    std::vector<SumGap> wrong;
    OperatorId op;
    for (const SumLeaf& leaf : leaves) {
      if (leaf.kind != SumLeaf::Kind::partial) continue;
      wrong = gaps(leaves, leaf.op, contraction_of(leaf.op));
      op = leaf.op;
      if (!wrong.empty()) break;
    }
    if (wrong.empty()) {
      fault(Code::RDU3024, stage.id,
            fmt::format("'{}' stores a sum to which an addend was added twice: {}", stage.name,
                        sums.text(content.source)));
      return;
    }
    if (!seen_.insert({Code::RDU3024, stage.id.value}).second) return;
    SumFault f{Code::RDU3024,
               stage.id,
               fmt::format("'{}' stores an incomplete sum into '{}': of the contraction of {}, {}", stage.name,
                           tensor.name, contraction_of(op), incomplete_text(wrong)),
               {}};
    for (const auto& [range, computer] : computed_by_[op.value]) {
      if (f.notes.size() == 4) break;
      const auto [begin, end, chip] = range;
      for (const SumGap& g : wrong)
        if (begin < g.k_end && g.k_begin < end) {
          f.notes.push_back({fmt::format("stage '{}'", p_.stage(computer).name),
                             fmt::format("chip {} computes [{},{})", chip, begin, end)});
          break;
        }
    }
    faults_.push_back(std::move(f));
    return;
  }
  OperatorId op;
  bool several = false;
  bool first = true;
  for (const SumLeaf& leaf : sums.leaves(content.source)) {
    if (leaf.kind != SumLeaf::Kind::partial) {
      several = true;
    } else if (first) {
      op = leaf.op;
      first = false;
    } else if (leaf.op != op) {
      several = true;
    }
  }
  if (first) return;
  if (writer && !several && op != *writer) {
    fault(Code::RDU3024, stage.id,
          fmt::format("'{}' stores into '{}' a sum of another operator", stage.name, tensor.name));
    return;
  }
  if (!several) check_order(stage, content, op);
}

void Findings::check_order(const Stage& stage, const PageContent& content, OperatorId op) {
  const auto at = trees_.find(op.value);
  if (at == trees_.end()) return;
  stored_ops_.insert({op.value, stage.id});
  const Tree* other = nullptr;
  bool found = false;
  for (Tree& tree : at->second) {
    const ElementRange part = chunk_range(sizes_[content.box], tree.chunk, tree.chunks);
    if (part.begin > content.begin || part.end < content.end) continue;
    if (tree.sum == content.source) {
      tree.used = true;
      found = true;
    } else {
      other = &tree;
    }
  }
  if (found) return;
  if (other == nullptr)
    fault(Code::RDU3032, stage.id,
          fmt::format("'{}' stores {}, which no summation tree of the operator covers", stage.name, place(content)));
  else
    fault(Code::RDU3032, stage.id,
          fmt::format("'{}' stores the sum {}; summation tree {} says {}", stage.name, sums.text(content.source),
                      other->id.value, sums.text(other->sum)));
}

// ---- one run
// -----------------------------------------------------------------------------------------------------------------

class Execution {
 public:
  Execution(const SpatialProgram& p, Findings& findings, const std::vector<StageInstance>& actors);

  // Runs 1 / repeats of every stage's firings of a trip. With one_to_one clusters the same run serves every instance.
  void start(std::uint64_t repeats, std::optional<Index> instance);
  bool finished() const { return unfinished_ == 0; }
  std::uint64_t unfinished() const { return unfinished_; }
  void explain(UntimedRun& out) const;

 private:
  struct PortState {
    Index channel;
    Index slot;  // inputs: place among the channel's consumers
    CyclicCursor<std::uint32_t> need, pop, reserve, push;
    CyclicCursor<Chunk> chunk;
  };
  struct Link {  // of a Recv: one sender
    Index channel;
    Index slot;
    Index first;  // scatter: the receiver's place among the targets
    Index step;   // scatter: how many targets
    const Edge* edge;
    Index sender;
    Index joint;  // index in joints_; none: sent to each receiver when that one is ready
  };
  struct Actor {
    const Stage* stage;
    Index instance;
    std::vector<PortState> ports;
    std::vector<Link> links;
    std::uint64_t fired = 0;
    std::uint64_t due = 0;
    CyclicCursor<Expr> body;
    PageContent value;         // Generic: of the firing before; MatmulTiles: the range that is being added up
    std::optional<SumId> sum;  // MatmulTiles: ranges that did not join
    std::int64_t k_begin = 0, k_end = 0;
    bool queued = false;
  };
  struct Channel {
    BufferId buffer;
    std::uint64_t depth = 0;  // 0: not sized, any number
    std::uint64_t reserved = 0, pushed = 0, freed = 0;
    std::vector<std::uint64_t> popped;  // by consumer; of a scatter edge: the next page that is for it
    std::vector<Index> consumers;       // actors
    Index producer = none;
    std::deque<PageContent> pages;  // freed .. pushed
  };

  bool joint_ready(Index joint) const;
  std::optional<UntimedWait> blocked(const Actor& a) const;
  bool can_fire(const Actor& a) const;
  bool recv_ready(const Actor& a) const;
  void fire(Index actor);
  void fire_recv(Index actor);
  void fire_collective(Index joint);
  void take_pages(Actor& a);
  void push(Channel& c, const PageContent& content, std::uint32_t pages, std::uint32_t reserved);
  void pop(Channel& c, Index slot, std::uint64_t pages);
  void wake(Index actor);
  PageContent front(const Actor& a, const PortState& port) const;
  static const CyclicCursor<Expr>& body_of(const Actor& a) { return a.body; }
  PageContent evaluate(Actor& a);
  PageContent combine(Actor& a, ExprOp op, const PageContent& left, const PageContent& right);
  PageContent not_a_sum(Actor& a, PageContent content);
  void accumulate(Actor& a);
  std::uint64_t next_page(const Link& link) const { return channels_[link.channel].popped[link.slot]; }

  const SpatialProgram& p_;
  Findings& findings_;
  std::vector<Actor> actors_;
  std::vector<Channel> channels_;
  std::vector<std::vector<Index>> joints_;  // actors that fire together
  std::vector<Index> queue_;
  std::uint64_t unfinished_ = 0;
  std::uint32_t native_tile_ = 0;
};

const Cyclic<Expr>& no_body() {
  static const Cyclic<Expr> none_at_all = {{1, {}}};
  return none_at_all;
}

Execution::Execution(const SpatialProgram& p, Findings& findings, const std::vector<StageInstance>& list)
    : p_(p), findings_(findings) {
  std::map<std::pair<std::uint32_t, Index>, Index> actor_of;
  std::map<std::pair<std::uint32_t, Index>, Index> channel_of;
  const auto channel = [&](BufferId buffer, Index instance) {
    const auto [at, fresh] = channel_of.try_emplace({buffer.value, instance}, static_cast<Index>(channels_.size()));
    if (fresh) {
      Channel c;
      c.buffer = buffer;
      c.depth = p.buffer(buffer).depth_pages;
      channels_.push_back(std::move(c));
    }
    return at->second;
  };
  std::set<std::uint32_t> stages;
  std::map<std::pair<std::uint32_t, Index>, Index> joint_of_collective;
  actors_.reserve(list.size());
  for (const StageInstance& i : list) {
    const Stage& s = p.stage(i.stage);
    const auto index = static_cast<Index>(actors_.size());
    actor_of[{i.stage.value, i.instance}] = index;
    stages.insert(i.stage.value);
    const auto* generic = std::get_if<Generic>(&s.kind);
    Actor a{&s, i.instance, {}, {}, 0,    0, CyclicCursor<Expr>(generic != nullptr ? generic->bodies : no_body()),
            {}, {},         0,  0,  false};
    for (const Port& port : s.ports) {
      const Index c = channel(port.buffer, i.instance);
      Index slot = 0;
      if (port.direction == Direction::output) {
        channels_[c].producer = index;
      } else {
        slot = static_cast<Index>(channels_[c].consumers.size());
        channels_[c].consumers.push_back(index);
      }
      a.ports.push_back({c, slot, CyclicCursor(port.need), CyclicCursor(port.pop), CyclicCursor(port.reserve),
                         CyclicCursor(port.push), CyclicCursor(port.chunk)});
    }
    if (const auto* c = std::get_if<CollectiveStage>(&s.kind)) {
      const auto [at, fresh] =
          joint_of_collective.try_emplace({c->collective.value, i.instance}, static_cast<Index>(joints_.size()));
      if (fresh) joints_.emplace_back();
      joints_[at->second].push_back(index);
      a.links.push_back({0, 0, 0, 1, nullptr, 0, at->second});
    }
    actors_.push_back(std::move(a));
  }
  for (const Edge& e : p.edges) {
    if (is_local(e.handshake) || !stages.contains(e.from.value)) continue;
    const bool together = e.handshake != Handshake::token;
    std::map<Index, Index> joint_of_sender;
    for (StageId to : e.to) {
      const auto senders = senders_by_receiver(e, p.sites_of(p.stage(to)).sites.size());
      for (Index r = 0; r < senders.size(); ++r) {
        const auto at = actor_of.find({to.value, r});
        if (at == actor_of.end()) continue;
        for (Index s : senders[r]) {
          const Index c = channel(e.buffer, s);
          Link link{c, static_cast<Index>(channels_[c].consumers.size()), 0, 1, &e, s, none};
          channels_[c].consumers.push_back(at->second);
          if (e.map.kind == PageMapKind::scatter) {
            const auto& targets = e.map.targets[s];
            link.first = static_cast<Index>(std::find(targets.begin(), targets.end(), r) - targets.begin());
            link.step = static_cast<Index>(targets.size());
          } else if (together &&
                     (e.to.size() > 1 || (e.map.kind == PageMapKind::multicast && e.map.targets[s].size() > 1))) {
            const auto [joint, fresh] = joint_of_sender.try_emplace(s, static_cast<Index>(joints_.size()));
            if (fresh) joints_.emplace_back();
            joints_[joint->second].push_back(at->second);
            link.joint = joint->second;
          }
          actors_[at->second].links.push_back(link);
        }
      }
    }
  }
}

void Execution::start(std::uint64_t parts, std::optional<Index> instance) {
  for (Channel& c : channels_) {
    const std::uint64_t initial = p_.buffer(c.buffer).initial_pages;
    c.reserved = c.pushed = initial;
    c.freed = 0;
    c.popped.assign(c.consumers.size(), 0);
    c.pages.assign(initial, PageContent{});
  }
  unfinished_ = 0;
  queue_.clear();
  for (Actor& a : actors_) {
    if (instance) a.instance = *instance;
    a.fired = 0;
    a.due = a.stage->firings / parts;
    a.value = {};
    a.sum.reset();
    for (std::size_t i = 0; i < a.ports.size(); ++i) {
      const Port& port = a.stage->ports[i];
      a.ports[i].need = CyclicCursor(port.need);
      a.ports[i].pop = CyclicCursor(port.pop);
      a.ports[i].reserve = CyclicCursor(port.reserve);
      a.ports[i].push = CyclicCursor(port.push);
      a.ports[i].chunk = CyclicCursor(port.chunk);
    }
    if (const auto* g = std::get_if<Generic>(&a.stage->kind)) a.body = CyclicCursor(g->bodies);
    for (Link& link : a.links) {
      if (link.edge == nullptr) continue;
      if (instance) link.sender = *instance;
      channels_[link.channel].popped[link.slot] = link.first;
    }
    if (a.due != 0) ++unfinished_;
    a.queued = false;
  }
  for (Index i = 0; i < actors_.size(); ++i) wake(i);
  while (!queue_.empty()) {
    const Index i = queue_.back();
    queue_.pop_back();
    actors_[i].queued = false;
    while (can_fire(actors_[i])) fire(i);
  }
}

void Execution::wake(Index i) {
  Actor& a = actors_[i];
  if (a.queued || a.fired == a.due) return;
  a.queued = true;
  queue_.push_back(i);
}

bool Execution::recv_ready(const Actor& a) const {
  if (a.fired == a.due || a.links.empty()) return false;
  const Link& link = a.links[a.fired % a.links.size()];
  const Channel& source = channels_[link.channel];
  if (source.popped[link.slot] >= source.pushed) return false;
  const Channel& landing = channels_[a.ports[0].channel];
  return landing.depth == 0 || landing.reserved - landing.freed < landing.depth;
}

bool Execution::joint_ready(Index joint) const {
  std::optional<std::uint64_t> page;
  for (Index i : joints_[joint]) {
    const Actor& a = actors_[i];
    if (std::holds_alternative<CollectiveStage>(a.stage->kind)) {
      if (blocked(a)) return false;
      if (page && *page != a.fired) return false;
      page = a.fired;
      continue;
    }
    if (!recv_ready(a)) return false;
    const Link& link = a.links[a.fired % a.links.size()];
    if (link.joint != joint || (page && *page != next_page(link))) return false;
    page = next_page(link);
  }
  return true;
}

bool Execution::can_fire(const Actor& a) const {
  if (a.fired == a.due) return false;
  if (std::holds_alternative<Recv>(a.stage->kind)) {
    if (!recv_ready(a)) return false;
    const Index joint = a.links[a.fired % a.links.size()].joint;
    return joint == none || joint_ready(joint);
  }
  if (std::holds_alternative<CollectiveStage>(a.stage->kind)) return joint_ready(a.links[0].joint);
  return !blocked(a);
}

// Why the next firing of `a` cannot start.
std::optional<UntimedWait> Execution::blocked(const Actor& a) const {
  const auto wait = [&](bool for_room, const Channel& c, Index on) {
    return UntimedWait{a.stage->id, a.instance, for_room, c.buffer, on == none ? a.stage->id : actors_[on].stage->id,
                       a.fired,     a.due};
  };
  const auto slowest = [&](const Channel& c) {
    Index on = none;
    for (std::size_t s = 0; s < c.popped.size(); ++s)
      if (c.popped[s] <= c.freed) {
        on = c.consumers[s];
        break;
      }
    return on;
  };
  if (a.fired == a.due) return UntimedWait{a.stage->id, a.instance, false, {}, a.stage->id, a.fired, a.due};
  if (std::holds_alternative<Recv>(a.stage->kind)) {
    if (a.links.empty()) return wait(false, channels_[a.ports[0].channel], none);
    const Link& link = a.links[a.fired % a.links.size()];
    const Channel& source = channels_[link.channel];
    if (source.popped[link.slot] >= source.pushed) return wait(false, source, source.producer);
    const Channel& landing = channels_[a.ports[0].channel];
    if (landing.depth != 0 && landing.reserved - landing.freed >= landing.depth)
      return wait(true, landing, slowest(landing));
    return std::nullopt;
  }
  for (std::size_t i = 0; i < a.ports.size(); ++i) {
    const PortState& port = a.ports[i];
    const Channel& c = channels_[port.channel];
    if (a.stage->ports[i].direction == Direction::input) {
      if (c.pushed - c.popped[port.slot] < port.need.value()) return wait(false, c, c.producer);
    } else if (c.depth != 0 && c.reserved - c.freed + port.reserve.value() > c.depth) {
      return wait(true, c, slowest(c));
    }
  }
  return std::nullopt;
}

PageContent Execution::front(const Actor& a, const PortState& port) const {
  const Channel& c = channels_[port.channel];
  PageContent content = c.pages[c.popped[port.slot] - c.freed];
  const Chunk chunk = port.chunk.value();
  if (chunk.of > 1 && content.box != none) {
    const ElementRange part = chunk_range(content.end - content.begin, chunk.index, chunk.of);
    content.end = content.begin + part.end;
    content.begin += part.begin;
  }
  (void)a;
  return content;
}

void Execution::push(Channel& c, const PageContent& content, std::uint32_t pages, std::uint32_t reserved) {
  c.reserved += reserved;
  c.pushed += pages;
  if (pages == 0) return;
  if (c.consumers.empty()) {
    c.freed = c.pushed;
    return;
  }
  c.pages.insert(c.pages.end(), pages, content);
  for (Index consumer : c.consumers) wake(consumer);
}

void Execution::pop(Channel& c, Index slot, std::uint64_t pages) {
  if (pages == 0) return;
  c.popped[slot] += pages;
  const std::uint64_t slowest = std::min(*std::min_element(c.popped.begin(), c.popped.end()), c.pushed);
  if (slowest == c.freed) return;
  c.pages.erase(c.pages.begin(), c.pages.begin() + static_cast<std::ptrdiff_t>(slowest - c.freed));
  c.freed = slowest;
  if (c.producer != none) {
    wake(c.producer);
    // Receivers that fire together wait for the last of them.
    for (const Link& link : actors_[c.producer].links)
      if (link.joint != none)
        for (Index other : joints_[link.joint]) wake(other);
  }
}

void Execution::fire_recv(Index i) {
  Actor& a = actors_[i];
  const Link& link = a.links[a.fired % a.links.size()];
  Channel& source = channels_[link.channel];
  PageContent content = source.pages[source.popped[link.slot] - source.freed];
  const Chunk chunk = link.edge->chunk;
  if (chunk.of > 1 && content.box != none) {
    const ElementRange part = chunk_range(content.end - content.begin, chunk.index, chunk.of);
    content.end = content.begin + part.end;
    content.begin += part.begin;
  }
  if (++a.fired == a.due) --unfinished_;
  push(channels_[a.ports[0].channel], content, 1, 1);
  pop(source, link.slot, link.step);
}

void Execution::fire(Index i) {
  Actor& a = actors_[i];
  if (std::holds_alternative<Recv>(a.stage->kind)) {
    const Index joint = a.links[a.fired % a.links.size()].joint;
    if (joint == none) {
      fire_recv(i);
    } else {
      const std::vector<Index> members = joints_[joint];
      for (Index member : members) fire_recv(member);
      for (Index member : members) wake(member);
    }
    return;
  }
  if (std::holds_alternative<CollectiveStage>(a.stage->kind)) {
    fire_collective(a.links[0].joint);
    return;
  }
  PageContent result;
  bool moves = true;
  if (const auto* load = std::get_if<Load>(&a.stage->kind)) {
    const Tensor& tensor = p_.tensor(load->tensor);
    const TileBox page = page_at(load->pattern, a.instance, a.fired);
    moves = movable(page, tensor.tiles);
    if (moves) {
      const Index box = findings_.box_of(tensor, page);
      result = {PageContent::Kind::data, load->tensor.value, box, 0, findings_.size(box)};
    }
  } else if (const auto* store = std::get_if<Store>(&a.stage->kind)) {
    const Tensor& tensor = p_.tensor(store->tensor);
    const std::uint64_t phases = firings_per_page(*a.stage);
    const TileBox page = page_at(store->pattern, a.instance, a.fired / phases);
    moves = movable(page, tensor.tiles);
    if (moves) {
      const Chunk chunk = store->chunks.empty() ? Chunk{} : store->chunks[a.fired % phases];
      const Index box = findings_.box_of(tensor, page);
      for (const PortState& port : a.ports)
        if (port.pop.value() > 0) findings_.check_stored(*a.stage, tensor, box, chunk, front(a, port));
    }
  } else if (std::holds_alternative<MatmulTiles>(a.stage->kind)) {
    accumulate(a);
    result = a.value;
  } else {
    result = evaluate(a);
  }
  if (++a.fired == a.due) --unfinished_;
  for (std::size_t n = 0; n < a.ports.size(); ++n) {
    PortState& port = a.ports[n];
    if (moves) {
      if (a.stage->ports[n].direction == Direction::input)
        pop(channels_[port.channel], port.slot, port.pop.value());
      else
        push(channels_[port.channel], result, port.push.value(), port.reserve.value());
    }
    port.need.advance();
    port.pop.advance();
    port.reserve.advance();
    port.push.advance();
    port.chunk.advance();
  }
  a.body.advance();
}

// out += a b for the pages in front.
void Execution::accumulate(Actor& a) {
  const auto& kind = std::get<MatmulTiles>(a.stage->kind);
  const PageContent left = front(a, a.ports[0]);
  const PageContent right = front(a, a.ports[1]);
  const bool first = a.fired % kind.k_pages == 0;
  bool spoilt = !first && a.value.kind == PageContent::Kind::spoilt;
  for (const PageContent* operand : {&left, &right}) {
    spoilt = spoilt || operand->kind == PageContent::Kind::spoilt;
    if (operand->kind != PageContent::Kind::sum || findings_.complete(operand->source)) continue;
    findings_.fault(
        Code::RDU3025, a.stage->id,
        fmt::format("'{}' multiplies a partial sum: {}", a.stage->name, findings_.sums.text(operand->source)));
    spoilt = true;
  }
  if (left.box == none || right.box == none) {
    if (first) a.value = {PageContent::Kind::computed, a.stage->id.value, none, 0, 0};
    return;
  }
  const ElementBox& l = findings_.box(left.box);
  const ElementBox& r = findings_.box(right.box);
  const AxisRange k = l.back();
  const AxisRange k_right = r[r.size() - 2];
  if (k != k_right) {
    findings_.fault(Code::RDU3024, a.stage->id,
                    fmt::format("'{}' multiplies contraction [{},{}) of its left operand with [{},{}) of its right",
                                a.stage->name, k.begin, k.end, k_right.begin, k_right.end));
    spoilt = true;
  }
  ElementBox out(l.begin(), l.end() - 1);
  out.push_back(r.back());
  const Index box = findings_.box_id(out);
  if (right.kind == PageContent::Kind::data) {
    const Tensor& tensor = p_.tensor(TensorId{right.source});
    findings_.contraction(kind.op, tensor.whole.size() == 1 ? tensor.whole[0] : tensor.whole[tensor.whole.size() - 2]);
  }
  if (left.kind == PageContent::Kind::data)
    findings_.contraction(kind.op, p_.tensor(TensorId{left.source}).whole.back());
  if (first) {
    a.sum.reset();
    a.value = {PageContent::Kind::sum, 0, box, 0, findings_.size(box)};
    a.k_begin = k.begin;
    a.k_end = k.end;
  } else if (!spoilt && a.value.box != box) {
    PageContent here = a.value;
    here.box = box;
    here.end = findings_.size(box);
    findings_.fault(Code::RDU3024, a.stage->id,
                    fmt::format("'{}' adds products of {} to products of {}", a.stage->name, findings_.place(here),
                                findings_.place(a.value)));
    spoilt = true;
  }
  if (spoilt) a.value.kind = PageContent::Kind::spoilt;
  const auto close = [&] {
    const SumLeaf leaf{SumLeaf::Kind::partial, kind.op, p_.chip_of(*a.stage), a.k_begin, a.k_end, {}};
    findings_.computes(kind.op, leaf, a.stage->id);
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
  if (a.fired % kind.k_pages == kind.k_pages - 1) {
    close();
    a.value.source = *a.sum;
  }
}

PageContent Execution::not_a_sum(Actor& a, PageContent content) {
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

PageContent Execution::combine(Actor& a, ExprOp op, const PageContent& left, const PageContent& right) {
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

PageContent Execution::evaluate(Actor& a) {
  std::vector<PageContent> stack;
  for (const ExprNode& node : a.body.value()) {
    switch (node.op) {
      case ExprOp::operand:
        stack.push_back(front(a, a.ports[node.index]));
        break;
      case ExprOp::accumulator:
        stack.push_back(a.value);
        break;
      case ExprOp::constant: {
        PageContent c;
        if (node.number != 0) c.kind = PageContent::Kind::constant;
        stack.push_back(c);
        break;
      }
      case ExprOp::negate:
        stack.back() = not_a_sum(a, stack.back());
        break;
      default: {
        const PageContent right = stack.back();
        stack.pop_back();
        stack.back() = combine(a, node.op, stack.back(), right);
      }
    }
  }
  a.value = stack.back();
  return a.value;
}

// All members take a page each; what each output gets follows from the collective's kind.
void Execution::fire_collective(Index joint) {
  using Kind = PageContent::Kind;
  const std::vector<Index> members = joints_[joint];
  const auto id = std::get<CollectiveStage>(actors_[members[0]].stage->kind).collective;
  const Collective& collective = p_.collectives[id.value];
  std::vector<std::optional<PageContent>> contributed(collective.members.size());
  for (Index i : members) {
    const Actor& a = actors_[i];
    const auto at = std::find(collective.members.begin(), collective.members.end(), p_.chip_of(*a.stage));
    if (at != collective.members.end())
      contributed[static_cast<std::size_t>(at - collective.members.begin())] = front(a, a.ports[0]);
  }
  const bool reduces = collective.kind == CollectiveKind::reduce || collective.kind == CollectiveKind::all_reduce ||
                       collective.kind == CollectiveKind::reduce_scatter;
  PageContent sum;
  if (reduces)
    for (const auto& c : contributed)
      if (c) sum = combine(actors_[members[0]], ExprOp::add, sum, *c);
  for (Index i : members) {
    Actor& a = actors_[i];
    if (++a.fired == a.due) --unfinished_;
    for (std::size_t n = 0; n < a.ports.size(); ++n) {
      PortState& port = a.ports[n];
      if (a.stage->ports[n].direction == Direction::input) {
        pop(channels_[port.channel], port.slot, port.pop.value());
      } else {
        PageContent out = sum;
        if (!reduces)
          out = n - 1 < contributed.size() && contributed[n - 1]
                    ? *contributed[n - 1]
                    : PageContent{Kind::computed, a.stage->id.value, none, 0, 0};
        push(channels_[port.channel], out, port.push.value(), port.reserve.value());
      }
      port.need.advance();
      port.pop.advance();
      port.reserve.advance();
      port.push.advance();
      port.chunk.advance();
    }
  }
  for (Index i : members) wake(i);
}

void Execution::explain(UntimedRun& out) const {
  out.stuck += unfinished_;
  if (!out.cycle.empty()) return;
  std::map<Index, std::size_t> seen;
  std::vector<UntimedWait> chain;
  std::map<std::uint32_t, Index> actor_of_stage;  // the least instance that is stuck
  for (Index i = static_cast<Index>(actors_.size()); i-- > 0;)
    if (actors_[i].fired != actors_[i].due) actor_of_stage[actors_[i].stage->id.value] = i;
  if (actor_of_stage.empty()) return;
  Index at = actor_of_stage.begin()->second;
  while (true) {
    const auto [known, fresh] = seen.try_emplace(at, chain.size());
    if (!fresh) {
      out.cycle.assign(chain.begin() + static_cast<std::ptrdiff_t>(known->second), chain.end());
      return;
    }
    std::optional<UntimedWait> wait = blocked(actors_[at]);
    if (!wait) {
      // It could go on but for those that it must fire with.
      const Actor& a = actors_[at];
      const Index joint = a.links.empty() ? none : a.links[a.fired % a.links.size()].joint;
      if (joint == none) break;
      Index other = none;
      for (Index member : joints_[joint])
        if (member != at && actors_[member].fired != actors_[member].due && !seen.contains(member) &&
            blocked(actors_[member])) {
          other = member;
          break;
        }
      if (other == none) break;
      seen.erase(at);
      at = other;
      continue;
    }
    chain.push_back(*wait);
    const auto next = actor_of_stage.find(wait->on.value);
    if (next == actor_of_stage.end()) break;
    at = next->second;
  }
  if (out.starved.empty()) out.starved = chain;
}

}  // namespace

UntimedRun run_untimed(const SpatialProgram& p, std::uint32_t native_tile, std::uint64_t most_firings) {
  UntimedRun out;
  if (p.stages.empty()) return out;
  Findings findings(p, native_tile);
  const std::vector<Cluster> clusters = clusters_of(p);

  const auto saturating_add = [](std::uint64_t a, std::uint64_t b) { return a + b < a ? ~std::uint64_t{0} : a + b; };
  struct Plan {
    std::uint64_t whole = 0;  // firings of one run of a whole trip (all runs together where they differ)
    std::uint64_t repeats = 1;
    std::uint64_t runs = 1;
  };
  std::vector<Plan> plans;
  std::uint64_t everything = 0;
  for (const Cluster& c : clusters) {
    Plan plan;
    plan.repeats = repeats(p, c);
    plan.runs = c.one_to_one ? c.instances : 1;
    if (c.one_to_one)
      for (StageId s : c.stages) plan.whole = saturating_add(plan.whole, p.stage(s).firings);
    else
      for (const auto& run : c.runs)
        for (const StageInstance& i : run) plan.whole = saturating_add(plan.whole, p.stage(i.stage).firings);
    std::uint64_t total = 0;
    if (__builtin_mul_overflow(plan.whole, plan.runs, &total)) total = ~std::uint64_t{0};
    everything = saturating_add(everything, total);
    plans.push_back(plan);
  }
  const bool all = everything <= most_firings;

  for (std::size_t n = 0; n < clusters.size(); ++n) {
    const Cluster& c = clusters[n];
    const Plan& plan = plans[n];
    const std::uint64_t parts = all ? 1 : plan.repeats;
    if (plan.whole / parts > most_firings) {
      if (!out.undecided) {
        out.undecided = c.stages.front();
        out.undecided_firings = plan.whole / parts;
      }
      continue;
    }
    if (!c.one_to_one) {
      for (const auto& members : c.runs) {
        Execution run(p, findings, members);
        run.start(1, std::nullopt);
        if (!run.finished()) run.explain(out);
      }
      continue;
    }
    std::vector<StageInstance> members;
    for (StageId s : c.stages) members.push_back({s, 0});
    Execution run(p, findings, members);
    for (std::uint64_t i = 0; i < plan.runs; ++i) {
      if (!all && i != 0 && i + 1 != plan.runs) continue;
      run.start(parts, static_cast<Index>(i));
      if (!run.finished()) {
        run.explain(out);
        // Instances have the same rates: what stops one stops all.
        out.stuck += run.unfinished() * (plan.runs - 1);
        break;
      }
    }
  }
  if (out.stuck == 0 && !out.undecided) out.sums = findings.faults();
  return out;
}

}  // namespace rdusim
