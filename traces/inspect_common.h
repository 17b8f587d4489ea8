// What the answers of inspect.h have in common.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "traces/event_kinds.h"
#include "traces/slices.h"

namespace rdusim {

// Calls a function with every event.
template <class F>
class Each final : public EventSink {
 public:
  explicit Each(F f) : f_(std::move(f)) {}
#define RDU_DEFINE(Event)            \
  void on(const Event& e) override { \
    f_(e);                           \
  }
  RDU_EVENTS(RDU_DEFINE)
#undef RDU_DEFINE

 private:
  F f_;
};

// "chip3.site(4,7).pcu down", "link5 chip0->chip1", ... in `room`, which it is valid as long as.
std::string_view text_of(EventSubject s, std::uint32_t n, const Roster& roster, std::string& room);
// "'x' rows [0, 32) x columns [64, 96) chunk 1 of 16"
std::string tag_text(const PageTag& t, const Roster& roster);
// What an event says beside its time and unit: "firing 3", "page 7", ..., each after `between`.
template <class E>
std::string fields_text(const E& e, const Roster& roster, std::string_view between) {
  std::string text;
  bool stalled = true;
  if constexpr (requires { e.stall; }) stalled = e.stall != 0;
  each_plain_field(e, [&](const char* key, const auto& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    if constexpr (std::is_same_v<V, StallCause>) {
      if (stalled) text += fmt::format("{}{} {}", between, key, cause_name(v));
    } else {
      text += fmt::format("{}{} {}", between, key, v);
    }
  });
  each_tag(
      e, [&](const char* key, const PageTag& t) { text += fmt::format("{}{} {}", between, key, tag_text(t, roster)); });
  return text;
}

// A number and nothing else.
std::optional<std::uint64_t> number_in(std::string_view text);

}  // namespace rdusim
