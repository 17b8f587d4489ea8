// Programs with one number changed, at random: what a careless pass, or a file that was tampered with, might hand over.
#pragma once

#include <rapidcheck.h>

#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/program.h"

namespace rdusim::test {

// Where numbers are taken from: near the one that stands there, or from the edges of what fits.
enum class Reach { near, wild };

// Changes one number of `p`; returns what was changed. Draws from RapidCheck's generators, so that a property shrinks
// and repeats.
class RandomChange {
 public:
  RandomChange(SpatialProgram& p, Reach reach) : p_(p), reach_(reach) {}

  std::string make() {
    switch (below(15)) {
      case 0:
        return rate();
      case 1:
        return change(pick(p_.buffers).depth_pages, "a depth");
      case 2:
        return change(pick(p_.buffers).initial_pages, "initial pages");
      case 3:
        return change(pick(p_.stages).firings, "firings");
      case 4:
      case 5:
      case 6:
        return pattern();
      case 7:
        return body();
      case 8:
        return chunk();
      case 9:
        return change(pick(pick(p_.tensors).offset), "an offset");
      case 10:
        return change(pick(pick(p_.tensors).shape), "a shape");
      case 11:
        return change(pick(p_.edges).counter_bits, "counter bits");
      case 12:
        return collective();
      case 13:
        return change(pick(p_.memory->buffers).address, "an address");
      default:
        return change(matmul().k_pages, "pages of a contraction");
    }
  }

 private:
  std::size_t below(std::size_t n) { return *rc::gen::inRange<std::size_t>(0, n); }
  template <class List>
  typename List::reference pick(List& list) {
    return list[below(list.size())];
  }
  template <class T>
  std::string change(T& number, std::string what) {
    if (reach_ == Reach::wild) {
      number = static_cast<T>(*rc::gen::element<std::uint64_t>(0, 1, 2, 3, 7, 32, 33, 1000, 1u << 20, 0xffffffffu,
                                                               std::uint64_t{1} << 62, ~std::uint64_t{0}));
    } else {
      switch (below(4)) {
        case 0:
          ++number;
          break;
        case 1:
          number = number > 0 ? number - 1 : number + 1;
          break;
        case 2:
          number = number * 2 + (number == 0 ? 1 : 0);
          break;
        default:
          number = number / 2 + (number == 0 ? 1 : 0);
          break;
      }
    }
    return what;
  }

  // A stage for which f gives something; every program of these tests has loads, stores and matmuls.
  template <class Kind>
  std::vector<Stage*> stages() {
    std::vector<Stage*> list;
    for (Stage& s : p_.stages)
      if (std::holds_alternative<Kind>(s.kind)) list.push_back(&s);
    return list;
  }
  MatmulTiles& matmul() {
    auto list = stages<MatmulTiles>();
    return std::get<MatmulTiles>(pick(list)->kind);
  }
  std::string rate() {
    Stage& s = pick(p_.stages);
    Port& port = pick(s.ports);
    const bool in = port.direction == Direction::input;
    auto& cycle = below(2) == 0 ? (in ? port.need : port.reserve) : (in ? port.pop : port.push);
    auto& run = pick(cycle);
    return below(2) == 0 ? change(run.value, "a rate of " + s.name) : change(run.repeat, "a repeat of " + s.name);
  }
  std::string pattern() {
    auto loads = stages<Load>(), stores = stages<Store>();
    loads.insert(loads.end(), stores.begin(), stores.end());
    Stage& s = *pick(loads);
    auto* load = std::get_if<Load>(&s.kind);
    AccessPattern& a = load != nullptr ? load->pattern : std::get<Store>(s.kind).pattern;
    switch (below(5)) {
      case 0:
        return change(pick(pick(a.first)), "where an instance of " + s.name + " begins");
      case 1:
        return change(pick(pick(a.stride)), "a stride of " + s.name);
      case 2:
        return change(pick(a.loops), "a loop of " + s.name);
      case 3:
        return change(pick(a.extent_tiles), "an extent of " + s.name);
      default:
        return change(pick(a.page_tiles), "the page of " + s.name);
    }
  }
  std::string body() {
    auto list = stages<Generic>();
    if (list.empty()) return rate();
    Stage& s = *pick(list);
    auto& expr = pick(std::get<Generic>(s.kind).bodies).value;
    if (expr.empty()) return rate();
    ExprNode& node = pick(expr);
    if (below(2) == 0) return change(node.index, "an operand of " + s.name);
    node.op = static_cast<ExprOp>(below(static_cast<std::size_t>(ExprOp::negate) + 1));
    return "an operation of " + s.name;
  }
  std::string chunk() {
    auto stores = stages<Store>();
    if (Store& store = std::get<Store>(pick(stores)->kind); below(2) == 0 && store.chunks.size() > 1) {
      std::swap(store.chunks[0], store.chunks[1 + below(store.chunks.size() - 1)]);
      return "the order of a store's chunks";
    }
    Chunk& c = below(2) == 0 ? pick(p_.edges).chunk : pick(pick(pick(p_.stages).ports).chunk).value;
    return below(2) == 0 ? change(c.index, "a chunk") : change(c.of, "a number of chunks");
  }
  std::string collective() {
    if (p_.collectives.empty()) return rate();
    Collective& c = pick(p_.collectives);
    return below(2) == 0 ? change(pick(c.bytes), "the bytes of a collective")
                         : change(c.order, "the place of a collective");
  }

  SpatialProgram& p_;
  Reach reach_;
};

}  // namespace rdusim::test
