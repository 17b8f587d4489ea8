// The machine against a second reading of the program, which has no time: values, counts and verdict.
#include "tests/system/untimed_executor.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <cstring>

#include "tests/system/json_path.h"
#include "tests/system/random_streams.h"
#include "tests/system/scenario.h"

namespace rdusim::test::untimed_executor_test {
namespace {

std::vector<std::int32_t> elements(const std::string& npy) {
  const std::size_t begin = npy.find('\n') + 1;  // after the header
  std::vector<std::int32_t> values((npy.size() - begin) / 4);
  std::memcpy(values.data(), npy.data() + begin, 4 * values.size());
  return values;
}

TEST_CASE("of any graph, values, counts and verdict are those of an execution without time, in any order") {
  const char* asked = std::getenv("RDUSIM_PROPERTY_COUNT");
  setenv("RC_PARAMS", ("seed=20260806 max_success=" + std::string(asked != nullptr ? asked : "24")).c_str(), 1);
  int all = 0, ended = 0, values = 0;
  CHECK(rc::check("a second executor", [&] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto stages = *rc::gen::element(8u, 20u, 60u, 200u);
    StreamProgram program = random_streams(seed, stages, *rc::gen::inRange<std::uint32_t>(1, 9));
    program.p.header.plan.chips = 8;
    const Executed expected = execute(program.p, 1);
    const Executed other = execute(program.p, seed);
    RC_ASSERT(other.pushed == expected.pushed);
    RC_ASSERT(other.popped == expected.popped);
    RC_ASSERT(other.outputs == expected.outputs);

    const Folder folder;
    const Outcome made = assemble(folder, program, true);
    if (made.status != 0) RC_FAIL(made.err);
    std::vector<std::string> request = {"run", "prog.bin", "--allow-refuted", "--report", "report.json"};
    if (expected.ended)
      for (const auto& [name, unused] : expected.outputs) request.insert(request.end(), {"--save", name + "=" + name});
    const Outcome ran = rdusim(request, folder);
    const Json report = parsed(folder.read("report.json"));
    const std::string verdict = text(report, "verdict");
    if ((verdict == "pass") != expected.ended) RC_FAIL(verdict + "\n" + ran.err);
    for (const Buffer& b : program.p.buffers) {
      const int i = static_cast<int>(b.id.value);
      const auto count = [&](const char* what) {
        return static_cast<std::uint64_t>(number(report, "buffers", i, what));
      };
      RC_ASSERT(count("reserved") == expected.reserved[b.id.value]);
      RC_ASSERT(count("pushed") == expected.pushed[b.id.value]);
      RC_ASSERT(count("popped") == expected.popped[b.id.value]);
    }
    for (const Stage& s : program.p.stages)
      RC_ASSERT(static_cast<std::uint64_t>(number(report, "stages", static_cast<int>(s.id.value), "firings")) ==
                expected.firings[s.id.value]);
    if (expected.ended)
      for (const auto& [name, want] : expected.outputs) {
        RC_ASSERT(elements(folder.read(name)) == want);
        values += static_cast<int>(want.size());
      }
    ++all;
    ended += expected.ended ? 1 : 0;
  }));
  CHECK(ended > 0);
  CHECK(ended < all);
  CHECK(values > 8);
}

}  // namespace
}  // namespace rdusim::test::untimed_executor_test
