// The life of a page.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "traces/inspect.h"
#include "traces/inspect_common.h"
#include "traces/machine_state.h"

namespace rdusim {

namespace {

class Journey final {
 public:
  Journey(const Roster& r, const BufferAt& buffer, std::uint64_t page) : r_(r), state_(r) {
    followed_[r.of(buffer)].push_back(page);
  }

  template <class E>
  void operator()(const E& e) {
    static_cast<EventSink&>(state_).on(e);
    if constexpr (std::is_same_v<E, PagePushed>) pushed(e);
    if constexpr (std::is_same_v<E, PagePopped>) popped(e);
    if constexpr (std::is_same_v<E, PageSent>) leaving_.push_back(e);
    if constexpr (std::is_same_v<E, PageLanded>) landed(e);
  }
  JsonArray steps;

 private:
  bool follows(const std::map<std::uint32_t, std::vector<std::uint64_t>>& set, std::uint32_t unit,
               std::uint64_t page) const {
    const auto it = set.find(unit);
    return it != set.end() && std::find(it->second.begin(), it->second.end(), page) != it->second.end();
  }
  void step(Cycle at, std::string what, std::string where, Json firing = {}) {
    steps.push_back(
        Json().set("cycle", at).set("what", std::move(what)).set("where", std::move(where)).set("firing", firing));
  }
  void pushed(const PagePushed& e) {
    const std::uint32_t n = r_.of(e.buffer);
    auto& queue = landing_[n];
    if (!queue.empty()) {
      if (queue.front()) followed_[n].push_back(e.page);
      queue.erase(queue.begin());
    }
    if (!follows(followed_, n, e.page)) return;
    const RosterBuffer& b = r_.buffers[e.buffer.buffer.value];
    Json by;
    if (b.producer && e.buffer.instance < r_.instances(StageId{*b.producer})) {
      const StageAt at{StageId{*b.producer}, e.buffer.instance};
      by = fmt::format("{} of '{}'", state_.stage(r_.of(at)).completed, r_.stages[at.stage.value].name);
    }
    step(e.at, fmt::format("page {} of {}: {}", e.page, b.name, tag_text(e.tag, r_)), r_.place(e.buffer),
         std::move(by));
  }
  void popped(const PagePopped& e) {
    const std::uint32_t n = r_.of(e.buffer);
    const RosterBuffer& b = r_.buffers[e.buffer.buffer.value];
    const bool mine = follows(followed_, n, e.page);
    if (e.consumer < b.stages.size()) {
      if (!mine) return;
      const StageAt by{StageId{b.stages[e.consumer]}, e.buffer.instance};
      if (by.instance >= r_.instances(by.stage)) return;
      const std::uint64_t started = state_.stage(r_.of(by)).started;
      step(e.at, fmt::format("page {} of {} taken", e.page, b.name), r_.place(e.buffer),
           Json(fmt::format("{} of '{}'", started == 0 ? 0 : started - 1, r_.stages[by.stage.value].name)));
      return;
    }
    // What left in this cycle for that edge is this page.
    const std::uint32_t edge = b.crossings[e.consumer - b.stages.size()];
    if (mine) {
      for (const PageSent& s : leaving_) {
        if (s.channel.edge.value != edge || s.channel.from != e.buffer.instance || s.at != e.at) continue;
        crossing_[r_.of(s.channel)].push_back(s.page);
        step(e.at, fmt::format("sent as page {} of edge {}", s.page, edge), r_.describe(r_.to_of(s.channel)));
      }
    }
    std::erase_if(leaving_, [&](const PageSent& s) {
      return s.at < e.at || (s.channel.edge.value == edge && s.channel.from == e.buffer.instance);
    });
  }
  void landed(const PageLanded& e) {
    const auto landing = r_.landing(e.channel);
    if (!landing) return;
    const bool mine = follows(crossing_, r_.of(e.channel), e.page);
    landing_[r_.of(*landing)].push_back(mine);
    if (mine) step(e.at, fmt::format("landed from edge {}", e.channel.edge.value), r_.describe(r_.to_of(e.channel)));
  }

  const Roster& r_;
  MachineState state_;
  std::map<std::uint32_t, std::vector<std::uint64_t>> followed_;  // by buffer instance
  std::map<std::uint32_t, std::vector<std::uint64_t>> crossing_;  // by channel
  std::map<std::uint32_t, std::vector<bool>> landing_;            // landed and not seen yet; whether it is the page
  std::vector<PageSent> leaving_;
};

}  // namespace

Result<Inspected> inspect_page(EventLogReader& log, const std::string& page) {
  const auto colon = page.rfind(':');
  const auto n = colon == std::string::npos ? std::nullopt : number_in(page.substr(colon + 1));
  if (!n) {
    Diagnostics d;
    d.error(Code::RDU8017, page, "a page is BUFFER:NUMBER or BUFFER#INSTANCE:NUMBER");
    return d;
  }
  const auto buffer = find_buffer(log.roster(), page.substr(0, colon));
  if (!buffer) return buffer.diagnostics();
  Journey journey(log.roster(), *buffer, *n);
  Each each([&journey](const auto& e) { journey(e); });
  auto end = log.read(each);
  if (!end) return end.diagnostics();
  if (journey.steps.empty()) {
    Diagnostics d = end->notes;
    d.error(Code::RDU8017, page, "page {} of {} {}", *n, log.roster().describe(*buffer),
            end->notes.empty() ? "was never pushed" : "was not pushed in what the log has");
    return d;
  }
  Json j;
  j.set("page", page).set("steps", std::move(journey.steps));
  return Inspected{std::move(j), end->notes};
}

}  // namespace rdusim
