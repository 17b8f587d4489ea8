#include "sim/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace rdusim {

namespace {

std::string_view name_of(FlightRecorder::What w) {
  static constexpr std::array<std::string_view, 15> names = {
      "nothing",        "started",      "completed",       "pushed",          "popped",
      "sent",           "landed",       "credit returned", "credit arrived",  "ready raised",
      "ready consumed", "valid raised", "valid consumed",  "barrier arrived", "barrier left"};
  return names[static_cast<std::size_t>(w)];
}

// "firing 3 started"
std::string text_of(const FlightRecorder::Event& e) {
  using What = FlightRecorder::What;
  switch (e.kind()) {
    case What::started:
    case What::completed:
      return fmt::format("firing {} {}", e.number, name_of(e.kind()));
    case What::pushed:
    case What::sent:
    case What::landed:
      return fmt::format("page {} {}", e.number, name_of(e.kind()));
    case What::popped:
      return fmt::format("page {} popped by consumer {}", e.number, std::uint64_t{e.detail});
    case What::barrier_arrived:
    case What::barrier_left:
      return fmt::format("{}, member {}, generation {}", name_of(e.kind()), std::uint64_t{e.detail}, e.number);
    case What::ready_raised:
    case What::ready_consumed:
    case What::valid_raised:
    case What::valid_consumed:
      return fmt::format("{}, generation {}", name_of(e.kind()), e.number);
    case What::credit_returned:
    case What::credit_arrived:
    case What::nothing:
      break;
  }
  return std::string(name_of(e.kind()));
}

}  // namespace

FlightRecorder::FlightRecorder(const Instances& instances)
    : instances_(instances),
      buffers_from_(instances.stages()),
      channels_from_(instances.stages() + instances.buffers()),
      units_(std::size_t{channels_from_} + instances.channels()) {}

void FlightRecorder::on(const FiringStarted& e) {
  take(instances_.of(e.stage), e.at, What::started, e.firing);
}
void FlightRecorder::on(const FiringCompleted& e) {
  take(instances_.of(e.stage), e.at, What::completed, e.firing);
}
void FlightRecorder::on(const PagePushed& e) {
  take(buffers_from_ + instances_.of(e.buffer), e.at, What::pushed, e.page);
}
void FlightRecorder::on(const PagePopped& e) {
  take(buffers_from_ + instances_.of(e.buffer), e.at, What::popped, e.page, e.consumer);
}
void FlightRecorder::on(const PageLanded& e) {
  take(channel(e.channel), e.at, What::landed, e.page);
}
void FlightRecorder::on(const CreditReturned& e) {
  take(channel(e.channel), e.at, What::credit_returned, 0);
}
void FlightRecorder::on(const CreditArrived& e) {
  take(channel(e.channel), e.at, What::credit_arrived, 0);
}
void FlightRecorder::on(const PageSent& e) {
  take(channel(e.channel), e.at, What::sent, e.page);
}
void FlightRecorder::on(const ReadyRaised& e) {
  take(channel(e.channel), e.at, What::ready_raised, e.generation);
}
void FlightRecorder::on(const ReadyConsumed& e) {
  take(first_channel(e.edge, e.from), e.at, What::ready_consumed, e.generation);
}
void FlightRecorder::on(const ValidRaised& e) {
  take(channel(e.channel), e.at, What::valid_raised, e.generation);
}
void FlightRecorder::on(const ValidConsumed& e) {
  take(channel(e.channel), e.at, What::valid_consumed, e.generation);
}
void FlightRecorder::on(const BarrierArrived& e) {
  take(first_channel(e.edge, e.from) + (e.member == 0 ? 0 : e.member - 1), e.at, What::barrier_arrived, e.generation,
       e.member);
}
void FlightRecorder::on(const BarrierLeft& e) {
  take(first_channel(e.edge, e.from) + (e.member == 0 ? 0 : e.member - 1), e.at, What::barrier_left, e.generation,
       e.member);
}

std::vector<FlightRecorder::Event> FlightRecorder::events(std::size_t unit) const {
  std::vector<Event> out;
  const auto& last = units_[unit].last;
  for (std::size_t i = kept; i-- > 0;)
    if (last[i].kind() != What::nothing) out.push_back(last[i]);
  return out;
}

std::string FlightRecorder::name(std::size_t unit) const {
  const auto n = static_cast<std::uint32_t>(unit);
  if (n < buffers_from_) return instances_.describe(instances_.stage_at(n));
  if (n < channels_from_) return instances_.describe(instances_.buffer_at(n - buffers_from_));
  return instances_.describe(instances_.channel_at(n - channels_from_));
}

std::string FlightRecorder::text(const std::vector<Event>& events) {
  std::string out;
  for (const Event& e : events)
    out += fmt::format("{}cycle {}: {}", out.empty() ? "" : ", ", std::uint64_t{e.at}, text_of(e));
  return out;
}

Json FlightRecorder::to_json(std::size_t most) const {
  struct Taken {
    Cycle at;
    std::size_t unit, place;  // place: 0 is the unit's newest
  };
  const auto later = [](const Taken& a, const Taken& b) {
    return std::tuple(a.at, b.unit, b.place) > std::tuple(b.at, a.unit, a.place);
  };
  // A heap of the latest, the earliest of them in front.
  std::vector<Taken> latest;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    for (std::size_t i = 0; i < kept && units_[u].last[i].kind() != What::nothing; ++i) {
      latest.push_back({units_[u].last[i].at, u, i});
      std::push_heap(latest.begin(), latest.end(), later);
      if (latest.size() <= most) continue;
      std::pop_heap(latest.begin(), latest.end(), later);
      latest.pop_back();
    }
  }
  std::sort(latest.begin(), latest.end(), [](const Taken& a, const Taken& b) {
    return std::tuple(a.at, a.unit, b.place) < std::tuple(b.at, b.unit, a.place);
  });
  JsonArray rows;
  for (const Taken& t : latest) {
    const Event& e = units_[t.unit].last[t.place];
    rows.push_back(Json().set("cycle", t.at).set("unit", name(t.unit)).set("event", text_of(e)));
  }
  return Json(std::move(rows));
}

}  // namespace rdusim
