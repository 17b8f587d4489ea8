// Mutations of the machine, by name: `run --inject KIND@PLACE:NTH`. Each is caught with the code that is meant for it.
//
// 64 x 192 by 192 x 96 over 3 chips, a site a chip: several pages pass through every buffer and edge, so that a page
// can be lost, doubled or exchanged in the midst of others.
#include <doctest/doctest.h>

#include <tuple>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::faults_test {
namespace {

class Machine {
 public:
  Machine(const std::string& target, const std::string& algorithm, Matmul workload = matmul(64, 192, 96)) {
    workload.schedule = "sites = 1";
    compile(folder_, workload, {"--chips", "3", "--shard", "row", "--target", target, "--collective", algorithm});
    const Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder_).out);
    for (const Json& e : list(program, "edges")) {
      const std::string handshake = text(e, "handshake");
      if (handshake == "valid_ready" || handshake == "circular_buffer") continue;
      // The first hand-off from chip to chip.
      edge_ = "edge" + std::to_string(number(e, "id"));
      const auto to = static_cast<int>(number(e, "to", 0));
      last_ = number(program, "stages", to, "firings") - 1;
      break;
    }
  }

  const std::string& edge() const { return edge_; }
  std::int64_t last() const { return last_; }  // the last page on it

  Outcome inject(const std::string& fault, std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"run", "prog.bin", "--inject", fault, "--report", "report.json"});
    return rdusim(options, folder_);
  }

  // Status 1, this code alone (`or_else`: or that one), and the report says the same.
  void check(const std::string& fault, const std::string& code, const std::vector<std::string>& options = {}) const {
    CAPTURE(fault);
    const Outcome outcome = inject(fault, options);
    INFO(outcome.out, outcome.err);
    CHECK(outcome.status == 1);
    CHECK(errors_of(outcome) == code);
    const Json report = parsed(folder_.read("report.json"));
    CHECK(text(report, "verdict") == (code == "RDU7020" ? "lost-token" : "check-failed"));
    CHECK(text(report, "options", "inject", 0) == fault);
    for (const Json& c : list(report, "checks"))
      if (text(c, "code") == code) CHECK(text(c, "status") == "fail");
  }

  const Folder& folder() const { return folder_; }

 private:
  Folder folder_;
  std::string edge_;
  std::int64_t last_ = 0;
};

TEST_CASE("a run in which nothing is broken raises nothing") {
  for (const auto& [target, algorithm] :
       {std::pair{std::string("sn40l"), "direct"}, std::pair{std::string("sn40l"), "ring"},
        std::pair{std::string("wormhole"), "ring"}, std::pair{barrier_target(), "direct"}}) {
    const Machine machine(target, algorithm);
    const Outcome outcome = rdusim_ok({"run", "prog.bin", "--report", "report.json"}, machine.folder());
    CHECK(outcome.err.empty());
    check_exact_pass(parsed(machine.folder().read("report.json")));
  }
}

TEST_CASE("a page of an operand that is dropped, doubled, exchanged or altered is caught") {
  for (const std::string& target : {std::string("sn40l"), std::string("wormhole"), barrier_target()}) {
    CAPTURE(target);
    const Machine machine(target, "ring");
    machine.check("page_drop@matmul0.b_c0:0", "RDU7029");
    machine.check("page_duplicate@matmul0.b_c1:1", "RDU7029");
    machine.check("page_swap@matmul0.b_c2:0", "RDU7029");
    machine.check("page_bit_flip@matmul0.a_c0:1", "RDU7015");
  }
}

TEST_CASE("a partial sum that is dropped, doubled, exchanged or altered before it is reduced is caught") {
  for (const std::string& target : {std::string("sn40l"), barrier_target()}) {
    CAPTURE(target);
    const Machine machine(target, "direct");
    machine.check("page_drop@matmul0.partial_c0:0", "RDU7029");
    machine.check("page_duplicate@matmul0.partial_c1:1", "RDU7002");
    machine.check("page_swap@matmul0.partial_c2:0", "RDU7029");
    machine.check("page_bit_flip@matmul0.partial_c0:1", "RDU7015");
  }
}

TEST_CASE("a fold that leaves out a partial or adds it twice is caught, with values and without") {
  for (const auto& [target, algorithm, fold] :
       {std::tuple{std::string("sn40l"), "direct", "fold"}, std::tuple{std::string("wormhole"), "ring", "ring"},
        std::tuple{barrier_target(), "through-one", "fold"}}) {
    CAPTURE(target);
    const Machine machine(target, algorithm);
    const std::string stage = std::string("matmul0.all_reduce.") + fold + "_c0:1";
    for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--timing-only"}}) {
      machine.check("partial_skip@" + stage, "RDU7009", options);
      machine.check("partial_double@" + stage, "RDU7010", options);
    }
  }
}

TEST_CASE("a page lost, doubled or exchanged between chips is caught") {
  const Machine direct("sn40l", "direct");
  direct.check("page_drop@" + direct.edge() + ":0", "RDU7029");
  direct.check("page_drop@" + direct.edge() + ":" + std::to_string(direct.last()), "RDU7020");
  direct.check("page_duplicate@" + direct.edge() + ":0", "RDU7029");
  direct.check("page_swap@" + direct.edge() + ":0", "RDU7029");
  direct.check("page_bit_flip@" + direct.edge() + ":0", "RDU7015");
  const Machine ring("wormhole", "ring");
  ring.check("page_drop@" + ring.edge() + ":0", "RDU7020");
  ring.check("page_duplicate@" + ring.edge() + ":0", "RDU7005");
  ring.check("page_swap@" + ring.edge() + ":1", "RDU7020");
  ring.check("page_bit_flip@" + ring.edge() + ":1", "RDU7015");
}

