// Every rule of the verifier has a program in tests/errors/programs that breaks just it. To write them again from
// broken_programs.h: RDUSIM_ACCEPT_GOLDEN=1 test_errors, and read the diff.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/program/program_json.h"
#include "tests/errors/broken_programs.h"

namespace rdusim::programs_test {
namespace {

std::string path_of(Code code) {
  return fmt::format("{}/tests/errors/programs/RDU{}.json", RDUSIM_SOURCE_DIR, static_cast<unsigned>(code));
}

SpatialProgram with_target(SpatialProgram p) {
  p.header.target_text = sample::target_text();
  p.header.target_sha256 = sha256(std::string_view(p.header.target_text));
  return p;
}

TEST_CASE("the sample machine is the same as a file and put together by hand, as far as the rules ask") {
  const auto read = read_target(sample::target_text(), "sample");
  INFO(read.diagnostics().to_text());
  REQUIRE(read.ok());
  const Target built = sample::target();
  CHECK(read->links.size() == built.links.size());
  for (std::uint32_t from = 0; from < built.chips; ++from)
    for (std::uint32_t to = 0; to < built.chips; ++to)
      CHECK(route(*read, ChipId{from}, ChipId{to}) == route(built, ChipId{from}, ChipId{to}));
  for (std::uint32_t chips : {1u, 2u, 4u}) CHECK(verify(sample::program(sample::over(chips)), *read).to_text() == "");
}

TEST_CASE("every rule of a program has a file that breaks just it") {
  std::size_t files = 0;
  for (const sample::Broken& broken : sample::broken_programs()) {
    const std::string path = path_of(broken.code);
    INFO(path);
    const SpatialProgram made = with_target(broken.make());
    if (std::getenv("RDUSIM_ACCEPT_GOLDEN") != nullptr) REQUIRE(write_file(path, to_text(to_json(made))).ok());
    const auto text = read_file(path, 1 << 22);
    REQUIRE(text.ok());
    const auto json = parse_json(*text, path, Code::RDU5006);
    REQUIRE(json.ok());
    const auto program = program_from_json(*json, path);
    INFO(program.diagnostics().to_text());
    REQUIRE(program.ok());
    CHECK(*program == made);
    const auto target = read_target(program->header.target_text, path);
    REQUIRE(target.ok());
    const Diagnostics found = verify(*program, *target);
    INFO(found.to_text());
    CHECK(found.contains(broken.code));
    for (const Diagnostic& d : found.list()) CHECK(d.code == broken.code);
    ++files;
  }
  CHECK(files ==
        static_cast<std::size_t>(std::distance(
            std::filesystem::directory_iterator(std::string(RDUSIM_SOURCE_DIR) + "/tests/errors/programs"), {})));
}

// Replaces one to four numbers of a JSON text, none of those that are part of a string.
std::string with_other_numbers(std::string text, std::mt19937& random) {
  static constexpr const char* numbers[] = {"0",
                                            "1",
                                            "2",
                                            "3",
                                            "7",
                                            "16",
                                            "33",
                                            "255",
                                            "65536",
                                            "1000000",
                                            "-1",
                                            "99999",
                                            "4294967295",
                                            "9223372036854775807",
                                            "18446744073709551615"};
  const auto digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  for (std::size_t edits = 1 + random() % 4; edits > 0; --edits) {
    std::size_t at = random() % text.size();
    while (!digit(at)) at = (at + 1) % text.size();
    std::size_t end = at;
    while (at > 0 && digit(at - 1)) --at;
    while (digit(end)) ++end;
    const char before = text[at - 1];
    if (before == ' ' || before == '[') text.replace(at, end - at, numbers[random() % std::size(numbers)]);
  }
  return text;
}

TEST_CASE("whatever numbers a program has, it is verified and printed without harm") {
  std::vector<std::string> bases;
  for (std::uint32_t chips : {1u, 2u, 4u}) bases.push_back(to_text(to_json(sample::program(sample::over(chips)))));
  for (const sample::Broken& broken : sample::broken_programs()) bases.push_back(to_text(to_json(broken.make())));
  std::mt19937 random(20240607);
  std::size_t read = 0;
  std::size_t refused = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto json = parse_json(with_other_numbers(bases[random() % bases.size()], random), "edited", Code::RDU5006);
    if (!json.ok()) continue;
    const auto program = program_from_json(*json, "edited");
    if (!program.ok()) continue;
    ++read;
    const Diagnostics found = verify(*program, sample::target());
    refused += found.has_errors() ? 1 : 0;
    for (const Diagnostic& d : found.list()) CHECK(static_cast<unsigned>(d.code) / 1000 >= 2);
    CHECK_FALSE(print(*program).empty());
    CHECK_FALSE(print_dot(*program).empty());
  }
  CHECK(read > 500);
  CHECK(refused > read / 2);
}

TEST_CASE("no rule of a program is without its file") {
  for (const CodeInfo& code : all_codes()) {
    const auto number = static_cast<unsigned>(code.code);
    if (number / 1000 == 3) CHECK_MESSAGE(std::filesystem::exists(path_of(code.code)), "RDU", number);
  }
}

}  // namespace
}  // namespace rdusim::programs_test
