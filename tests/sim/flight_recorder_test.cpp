#include "sim/flight_recorder.h"

#include <doctest/doctest.h>

#include <map>

#include "tests/sim/small_program.h"

namespace rdusim::flight_recorder_test {
namespace {

using namespace test;

TEST_CASE("of every unit the last four events are kept, oldest first") {
  const SpatialProgram program = small_program(Handshake::token);
  const Instances instances(program);
  FlightRecorder flight(instances);
  const StageAt stage{StageId{0}, 0};
  for (std::uint64_t f = 0; f < 5; ++f) {
    flight.on(FiringStarted{10 * f, stage, f, 4, 0, StallCause::engine});
    flight.on(FiringCompleted{10 * f + 6, stage, f});
  }
  CHECK(FlightRecorder::text(flight.of(stage)) ==
        "cycle 30: firing 3 started, cycle 36: firing 3 completed, cycle 40: firing 4 started, cycle 46: firing 4 "
        "completed");
  CHECK(flight.of(StageAt{StageId{1}, 0}).empty());
  CHECK(FlightRecorder::text({}).empty());
}

TEST_CASE("of a whole run each unit holds what it did last, and the report the latest of all, rising") {
  for (const Handshake h : {Handshake::token, Handshake::semaphore, Handshake::barrier}) {
    const SpatialProgram program = small_program(h);
    const Instances instances(program);
    FlightRecorder flight(instances);
    ProvenanceTable table;
    const std::vector<AnyEvent> events = good_run(program, table);
    replay(events, flight);
    std::map<std::uint32_t, std::uint64_t> last;  // completed firing, by stage instance
    for (const AnyEvent& e : events)
      if (const auto* done = std::get_if<FiringCompleted>(&e)) last[instances.of(done->stage)] = done->firing;
    REQUIRE_FALSE(last.empty());
    for (const auto& [n, firing] : last) {
      const auto held = flight.of(instances.stage_at(n));
      REQUIRE_FALSE(held.empty());
      CHECK(held.size() <= FlightRecorder::kept);
      CHECK(held.back().kind() == FlightRecorder::What::completed);
      CHECK(held.back().number == firing);
    }
    const Json few = flight.to_json(5), all = flight.to_json(100000);
    REQUIRE(few.as_array()->size() == 5);
    // The latest five are the end of them all.
    const JsonArray& rows = *all.as_array();
    std::uint64_t before = 0;
    for (const Json& row : rows) {
      CHECK(*row.find("cycle")->as_uint64() >= before);
      before = *row.find("cycle")->as_uint64();
      CHECK(row.find("event")->as_string()->find("nothing") == std::string::npos);
    }
    for (std::size_t i = 0; i < 5; ++i) CHECK(to_text(few.as_array()->at(i)) == to_text(rows[rows.size() - 5 + i]));
  }
}

TEST_CASE("a unit of the flight recorder is one cache line") {
  CHECK(sizeof(FlightRecorder::Event) * FlightRecorder::kept == 64);
}

}  // namespace
}  // namespace rdusim::flight_recorder_test
