#include "compiler/ir/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "compiler/ir/circle_text.h"

namespace rdusim {
namespace {

template <class T>
std::string joined(const std::vector<T>& list, std::string_view with) {
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? std::string_view() : with, list[i]);
  return text;
}

std::string quoted(std::string_view name) {
  // A program is printed before it is verified, so a name may hold anything.
  std::string text = "'";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      text += fmt::format("\\x{:02x}", byte);
    else
      text += c;
  }
  return text + "'";
}

// ---- folding of chips
// ------------------------------------------------------------------------------------------------
//
// What is said of a part is written twice: with its own chip as "c*" and other chips by number, and with other chips by
// their distance. Parts of different chips whose texts agree in one of the two ways are printed once. (The first folds
// what everybody does with one chip, the second what everybody does with a neighbour.)

class Chips {
 public:
  Chips(std::uint32_t own, std::uint32_t chips, bool relative) : own_(own), chips_(chips), relative_(relative) {}

  // A name with "_c3" parts rewritten.
  std::string name(std::string_view name) const {
    std::string text;
    for (std::size_t i = 0; i < name.size();) {
      std::size_t end = i + 2;
      std::uint64_t chip = 0;
      while (name.substr(i, 2) == "_c" && end < name.size() && name[end] >= '0' && name[end] <= '9' && chip < 1'000'000)
        chip = chip * 10 + static_cast<std::uint64_t>(name[end++] - '0');
      if (end > i + 2 && chip < chips_) {
        text += "_" + this->chip(static_cast<std::uint32_t>(chip));
        i = end;
      } else {
        text += name[i++];
      }
    }
    return quoted(text);
  }
  std::string chip(std::uint32_t chip) const {
    if (chips_ == 1) return fmt::format("c{}", chip);
    if (chip == own_) return "c*";
    if (!relative_) return fmt::format("c{}", chip);
    const std::uint32_t ahead = (chip + chips_ - own_ % chips_) % chips_;
    return ahead <= chips_ / 2 ? fmt::format("c(*+{})", ahead) : fmt::format("c(*-{})", chips_ - ahead);
  }
  // A chunk of a page that is cut into one a chip, where others are told by their distance.
  std::string chunk(const Chunk& c) const {
    return relative_ && chips_ > 1 && c.of == chips_ ? fmt::format("{}/{}", chip(c.index), c.of)
                                                     : fmt::format("{}/{}", c.index, c.of);
  }
  // An offset, as a multiple of the chip's number where it is one.
  std::string offset(std::int64_t offset, std::int64_t extent, std::int64_t whole) const {
    if (chips_ > 1 && extent > 0 && extent < whole && offset % extent == 0 &&
        offset / extent == static_cast<std::int64_t>(own_))
      return fmt::format("{}*c", extent);
    return std::to_string(offset);
  }

 private:
  std::uint32_t own_, chips_;
  bool relative_;
};

struct Line {
  std::uint32_t chip = 0;
  std::uint32_t id = 0;
  std::string by_number, by_distance;
  std::string plain;  // where it is printed alone
};

std::string fold(const std::vector<Line>& lines, std::uint32_t chips) {
  struct Entry {
    std::vector<const Line*> lines;
    const std::string* text;
  };
  std::vector<Entry> entries;
  const auto gather = [&](const std::vector<const Line*>& from, std::string Line::*text) {
    struct Same {
      std::vector<std::size_t> entries;
      std::map<std::uint32_t, std::size_t> lines_of_chip;
    };
    std::map<std::string_view, Same> known;  // by text
    for (const Line* line : from) {
      // A chip has one line in an entry: its next one with this text opens another, or joins what another chip opened.
      Same& same = known[line->*text];
      const std::size_t nth = same.lines_of_chip[line->chip]++;
      if (nth == same.entries.size()) {
        same.entries.push_back(entries.size());
        entries.push_back({{}, &(line->*text)});
      }
      entries[same.entries[nth]].lines.push_back(line);
    }
  };
  std::vector<const Line*> all;
  for (const Line& line : lines) all.push_back(&line);
  gather(all, &Line::by_number);
  std::vector<const Line*> alone;
  for (const Entry& e : entries)
    if (e.lines.size() == 1) alone.push_back(e.lines[0]);
  std::erase_if(entries, [](const Entry& e) { return e.lines.size() == 1; });
  gather(alone, &Line::by_distance);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.lines[0]->id < b.lines[0]->id; });

  std::string text;
  for (const Entry& e : entries) {
    std::vector<std::uint32_t> ids, at;
    for (const Line* line : e.lines) {
      ids.push_back(line->id);
      at.push_back(line->chip);
    }
    std::sort(at.begin(), at.end());
    const std::string& body = e.lines.size() == 1 ? e.lines[0]->plain : *e.text;
    std::string where;
    if (chips > 1) where = "c" + ids_text(at) + " ";
    text += fmt::format("  [{}] {}{}\n", ids_text(ids), where, body);
  }
  return text;
}

// ---- the parts
// ---------------------------------------------------------------------------------------------------------

std::string cyclic_text(const Cyclic<std::uint32_t>& c) {
  std::string text;
  for (const auto& run : c) {
    if (!text.empty()) text += " ";
    text += run.repeat == 1 ? std::to_string(run.value) : fmt::format("{}x{}", run.repeat, run.value);
  }
  return c.size() == 1 && c[0].repeat == 1 ? text : "(" + text + ")";
}

