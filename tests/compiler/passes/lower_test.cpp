#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::lower_test {
using namespace rdusim::test;

TEST_CASE("lowering gives every operand a tensor with its tile grid and range, and every matmul its work") {
  const Target target = sn40l();
  const auto p = lower(*start(two_matmuls(33, 100, 64, 31), target, {}), target);
  REQUIRE(p.ok());
  REQUIRE(p->tensors.size() == 5);
  CHECK(p->tensors[0].name == "x");
  CHECK(p->tensors[0].tiles == std::vector<std::uint64_t>{2, 4});
  CHECK(p->tensors[0].range == std::pair<std::int64_t, std::int64_t>{-30, 30});
  CHECK(p->tensors[3].role == TensorRole::intermediate);
  CHECK(p->tensors[4].offset == std::vector<std::int64_t>{0, 0});
  REQUIRE(p->work.size() == 2);
  CHECK(p->work[1].m == 33);
  CHECK(p->work[1].k == 64);
  CHECK(p->work[1].n == 31);
  CHECK_FALSE(p->work[1].plan.has_value());
}

TEST_CASE("lowering leaves a lowered program alone") {
  const Target target = sn40l();
  const auto once = lower(*start(one_matmul(32, 64, 32), target, {}), target);
  const auto twice = lower(*once, target);
  CHECK(*once == *twice);
}

TEST_CASE("lowering refuses operands that disagree on the contraction, and dtypes that the target lacks") {
  Target target = sn40l();
  OperatorGraph g = one_matmul(32, 64, 32);
  g.operands[1].shape = {65, 32};
  const auto disagree = lower(*start(g, target, {}), target);
  REQUIRE_FALSE(disagree.ok());
  CHECK(disagree.diagnostics().contains(Code::RDU4104));
  CHECK(disagree.diagnostics().to_text().find("64") != std::string::npos);
  CHECK(disagree.diagnostics().to_text().find("65") != std::string::npos);

  target.pcu.macs_per_cycle[static_cast<std::size_t>(DType::int8)] = 0;
  const auto missing = lower(*start(one_matmul(32, 64, 32), target, {}), target);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.diagnostics().contains(Code::RDU4111));
}

TEST_CASE("a transposed matmul has as many columns as its right operand has rows") {
  const Target target = sn40l();
  OperatorGraph g = one_transposed_matmul(33, 100, 31);
  const auto p = lower(*start(g, target, {}), target);
  REQUIRE(p.ok());
  CHECK(p->work[0].m == 33);
  CHECK(p->work[0].k == 100);
  CHECK(p->work[0].n == 31);
  g.operators[0].attributes.transposed = false;
  const auto disagree = lower(*start(g, target, {}), target);
  REQUIRE_FALSE(disagree.ok());
  CHECK(disagree.diagnostics().contains(Code::RDU4104));
}

TEST_CASE("lowering refuses an attention whose heads are no whole tiles") {
  const Target target = sn40l();
  OperatorGraph g = one_matmul(32, 80, 80, DType::fp32, DType::fp32);
  g.operands[1].shape = g.operands[2].shape = {32, 80};
  Operator& op = g.operators[0];
  op.kind = OperatorKind::attention;
  op.in.push_back(op.in[1]);
  op.attributes.heads = op.attributes.kv_heads = 2;
  const auto p = lower(*start(g, target, {}), target);
  REQUIRE_FALSE(p.ok());
  CHECK(p.diagnostics().contains(Code::RDU4145));
  CHECK(p.diagnostics().to_text().find("40 wide") != std::string::npos);
}

TEST_CASE("lowering refuses what it has no form for yet") {
  const Target target = sn40l();
  OperatorGraph g = one_matmul(32, 64, 32, DType::int8, DType::int8);
  Operator& op = g.operators[0];
  op.kind = OperatorKind::gather;
  g.operands[1].shape = {70000};
  g.operands[2].shape = {70000, 64};
  const auto gather = lower(*start(g, target, {}), target);
  REQUIRE_FALSE(gather.ok());
  CHECK(gather.diagnostics().contains(Code::RDU4113));
  op.kind = OperatorKind::transpose;
  op.in = {g.operands[0].id};
  op.attributes.axes = {2, 1, 0};
  g.operands[0].shape = {300, 200, 100};
  g.operands[2].shape = {100, 200, 300};
  const auto transpose = lower(*start(g, target, {}), target);
  REQUIRE_FALSE(transpose.ok());
  CHECK(transpose.diagnostics().contains(Code::RDU4113));
}

TEST_CASE("what an append gives has no tensor of its own") {
  const Target target = sn40l();
  OperatorGraph g;
  g.name = "cache";
  const auto state = operand(g, "state", TensorRole::state, {40, 64}, DType::bf16);
  const auto row = operand(g, "row", TensorRole::input, {1, 64}, DType::bf16);
  const auto once = operand(g, "once", TensorRole::intermediate, {40, 64}, DType::bf16);
  const auto twice = operand(g, "twice", TensorRole::intermediate, {40, 64}, DType::bf16);
  for (const auto& [from, to] : {std::pair(state.id, once.id), std::pair(once.id, twice.id)}) {
    matmul(g, "append", from, row.id, to);
    g.operators.back().kind = OperatorKind::append;
    g.operators.back().attributes.begin = {39};
  }
  CHECK(storage_of(g, twice.id) == state.id);
  const auto p = lower(*start(g, target, {}), target);
  REQUIRE(p.ok());
  CHECK(p->tensors.size() == 2);
  CHECK(p->work.size() == 2);
}

TEST_CASE("lowering refuses an extent of more tiles than pages can count") {
  const Target target = sn40l();
  OperatorGraph g = one_matmul(1, std::int64_t{1} << 40, 1);
  const auto p = lower(*start(g, target, {}), target);
  REQUIRE_FALSE(p.ok());
  CHECK(p.diagnostics().contains(Code::RDU4118));
}

}  // namespace rdusim::lower_test
