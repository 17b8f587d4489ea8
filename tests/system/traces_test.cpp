// Traces as users meet them: written beside a run, asked, converted, judged again.
#include <doctest/doctest.h>

#include "compiler/support/json.h"
#include "tests/system/scenario.h"

namespace rdusim::test::traces_test {
namespace {

TEST_CASE("tracing changes no cycle and no value, and the log says what the report says") {
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "4"});
  const Json plain = run(folder);
  const Json traced =
      run(folder, {"--trace", "a.rdulog", "--trace", "a.pftrace", "--trace", "a.json", "--vcd", "a.vcd"});
  CHECK(without_host(plain) == without_host(traced));
  check_exact_pass(traced);
  const Json* rows = traced.find("host")->find("traces");
  REQUIRE(rows->as_array() != nullptr);
  CHECK(rows->as_array()->size() == 4);
  for (const Json& row : *rows->as_array())
    CHECK(row.find("bytes")->as_uint64() == folder.read(*row.find("file")->as_string()).size());
  // Nothing is left beside them.
  for (const std::string& name : folder.names()) CHECK(name.find(".tmp") == std::string::npos);

  const auto summary =
      parse_json(rdusim_ok({"trace", "summary", "a.rdulog", "--json"}, folder).out, "summary", Code::RDU8001);
  REQUIRE(summary.ok());
  CHECK(summary->find("cycles")->as_uint64() == traced.find("cycles")->find("simulated")->as_uint64());
  const auto path =
      parse_json(rdusim_ok({"trace", "critical-path", "a.rdulog", "--json"}, folder).out, "path", Code::RDU8001);
  REQUIRE(path.ok());
  CHECK(path->find("sum")->as_uint64() == path->find("cycles")->as_uint64());
  CHECK(rdusim_ok({"trace", "hot", "a.rdulog"}, folder).out.find("input_starvation") != std::string::npos);
  const Outcome replay = rdusim_ok({"trace", "replay", "a.rdulog"}, folder);
  CHECK(replay.out.find("verdict     pass") == 0);
  CHECK(replay.err.find("RDU8020") != std::string::npos);

  // A log gives what the run itself wrote, byte for byte.
  for (const char* name : {"pftrace", "json", "vcd"}) {
    rdusim_ok({"trace", "convert", "a.rdulog", "-o", std::string("b.") + name}, folder);
    CHECK(folder.read(std::string("b.") + name) == folder.read(std::string("a.") + name));
  }
  CHECK(rdusim_ok({"trace", "diff", "a.rdulog", "a.rdulog"}, folder).status == 0);
  CHECK(rdusim({"trace", "at", "a.rdulog", "soon"}, folder).status == 2);
  CHECK(rdusim({"trace", "page", "a.rdulog", "nobody:0"}, folder).status == 2);
  CHECK(rdusim({"trace", "summary", "prog.bin"}, folder).err.find("RDU8010") != std::string::npos);
}

TEST_CASE("what a check finds is in the trace that the run leaves, and a replay finds it again") {
  const Folder folder;
  compile(folder, matmul(32, 512, 64), {"--chips", "4"});
  const Outcome run = rdusim(
      {"run", "prog.bin", "--inject", "partial_skip@matmul0.all_reduce.fold_c0:1", "--trace", "a.rdulog"}, folder);
  CHECK(run.status == 1);
  const Outcome replay = rdusim({"trace", "replay", "a.rdulog"}, folder);
  CHECK(replay.status == 1);
  CHECK(errors_of(replay).find("RDU7009") == 0);
  CHECK(errors_of(replay) == errors_of(run));
}

}  // namespace
}  // namespace rdusim::test::traces_test
