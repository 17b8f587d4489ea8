// What holds of any static dataflow graph: the verifier, the certificate's checker and the machine agree on whether it
// runs to its end, and the least depths are just that.
//
// RDUSIM_PROPERTY_COUNT sets how many graphs are looked at; as many as take seconds if it is not set.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <string>

#include "compiler/certificate/check.h"
#include "compiler/compile.h"
#include "compiler/ir/least_depths.h"
#include "compiler/ir/untimed_run.h"
#include "compiler/ir/verify.h"
#include "compiler/program/prog_bin.h"
#include "compiler/target/target.h"
#include "tests/system/json_path.h"
#include "tests/system/random_streams.h"
#include "tests/system/scenario.h"

namespace rdusim::test::deadlock_properties_test {
namespace {

void pin(int count) {
  const char* asked = std::getenv("RDUSIM_PROPERTY_COUNT");
  const std::string params =
      "seed=20241117 max_success=" + (asked != nullptr ? std::string(asked) : std::to_string(count));
  setenv("RC_PARAMS", params.c_str(), 1);
}

struct Made {
  SpatialProgram program;
  Target target;
};

// A graph of some size, with all that `assemble --allow-refuted` adds.
Made any_graph(std::uint32_t most_stages) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto stages = *rc::gen::inRange<std::uint32_t>(3, most_stages + 1);
  const auto chips = *rc::gen::inRange<std::uint32_t>(1, 9);
  StreamProgram made = random_streams(seed, stages, chips);
  made.p.header.plan.chips = 8;
  Target target = *read_target(made.p.header.target_text, "target");
  RC_ASSERT(made.p.stages.size() <= 200);
  auto completed = complete(std::move(made.p), target, true);
  if (!completed.ok()) RC_FAIL(completed.diagnostics().to_text());
  return {std::move(completed).value(), std::move(target)};
}

bool ends(const SpatialProgram& p) {
  const UntimedRun run = run_untimed(p, p.header.native_tile);
  RC_ASSERT(!run.undecided);
  return run.stuck == 0;
}

bool proved(const Made& m) {
  const Certificate c = prove_again(m.program, m.target);
  const auto status = [&](ObligationKind kind) { return c.obligations[static_cast<std::size_t>(kind)].status; };
  RC_ASSERT(status(ObligationKind::counting_balance) == ProofStatus::proved);
  RC_ASSERT(status(ObligationKind::deadlock_freedom) != ProofStatus::unchecked);
  return status(ObligationKind::deadlock_freedom) == ProofStatus::proved;
}

// Whether the machine runs it to its end.
bool simulated(const Made& m) {
  const Folder folder;
  folder.write("prog.bin", encode(m.program));
  const Outcome ran = rdusim({"run", "prog.bin", "--allow-refuted", "--report", "report.json"}, folder);
  if (ran.status != 0 && ran.status != 1) RC_FAIL(ran.err);
  const std::string verdict = text(parsed(folder.read("report.json")), "verdict");
  if (verdict != "pass" && verdict != "circular-wait" && verdict != "starvation") RC_FAIL(verdict + "\n" + ran.err);
  return verdict == "pass";
}

TEST_CASE("of any graph, the verifier, the checker and the machine say alike whether it runs to its end") {
  pin(20);
  int all = 0, ended = 0;
  CHECK(rc::check("verdicts", [&] {
    const Made m = any_graph(*rc::gen::element(12u, 40u, 200u));
    const bool runs = simulated(m);
    RC_ASSERT(ends(m.program) == runs);
    RC_ASSERT(proved(m) == runs);
    RC_ASSERT(verify(m.program, m.target).contains(Code::RDU3029) || !verify(m.program, m.target).has_errors() == runs);
    ++all;
    ended += runs ? 1 : 0;
  }));
  // Both kinds were met.
  CHECK(ended > 0);
  CHECK(ended < all);
}

TEST_CASE("of any graph, each buffer's least depth never hangs, one less always does, and the checker finds the same") {
  pin(200);
  int deeper = 0;
  CHECK(rc::check("least depths", [&] {
    Made m = any_graph(40);
    const std::vector<std::uint64_t> least = least_depths(m.program);
    const Certificate c = prove_again(m.program, m.target);
    const bool runs = ends(m.program);
    for (Buffer& b : m.program.buffers) {
      const std::uint64_t d = least[b.id.value];
      RC_ASSERT(c.buffers[b.id.value].least_depth == d);
      RC_ASSERT(d != 0 || !runs);
      const std::uint64_t given = b.depth_pages;
      if (d != 0) {
        b.depth_pages = d;
        RC_ASSERT(ends(m.program));
        deeper += d > 1 ? 1 : 0;
        b.depth_pages = d - 1;
        if (d > 1) RC_ASSERT(!ends(m.program));
      } else {
        b.depth_pages = 1'000'000;
        RC_ASSERT(!ends(m.program));
      }
      b.depth_pages = given;
    }
  }));
  CHECK(deeper > 0);
}

TEST_CASE("of any graph, the machine passes at the least depth of a buffer and hangs with one less") {
  pin(10);
  CHECK(rc::check("machine at least depths", [&] {
    Made m = any_graph(40);
    const std::vector<std::uint64_t> least = least_depths(m.program);
    const auto chosen = *rc::gen::inRange<std::size_t>(0, least.size());
    Buffer* buffer = nullptr;  // the first from there on that must be deeper than a page
    for (std::size_t i = 0; i < least.size() && buffer == nullptr; ++i)
      if (least[(chosen + i) % least.size()] > 1) buffer = &m.program.buffers[(chosen + i) % least.size()];
    const bool found = buffer != nullptr;
    RC_PRE(found);
    m.program.memory.reset();
    m.program.schedule.reset();
    m.program.certificate.reset();
    for (const std::uint64_t less : {0u, 1u}) {
      buffer->depth_pages = least[buffer->id.value] - less;
      auto again = complete(m.program, m.target, true);
      if (!again.ok()) RC_FAIL(again.diagnostics().to_text());
      RC_ASSERT(simulated({std::move(again).value(), m.target}) == (less == 0));
    }
  }));
}

TEST_CASE("of any graph, depths found together let it run to its end, and none can be less") {
  pin(100);
  CHECK(rc::check("depths together", [&] {
    Made m = any_graph(30);
    for (Buffer& b : m.program.buffers) b.depth_pages = 0;
    const auto depths = depths_together(m.program);
    if (!depths) {
      RC_ASSERT(!ends(m.program));  // not even with any depths
      return;
    }
    for (Buffer& b : m.program.buffers) b.depth_pages = (*depths)[b.id.value];
    RC_ASSERT(ends(m.program));
    for (Buffer& b : m.program.buffers) {
      if (b.depth_pages == 1) continue;
      --b.depth_pages;
      RC_ASSERT(!ends(m.program));
      ++b.depth_pages;
    }
  }));
}

}  // namespace
}  // namespace rdusim::test::deadlock_properties_test
