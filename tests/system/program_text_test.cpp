// A program as bytes, as JSON, as text and as a graph.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::program_text_test {
namespace {

TEST_CASE("assemble after show --json gives the same bytes, and they run the same") {
  for (const std::string& target : {std::string("sn40l"), std::string("wormhole"), barrier_target()}) {
    for (const std::string algorithm : {"through-one", "ring"}) {
      CAPTURE(target);
      CAPTURE(algorithm);
      const Folder folder;
      compile(folder, matmul(32, 192, 64),
              {"--chips", "3", "--shard", "row", "--target", target, "--collective", algorithm});
      folder.write("prog.json", rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
      rdusim_ok({"assemble", "prog.json", "-o", "again.bin"}, folder);
      CHECK(folder.read("again.bin") == folder.read("prog.bin"));
      rdusim_ok({"assemble", "-", "-o", "piped.bin"}, folder, folder.read("prog.json"));
      CHECK(folder.read("piped.bin") == folder.read("prog.bin"));
    }
  }
}

TEST_CASE("assemble works out what the JSON leaves out, and the result runs to the same cycles and values") {
  const Folder folder;
  const Matmul workload = matmul(32, 192, 64);
  compile(folder, workload, {"--chips", "3", "--shard", "row"});
  const Json whole = run(folder);
  Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  for (const std::string part : {"memory", "schedule", "certificate"}) remove(program, part);
  folder.write("part.json", to_text(program));
  rdusim_ok({"assemble", "part.json", "-o", "part.bin"}, folder);
  const Json report = run(folder, {}, "part.bin");
  check_exact_pass(report);
  CHECK(to_text(at(report, "cycles")) == to_text(at(whole, "cycles")));
  CHECK(text(report, "outputs", 0, "sha256") == workload.sha256());
}

TEST_CASE("a program without its operators is checked by provenance alone, and says so") {
  const Folder folder;
  compile(folder, matmul(32, 192, 64), {"--chips", "3", "--shard", "row"});
  Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  remove(program, "operators");
  remove(program, "certificate");
  folder.write("bare.json", to_text(program));
  rdusim_ok({"assemble", "bare.json", "-o", "bare.bin"}, folder);
  const Json report = run(folder, {}, "bare.bin");
  CHECK(text(report, "verdict") == "pass");
  for (const Json& c : list(report, "checks")) {
    if (text(c, "code") == "RDU7015") CHECK(text(c, "status") == "unchecked");
    if (text(c, "code") == "RDU7009") CHECK(text(c, "status") == "pass");
  }
}

TEST_CASE("show tells the whole program, one part of it, and a graph") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "2", "--shard", "row"});
  const Outcome whole = rdusim_ok({"show", "prog.bin"}, folder);
  for (const std::string part : {"operators", "collectives", "tensors", "stages", "buffers", "edges", "summation trees",
                                 "[schedule.matmul0]", "certificate"}) {
    CAPTURE(part);
    CHECK(whole.out.find(part) != std::string::npos);
  }
  CHECK(whole.err.empty());

  const Outcome one = rdusim_ok({"show", "prog.bin", "matmul0.matmul_c1"}, folder);
  CHECK(one.out.find("matmul0.matmul_c1") != std::string::npos);
  CHECK(one.out.size() < whole.out.size());

  const Outcome dot = rdusim_ok({"show", "prog.bin", "--dot"}, folder);
  CHECK(dot.out.rfind("digraph", 0) == 0);
  CHECK(std::count(dot.out.begin(), dot.out.end(), '{') == std::count(dot.out.begin(), dot.out.end(), '}'));
  CHECK(dot.out.find("->") != std::string::npos);

  const Outcome unknown = rdusim({"show", "prog.bin", "matmul0.matmul_c9"}, folder);
  CHECK(unknown.status == 2);
  CHECK(unknown.out.empty());
}

TEST_CASE("check proves every obligation of a compiled program without running it") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "4", "--shard", "row"});
  const Outcome outcome = rdusim_ok({"check", "prog.bin"}, folder);
  for (const std::string obligation : {"counting balance", "buffer depth", "deadlock freedom", "handshake locality",
                                       "token and semaphore range", "reduction completeness", "write coverage",
                                       "collective agreement", "memory fit", "network progress", "cycle bounds"}) {
    CAPTURE(obligation);
    const auto at = outcome.out.find(obligation);
    REQUIRE(at != std::string::npos);
    const std::string line = outcome.out.substr(at, outcome.out.find('\n', at) - at);
    CHECK(line.find("proved") != std::string::npos);
  }
  CHECK(folder.names() == std::vector<std::string>{"prog.bin", "workload.toml"});
}

TEST_CASE("compile gives the same bytes twice, from another folder, and through standard input and output") {
  const Folder folder;
  const Folder elsewhere;
  const std::vector<std::string> options = {"--chips", "4", "--shard", "row"};
  compile(folder, Matmul{}, options, "a.bin");
  compile(folder, Matmul{}, options, "b.bin");
  compile(elsewhere, Matmul{}, options, "c.bin");
  const std::string bytes = folder.read("a.bin");
  CHECK(folder.read("b.bin") == bytes);
  CHECK(elsewhere.read("c.bin") == bytes);
  const Outcome far =
      rdusim_ok({"compile", folder.file("workload.toml"), "-o", "d.bin", "--chips", "4", "--shard", "row"}, elsewhere);
  CHECK(elsewhere.read("d.bin") == bytes);
  const Outcome piped =
      rdusim_ok({"compile", "-", "-o", "-", "--chips", "4", "--shard", "row"}, elsewhere, Matmul{}.toml());
  CHECK(piped.out == bytes);
  CHECK(piped.err == far.out);
}

}  // namespace
}  // namespace rdusim::test::program_text_test
