#include "compiler/passes/place_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/passes/extents.h"
#include "compiler/passes/ports.h"
#include "compiler/passes/recipe.h"
#include "compiler/passes/section_builder.h"

namespace rdusim {
namespace {

// What a page spans of the rows and columns of a block, and what its map says: an axis that it does not span is
// repeated.
struct Span {
  bool rows = true;
  bool columns = true;
};

class RowPlacer {
 public:
  RowPlacer(SpatialProgram& p, const Target& t, const Work& w, SectionId section)
      : p_(p),
        t_(t),
        w_(w),
        plan_(*w.plan),
        build_(p, t, w, section),
        op_(build_.op()),
        steps_(recipe_of(*p.operators, op_)),
        accumulator_(accumulator_of(p.operators->operand(op_.in[0]).dtype)),
        pin_(pin_of(*p.operators, op_.id)) {}

  void place(SiteAllocator& sites) {
    group_ = build_.add_group(sites.near_agcus(plan_.sites_m * plan_.sites_n));
    sites.lend_memory(plan_.sites_m * plan_.sites_n * (pin_.pmus.value_or(1) - 1));
    for (std::uint32_t i = 0; i < op_.in.size(); ++i) place_operand(i);
    for (std::uint32_t s = 0; s < steps_.size(); ++s) place_step(s);
    const Result& last = results_.back();
    const Tensor& c = build_.tensor_of(op_.out);
    const Span span{true, !steps_.back().is_column};
    const StageId store = build_.add_stage(
        "store", Store{c.id, pattern(c, span), {}, {}, pin_.stream_lanes.value_or(0)}, group_, next_movement(),
        plan_.rounds_m * (span.columns ? plan_.rounds_n : 1), {input_port(last.buffer)});
    consumers_[last.buffer.value].push_back(store);
    for (const Result& r : results_) build_.add_edge(r.stage, r.buffer, consumers_[r.buffer.value]);
    for (const Source& s : sources_) build_.add_edge(s.load, s.buffer, consumers_[s.buffer.value]);
    build_.assign_work(last.stage);
  }

 private:
  // A load of an operand, and who is served by it: every step that takes the operand, or just one.
  struct Source {
    std::uint32_t operand = 0;
    std::optional<std::uint32_t> step;
    StageId load;
    BufferId buffer;
  };
  struct Result {
    StageId stage;
    BufferId buffer;
  };

  Engine next_movement() { return movement_engine(t_, movements_++); }

  Span span_of(std::uint32_t operand) const {
    return {spans_rows(*p_.operators, op_, operand), spans_columns(*p_.operators, op_, operand)};
  }
  Span span_of(Step::Source source) const {
    if (source.is_step) return {true, !steps_[source.index].is_column};
    return span_of(source.index);
  }

  // The pages of a tensor that the instances take block by block: with the columns' loop only where it spans them.
  AccessPattern pattern(const Tensor& t, Span span) const {
    AccessPattern pattern;
    const bool is_row = t.shape.size() < 2;
    pattern.loops = {plan_.rounds_m};
    if (span.columns) pattern.loops.push_back(plan_.rounds_n);
    const std::uint64_t row_step = span.rows ? plan_.sites_m * plan_.block_m : 0;
    const std::uint64_t column_step = plan_.sites_n * plan_.block_n;
    const auto axes = [&](std::uint64_t row, std::uint64_t column) {
      return is_row ? std::vector{column} : std::vector{row, column};
    };
    pattern.stride.push_back(axes(row_step, 0));
    if (span.columns) pattern.stride.push_back(axes(0, column_step));
    const std::uint64_t first_row = span.rows && !is_row ? build_.tiles(w_.offset_m - t.offset[0]) : 0;
    const std::uint64_t first_column = span.columns ? build_.tiles(w_.offset_n - t.offset.back()) : 0;
    for (std::uint64_t i = 0; i < plan_.sites_m; ++i)
      for (std::uint64_t j = 0; j < plan_.sites_n; ++j)
        pattern.first.push_back(axes(first_row + (span.rows ? i * plan_.block_m : 0),
                                     first_column + (span.columns ? j * plan_.block_n : 0)));
    pattern.page_tiles = axes(span.rows ? plan_.block_m : 1, span.columns ? plan_.block_n : 1);
    pattern.extent_tiles =
        axes(first_row + (span.rows ? build_.tiles(w_.m) : 1), first_column + (span.columns ? build_.tiles(w_.n) : 1));
    return pattern;
  }

  BufferId add_buffer(const std::string& name, DType type, Span span) {
    const BufferId buffer =
        build_.add_buffer(name, BufferKind::fifo, group_, type, span.rows ? plan_.block_m : 1,
                          span.columns ? plan_.block_n : 1, span.rows ? w_.m : 1, span.columns ? w_.n : 1);
    p_.buffers[buffer.value].pmu = buffers_++ % pin_.pmus.value_or(1);
    return buffer;
  }

