#include "sim/page_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "compiler/certificate/moves.h"
#include "compiler/ir/trips.h"

namespace rdusim {

namespace {

bool pushes_one_a_firing(const Port& p) {
  return std::all_of(p.push.begin(), p.push.end(), [](const Run<std::uint32_t>& r) { return r.value == 1; });
}

constexpr std::uint64_t most_phases = 1 << 16;

std::uint64_t as_count(std::int64_t n) {
  return n < 0 ? 0 : static_cast<std::uint64_t>(n);
}

// By buffer: whether its pages are results of folds over items (program.h), handed on as they are or not. They have no
// place of their own, so where they are stored says nothing against them.
std::vector<bool> folded_buffers(const SpatialProgram& p) {
  std::vector<bool> folded(p.buffers.size(), false);
  const auto result_is_folded = [&](const Stage& s) {
    if (const auto* recv = std::get_if<Recv>(&s.kind)) return bool{folded[p.edge(recv->edge).buffer.value]};
    const auto* generic = std::get_if<Generic>(&s.kind);
    return generic != nullptr &&
           (folds_items(*generic) || std::any_of(s.ports.begin(), s.ports.end(), [&](const Port& port) {
              return port.direction == Direction::input && folded[port.buffer.value];
            }));
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Stage& s : p.stages) {
      if (!result_is_folded(s)) continue;
      for (const Port& port : s.ports) {
        if (port.direction == Direction::input || folded[port.buffer.value]) continue;
        folded[port.buffer.value] = changed = true;
      }
    }
  }
  return folded;
}

// By buffer: the operator whose values it brings from several makers, handed on as they are by who makes none.
std::vector<std::optional<OperatorId>> values_handed_on(const SpatialProgram& p,
                                                        const std::vector<std::optional<OperandId>>& operands) {
  std::vector<std::optional<OperatorId>> of(p.buffers.size());
  const auto brings = [&](BufferId b) {
    const std::optional<OperandId>& operand = operands[b.value];
    return operand && is_value(*operand) ? p.stage(maker_of(*operand)).origin : of[b.value];
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const Stage& s : p.stages) {
      std::optional<OperatorId> op;
      if (const auto* recv = std::get_if<Recv>(&s.kind)) op = of[p.edge(recv->edge).buffer.value];
      const auto* generic = std::get_if<Generic>(&s.kind);
      if (generic != nullptr && !makes_values(*generic) && !folds_items(*generic))
        for (const Port& port : s.ports)
          if (port.direction == Direction::input && !op) op = brings(port.buffer);
      for (const Port& port : s.ports) {
        if (port.direction == Direction::input || !op || of[port.buffer.value]) continue;
        of[port.buffer.value] = op;
        changed = true;
      }
    }
  }
  return of;
}

// Pages of a channel that may be under way at once; a broken run may have more, and then a page is not compared.
constexpr std::uint64_t most_under_way = 1 << 12;

}  // namespace

