// What is asked of a decoder: which step, for how many sequences, how far in, in which types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/support/dtype.h"
#include "compiler/support/result.h"
#include "compiler/workload/hf_decoder_config.h"

namespace rdusim {

enum class DecoderPhase : std::uint8_t {
  decode,   // one token a sequence, after context - 1 others whose keys and values are in the cache
  prefill,  // context tokens a sequence, and an empty cache
};

// Where the experts of a mixture are, over several chips.
enum class ExpertPlacement : std::uint8_t {
  sharded,     // a part of each on every chip
  parallel,    // each on one chip, which has all tokens from the sum behind attention, and sends its results to all
  all_to_all,  // each on one chip; tokens are dealt out too, travel to the chips of their experts, and back
};

struct DecoderRequest {
  DecoderPhase phase = DecoderPhase::decode;
  std::int64_t batch = 1;                    // sequences
  std::optional<std::int64_t> context = {};  // positions that the last token sees, its own included
  std::optional<std::int64_t> layers = {};   // the first so many; absent: all
  std::optional<DType> dtype = {};           // bf16, fp32 or an fp8; absent: the weights' own
  std::string routing = {};                  // file of the tokens' experts (hf_routing.h), of a model that has some
  bool sequence_parallel = false;            // what is not in heads or in the MLP is spread over chips by its rows
  ExpertPlacement experts = ExpertPlacement::sharded;
  std::uint32_t chips = 1;  // over which tokens are dealt out (all_to_all); nothing else depends on it
};

// The types of what a decoder holds. fp8 is for the linear layers of attention and MLP; embedding, head, norms, router,
// biases, activations and the cache stay in bf16, as published fp8 checkpoints have it.
struct DecoderTypes {
  DType linear = DType::bf16;
  DType other = DType::bf16;
};

// The context asked for; else 4096, or all positions of a model that has fewer.
std::int64_t context_of(const DecoderConfig& config, const DecoderRequest& request);

DecoderTypes types_of(const DecoderConfig& config, const DecoderRequest& request);

// The config of what is asked for (fewer layers). Errors: RDU1046.
Result<DecoderConfig> asked_of(DecoderConfig config, const DecoderRequest& request);

// "bf16", "fp32", "fp8" (e4m3), "fp8_e4m3", "fp8_e5m2"; "decode", "prefill". Errors: RDU1046.
Result<DType> decoder_dtype(const std::string& text);
Result<DecoderPhase> decoder_phase(const std::string& text);

}  // namespace rdusim