std::string chunk_text(const Chunk& c) {
  return fmt::format("{}/{}", c.index, c.of);
}

// Runs of one chunk, and of chunks that rise or fall by one (past the last comes the first): what collectives make.
std::string chunks_text(const Cyclic<Chunk>& cycle, const Chips& as) {
  std::string text;
  for (std::size_t i = 0; i < cycle.size();) {
    const Chunk& first = cycle[i].value;
    const std::uint32_t of = std::max(1u, first.of);
    std::size_t length = 1;
    std::uint32_t step = 0;
    while (cycle[i].repeat == 1 && i + length < cycle.size() && cycle[i + length].repeat == 1 &&
           cycle[i + length].value.of == of) {
      const std::uint32_t by = (cycle[i + length].value.index + of - cycle[i + length - 1].value.index % of) % of;
      if ((by != 1 && by + 1 != of) || (length > 1 && by != step)) break;
      step = by;
      ++length;
    }
    text += text.empty() ? "" : " ";
    if (length > 2) {
      text +=
          fmt::format("{}{}{}", as.chunk(first), step == 1 ? ".." : " down to ", as.chunk(cycle[i + length - 1].value));
    } else {
      length = 1;
      text += (cycle[i].repeat == 1 ? "" : fmt::format("{}x", cycle[i].repeat)) + as.chunk(first);
    }
    i += length;
  }
  return text;
}

std::string chunks_text(const std::vector<Chunk>& chunks, const Chips& as) {
  Cyclic<Chunk> cycle;
  for (const Chunk& c : chunks) cycle.push_back({1, c});
  return chunks_text(cycle, as);
}

std::string expr_text(const Expr& expr) {
  std::vector<std::string> stack;
  for (const ExprNode& node : expr) {
    const auto take = [&] {
      std::string top = stack.empty() ? "?" : stack.back();
      if (!stack.empty()) stack.pop_back();
      return top;
    };
    switch (node.op) {
      case ExprOp::operand:
        stack.push_back(fmt::format("in{}", node.index));
        break;
      case ExprOp::accumulator:
        stack.push_back("acc");
        break;
      case ExprOp::constant:
        stack.push_back(fmt::format("{}", node.number));
        break;
      case ExprOp::negate:
        stack.push_back("-" + take());
        break;
      case ExprOp::exponential:
        stack.push_back("exp(" + take() + ")");
        break;
      case ExprOp::square_root:
        stack.push_back("sqrt(" + take() + ")");
        break;
      case ExprOp::tanh:
        stack.push_back("tanh(" + take() + ")");
        break;
      case ExprOp::erf:
        stack.push_back("erf(" + take() + ")");
        break;
      case ExprOp::row:
        stack.emplace_back("row");
        break;
      case ExprOp::column:
        stack.emplace_back("column");
        break;
      default: {
        const std::string right = take();
        const std::string left = take();
        const char* op = node.op == ExprOp::add        ? " + "
                         : node.op == ExprOp::subtract ? " - "
                         : node.op == ExprOp::multiply ? " * "
                         : node.op == ExprOp::divide   ? " / "
                                                       : nullptr;
        if (op != nullptr)
          stack.push_back("(" + left + op + right + ")");
        else
          stack.push_back(fmt::format("{}({}, {})",
                                      node.op == ExprOp::maximum ? "max"
                                      : node.op == ExprOp::mask  ? "mask"
                                                                 : "min",
                                      left, right));
      }
    }
  }
  return stack.empty() ? "?" : stack.back();
}

std::string bodies_text(const Cyclic<Expr>& bodies) {
  std::string text;
  for (const auto& run : bodies) {
    if (!text.empty()) text += "; ";
    if (run.repeat != 1) text += fmt::format("{}x ", run.repeat);
    text += expr_text(run.value);
  }
  return text;
}

std::string lanes_text(std::uint32_t lanes) {
  return lanes == 0 ? "" : fmt::format(", {} {}", lanes, lanes == 1 ? "lane" : "lanes");
}

std::string pattern_text(const AccessPattern& a) {
  std::string text = fmt::format("pages {}", joined(a.page_tiles, "x"));
  for (std::size_t l = 0; l < a.loops.size() && l < a.stride.size(); ++l)
    text += fmt::format(" for {} by ({})", a.loops[l], joined(a.stride[l], ","));
  text += fmt::format(" of {}", joined(a.extent_tiles, "x"));
  if (a.heads != 1) text += fmt::format(" in {} heads", a.heads);
  if (!a.first.empty()) {
    text += fmt::format(" from ({})", joined(a.first.front(), ","));
    if (a.first.size() > 1) text += fmt::format("..({})", joined(a.first.back(), ","));
  }
  if (!a.grain.empty()) text += fmt::format(" in steps of {}", joined(a.grain, "x"));
  return text;
}

