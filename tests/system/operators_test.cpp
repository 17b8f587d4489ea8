// Operators beyond matmul, from workload to checked values.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::operators_test {
namespace {

std::string tensor(std::string_view name, std::string_view role, std::string_view shape, std::string_view dtype,
                   std::uint64_t seed) {
  return fmt::format(
      "[tensors.{}]\nrole = \"{}\"\nshape = {}\ndtype = \"{}\"\nfill = {{ random = {{ seed = {}, low = -2.0, high = "
      "2.0 }} }}\n",
      name, role, shape, dtype, seed);
}
std::string result(std::string_view name, std::string_view dtype, bool is_output = true) {
  return fmt::format("[tensors.{}]\n{}dtype = \"{}\"\n", name, is_output ? "role = \"output\"\n" : "", dtype);
}
std::string op(std::string_view kind, std::string_view in, std::string_view out, std::string_view more = "") {
  return fmt::format("[[ops]]\nkind = \"{}\"\nin = [{}]\nout = \"{}\"\n{}\n", kind, in, out, more);
}

// Every operator on rows and columns in one program, an output each; operands of every shape that is repeated.
std::string all_operators(std::int64_t rows, std::int64_t columns, std::string_view dtype) {
  std::string text = "name = \"operators\"\n";
  text += tensor("x", "input", fmt::format("[{}, {}]", rows, columns), dtype, 1);
  text += tensor("y", "input", fmt::format("[{}, {}]", rows, columns), dtype, 2);
  text += tensor("w", "weight", fmt::format("[{}]", columns), dtype, 3);
  text += tensor("b", "weight", fmt::format("[1, {}]", columns), dtype, 4);
  text += tensor("c", "input", fmt::format("[{}, 1]", rows), dtype, 5);
  text += tensor("e", "input", "[1]", dtype, 6);
  struct Case {
    std::string_view kind, in, more;
  };
  const Case cases[] = {
      {"add", "'x', 'y'", ""},      {"subtract", "'x', 'c'", ""},
      {"multiply", "'c', 'w'", ""}, {"divide", "'y', 'e'", ""},
      {"maximum", "'b', 'x'", ""},  {"minimum", "'x', 'x'", ""},
      {"negate", "'x'", ""},        {"absolute", "'x'", ""},
      {"relu", "'x'", ""},          {"exponential", "'x'", ""},
      {"square_root", "'y'", ""},   {"reciprocal", "'x'", ""},
      {"tanh", "'x'", ""},          {"erf", "'x'", ""},
      {"sigmoid", "'x'", ""},       {"silu", "'x'", ""},
      {"gelu", "'x'", ""},          {"gelu_tanh", "'x'", ""},
      {"softmax", "'x'", ""},       {"rms_norm", "'x', 'w'", "epsilon = 1e-5"},
      {"reduce_sum", "'x'", ""},    {"reduce_mean", "'x'", ""},
      {"reduce_max", "'x'", ""},    {"reduce_min", "'y'", ""},
      {"softmax", "'w'", ""},       {"layer_norm", "'x', 'w', 'w'", "epsilon = 1e-5"},
  };
  std::string ops;
  for (const Case& c : cases) {
    const std::string out = fmt::format("out{}", &c - cases);
    text += result(out, dtype);
    ops += op(c.kind, c.in, out, c.more);
  }
  text += result("narrow", dtype == "fp32" ? "bf16" : "fp32");
  return text + ops + op("cast", "'x'", "narrow");
}

// Llama's MLP with its norm and residual, small: the widths are whole tiles for one to four chips.
std::string mlp() {
  std::string text = "name = \"mlp\"\n";
  text += tensor("x", "input", "[40, 128]", "bf16", 1);
  text += tensor("norm", "weight", "[128]", "bf16", 2);
  text += tensor("gate", "weight", "[128, 256]", "bf16", 3);
  text += tensor("up", "weight", "[128, 256]", "bf16", 4);
  text += tensor("down", "weight", "[256, 128]", "bf16", 5);
  for (const std::string_view name : {"h", "g", "u", "a", "m", "d"}) text += result(name, "bf16", false);
  text += result("z", "bf16");
  return text + op("rms_norm", "'x', 'norm'", "h", "epsilon = 1e-5") + op("matmul", "'h', 'gate'", "g") +
         op("matmul", "'h', 'up'", "u") + op("silu", "'g'", "a") + op("multiply", "'a', 'u'", "m") +
         op("matmul", "'m', 'down'", "d") + op("add", "'x', 'd'", "z");
}

void check_all(std::int64_t rows, std::int64_t columns, std::string_view dtype) {
  CAPTURE(rows);
  CAPTURE(columns);
  const Folder folder;
  folder.write("workload.toml", all_operators(rows, columns, dtype));
  rdusim_ok({"compile", "workload.toml", "-o", "prog.bin"}, folder);
  const Json report = run(folder, {"--check", "exact"});
  check_exact_pass(report);
  CHECK(number(report, "macs", "useful") == 0);
}

}  // namespace

TEST_CASE("every operator on rows and columns is exact, ragged, in fp32") {
  check_all(70, 300, "fp32");
}
TEST_CASE("every operator on rows and columns is exact for one row, in bf16") {
  check_all(1, 4096, "bf16");
}
TEST_CASE("every operator on rows and columns is exact where a row is many pages") {
  check_all(33, 5000, "bf16");
}

TEST_CASE("a gated MLP with norm and residual is exact on one to four chips, for one all-reduce a pair of matmuls") {
  const Folder folder;
  folder.write("workload.toml", mlp());
  for (const std::string chips : {"1", "2", "4"}) {
    CAPTURE(chips);
    rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--chips", chips, "--shard", "tensor"}, folder);
    const Json report = run(folder);
    check_exact_pass(report);
    CHECK(number(report, "macs", "useful") == 40 * 128 * 256 * 3);
    if (chips == "1") continue;
    CHECK(at(report, "collectives").as_array()->size() == 1);
    CHECK(text(report, "collectives", 0, "kind") == "all_reduce");
  }
  for (const std::string kind : {"row", "column"}) {
    CAPTURE(kind);
    rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--chips", "2", "--shard", kind}, folder);
    check_exact_pass(run(folder));
  }
}

TEST_CASE("a gated MLP passes every check without values, and takes as many cycles") {
  const Folder folder;
  folder.write("workload.toml", mlp());
  rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--chips", "2"}, folder);
  const Json valued = run(folder), timed = run(folder, {"--timing-only"});
  CHECK(text(timed, "verdict") == "pass");
  CHECK(number(timed, "cycles", "simulated") == number(valued, "cycles", "simulated"));
}

}  // namespace rdusim::test::operators_test