TEST_CASE("a page lost, doubled or exchanged between chips is caught without values too") {
  const Machine direct("sn40l", "direct");
  direct.check("page_drop@" + direct.edge() + ":0", "RDU7029", {"--timing-only"});
  direct.check("page_duplicate@" + direct.edge() + ":0", "RDU7029", {"--timing-only"});
  direct.check("page_swap@" + direct.edge() + ":0", "RDU7029", {"--timing-only"});
}

// Where all elements are equal no value can tell that two pages or two partial sums changed places; what they hold can.
TEST_CASE("an exchange is caught even where every element of the operands is equal") {
  Matmul ones = matmul(64, 192, 96);
  ones.x = ones.w = {1, -1};
  const Machine machine("sn40l", "direct", ones);
  machine.check("page_swap@matmul0.b_c0:0", "RDU7029");
  machine.check("page_swap@matmul0.partial_c0:0", "RDU7029");
  machine.check("page_swap@" + machine.edge() + ":0", "RDU7029");
}

TEST_CASE("a page lost between two generations of a barrier is told as lost") {
  const Machine machine(barrier_target(), "through-one");
  machine.check("page_drop@" + machine.edge() + ":" + std::to_string(machine.last()), "RDU7020");
  machine.check("page_drop@" + machine.edge() + ":0", "RDU7020");
}

TEST_CASE("the last page of a hand-off, received twice, is caught") {
  const Machine machine("sn40l", "direct");
  const std::string last = ":" + std::to_string(machine.last());
  machine.check("page_duplicate@" + machine.edge() + last, "RDU7025");
  const Machine semaphores("wormhole", "ring");
  semaphores.check("page_duplicate@" + semaphores.edge() + ":" + std::to_string(semaphores.last()), "RDU7005");
  const Machine barrier(barrier_target(), "through-one");
  barrier.check("page_duplicate@" + barrier.edge() + ":" + std::to_string(barrier.last()), "RDU7006");
}

TEST_CASE("a credit that is lost or doubled is caught") {
  for (const std::string algorithm : {"direct", "ring"}) {
    const Machine machine("sn40l", algorithm);
    machine.check("credit_drop@" + machine.edge() + ":0", "RDU7008");
    machine.check("credit_duplicate@" + machine.edge() + ":0", "RDU7004");
  }
}

TEST_CASE("a semaphore signal that is lost, or a ready that is doubled, is caught") {
  const Machine machine("wormhole", "ring");
  machine.check("ready_drop@" + machine.edge() + ":0", "RDU7020");
  machine.check("ready_duplicate@" + machine.edge() + ":0", "RDU7005");
  machine.check("valid_drop@" + machine.edge() + ":1", "RDU7020");
}

TEST_CASE("a valid that is raised twice is caught") {
  const Machine machine("wormhole", "ring");
  for (const std::int64_t nth : {std::int64_t{0}, machine.last()})
    machine.check("valid_duplicate@" + machine.edge() + ":" + std::to_string(nth), "RDU7005");
}

TEST_CASE("a violation says cycle, place and counts, and stops the run unless violations are collected") {
  const Machine machine("sn40l", "direct");
  const std::string fault = "page_duplicate@matmul0.partial_c1:1";
  const Outcome stopped = machine.inject(fault);
  CHECK(errors_of(stopped) == "RDU7002");
  CHECK(stopped.err.rfind("cycle ", 0) == 0);
  CHECK(stopped.err.find("chip1.site(") != std::string::npos);
  CHECK(stopped.err.find("'matmul0.partial_c1'") != std::string::npos);
  const Outcome collected = machine.inject(fault, {"--collect-violations"});
  CHECK(collected.status == 1);
  CHECK(errors_of(collected).rfind("RDU7002 ", 0) == 0);
}

TEST_CASE("a fault whose page never comes is told, and not taken for one that was missed") {
  const Machine machine("sn40l", "direct");
  for (const std::string& fault :
       {std::string("page_drop@matmul0.partial_c0:99"), "credit_drop@" + machine.edge() + ":99",
        std::string("partial_skip@matmul0.all_reduce.fold_c0:0")}) {
    CAPTURE(fault);
    const Outcome outcome = machine.inject(fault);
    CHECK(outcome.status == 2);
    CHECK(errors_of(outcome) == "RDU6008");
  }
  // One that strikes and one that does not: the first is the run's fault.
  const Outcome both =
      machine.inject("page_drop@matmul0.partial_c0:0", {"--inject", "page_drop@matmul0.partial_c0:99"});
  CHECK(both.status == 1);
  CHECK(errors_of(both) == "RDU7029");
  CHECK(both.err.find("warning RDU6008") != std::string::npos);
}

TEST_CASE("a fault at a place that does not exist is refused, with what does") {
  const Machine machine("sn40l", "direct");
  for (const std::string fault :
       {"page_drop@nowhere", "page_lose@edge6", "ready_drop@edge6", "page_drop@edge999", "edge6"}) {
    CAPTURE(fault);
    const Outcome outcome = machine.inject(fault);
    CHECK(outcome.status == 2);
    CHECK(errors_of(outcome) == "RDU6007");
    CHECK(outcome.out.empty());
  }
}

}  // namespace
}  // namespace rdusim::test::faults_test
