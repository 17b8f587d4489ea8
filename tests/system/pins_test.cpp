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
