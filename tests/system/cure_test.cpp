// The cure of a circular wait: the least depth that resolves it, found without time, and tried on the machine.
#include <doctest/doctest.h>

#include "sim/understudy.h"
#include "tests/system/scenario.h"

namespace rdusim::test::cure_test {
namespace {

// A compiled program whose matmul wants `need` pages of its first operand at once before it takes the first of every
// eight, from a buffer of depth `depth`.
LoadedProgram wants_pages(const Folder& folder, std::uint32_t need, std::uint64_t depth) {
  Matmul w = matmul(32, 512, 64);
  w.schedule = "sites = 1\npage_k = 1";
  compile(folder, w, {"--chips", "1"});
  auto loaded = load_program(folder.file("prog.bin"), {});
  REQUIRE(loaded);
  SpatialProgram& p = loaded->program;
  for (Stage& s : p.stages) {
    if (!std::holds_alternative<MatmulTiles>(s.kind)) continue;
    REQUIRE(s.firings % 8 == 0);
    s.ports[0].need = {{1, need}, {7, 1}};
    p.buffers[s.ports[0].buffer.value].depth_pages = depth;
  }
  p.certificate.reset();
  return *std::move(loaded);
}

BufferId first_operand(const SpatialProgram& p) {
  for (const Stage& s : p.stages)
    if (std::holds_alternative<MatmulTiles>(s.kind)) return s.ports[0].buffer;
  FAIL("there is no matmul");
  return {};
}

TEST_CASE("the least depth that resolves a circular wait is found, whatever the depth given") {
  const Folder folder;
  const LoadedProgram loaded = wants_pages(folder, 7, 2);
  const BufferId b = first_operand(loaded.program);
  CHECK(find_cure(loaded.program, {b}) == Cure{b, 2, 7});
  // A buffer that is not to blame cures nothing, beside one that is to blame or alone.
  const BufferId other{b.value == 0 ? 1u : 0u};
  CHECK_FALSE(find_cure(loaded.program, {other}));
  CHECK(find_cure(loaded.program, {other, b}) == Cure{b, 2, 7});
  CHECK_FALSE(find_cure(loaded.program, {}));
  CHECK_FALSE(find_cure(wants_pages(folder, 5000, 2).program, {b}));  // more than there will ever be
}

TEST_CASE("a run that hangs says the depth that it needs, and that it was tried, as was one less") {
  const Folder folder;
  const LoadedProgram loaded = wants_pages(folder, 7, 2);
  RunOptions options;
  Understudy understudy(loaded, options);
  options.understudy = &understudy;
  const auto result = run_program(loaded, options);
  REQUIRE(result);
  CHECK(result->status == ExitStatus::program_fault);
  CHECK(result->report.verdict == Verdict::circular_wait);
  const std::string text = result->diagnostics.to_text();
  INFO(text);
  CHECK(text.find("a depth of 7 instead of 2") != std::string::npos);
  CHECK(text.find("tried: with 7 it passes in ") != std::string::npos);
  CHECK(text.find("with 6 it ends as circular-wait") != std::string::npos);
  CHECK(result->dot.find("color=red") != std::string::npos);
}

TEST_CASE("a circular wait stays one however late links and stages are") {
  const Folder folder;
  const LoadedProgram loaded = wants_pages(folder, 7, 6);
  RunOptions options;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    options.jitter = seed;
    const IsolatedRun run = run_isolated(loaded, {options}, {}, false).front();
    CHECK(run.ended);
    CHECK(run.verdict == Verdict::circular_wait);
  }
}

TEST_CASE("a run in a process of its own says what it found, or that it was ended") {
  const Folder folder;
  const LoadedProgram loaded = wants_pages(folder, 7, 7);
  RunOptions fine, refused, broken;
  refused.faults = {"page_drop@nowhere"};
  broken.faults = {"partial_skip@matmul0.matmul:0"};
  for (const unsigned jobs : {1u, 3u}) {
    const auto runs = run_isolated(loaded, {fine, refused, broken}, {jobs, 60, std::nullopt}, false);
    REQUIRE(runs.size() == 3);
    CHECK(runs[0].status == ExitStatus::done);
    CHECK(runs[1].status == ExitStatus::request_fault);
    CHECK(runs[1].errors == std::vector<Code>{Code::RDU6007});
    CHECK(runs[2].status == ExitStatus::program_fault);
    CHECK(runs[2].errors == std::vector<Code>{Code::RDU7009});
    CHECK(runs[2].struck == std::vector<std::uint64_t>{1});
    CHECK(runs[0].outputs != runs[1].outputs);
  }
  const IsolatedRun late = run_isolated(loaded, {fine}, {1, 0, std::nullopt}, false).front();
  CHECK_FALSE(late.ended);
  CHECK(late.signal != 0);
  CHECK_FALSE(run_isolated(loaded, {fine}, {}, true).front().ended);  // asked to stop before it began
}

TEST_CASE("a run that ends needs no cure, and whoever stood by goes") {
  const Folder folder;
  const LoadedProgram loaded = wants_pages(folder, 7, 7);
  RunOptions options;
  {
    Understudy understudy(loaded, options);
    options.understudy = &understudy;
    const auto result = run_program(loaded, options);
    REQUIRE(result);
    CHECK(result->report.verdict == Verdict::pass);
  }
}

}  // namespace
}  // namespace rdusim::test::cure_test
