// [schedule.OP]: what show prints of the compiler's choice can be pinned, and pinning it changes nothing.
#include <doctest/doctest.h>

#include <tuple>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::pins_test {
namespace {

// The [schedule.OP] tables that show prints, as a workload file takes them.
std::string shown_schedule(const Folder& folder, const std::string& program) {
  const std::string shown = rdusim_ok({"show", program}, folder).out;
  const std::size_t begin = shown.find("  [schedule.");
  REQUIRE(begin != std::string::npos);
  std::string toml;
  for (std::size_t line = begin; shown.compare(line, 2, "  ") == 0;) {
    const std::size_t end = shown.find('\n', line) + 1;
    toml += shown.substr(line + 2, end - line - 2);
    line = end;
  }
  return toml;
}

void check_fixed_point(const Folder& folder, const std::string& workload, std::vector<std::string> options) {
  folder.write("free.toml", workload);
  options.insert(options.begin(), {"compile", "free.toml", "-o", "free.bin"});
  rdusim_ok(options, folder);
  const std::string chosen = shown_schedule(folder, "free.bin");
  CAPTURE(chosen);
  folder.write("pinned.toml", workload + chosen);
  options[1] = "pinned.toml";
  options[3] = "pinned.bin";
  rdusim_ok(options, folder);
  CHECK(shown_schedule(folder, "pinned.bin") == chosen);
  // And it is the same program but for the pins themselves, which stand with the operators.
  Json unpinned = parsed(rdusim_ok({"show", "free.bin", "--json"}, folder).out);
  Json pinned = parsed(rdusim_ok({"show", "pinned.bin", "--json"}, folder).out);
  for (Json* p : {&unpinned, &pinned}) remove(*p, "operators");
  CHECK(to_text(unpinned) == to_text(pinned));
}

TEST_CASE("the schedule that show prints, pinned, gives the same program and is shown again") {
  const Folder folder;
  for (const std::string target : {"sn40l", "wormhole"})
    for (const auto& [m, k, n] :
         {std::tuple{32, 512, 64}, std::tuple{1, 4096, 384}, std::tuple{33, 1000, 200}, std::tuple{256, 256, 256}})
      for (const std::string chips : {"1", "2"}) {
        if (chips == "2" && k % 64 != 0) continue;
        CAPTURE(target);
        CAPTURE(m);
        CAPTURE(chips);
        check_fixed_point(folder, matmul(m, k, n).toml(), {"--target", target, "--chips", chips, "--shard", "row"});
      }
}

TEST_CASE("so it does for the example on 16 chips, and for a chain of two operators") {
  const Folder folder;
  check_fixed_point(folder, source_text("examples/llama-3.1-8b-down-proj.toml") + "\n",
                    {"--chips", "16", "--shard", "row"});
  const std::string operand = "\ndtype = \"fp32\"\nfill = { pattern = { modulus = 61, shift = 30 } }\n";
  check_fixed_point(folder,
                    "name = \"mlp\"\n[tensors.x]\nrole = \"input\"\nshape = [32, 256]" + operand +
                        "[tensors.u]\nrole = \"weight\"\nshape = [256, 512]" + operand +
                        "[tensors.d]\nrole = \"weight\"\nshape = [512, 128]" + operand +
                        "[tensors.h]\n[tensors.y]\nrole = \"output\"\n"
                        "[[ops]]\nname = \"up\"\nkind = \"matmul\"\nin = [\"x\", \"u\"]\nout = \"h\"\n"
                        "[[ops]]\nname = \"down\"\nkind = \"matmul\"\nin = [\"h\", \"d\"]\nout = \"y\"\n",
                    {"--chips", "2", "--shard", "row"});
}

// A matmul of random floats, whose sum depends on its order.
std::string random_matmul(std::int64_t m, std::int64_t k, std::int64_t n, const std::string& schedule) {
  const auto tensor = [](const std::string& name, std::int64_t rows, std::int64_t columns, int seed) {
    return "[tensors." + name + "]\nrole = \"input\"\nshape = [" + std::to_string(rows) + ", " +
           std::to_string(columns) + "]\ndtype = \"fp32\"\nfill = { random = { seed = " + std::to_string(seed) +
           " } }\n";
  };
  return "name = \"lanes\"\n" + tensor("a", m, k, 3) + tensor("b", k, n, 5) +
         "[tensors.c]\nrole = \"output\"\n[[ops]]\nname = \"g\"\nkind = \"matmul\"\nin = [\"a\", \"b\"]\nout = \"c\"\n"
         "[schedule.g]\n" +
         schedule;
}

TEST_CASE("a matmul in SIMD lanes sums as its reduction tree does, on one site, over sites and over chips") {
  const Folder folder;
  struct Case {
    std::string schedule, chips;
    std::int64_t m, k, n;
  };
  for (const Case& c : {Case{"unit = \"simd\"\nlanes = 16\nunroll_k = 1\n", "1", 1, 1000, 1},
                        Case{"unit = \"simd\"\nlanes = 4\nunroll_k = 3\npage_k = 2\n", "1", 5, 384, 40},
                        Case{"unit = \"simd\"\n", "4", 33, 512, 70}}) {
    CAPTURE(c.schedule);
    folder.write("w.toml", random_matmul(c.m, c.k, c.n, c.schedule));
    rdusim_ok({"compile", "w.toml", "--chips", c.chips, "--shard", "row", "-o", "prog.bin"}, folder);
    const Json lanes = run(folder);
    check_exact_pass(lanes);
    folder.write("w.toml", random_matmul(c.m, c.k, c.n, ""));
    rdusim_ok({"compile", "w.toml", "--chips", c.chips, "--shard", "row", "-o", "prog.bin"}, folder);
    // In another order: other bits.
    CHECK(text(run(folder), "outputs", 0, "sha256") != text(lanes, "outputs", 0, "sha256"));
  }
}

TEST_CASE("a dot product takes as long as its vectors at the lanes that it uses, and its loads at theirs") {
  const Folder folder;
  const auto cycles = [&](const std::string& schedule) {
    folder.write("w.toml", random_matmul(1, 1024, 1, "unit = \"simd\"\nunroll_k = 1\npage_k = 2\n" + schedule));
    rdusim_ok({"compile", "w.toml", "--target", "plasticine-2020", "--chips", "1", "-o", "prog.bin"}, folder);
    const Json report = run(folder);
    check_exact_pass(report);
    return number(report, "cycles", "simulated");
  };
  const std::int64_t one = cycles("lanes = 1\n"), two = cycles("lanes = 2\n");
  CHECK(one - two == 1024 - 512 - 1);  // and a stage more of the tree
  CHECK(cycles("lanes = 16\nstream_lanes = 1\n") >= 1024);
  CHECK(cycles("lanes = 16\n") < 512);
}

TEST_CASE("lanes and blocks of rows of an element-wise operator are obeyed and shown, and shown ones can be pinned") {
  const Folder folder;
  const auto outer = [&](const std::string& schedule) {
    return "name = \"outer\"\n[tensors.a]\nrole = \"input\"\nshape = [100, 1]\ndtype = \"fp32\"\nfill = { random = { "
           "seed = 1 } }\n"
           "[tensors.b]\nrole = \"input\"\nshape = [1, 90]\ndtype = \"fp32\"\nfill = { random = { seed = 2 } }\n"
           "[tensors.c]\nrole = \"output\"\n[[ops]]\nname = \"g\"\nkind = \"multiply\"\nin = [\"a\", \"b\"]\nout = "
           "\"c\"\n" +
           schedule;
  };
  const std::vector<std::string> target = {"--target", "plasticine-2020", "--chips", "1"};
  check_fixed_point(folder, outer(""), target);
  const std::string pins =
      "sites = 1\nunroll_m = 1\nunroll_n = 1\nunroll_k = 1\nblock_m = 4\nblock_n = 2\npage_k = 1\n"
      "lanes = 2\nstream_lanes = 8\n";
  folder.write("w.toml", outer("[schedule.g]\n" + pins));
  rdusim_ok({"compile", "w.toml", "--target", "plasticine-2020", "--chips", "1", "-o", "prog.bin"}, folder);
  CHECK(shown_schedule(folder, "prog.bin") == "[schedule.g]\n" + pins);
  const Json report = run(folder);
  check_exact_pass(report);
  CHECK(number(report, "cycles", "simulated") >= 100 * 90 / 2);
}

TEST_CASE("what a SIMD pipeline makes is written when its last vector is out") {
  const Folder folder;
  folder.write(
      "w.toml",
      "name = \"outer\"\n[tensors.a]\nrole = \"input\"\nshape = [64, 1]\ndtype = \"fp32\"\nfill = { random = { "
      "seed = 1 } }\n[tensors.b]\nrole = \"input\"\nshape = [1, 32]\ndtype = \"fp32\"\nfill = { random = { seed "
      "= 2 } }\n[tensors.c]\nrole = \"output\"\n[[ops]]\nname = \"g\"\nkind = \"multiply\"\nin = [\"a\", "
      "\"b\"]\nout = \"c\"\n[schedule.g]\nblock_m = 4\nblock_n = 2\n");
  rdusim_ok({"compile", "w.toml", "--target", "plasticine-2020", "--chips", "1", "-o", "prog.bin"}, folder);
  const Json report = run(folder);
  check_exact_pass(report);
  REQUIRE(text(report, "stages", 2, "name") == "g.multiply");
  // 2,048 products 16 at a time, six stages of the pipeline, and the PMU's access on the way in and out; its port takes
  // as long for the page as the pipeline, and meanwhile.
  CHECK(number(report, "stages", 2, "cycles") - number(report, "stages", 2, "stall", "input_starvation") ==
        2048 / 16 + 6 + 4 + 4);
}

TEST_CASE("operands and results in memory units of their own do not wait for each other's ports") {
  const Folder folder;
  const auto sum = [&](const std::string& pins) {
    const std::string tensor =
        "]\nrole = \"input\"\nshape = [256, 128]\ndtype = \"fp32\"\nfill = { pattern = { modulus = 61, shift = 30 } "
        "}\n";
    return "name = \"sum\"\n[tensors.a" + tensor + "[tensors.b" + tensor +
           "[tensors.c]\nrole = \"output\"\n[[ops]]\nname = \"g\"\nkind = \"add\"\nin = [\"a\", \"b\"]\nout = \"c\"\n"
           "[schedule.g]\nunroll_m = 1\nunroll_n = 1\nblock_n = 8\n" +
           pins;
  };
  const auto cycles = [&](const std::string& pins) {
    folder.write("w.toml", sum(pins));
    rdusim_ok({"compile", "w.toml", "--target", "plasticine-2020", "--chips", "1", "-o", "prog.bin"}, folder);
    const Json report = run(folder);
    check_exact_pass(report);
    return number(report, "cycles", "simulated");
  };
  // 16 pages of 8 KiB, 64 bytes a cycle: a port reads two operands and the result that is stored, or just one of them.
  const std::int64_t one = cycles("pmus = 1\n"), three = cycles("pmus = 3\n");
  CHECK(one >= 16 * 3 * 128);
  CHECK(three >= 16 * 128);
  CHECK(one - three > 15 * 128);
  const std::string shown = shown_schedule(folder, "prog.bin");
  CHECK(shown.find("pmus = 3\n") != std::string::npos);
  folder.write("w.toml", sum("").substr(0, sum("").find("[schedule")) + shown);
  rdusim_ok({"compile", "w.toml", "--target", "plasticine-2020", "--chips", "1", "-o", "prog.bin"}, folder);
  CHECK(shown_schedule(folder, "prog.bin") == shown);
}

TEST_CASE("a fold on sites of its own does not keep a matmul from its unit, and adds in the same order") {
  const Folder folder;
  struct Seen {
    std::int64_t cycles = 0;
    std::string sha256;
  };
  const auto seen = [&](const std::string& pins, const std::vector<std::string>& options) {
    folder.write(
        "w.toml",
        random_matmul(128, 256, 128,
                      "unroll_m = 1\nunroll_n = 1\nunroll_k = 2\nblock_m = 2\nblock_n = 2\npage_k = 2\n" + pins));
    std::vector<std::string> command = {"compile", "w.toml", "-o", "prog.bin"};
    command.insert(command.end(), options.begin(), options.end());
    rdusim_ok(command, folder);
    const Json report = run(folder);
    check_exact_pass(report);
    return Seen{number(report, "cycles", "simulated"), text(report, "outputs", 0, "sha256")};
  };
  const std::vector<std::string> plasticine = {"--target", "plasticine-2020", "--chips", "1"};
  const Seen beside = seen("unit = \"simd\"\n", plasticine),
             apart = seen("unit = \"simd\"\nfold_apart = true\n", plasticine);
  CHECK(apart.cycles < beside.cycles);
  CHECK(apart.sha256 == beside.sha256);
  // What is folded over chips after that, with everything in memory units of its own.
  const std::vector<std::string> chips = {"--chips", "2", "--shard", "row"};
  CHECK(seen("fold_apart = true\npmus = 2\n", chips).sha256 == seen("", chips).sha256);
}

TEST_CASE("one number of a pinned schedule can be changed, and it is what is shown") {
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "1"});
  Matmul changed = matmul(32, 512, 64);
  changed.schedule = "page_k = 8\nunroll_k = 1\ndepth = 3";
  compile(folder, changed, {"--chips", "1"}, "changed.bin");
  const std::string shown = shown_schedule(folder, "changed.bin");
  CHECK(shown.find("page_k = 8\n") != std::string::npos);
  CHECK(shown.find("unroll_k = 1\n") != std::string::npos);
  CHECK(shown.find("depth = 3\n") != std::string::npos);
}

}  // namespace
}  // namespace rdusim::test::pins_test
