// The checker shares no code with the verifier; where one number of a program is changed they should come to the same
// conclusion all the same.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "compiler/certificate/check.h"
#include "compiler/compile.h"
#include "compiler/ir/verify.h"
#include "tests/compiler/certificate/random_changes.h"
#include "tests/compiler/ir/sample_program.h"
#include "tests/compiler/passes/matmul_graphs.h"

namespace rdusim::agreement_test {
namespace {

struct Base {
  SpatialProgram p;
  Target t;
};

const std::vector<Base>& bases() {
  static const std::vector<Base> list = [] {
    std::vector<Base> made;
    const auto add = [&](const OperatorGraph& graph, const Target& target, const ShardPlan& plan) {
      CompileOptions options;
      options.plan = plan;
      auto p = compile(graph, target, options);
      INFO(p.diagnostics().to_text());
      REQUIRE(p.ok());
      made.push_back({std::move(p).value(), target});
    };
    for (const std::string name : {"sn40l", "wormhole"}) {
      const Target t = test::target_named(name);
      add(test::one_matmul(32, 512, 256), t, ShardPlan{});
      add(test::one_matmul(40, 500, 300), t, ShardPlan{});
      for (const auto a : {CollectiveAlgorithm::through_one, CollectiveAlgorithm::direct, CollectiveAlgorithm::ring})
        add(test::one_matmul(32, 768, 128), t, test::over(3, ShardKind::row, CollectiveKind::all_reduce, a));
      add(test::one_matmul(32, 512, 256), t, test::over(2, ShardKind::column));
      add(test::two_matmuls(32, 256, 512, 128, DType::bf16), t, test::over(2));
    }
    made.push_back({sample::program({.chips = 4}), sample::target()});
    made.push_back({sample::program({.chips = 2, .crossing = Handshake::semaphore}), sample::target()});
    return made;
  }();
  return list;
}

bool found(const Diagnostics& d, std::initializer_list<Code> codes) {
  return std::any_of(d.list().begin(), d.list().end(), [&](const Diagnostic& one) {
    return std::find(codes.begin(), codes.end(), one.code) != codes.end();
  });
}

// Whose references resolve: what the checker requires.
bool readable(const Diagnostics& d) {
  return !found(d, {Code::RDU2009, Code::RDU3001, Code::RDU3002, Code::RDU3026});
}

TEST_CASE("the checker and the verifier agree on programs with one number changed") {
  CHECK(rc::check([] {
    const Base& base = bases()[*rc::gen::inRange<std::size_t>(0, bases().size())];
    SpatialProgram p = base.p;
    const std::string what = test::RandomChange(p, test::Reach::near).make();
    RC_PRE(p != base.p);
    const Diagnostics rules = verify(p, base.t);
    RC_PRE(readable(rules));
    const Certificate c = prove_again(p, base.t);
    RC_LOG() << what << "\n" << rules.to_text();
    for (const Obligation& o : c.obligations) RC_LOG() << static_cast<int>(o.kind) << ": " << o.reason << "\n";
    const bool proved = std::all_of(c.obligations.begin(), c.obligations.end(),
                                    [](const Obligation& o) { return o.status == ProofStatus::proved; });
    // RDU3003 and RDU3030 are about how a program is written; the checker sees only what follows from it.
    if (!found(rules, {Code::RDU3003, Code::RDU3030})) RC_ASSERT(proved == !rules.has_errors());
    if (!rules.has_errors()) RC_ASSERT(proved);
  }));
}

TEST_CASE("whatever number a program is given, the checker answers, and soon") {
  CHECK(rc::check([] {
    const Base& base = bases()[*rc::gen::inRange<std::size_t>(0, bases().size())];
    SpatialProgram p = base.p;
    const int changes = *rc::gen::inRange(1, 4);
    for (int i = 0; i < changes; ++i) RC_LOG() << test::RandomChange(p, test::Reach::wild).make() << "\n";
    RC_PRE(readable(verify(p, base.t)));
    const auto begin = std::chrono::steady_clock::now();
    const Certificate c = prove_again(p, base.t);
    RC_ASSERT(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
    RC_ASSERT(c.obligations.size() == obligation_kinds);
    for (const Obligation& o : c.obligations) RC_ASSERT((o.status == ProofStatus::proved) == o.reason.empty());
    check_certificate(p, base.t);
  }));
}

}  // namespace
}  // namespace rdusim::agreement_test