PageChecker::PageChecker(const Instances& instances, const MatmulPlaces& matmuls, Violations& violations)
    : instances_(instances),
      matmuls_(matmuls),
      violations_(violations),
      places_(instances.program().stages.size()),
      watched_(instances.program().buffers.size()),
      by_store_(instances.program().buffers.size()),
      operand_(page_operands(instances.program())),
      handed_on_(values_handed_on(instances.program(), operand_)),
      source_(instances.buffers(), none) {
  const SpatialProgram& p = instances.program();
  const std::vector<bool> folded = folded_buffers(p);
  for (const Stage& s : p.stages) {
    const auto move = [&](const auto& moved) {
      places_[s.id.value] = PagePlaces(moved.pattern, p.tensor(moved.tensor), p.header.native_tile);
    };
    if (const auto* load = std::get_if<Load>(&s.kind)) move(*load);
    if (const auto* store = std::get_if<Store>(&s.kind)) move(*store);
    for (const Port& port : s.ports) {
      if (const auto* taker = std::get_if<Store>(&s.kind);
          taker != nullptr && port.direction == Direction::input && !folded[port.buffer.value]) {
        StoreInput input{&s, {}, &port};
        const std::uint64_t phases = std::max<std::size_t>(taker->chunks.size(), 1);
        bool one_at_a_time = phases <= most_phases && !port.pop.empty();
        for (std::uint64_t f = 0; one_at_a_time && f < phases; ++f) {
          const std::uint32_t pages = at_phase(port.pop, f);
          if (pages == 1) input.phases.push_back(static_cast<std::uint32_t>(f));
          one_at_a_time = pages <= 1;
        }
        if (one_at_a_time && phases % cycle_length(port.pop) == 0 && !input.phases.empty())
          watched_[port.buffer.value].stored = true, by_store_[port.buffer.value] = std::move(input);
      }
      if (port.direction != Direction::output) continue;
      if (const auto* load = std::get_if<Load>(&s.kind); load != nullptr && !load->indexed && pushes_one_a_firing(port))
        watched_[port.buffer.value].load = &s;
      if (std::holds_alternative<MatmulTiles>(s.kind)) watched_[port.buffer.value].matmul = &s;
    }
  }
  for (const Buffer& b : p.buffers) {
    watched_[b.id.value].element = static_cast<std::uint32_t>(bytes_of(b.dtype));
    watched_[b.id.value].lands = instances.ends(b.id).landing.has_value();
  }
  for (const Edge& e : p.edges) {
    if (is_local(e.handshake)) continue;
    watched_[e.buffer.value].crosses = true;
    for (std::uint32_t from = 0; from < instances.instances(e.from); ++from) {
      std::uint32_t& ring_number = source_[instances.of(BufferAt{e.buffer, from})];
      if (ring_number == none) {
        ring_number = static_cast<std::uint32_t>(source_rings_.size());
        source_rings_.push_back(ring(p.buffer(e.buffer).depth_pages));
      }
    }
  }
  for (std::uint32_t c = 0; c < instances.channels(); ++c) {
    const Receiver& r = instances.receivers()[instances.receiver_of(c)];
    channel_rings_.push_back(ring(p.buffer(instances.buffer_at(r.buffer).buffer).depth_pages));
  }
  slots_.resize(slots_needed_);
}

PageChecker::Ring PageChecker::ring(std::uint64_t pages) {
  const std::uint64_t size = std::bit_ceil(std::min(pages, most_under_way) + 1);
  const Ring r{slots_needed_, size - 1};
  slots_needed_ += size;
  return r;
}

void PageChecker::wrong(Cycle at, const std::string& unit, const std::string& what, std::uint64_t number,
                        const std::string& got, const std::string& expected) {
  violations_.found(Code::RDU7029, at, unit, "{} {} is {}, and its place in the stream asks for {}", what, number, got,
                    expected);
}

void PageChecker::on(const PageLoaded& e) {
  const SpatialProgram& p = instances_.program();
  const auto* load = std::get_if<Load>(&p.stage(e.stage.stage).kind);
  if (load == nullptr) return;
  const Tensor& t = p.tensor(load->tensor);
  const auto expected = places(e.stage.stage).on_chip(e.stage.instance, e.firing);
  loaded_ = {e.stage, e.firing, expected};
  // Which rows come by index, the value checker knows.
  const bool of_trip = e.tensor == tensor_of_trip(*load, e.firing / p.stage(e.stage.stage).firings);
  if (load->indexed && of_trip && e.tag.operand == value_of(e.stage.stage) && expected && expected->col == e.tag.col &&
      expected->cols == e.tag.cols && expected->rows == e.tag.rows)
    return;
  if (!load->indexed && of_trip && e.tag.operand == t.operand && (!expected || *expected == place_of(e.tag))) return;
  wrong(e.at, instances_.describe(e.stage), "the page loaded by firing", e.firing, to_string(e.tag, p),
        expected ? fmt::format("'{}' {}", t.name, to_string(*expected)) : fmt::format("a page of '{}'", t.name));
}

