#include "compiler/passes/place_attention.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/passes/attention.h"
#include "compiler/passes/crossing.h"
#include "compiler/passes/deal.h"
#include "compiler/passes/fold.h"
#include "compiler/passes/mutate.h"
#include "compiler/passes/ports.h"
#include "compiler/passes/section_builder.h"
#include "compiler/workload/operator_traits.h"

namespace rdusim {
namespace {

// Movement stages of the sites of a group.
enum ScoreMovement : std::uint32_t { queries = 0, keys = 1 };
enum ValueMovement : std::uint32_t { weights = 0, values = 1, result = 2, first_partial = 3 };

class AttentionPlacer {
 public:
  AttentionPlacer(SpatialProgram& p, const Target& t, const Work& w, SectionId section)
      : p_(p),
        t_(t),
        w_(w),
        plan_(*w.plan),
        build_(p, t, w, section),
        op_(build_.op()),
        e_(attention_extents(*p.operators, w)),
        q_(build_.tensor_of(op_.in[0])),
        k_(build_.tensor_of(op_.in[1])),
        v_(build_.tensor_of(op_.in[2])),
        out_(build_.tensor_of(op_.out)),
        parts_(attention_sites(e_, plan_, t)),
        heads_(*deal({e_.kv_heads, e_.group()}, parts_.heads)),
        rows_(*deal(row_axes(), plan_.sites_m)),
        rounds_(plan_.rounds_m * plan_.rounds_n),
        pages_(static_cast<std::uint32_t>(plan_.k_pages * plan_.sites_k)) {}

  void place(SiteAllocator& sites) {
    const std::uint64_t passes = score_passes(*p_.operators, w_, plan_, t_);
    std::vector<GroupId> groups;
    for (Group& g : sites_of_groups(sites, passes)) groups.push_back(build_.add_group(std::move(g)));
    const Made weights = passes == 1
                             ? place_weights("", groups[score_groups(e_)], all_scores("", groups, 0), {0, 1, 2, 3}, {})
                             : place_in_three_passes(groups);
    place_values({groups.end() - static_cast<std::ptrdiff_t>(parts_.slices), groups.end()}, weights.stage);
  }

 private:
  struct Made {
    StageId stage;
    BufferId buffer;
  };

  // Sites of scores and of weights, as often as there are passes, and of values. Where several read the same keys, all
  // that works on those lies together: pages that are read for many, and scores and weights on their way, stay on few
  // links. Else each reads near an AGCU.
  std::vector<Group> sites_of_groups(SiteAllocator& sites, std::uint64_t passes) const {
    const std::uint64_t blocks = plan_.sites_m * parts_.heads;
    const std::uint64_t sharing = rows_.back().sites * heads_[1].sites, sets = blocks / sharing;
    std::vector<std::uint64_t> parts;
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
      parts.insert(parts.end(), score_groups(e_), parts_.scores);
      parts.push_back(1);
    }
    parts.insert(parts.end(), parts_.slices, parts_.values);
    std::vector<Group> groups(parts.size());
    if (sharing == 1) {
      for (std::size_t g = 0; g < groups.size(); ++g) groups[g] = sites.near_agcus(blocks * parts[g]);
      return groups;
    }
    const std::uint64_t together = std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
    // Where a block has few sites they are neighbours; else those are which read the same, and the first of them reads.
    const bool by_block = together == parts.size();
    const Group all = by_block ? sites.block(sets, sharing * together) : sites.block(sets * together, sharing);
    std::uint64_t first = 0;  // of a block's sites, those of the group
    for (std::size_t g = 0; g < groups.size(); first += parts[g++])
      for (std::uint64_t set = 0; set < sets; ++set)
        for (std::uint64_t part = 0; part < parts[g]; ++part)
          for (std::uint64_t block = 0; block < sharing; ++block) {
            const std::uint64_t among = by_block ? block * together + first + part : (first + part) * sharing + block;
            groups[g].sites.push_back(all.sites[set * sharing * together + among]);
            groups[g].agcus.push_back(all.agcus[set * sharing * together + among]);
          }
    return groups;
  }