std::string fill_text(const Fill& fill) {
  struct Visitor {
    std::string operator()(const ZeroFill&) const { return "zero"; }
    std::string operator()(const ConstantFill& f) const { return fmt::format("constant {}", f.value); }
    std::string operator()(const PatternFill& f) const { return fmt::format("(p mod {}) - {}", f.modulus, f.shift); }
    std::string operator()(const ValuesFill& f) const {
      return fmt::format("{} values", f.integers.size() + f.floats.size());
    }
    std::string operator()(const RandomFill& f) const {
      return fmt::format("random seed {} in [{}, {}]", f.seed, f.low, f.high);
    }
    std::string operator()(const WholeTensorRandomFill& f) const {
      return fmt::format("whole-tensor random seed {}", f.seed);
    }
    std::string operator()(const FileFill& f) const {
      const std::string order = f.extents.empty() ? "" : fmt::format(" in steps of {}", fmt::join(f.strides, ", "));
      return "file " + quoted(f.path) + (f.tensor.empty() ? "" : " tensor " + quoted(f.tensor)) + order;
    }
    std::string operator()(const ExternalFill&) const { return "external"; }
  };
  return std::visit(Visitor{}, fill);
}

class Printer {
 public:
  explicit Printer(const SpatialProgram& p) : p_(p) {
    // Orders count all chips' stages; their order on each chip is what chips have in common.
    if (!p.schedule || p.schedule->slots.size() != p.stages.size()) return;
    std::vector<std::size_t> by_order(p.stages.size());
    std::iota(by_order.begin(), by_order.end(), std::size_t{0});
    std::stable_sort(by_order.begin(), by_order.end(), [&](std::size_t a, std::size_t b) {
      return p.schedule->slots[a].order < p.schedule->slots[b].order;
    });
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> next;  // (section, chip)
    place_on_chip_.resize(p.stages.size());
    for (std::size_t s : by_order)
      place_on_chip_[s] = ++next[{p.stages[s].section.value, chip_of_group(p.stages[s].group)}];
  }

  std::uint32_t chips() const { return std::max(1u, p_.header.plan.chips); }

  // The plan says what becomes of sums that no operator asks to be scattered.
  bool all_scattered() const {
    return !p_.collectives.empty() &&
           std::all_of(p_.collectives.begin(), p_.collectives.end(),
                       [](const Collective& c) { return c.kind == CollectiveKind::reduce_scatter; });
  }

  std::string header() const {
    const Header& h = p_.header;
    std::string text = fmt::format("program {} for {} (sha256 {}), tile {}x{}\n", quoted(h.name), quoted(h.target_name),
                                   h.target_sha256.substr(0, 12), h.native_tile, h.native_tile);
    const ShardPlan& plan = h.plan;
    text += fmt::format("  {} chip{}{}, shard {}", plan.chips, plan.chips == 1 ? "" : "s",
                        plan.portable ? ", portable" : "", name_of(plan.kind));
    if (plan.kind != ShardKind::none)
      text += fmt::format(", {} ({})", name_of(all_scattered() ? CollectiveKind::reduce_scatter : plan.collective),
                          name_of(plan.algorithm));
    text += fmt::format("{}{}{}{}\n", plan.uneven ? ", uneven" : "", plan.pad ? ", padded" : "",
                        plan.least_depths ? ", least depths" : "", plan.relaunch ? ", relaunched" : "");
    text += alone();
    text += fmt::format("  numerics: {}, partials cross in the {} type\n", h.numerics.saturate ? "saturate" : "wrap",
                        h.numerics.partials_in_accumulator_type ? "accumulator's" : "result's");
    if (!p_.required.handshakes.empty() || !p_.required.operand_dtypes.empty() || !p_.required.spaces.empty()) {
      std::vector<std::string_view> needs;
      for (Handshake x : p_.required.handshakes) needs.push_back(name_of(x));
      for (DType x : p_.required.operand_dtypes) needs.push_back(name_of(x));
      for (MemorySpace x : p_.required.spaces) needs.push_back(name_of(x));
      text += fmt::format("  requires {}\n", joined(needs, ", "));
    }
    return text;
  }

  // "  on one chip alone: 7 operators on c1, 14 on c3": those of a section's first trip.
  std::string alone() const {
    if (!p_.operators || chips() == 1) return "";
    std::map<ChipId, std::size_t> of_chip;
    for (const Work& w : p_.work)
      if (w.op.value < p_.operators->operators.size() && !p_.operators->operators[w.op.value].attributes.alone.empty())
        ++of_chip[w.chip];
    if (of_chip.empty()) return "";
    std::vector<std::string> counts;
    for (const auto& [chip, n] : of_chip)
      counts.push_back(
          fmt::format("{}{} on c{}", n, counts.empty() ? n == 1 ? " operator" : " operators" : "", chip.value));
    return fmt::format("  on one chip alone: {}\n", joined(counts, ", "));
  }

  std::string operators() const {
    if (!p_.operators) return "";
    std::string text = "operators\n";
    const auto operand = [&](OperandId id) {
      if (id.value >= p_.operators->operands.size()) return fmt::format("?{}", id.value);
      const Operand& o = p_.operators->operand(id);
      return fmt::format("{} {}[{}]", quoted(o.name), name_of(o.dtype), joined(o.shape, "x"));
    };
    for (const Operator& op : p_.operators->operators) {
      std::vector<std::string> in;
      for (OperandId id : op.in) in.push_back(operand(id));
      const auto& alone = op.attributes.alone;
      text += fmt::format("  [{}] {}: {} = {}({}){}\n", op.id.value, quoted(op.name), operand(op.out), name_of(op.kind),
                          joined(in, ", "), alone.empty() ? "" : fmt::format(", alone [{}]", joined(alone, ", ")));
    }
    return text;
  }

