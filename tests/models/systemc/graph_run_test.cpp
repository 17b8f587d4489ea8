// What a section does beyond one matmul: folds, loads that share a read, feedback, engines, stops and stalls.
#include <doctest/doctest.h>

#include "tests/models/systemc/forked_run.h"

namespace rdusim::graph_run_test {
namespace {

using namespace test;

constexpr std::uint32_t one = 1;

void check_laws(const Report& r) {
  REQUIRE(r.ran);
  CHECK(r.rising);
  CHECK(r.accounted);
  CHECK(r.within);
}

ExprNode operand(std::uint32_t port) {
  return {ExprOp::operand, port, 0};
}
ExprNode node(ExprOp op) {
  return {op, 0, 0};
}
ExprNode constant(double v) {
  return {ExprOp::constant, 0, v};
}

// Loads `parts` tensors of one page row each, folds page i of all of them in a cycle of `parts` phases, stores the
// sums.
struct Fold {
  SpatialProgram p;
  StageId fold;
  std::vector<BufferId> in;
  BufferId out;
};
Fold make_fold(const Target& t, std::uint32_t parts, std::uint64_t pages, DType type = DType::int32) {
  Builder b(t);
  Fold f;
  const GroupId g = b.group(0, {{1, 2}});
  std::vector<StageId> loads;
  for (std::uint32_t i = 0; i < parts; ++i) {
    const TensorId x =
        b.tensor("x" + std::to_string(i), {4, static_cast<std::int64_t>(4 * pages)}, type, TensorRole::input);
    f.in.push_back(b.buffer(g, 2, 16 * bytes_of(type), type));
    loads.push_back(b.stage("load" + std::to_string(i), Load{x, b.walk(x, 1, 1), {}}, g, {Builder::out(f.in[i])}, pages,
                            move(i % 3)));
  }
  const TensorId y = b.tensor("y", {4, static_cast<std::int64_t>(4 * pages)}, type, TensorRole::output);
  f.out = b.buffer(g, 2, 16 * bytes_of(type), type);
  Generic fold;
  fold.accumulator = fold.result = type;
  std::vector<Port> ports;
  for (std::uint32_t i = 0; i < parts; ++i) {
    // Phase i takes a page of port i.
    Cyclic<std::uint32_t> mine;
    if (i > 0) mine.push_back({i, 0});
    mine.push_back({1, 1});
    if (i + 1 < parts) mine.push_back({parts - 1 - i, 0});
    ports.push_back(Builder::in(f.in[i], mine));
    fold.bodies.push_back(
        {1, i == 0 ? Expr{operand(0)} : Expr{node(ExprOp::accumulator), operand(i), node(ExprOp::add)}});
  }
  Cyclic<std::uint32_t> last{{parts - 1, 0}, {1, 1}};
  if (parts == 1) last = always(one);
  ports.push_back(Builder::out(f.out, last));
  f.fold = b.stage("fold", fold, g, ports, parts * pages, pcu0);
  const StageId store = b.stage("store", Store{y, b.walk(y, 1, 1), {}}, g, {Builder::in(f.out)}, pages, move(3));
  for (std::uint32_t i = 0; i < parts; ++i) b.local(loads[i], f.in[i], {f.fold});
  b.local(f.fold, f.out, {store});
  f.p = b.p;
  return f;
}
TensorImages fold_images(const SpatialProgram& p) {
  TensorImages images = blank_images(p);
  for (std::size_t t = 0; t + 1 < images.size(); ++t)
    for (std::size_t i = 0; i < images[t].size() / 4; ++i)
      set(images[t], i, static_cast<std::int32_t>((t + 1) * 1000 + i));
  return images;
}
// Sum over the tensors, tensor `twice` counted twice and tensor `never` not at all on page `page`.
std::int32_t sum(const TensorImages& images, std::size_t i) {
  std::int32_t s = 0;
  for (std::size_t t = 0; t + 1 < images.size(); ++t) s += get<std::int32_t>(images[t], i);
  return s;
}

TEST_CASE("a fold in phases adds one page of every port, in the order of its bodies") {
  const Target t = small_target(1);
  for (const std::uint32_t parts : {1u, 2u, 5u}) {
    const Fold f = make_fold(t, parts, 6);
    const TensorImages images = fold_images(f.p);
    const Report r = run_forked(f.p, t, {}, images);
    check_laws(r);
    REQUIRE(r.end == MachineOutcome::End::finished);
    for (std::size_t i = 0; i < 4 * 24; ++i) CHECK(get<std::int32_t>(r.images.back(), i) == sum(images, i));
    CHECK(r.count[Listener::kPartialFolded] == parts * 6);
    CHECK(r.count[Listener::kFiringStarted] == parts * 6 * 2 + 6);
    CHECK(r.count[Listener::kFiringCompleted] == r.count[Listener::kFiringStarted]);
  }
}

TEST_CASE("a body adds, subtracts, multiplies, takes the greater and negates, in postfix order") {
  const Target t = small_target(1);
  Fold f = make_fold(t, 2, 1);
  Generic& g = std::get<Generic>(f.p.stages[f.fold.value].kind);
  f.p.stages[f.fold.value].firings = 1;
  for (Port& port : f.p.stages[f.fold.value].ports) {
    if (port.direction == Direction::input) port.need = port.pop = always(one);
    if (port.direction == Direction::output) port.reserve = port.push = always(one);
  }
  // max(-(x0 * 3 - x1), 7)
  g.bodies = always(Expr{operand(0), constant(3), node(ExprOp::multiply), operand(1), node(ExprOp::subtract),
                         node(ExprOp::negate), constant(7), node(ExprOp::maximum)});
  TensorImages images = fold_images(f.p);
  for (int i = 0; i < 16; ++i) set(images[0], i, i - 8), set(images[1], i, 2 * i - 5);
  const Report r = run_forked(f.p, t, {}, images);
  check_laws(r);
  REQUIRE(r.end == MachineOutcome::End::finished);
  for (int i = 0; i < 16; ++i)
    CHECK(get<std::int32_t>(r.images.back(), i) == std::max(-((i - 8) * 3 - (2 * i - 5)), 7));
}

TEST_CASE("narrow pages are computed in the accumulator's type") {
  const Target t = small_target(1);
  Fold f = make_fold(t, 3, 2, DType::int8);
  Generic& g = std::get<Generic>(f.p.stages[f.fold.value].kind);
  g.accumulator = DType::int32;
  TensorImages images = blank_images(f.p);
  for (std::size_t i = 0; i < 32; ++i) {
    set(images[0], i, std::int8_t{100});
    set(images[1], i, std::int8_t{100});
    set(images[2], i, std::int8_t{-120});
  }
  const Report r = run_forked(f.p, t, {}, images);
  REQUIRE(r.end == MachineOutcome::End::finished);
  for (std::size_t i = 0; i < 32; ++i) CHECK(get<std::int8_t>(r.images.back(), i) == 80);  // in int8 it would not fit
}

TEST_CASE("a fold that adds an operand twice or leaves it out changes that page alone") {
  const Target t = small_target(1);
  const Fold f = make_fold(t, 3, 4);
  const TensorImages images = fold_images(f.p);
  for (const FaultKind kind : {FaultKind::partial_double, FaultKind::partial_skip}) {
    MachineOptions options;
    options.faults = {{kind, std::nullopt, std::nullopt, StageAt{f.fold, 0}, 0, 7}};  // page 2, operand 1
    const Report r = run_forked(f.p, t, options, images);
    REQUIRE(r.end == MachineOutcome::End::finished);
    for (std::size_t row = 0; row < 4; ++row)
      for (std::size_t col = 0; col < 16; ++col) {
        const std::size_t i = row * 16 + col;
        const std::int32_t wrong =
            col / 4 != 2 ? 0 : get<std::int32_t>(images[1], i) * (kind == FaultKind::partial_double ? 1 : -1);
        CHECK(get<std::int32_t>(r.images.back(), i) == sum(images, i) + wrong);
      }
    CHECK(r.count[Listener::kPartialFolded] == (kind == FaultKind::partial_double ? 13 : 11));
  }
}

std::int32_t first_of_page(const Report& r, std::size_t page) {
  return get<std::int32_t>(r.images.back(), page * 4);
}

TEST_CASE("pages of a buffer that are swapped, flipped, dropped or repeated do what their name says") {
  const Target t = small_target(1);
  const Fold f = make_fold(t, 1, 6);
  const TensorImages images = fold_images(f.p);
  const auto run = [&](FaultKind kind, bool after = true) {
    MachineOptions options;
    options.faults = {{kind, BufferAt{after ? f.out : f.in[0], 0}, std::nullopt, std::nullopt, 0, 2}};
    return run_forked(f.p, t, options, images);
  };
  const auto page = [&](std::size_t n) { return get<std::int32_t>(images[0], n * 4); };
  for (const bool after : {false, true}) {
    const Report swapped = run(FaultKind::page_swap, after);
    REQUIRE(swapped.end == MachineOutcome::End::finished);
    const std::size_t order[] = {0, 1, 3, 2, 4, 5};
    for (std::size_t n = 0; n < 6; ++n) CHECK(first_of_page(swapped, n) == page(order[n]));

    const Report flipped = run(FaultKind::page_bit_flip, after);
    REQUIRE(flipped.end == MachineOutcome::End::finished);
    for (std::size_t n = 0; n < 6; ++n) CHECK(first_of_page(flipped, n) == (n == 2 ? page(n) ^ 1 : page(n)));

    const Report dropped = run(FaultKind::page_drop, after);
    REQUIRE(dropped.ran);
    CHECK(dropped.end == MachineOutcome::End::quiescent);
    for (std::size_t n = 0; n < 5; ++n) CHECK(first_of_page(dropped, n) == page(n < 2 ? n : n + 1));
    REQUIRE(!dropped.waiting.empty());

    const Report repeated = run(FaultKind::page_duplicate, after);
    REQUIRE(repeated.ran);
    for (std::size_t n = 0; n < 6; ++n) CHECK(first_of_page(repeated, n) == page(n <= 2 ? n : n - 1));
    CHECK(!repeated.within);  // a page that nobody reserved
  }
}

TEST_CASE("a dropped page is named by who waits for it") {
  const Target t = small_target(1);
  const Fold f = make_fold(t, 1, 6);
  MachineOptions options;
  options.faults = {{FaultKind::page_drop, BufferAt{f.out, 0}, std::nullopt, std::nullopt, 0, 2}};
  const Report r = run_forked(f.p, t, options);
  REQUIRE(r.waiting.size() == 1);
  const Waiting& w = r.waiting[0];
  CHECK(w.what == Waiting::For::page);
  CHECK(w.stage == StageAt{StageId{2}, 0});
  CHECK(w.buffer == BufferAt{f.out, 0});
  CHECK(w.firing == 5);
  CHECK(w.have == 0);
  CHECK(w.want == 1);
}

TEST_CASE("loads of one multicast set share one read and fill every member's buffer") {
  const Target t = small_target(1);
  const auto make = [&](bool shared) {
    Builder b(t);
    const GroupId g = b.group(0, {{0, 1}, {2, 1}, {3, 3}});
    const TensorId x = b.tensor("x", {4, 32}, DType::int32, TensorRole::input);
    const TensorId y = b.tensor("y", {12, 32}, DType::int32, TensorRole::output);
    const BufferId buffer = b.buffer(g, 2, 64, DType::int32);
    Load load{x, b.walk(x, 1, 1, 3), {}};
    if (shared) load.multicast_set = {0, 0, 0};
    const StageId from = b.stage("load", load, g, {Builder::out(buffer)}, 8, move(0));
    AccessPattern a = b.walk(y, 1, 1, 3);
    a.loops = {8};
    a.stride = {{0, 1}};
    a.first = {{0, 0}, {1, 0}, {2, 0}};
    const StageId to = b.stage("store", Store{y, a, {}}, g, {Builder::in(buffer)}, 8, move(1));
    b.local(from, buffer, {to});
    return b.p;
  };
  const SpatialProgram together = make(true), apart = make(false);
  TensorImages images = blank_images(together);
  for (int i = 0; i < 128; ++i) set(images[0], i, i + 1);
  const Report r = run_forked(together, t, {}, images), s = run_forked(apart, t, {}, images);
  check_laws(r);
  check_laws(s);
  REQUIRE(r.end == MachineOutcome::End::finished);
  for (int m = 0; m < 3; ++m)
    for (int i = 0; i < 128; ++i) CHECK(get<std::int32_t>(r.images[1], m * 128 + i) == i + 1);
  CHECK(r.images == s.images);
  // Pages of 64 bytes are one burst each: 8 reads together, 24 apart, and 24 writes.
  CHECK(r.count[Listener::kMemoryUsed] == 8 + 24);
  CHECK(s.count[Listener::kMemoryUsed] == 24 + 24);
  CHECK(r.count[Listener::kFiringStarted] == s.count[Listener::kFiringStarted]);
}

// `a` feeds `b` through one buffer and `b` feeds `a` back through another, which starts with `initial` pages.
SpatialProgram loop(const Target& t, std::uint64_t initial, std::uint64_t depth, std::uint64_t initial_forward = 0) {
  Builder b(t);
  const GroupId g = b.group(0, {{0, 0}});
  const BufferId forward = b.buffer(g, depth, 64, DType::int32, initial_forward);
  const BufferId back = b.buffer(g, depth, 64, DType::int32, initial);
  Generic copy;
  copy.accumulator = copy.result = DType::int32;
  copy.bodies = always(Expr{operand(0)});
  const StageId a = b.stage("a", copy, g, {Builder::in(back), Builder::out(forward)}, 10, pcu0);
  const StageId c = b.stage("b", copy, g, {Builder::in(forward), Builder::out(back)}, 10, pcu0);
  b.local(a, forward, {c});
  b.local(c, back, {a});
  return b.p;
}

TEST_CASE("a loop runs on its initial pages, and stands still without") {
  const Target t = small_target(1);
  const Report r = run_forked(loop(t, 1, 2), t);
  check_laws(r);
  CHECK(r.end == MachineOutcome::End::finished);
  const Report stuck = run_forked(loop(t, 0, 2), t);
  REQUIRE(stuck.ran);
  CHECK(stuck.end == MachineOutcome::End::quiescent);
  REQUIRE(stuck.waiting.size() == 2);
  for (const Waiting& w : stuck.waiting) CHECK(w.what == Waiting::For::page);
  // Both buffers full: each waits for the other to take a page.
  const Report full = run_forked(loop(t, 1, 1, 1), t);
  CHECK(full.end == MachineOutcome::End::quiescent);
  REQUIRE(full.waiting.size() == 2);
  for (const Waiting& w : full.waiting) {
    CHECK(w.what == Waiting::For::room);
    CHECK(w.have == 0);
    CHECK(w.want == 1);
  }
}

TEST_CASE("stages that share a PCU take turns, and who waits says that it was the engine") {
  Target t = small_target(1);
  t.pcu.simd_ops_per_cycle.fill(1);
  const Report r = run_forked(loop(t, 2, 2), t);
  check_laws(r);
  CHECK(r.end == MachineOutcome::End::finished);
  CHECK(r.count[Listener::kFiringStarted] == 20);
  CHECK(r.stalled[static_cast<std::size_t>(StallCause::engine)] > 0);
}

TEST_CASE("stalls are put down to what was waited for") {
  Target t = small_target(1);
  const auto stalled = [](const Report& r, StallCause c) { return r.stalled[static_cast<std::size_t>(c)]; };
  const Report starved = run_forked(make_fold(t, 1, 40).p, t);
  CHECK(stalled(starved, StallCause::input_starvation) > 0);
  CHECK(stalled(starved, StallCause::memory) > 0);  // loads whose pages are all under way
  // A PCU so slow that it is the bottleneck: its loads wait for it.
  t.pcu.simd_ops_per_cycle.fill(1);
  t.pcu.simd_latency_cycles = 0;
  t.hbm.latency_cycles = 1;
  Fold deep = make_fold(t, 1, 40);
  for (Buffer& b : deep.p.buffers) b.depth_pages = 6;
  const Report slow = run_forked(deep.p, t);
  CHECK(stalled(slow, StallCause::back_pressure) > stalled(slow, StallCause::memory));
}

TEST_CASE("a load whose page lies outside the tensor never comes, and its reader is named") {
  const Target t = small_target(1);
  Fold f = make_fold(t, 1, 6);
  auto& load = std::get<Load>(f.p.stages[0].kind);
  f.p.tensors[0].tiles[1] = 3;  // the slice was cut and the stage was not lowered again
  f.p.tensors[0].shape[1] = 12;
  CHECK(load.pattern.extent_tiles[1] == 6);
  const Report r = run_forked(f.p, t, {}, blank_images(f.p));
  REQUIRE(r.ran);
  CHECK(r.end == MachineOutcome::End::quiescent);
  bool load_named = false, fold_named = false;
  for (const Waiting& w : r.waiting) {
    if (w.stage == StageAt{StageId{0}, 0}) load_named = w.what == Waiting::For::firing && w.firing == 3;
    if (w.stage == StageAt{StageId{1}, 0}) fold_named = w.what == Waiting::For::page && w.firing == 3;
  }
  CHECK(load_named);
  CHECK(fold_named);
}

TEST_CASE("a run ends at the cycle limit, and says where it was") {
  const Target t = small_target(1);
  const Fold f = make_fold(t, 2, 50);
  const Report whole = run_forked(f.p, t);
  REQUIRE(whole.end == MachineOutcome::End::finished);
  MachineOptions options;
  options.max_cycles = whole.cycles;
  CHECK(run_forked(f.p, t, options).end == MachineOutcome::End::finished);
  options.max_cycles = whole.cycles - 1;
  const Report cut = run_forked(f.p, t, options);
  CHECK(cut.end == MachineOutcome::End::max_cycles);
  CHECK(cut.cycles == whole.cycles - 1);
  options.max_cycles = 5;
  CHECK(run_forked(f.p, t, options).end == MachineOutcome::End::max_cycles);
}

TEST_CASE("sections follow each other, each after its launch") {
  const Target t = small_target(1);
  Fold f = make_fold(t, 1, 4);
  // The store's stages as a second section of their own: a copy of the graph with new ids.
  SpatialProgram twice = f.p;
  const auto stages = f.p.stages.size(), buffers = f.p.buffers.size();
  twice.sections.push_back({SectionId{1}, "again", 1});
  for (Stage s : f.p.stages) {
    s.id = StageId{twice.stages.size()};
    s.section = SectionId{1};
    for (Port& port : s.ports) port.buffer = BufferId{port.buffer.value + buffers};
    twice.stages.push_back(s);
  }
  for (Buffer b : f.p.buffers) {
    b.id = BufferId{twice.buffers.size()};
    twice.buffers.push_back(b);
  }
  for (Edge e : f.p.edges) {
    e.id = EdgeId{twice.edges.size()};
    e.from = StageId{e.from.value + stages};
    e.buffer = BufferId{e.buffer.value + buffers};
    for (StageId& to : e.to) to = StageId{to.value + stages};
    twice.edges.push_back(e);
  }
  const Report once = run_forked(f.p, t), both = run_forked(twice, t);
  check_laws(both);
  REQUIRE(both.end == MachineOutcome::End::finished);
  CHECK(both.count[Listener::kSectionStarted] == 2);
  CHECK(both.count[Listener::kSectionEnded] == 2);
  // A section starts with the machine in a defined state: the second takes as long as the first, launch included.
  CHECK(both.cycles == 2 * once.cycles);
}

TEST_CASE("an unloaded page takes the sum of what its units say, and not one cycle more") {
  const Target t = small_target(1);
  Builder b(t);
  const GroupId g = b.group(0, {{1, 2}});  // three hops from its AGCU
  const TensorId x = b.tensor("x", {4, 4}, DType::int32, TensorRole::input);
  const TensorId y = b.tensor("y", {4, 4}, DType::int32, TensorRole::output);
  const BufferId buffer = b.buffer(g, 1, 64, DType::int32);
  const StageId load = b.stage("load", Load{x, b.walk(x, 1, 1), {}}, g, {Builder::out(buffer)}, 1, move(0));
  const StageId store = b.stage("store", Store{y, b.walk(y, 1, 1), {}}, g, {Builder::in(buffer)}, 1, move(1));
  b.local(load, buffer, {store});
  const Report r = run_forked(b.p, t);
  check_laws(r);
  // Memory: a row opened (3), 64 bytes at 25/3 a cycle (7.68, so 11 in all), 40 to the first byte; AGCU: 5. The page's
  // four flits leave the AGCU from cycle 52 to 56.
  const Cycles read = 11 + 40 + 5;
  // Network: an endpoint, three hops, an endpoint; PMU: 2 of access behind the last byte.
  const Cycles pushed = read + 1 + 3 + 1 + 2;
  // PMU: 2 of access; network as before; then the AGCU takes the flits as they come, 4 cycles, and 5 of its own.
  const Cycles at_memory = pushed + 2 + 1 + 3 + 1 + 4 + 5;
  // Memory: the bus is turned round (4), the row is open, 7.68 cycles of data; the acknowledgement passes the AGCU.
  const Cycles written = at_memory + 4 + 8 + 5;
  CHECK(r.cycles == t.host.section_launch_cycles + t.host.argument_load_cycles + written);
}

TEST_CASE("a store takes its next page when it has read the last, while that is on its way") {
  const Target t = small_target(1);
  const auto cycles = [&](std::uint64_t pages, std::uint32_t lanes) {
    Builder b(t);
    const GroupId g = b.group(0, {{1, 2}});
    const TensorId y = b.tensor("y", {4, static_cast<std::int64_t>(4 * pages)}, DType::int32, TensorRole::output);
    const BufferId buffer = b.buffer(g, pages, 64, DType::int32, pages);  // all there from the start
    b.stage("store", Store{y, b.walk(y, 1, 1), {}, {}, lanes}, g, {Builder::in(buffer)}, pages, move(1));
    const Report r = run_forked(b.p, t);
    REQUIRE(r.end == MachineOutcome::End::finished);
    return r.cycles;
  };
  // Sixteen elements, one a cycle: access to the PMU, the network, the AGCU and memory are paid once. Each page goes to a
  // channel of its own, which opens a row for it.
  CHECK(cycles(2, 1) == cycles(1, 1) + 16);
  CHECK(cycles(4, 1) == cycles(1, 1) + 3 * 16);
  // Sixteen a cycle: the network takes them one by one, 4 cycles each.
  CHECK(cycles(4, 16) == cycles(1, 16) + 3 * 4);
}

TEST_CASE(
    "a load of what its section stores reads each page when that has been stored and told, and not a cycle earlier") {
  const auto run = [](std::uint64_t pages, std::uint32_t lanes, bool second_half, Cycles control_hop = 1) {
    Target t = small_target(1);
    t.network.control_hop_cycles = control_hop;
    Builder b(t);
    const GroupId from = b.group(0, {{1, 2}}), to = b.group(0, {{3, 2}}, 1);
    const std::vector<std::int64_t> shape{4, static_cast<std::int64_t>(4 * pages)};
    const TensorId h = b.tensor("h", shape, DType::int32, TensorRole::intermediate);
    const TensorId y = b.tensor("y", shape, DType::int32, TensorRole::output);
    const BufferId made = b.buffer(from, pages, 64, DType::int32, pages);  // all there from the start
    const BufferId read = b.buffer(to, pages, 64, DType::int32);
    b.stage("store", Store{h, b.walk(h, 1, 1), {}, {}, lanes}, from, {Builder::in(made)}, pages, move(1));
    AccessPattern order = b.walk(h, 1, 1);
    if (second_half) {
      order.first = {{0, pages / 2}};
      order.loops = {pages / 2};
      order.stride = {{0, 1}};
    }
    const std::uint64_t loaded = second_half ? pages / 2 : pages;
    const StageId load = b.stage("load", Load{h, order, {}}, to, {Builder::out(read)}, loaded, move(0));
    const StageId keep = b.stage("keep", Store{y, order, {}}, to, {Builder::in(read)}, loaded, move(1));
    b.local(load, read, {keep});
    const Report r = run_forked(b.p, t);
    REQUIRE(r.end == MachineOutcome::End::finished);
    return r.cycles - t.host.section_launch_cycles - t.host.argument_load_cycles;
  };
  // Stored: PMU 2, endpoint 1, three hops, endpoint 1, the AGCU's port 4 and pipeline 5; memory opens a row (3) and takes
  // 7.68 cycles of data; the acknowledgement passes the AGCU's pipeline.
  const Cycles stored = 2 + 1 + 3 + 1 + 4 + 5 + 3 + 8 + 5;
  // Told: two hops of control wires. Read: the bus turns, the row is open, 40 to the first byte, the AGCU's pipeline; an
  // endpoint, one hop, an endpoint, and 2 of access behind the last byte.
  const Cycles read = 2 + 4 + 8 + 40 + 5 + 1 + 1 + 1 + 2;
  // Kept, by the other AGCU: one hop; the bus turns.
  const Cycles kept = 2 + 1 + 1 + 1 + 4 + 5 + 4 + 8 + 5;
  CHECK(run(1, 0, false) == stored + read + kept);
  CHECK(run(1, 0, false, 3) == stored + read + kept + 2 * 2);
  // Pages that come 16 cycles apart are read and kept 16 cycles apart.
  CHECK(run(4, 1, false) == run(1, 1, false) + 3 * 16);
  // Who reads the second half alone waits for its first page, the third, and not for the fourth.
  CHECK(run(4, 1, true) == run(4, 1, false));
}

TEST_CASE("an output that fits a register of the host's is there when its last byte is, and not a cycle later") {
  const auto cycles = [](Bytes register_bytes, std::int64_t elements, TensorRole role = TensorRole::output) {
    Target t = small_target(1);
    t.host.result_bytes = register_bytes;
    Builder b(t);
    const GroupId g = b.group(0, {{1, 2}});
    const TensorId y = b.tensor("y", {1, elements}, DType::int32, role);
    const BufferId buffer = b.buffer(g, 1, 64, DType::int32, 1);
    b.stage("store", Store{y, b.walk(y, 1, 1), {}}, g, {Builder::in(buffer)}, 1, move(1));
    const Report r = run_forked(b.p, t);
    REQUIRE(r.end == MachineOutcome::End::finished);
    CHECK(r.count[Listener::kPageStored] == 1);
    CHECK(r.count[Listener::kMemoryUsed] ==
          (register_bytes < 4 * static_cast<Bytes>(elements) || role != TensorRole::output));
    return r.cycles - t.host.section_launch_cycles - t.host.argument_load_cycles;
  };
  // PMU: 2; an endpoint, three hops, an endpoint, and a flit.
  const Cycles there = 2 + 1 + 3 + 1 + 1;
  CHECK(cycles(4, 1) == there);
  CHECK(cycles(8, 2) == there);
  // Else the AGCU's pipeline, memory's row (3) and half a cycle or a whole one of data, and the acknowledgement.
  CHECK(cycles(0, 1) == there + 5 + 3 + 1 + 5);
  CHECK(cycles(4, 2) == there + 5 + 3 + 1 + 5);
  CHECK(cycles(4, 1, TensorRole::state) == there + 5 + 3 + 1 + 5);
}

TEST_CASE("stages of one engine are served as the schedule says where both are ready") {
  const Target t = small_target(1);
  const auto cycles = [&](bool second_first) {
    Builder b(t);
    const GroupId g = b.group(0, {{0, 0}});
    // A long page that is only stored, and a short one that is computed with for long: the short one should go first.
    const TensorId x0 = b.tensor("x0", {4, 64}, DType::int32, TensorRole::input);
    const TensorId y0 = b.tensor("y0", {4, 64}, DType::int32, TensorRole::output);
    const TensorId x1 = b.tensor("x1", {4, 4}, DType::int32, TensorRole::input);
    const TensorId y1 = b.tensor("y1", {4, 4}, DType::int32, TensorRole::output);
    const BufferId copied = b.buffer(g, 1, 1024, DType::int32);
    const BufferId in = b.buffer(g, 1, 64, DType::int32), out = b.buffer(g, 1, 64, DType::int32);
    Generic slow;
    slow.accumulator = slow.result = DType::int32;
    Expr body{operand(0)};
    for (int n = 0; n < 200; ++n) body.push_back(node(ExprOp::negate));
    slow.bodies = always(body);
    const StageId load0 = b.stage("load0", Load{x0, b.walk(x0, 1, 16), {}}, g, {Builder::out(copied)}, 1, move(0));
    const StageId load1 = b.stage("load1", Load{x1, b.walk(x1, 1, 1), {}}, g, {Builder::out(in)}, 1, move(0));
    const StageId work = b.stage("work", slow, g, {Builder::in(in), Builder::out(out)}, 1, pcu0);
    const StageId store0 = b.stage("store0", Store{y0, b.walk(y0, 1, 16), {}}, g, {Builder::in(copied)}, 1, move(1));
    const StageId store1 = b.stage("store1", Store{y1, b.walk(y1, 1, 1), {}}, g, {Builder::in(out)}, 1, move(2));
    b.local(load0, copied, {store0});
    b.local(load1, in, {work});
    b.local(work, out, {store1});
    b.p.schedule.emplace();
    if (second_first) b.p.schedule->engine_orders.push_back({{load1, load0}});
    const Report r = run_forked(b.p, t);
    check_laws(r);
    CHECK(r.end == MachineOutcome::End::finished);
    return r.cycles;
  };
  CHECK(cycles(true) < cycles(false));
}

TEST_CASE("the same program gives the same events, every field, in the same order") {
  const Target t = small_target(1);
  const Fold f = make_fold(t, 4, 12);
  const Report a = run_forked(f.p, t), b = run_forked(f.p, t);
  CHECK(a.digest.exact == b.digest.exact);
  CHECK(a.cycles == b.cycles);
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
    MachineOptions options;
    options.shuffle_seed = seed;
    const Report s = run_forked(f.p, t, options);
    check_laws(s);
    CHECK(s.digest.unordered == a.digest.unordered);
    CHECK(s.cycles == a.cycles);
  }
  // The digest is of the run, not of the listener: another program has another one.
  CHECK(run_forked(make_fold(t, 4, 13).p, t).digest.unordered != a.digest.unordered);
}

TEST_CASE("more depth and more bandwidth are never slower here, where nothing is arbitrated") {
  const Target t = small_target(1);
  const Fold f = make_fold(t, 1, 40);
  const Cycle base = run_forked(f.p, t).cycles;
  Fold deep = f;
  for (Buffer& b : deep.p.buffers) b.depth_pages = 8;
  CHECK(run_forked(deep.p, t).cycles < base);
  Target fast = t;
  fast.network.link_bytes_per_cycle = {32, 1};
  fast.agcu.bytes_per_cycle = {32, 1};
  CHECK(run_forked(f.p, fast).cycles <= base);
}

TEST_CASE("whatever a program says, the machine stays within its own memory") {
  const Target t = small_target(2);
  const Fold good = make_fold(t, 3, 4);
  std::uint64_t seed = 1;
  const auto draw = [&] { return seed = seed * 6364136223846793005u + 1442695040888963407u, seed >> 33; };
  for (int round = 0; round < 60; ++round) {
    SpatialProgram p = good.p;
    for (int change = 0; change < 3; ++change) {
      Stage& s = p.stages[draw() % p.stages.size()];
      Buffer& b = p.buffers[draw() % p.buffers.size()];
      switch (draw() % 12) {
        case 0:
          s.firings = draw() % 9;
          break;
        case 1:
          b.depth_pages = draw() % 3;
          break;
        case 2:
          b.page_bytes = draw() % 100;
          break;
        case 3:
          if (!s.ports.empty()) s.ports[draw() % s.ports.size()].buffer = b.id;
          break;
        case 4:
          if (!s.ports.empty()) s.ports[0].need = s.ports[0].push = always(static_cast<std::uint32_t>(draw() % 4));
          break;
        case 5:
          if (!s.ports.empty()) s.ports.erase(s.ports.begin());
          break;
        case 6:
          b.initial_pages = draw() % 5;
          break;
        case 7:
          b.dtype = static_cast<DType>(draw() % 7);
          break;
        case 8:
          if (auto* l = std::get_if<Load>(&s.kind)) l->pattern.first[0][draw() % 2] = draw() % 9;
          break;
        case 9:
          if (!s.ports.empty())
            s.ports[0].chunk =
                always(Chunk{static_cast<std::uint32_t>(draw() % 5), static_cast<std::uint32_t>(draw() % 5)});
          break;
        case 10:
          if (auto* g = std::get_if<Generic>(&s.kind))
            g->bodies[0].value.push_back(node(static_cast<ExprOp>(draw() % 9)));
          break;
        default:
          p.edges[draw() % p.edges.size()].buffer = b.id;
      }
    }
    MachineOptions options;
    options.max_cycles = 200000;
    CAPTURE(round);
    CHECK(run_forked(p, t, options).ran);
  }
}

}  // namespace
}  // namespace rdusim::graph_run_test
