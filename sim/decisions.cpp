#include "sim/decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/print.h"
#include "compiler/ir/trips.h"
#include "compiler/support/file.h"
#include "sim/compare/chip_names.h"

namespace rdusim {

namespace {

// "0..7, 15, 9..14": runs of rising numbers are folded.
std::string runs(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (end - i > 1) text += fmt::format("..{}", numbers[end - 1]);
    i = end;
  }
  return text;
}

// One decision as it was taken on some chips: rows of one name that agree are one.
class Folded {
 public:
  void add(const std::string& name, std::uint32_t chip, Json values) {
    const std::string text = to_text(values, true);
    std::vector<Row>& rows = rows_of(name);
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.text == text; });
    if (same == rows.end()) {
      rows.push_back({text, std::move(values), {chip}});
    } else {
      same->chips.insert(chip);
    }
  }

  Json list() const {
    JsonArray out;
    for (const auto& [name, rows] : names_) {
      for (const Row& r : rows) {
        Json row;
        const std::string chips = runs({r.chips.begin(), r.chips.end()});
        row.set("name", rows.size() == 1 ? name : fmt::format("{} on chips {}", name, chips));
        row.set("chips", chips);
        for (const auto& [key, value] : *r.values.as_object()) row.set(key, value);
        out.push_back(std::move(row));
      }
    }
    return out;
  }

 private:
  struct Row {
    std::string text;
    Json values;
    std::set<std::uint32_t> chips;
  };
  std::vector<Row>& rows_of(const std::string& name) {
    const auto [at, fresh] = index_.try_emplace(name, names_.size());
    if (fresh) names_.emplace_back(name, std::vector<Row>());
    return names_[at->second].second;
  }

  std::vector<std::pair<std::string, std::vector<Row>>> names_;  // in the order of the program
  std::map<std::string, std::size_t> index_;
};

Json collectives_of(const SpatialProgram& p) {
  JsonArray out;
  for (const Collective& c : p.collectives) {
    std::vector<std::uint32_t> members;
    for (ChipId chip : c.members) members.push_back(chip.value);
    out.push_back(Json()
                      .set("name", c.name)
                      .set("kind", name_of(c.kind))
                      .set("algorithm", name_of(c.algorithm))
                      .set("members", runs(members)));
  }
  return out;
}

Json tiles_of(const SpatialProgram& p) {
  Folded rows;
  for (const Work& w : p.work) {
    const std::string name = p.operators && w.op.value < p.operators->operators.size()
                                 ? p.operators->operators[w.op.value].name
                                 : fmt::format("operator {}", w.op.value);
    Json j;
    j.set("m", w.m).set("n", w.n).set("k", w.k);
    if (w.plan) {
      const BlockPlan& b = *w.plan;
      j.set("block_m", b.block_m).set("block_n", b.block_n).set("page_k", b.page_k);
      j.set("sites_m", b.sites_m).set("sites_n", b.sites_n).set("sites_k", b.sites_k);
      j.set("rounds_m", b.rounds_m).set("rounds_n", b.rounds_n).set("k_pages", b.k_pages);
    }
    rows.add(name, w.chip.value, std::move(j));
  }
  return rows.list();
}

Json placement_of(const SpatialProgram& p) {
  Folded rows;
  if (!p.placement) return rows.list();
  for (const Stage& s : p.stages) {
    const std::vector<Site>& sites = p.sites_of(s).sites;
    if (sites.empty()) continue;
    Position low = sites.front().at;
    Position high = low;
    std::string all;
    for (const Site& site : sites) {
      low.x = std::min(low.x, site.at.x), low.y = std::min(low.y, site.at.y);
      high.x = std::max(high.x, site.at.x), high.y = std::max(high.y, site.at.y);
      all += fmt::format("{},{};", site.at.x, site.at.y);
    }
    rows.add(std::string(without_chips(s.name)), sites.front().chip.value,
             Json()
                 .set("sites", sites.size())
                 .set("within", fmt::format("({},{})..({},{})", low.x, low.y, high.x, high.y))
                 .set("sha256", sha256(std::string_view(all)).substr(0, 16)));
  }
  return rows.list();
}

}  // namespace

Json decisions_of(const SpatialProgram& p) {
  const ShardPlan& plan = p.header.plan;
  Json j;
  j.set("tile", p.header.native_tile);
  j.set(
      "shard",
      Json().set("kind", name_of(plan.kind)).set("chips", plan.chips).set("uneven", plan.uneven).set("pad", plan.pad));
  JsonArray sections;
  for (const Section& s : p.sections) sections.push_back(Json().set("name", s.name).set("trips", s.trips).set("launches", launches_of(s)));
  j.set("sections", std::move(sections));
  j.set("collectives", collectives_of(p));
  j.set("work", tiles_of(p));
  j.set("placement", placement_of(p));
  return j;
}

}  // namespace rdusim