  void place_operand(std::uint32_t operand) {
    std::vector<std::uint32_t> takers;
    for (std::uint32_t s = 0; s < steps_.size(); ++s)
      for (const Step::Source source : steps_[s].in)
        if (source == Step::Source{false, operand}) takers.push_back(s);
    const Tensor& t = build_.tensor_of(op_.in[operand]);
    const Span span = span_of(operand);
    const Bytes page = page_bytes(span.rows ? plan_.block_m : 1, span.columns ? plan_.block_n : 1, span.rows ? w_.m : 1,
                                  span.columns ? w_.n : 1, t.dtype, t_.native_tile);
    // A later step starts on a row when an earlier one has seen all of it.
    const std::uint64_t rows_of_pages = 2 * plan_.rounds_n;
    const bool shared = takers.size() < 2 || !span.columns || rows_of_pages * page <= t_.pmu.capacity_bytes / 4;
    const auto load = [&](std::optional<std::uint32_t> step) {
      const std::string name = "in" + std::to_string(operand) + (step ? "_" + steps_[*step].name : "");
      Load l{t.id, pattern(t, span), {}};
      l.lanes = pin_.stream_lanes.value_or(0);
      if ((!span.rows && plan_.sites_m > 1) || (!span.columns && plan_.sites_n > 1))
        for (std::uint32_t i = 0; i < plan_.sites_m; ++i)
          for (std::uint32_t j = 0; j < plan_.sites_n; ++j)
            l.multicast_set.push_back((span.rows ? i * static_cast<std::uint32_t>(plan_.sites_n) : 0) +
                                      (span.columns ? j : 0));
      const BufferId buffer = add_buffer(name, t.dtype, span);
      if (!step && takers.size() > 1 && span.columns && plan_.rounds_n > 1)
        p_.buffers[buffer.value].depth_pages = rows_of_pages;
      const StageId stage =
          build_.add_stage("load_" + name, std::move(l), group_, next_movement(),
                           plan_.rounds_m * (span.columns ? plan_.rounds_n : 1), {output_port(buffer)});
      sources_.push_back({operand, step, stage, buffer});
    };
    if (shared)
      load(std::nullopt);
    else
      for (const std::uint32_t s : takers) load(s);
  }

  BufferId buffer_for(Step::Source source, std::uint32_t step) const {
    if (source.is_step) return results_[source.index].buffer;
    return std::find_if(sources_.begin(), sources_.end(),
                        [&](const Source& s) { return s.operand == source.index && (!s.step || *s.step == step); })
        ->buffer;
  }

  void place_step(std::uint32_t index) {
    const Step& step = steps_[index];
    const bool by_columns = !step.is_column || step.join;
    const auto phases = static_cast<std::uint32_t>(by_columns ? plan_.rounds_n : 1);
    Generic g;
    g.iterators = {IteratorKind::parallel, step.join ? IteratorKind::reduction : IteratorKind::parallel};
    g.bodies = {{phases, step.body}};
    g.join = step.join;
    g.accumulator = accumulator_;
    g.lanes = pin_.lanes.value_or(0);
    const bool last = index + 1 == steps_.size();
    g.result = last ? p_.operators->operand(op_.out).dtype : accumulator_;

    std::vector<Port> ports;
    std::vector<BufferId> taken;
    for (const Step::Source source : step.in) {
      const Span span = span_of(source);
      const BufferId buffer = buffer_for(source, index);
      Port port = input_port(buffer);
      // A column serves all pages of its row.
      if (by_columns && !span.columns) port.pop = in_phases(phases - 1, phases, phases);
      ports.push_back(std::move(port));
      taken.push_back(buffer);
      // A column of a step that works on columns only is all there is of its row.
      g.maps.push_back({{span.rows ? 1 : 0, 0, 0}, {0, span.columns || !by_columns ? 1 : 0, 0}});
    }
    g.maps.push_back({{1, 0, 0}, {0, step.join ? 0 : 1, 0}});
    const BufferId out = add_buffer(last ? "c" : step.name, g.result, {true, !step.is_column});
    ports.push_back(step.join ? output_port(out, phases - 1, phases, phases) : output_port(out));
    const StageId stage = build_.add_stage(step.name, std::move(g), group_, {StageRole::compute, index},
                                           plan_.rounds_m * phases, std::move(ports));
    for (const BufferId b : taken) consumers_of(b).push_back(stage);
    consumers_of(out);
    results_.push_back({stage, out});
  }

  std::vector<StageId>& consumers_of(BufferId b) {
    if (consumers_.size() <= b.value) consumers_.resize(b.value + 1);
    return consumers_[b.value];
  }

  SpatialProgram& p_;
  const Target& t_;
  const Work& w_;
  const BlockPlan& plan_;
  SectionBuilder build_;
  const Operator& op_;
  std::vector<Step> steps_;
  DType accumulator_;
  SchedulePin pin_;
  GroupId group_;
  std::uint32_t movements_ = 0;
  std::uint32_t buffers_ = 0;  // they take turns in the memory units of a site
  std::vector<Source> sources_;
  std::vector<Result> results_;                  // by step
  std::vector<std::vector<StageId>> consumers_;  // by buffer
};

}  // namespace

void place_rows(SpatialProgram& program, const Target& target, const Work& work, SectionId section,
                SiteAllocator& sites) {
  RowPlacer(program, target, work, section).place(sites);
}

}  // namespace rdusim
