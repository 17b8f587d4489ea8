#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/json.h"
#include "compiler/target/target.h"
#include "sim/cli/commands.h"

namespace rdusim::cli {

namespace {

std::string one_line(const Target& t) {
  return fmt::format("{:<18} {} chip{}, {} x {} sites, {} GHz, HBM {}, {} links\n", t.name, t.chips,
                     t.chips == 1 ? "" : "s", t.mesh.width, t.mesh.height, to_double(t.clock_ghz),
                     format_bytes(t.hbm.capacity_bytes), t.links.size());
}

Json as_json(const Target& t) {
  JsonArray numbers;
  for (const Provenance& n : t.numbers) {
    Json range;
    if (n.range) range.push(n.range->first).push(n.range->second);
    numbers.push_back(Json()
                          .set("key", n.key)
                          .set("value", n.value)
                          .set("source", n.source)
                          .set("published", n.published)
                          .set("range", std::move(range)));
  }
  return Json()
      .set("name", t.name)
      .set("sha256", t.sha256)
      .set("chips", t.chips)
      .set("mesh", Json().set("width", t.mesh.width).set("height", t.mesh.height))
      .set("clock_ghz", to_double(t.clock_ghz))
      .set("native_tile", t.native_tile)
      .set("links", std::uint64_t{t.links.size()})
      .set("numbers", std::move(numbers));
}

std::string described(const Target& t) {
  std::string text = one_line(t);
  std::size_t key = 0;
  std::size_t value = 0;
  for (const Provenance& n : t.numbers) {
    key = std::max(key, n.key.size());
    value = std::max(value, n.value.size());
  }
  for (const Provenance& n : t.numbers) {
    text += fmt::format("  {:<{}}  {:<{}}  {}", n.key, key, n.value, std::min<std::size_t>(value, 24),
                        n.published ? "published" : "assumed");
    if (n.range) text += fmt::format(" [{}, {}]", n.range->first, n.range->second);
    text += fmt::format("  {}\n", n.source);
  }
  return text;
}

}  // namespace

ExitStatus targets(const TargetsRequest& request) {
  if (!request.name.empty()) {
    const auto target = find_target(request.name);
    if (!target) return fail(target.diagnostics());
    return print_result(request.json ? to_text(as_json(*target)) : described(*target), ExitStatus::done);
  }
  std::string text;
  JsonArray list;
  for (std::string_view name : shipped_targets()) {
    const auto target = find_target(std::string(name));
    if (!target) return fail(target.diagnostics());
    text += one_line(*target);
    if (request.json) list.push_back(as_json(*target));
  }
  return print_result(request.json ? to_text(Json(std::move(list))) : text, ExitStatus::done);
}

}  // namespace rdusim::cli