  std::vector<std::uint64_t> row_axes() const {
    std::vector<std::uint64_t> axes = e_.stack;
    axes.push_back(build_.tiles(e_.queries));
    return axes;
  }

  // What pages of a tensor follow: blocks of queries (q and the result), or keys (k and v).
  enum class Follows : std::uint8_t { queries, keys };
  // How the pages of a block are dealt to the `sites` sites of it: each has its own part of the pages of keys, or of
  // the columns, or all have the same.
  struct Parts {
    std::uint64_t sites = 1;
    bool of_keys = false, of_columns = false;
    std::uint64_t first_page = 0;  // of keys
    std::uint64_t pages = 0;       // of keys, of all of these sites
  };

  // `head_width`: columns of a head of the tensor.
  AccessPattern pattern(const Tensor& t, Follows follows, Parts parts, std::int64_t head_width) const {
    const bool by_key = follows == Follows::keys;
    const std::size_t axes = t.shape.size(), stack = e_.stack.size(), row = axes - 2, column = axes - 1;
    const std::uint64_t width = build_.tiles(head_width);
    // One step along each axis of the deal (the stack's, row blocks, heads of keys, their heads of queries) as steps
    // along the tensor's.
    std::vector<std::vector<std::uint64_t>> step(stack + 3, std::vector<std::uint64_t>(axes, 0));
    for (std::size_t d = 0; d < stack; ++d) step[d][d] = 1;
    if (!by_key) step[stack][row] = plan_.block_m;
    step[stack + 1][column] = by_key ? mutated("attention.all_heads_read_the_first", width, 0) : e_.group() * width;
    if (!by_key) step[stack + 2][column] = width;

    AccessPattern a;
    a.heads = by_key ? op_.attributes.kv_heads : op_.attributes.heads;
    std::vector<AxisDeal> deals = rows_;
    deals.insert(deals.end(), heads_.begin(), heads_.end());
    for (std::size_t d = 0; d < deals.size(); ++d) {
      if (deals[d].rounds == 1) continue;
      a.loops.push_back(deals[d].rounds);
      std::vector<std::uint64_t> stride = step[d];
      for (std::uint64_t& s : stride) s *= deals[d].sites;
      a.stride.push_back(std::move(stride));
    }
    const std::uint64_t takers = parts.of_keys ? parts.sites : 1;
    if (by_key || a.loops.empty()) {
      a.loops.push_back(by_key ? parts.pages / takers : 1);
      a.stride.emplace_back(axes, 0);
      if (by_key) a.stride.back()[row] = mutated("attention.one_page_of_keys", takers * plan_.page_k, 0);
    }
    const std::uint64_t share = by_key ? op_.attributes.heads / op_.attributes.kv_heads : 1;
    const auto first_column = static_cast<std::int64_t>(e_.first_head / share) * head_width - t.offset.back();
    const std::uint64_t columns = parts.of_columns ? plan_.block_n : width;
    for_each_site(parts.sites, [&](const std::vector<std::uint64_t>& at, std::uint64_t part, std::uint64_t) {
      std::vector<std::uint64_t> first(axes, 0);
      for (std::size_t d = 0; d < at.size(); ++d)
        for (std::size_t x = 0; x < axes; ++x) first[x] += at[d] * step[d][x];
      first[column] += build_.tiles(first_column) + (parts.of_columns ? part * columns : 0);
      if (by_key) first[row] += parts.first_page * plan_.page_k;
      if (by_key && parts.of_keys) first[row] += mutated("attention.scores_of_the_first_keys", part, 0) * plan_.page_k;
      a.first.push_back(std::move(first));
    });
    a.page_tiles.assign(axes, 1);
    a.page_tiles[row] = by_key ? plan_.page_k : plan_.block_m;
    a.page_tiles[column] = columns;
    a.extent_tiles = e_.stack;
    a.extent_tiles.push_back(build_.tiles(by_key ? e_.keys : e_.queries));
    a.extent_tiles.push_back(build_.tiles(first_column) + (by_key ? e_.kv_heads : e_.heads) * width);
    return a;
  }