  std::string tensor(const Tensor& t, const Chips& as) const {
    std::string text = fmt::format("{} {} {}[{}] in {}, tiles {}", as.name(t.name), name_of(t.role), name_of(t.dtype),
                                   joined(t.shape, "x"), name_of(t.space), joined(t.tiles, "x"));
    if (t.whole != t.shape && t.whole.size() == t.shape.size() && t.offset.size() == t.shape.size()) {
      std::vector<std::string> at;
      for (std::size_t d = 0; d < t.shape.size(); ++d) at.push_back(as.offset(t.offset[d], t.shape[d], t.whole[d]));
      text += fmt::format(", at ({}) of {}", joined(at, ","), joined(t.whole, "x"));
    }
    if (t.replicas != 1) text += fmt::format(", {} replicas", t.replicas);
    text += ", " + fill_text(t.fill);
    if (t.range) text += fmt::format(", values [{}, {}]", t.range->first, t.range->second);
    if (memory_ && p_.memory && t.id.value < p_.memory->tensors.size())
      text += fmt::format(", at {:#x} ({} bytes)", p_.memory->tensors[t.id.value].address,
                          p_.memory->tensors[t.id.value].bytes);
    return text;
  }

  std::string port(const Port& port, const Chips& as) const {
    const bool input = port.direction == Direction::input;
    std::string text = input ? "in " : "out ";
    text += buffer_name(port.buffer, as);
    const auto& big = input ? port.need : port.reserve;
    const auto& small = input ? port.pop : port.push;
    text += fmt::format(" {} {}", input ? "pop" : "push", cyclic_text(small));
    if (big != small) text += fmt::format(" {} {}", input ? "need" : "reserve", cyclic_text(big));
    if (port.chunk != always(Chunk{})) text += " chunk " + chunks_text(port.chunk, as);
    return text;
  }

  std::string stage(const Stage& s, const Chips& as) const {
    std::string text = fmt::format("{} {}", as.name(s.name), kind_name(s));
    struct Visitor {
      const Printer& print;
      const Chips& as;
      std::string operator()(const Load& k) const {
        return fmt::format(" {}, {}{}{}{}", print.tensors_in_turn(k, as), pattern_text(k.pattern),
                           k.indexed ? ", rows by index" : "", lanes_text(k.lanes),
                           k.multicast_set.empty()
                               ? ""
                               : fmt::format(", {} multicast sets",
                                             1 + *std::max_element(k.multicast_set.begin(), k.multicast_set.end())));
      }
      std::string operator()(const Store& k) const {
        return fmt::format(" {}, {}{}{}", print.tensors_in_turn(k, as), pattern_text(k.pattern), lanes_text(k.lanes),
                           k.chunks.empty() ? "" : ", chunks " + chunks_text(k.chunks, as));
      }
      std::string operator()(const MatmulTiles& k) const {
        return fmt::format(" op {}, block {}x{}, page_k {}, {} contraction tiles in {} pages, {} -> {} -> {}{}",
                           k.op.value, k.block_m, k.block_n, k.page_k, k.k_tiles, k.k_pages, name_of(k.operand),
                           name_of(k.accumulator), name_of(k.result), lanes_text(k.lanes));
      }
      std::string operator()(const Generic& k) const {
        return fmt::format(" {} in {} -> {}{}", bodies_text(k.bodies), name_of(k.accumulator), name_of(k.result),
                           lanes_text(k.lanes));
      }
      std::string operator()(const Recv& k) const { return print.sender(k.edge, as); }
      std::string operator()(const CollectiveStage& k) const {
        return fmt::format(" collective {}", k.collective.value);
      }
    };
    text += std::visit(Visitor{*this, as}, s.kind);
    text += fmt::format(", {} firings", s.firings);
    if (!s.assumes.empty()) text += fmt::format(" (of this input only: {})", s.assumes);
    if (p_.sections.size() > 1) text += fmt::format(" in section {}", s.section.value);
    if (placement_)
      text += ", " + sites(s.group) +
              fmt::format(" {} {}", s.engine.kind == StageRole::compute ? "context" : "engine", s.engine.index);
    if (schedule_ && s.id.value < place_on_chip_.size())
      text += fmt::format(", {} on its chip, interval {}", place_on_chip_[s.id.value],
                          p_.schedule->slots[s.id.value].initiation_interval_cycles);
    for (const Port& x : s.ports) text += "\n        " + port(x, as);
    return text;
  }

  std::string buffer(const Buffer& b, const Chips& as) const {
    std::string text = fmt::format("{} {} {}, depth {}, pages of {} tiles, {} bytes", as.name(b.name),
                                   b.kind == BufferKind::interm ? "Interm" : "Fifo", name_of(b.dtype), b.depth_pages,
                                   b.page_tiles, b.page_bytes);
    if (b.initial_pages != 0) text += fmt::format(", {} initial pages", b.initial_pages);
    if (b.alias_of) text += ", alias of " + buffer_name(*b.alias_of, as);
    if (placement_) text += ", " + sites(b.group);
    if (b.pmu != 0) text += fmt::format(" memory unit {}", b.pmu);
    if (memory_ && p_.memory && b.id.value < p_.memory->buffers.size())
      text += fmt::format(", at {:#x} bank {}", p_.memory->buffers[b.id.value].address,
                          p_.memory->buffers[b.id.value].bank);
    return text;
  }

