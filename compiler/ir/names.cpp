#include <fmt/format.h>

#include "compiler/ir/enum_names.h"
#include "compiler/ir/print.h"

namespace rdusim {

namespace {

template <class E>
std::string_view shown(E e) {
  const std::string_view name = spelling(e).shown;
  return name.empty() ? "?" : name;
}

}  // namespace

std::string_view name_of(Handshake h) {
  return shown(h);
}
std::string_view name_of(CollectiveKind k) {
  return shown(k);
}
std::string_view name_of(CollectiveAlgorithm a) {
  return shown(a);
}
std::string_view name_of(ShardKind k) {
  return shown(k);
}
std::string_view name_of(MemorySpace s) {
  return shown(s);
}
std::string_view name_of(ObligationKind k) {
  return shown(k);
}
std::string_view name_of(ProofStatus s) {
  return shown(s);
}
std::string_view name_of(ProofScope s) {
  return shown(s);
}

std::string_view kind_name(const Stage& s) {
  struct Visitor {
    std::string_view operator()(const Load&) const { return "Load"; }
    std::string_view operator()(const Store&) const { return "Store"; }
    std::string_view operator()(const MatmulTiles&) const { return "MatmulTiles"; }
    std::string_view operator()(const Generic&) const { return "Generic"; }
    std::string_view operator()(const Recv&) const { return "Recv"; }
    std::string_view operator()(const CollectiveStage&) const { return "CollectiveStage"; }
  };
  return std::visit(Visitor{}, s.kind);
}

std::string to_string(const Site& s) {
  return fmt::format("chip{}.site({},{})", s.chip.value, s.at.x, s.at.y);
}

}  // namespace rdusim