  // Calls f(place along the axes of the deal, part, block) for every site of a group, in order: those that read the
  // same keys are neighbours. `block`: the number of its block among those that are worked on at once.
  template <class F>
  void for_each_site(std::uint64_t parts, F&& f) const {
    const std::size_t stack = e_.stack.size();
    std::uint64_t matrices = 1;
    for (std::size_t d = 0; d < stack; ++d) matrices *= rows_[d].sites;
    const std::uint64_t row_blocks = rows_[stack].sites, group = heads_[1].sites;
    for (std::uint64_t matrix = 0; matrix < matrices; ++matrix)
      for (std::uint64_t kv = 0; kv < heads_[0].sites; ++kv)
        for (std::uint64_t part = 0; part < parts; ++part)
          for (std::uint64_t row = 0; row < row_blocks; ++row)
            for (std::uint64_t head = 0; head < group; ++head) {
              std::vector<std::uint64_t> at = site_at(rows_, matrix * row_blocks + row);
              at.push_back(kv);
              at.push_back(head);
              f(at, part, ((matrix * heads_[0].sites + kv) * row_blocks + row) * group + head);
            }
  }

  // Sites that read the same pages read them together.
  static std::vector<std::uint32_t> sets_of(const AccessPattern& a) {
    std::vector<std::uint32_t> sets;
    std::map<std::vector<std::uint64_t>, std::uint32_t> known;
    for (const auto& first : a.first)
      sets.push_back(known.try_emplace(first, static_cast<std::uint32_t>(known.size())).first->second);
    if (known.size() == a.first.size()) sets.clear();
    return sets;
  }

  Made load(const std::string& what, const Tensor& t, Follows follows, Parts parts, GroupId group, Engine engine,
            std::int64_t head_width) {
    Load l{t.id, pattern(t, follows, parts, head_width), {}};
    l.multicast_set = sets_of(l.pattern);
    const bool by_key = follows == Follows::keys;
    const std::uint64_t rows = by_key ? plan_.page_k : plan_.block_m;
    const BufferId buffer = build_.add_buffer(what, BufferKind::fifo, group, t.dtype, rows, l.pattern.page_tiles.back(),
                                              by_key ? e_.keys : e_.queries, head_width);
    const std::uint64_t firings = rounds_ * (by_key ? parts.pages / (parts.of_keys ? parts.sites : 1) : 1);
    const StageId stage = build_.add_stage("load_" + what, std::move(l), group, engine, firings, {output_port(buffer)});
    return {stage, buffer};
  }

  BufferId add_scores(const std::string& what, GroupId group, DType type) {
    return build_.add_buffer(what, BufferKind::fifo, group, type, plan_.block_m, plan_.page_k, e_.queries, e_.keys);
  }