  std::string edge(const Edge& e, const Chips& as) const {
    std::vector<std::string> to;
    for (StageId id : e.to) to.push_back(stage_name(id, as));
    std::string text = fmt::format("{} {} through {} to {}", name_of(e.handshake), stage_name(e.from, as),
                                   buffer_name(e.buffer, as), joined(to, ", "));
    if (e.chunk.of != 1) text += ", chunk " + chunks_text({e.chunk}, as);
    static constexpr const char* maps[] = {"", ", multicast", ", scatter", ", gather"};
    text += maps[static_cast<std::size_t>(e.map.kind)];
    if (e.counter_bits != 0) text += fmt::format(", {} bits", e.counter_bits);
    for (std::size_t i = 0; i < e.routes.size(); ++i) {
      // Links have numbers that differ from chip to chip; how many there are does not.
      if (!e.routes[i].empty()) text += fmt::format("{}{}", i == 0 ? ", links " : "+", e.routes[i].size());
    }
    if (e.semaphores) text += fmt::format(", {} semaphores", 1 + e.semaphores->valid.size());
    return text;
  }

  std::string collectives() const {
    if (p_.collectives.empty()) return "";
    std::string text = "collectives\n";
    for (const Collective& c : p_.collectives) {
      std::vector<std::uint32_t> members;
      for (ChipId m : c.members) members.push_back(m.value);
      const bool equal = std::adjacent_find(c.bytes.begin(), c.bytes.end(), std::not_equal_to<>()) == c.bytes.end();
      const std::string bytes =
          c.kind == CollectiveKind::broadcast && !c.bytes.empty() && !members.empty()
              ? fmt::format("{} bytes of c{}", c.bytes[0], members[0])
              : (equal && !c.bytes.empty() ? std::to_string(c.bytes[0]) : "[" + joined(c.bytes, ", ") + "]") +
                    " bytes each";
      text += fmt::format("  [{}] {} {} by {}, members {}, place {}, {}{}\n", c.id.value, quoted(c.name),
                          name_of(c.kind), name_of(c.algorithm), members.empty() ? "none" : ids_text(members), c.order,
                          bytes, c.reason.empty() ? "" : " (" + c.reason + ")");
    }
    return text;
  }

  std::string work() const {
    // An axis is cut where an operator's items start at different places along it.
    struct Cut {
      const Work* first;
      bool m = false, n = false, k = false;
    };
    std::map<std::uint32_t, Cut> cuts;
    for (const Work& w : p_.work) {
      Cut& cut = cuts.try_emplace(w.op.value, Cut{&w}).first->second;
      cut.m = cut.m || w.offset_m != cut.first->offset_m;
      cut.n = cut.n || w.offset_n != cut.first->offset_n;
      cut.k = cut.k || w.offset_k != cut.first->offset_k;
    }
    const auto whole = [](std::int64_t extent, bool cut) {
      return cut && extent < std::numeric_limits<std::int64_t>::max() ? extent + 1 : extent;
    };
    std::vector<Line> lines;
    for (const Work& w : p_.work) {
      const Cut& cut = cuts.at(w.op.value);
      const auto text = [&](const Chips& as) {
        std::string line =
            fmt::format("{}, {} x {} x {} at ({},{},{})", operator_name(w.op), w.m, w.n, w.k,
                        as.offset(w.offset_m, w.m, whole(w.m, cut.m)), as.offset(w.offset_n, w.n, whole(w.n, cut.n)),
                        as.offset(w.offset_k, w.k, whole(w.k, cut.k)));
        if (w.plan)
          line += fmt::format(", blocks {}x{} pages of {}, {}x{}x{} sites, {}x{} rounds of {} pages", w.plan->block_m,
                              w.plan->block_n, w.plan->page_k, w.plan->sites_m, w.plan->sites_n, w.plan->sites_k,
                              w.plan->rounds_m, w.plan->rounds_n, w.plan->k_pages);
        return line;
      };
      const std::uint32_t chip = w.chip.value;
      lines.push_back({chip, w.id.value, text(Chips(chip, chips(), false)), text(Chips(chip, chips(), true)),
                       text(Chips(chip, 1, false))});
    }
    return lines.empty() ? "" : "work (m x n x k)\n" + fold(lines, chips());
  }

  // Sites that work on an operator's work: of an attention, those of all its stages.
  std::uint64_t sites_of(const Work& w) const {
    const BlockPlan& plan = *w.plan;
    if (!p_.operators || !p_.placement || p_.operators->operators[w.op.value].kind != OperatorKind::attention)
      return plan.sites_m * plan.sites_n * plan.sites_k;
    std::set<Site> sites;
    for (const Stage& s : p_.stages)
      if (s.origin == w.op && p_.chip_of(s) == w.chip)
        sites.insert(p_.sites_of(s).sites.begin(), p_.sites_of(s).sites.end());
    return sites.size();
  }

