#include "compiler/ir/memory_order.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "compiler/ir/trips.h"

namespace rdusim {
namespace {

// What a Store's or a Load's trips work on; one tensor where it is the same in all.
template <class Access>
std::vector<TensorId> tensors_of(const Access& access) {
  std::vector<TensorId> list;
  for_each_tensor(access, [&](TensorId t) { list.push_back(t); });
  return list;
}

struct Writer {
  std::vector<TensorId> tensors;
  std::vector<StageId> stores;  // that write just these
};
struct Written {
  std::size_t writer;
  std::uint64_t trip;
};

// Of one section.
struct Writers {
  std::vector<Writer> list;
  std::unordered_map<std::uint32_t, std::vector<Written>> of;  // by tensor
};

class Orders {
 public:
  Orders(const SpatialProgram& p, std::optional<SectionId> section) : p_(p) {
    std::map<std::pair<SectionId, std::vector<TensorId>>, std::size_t> known;
    for (const Stage& s : p.stages) {
      const auto* store = std::get_if<Store>(&s.kind);
      if (store == nullptr || (section && s.section != *section)) continue;
      Writers& w = writers_[s.section];
      const auto [at, fresh] = known.try_emplace({s.section, tensors_of(*store)}, w.list.size());
      if (fresh) {
        w.list.push_back({at->first.second, {}});
        for (std::uint64_t t = 0; t < w.list.back().tensors.size(); ++t)
          w.of[w.list.back().tensors[t].value].push_back({at->second, t});
      }
      w.list[at->second].stores.push_back(s.id);
    }
    for (const Stage& s : p.stages)
      if (const auto* load = std::get_if<Load>(&s.kind); load && (!section || s.section == *section))
        if (const auto at = writers_.find(s.section); at != writers_.end()) look_at(s, *load, at->second);
  }

  std::vector<MemoryOrder> orders() && {
    std::vector<MemoryOrder> list;
    for (auto& [key, order] : orders_) list.push_back(std::move(order));
    return list;
  }
  std::vector<MemoryDisorder> disorders() && { return std::move(disorders_); }

 private:
  void look_at(const Stage& s, const Load& load, const Writers& writers) {
    std::map<std::size_t, std::vector<std::pair<std::uint64_t, std::uint64_t>>> met;  // by writer: trips read, written
    std::uint64_t trip = 0;
    for_each_tensor(load, [&](TensorId t) {
      if (const auto at = writers.of.find(t.value); at != writers.of.end())
        for (const Written& w : at->second) met[w.writer].emplace_back(trip, w.trip);
      ++trip;
    });
    for (const auto& [which, trips] : met) {
      const Writer& writer = writers.list[which];
      const auto [read, written] = trips.front();
      // From trip `lag` on each trip reads what the one `lag` before has written. One tensor for all trips, on either
      // side, is in order where the section makes one.
      const bool once = p_.sections[s.section.value].trips <= 1;
      bool regular = read >= written && trips.size() == tensors_in_turn(load) - (read - written) &&
                     (once || (tensors_in_turn(load) > 1 && writer.tensors.size() == tensors_in_turn(load)));
      for (std::size_t i = 0; regular && i < trips.size(); ++i)
        regular = trips[i].first == read - written + i && trips[i].second == i;
      if (!regular) {
        disorders_.push_back({writer.stores.front(), s.id, writer.tensors[written], written, read});
        continue;
      }
      MemoryOrder& order = orders_[{s.section, writer.tensors.front(), read - written, which}];
      order.section = s.section;
      order.tensor = writer.tensors.front();
      order.lag = read - written;
      order.stores = writer.stores;
      order.loads.push_back(s.id);
    }
  }

  const SpatialProgram& p_;
  std::map<SectionId, Writers> writers_;
  std::map<std::tuple<SectionId, TensorId, std::uint64_t, std::size_t>, MemoryOrder> orders_;
  std::vector<MemoryDisorder> disorders_;
};

}  // namespace

std::vector<MemoryOrder> memory_orders(const SpatialProgram& program, std::optional<SectionId> section) {
  return Orders(program, section).orders();
}

std::vector<MemoryDisorder> memory_disorders(const SpatialProgram& program) {
  return Orders(program, {}).disorders();
}

}  // namespace rdusim