  // Products of the queries `q` and the keys `k`, whose heads are `head_width` wide.
  Made place_scores(const std::string& what, const std::string& pass, GroupId group, const Tensor& queries,
                    const Tensor& keys, std::int64_t head_width) {
    const Parts parts{parts_.scores, true, false, 0, pages_};
    const Made q = load(what + "q" + pass, queries, Follows::queries, parts, group,
                        movement_engine(t_, ScoreMovement::queries), head_width);
    const Made k = load(what + "k" + pass, keys, Follows::keys, parts, group, movement_engine(t_, ScoreMovement::keys),
                        head_width);
    const DType accumulator = accumulator_of(q_.dtype);
    const BufferId out = add_scores(what + "score" + pass, group, accumulator);
    const std::uint64_t width = build_.tiles(head_width);
    const MatmulTiles body{op_.id, plan_.block_m, plan_.page_k, width,       width,
                           1,      q_.dtype,      accumulator,  accumulator, true};
    Port keeps = input_port(q.buffer);  // one block of queries for all pages of keys
    const auto pages = static_cast<std::uint32_t>(plan_.k_pages);
    keeps.pop = in_phases(pages - 1, pages, pages);
    const StageId stage =
        build_.add_stage(what + "scores" + pass, body, group, {StageRole::compute, 0}, rounds_ * plan_.k_pages,
                         {std::move(keeps), input_port(k.buffer), output_port(out)});
    build_.add_edge(q.stage, q.buffer, {stage});
    build_.add_edge(k.stage, k.buffer, {stage});
    return {stage, out};
  }

  // Those of queries and keys, and of further ones where there are some, on groups[first] and the next.
  std::vector<Made> all_scores(const std::string& pass, const std::vector<GroupId>& groups, std::size_t first) {
    std::vector<Made> made = {place_scores("", pass, groups[first], q_, k_, e_.width)};
    if (const auto further = further_at(op_.in.size()))
      made.push_back(place_scores("further_", pass, groups[first + 1], build_.tensor_of(op_.in[*further]),
                                  build_.tensor_of(op_.in[*further + 1]), e_.further_width));
    return made;
  }

  // The sink of a block's head, a page of one number for each block.
  Made place_sinks(const std::string& pass, GroupId group) {
    const Tensor& t = build_.tensor_of(op_.in[*sinks_at(op_.in.size())]);
    AccessPattern a;
    std::vector<AxisDeal> deals = rows_;
    deals.insert(deals.end(), heads_.begin(), heads_.end());
    const std::size_t stack = e_.stack.size(), axes = t.shape.size();
    // How many heads further one step along each axis of the deal is.
    std::vector<std::uint64_t> step(deals.size(), 0);
    step[stack + 1] = e_.group();
    step[stack + 2] = mutated("attention.sink_of_the_first_head", 1, 0);
    for (std::size_t d = 0; d < deals.size(); ++d) {
      if (deals[d].rounds == 1) continue;
      a.loops.push_back(deals[d].rounds);
      a.stride.emplace_back(axes, 0).front() = step[d] * deals[d].sites;
    }
    if (a.loops.empty()) {
      a.loops.push_back(1);
      a.stride.emplace_back(axes, 0);
    }
    const std::uint64_t first_head = e_.first_head - static_cast<std::uint64_t>(t.offset.front());
    for_each_site(1, [&](const std::vector<std::uint64_t>& at, std::uint64_t, std::uint64_t) {
      std::uint64_t head = first_head;
      for (std::size_t d = 0; d < at.size(); ++d) head += at[d] * step[d];
      a.first.emplace_back(axes, 0).front() = head;
    });
    a.page_tiles.assign(axes, 1);
    a.extent_tiles.assign(axes, 1);
    a.extent_tiles.front() = first_head + e_.heads;
    Load l{t.id, std::move(a), {}};
    l.multicast_set = sets_of(l.pattern);
    const BufferId buffer = build_.add_buffer("sink" + pass, BufferKind::fifo, group, t.dtype, 1, 1, 1, 1);
    const StageId stage = build_.add_stage("load_sink" + pass, std::move(l), group, movement_engine(t_, 4), rounds_,
                                           {output_port(buffer)});
    return {stage, buffer};
  }

  // A hand-off to another group, `firings` pages. `map` says to whom, where it is not from instance to instance.
  Made cross(const Made& from, PageMap map, const std::string& recv, std::uint64_t firings, BufferId landing,
             GroupId group, Engine engine) {
    const StageId stage = build_.add_stage(recv, Recv{}, group, engine, firings, {output_port(landing)});
    const EdgeId edge = build_.add_edge(from.stage, from.buffer, {stage}, crossing_of(t_));
    p_.edges[edge.value].map = std::move(map);
    std::get<Recv>(p_.stages[stage.value].kind).edge = edge;
    return {stage, landing};
  }