  // The unit and lanes that an operator's stages were given, where they do not take what there is.
  std::string unit_of(OperatorId op) const {
    std::uint32_t product = 0, element_wise = 0, stream = 0;
    for (const Stage& s : p_.stages) {
      if (s.origin != op) continue;
      if (const auto* m = std::get_if<MatmulTiles>(&s.kind)) product = m->lanes;
      if (const auto* g = std::get_if<Generic>(&s.kind)) element_wise = g->lanes;
      if (const auto* load = std::get_if<Load>(&s.kind)) stream = load->lanes;
    }
    std::string text = product != 0 ? "  unit = \"simd\"\n" : "";
    if (const std::uint32_t lanes = product != 0 ? product : element_wise; lanes != 0)
      text += fmt::format("  lanes = {}\n", lanes);
    if (stream != 0) text += fmt::format("  stream_lanes = {}\n", stream);
    const SchedulePin pin = p_.operators ? pin_of(*p_.operators, op) : SchedulePin{};
    if (pin.pmus.value_or(1) > 1) text += fmt::format("  pmus = {}\n", *pin.pmus);
    if (pin.fold_apart) text += "  fold_apart = true\n";
    return text;
  }

  // [schedule.OP] as a workload file pins it: the plan of an operator's first chip, in force on all that plan alike.
  std::string schedule() const {
    std::string text;
    std::map<std::uint32_t, const Work*> first;
    for (const Work& w : p_.work)
      if (w.plan && !first.contains(w.op.value)) first[w.op.value] = &w;
    for (const auto& [op, w] : first) {
      const BlockPlan& plan = *w->plan;
      text += fmt::format("  [schedule.{}]\n", toml_key(op));
      text += fmt::format("  sites = {}\n", sites_of(*w));
      text +=
          fmt::format("  unroll_m = {}\n  unroll_n = {}\n  unroll_k = {}\n", plan.sites_m, plan.sites_n, plan.sites_k);
      text += fmt::format("  block_m = {}\n  block_n = {}\n  page_k = {}\n", plan.block_m, plan.block_n, plan.page_k);
      if (const auto depths = operand_depths(OperatorId{op}, w->chip))
        text += depths->first == depths->second ? fmt::format("  depth = {}\n", depths->first)
                                                : fmt::format("  # depth = {} for the left operand, {} for the right\n",
                                                              depths->first, depths->second);
      text += unit_of(OperatorId{op});
      for (const Work& other : p_.work)
        if (other.op == w->op && other.plan && *other.plan != plan) {
          text += fmt::format("  # chip {} and others differ: see work\n", other.chip.value);
          break;
        }
    }
    return text.empty() ? "" : "schedule\n" + text;
  }

