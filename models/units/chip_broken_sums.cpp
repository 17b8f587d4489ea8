// What faults do to sums: which page a firing adds, and what was done to it before.
#include <algorithm>
#include <cstring>

#include "models/units/chip.h"

namespace rdusim {
namespace {

// The ports that a body's operands come by, in the order in which it takes them.
std::vector<std::uint32_t> ports_of(const Expr& body) {
  std::vector<std::uint32_t> ports;
  for (const ExprNode& node : body)
    if (node.op == ExprOp::operand) ports.push_back(node.index);
  return ports;
}

bool same_block(const PageTag& a, const PageTag& b) {
  return a.row == b.row && a.col == b.col && a.chunk == b.chunk && a.chunks == b.chunks;
}

}  // namespace

// The page that operand `number` of a body gives, where a fault may have it otherwise.
Chip::View Chip::broken_operand(const StageState& s, std::uint64_t firing, const Expr& body, std::size_t number) {
  const StageSpec& sp = spec(s);
  const std::vector<std::uint32_t> ports = ports_of(body);
  const auto taken = [&](std::size_t n) { return view(s, ports[n], firing); };
  const View right = taken(number);
  if (right.header == nullptr) return right;
  const auto may_take = [&](std::size_t n) { return sp.ports[ports[n]].dtype == sp.ports[ports[number]].dtype; };
  const std::size_t mirrored = ports.size() - 1 - number;
  if (number == 0) c_.faults.strikes_on(FaultKind::sum_order, at(s), firing);
  if (ports.size() > 1 && mirrored == 0 && may_take(0) && c_.faults.strikes(FaultKind::partial_chip, at(s), firing))
    return taken(0);
  if (number != 0) return right;
  const auto another = [&](FaultKind kind, auto wanted) -> const KeptPage* {
    ChipFaults::Active* fault = c_.faults.find(kind, at(s));
    if (fault == nullptr) return nullptr;
    for (const KeptPage& page : fault->kept)
      if (fault->what.nth == firing && page.header.bytes != 0 && wanted(page.header.tag) &&
          c_.faults.strikes(kind, at(s), firing))
        return &page;
    if (firing >= fault->what.nth) return nullptr;
    if (!same_block(fault->kept[0].header.tag, right.tag) || kind == FaultKind::partial_chip)
      std::swap(fault->kept[0], fault->kept[1]);
    keep(right, sp.ports[ports[number]].dtype, fault->kept[0]);
    return nullptr;
  };
  if (const KeptPage* page =
          another(FaultKind::partial_block, [&](const PageTag& t) { return !same_block(t, right.tag); }))
    return seen_again(*page);
  if (const KeptPage* page = another(FaultKind::partial_chip, [&](const PageTag& t) {
        return same_block(t, right.tag) && t.provenance != right.tag.provenance;
      }))
    return seen_again(*page);
  if (ChipFaults::Active* fault = c_.faults.find(FaultKind::partial_trip, at(s))) {
    if (firing + sp.firings == fault->what.nth) keep(right, sp.ports[ports[number]].dtype, fault->kept[0]);
    if (fault->kept[0].header.bytes != 0 && c_.faults.strikes(FaultKind::partial_trip, at(s), firing))
      return seen_again(fault->kept[0]);
  }
  if (ChipFaults::Active* fault = c_.faults.from(FaultKind::activation_early, at(s), firing);
      fault != nullptr && c_.faults.strikes(FaultKind::activation_early, at(s), firing)) {
    keep(right, sp.ports[ports[number]].dtype, fault->kept[0]);
    rectify(fault->kept[0], sp.ports[ports[number]].dtype);
    // What comes out is a value of this stage, and no partial sum of anything.
    fault->kept[0].header.tag.operand = value_of(StageId{s.spec});
    fault->kept[0].header.tag.provenance = 0;
    return seen_again(fault->kept[0]);
  }
  return right;
}

void Chip::keep(const View& from, DType type, KeptPage& to) {
  to.header = *from.header;
  to.header.tag = from.tag;
  to.elements = from.elements;
  if (from.values == nullptr || from.elements == 0) return;
  // Its header has the bytes of the page or, of a page that came in parts, of the part: the type says what an element takes.
  const std::uint64_t element = bytes_of(type);
  to.values.assign(from.values, from.values + from.elements * element);
  // It may be taken for a chunk of another page, and chunks differ by an element where they do not divide it.
  to.values.resize((from.elements + 1) * element);
}

Chip::View Chip::seen_again(const KeptPage& page) const {
  return {&page.header, page.values.empty() ? nullptr : page.values.data(), page.elements, page.header.tag};
}

// What is below zero becomes zero. The sign of every type is the highest bit of its last byte.
void Chip::rectify(KeptPage& page, DType type) {
  const std::size_t size = bytes_of(type);
  for (std::size_t i = 0; i + size <= page.values.size(); i += size)
    if ((page.values[i + size - 1] & std::byte{0x80}) != std::byte{0}) std::memset(page.values.data() + i, 0, size);
}

}  // namespace rdusim
