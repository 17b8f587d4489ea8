// Recorded experts of tokens: what the file says, and what is refused with its line.
#include "compiler/workload/hf_routing.h"

#include <doctest/doctest.h>

#include "tests/compiler/workload/temporary_folder.h"

namespace rdusim::hf_routing_test {

namespace {

constexpr DecoderExperts two_of_eight{.experts = 8, .per_token = 2, .intermediate = 32};

std::string refusal(const TemporaryFolder& folder, const std::string& text, std::int64_t tokens) {
  const std::string path = folder.write("routing.csv", text);
  const auto routing = read_routing(path, two_of_eight, tokens);
  REQUIRE(!routing.ok());
  REQUIRE(routing.diagnostics().list().size() == 1);
  const Diagnostic& d = routing.diagnostics().list().front();
  CHECK(d.code == Code::RDU1068);
  return d.where.substr(path.size()) + " " + d.message;
}

}  // namespace

TEST_CASE("a line a token, its experts rising, as many tokens as are asked for") {
  const TemporaryFolder folder;
  const auto routing =
      read_routing(folder.write("routing.csv", "# comment\n6, 2\n\n7,4\r\n3,2\n0,1\n"), two_of_eight, 3);
  REQUIRE(routing.ok());
  CHECK(routing->of_tokens == std::vector<std::vector<std::int64_t>>{{2, 6}, {4, 7}, {2, 3}});
  CHECK(routing->tokens_of(2) == std::vector<std::int64_t>{0, 2});
  CHECK(routing->tokens_of(5).empty());
  CHECK(routing->source.starts_with("routing.csv (sha256 "));
}

TEST_CASE("a routing that is none is refused with its line") {
  const TemporaryFolder folder;
  CHECK(refusal(folder, "6,2\n6;2\n", 2) == ":2 a token's experts are numbers, separated by commas");
  CHECK(refusal(folder, "6,-2\n", 1) == ":1 a token's experts are numbers, separated by commas");
  CHECK(refusal(folder, "99999999999999999999,2\n", 1) == ":1 a token's experts are numbers, separated by commas");
  CHECK(refusal(folder, "# x\n6,6\n", 1) == ":2 a token goes to an expert twice");
  CHECK(refusal(folder, "6,8\n", 1) == ":1 a token goes to 2 experts, the greatest number 8; the model's go to 2 of 8");
  CHECK(refusal(folder, "6,2,1\n", 1) ==
        ":1 a token goes to 3 experts, the greatest number 6; the model's go to 2 of 8");
  CHECK(refusal(folder, "6,2\n", 2) == " it has the experts of 1 tokens, and the step has 2");
}

}  // namespace rdusim::hf_routing_test