  std::string trees() const {
    if (p_.trees.empty()) return "";
    std::string text = "summation trees\n";
    for (const SummationTree& tree : p_.trees) {
      std::string sum;
      std::size_t left_deep = 0;
      // Nearly all trees add leaf after leaf; those read best as a list.
      std::vector<std::string> leaves;
      for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
        const SummationNode& node = tree.nodes[i];
        if (node.leaf)
          leaves.push_back(fmt::format("c{}[{},{})", node.chip.value, node.k_begin, node.k_end));
        else if (i > 0 && node.right + 1 == i && tree.nodes[node.right].leaf && node.left + 1 == node.right)
          ++left_deep;
      }
      const bool chain = leaves.size() == left_deep + 1 && tree.nodes.size() == leaves.size() + left_deep;
      if (leaves.size() > 8) {
        sum = fmt::format("{} + {} + ... + {} ({} leaves{})", leaves[0], leaves[1], leaves.back(), leaves.size(),
                          chain ? "" : ", as a tree");
      } else {
        sum = joined(leaves, " + ") + (chain ? "" : " (as a tree)");
      }
      text += fmt::format("  [{}] {} chunk {}: {}\n", tree.id.value, operator_name(tree.op),
                          chunk_text({tree.chunk, tree.chunks}), sum);
    }
    return text;
  }

  std::string sections() const {
    std::string text = p_.sections.empty() ? "" : "sections\n";
    for (const Section& s : p_.sections)
      text += fmt::format("  [{}] {}, {} trip{}{}{}\n", s.id.value, quoted(s.name), s.trips, s.trips == 1 ? "" : "s",
                          s.operators_a_trip == 0 ? "" : fmt::format(" of {} operators each", s.operators_a_trip),
                          s.relaunched ? ", launched one by one" : "");
    return text;
  }

  std::string certificate() const {
    if (!p_.certificate) return "";
    const Certificate& c = *p_.certificate;
    std::string text = "certificate\n";
    for (const Obligation& o : c.obligations)
      text += fmt::format("  {}: {} for {}{}\n", name_of(o.kind), name_of(o.status),
                          o.scope == ProofScope::every_schedule ? "every schedule" : "this input only",
                          o.reason.empty() ? "" : ": " + o.reason);
    std::uint64_t deepest = 0;
    for (const BufferClaim& b : c.buffers) deepest = std::max(deepest, b.least_depth);
    text += fmt::format("  {} buffers (least depths up to {}), {} counters, {} outputs\n", c.buffers.size(), deepest,
                        c.counters.size(), c.outputs.size());
    text += fmt::format("  {} local and {} crossing edges\n", c.local_edges, c.crossing_edges);
    text += fmt::format("  busiest site {} of {} bytes, busiest chip {} of {} bytes\n", c.memory.busiest_site_bytes,
                        c.memory.site_capacity_bytes, c.memory.busiest_chip_bytes, c.memory.chip_capacity_bytes);
    for (const CircleClaim& circle : c.circles) text += "  " + circle_text(p_, circle) + "\n";
    text += fmt::format("  cycles: not below {}, predicted {}\n", c.lower_bound_cycles, c.predicted_cycles);
    return text;
  }

  template <class T, class ChipOf>
  std::string folded(const char* title, const std::vector<T>& list,
                     std::string (Printer::*one)(const T&, const Chips&) const, ChipOf&& chip_of) const {
    if (list.empty()) return "";
    std::vector<Line> lines;
    for (const T& part : list) {
      const std::uint32_t chip = chip_of(part);
      lines.push_back({chip, part.id.value, (this->*one)(part, Chips(chip, chips(), false)),
                       (this->*one)(part, Chips(chip, chips(), true)), (this->*one)(part, Chips(chip, 1, false))});
    }
    return fmt::format("{}\n{}", title, fold(lines, chips()));
  }

  std::uint32_t chip_of_group(GroupId g) const {
    if (!p_.placement || g.value >= p_.placement->groups.size() || p_.group(g).sites.empty()) return 0;
    return p_.group(g).sites.front().chip.value;
  }
  std::uint32_t chip_of_stage(StageId s) const {
    return s.value < p_.stages.size() ? chip_of_group(p_.stage(s).group) : 0;
  }

  void show(const PrintOptions& o) {
    placement_ = o.placement;
    memory_ = o.memory;
    schedule_ = o.schedule;
  }

 private:
  std::string sites(GroupId g) const {
    if (!p_.placement || g.value >= p_.placement->groups.size() || p_.group(g).sites.empty()) return "no sites";
    const Group& group = p_.group(g);
    const Position first = group.sites.front().at, last = group.sites.back().at;
    if (group.sites.size() == 1) return fmt::format("site ({},{})", first.x, first.y);
    return fmt::format("{} sites ({},{})..({},{})", group.sites.size(), first.x, first.y, last.x, last.y);
  }
  std::string tensor_name(TensorId id, const Chips& as) const {
    return id.value < p_.tensors.size() ? as.name(p_.tensor(id).name) : fmt::format("?{}", id.value);
  }
  // "w0"; "w0, then 31 more to w31" where later trips work on others.
  template <class Access>
  std::string tensors_in_turn(const Access& k, const Chips& as) const {
    std::string text = tensor_name(k.tensor, as);
    if (!k.later.empty()) text += fmt::format(", then {} more to {}", k.later.size(), tensor_name(k.later.back(), as));
    return text;
  }
  std::string buffer_name(BufferId id, const Chips& as) const {
    return id.value < p_.buffers.size() ? as.name(p_.buffer(id).name) : fmt::format("?{}", id.value);
  }
  std::string stage_name(StageId id, const Chips& as) const {
    return id.value < p_.stages.size() ? as.name(p_.stage(id).name) : fmt::format("?{}", id.value);
  }
  std::string sender(EdgeId id, const Chips& as) const {
    return id.value < p_.edges.size() ? " from " + stage_name(p_.edge(id).from, as)
                                      : fmt::format(" from edge ?{}", id.value);
  }
  std::string operator_name(OperatorId id) const {
    if (p_.operators && id.value < p_.operators->operators.size())
      return quoted(p_.operators->operators[id.value].name);
    return fmt::format("op {}", id.value);
  }
  // Bare where TOML allows it.
  std::string toml_key(std::uint32_t op) const {
    std::string name = p_.operators && op < p_.operators->operators.size() ? p_.operators->operators[op].name
                                                                           : fmt::format("op{}", op);
    const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
    if (bare) return name;
    std::string text = "\"";
    for (const char c : name) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\')
        text += std::string("\\") + c;
      else if (byte < 0x20 || byte == 0x7f)
        text += fmt::format("\\u{:04x}", byte);
      else
        text += c;
    }
    return text + "\"";
  }
  std::optional<std::pair<std::uint64_t, std::uint64_t>> operand_depths(OperatorId op, ChipId chip) const {
    for (const Stage& s : p_.stages) {
      const auto* m = std::get_if<MatmulTiles>(&s.kind);
      if (m == nullptr || m->op != op || chip_of_group(s.group) != chip.value || s.ports.size() < 2) continue;
      if (s.ports[0].buffer.value >= p_.buffers.size() || s.ports[1].buffer.value >= p_.buffers.size())
        return std::nullopt;
      const std::uint64_t a = p_.buffer(s.ports[0].buffer).depth_pages, b = p_.buffer(s.ports[1].buffer).depth_pages;
      return a == 0 || b == 0 ? std::nullopt : std::optional(std::pair(a, b));
    }
    return std::nullopt;
  }
  const SpatialProgram& p_;
  bool placement_ = true, memory_ = true, schedule_ = true;
  std::vector<std::uint32_t> place_on_chip_;  // by stage: its place among its section's stages on its chip, from 1
};

}  // namespace

std::string ids_text(const std::vector<std::uint32_t>& ids) {
  std::string text;
  for (std::size_t i = 0; i < ids.size();) {
    std::size_t end = i + 1;
    while (end + 1 < ids.size() && ids[end + 1] - ids[end] == ids[i + 1] - ids[i]) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ids[i]);
    if (end - i < 2) {
      ++i;
      continue;
    }
    const std::uint32_t step = ids[i + 1] - ids[i];
    text += fmt::format("..{}{}", ids[end], step == 1 ? "" : fmt::format(" by {}", static_cast<std::int32_t>(step)));
    i = end + 1;
  }
  return text;
}

