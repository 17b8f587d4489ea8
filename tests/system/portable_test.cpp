// A program compiled without --chips carries its operators and is sharded as it is loaded; one compiled for n chips
// runs on n.
#include <doctest/doctest.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::portable_test {
namespace {

TEST_CASE("a portable program run on n chips is the program compiled for n") {
  for (const std::string shard : {"row", "column"}) {
    const Folder folder;
    const Matmul workload = shard == "row" ? matmul(32, 512, 64) : matmul(32, 64, 512);
    compile(folder, workload, {"--shard", shard}, "portable.bin");
    for (const std::string chips : {"1", "2", "4"}) {
      CAPTURE(shard);
      CAPTURE(chips);
      compile(folder, workload, {"--shard", shard, "--chips", chips}, "fixed.bin");
      const Json portable = run(folder, {"--chips", chips}, "portable.bin");
      const Json fixed = run(folder, {"--chips", chips}, "fixed.bin");
      check_exact_pass(portable);
      check_exact_pass(fixed);
      CHECK(number(portable, "program", "chips") == std::stoi(chips));
      CHECK(text(portable, "outputs", 0, "sha256") == workload.sha256());
      CHECK(text(fixed, "outputs", 0, "sha256") == workload.sha256());
      for (const std::string key : {"cycles", "collectives", "stages", "buffers", "links", "memories", "macs"}) {
        CAPTURE(key);
        CHECK(to_text(at(portable, key)) == to_text(at(fixed, key)));
      }
    }
  }
}

TEST_CASE("a portable program that is sized by minimum depths is sized so for any number of chips") {
  const Folder folder;
  const Matmul workload = matmul(64, 1024, 64);
  const std::vector<std::string> least = {"--shard", "row", "--collective", "ring", "--size-by", "minimum"};
  compile(folder, workload, least, "portable.bin");
  for (const std::string chips : {"1", "2", "4"}) {
    CAPTURE(chips);
    std::vector<std::string> fixed_options = least;
    fixed_options.insert(fixed_options.end(), {"--chips", chips});
    compile(folder, workload, fixed_options, "fixed.bin");
    compile(folder, workload, {"--shard", "row", "--collective", "ring", "--chips", chips}, "roomy.bin");
    const Json portable = run(folder, {"--chips", chips}, "portable.bin");
    const Json fixed = run(folder, {"--chips", chips}, "fixed.bin");
    check_exact_pass(portable);
    for (const std::string key : {"cycles", "collectives", "stages", "buffers", "links", "memories", "macs"}) {
      CAPTURE(key);
      CHECK(to_text(at(portable, key)) == to_text(at(fixed, key)));
    }
    CHECK(to_text(at(portable, "buffers")) != to_text(at(run(folder, {"--chips", chips}, "roomy.bin"), "buffers")));
  }
  CHECK(rdusim_ok({"show", "portable.bin"}, folder).out.find("portable, shard row, all_reduce (ring), least depths") !=
        std::string::npos);
}

TEST_CASE("a portable program without --chips runs on one chip") {
  const Folder folder;
  compile(folder, Matmul{}, {}, "portable.bin");
  const Json report = run(folder, {}, "portable.bin");
  check_exact_pass(report);
  CHECK(number(report, "program", "chips") == 1);
}

TEST_CASE("a program compiled for 4 chips is refused on 2, with both numbers") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "4", "--shard", "row"});
  const Outcome outcome = rdusim({"run", "prog.bin", "--chips", "2", "--report", "report.json"}, folder);
  CHECK(outcome.status == 2);
  CHECK(errors_of(outcome) == "RDU6001");
  CHECK(outcome.err.find("compiled for 4 chips") != std::string::npos);
  CHECK(outcome.err.find("2 are asked for") != std::string::npos);
  CHECK(outcome.out.empty());
  CHECK_FALSE(folder.has("report.json"));
}

TEST_CASE("a portable program that the chips do not divide is refused as it is loaded") {
  const Folder folder;
  compile(folder, Matmul{}, {"--shard", "row"}, "portable.bin");
  const Outcome outcome = rdusim({"run", "portable.bin", "--chips", "3"}, folder);
  CHECK(outcome.status == 2);
  CHECK(errors_of(outcome) == "RDU4102");
  CHECK(outcome.err.find("512") != std::string::npos);
}

}  // namespace
}  // namespace rdusim::test::portable_test
