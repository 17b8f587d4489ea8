// The schema may only grow: what conforms to an earlier version of it is read by the same code (prog-bin.md).
// prog_bin-v1.fbs is the schema as version 1 of the format published it; a new version leaves its own beside it.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "compiler/program/prog_bin.h"
#include "compiler/program/segments.h"
#include "compiler/support/file.h"

namespace rdusim::schema_test {

namespace {

const std::string folder = std::string(RDUSIM_SOURCE_DIR) + "/tests/compiler/program/";

std::string schema() {
  auto text = rdusim::read_file(std::string(RDUSIM_SOURCE_DIR) + "/compiler/program/prog_bin.fbs", 1 << 20);
  REQUIRE(text.ok());
  return *text;
}

// Whether flatc takes `text` for an evolution of the published schema.
bool conforms(const std::string& text) {
  namespace fs = std::filesystem;
  const fs::path file = fs::temp_directory_path() / fmt::format("rdusim-schema-{}.fbs", getpid());
  REQUIRE(rdusim::write_file(file.string(), text).ok());
  const std::string published = fmt::format("{}prog_bin-v{}.fbs", folder, rdusim::prog_bin_version);
  REQUIRE(fs::exists(published));
  const std::string command =
      fmt::format("'{}' --conform '{}' '{}' >/dev/null 2>&1", RDUSIM_FLATC, published, file.string());
  const int status = std::system(command.c_str());
  fs::remove(file);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status) == 0;
}

std::string edited(const std::string& from, const std::string& to) {
  std::string text = schema();
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("the schema of prog.bin is the published one, grown at its ends at most") {
  CHECK(conforms(schema()));
}

TEST_CASE("a schema that older readers would misread does not conform") {
  const std::string end_of_stage = "  assumes:string;\n}\n\ntable Stages";
  CHECK(conforms(edited(end_of_stage, "  assumes:string;\n  more:bool;\n}\n\ntable Stages")));
  CHECK_FALSE(conforms(edited("  firings:ulong;\n", "  firings:uint;\n")));
  CHECK_FALSE(conforms(edited("  firings:ulong;\n", "  more:bool;\n  firings:ulong;\n")));
  CHECK_FALSE(conforms(edited("enum BufferKind : ubyte { fifo, interm }", "enum BufferKind : ubyte { interm, fifo }")));
}

}  // namespace rdusim::schema_test