std::string print(const SpatialProgram& program, const PrintOptions& options) {
  Printer print(program);
  print.show(options);
  std::string text = print.header();
  if (options.operators) text += print.operators();
  if (options.collectives) text += print.collectives();
  if (options.schedule) text += print.sections();
  if (options.tensors)
    text += print.folded("tensors", program.tensors, &Printer::tensor, [](const Tensor& t) { return t.chip.value; });
  if (options.work) text += print.work();
  if (options.stages)
    text += print.folded("stages", program.stages, &Printer::stage,
                         [&](const Stage& s) { return print.chip_of_group(s.group); });
  if (options.buffers)
    text += print.folded("buffers", program.buffers, &Printer::buffer,
                         [&](const Buffer& b) { return print.chip_of_group(b.group); });
  if (options.edges)
    text += print.folded("edges", program.edges, &Printer::edge,
                         [&](const Edge& e) { return print.chip_of_stage(e.from); });
  if (options.trees) text += print.trees();
  if (options.schedule) text += print.schedule();
  if (options.certificate) text += print.certificate();
  return text;
}

std::string print_one(const SpatialProgram& program, std::string_view name) {
  const Printer print(program);
  const auto find = [&](const char* title, const auto& list, auto one, auto chip_of) -> std::string {
    for (const auto& part : list)
      if (part.name == name) {
        // Of one part nothing is folded: its chip and its neighbours keep their numbers.
        const Chips as(chip_of(part), 1, false);
        return fmt::format("{} [{}] on chip {}: {}\n", title, part.id.value, chip_of(part), (print.*one)(part, as));
      }
    return "";
  };
  std::string text =
      find("stage", program.stages, &Printer::stage, [&](const Stage& s) { return print.chip_of_group(s.group); });
  text +=
      find("buffer", program.buffers, &Printer::buffer, [&](const Buffer& b) { return print.chip_of_group(b.group); });
  text += find("tensor", program.tensors, &Printer::tensor, [](const Tensor& t) { return t.chip.value; });
  for (const Collective& c : program.collectives)
    if (c.name == name) {
      std::vector<std::uint32_t> members;
      for (ChipId m : c.members) members.push_back(m.value);
      text += fmt::format("collective [{}] {} {} by {}, members {}, place {}, bytes [{}]{}\n", c.id.value,
                          quoted(c.name), name_of(c.kind), name_of(c.algorithm), joined(members, ", "), c.order,
                          joined(c.bytes, ", "), c.reason.empty() ? "" : ", " + c.reason);
    }
  constexpr std::string_view edge = "edge ";
  if (name.starts_with(edge) && name.size() > edge.size() && name.size() < edge.size() + 10) {
    std::uint64_t number = 0;
    bool digits = true;
    for (const char c : name.substr(edge.size())) {
      digits = digits && c >= '0' && c <= '9';
      number = number * 10 + static_cast<std::uint64_t>(c - '0');
    }
    if (digits && number < program.edges.size()) {
      const Edge& e = program.edges[number];
      text += fmt::format("edge [{}] from chip {}: {}\n", number, print.chip_of_stage(e.from),
                          print.edge(e, Chips(0, 1, false)));
      for (std::size_t i = 0; i < e.routes.size(); ++i) {
        std::vector<std::uint32_t> links;
        for (LinkId l : e.routes[i]) links.push_back(l.value);
        if (!links.empty()) text += fmt::format("        links to receiver {}: {}\n", i, joined(links, ", "));
      }
    }
  }
  return text;
}

std::string print_dot(const SpatialProgram& program) {
  const Printer print(program);
  const auto escaped = [](std::string_view name) {
    std::string text;
    for (const char c : name) {
      if (c == '"' || c == '\\') text += '\\';
      text += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
    return text;
  };
  std::string text =
      fmt::format("digraph \"{}\" {{\n  rankdir=LR;\n  node [shape=box, fontsize=10];\n  edge [fontsize=9];\n",
                  escaped(program.header.name));
  std::map<std::uint32_t, std::vector<const Stage*>> chips;
  for (const Stage& s : program.stages) chips[print.chip_of_group(s.group)].push_back(&s);
  for (const auto& [chip, stages] : chips) {
    text += fmt::format("  subgraph cluster_chip{} {{\n    label=\"chip {}\";\n", chip, chip);
    for (const Stage* s : stages) {
      const std::size_t sites = program.placement && s->group.value < program.placement->groups.size()
                                    ? program.sites_of(*s).sites.size()
                                    : 0;
      text += fmt::format("    s{} [label=\"{}\\n{} x{}\"{}];\n", s->id.value, escaped(s->name), kind_name(*s), sites,
                          s->role == StageRole::movement ? ", style=rounded" : "");
    }
    text += "  }\n";
  }
  for (const Edge& e : program.edges) {
    const bool known = e.buffer.value < program.buffers.size();
    for (StageId to : e.to)
      text += fmt::format("  s{} -> s{} [label=\"{}\\n{}{}\"{}];\n", e.from.value, to.value,
                          known ? escaped(program.buffer(e.buffer).name) : "?", name_of(e.handshake),
                          known ? fmt::format(" x{}", program.buffer(e.buffer).depth_pages) : "",
                          is_local(e.handshake) ? "" : ", style=dashed");
  }
  return text + "}\n";
}

}  // namespace rdusim
