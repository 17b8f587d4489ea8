// Products of matrices that are transposed, and of stacks of them, from workload to checked values.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::products_test {
namespace {

std::string operand(std::string_view name, std::string_view role, std::string_view shape, std::string_view dtype,
                    const Pattern& p) {
  return fmt::format(
      "[tensors.{}]\nrole = \"{}\"\nshape = {}\ndtype = \"{}\"\nfill = {{ pattern = {{ modulus = {}, shift = {} }} "
      "}}\n",
      name, role, shape, dtype, p.modulus, p.shift);
}
std::string result(std::string_view name, std::string_view dtype, bool is_output = true) {
  return fmt::format("[tensors.{}]\n{}dtype = \"{}\"\n", name, is_output ? "role = \"output\"\n" : "", dtype);
}
std::string_view result_type(std::string_view operands) {
  return operands == "int8" ? "int32" : operands;
}

// y(m x n) = x(m x k) w(n x k)^T, or of a plain w(k x n). Periods divide no stride.
std::string product(std::int64_t m, std::int64_t k, std::int64_t n, std::string_view dtype, bool transposed) {
  return "name = \"product\"\n" + operand("x", "input", fmt::format("[{}, {}]", m, k), dtype, {61, 30}) +
         operand("w", "weight", transposed ? fmt::format("[{}, {}]", n, k) : fmt::format("[{}, {}]", k, n), dtype,
                 {89, 44}) +
         result("y", result_type(dtype)) +
         fmt::format("[[ops]]\nkind = \"matmul\"\nin = [\"x\", \"w\"]\nout = \"y\"\n{}",
                     transposed ? "transposed = true\n" : "");
}

Json ran(const Folder& folder, const std::string& workload, std::vector<std::string> options = {}) {
  folder.write("workload.toml", workload);
  std::vector<std::string> request = {"compile", "workload.toml", "-o", "prog.bin"};
  request.insert(request.end(), options.begin(), options.end());
  rdusim_ok(request, folder);
  Json report = run(folder);
  check_exact_pass(report);
  return report;
}

}  // namespace

TEST_CASE("a product by a transposed matrix is exact in every type, with ragged edges") {
  const Folder folder;
  for (const std::string_view dtype : {"int8", "bf16", "fp32"})
    for (const auto& [m, k, n] : {std::tuple(1, 300, 75), std::tuple(33, 100, 31), std::tuple(70, 520, 200)}) {
      CAPTURE(dtype);
      CAPTURE(m);
      const Json report = ran(folder, product(m, k, n, dtype, true));
      CHECK(number(report, "macs", "useful") == m * k * n);
    }
}

TEST_CASE("a product by a transposed matrix takes the cycles of the plain one of its extents") {
  const Folder folder;
  for (const auto& [m, k, n] : {std::tuple(1, 2048, 2048), std::tuple(256, 512, 256)}) {
    CAPTURE(m);
    const auto plain = number(ran(folder, product(m, k, n, "bf16", false)), "cycles", "simulated");
    const auto turned = number(ran(folder, product(m, k, n, "bf16", true)), "cycles", "simulated");
    CHECK(turned == plain);
  }
}

TEST_CASE("transposed weights are cut along either axis over chips") {
  const Folder folder;
  for (const std::string shard : {"row", "column"})
    for (const std::string chips : {"2", "3"}) {
      CAPTURE(shard);
      CAPTURE(chips);
      ran(folder, product(33, 192, 192, "int8", true), {"--chips", chips, "--shard", shard});
    }
  // A pair of linear layers, the second of which reads what the first left on its chip.
  const std::string pair = "name = \"pair\"\n" + operand("x", "input", "[33, 64]", "bf16", {7, 3}) +
                           operand("up", "weight", "[256, 64]", "bf16", {13, 6}) +
                           operand("down", "weight", "[96, 256]", "bf16", {11, 5}) + result("h", "bf16", false) +
                           result("y", "fp32") +
                           "[[ops]]\nkind = \"matmul\"\nin = [\"x\", \"up\"]\nout = \"h\"\ntransposed = true\n" +
                           "[[ops]]\nkind = \"matmul\"\nin = [\"h\", \"down\"]\nout = \"y\"\ntransposed = true\n";
  for (const std::string chips : {"2", "4"}) {
    const Json report = ran(folder, pair, {"--chips", chips, "--shard", "tensor"});
    CHECK(at(report, "collectives").as_array()->size() == 1);
  }
}

