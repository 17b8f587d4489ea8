// What an on-chip network may do to a program's cycles: cost some, never give any; and more of it never costs more where
// nothing is arbitrated.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::network_laws_test {
namespace {

// A shipped target with some of its lines replaced.
std::string with_lines(std::string text, const std::vector<std::pair<std::string, std::string>>& lines) {
  for (const auto& [key, value] : lines) {
    const auto at = text.find("\n" + key + " ");
    REQUIRE(at != std::string::npos);
    const auto end = text.find('\n', at + 1);
    text.replace(at + 1, end - at - 1, key + " = { value = " + value + ", published = \"a test\" }");
  }
  return text;
}

std::int64_t cycles(const Folder& folder, std::vector<std::string> options) {
  options.push_back("--timing-only");
  return number(run(folder, options), "cycles", "simulated");
}

TEST_CASE("no network is faster than an ideal one, at either level") {
  const Folder folder;
  folder.write("ideal.toml", with_lines(source_text("models/targets/sn40l.toml"), {{"link_bytes_per_cycle", "1000000"},
                                                                                   {"hop_cycles", "0"},
                                                                                   {"endpoint_cycles", "0"},
                                                                                   {"control_hop_cycles", "0"}}));
  struct Case {
    Matmul m;
    std::vector<std::string> options;
  };
  const Case cases[] = {
      {matmul(32, 64, 32), {"--chips", "1"}},
      {matmul(256, 512, 384), {"--chips", "1"}},
      {matmul(64, 192, 160), {"--chips", "3", "--shard", "row", "--collective", "direct"}},
      {matmul(64, 192, 160), {"--chips", "3", "--shard", "row", "--collective", "ring"}},
      {matmul(96, 256, 320), {"--chips", "2", "--shard", "column"}},
  };
  for (const Case& c : cases) {
    compile(folder, c.m, c.options);
    const auto ideal = cycles(folder, {"--target", "ideal.toml"});
    const auto fast = cycles(folder, {});
    const auto flit = cycles(folder, {"--network", "flit"});
    CAPTURE(ideal);
    CHECK(fast > ideal);
    CHECK(flit > ideal);
  }
}

TEST_CASE("more bandwidth is never slower where nothing is arbitrated") {
  const Folder folder;
  const std::string machine = source_text("models/targets/sn40l.toml");
  compile(folder, matmul(32, 32, 32), {"--chips", "1"});  // a page of each operand, and one of the result
  for (const std::string level : {"fast", "flit"}) {
    CAPTURE(level);
    std::int64_t before = 0;
    for (const std::string bytes : {"16", "32", "64"}) {
      folder.write("links.toml", with_lines(machine, {{"link_bytes_per_cycle", bytes}, {"flit_bytes", bytes}}));
      const auto now = cycles(folder, {"--target", "links.toml", "--network", level});
      if (before != 0) CHECK(now <= before);
      before = now;
    }
    for (const std::string rate : {"400", "900", "1800", "3600"}) {
      folder.write("memory.toml", with_lines(machine, {{"gb_per_s", rate}}));
      const auto now = cycles(folder, {"--target", "memory.toml", "--network", level});
      if (rate != "400") CHECK(now <= before);
      before = now;
    }
    for (const std::string bytes : {"32", "64", "128"}) {
      folder.write("ports.toml",
                   with_lines(machine, {{"read_bytes_per_cycle", bytes}, {"write_bytes_per_cycle", bytes}}));
      const auto now = cycles(folder, {"--target", "ports.toml", "--network", level});
      if (bytes != "32") CHECK(now <= before);
      before = now;
    }
  }
}

}  // namespace
}  // namespace rdusim::test::network_laws_test