  // The scores of a block are worked out for its maxima, for its sums, and for its weights.
  Made place_in_three_passes(const std::vector<GroupId>& groups) {
    const auto columns = [&](const Made& from, const char* what, std::size_t pass) {
      const GroupId group = groups[(score_groups(e_) + 1) * (pass + 1) - 1];
      const BufferId landing = build_.add_buffer(what + std::to_string(pass), BufferKind::fifo, group,
                                                 accumulator_of(q_.dtype), plan_.block_m, 1, e_.queries, 1);
      return cross(from, {}, std::string("recv_") + what + std::to_string(pass), rounds_, landing, group,
                   movement_engine(t_, what == std::string_view("max") ? 1 : 2));
    };
    const std::size_t apart = score_groups(e_) + 1;  // groups of a pass
    const Made most = place_weights("", groups[apart - 1], all_scores("", groups, 0), {0, 1}, {});
    const Made sum = place_weights("1", groups[2 * apart - 1], all_scores("1", groups, apart), {0, 2},
                                   {{1, columns(most, "max", 1)}});
    const Made most_again = columns(most, "max", 2);
    return place_weights("2", groups[3 * apart - 1], all_scores("2", groups, 2 * apart), {0, 3},
                         {{1, most_again}, {2, columns(sum, "sum", 2)}});
  }

  // Steps from scores to weights, those of `which` in their order, on one group; `made` has the columns of others that
  // they take. Gives what the last makes.
  Made place_weights(const std::string& pass, GroupId group, const std::vector<Made>& scores,
                     const std::vector<std::uint32_t>& which, std::map<std::uint32_t, Made> made) {
    PageMap to_one;
    if (parts_.scores > 1) {
      to_one.kind = PageMapKind::gather;
      for_each_site(parts_.scores, [&](const auto&, std::uint64_t, std::uint64_t block) {
        to_one.targets.push_back({static_cast<std::uint32_t>(block)});
      });
    }
    std::vector<Made> taken;  // by what steps count as operands: products, those of further columns, the sink
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const std::string what = (i == 0 ? "scores" : "further") + pass;
      taken.push_back(cross(scores[i], to_one, "recv_" + what, rounds_ * pages_,
                            add_scores("landing_" + what, group, accumulator_of(q_.dtype)), group,
                            movement_engine(t_, i == 0 ? 0 : 3)));
    }

