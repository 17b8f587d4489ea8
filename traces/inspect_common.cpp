#include "traces/inspect_common.h"

#include <fmt/format.h>

#include <charconv>

namespace rdusim {

std::string_view text_of(EventSubject s, std::uint32_t n, const Roster& r, std::string& room) {
  switch (s) {
    case EventSubject::section:
      room = n < r.sections.size() ? "section " + r.sections[n] : "before any section";
      break;
    case EventSubject::stage:
      room = fmt::format("{} {}", r.place(r.stage_at(n)), r.stages[r.stage_at(n).stage.value].name);
      break;
    case EventSubject::buffer:
      room = fmt::format("{} {}", r.place(r.buffer_at(n)), r.buffers[r.buffer_at(n).buffer.value].name);
      break;
    case EventSubject::channel:
      room = r.describe(r.channel_at(n));
      break;
    case EventSubject::sender: {
      const auto at = r.sender_at(n);
      room = fmt::format("edge {} from {}", at.edge.value,
                         r.describe(StageAt{StageId{r.edges[at.edge.value].from}, at.from}));
      break;
    }
    case EventSubject::member: {
      const auto at = r.member_at(n);
      room = fmt::format("edge {} from instance {}, member {}", at.edge.value, at.from, at.member);
      break;
    }
    case EventSubject::link:
      room = r.link_name(LinkId{n});
      break;
    case EventSubject::memory: {
      const auto at = r.memory_at(n);
      static constexpr const char* spaces[] = {"sram", "hbm", "ddr"};
      room = fmt::format("chip{}.{} channel {}", at.chip, spaces[at.space], at.channel);
      break;
    }
  }
  return room;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t n = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return n;
}

std::string tag_text(const PageTag& t, const Roster& r) {
  std::string out = fmt::format("'{}' rows [{}, {}) x columns [{}, {})", r.name_of(t.operand), t.row, t.row + t.rows,
                                t.col, t.col + t.cols);
  if (t.chunks > 1) out += fmt::format(" chunk {} of {}", t.chunk, t.chunks);
  if (t.trip != 0) out += fmt::format(" trip {}", t.trip);
  return out;
}

}  // namespace rdusim
