// Several operators in one section: what one stores, the next loads, page by page.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>

#include "tests/system/command.h"
#include "tests/system/json_path.h"
#include "tests/system/scenario.h"
#include "tests/system/stream_program.h"

namespace rdusim::test::sections_test {
namespace {

// `from` to `to`, element by element, times 2, in `elements` firings on a site of its own.
void double_through(StreamProgram& s, const std::string& name, TensorId from, TensorId to, std::uint64_t elements,
                    std::uint32_t site, std::uint64_t depth = 2) {
  const GroupId g = s.group(1, 0, site);
  const BufferId in = s.buffer(name + ".in", g, depth), out = s.buffer(name + ".out", g, depth);
  const StageId load = s.load(name + ".load", from, g, in, elements);
  Generic doubled;
  doubled.iterators = {IteratorKind::parallel};
  doubled.maps = {{{1, 0}}, {{1, 0}}};
  doubled.bodies = {{1, {{ExprOp::operand, 0, 0}, {ExprOp::constant, 0, 2}, {ExprOp::multiply, 0, 0}}}};
  doubled.accumulator = doubled.result = DType::int32;
  const auto one = always(std::uint32_t{1});
  const StageId twice = s.generic(
      name + ".twice", g, {StreamProgram::input(in, one, one), StreamProgram::output(out, one)}, doubled, elements);
  const StageId store = s.store(name + ".store", to, g, out, elements);
  s.join(load, in, {twice});
  s.join(twice, out, {store});
}

TEST_CASE("a load of what its section stores waits until that is stored, and so on down a chain") {
  constexpr std::uint64_t elements = 37;
  StreamProgram s("chain");
  const TensorId x = s.tensor("x", TensorRole::input, elements, 7);
  const TensorId h = s.tensor("h", TensorRole::intermediate, elements);
  const TensorId g = s.tensor("g", TensorRole::intermediate, elements);
  const TensorId y = s.tensor("y", TensorRole::output, elements);
  // The last comes first: neither ids nor places decide.
  double_through(s, "third", g, y, elements, 0);
  double_through(s, "second", h, g, elements, 1);
  double_through(s, "first", x, h, elements, 2);
  const Folder folder;
  const Outcome made = assemble(folder, s);
  INFO(made.err);
  REQUIRE(made.status == 0);
  const Json report = run(folder, {"--save", "y=y.npy"});
  CHECK(text(report, "verdict") == "pass");
  const std::string npy = folder.read("y.npy");
  REQUIRE(npy.size() >= 4 * elements);
  for (std::uint64_t i = 0; i < elements; ++i) {
    std::int32_t value = 0;
    std::memcpy(&value, npy.data() + npy.size() - 4 * elements + 4 * i, 4);
    CHECK(value == static_cast<std::int32_t>(8 * (i % 7)));
  }
  // One launch and not three.
  CHECK(at(report, "decisions", "sections").as_array()->size() == 1);
}

TEST_CASE("loads that wait in a circle for what is stored behind them are refused, and named when they are run") {
  StreamProgram s("circle");
  const TensorId x = s.tensor("x", TensorRole::input, 8, 3);
  const TensorId y = s.tensor("y", TensorRole::output, 8);
  const TensorId h = s.tensor("h", TensorRole::intermediate, 8);
  const TensorId g = s.tensor("g", TensorRole::intermediate, 8);
  double_through(s, "good", x, y, 8, 0);
  double_through(s, "there", g, h, 8, 1);
  double_through(s, "back", h, g, 8, 2);
  const Folder folder;
  const Outcome refused = assemble(folder, s);
  CHECK(refused.status == 1);
  CHECK(errors_of(refused) == "RDU3039");
  CHECK(refused.err.find("'there.load'") != std::string::npos);
  REQUIRE(assemble(folder, s, true).status == 0);
  const Outcome ran = rdusim({"run", "prog.bin", "--allow-refuted", "--report", "report.json"}, folder);
  CHECK(ran.status == 1);
  CHECK(text(parsed(folder.read("report.json")), "verdict") == "circular-wait");
}

TEST_CASE("a section of several trips may not read what it writes") {
  StreamProgram s("trips");
  const TensorId x = s.tensor("x", TensorRole::input, 4, 3);
  const TensorId h = s.tensor("h", TensorRole::intermediate, 4);
  const TensorId y = s.tensor("y", TensorRole::output, 4);
  double_through(s, "first", x, h, 4, 0);
  double_through(s, "second", h, y, 4, 1);
  s.p.sections[0].trips = 2;
  const Folder folder;
  const Outcome refused = assemble(folder, s);
  CHECK(refused.status == 1);
  CHECK(errors_of(refused) == "RDU3037");
}

}  // namespace
}  // namespace rdusim::test::sections_test
