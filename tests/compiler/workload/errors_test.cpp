// Every code of what users bring has an input that provokes just it: tests/errors/workloads/*.toml, whose first line
// names the code, and tests/errors/onnx/*.onnx, whose names begin with it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "compiler/workload/read_workload.h"

namespace rdusim::errors_test {

namespace {

struct Input {
  std::string path;
  std::string code;
};

std::vector<Input> inputs() {
  std::vector<Input> out;
  for (const auto& entry : std::filesystem::directory_iterator(RDUSIM_SOURCE_DIR "/tests/errors/workloads")) {
    if (entry.path().extension() != ".toml") continue;
    std::ifstream in(entry.path());
    std::string line;
    std::getline(in, line);
    constexpr std::string_view start = "# expect ";
    REQUIRE_MESSAGE(line.starts_with(start), entry.path().string());
    out.push_back({entry.path().string(), line.substr(start.size())});
  }
  for (const auto& entry : std::filesystem::directory_iterator(RDUSIM_SOURCE_DIR "/tests/errors/onnx"))
    out.push_back({entry.path().string(), entry.path().filename().string().substr(0, 7)});
  std::sort(out.begin(), out.end(), [](const Input& a, const Input& b) { return a.path < b.path; });
  return out;
}

std::string code_text(Code code) {
  return "RDU" + std::to_string(static_cast<int>(code));
}

}  // namespace

TEST_CASE("each bad workload provokes just the code that its first line names") {
  const auto all = inputs();
  CHECK(all.size() >= 50);
  for (const Input& input : all) {
    const auto result = read_workload(input.path);
    CAPTURE(input.path);
    INFO(result.diagnostics().to_text());
    CHECK(!result.diagnostics().empty());
    for (const Diagnostic& d : result.diagnostics().list()) {
      CHECK(code_text(d.code) == input.code);
      CHECK(d.where.starts_with(input.path));
    }
    CHECK(result.ok() == (input.code == "RDU1023"));
  }
}

TEST_CASE("each code of what users bring has its bad workload") {
  std::set<std::string> seen;
  for (const Input& input : inputs()) seen.insert(input.code);
  // A file beyond the limit is made by its test (read_workload_test.cpp), and a file changes after the workload was
  // read (fill_reader_test.cpp).
  seen.insert({"RDU1024", "RDU1025"});
  // Those of a model's config.json have their inputs beside (hf_config_test.cpp holds each to its name); what is asked
  // of a model is no file (hf_request_test.cpp).
  for (const auto& entry : std::filesystem::directory_iterator(RDUSIM_SOURCE_DIR "/tests/errors/configs"))
    seen.insert(entry.path().filename().string().substr(0, 7));
  seen.insert("RDU1046");
  seen.insert("RDU1068");  // a routing is no workload (hf_routing_test.cpp)
  for (const CodeInfo& code : all_codes()) {
    if (static_cast<int>(code.code) / 1000 == 1)
      CHECK_MESSAGE(seen.contains(code_text(code.code)), code_text(code.code));
  }
}

TEST_CASE("the examples are read without a word, and keep the rules of a graph") {
  std::size_t examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RDUSIM_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".toml") continue;
    std::ifstream in(entry.path());
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    if (text.find("[[ops]]") == std::string::npos) continue;  // a target or a sweep plan
    ++examples;
    const auto graph = read_workload(entry.path().string());
    INFO(entry.path().string());
    INFO(graph.diagnostics().to_text());
    REQUIRE(graph.ok());
    CHECK(graph.diagnostics().empty());
    CHECK(check_graph(*graph).to_text() == "");
    CHECK(graph->name == entry.path().stem().string());
  }
  CHECK(examples >= 5);
}

}  // namespace rdusim::errors_test