    const std::vector<Step> steps = attention_steps(*p_.operators, op_);
    constexpr std::uint32_t sink = 2;
    const auto takes_sink = [&](std::uint32_t s) {
      return std::any_of(steps[s].in.begin(), steps[s].in.end(),
                         [&](const Step::Source& from) { return !from.is_step && from.index == sink; });
    };
    taken.resize(sink + 1);
    if (std::any_of(which.begin(), which.end(), takes_sink)) taken[sink] = place_sinks(pass, group);
    std::vector<StageId> sink_takers;
    std::map<std::uint32_t, std::vector<StageId>> takers;
    for (std::uint32_t context = 0; context < which.size(); ++context) {
      const std::uint32_t s = which[context];
      const Step& step = steps[s];
      Generic g;
      g.iterators = {IteratorKind::parallel, step.join ? IteratorKind::reduction : IteratorKind::parallel};
      g.bodies = {{pages_, step.body}};
      g.join = step.join;
      g.accumulator = accumulator_of(q_.dtype);
      g.result = s + 1 == steps.size() ? v_.dtype : g.accumulator;
      std::vector<Port> ports;
      for (const Step::Source source : step.in) {
        const bool one = !source.is_step && source.index == sink;
        const bool column = one || (source.is_step && steps[source.index].is_column);
        Port port = input_port(source.is_step ? made.at(source.index).buffer : taken[source.index].buffer);
        if (column) port.pop = in_phases(pages_ - 1, pages_, pages_);  // it serves its whole row
        ports.push_back(std::move(port));
        g.maps.push_back({{one ? 0 : 1, 0, 0}, {0, column ? 0 : 1, 0}});
      }
      g.maps.push_back({{1, 0, 0}, {0, step.join ? 0 : 1, 0}});
      BufferId out;
      if (s + 1 == steps.size()) {
        // Each slice of keys has a buffer of its own.
        const std::uint32_t slice = pages_ / static_cast<std::uint32_t>(parts_.slices);
        for (std::uint32_t l = 0; l < parts_.slices; ++l) {
          weights_.push_back(add_scores("p" + suffix(l), group, g.result));
          ports.push_back(output_port(weights_[l], l * slice, (l + 1) * slice, pages_));
        }
        out = weights_.front();
      } else if (step.join) {
        out = build_.add_buffer(step.name, BufferKind::fifo, group, g.result, plan_.block_m, 1, e_.queries, 1);
        ports.push_back(output_port(out, pages_ - 1, pages_, pages_));
      } else {
        out = add_scores(step.name + pass, group, g.result);
        ports.push_back(output_port(out));
      }
      const StageId stage = build_.add_stage(step.name + (step.join ? "" : pass), std::move(g), group,
                                             {StageRole::compute, context}, rounds_ * pages_, std::move(ports));
      for (const Step::Source source : step.in)
        if (source.is_step)
          takers[source.index].push_back(stage);
        else if (source.index == sink)
          sink_takers.push_back(stage);
      made[s] = {stage, out};
    }
    // What is scaled stays until the row's sum is known, where it serves for that and for the weights.
    if (which.size() == steps.size())
      p_.buffers[made.at(0).buffer.value].depth_pages = score_blocks(*p_.operators, w_, plan_, t_) * pages_;
    for (std::size_t i = 0; i < scores.size(); ++i)
      build_.add_edge(taken[i].stage, taken[i].buffer, {made.at(which.front()).stage});
    if (!sink_takers.empty()) build_.add_edge(taken[sink].stage, taken[sink].buffer, sink_takers);
    for (const auto& [s, stages] : takers) build_.add_edge(made.at(s).stage, made.at(s).buffer, stages);
    return made.at(which.back());
  }

  static std::string suffix(std::uint64_t slice) { return slice == 0 ? "" : "_k" + std::to_string(slice); }

  void place_values(const std::vector<GroupId>& groups, StageId weights) {
    std::vector<StageId> stages;
    std::vector<BufferId> results;
    for (std::uint64_t l = 0; l < groups.size(); ++l) {
      const Made made = place_slice(l, groups[l], {weights, weights_[l]});
      stages.push_back(made.stage);
      results.push_back(made.buffer);
    }
    const auto [last, result] = groups.size() == 1 ? std::pair(stages[0], results[0])
                                                   : place_fold(p_, t_, build_, stages, results, out_.dtype, rounds_,
                                                                ValueMovement::first_partial);
    const Parts parts{parts_.values, false, true, 0, pages_};
    const StageId store =
        build_.add_stage("store", Store{out_.id, pattern(out_, Follows::queries, parts, e_.width), {}}, groups[0],
                         movement_engine(t_, ValueMovement::result), rounds_, {input_port(result)});
    build_.add_edge(last, result, {store});
    if (groups.size() == 1) return;
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    const std::int64_t slice = static_cast<std::int64_t>(pages_ / groups.size() * plan_.page_k) * t_.native_tile;
    for (std::size_t l = 0; l < groups.size(); ++l)
      ranges.emplace_back(static_cast<std::int64_t>(l) * slice,
                          std::min(e_.keys, static_cast<std::int64_t>(l + 1) * slice));
    add_left_deep_tree(p_, op_.id, w_.chip, ranges);
  }

