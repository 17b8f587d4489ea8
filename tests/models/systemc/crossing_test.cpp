// Crossings by hand: every handshake, every page map, on one chip and between two.
#include <doctest/doctest.h>

#include "tests/models/systemc/forked_run.h"

namespace rdusim::crossing_test {
namespace {

using namespace test;

constexpr std::int64_t rows = 8, cols = 24;  // pages of one 4 x 4 tile: 2 x 6

// A tensor walks from memory into a source buffer on `from`, crosses, lands at `to`, and is stored by each receiver.
struct Crossing {
  Handshake handshake = Handshake::token;
  std::uint32_t to_chip = 0;
  std::uint32_t senders = 1, receivers = 1;
  PageMap map = {};
  std::uint64_t depth = 2;
  Chunk chunk = {};
  std::uint64_t trips = 1;
};

std::vector<Position> row_of_sites(std::uint32_t n, std::uint32_t y) {
  std::vector<Position> at;
  for (std::uint32_t i = 0; i < n; ++i) at.push_back({i, y});
  return at;
}

struct Made {
  SpatialProgram p;
  TensorId x;
  std::vector<TensorId> y;  // by receiver
  std::uint64_t pages = 0;  // that each receiver gets a trip
};

// Every sender reads the same tensor whole, every receiver stores to a tensor of its own the pages in the order in
// which they come: as a single row of pages.
Made make(const Target& t, const Crossing& c) {
  Builder b(t, c.trips);
  Made m;
  const std::uint64_t all = 12;
  m.x = b.tensor("x", {rows, cols}, DType::int32, TensorRole::input);
  const GroupId from = b.group(0, row_of_sites(c.senders, 0));
  const GroupId to = b.group(c.to_chip, row_of_sites(c.receivers, 3), 1);
  m.pages = all;
  if (c.map.kind == PageMapKind::scatter) m.pages = all / c.receivers;
  if (c.map.kind == PageMapKind::gather) m.pages = all * c.senders / c.receivers;

  const BufferId source = b.buffer(from, 2, 64, DType::int32);
  const BufferId landing = b.buffer(to, c.depth, 64, DType::int32);
  const StageId load =
      b.stage("load", Load{m.x, b.walk(m.x, 1, 1, c.senders), {}}, from, {Builder::out(source)}, all, move(0));
  const StageId recv = b.stage("recv", Recv{}, to, {Builder::out(landing)}, m.pages, move(0));
  // Stores take a single row of pages: n pages of 4 x 4, one beside the other. One tensor for all receivers, rows
  // apart.
  const TensorId y = b.tensor("y", {static_cast<std::int64_t>(4 * c.receivers), static_cast<std::int64_t>(4 * m.pages)},
                              DType::int32, TensorRole::output, c.to_chip);
  AccessPattern a = b.walk(y, 1, 1, c.receivers);
  a.loops = {m.pages};
  a.stride = {{0, 1}};
  for (std::uint64_t i = 0; i < c.receivers; ++i) a.first[i] = {i, 0};
  Store store{y, a, {}};
  if (c.chunk.of > 1) store.chunks = {c.chunk};
  const StageId st = b.stage("store", store, to, {Builder::in(landing)}, m.pages, move(1));
  m.y = {y};
  b.crossing(load, source, {recv}, c.handshake, c.map, c.chunk);
  b.local(recv, landing, {st});
  if (c.handshake == Handshake::semaphore) {
    b.p.semaphores = {{SemaphoreId{0}, from, 0, 8}, {SemaphoreId{1}, to, 0, 8}};
    b.p.edges[0].semaphores = SemaphorePair{SemaphoreId{0}, {SemaphoreId{1}}};
  }
  m.p = b.p;
  return m;
}

TensorImages filled(const Made& m) {
  TensorImages images = blank_images(m.p);
  for (std::int64_t i = 0; i < rows * cols; ++i) set(images[0], i, static_cast<std::int32_t>(i + 1));
  return images;
}

// Element e of page `page` of x, in the walk's order.
std::int32_t element(std::uint64_t page, std::uint64_t e) {
  const std::uint64_t row = page / 6 * 4 + e / 4, col = page % 6 * 4 + e % 4;
  return static_cast<std::int32_t>(row * cols + col + 1);
}
std::int32_t stored(const Made& m, const TensorImages& images, std::uint64_t receiver, std::uint64_t page,
                    std::uint64_t e) {
  return get<std::int32_t>(images[1], (receiver * 4 + e / 4) * 4 * m.pages + page * 4 + e % 4);
}

void check_laws(const Report& r) {
  REQUIRE(r.ran);
  CHECK(r.end == MachineOutcome::End::finished);
  CHECK(r.rising);
  CHECK(r.accounted);
  CHECK(r.within);
}

// The page of x that receiver `receiver` gets as its n-th.
using Expected = std::uint64_t (*)(std::uint64_t receiver, std::uint64_t n, const Crossing& c);

void check_pages(const Crossing& c, Expected expected) {
  const Target t = small_target(3);
  const Made m = make(t, c);
  const Report r = run_forked(m.p, t, {}, filled(m));
  check_laws(r);
  for (std::uint64_t receiver = 0; receiver < c.receivers; ++receiver)
    for (std::uint64_t n = 0; n < m.pages; ++n)
      for (std::uint64_t e = 0; e < 16; ++e) {
        CAPTURE(receiver);
        CAPTURE(n);
        REQUIRE(stored(m, r.images, receiver, n, e) == element(expected(receiver, n, c), e));
      }
  using K = Listener;
  const std::uint64_t crossings = m.pages * c.receivers * c.trips;
  CHECK(r.count[K::kPageSent] == crossings);
  CHECK(r.count[K::kPageLanded] == crossings);
  const bool token = c.handshake == Handshake::token;
  CHECK(r.count[K::kCreditTaken] == (token ? crossings : 0));
  CHECK(r.count[K::kCreditReturned] == (token ? crossings : 0));
  CHECK(r.count[K::kCreditArrived] == (token ? crossings : 0));
  if (c.handshake == Handshake::semaphore) {
    // Every receiver of a sender takes part in every generation.
    const std::uint64_t receivers_of_one =
        c.map.kind == PageMapKind::gather || c.map.kind == PageMapKind::one_to_one ? 1 : c.receivers;
    const std::uint64_t generations = 12 * c.trips * c.senders;
    CHECK(r.count[K::kReadyRaised] == generations * receivers_of_one);
    CHECK(r.count[K::kReadyConsumed] == generations);
    CHECK(r.count[K::kValidRaised] == generations * receivers_of_one);
    CHECK(r.count[K::kValidConsumed] == generations * receivers_of_one);
  }
  if (c.handshake == Handshake::barrier) {
    const std::uint64_t members =
        1 + (c.map.kind == PageMapKind::gather || c.map.kind == PageMapKind::one_to_one ? 1 : c.receivers);
    CHECK(r.count[K::kBarrierArrived] == 2 * members * 12 * c.trips * c.senders);
    CHECK(r.count[K::kBarrierLeft] == r.count[K::kBarrierArrived]);
  }
  // Without values: the same cycles, the same events.
  MachineOptions timing;
  timing.values = false;
  const Report quiet = run_forked(m.p, t, timing, filled(m));
  check_laws(quiet);
  CHECK(quiet.cycles == r.cycles);
  CHECK(quiet.digest.exact == r.digest.exact);
  // Chip by chip at every event time: the same, in the same order.
  MachineOptions in_step;
  in_step.run_ahead = false;
  const Report stepped = run_forked(m.p, t, in_step, filled(m));
  check_laws(stepped);
  CHECK(stepped.cycles == r.cycles);
  CHECK(stepped.digest.ordered == r.digest.ordered);
  CHECK(stepped.images == r.images);
  CHECK(stepped.activations >= r.activations);
  // In any order of equal-time events: the same.
  for (const std::uint64_t seed : {1, 2, 3}) {
    MachineOptions shuffled;
    shuffled.shuffle_seed = seed;
    const Report s = run_forked(m.p, t, shuffled, filled(m));
    check_laws(s);
    CHECK(s.cycles == r.cycles);
    CHECK(s.digest.unordered == r.digest.unordered);
    CHECK(s.images == r.images);
  }
}

std::uint64_t in_order(std::uint64_t, std::uint64_t n, const Crossing&) {
  return n;
}
std::uint64_t scattered(std::uint64_t receiver, std::uint64_t n, const Crossing& c) {
  return n * c.receivers + receiver;
}
std::uint64_t in_turn(std::uint64_t, std::uint64_t n, const Crossing& c) {
  return n / c.senders;
}

constexpr Handshake all_kinds[] = {Handshake::token, Handshake::semaphore, Handshake::barrier};

TEST_CASE("a page map of one to one joins instance to instance, whatever the handshake and the chips") {
  for (const Handshake h : all_kinds)
    for (const std::uint32_t chip : {0u, 1u, 2u}) {
      CAPTURE(static_cast<int>(h));
      CAPTURE(chip);
      check_pages({.handshake = h, .to_chip = chip, .senders = 2, .receivers = 2}, in_order);
    }
}

TEST_CASE("a multicast gives every page to every target") {
  for (const Handshake h : all_kinds)
    for (const std::uint32_t chip : {0u, 1u}) {
      CAPTURE(static_cast<int>(h));
      CAPTURE(chip);
      check_pages({.handshake = h, .to_chip = chip, .receivers = 3, .map = {PageMapKind::multicast, {{2, 0, 1}}}},
                  in_order);
    }
}

TEST_CASE("a scatter deals pages to its targets in turn") {
  for (const Handshake h : all_kinds)
    for (const std::uint32_t chip : {0u, 1u}) {
      CAPTURE(static_cast<int>(h));
      CAPTURE(chip);
      check_pages({.handshake = h, .to_chip = chip, .receivers = 3, .map = {PageMapKind::scatter, {{0, 1, 2}}}},
                  scattered);
    }
}

TEST_CASE("a gather takes its senders' pages in rising sender, in turn") {
  for (const Handshake h : all_kinds)
    for (const std::uint32_t chip : {0u, 1u})
      for (const std::uint64_t depth : {1u, 2u, 3u, 5u}) {
        CAPTURE(static_cast<int>(h));
        CAPTURE(chip);
        CAPTURE(depth);
        check_pages({.handshake = h,
                     .to_chip = chip,
                     .senders = 3,
                     .receivers = 1,
                     .map = {PageMapKind::gather, {{0}, {0}, {0}}},
                     .depth = depth},
                    in_turn);
      }
}

TEST_CASE("trips follow each other through a crossing") {
  for (const Handshake h : all_kinds) {
    CAPTURE(static_cast<int>(h));
    check_pages({.handshake = h, .to_chip = 1, .trips = 3}, in_order);
  }
}

TEST_CASE("a chunk carries its part of the page, and the rest of the landing place stays as it was") {
  const Target t = small_target(2);
  const Crossing c{.to_chip = 1, .chunk = {1, 3}};
  const Made m = make(t, c);
  const Report r = run_forked(m.p, t, {}, filled(m));
  check_laws(r);
  const ElementRange part = chunk_range(16, 1, 3);
  for (std::uint64_t n = 0; n < m.pages; ++n)
    for (std::uint64_t e = 0; e < 16; ++e)
      REQUIRE(stored(m, r.images, 0, n, e) == (e >= part.begin && e < part.end ? element(n, e) : 0));
}

TEST_CASE("an empty chunk still costs a token and its signals") {
  const Target t = small_target(2);
  const Made m = make(t, {.to_chip = 1, .chunk = {0, 40}});  // 16 elements in 40 parts: the first is empty
  const Report r = run_forked(m.p, t, {}, filled(m));
  check_laws(r);
  CHECK(r.count[Listener::kPageLanded] == 12);
  CHECK(r.count[Listener::kLinkUsed] == 24);
}

TEST_CASE("signals and pages between chips pay for links, those on a chip do not") {
  const Target t = small_target(3);
  const Report on_chip = run_forked(make(t, {.to_chip = 0}).p, t);
  CHECK(on_chip.count[Listener::kLinkUsed] == 0);
  // Token: a page there, a credit back.
  const Report next = run_forked(make(t, {.to_chip = 1}).p, t);
  CHECK(next.count[Listener::kLinkUsed] == 24);
  CHECK(next.cycles > on_chip.cycles);
  // Barrier: two arrivals back, two leaves there, a page.
  const Report barrier = run_forked(make(t, {.handshake = Handshake::barrier, .to_chip = 1}).p, t);
  CHECK(barrier.count[Listener::kLinkUsed] == 5 * 12);
}

TEST_CASE("over two links a page is sent on by the chip between") {
  Target t = small_target(3);
  std::erase_if(t.links, [](const ChipLinkParameters& l) {  // a line 0 - 1 - 2
    return (l.from.value == 0 && l.to.value == 2) || (l.from.value == 2 && l.to.value == 0);
  });
  for (std::size_t i = 0; i < t.links.size(); ++i) t.links[i].id = LinkId{i};
  const Made m = make(t, {.to_chip = 2});
  const Report r = run_forked(m.p, t, {}, filled(m));
  check_laws(r);
  CHECK(r.count[Listener::kLinkUsed] == 48);
  for (std::uint64_t n = 0; n < m.pages; ++n) CHECK(stored(m, r.images, 0, n, 3) == element(n, 3));
}

TEST_CASE("a deeper landing buffer hides the link's latency") {
  const Target t = small_target(2);
  const Report shallow = run_forked(make(t, {.to_chip = 1, .depth = 1}).p, t);
  const Report deep = run_forked(make(t, {.to_chip = 1, .depth = 8}).p, t);
  CHECK(deep.cycles < shallow.cycles);
  // At depth 1 every page waits for the credit of the one before: a round trip of two link latencies each.
  CHECK(shallow.cycles > 12 * 100);
}

TEST_CASE("chips that no link joins wait for ever, and the machine says for what") {
  Target t = small_target(2);
  t.links.clear();
  const Report r = run_forked(make(t, {.to_chip = 1}).p, t);
  REQUIRE(r.ran);
  CHECK(r.end == MachineOutcome::End::quiescent);
  REQUIRE(!r.waiting.empty());
}

TEST_CASE("a cycle limit cuts all chips at the same cycle, in step or running ahead") {
  const Target t = small_target(3);
  const Made m = make(t, {.to_chip = 1});
  const Report whole = run_forked(m.p, t);
  for (const Cycle limit : {whole.cycles / 3, whole.cycles / 2, whole.cycles - 1}) {
    MachineOptions options;
    options.max_cycles = limit;
    const Report ahead = run_forked(m.p, t, options);
    options.run_ahead = false;
    const Report stepped = run_forked(m.p, t, options);
    CHECK(ahead.end == MachineOutcome::End::max_cycles);
    CHECK(ahead.cycles == limit);
    CHECK(ahead.digest.ordered == stepped.digest.ordered);
    CHECK(ahead.digest.ordered != whole.digest.ordered);
  }
}

TEST_CASE("a receiver's wait is put down to the link where the page was on its way, else to its sender") {
  Target t = small_target(2);
  const auto stalled = [](const Report& r, StallCause c) { return r.stalled[static_cast<std::size_t>(c)]; };
  // A slow link: pages wait for it, and the receiver for them.
  for (ChipLinkParameters& l : t.links) l.bytes_per_cycle = {1, 4};
  const Report slow_link = run_forked(make(t, {.to_chip = 1, .depth = 8}).p, t);
  CHECK(stalled(slow_link, StallCause::link) > 10 * 64 * 4);
  // A slow memory: nothing is on its way.
  t = small_target(2);
  for (ChipLinkParameters& l : t.links) l.latency_cycles = 1, l.bytes_per_cycle = {64, 1};
  t.hbm.channel_bytes_per_cycle = {1, 8};
  const Report slow_memory = run_forked(make(t, {.to_chip = 1, .depth = 8}).p, t);
  CHECK(stalled(slow_memory, StallCause::input_starvation) > 5 * stalled(slow_memory, StallCause::link));
}

TEST_CASE("crossings of any kind keep their laws and agree in every way of running") {
  std::uint64_t seed = 11;
  const auto draw = [&](std::uint64_t n) {
    return seed = seed * 6364136223846793005u + 1442695040888963407u, (seed >> 33) % n;
  };
  for (int round = 0; round < 25; ++round) {
    Crossing c;
    c.handshake = all_kinds[draw(3)];
    c.to_chip = static_cast<std::uint32_t>(draw(3));
    c.depth = 1 + draw(5);
    c.trips = 1 + draw(2);
    Expected expected = in_order;
    switch (draw(4)) {
      case 0:
        c.senders = c.receivers = static_cast<std::uint32_t>(1 + draw(4));
        break;
      case 1:
        c.receivers = static_cast<std::uint32_t>(1 + draw(4));
        c.map = {PageMapKind::multicast, {{}}};
        for (std::uint32_t i = 0; i < c.receivers; ++i) c.map.targets[0].push_back(i);
        break;
      case 2:
        c.receivers = static_cast<std::uint32_t>(1 + draw(4));
        if (c.receivers == 4) c.receivers = 3;
        c.map = {PageMapKind::scatter, {{}}};
        for (std::uint32_t i = 0; i < c.receivers; ++i) c.map.targets[0].push_back(i);
        expected = scattered;
        break;
      default:
        c.senders = static_cast<std::uint32_t>(1 + draw(4));
        c.map = {PageMapKind::gather, std::vector<std::vector<std::uint32_t>>(c.senders, {0})};
        expected = in_turn;
    }
    CAPTURE(round);
    check_pages(c, expected);
  }
}

// ---- faults

Report broken(const Crossing& c, FaultKind kind, std::uint64_t nth, const Target& t) {
  const Made m = make(t, c);
  MachineOptions options;
  options.faults = {{kind, std::nullopt, EdgeId{0}, std::nullopt, 0, nth}};
  return run_forked(m.p, t, options, filled(m));
}

TEST_CASE("a credit that is lost starves the sender where it was the last one, and a deeper buffer outlives it") {
  const Target t = small_target(2);
  const Report r = broken({.to_chip = 1, .depth = 1}, FaultKind::credit_drop, 3, t);
  REQUIRE(r.ran);
  CHECK(r.end == MachineOutcome::End::quiescent);
  CHECK(r.count[Listener::kCreditReturned] == 4);
  CHECK(r.count[Listener::kCreditArrived] == 3);
  bool named = false;
  for (const Waiting& w : r.waiting)
    if (w.what == Waiting::For::credit) {
      named = true;
      CHECK(w.channel == ChannelAt{EdgeId{0}, 0, 0, 0});
      CHECK(w.firing == 4);
    }
  CHECK(named);
  const Report deep = broken({.to_chip = 1, .depth = 2}, FaultKind::credit_drop, 3, t);
  CHECK(deep.end == MachineOutcome::End::finished);
  CHECK(deep.count[Listener::kCreditArrived] == 11);
}

TEST_CASE("a credit that comes twice lets a page into a place that is taken") {
  const Target t = small_target(2);
  const Report r = broken({.to_chip = 1, .depth = 1}, FaultKind::credit_duplicate, 3, t);
  REQUIRE(r.ran);
  CHECK(r.end == MachineOutcome::End::finished);
  CHECK(r.count[Listener::kCreditArrived] == 13);
}

TEST_CASE("a lost ready, valid or page leaves both ends waiting, and they say for what") {
  const Target t = small_target(2);
  for (const FaultKind kind : {FaultKind::ready_drop, FaultKind::valid_drop, FaultKind::page_drop}) {
    const Report r = broken({.handshake = Handshake::semaphore, .to_chip = 1}, kind, 5, t);
    REQUIRE(r.ran);
    CHECK(r.end == MachineOutcome::End::quiescent);
    CHECK(!r.waiting.empty());
    for (const Waiting& w : r.waiting)
      if (w.channel && !w.stage) CHECK(w.what == Waiting::For::ready);
  }
  const Report valid = broken({.handshake = Handshake::semaphore, .to_chip = 1}, FaultKind::valid_drop, 5, t);
  bool waits_for_valid = false;
  for (const Waiting& w : valid.waiting) waits_for_valid = waits_for_valid || w.what == Waiting::For::valid;
  CHECK(waits_for_valid);
}

TEST_CASE("a ready or valid that comes twice is counted twice") {
  const Target t = small_target(2);
  const Report ready = broken({.handshake = Handshake::semaphore, .to_chip = 1}, FaultKind::ready_duplicate, 5, t);
  REQUIRE(ready.ran);
  CHECK(ready.count[Listener::kReadyRaised] == 13);
  const Report valid = broken({.handshake = Handshake::semaphore, .to_chip = 1}, FaultKind::valid_duplicate, 5, t);
  REQUIRE(valid.ran);
  CHECK(valid.count[Listener::kValidRaised] >= 12);
}

TEST_CASE("pages of a crossing that are swapped, flipped or repeated land so") {
  const Target t = small_target(2);
  const Crossing c{.to_chip = 1, .depth = 3};
  const Made m = make(t, c);
  const Report swapped = broken(c, FaultKind::page_swap, 4, t);
  REQUIRE(swapped.end == MachineOutcome::End::finished);
  for (std::uint64_t n = 0; n < 12; ++n)
    CHECK(stored(m, swapped.images, 0, n, 0) == element(n == 4 ? 5 : n == 5 ? 4 : n, 0));
  const Report flipped = broken(c, FaultKind::page_bit_flip, 4, t);
  REQUIRE(flipped.end == MachineOutcome::End::finished);
  for (std::uint64_t n = 0; n < 12; ++n)
    CHECK(stored(m, flipped.images, 0, n, 0) == (element(n, 0) ^ (n == 4 ? 1 : 0)));
  const Report repeated = broken(c, FaultKind::page_duplicate, 4, t);
  REQUIRE(repeated.ran);
  // From then on the sender is a credit ahead, and pages overwrite each other: what comes later is not promised.
  for (std::uint64_t n = 0; n < 6; ++n) CHECK(stored(m, repeated.images, 0, n, 0) == element(n <= 4 ? n : n - 1, 0));
  // The page that the receiver has no firing left for lies at its site for ever, and that is told.
  CHECK(repeated.count[Listener::kPageLanded] == 13);
}

TEST_CASE("a counter that is too narrow for the depth wraps, and the sender waits for credits that are gone") {
  const Target t = small_target(2);
  Made m = make(t, {.to_chip = 1, .depth = 4});
  m.p.edges[0].counter_bits = 2;  // four credits wrap to none
  const Report r = run_forked(m.p, t, {}, filled(m));
  REQUIRE(r.ran);
  CHECK(r.end == MachineOutcome::End::quiescent);
  CHECK(r.count[Listener::kPageSent] == 0);
}

}  // namespace
}  // namespace rdusim::crossing_test
