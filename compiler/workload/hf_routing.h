// Which experts each token goes to, recorded: a text file with a line a token, its experts by number, separated by commas;
// lines that begin with # are comments.
//
//   # experts chosen for each token, 8 experts, top-2
//   6,2
//   7,4
//
// A program made for a routing computes what the model computes where its router chooses so. What the router would have
// chosen from the values at hand is not asked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/support/result.h"
#include "compiler/workload/hf_decoder_config.h"

namespace rdusim {

struct ExpertRouting {
  std::string source;                                // "mixtral-8x7b-b64.csv (sha256 0a1b2c3d4e5f)"
  std::vector<std::vector<std::int64_t>> of_tokens;  // by token: its experts, rising

  // Tokens that go to an expert, rising.
  std::vector<std::int64_t> tokens_of(std::int64_t expert) const;
};

// The first `tokens` tokens of the file. Errors: RDU1001 and its kind (file.h); RDU1068 with the line for what is no list of
// `experts.per_token` different numbers below `experts.experts`, and where there are fewer tokens.
Result<ExpertRouting> read_routing(const std::string& path, const DecoderExperts& experts, std::int64_t tokens);

}  // namespace rdusim
