// A circular wait that another order cures: said before a run and after one, with the order that does, which a run with
// it and one without it confirm.
#include <doctest/doctest.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"
#include "tests/system/stream_program.h"

namespace rdusim::test::order_cure_test {
namespace {

// 'left' and 'right' each hand on `pages` pages of their own to the other, with `depth` pages of room, and have those of
// the other added up: they give first, or they take first.
StreamProgram exchange(std::uint32_t pages, std::uint64_t depth, bool left_gives_first, bool right_gives_first) {
  StreamProgram s("exchange");
  const GroupId g = s.group();
  const auto turn = [&](bool early) {
    return early ? Cyclic<std::uint32_t>{{pages, 1}, {pages, 0}} : Cyclic<std::uint32_t>{{pages, 0}, {pages, 1}};
  };
  const BufferId there = s.buffer("there", g, depth), back = s.buffer("back", g, depth);
  const auto side = [&](const std::string& name, BufferId gives, BufferId takes, bool gives_first,
                        std::int64_t modulus) {
    const BufferId own = s.buffer(name + ".own", g, 2), out = s.buffer(name + ".out", g, 2);
    const TensorId x = s.tensor(name + ".x", TensorRole::input, pages, modulus);
    const BufferId sum = s.buffer(name + ".sum", g, 1);
    const TensorId y = s.tensor(name + ".y", TensorRole::output, 1);
    const StageId load = s.load(name + ".load", x, g, own, pages);
    const AffineMap same = {{1, 0}};
    Generic copy{{IteratorKind::parallel}, {same, same, same}, {}, {}, {}, {}};
    const Expr mine{{ExprOp::operand, 0, 0}}, theirs{{ExprOp::operand, 1, 0}};
    copy.bodies = {{pages, gives_first ? mine : theirs}, {pages, gives_first ? theirs : mine}};
    const StageId both = s.generic(
        name, g,
        {s.input(own, turn(gives_first), turn(gives_first)), s.input(takes, turn(!gives_first), turn(!gives_first)),
         s.output(gives, turn(gives_first)), s.output(out, turn(!gives_first))},
        copy, std::uint64_t{2} * pages);
    const StageId fold = s.fold(name + ".fold", g, out, {}, sum, pages);
    const StageId store = s.store(name + ".store", y, g, sum, 1);
    s.join(load, own, {both});
    s.join(both, out, {fold});
    s.join(fold, sum, {store});
    return both;
  };
  const StageId left = side("left", there, back, left_gives_first, 7);
  const StageId right = side("right", back, there, right_gives_first, 5);
  s.join(left, there, {right});
  s.join(right, back, {left});
  return s;
}

// What a run of a program that hangs says.
std::string said(const Folder& folder, const StreamProgram& program) {
  const Outcome made = assemble(folder, program, true);
  INFO(made.err);
  REQUIRE(made.status == 0);
  const Outcome ran = rdusim({"run", "prog.bin", "--allow-refuted", "--report", "report.json"}, folder);
  CHECK(ran.status == 1);
  CHECK(text(parsed(folder.read("report.json")), "verdict") == "circular-wait");
  return ran.err;
}

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

TEST_CASE("two stages that take before they give are refused with the order that cures it, which no depth does") {
  const Folder folder;
  const Outcome made = assemble(folder, exchange(4, 2, false, false));
  INFO(made.err);
  CHECK(made.status == 1);
  CHECK(errors_of(made) == "RDU3039");
  CHECK(says(made.err, "(phases 4 to 7) before it takes from"));
  CHECK(says(made.err, "then it ends with the depths that it has"));
  CHECK_FALSE(says(made.err, "deepen"));
}

TEST_CASE("a run that hangs for its order names another, tried with it and without") {
  const Folder folder;
  const std::string err = said(folder, exchange(4, 2, false, false));
  INFO(err);
  CHECK(says(err, "let '"));
  CHECK(says(err, "then the program ends, with all depths as they are"));
  CHECK(says(err, "tried: in that order it passes in "));
  CHECK(says(err, "as it is it ends as circular-wait in cycle "));
  CHECK_FALSE(says(err, "a depth of"));
  // The same words each time.
  CHECK(said(folder, exchange(4, 2, false, false)) == err);
}

TEST_CASE("in that order it passes, with the pages that it was to hand on") {
  const Folder folder;
  REQUIRE(assemble(folder, exchange(4, 2, true, false)).status == 0);
  CHECK(text(run(folder), "verdict") == "pass");
}

TEST_CASE("where more room cures it too, both are named and both were tried") {
  const Folder folder;
  const std::string err = said(folder, exchange(8, 4, true, true));
  INFO(err);
  CHECK(says(err, "a depth of 8 instead of 4"));
  CHECK(says(err, "tried: with 8 it passes in "));
  CHECK(says(err, "with 7 it ends as circular-wait"));
  CHECK(says(err, "or let '"));
  CHECK(says(err, "tried: in that order it passes in "));
}

}  // namespace
}  // namespace rdusim::test::order_cure_test
