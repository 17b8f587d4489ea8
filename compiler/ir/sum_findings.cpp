#include "compiler/ir/sum_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "compiler/workload/operator_traits.h"

namespace rdusim {
namespace {

std::string text_of(const std::vector<SumGap>& list) {
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

bool repeated_addend(const std::vector<SumLeaf>& leaves) {
  std::set<std::string_view> seen;
  return std::any_of(leaves.begin(), leaves.end(), [&](const SumLeaf& leaf) {
    return leaf.kind == SumLeaf::Kind::addend && !seen.insert(leaf.addend).second;
  });
}

// By buffer: the operand whose pages are loaded into it; `none` where they are made.
std::vector<std::uint32_t> operands_loaded(const SpatialProgram& p, std::uint32_t none) {
  std::vector<std::uint32_t> loaded(p.buffers.size(), none);
  for (const Stage& s : p.stages)
    if (const auto* load = std::get_if<Load>(&s.kind))
      for (const Port& port : s.ports)
        if (port.direction == Direction::output) loaded[port.buffer.value] = p.tensor(load->tensor).operand.value;
  return loaded;
}

}  // namespace

PageContent part_of(PageContent content, Chunk chunk) {
  if (chunk.of <= 1 || content.box == no_box) return content;
  const ElementRange part = chunk_range(content.end - content.begin, chunk.index, chunk.of);
  content.end = content.begin + part.end;
  content.begin += part.begin;
  return content;
}

SumFindings::SumFindings(const SpatialProgram& p, std::uint32_t native_tile)
    : p_(p), native_tile_(native_tile), products_(p.stages.size()) {
  constexpr std::uint32_t made = ~std::uint32_t{0};
  const std::vector<std::uint32_t> loaded = operands_loaded(p, made);
  // Of operators that are no matmuls, by transposed, and by the operand that is multiplied, where it comes from memory.
  std::map<std::tuple<std::uint32_t, bool, std::uint32_t>, OperatorId> others;
  for (const Stage& s : p.stages) {
    const auto* matmul = std::get_if<MatmulTiles>(&s.kind);
    if (matmul == nullptr) continue;
    OperatorId& products = products_[s.id.value];
    products = matmul->op;
    if (!p.operators || products.value >= p.operators->operators.size() ||
        p.operators->operators[products.value].kind == OperatorKind::matmul)
      continue;
    const OperatorId own(p.operators->operators.size() + s.id.value);
    const std::uint32_t left = s.ports.empty() ? made : loaded[s.ports.front().buffer.value];
    products = others.try_emplace({matmul->op.value, matmul->transposed, left}, own).first->second;
  }
  for (const SummationTree& tree : p.trees) {
    Trees& trees = trees_[tree.op.value];
    SummationTree of_products = tree;
    if (const auto own = others.find({tree.op.value, false, made}); own != others.end()) of_products.op = own->second;
    const SumId sum = sums.of_tree(of_products);
    trees.by_sum.emplace(sum, trees.all.size());
    trees.all.push_back({sum, {tree.chunk, tree.chunks}, tree.id});
  }
  if (!p.operators) return;
  for (const Operator& op : p.operators->operators) {
    writer_of_operand_[op.out.value] = op.id;
    if (op.kind != OperatorKind::matmul || op.in.empty()) continue;
    const Operand& left = p.operators->operand(op.in[0]);
    if (!left.shape.empty()) contraction_[op.id.value] = left.shape.back();
  }
}

std::uint32_t SumFindings::box_id(const ElementBox& box) {
  const auto [at, fresh] = box_ids_.try_emplace(box, static_cast<std::uint32_t>(boxes_.size()));
  if (fresh) {
    boxes_.push_back(box);
    sizes_.push_back(elements(box));
  }
  return at->second;
}

std::uint32_t SumFindings::box_of(const AccessPattern& pattern, const Tensor& tensor, const TileBox& page) {
  ElementBox box;
  if (tensor.shape.size() == 1) box.push_back({0, 1});
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    box.push_back(elements_of(pattern, tensor, page, d, native_tile_));
  if (const std::uint64_t heads = pattern.heads; heads > 1) {
    const std::int64_t width = tensor.whole.back() / static_cast<std::int64_t>(heads);
    const std::int64_t head = box.back().begin / width;
    box.back() = {box.back().begin - head * width, box.back().end - head * width};
    box.insert(box.end() - 2, AxisRange{head, head + 1});
  }
  return box_id(box);
}

OperatorId SumFindings::owner_of(OperatorId products) const {
  if (!p_.operators || products.value < p_.operators->operators.size()) return products;
  const Stage& stage = p_.stage(StageId(products.value - p_.operators->operators.size()));
  return std::get<MatmulTiles>(stage.kind).op;
}

void SumFindings::computes(const SumLeaf& leaf, StageId stage) {
  computed_by_[leaf.op.value].try_emplace({leaf.k_begin, leaf.k_end, leaf.chip.value}, stage);
}

std::int64_t SumFindings::contraction_of(OperatorId op) const {
  const auto at = contraction_.find(op.value);
  return at == contraction_.end() ? 0 : at->second;
}

const SumFindings::Facts& SumFindings::facts(SumId sum) {
  const auto [at, fresh] = facts_.try_emplace(sum);
  Facts& f = at->second;
  if (!fresh) return f;
  const std::vector<SumLeaf> leaves = sums.leaves(sum);
  std::set<std::uint32_t> ops;
  f.complete = !repeated_addend(leaves);
  f.single = true;
  for (const SumLeaf& leaf : leaves) {
    if (leaf.kind != SumLeaf::Kind::partial) {
      f.single = false;
      continue;
    }
    if (!f.op) f.op = leaf.op;
    f.single = f.single && leaf.op == *f.op;
    if (ops.insert(leaf.op.value).second)
      f.complete = f.complete && gaps(leaves, leaf.op, contraction_of(leaf.op)).empty();
  }
  return f;
}

void SumFindings::fault(Code code, StageId stage, std::string message, std::vector<Note> notes) {
  if (seen_.insert({code, stage.value}).second) faults_.push_back({code, stage, std::move(message), std::move(notes)});
}

std::string SumFindings::place(const PageContent& c) const {
  if (c.box == no_box) return "anywhere";
  std::string text;
  for (const AxisRange& axis : boxes_[c.box]) text += fmt::format("[{},{})", axis.begin, axis.end);
  if (c.begin != 0 || c.end != sizes_[c.box]) text += fmt::format(", elements [{},{}) of it", c.begin, c.end);
  return text;
}

// Whole rows that were cut from a page are a page of just those rows.
PageContent SumFindings::as_page_of_rows(const PageContent& content) {
  if (content.box == no_box || content.end - content.begin == sizes_[content.box]) return content;
  ElementBox rows = boxes_[content.box];
  const bool one_matrix = std::all_of(rows.begin(), rows.end() - 2, [](const AxisRange& a) { return a.size() == 1; });
  const auto range = whole_rows({content.begin, content.end}, static_cast<std::uint64_t>(rows.back().size()));
  if (!one_matrix || !range) return content;
  AxisRange& axis = rows[rows.size() - 2];
  axis = {axis.begin + static_cast<std::int64_t>(range->begin), axis.begin + static_cast<std::int64_t>(range->end)};
  const std::uint32_t id = box_id(rows);
  return {content.kind, content.source, id, 0, sizes_[id]};
}

void SumFindings::check_stored(const Stage& stage, const Tensor& tensor, std::uint32_t page, Chunk chunk,
                               const PageContent& given) {
  using Kind = PageContent::Kind;
  const PageContent content = chunk.of <= 1 ? as_page_of_rows(given) : given;
  if (content.kind == Kind::spoilt) return;
  if (content.kind == Kind::computed) return check_value(stage, tensor, page, chunk, content);
  std::optional<OperatorId> writer;
  if (const auto at = writer_of_operand_.find(tensor.operand.value); at != writer_of_operand_.end())
    writer = at->second;
  if (content.kind == Kind::data && moved(stage, tensor, page, chunk, content)) return;
  if (content.kind != Kind::sum) {
    if (writer)
      fault(Code::RDU3024, stage.id,
            fmt::format("'{}' stores pages into '{}' that hold no partial sum of '{}'", stage.name, tensor.name,
                        p_.operators->operators[writer->value].name));
    return;
  }
  const PageContent due = part_of({content.kind, content.source, page, 0, sizes_[page]}, chunk);
  if (content.box != due.box || content.begin != due.begin || content.end != due.end) {
    fault(Code::RDU3024, stage.id,
          fmt::format("'{}' stores the sum of {} where '{}' has {}", stage.name, place(content), tensor.name,
                      place(due)));
    return;
  }
  const Facts& f = facts(content.source);
  if (!f.complete) return report_incomplete(stage, tensor, content.source);
  if (!f.single) return;
  if (writer && owner_of(*f.op) != writer)
    fault(Code::RDU3024, stage.id,
          fmt::format("'{}' stores into '{}' the sum of another operator than '{}'", stage.name, tensor.name,
                      p_.operators->operators[writer->value].name));
  else
    check_order(stage, given, owner_of(*f.op));
}

// Whether it is a move that stores what it has loaded: of one of its operands, and as many elements as are due. That
// they are the right ones is what the certificate proves.
bool SumFindings::moved(const Stage& stage, const Tensor& tensor, std::uint32_t page, Chunk chunk,
                        const PageContent& content) {
  if (!p_.operators || !stage.origin || stage.origin->value >= p_.operators->operators.size()) return false;
  const OperatorGraph& graph = *p_.operators;
  const Operator& op = graph.operators[stage.origin->value];
  if (!is_move(op.kind) || storage_of(graph, op.out) != tensor.operand) return false;
  const OperandId from = p_.tensor(TensorId{content.source}).operand;
  const bool its_own =
      std::any_of(op.in.begin(), op.in.end(), [&](OperandId in) { return storage_of(graph, in) == from; });
  const PageContent due = part_of({content.kind, content.source, page, 0, sizes_[page]}, chunk);
  if (!its_own || content.end - content.begin != due.end - due.begin)
    fault(Code::RDU3044, stage.id,
          fmt::format("'{}' stores {} of '{}' where '{}' has {}, which '{}' does not move there", stage.name,
                      place(content), p_.tensor(TensorId{content.source}).name, tensor.name, place(due), op.name));
  return true;
}

// A value lies where the store puts it, and its stage computes the operator whose output is stored. That it is the
// operator's result and no step on the way is what the certificate proves. A fold of items has no place.
void SumFindings::check_value(const Stage& stage, const Tensor& tensor, std::uint32_t page, Chunk chunk,
                              const PageContent& content) {
  if (content.box == no_box) return;
  const PageContent due = part_of({content.kind, content.source, page, 0, sizes_[page]}, chunk);
  if (content.box != due.box || content.begin != due.begin || content.end != due.end)
    return fault(
        Code::RDU3044, stage.id,
        fmt::format("'{}' stores values of {} where '{}' has {}", stage.name, place(content), tensor.name, place(due)));
  const Stage& maker = p_.stage(StageId{content.source});
  std::optional<OperatorId> due_to = stage.origin;
  if (const auto at = writer_of_operand_.find(tensor.operand.value); at != writer_of_operand_.end())
    due_to = at->second;
  if (maker.origin && due_to && *maker.origin != *due_to)
    fault(
        Code::RDU3044, stage.id,
        fmt::format("'{}' stores into '{}' what '{}' makes for another operator", stage.name, tensor.name, maker.name));
}

void SumFindings::report_incomplete(const Stage& stage, const Tensor& tensor, SumId sum) {
  if (seen_.contains({Code::RDU3024, stage.id.value})) return;
  const std::vector<SumLeaf> leaves = sums.leaves(sum);
  for (const SumLeaf& leaf : leaves) {
    if (leaf.kind != SumLeaf::Kind::partial) continue;
    const std::vector<SumGap> wrong = gaps(leaves, leaf.op, contraction_of(leaf.op));
    if (wrong.empty()) continue;
    std::vector<Note> notes;
    for (const auto& [range, computer] : computed_by_[leaf.op.value]) {
      if (notes.size() == 4) break;
      const auto [begin, end, chip] = range;
      if (std::any_of(wrong.begin(), wrong.end(),
                      [b = begin, e = end](const SumGap& g) { return b < g.k_end && g.k_begin < e; }))
        notes.push_back({fmt::format("stage '{}'", p_.stage(computer).name),
                         fmt::format("chip {} computes [{},{})", chip, begin, end)});
    }
    return fault(Code::RDU3024, stage.id,
                 fmt::format("'{}' stores an incomplete sum into '{}': of the contraction of {}, {}", stage.name,
                             tensor.name, contraction_of(leaf.op), text_of(wrong)),
                 std::move(notes));
  }
  fault(Code::RDU3024, stage.id,
        fmt::format("'{}' stores a sum to which an addend was added twice: {}", stage.name, sums.text(sum)));
}

void SumFindings::check_order(const Stage& stage, const PageContent& content, OperatorId op) {
  const auto at = trees_.find(op.value);
  if (at == trees_.end()) return;
  Trees& trees = at->second;
  if (!trees.store) trees.store = stage.id;
  const auto covers = [&](const Tree& tree) {
    const ElementRange part = chunk_range(sizes_[content.box], tree.chunk.index, tree.chunk.of);
    return part.begin <= content.begin && content.end <= part.end;
  };
  bool found = false;
  const auto [first, last] = trees.by_sum.equal_range(content.source);
  for (auto i = first; i != last; ++i)
    if (covers(trees.all[i->second])) trees.all[i->second].met = found = true;
  if (found) return;
  const auto other = std::find_if(trees.all.begin(), trees.all.end(), covers);
  if (other == trees.all.end())
    fault(Code::RDU3032, stage.id,
          fmt::format("'{}' stores {}, which no summation tree of the operator covers", stage.name, place(content)));
  else
    fault(Code::RDU3032, stage.id,
          fmt::format("'{}' stores the sum {}; summation tree {} says {}", stage.name, sums.text(content.source),
                      other->id.value, sums.text(other->sum)));
}

std::vector<SumFault> SumFindings::faults() {
  for (const auto& [op, trees] : trees_)
    for (const Tree& tree : trees.all)
      if (!tree.met && trees.store)
        fault(Code::RDU3032, *trees.store,
              fmt::format("summation tree {} (chunk {} of {}): no store receives the sum {}", tree.id.value,
                          tree.chunk.index, tree.chunk.of, sums.text(tree.sum)));
  // Where a sum is wrong, what it passes through on its way follows from that.
  const auto follows = [](const SumFault& f) { return f.code == Code::RDU3046; };
  if (!std::all_of(faults_.begin(), faults_.end(), follows)) std::erase_if(faults_, follows);
  std::stable_sort(faults_.begin(), faults_.end(), [](const SumFault& a, const SumFault& b) {
    return std::pair(a.code, a.stage) < std::pair(b.code, b.stage);
  });
  return std::move(faults_);
}

}  // namespace rdusim
