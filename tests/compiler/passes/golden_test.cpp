// The text of programs after every pass, and of more of them after shard and after collective, whole. A file's first line says what is in it; the rest is
// what print() gives. To accept a change: RDUSIM_ACCEPT_GOLDEN=1 test_compiler_passes --test-case='*golden*', and read
// the diff.
#include <doctest/doctest.h>

#include <cstdlib>

#include "compiler/compile.h"
#include "compiler/ir/print.h"
#include "compiler/support/file.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::golden_test {
using namespace rdusim::test;

namespace {

void check_golden(const std::string& name, const std::string& first_line, SpatialProgram p) {
  // What changes with every number of the target file is not what these tests are about.
  p.header.target_sha256 = "0";
  for (Collective& c : p.collectives) c.reason.clear();
  PrintOptions options;
  options.operators = false;  // as given, and printed by other tests
  const std::string text = "# " + first_line + "\n" + print(p, options);
  const std::string path = std::string(RDUSIM_SOURCE_DIR) + "/tests/golden/" + name + ".txt";
  if (std::getenv("RDUSIM_ACCEPT_GOLDEN") != nullptr) REQUIRE(write_file(path, text).ok());
  const auto golden = read_file(path, 1 << 22);
  REQUIRE(golden.ok());
  CHECK(text == *golden);
}

OperatorGraph small(std::uint32_t chips, std::int64_t columns = 64) {
  OperatorGraph g = one_matmul(40, 64 * std::int64_t{chips}, columns);
  SchedulePin pin;
  pin.op = OperatorId(0);
  pin.unroll_k = 1;
  pin.page_k = 1;
  pin.unroll_n = 2;
  pin.block_n = 1;
  g.pins.push_back(pin);
  return g;
}

}  // namespace

TEST_CASE("golden: a program after each of the passes, over 2 chips") {
  CompileOptions options;
  options.plan = over(2);
  for (const std::string_view pass : pass_names()) {
    options.stop_after = std::string(pass);
    auto p = compile(small(2), sn40l(), options);
    INFO(text_of(p.diagnostics()));
    REQUIRE(p.ok());
    check_golden(fmt::format("pass_{}_2", pass),
                 fmt::format("{}: 40 x 128 by 128 x 64, int8, sn40l, 2 chips, row, all_reduce", pass),
                 std::move(p).value());
  }
}

TEST_CASE("golden: sharded by rows, over 2 and 3 chips") {
  for (const std::uint32_t n : {2u, 3u})
    check_golden("shard_row_" + std::to_string(n),
                 fmt::format("shard: 40 x {} by {} x 64, int8, sn40l, {} chips, row, all_reduce", 64 * n, 64 * n, n),
                 sharded(small(n), over(n), sn40l()));
}

TEST_CASE("golden: sharded by columns, over 2 chips") {
  check_golden("shard_column_2", "shard: 40 x 128 by 128 x 128, int8, sn40l, 2 chips, column",
               sharded(small(2, 128), over(2, ShardKind::column), sn40l()));
}

TEST_CASE("golden: an all-gather between two operators, over 2 chips") {
  const SpatialProgram p = sharded(two_matmuls(32, 32, 64, 64), over(2, ShardKind::column), sn40l());
  check_golden("shard_gather_2", "shard: 32 x 32 by 32 x 64 by 64 x 64, fp32, sn40l, 2 chips, column", p);
  auto q = collective(p, sn40l());
  REQUIRE(q.ok());
  check_golden("collective_gather_2", "collective: 32 x 32 by 32 x 64 by 64 x 64, fp32, sn40l, 2 chips, column", *q);
}

TEST_CASE("golden: the forms of an all-reduce, and a reduction to one chip, over 3 chips") {
  const auto text = [](std::string_view what) {
    return fmt::format("collective: 40 x 192 by 192 x 64, int8, sn40l, 3 chips, row, {}", what);
  };
  for (const CollectiveAlgorithm a :
       {CollectiveAlgorithm::through_one, CollectiveAlgorithm::direct, CollectiveAlgorithm::ring}) {
    const std::string name(name_of(a));
    check_golden("collective_all_reduce_" + name + "_3", text("all_reduce " + name),
                 joined(small(3), over(3, ShardKind::row, CollectiveKind::all_reduce, a), sn40l()));
    check_golden("collective_reduce_" + name + "_3", text("reduce " + name),
                 joined(small(3), over(3, ShardKind::row, CollectiveKind::reduce, a), sn40l()));
  }
  Target in_pairs = sn40l();
  in_pairs.node_chips = 2;
  for (const CollectiveAlgorithm a :
       {CollectiveAlgorithm::halving_doubling, CollectiveAlgorithm::tree, CollectiveAlgorithm::hierarchical}) {
    const std::string name(name_of(a));
    check_golden("collective_all_reduce_" + name + "_3", text("all_reduce " + name),
                 joined(small(3), over(3, ShardKind::row, CollectiveKind::all_reduce, a), in_pairs));
  }
}

}  // namespace rdusim::golden_test
