#include "tests/traces/traced_run.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "compiler/compile.h"
#include "compiler/program/prog_bin.h"
#include "compiler/support/file.h"
#include "compiler/workload/read_workload.h"

namespace rdusim::test {

Scratch::Scratch() {
  std::string name = (std::filesystem::temp_directory_path() / "rdusim-traces-XXXXXX").string();
  REQUIRE(mkdtemp(name.data()) != nullptr);
  path = name;
}
Scratch::~Scratch() {
  std::filesystem::remove_all(path);
}

std::string file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

void put_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

LoadedProgram compiled(const std::string& workload, std::uint32_t chips, const std::string& target,
                       CollectiveAlgorithm algorithm) {
  const std::string text =
      workload.ends_with(".toml") ? file_bytes(std::string(RDUSIM_SOURCE_DIR) + "/examples/" + workload) : workload;
  auto graph = parse_workload(text, "workload", "");
  INFO(graph.diagnostics().to_text());
  REQUIRE(graph.ok());
  auto machine = find_target(target);
  REQUIRE(machine.ok());
  CompileOptions options;
  options.plan.chips = chips;
  options.plan.portable = false;
  options.plan.algorithm = algorithm;
  auto program = compile(*graph, *machine, options);
  INFO(program.diagnostics().to_text());
  REQUIRE(program.ok());
  LoadedProgram loaded;
  loaded.sha256 = sha256(std::string_view(encode(*program)));
  loaded.program = std::move(program).value();
  loaded.target = std::move(machine).value();
  return loaded;
}

LoadedProgram small_matmul(std::uint32_t chips, const std::string& target) {
  return compiled(R"(
name = "small"
[tensors.x]
role = "input"
shape = [32, 512]
dtype = "int8"
fill = { pattern = { modulus = 61, shift = 30 } }
[tensors.w]
role = "weight"
shape = [512, 64]
dtype = "int8"
fill = { pattern = { modulus = 89, shift = 44 } }
[tensors.y]
role = "output"
dtype = "int32"
[[ops]]
kind = "matmul"
in = ["x", "w"]
out = "y"
)",
                  chips, target);
}

RunResult traced(const LoadedProgram& loaded, std::vector<std::string> files, RunOptions options) {
  options.trace.files = std::move(files);
  auto result = run_program(loaded, options);
  INFO(result.diagnostics().to_text());
  REQUIRE(result.ok());
  return std::move(result).value();
}

std::string without_host(const Report& report) {
  const Json all = to_json(report);
  Json rest;
  for (const JsonMember& m : *all.as_object())
    if (m.first != "host") rest.set(m.first, m.second);
  return to_text(rest);
}

}  // namespace rdusim::test
