#include "compiler/ir/circle_text.h"

#include <fmt/format.h>

namespace rdusim {
namespace {

constexpr std::size_t most_named = 6;

// "'a', 'b' and 3 more", of the ids that `list` has.
template <class Id, class List, class Name>
std::string names(const std::vector<Id>& ids, const List& list, Name&& name) {
  std::string text;
  std::size_t named = 0, left = 0;
  for (const Id id : ids) {
    if (id.value >= list.size()) continue;
    if (named == most_named) {
      ++left;
      continue;
    }
    text += (named++ == 0 ? "" : ", ") + name(list[id.value]);
  }
  if (left != 0) text += fmt::format(" and {} more", left);
  return text;
}

}  // namespace

std::string circle_text(const SpatialProgram& p, const CircleClaim& c) {
  const std::string section =
      c.section.value < p.sections.size() ? "section '" + p.sections[c.section.value].name + "'" : "a section";
  std::string text = fmt::format("{} takes {} cycles or more: ", section, with_commas(c.bound().value_or(c.way)));
  const std::string stages = names(c.stages, p.stages, [](const Stage& s) { return "'" + s.name + "'"; });
  const std::string buffers = names(c.buffers, p.buffers, [](const Buffer& b) {
    return fmt::format("'{}' (depth {})", b.name, with_commas(b.depth_pages));
  });
  const std::string through = stages + (buffers.empty() ? "" : " through " + buffers);
  if (c.rounds == 0) return text + fmt::format("so long is the way of firings of {}", through);
  return text + fmt::format(
                    "once round {} takes {} cycles for {} part{} of the run, {} time{}, and the way to it and from "
                    "it {}",
                    through, with_commas(c.cycles), with_commas(c.parts), c.parts == 1 ? "" : "s",
                    with_commas(c.rounds), c.rounds == 1 ? "" : "s", with_commas(c.way));
}

}  // namespace rdusim