  // Room for `pages` pages, or for as many as take an eighth of the site's.
  void keep(BufferId buffer, std::uint64_t pages) {
    Buffer& b = p_.buffers[buffer.value];
    b.depth_pages =
        std::clamp<std::uint64_t>(t_.pmu.capacity_bytes / 8 / b.page_bytes, 2, std::max<std::uint64_t>(pages, 2));
  }

  // Weights of slice l of the keys times their values.
  Made place_slice(std::uint64_t l, GroupId group, const Made& weights) {
    const auto pages = static_cast<std::uint32_t>(pages_ / parts_.slices);
    PageMap to_all;
    if (parts_.values > 1) {
      to_all.kind = PageMapKind::multicast;
      to_all.targets.resize(plan_.sites_m * parts_.heads);
      std::uint32_t site = 0;
      for_each_site(parts_.values,
                    [&](const auto&, std::uint64_t, std::uint64_t block) { to_all.targets[block].push_back(site++); });
    }
    const Made p = cross(weights, std::move(to_all), "recv_weights" + suffix(l), rounds_ * pages,
                         add_scores("landing_weights" + suffix(l), group, v_.dtype), group,
                         movement_engine(t_, ValueMovement::weights));
    const std::uint64_t first_page = mutated("attention.values_of_the_first_slice", l, 0) * pages;
    const Parts parts{parts_.values, false, true, first_page, pages};
    const Made v =
        load("v" + suffix(l), v_, Follows::keys, parts, group, movement_engine(t_, ValueMovement::values), e_.width);
    if (parts_.slices > 1) {
      // Slices work side by side: weights of one do not wait until values of another have been multiplied.
      keep(p.buffer, pages);
      keep(v.buffer, pages);
    }
    const bool whole = parts_.slices == 1;
    const DType accumulator = accumulator_of(v_.dtype), result = whole ? out_.dtype : accumulator;
    const BufferId out =
        build_.add_buffer(whole ? "c" : "partial_k" + std::to_string(l), whole ? BufferKind::fifo : BufferKind::interm,
                          group, result, plan_.block_m, plan_.block_n, e_.queries, e_.width);
    const std::uint64_t first = l * pages * plan_.page_k;
    const MatmulTiles body{op_.id,
                           plan_.block_m,
                           plan_.block_n,
                           plan_.page_k,
                           std::min(build_.tiles(e_.keys), first + pages * plan_.page_k) - first,
                           mutated<std::uint64_t>("attention.values_of_one_page", pages, 1),
                           v_.dtype,
                           accumulator,
                           result,
                           false};
    const StageId stage =
        build_.add_stage("values" + suffix(l), body, group, {StageRole::compute, 0}, rounds_ * pages,
                         {input_port(p.buffer), input_port(v.buffer), output_port(out, pages - 1, pages, pages)});
    build_.add_edge(p.stage, p.buffer, {stage});
    build_.add_edge(v.stage, v.buffer, {stage});
    return {stage, out};
  }

  SpatialProgram& p_;
  const Target& t_;
  const Work& w_;
  const BlockPlan& plan_;
  SectionBuilder build_;
  const Operator& op_;
  const AttentionExtents e_;
  const Tensor& q_;
  const Tensor& k_;
  const Tensor& v_;
  const Tensor& out_;
  const AttentionSites parts_;
  const std::vector<AxisDeal> heads_;  // heads of keys, and the heads of queries that share one
  const std::vector<AxisDeal> rows_;   // the stack and its row blocks
  const std::uint64_t rounds_;         // blocks that a site works on
  const std::uint32_t pages_;          // of keys
  std::vector<BufferId> weights_;      // by slice of the keys
};

}  // namespace

void place_attention(SpatialProgram& program, const Target& target, const Work& work, SectionId section,
                     SiteAllocator& sites) {
  AttentionPlacer(program, target, work, section).place(sites);
}

}  // namespace rdusim
