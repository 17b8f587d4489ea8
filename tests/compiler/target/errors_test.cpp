// Every input of tests/errors/targets provokes the code in its first line, and just it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "compiler/target/target.h"

namespace rdusim::errors_test {
namespace fs = std::filesystem;

namespace {

const fs::path root = RDUSIM_SOURCE_DIR;

std::string get(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> inputs() {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(root / "tests/errors/targets")) {
    if (entry.path().extension() == ".toml") all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("the machine that the bad inputs are made from is itself without a fault") {
  const auto target = find_target((root / "tests/support/barrier.toml").string());
  INFO(target.diagnostics().to_text());
  REQUIRE(target.ok());
  CHECK(target->crossing == std::vector{CrossingHandshake::barrier});
  CHECK(target->chips == 8);
}

TEST_CASE("each bad target provokes its code, once, at a line of its text") {
  const auto all = inputs();
  REQUIRE(all.size() > 30);
  std::set<std::string> provoked;
  for (const fs::path& path : all) {
    const std::string text = get(path);
    const std::string expected = text.substr(2, text.find('\n') - 2);
    const auto result = read_target(text, path.filename().string());
    INFO(path.filename().string() << "\n" << result.diagnostics().to_text());
    REQUIRE_FALSE(result.ok());
    const auto& list = result.diagnostics().list();
    REQUIRE(list.size() == 1);
    CHECK("RDU" + std::to_string(static_cast<int>(list[0].code)) == expected);
    CHECK(list[0].where.starts_with(path.filename().string() + ":"));
    provoked.insert(expected);
  }
  CHECK(provoked == std::set<std::string>{"RDU2002", "RDU2003", "RDU2004", "RDU2005", "RDU2006", "RDU2007", "RDU2008"});
}

TEST_CASE("all faults of a target are reported, in the order of its lines") {
  std::string text = get(root / "tests/support/barrier.toml");
  const auto replace = [&](const std::string& old, const std::string& fresh) {
    REQUIRE(text.find(old) != std::string::npos);
    text.replace(text.find(old), old.size(), fresh);
  };
  replace("hop_cycles           = {", "hop_cykles           = {");
  replace("lanes                 = {", "lanes = 16 #");
  replace("\"ring\"", "\"rang\"");
  const auto result = read_target(text, "t");
  REQUIRE_FALSE(result.ok());
  std::vector<Code> codes;
  for (const Diagnostic& d : result.diagnostics().list()) codes.push_back(d.code);
  CHECK(codes == std::vector{Code::RDU2007, Code::RDU2004, Code::RDU2003, Code::RDU2006});
  const std::string said = result.diagnostics().to_text();
  CHECK(said.find("did you mean 'hop_cycles'?") != std::string::npos);
  CHECK(said.find("did you mean 'ring'?") != std::string::npos);
}

TEST_CASE("text that is hostile is refused without harm") {
  CHECK(read_target("", "t").diagnostics().contains(Code::RDU2004));
  CHECK(read_target(std::string("name = \"a\0b\"", 12), "t").diagnostics().contains(Code::RDU2002));
  CHECK(read_target("\xff", "t").diagnostics().contains(Code::RDU2002));
  CHECK(read_target(std::string(2 << 20, '#'), "t").diagnostics().contains(Code::RDU2002));
  CHECK(read_target("a = " + std::string(100000, '['), "t").diagnostics().contains(Code::RDU2002));
  CHECK(read_target("[[[", "t").diagnostics().contains(Code::RDU2002));
  CHECK(read_target("\uFE38", "t").diagnostics().contains(Code::RDU2002));
  std::string nested;
  for (int i = 0; i < 500000; ++i) nested += "a.";
  CHECK(read_target(nested + "a = 1", "t").diagnostics().contains(Code::RDU2002));
  std::string many;
  for (int i = 0; i < 10000; ++i) many += "k" + std::to_string(i) + " = 1\n";
  const auto flood = read_target(many, "t");
  REQUIRE_FALSE(flood.ok());
  CHECK(flood.diagnostics().error_count() > 10000);
  CHECK(flood.diagnostics().list().size() == Diagnostics::limit);
}

TEST_CASE("an integer that no double holds is judged by its size") {
  const std::string good = get(root / "tests/support/barrier.toml");
  const auto with = [&](const std::string& clock) {
    std::string text = good;
    const std::size_t at = text.find("clock_ghz ");
    return read_target(text.replace(at, text.find('\n', at) - at, "clock_ghz = { " + clock + " }"), "t");
  };
  CHECK(with("value = 1, assumed = 'a', range = [0, 9007199254740993]").ok());
  for (const char* clock : {"value = 9007199254740993, published = 'a'", "value = 9223372036854775807, published = 'a'",
                            "value = -9223372036854775808, published = 'a'",
                            "value = 1, assumed = 'a', range = [9007199254740993, 9223372036854775807]"}) {
    CAPTURE(clock);
    const auto result = with(clock);
    CHECK(result.diagnostics().error_count() == 1);
    CHECK(result.diagnostics().contains(Code::RDU2006));
  }
}

TEST_CASE("a mutated target is read or refused, and never anything else") {
  const std::string good = get(root / "tests/support/barrier.toml");
  std::mt19937_64 random(5);
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::string text = good;
    for (std::uint64_t edits = random() % 4 + 1; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      constexpr std::string_view alphabet = "{}[]=\",.0129-#\nex ";
      switch (random() % 3) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.erase(at, random() % 40 + 1);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
      }
    }
    const auto result = read_target(text, "t");
    CHECK(result.ok() != result.diagnostics().has_errors());
    if (!result.ok()) ++refused;
  }
  CHECK(refused > 100);
}

}  // namespace rdusim::errors_test