void PageChecker::on(const PagePushed& e) {
  const Watched& w = watched_[e.buffer.buffer.value];
  std::optional<Place> expected;
  if (w.load != nullptr) {
    const StageAt load{w.load->id, e.buffer.instance};
    const bool known = loaded_.stage == load && loaded_.firing == e.page;
    expected = known ? loaded_.place : places(load.stage).on_chip(load.instance, e.page);
  } else if (w.matmul != nullptr) {
    expected = matmuls_.output({w.matmul->id, e.buffer.instance}, e.page);
  }
  const SpatialProgram& p = instances_.program();
  if (expected && !(*expected == place_of(e.tag))) {
    wrong(e.at, instances_.describe(e.buffer), "page", e.page, to_string(e.tag, p), to_string(*expected));
  }
  const std::uint64_t elements = std::uint64_t{e.tag.rows} * e.tag.cols;
  const std::uint64_t own = e.tag.chunks <= 1 ? elements : chunk_range(elements, e.tag.chunk, e.tag.chunks).size();
  if (const Bytes bytes = own * w.element; bytes != e.bytes) {
    violations_.found(Code::RDU7030, e.at, instances_.describe(e.buffer),
                      "page {}, {}, has {} bytes, and its extents make {}", e.page, to_string(e.tag, p), e.bytes,
                      bytes);
  }
  if (w.stored) check_stored(e, by_store_[e.buffer.buffer.value]);
  if (!w.crosses && !w.lands) return;
  const std::uint32_t n = instances_.of(e.buffer);
  if (w.crosses) slot(source_rings_[source_[n]], e.page) = {e.page, e.tag};
  if (const auto landing = instances_.receiver_into(n)) {
    // A receiver takes its senders' pages in turn.
    const Receiver& r = instances_.receivers()[*landing];
    const std::uint32_t channel = r.channels[e.page % r.channels.size()];
    const std::uint64_t page = e.page / r.channels.size();
    const Slot& sent = slot(channel_rings_[channel], page);
    if (sent.page == page && !(sent.tag == e.tag)) {
      wrong(e.at, instances_.describe(e.buffer), "page", e.page, to_string(e.tag, p),
            to_string(sent.tag, p) + ", which was sent");
    }
  }
}

// A store writes at the place that its pattern names whatever it is given, so what it is given is looked at here.
void PageChecker::check_stored(const PagePushed& e, const StoreInput& input) {
  const SpatialProgram& p = instances_.program();
  const Store& taker = std::get<Store>(input.stage->kind);
  const Tensor& t = p.tensor(taker.tensor);
  const std::uint64_t page = e.page / input.phases.size();
  const Chunk chunk = taker.chunks.empty() ? Chunk{} : taker.chunks[input.phases[e.page % input.phases.size()]];
  const auto expected = places(input.stage->id).on_chip(e.buffer.instance, page);
  if (const Operator* op = certificate::mover_into(p, t.operand, input.stage->origin)) {
    if (expected) check_moved(e, *input.stage, *op, *expected, chunk);
    return;
  }
  PageTag tag = e.tag;
  if (const Chunk taken = at_phase(input.port->chunk, input.phases[e.page % input.phases.size()]); taken.of > 1)
    tag.chunk = taken.index, tag.chunks = taken.of;
  if (chunk.of == 1) tag = as_page_of_rows(tag);
  const bool same_chunk = chunk.of == 1 ? tag.chunks == 1 : tag.chunk == chunk.index && tag.chunks == chunk.of;
  const auto& made = operand_[e.buffer.buffer.value];
  const auto& op = handed_on_[e.buffer.buffer.value];
  const bool of_several = op && is_value(e.tag.operand) && p.stage(maker_of(e.tag.operand)).origin == op;
  const OperandId operand = made && is_value(*made) ? *made : of_several ? e.tag.operand : t.operand;
  if (!expected || (*expected == place_of(tag) && same_chunk && tag.operand == operand)) return;
  wrong(e.at, instances_.describe(e.buffer), "page", e.page, to_string(e.tag, p),
        fmt::format("'{}' {}{}, which '{}' stores", t.name, to_string(*expected),
                    chunk.of == 1 ? "" : fmt::format(" chunk {} of {}", chunk.index, chunk.of), input.stage->name));
}

