// A decoder-only language model as its config.json describes it: what stands between the JSON and everything that is
// worked out from it (sizes, weights, the operator graph).
//
//   layer     x += o(attention(rotary(q), rotary(k), v)) of norm(x); then x += down(act(gate) up) of norm(x)
//   weights   as the model's library stores them: a linear layer from i to o columns is [o, i]
//   extents   of tensors; each within the limits below, so that no count of elements or bytes of a model overflows 63
//   bits source    the configuration and modelling files of each architecture in github.com/huggingface/transformers
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/dtype.h"

namespace rdusim {

// Greatest values that are accepted. Experts x 3 matrices x hidden x intermediate x layers stays below 2^62.
struct DecoderLimits {
  static constexpr std::int64_t hidden = std::int64_t{1} << 17;
  static constexpr std::int64_t intermediate = std::int64_t{1} << 20;
  static constexpr std::int64_t attention_width = std::int64_t{1} << 18;  // heads x their width
  static constexpr std::int64_t layers = std::int64_t{1} << 10;
  static constexpr std::int64_t experts = std::int64_t{1} << 12;
  static constexpr std::int64_t vocabulary = std::int64_t{1} << 24;
  static constexpr std::int64_t positions = std::int64_t{1} << 30;
};

enum class DecoderFamily : std::uint8_t {
  llama,
  mistral,
  qwen2,
  qwen3,
  qwen3_moe,
  mixtral,
  gemma,
  gemma2,
  gemma3,
  phi3,
  deepseek_v3,
  gpt_oss,
};

// The function between gate and down: SwiGLU's or GeGLU's.
enum class GateActivation : std::uint8_t { silu, gelu, gelu_tanh };

// gpt-oss: g = min(gate, limit), u = max(-limit, min(up, limit)); what down takes is (u + 1) (g sigmoid(slope g)).
struct ClampedGate {
  double limit = 7;
  double slope = 1.702;
  friend bool operator==(const ClampedGate&, const ClampedGate&) = default;
};

enum class RotaryScalingKind : std::uint8_t { none, linear, llama3, yarn, longrope, dynamic };

// How positions beyond those of training are reached. `none`: angle of pair i at position p is p theta^(-2i / d).
struct RotaryScaling {
  RotaryScalingKind kind = RotaryScalingKind::none;
  double factor = 1;
  double low_frequency_factor = 1;         // llama3
  double high_frequency_factor = 4;        // llama3
  std::int64_t original_positions = 0;     // llama3, yarn, longrope: positions of training
  double fast_turns = 32;                  // yarn: pairs that turn so often within those are as they were
  double slow_turns = 1;                   // yarn: pairs that turn no more often are slower by `factor`
  bool whole_pairs = true;                 // yarn: the ramp between the two begins and ends at a pair
  double amplitude = 1;                    // yarn, longrope: of cosines and sines
  std::vector<double> short_factors = {};  // longrope, a pair each: of contexts within the positions of training
  std::vector<double> long_factors = {};   // longrope: of longer ones
  friend bool operator==(const RotaryScaling&, const RotaryScaling&) = default;
};

// Mixture of experts: a router takes `per_token` of `experts`, each a gated MLP of `intermediate` columns; a shared
// one, where there is any, serves every token.
struct DecoderExperts {
  std::int64_t experts = 0;
  std::int64_t per_token = 0;  // 1 to experts
  std::int64_t intermediate = 0;
  std::int64_t shared_intermediate = 0;  // 0: none
  bool renormalised = true;              // an expert's weight is its share among the chosen ones, not among all
  bool router_bias = false;              // one number an expert (gpt-oss); DeepSeek-V3's correction counts as one
  bool biases = false;                   // of the experts' matrices
  bool sigmoid_scores = false;  // DeepSeek-V3: of each score by itself, where others take a softmax over scores
  double routed_scale = 1;      // DeepSeek-V3: of the weights of the chosen ones
  friend bool operator==(const DecoderExperts&, const DecoderExperts&) = default;
};

// Multi-head latent attention (DeepSeek): queries and keys pass through narrow layers, and the cache holds the keys'.
struct LatentAttention {
  std::int64_t query_rank = 0;  // 0: queries are made directly
  std::int64_t key_value_rank = 0;
  std::int64_t plain_width = 0;   // of a head's query and key, without positions
  std::int64_t rotary_width = 0;  // with them; one key for all heads
  std::int64_t value_width = 0;
  bool interleaved = true;  // the file has the two columns of a rotating pair side by side, and not half a head apart
  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

struct DecoderLayer {
  std::int64_t window = 0;    // positions that attention sees, its own included; 0: all before it
  bool experts = false;       // its MLP is DecoderConfig::experts
  bool local_rotary = false;  // Gemma 3: the angles of its sliding layers, rotary_local_theta and no scaling
  friend bool operator==(const DecoderLayer&, const DecoderLayer&) = default;
};

struct DecoderConfig {
  std::string where;         // the file, for messages; not part of what the model is
  std::string architecture;  // "LlamaForCausalLM"
  DecoderFamily family = DecoderFamily::llama;

  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;  // of dense layers
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;    // divides heads
  std::int64_t head_width = 0;  // even; heads x head_width need not be hidden
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;  // the longest context
  std::vector<DecoderLayer> layers;

  double epsilon = 0;
  double rotary_theta = 0;
  double rotary_local_theta = 0;
  std::int64_t rotary_columns = 0;  // of a head that rotate; fewer than head_width: the first ones
  RotaryScaling scaling;
  double attention_scale = 0;  // of query times key
  GateActivation activation = GateActivation::silu;
  std::optional<ClampedGate> clamped_gate;  // of experts

  bool tied_embeddings = false;  // the head is the embedding
  bool query_key_value_bias = false;
  bool attention_output_bias = false;
  bool mlp_bias = false;
  bool query_key_norm = false;          // an RMS norm of each head's query and key, one weight for all heads
  bool fused_projections = false;       // qkv_proj and gate_up_proj (Phi-3)
  bool attention_sinks = false;         // gpt-oss: a number a head joins each softmax
  bool norm_adds_one = false;           // Gemma: a norm multiplies by 1 + w
  bool norm_after = false;              // Gemma 2 and 3: attention and MLP are also normalised before they are added
  bool embedding_scaled = false;        // Gemma: by the square root of hidden
  std::optional<double> attention_cap;  // Gemma 2: scores become cap tanh(score / cap)
  std::optional<double> logit_cap;
  std::optional<DecoderExperts> experts;
  std::optional<LatentAttention> latent;

  DType dtype = DType::bf16;  // that the weights were published in; bf16 where rdusim has it not
  std::string quantised;      // how its files have weights that need scales beside them: "mxfp4", "fp8"; else empty

  std::int64_t query_width() const { return heads * head_width; }
  std::int64_t key_value_width() const { return kv_heads * head_width; }
};

}  // namespace rdusim