TEST_CASE("stacks of matrices are multiplied exactly, each right one with those that it serves") {
  struct Case {
    std::string_view left, right, result;
    std::int64_t macs;
  };
  const Folder folder;
  for (const auto& [left, right, out, macs] :
       {Case{"[3, 33, 70]", "[3, 70, 50]", "[3, 33, 50]", 3 * 33 * 70 * 50},
        Case{"[6, 40, 64]", "[2, 64, 33]", "[6, 40, 33]", 6 * 40 * 64 * 33},
        Case{"[5, 7, 96]", "[96, 40]", "[5, 7, 40]", 5 * 7 * 96 * 40},
        Case{"[2, 4, 33, 40]", "[2, 2, 40, 65]", "[2, 4, 33, 65]", 8 * 33 * 40 * 65},
        Case{"[2, 3, 70, 20]", "[1, 1, 20, 33]", "[2, 3, 70, 33]", 6 * 70 * 20 * 33}})
    for (const bool transposed : {false, true}) {
      CAPTURE(left);
      CAPTURE(transposed);
      std::string second(right);
      if (transposed) {
        // The last two extents the other way round.
        const std::size_t last = second.rfind(','), before = second.rfind(',', last - 1);
        const std::size_t begin = before == std::string::npos ? 1 : before + 2;
        second = second.substr(0, begin) + second.substr(last + 2, second.size() - last - 3) + ", " +
                 second.substr(begin, last - begin) + "]";
      }
      const Json report = ran(folder, "name = \"stack\"\n" + operand("x", "input", left, "int8", {61, 30}) +
                                          operand("w", "weight", second, "int8", {89, 44}) + result("y", "int32") +
                                          "[[ops]]\nkind = \"matmul\"\nin = [\"x\", \"w\"]\nout = \"y\"\n" +
                                          (transposed ? "transposed = true\n" : ""));
      CHECK(number(report, "macs", "useful") == macs);
      CHECK(text(report, "outputs", 0, "name") == "y");
    }
}

TEST_CASE("a stack by one matrix is cut over chips, and one by a stack is refused") {
  const Folder folder;
  const auto stack = [&](std::string_view right) {
    return "name = \"stack\"\n" + operand("x", "input", "[3, 33, 128]", "bf16", {7, 3}) +
           operand("w", "weight", right, "bf16", {13, 6}) + result("y", "fp32") +
           "[[ops]]\nkind = \"matmul\"\nin = [\"x\", \"w\"]\nout = \"y\"\n";
  };
  for (const std::string shard : {"row", "column"}) ran(folder, stack("[128, 64]"), {"--chips", "2", "--shard", shard});
  folder.write("workload.toml", stack("[3, 128, 64]"));
  const Outcome refused = rdusim({"compile", "workload.toml", "-o", "prog.bin", "--chips", "2"}, folder);
  CHECK(refused.status == 2);
  CHECK(errors_of(refused) == "RDU4116");
}

TEST_CASE("of a stack of products each chip keeps rows of every one, exactly, by every algorithm, on every machine") {
  const Folder folder;
  // Rows that are no whole tiles, and a matrix a round.
  for (const std::string chips : {"2", "3", "6"})
    for (const std::string& more :
         {std::string("sn40l direct"), std::string("sn40l ring"), std::string("wormhole ring")}) {
      const std::string target = more.substr(0, more.find(' ')), algorithm = more.substr(more.find(' ') + 1);
      CAPTURE(chips);
      CAPTURE(more);
      const std::string workload =
          "name = \"stack\"\n" + operand("x", "input", "[5, 42, 192]", "int8", {61, 20}) +
          operand("w", "weight", "[192, 72]", "int8", {53, 20}) + result("y", "int32") +
          "[[ops]]\nname = \"g\"\nkind = \"matmul\"\nin = [\"x\", \"w\"]\nout = \"y\"\nscattered = true\n";
      const Json report =
          ran(folder, workload, {"--chips", chips, "--shard", "row", "--target", target, "--collective", algorithm});
      CHECK(text(report, "collectives", 0, "kind") == "reduce_scatter");
      std::int64_t written = 0;
      for (const Json& memory : list(report, "memories")) written += number(memory, "write_bytes");
      CHECK(written == 5 * 42 * 72 * 4);  // all chips together, once
    }
}

}  // namespace rdusim::test::products_test