// What a move stores are other elements of another operand, and the right ones.
void PageChecker::check_moved(const PagePushed& e, const Stage& store, const Operator& op, const Place& at,
                              const Chunk& chunk) {
  const SpatialProgram& p = instances_.program();
  const OperatorGraph& graph = *p.operators;
  const auto whole_of = [&](OperandId o) {
    certificate::Whole whole;
    for (const std::int64_t n : graph.operand(o).shape) whole.push_back(as_count(n));
    return whole;
  };
  const auto box_of = [](const Place& place) { return certificate::Box{place.row, place.col, place.rows, place.cols}; };
  // Pages of a state are of its memory, whatever an append has made of it.
  const auto from =
      std::find_if(op.in.begin(), op.in.end(), [&](OperandId in) { return storage_of(graph, in) == e.tag.operand; });
  std::string why = "which is of none of its operands";
  if (from != op.in.end()) {
    const certificate::Whole taken_whole = whole_of(*from), stored_whole = whole_of(op.out);
    const certificate::Box taken_box = box_of(place_of(e.tag)), stored_box = box_of(at);
    const ElementRange taken = chunk_range(taken_box.elements(), e.tag.chunk, std::max(e.tag.chunks, 1U));
    const ElementRange stored = chunk_range(stored_box.elements(), chunk.index, std::max(chunk.of, 1U));
    why = certificate::not_moved(graph, op, *from, {&taken_box, &taken_whole, taken.begin, taken.end},
                                 {&stored_box, &stored_whole, stored.begin, stored.end});
    for (auto other = std::next(from); !why.empty() && other != op.in.end(); ++other)
      if (storage_of(graph, *other) == e.tag.operand)
        why = certificate::not_moved(graph, op, *other, {&taken_box, &taken_whole, taken.begin, taken.end},
                                     {&stored_box, &stored_whole, stored.begin, stored.end});
  }
  if (why.empty()) return;
  wrong(e.at, instances_.describe(e.buffer), "page", e.page, to_string(e.tag, p),
        fmt::format("what '{}' stores at {}: {}", store.name, to_string(at), why));
}

void PageChecker::on(const PageSent& e) {
  const std::uint32_t c = instances_.of(e.channel);
  const Edge& edge = instances_.program().edge(e.channel.edge);
  const std::uint32_t n = instances_.of(BufferAt{edge.buffer, e.channel.from});
  if (source_[n] == none) return;
  const Turn& turn = instances_.turn(c);
  const std::uint64_t source_page = e.page * turn.parts + turn.part;
  const Slot& source = slot(source_rings_[source_[n]], source_page);
  Slot& sent = slot(channel_rings_[c], e.page);
  if (source.page != source_page) {
    sent.page = ~std::uint64_t{0};
    return;
  }
  sent = {e.page, source.tag};
  if (edge.chunk.of != 1) sent.tag.chunk = edge.chunk.index, sent.tag.chunks = edge.chunk.of;
}

void PageChecker::on(const PageLanded& e) {
  const std::uint32_t c = instances_.of(e.channel);
  const Slot& sent = slot(channel_rings_[c], e.page);
  if (sent.page != e.page || sent.tag == e.tag) return;
  const SpatialProgram& p = instances_.program();
  wrong(e.at, instances_.describe(e.channel), "the page that lands as", e.page, to_string(e.tag, p),
        to_string(sent.tag, p) + ", which was sent");
}

void PageChecker::on(const PageStored& e) {
  const SpatialProgram& p = instances_.program();
  const auto* store = std::get_if<Store>(&p.stage(e.stage.stage).kind);
  if (store == nullptr) return;
  const Tensor& t = p.tensor(store->tensor);
  const std::uint64_t phases = std::max<std::size_t>(store->chunks.size(), 1);
  const Chunk chunk = store->chunks.empty() ? Chunk{} : store->chunks[e.firing % phases];
  const auto expected = places(e.stage.stage).at(e.stage.instance, e.firing / phases);
  const bool same_chunk = chunk.of == 1 ? e.tag.chunks == 1 : e.tag.chunk == chunk.index && e.tag.chunks == chunk.of;
  const std::uint64_t trip = e.firing / p.stage(e.stage.stage).firings;
  const bool of_trip = e.tensor == tensor_of_trip(*store, trip) && (store->later.empty() || e.tag.trip == trip);
  if (of_trip && e.tag.operand == t.operand && same_chunk && (!expected || *expected == place_of(e.tag))) return;
  wrong(e.at, instances_.describe(e.stage), "the page stored by firing", e.firing, to_string(e.tag, p),
        fmt::format("'{}' {}{}", t.name, expected ? to_string(*expected) : "",
                    chunk.of == 1 ? "" : fmt::format(" chunk {} of {}", chunk.index, chunk.of)));
}

}  // namespace rdusim
