#include "compiler/workload/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "compiler/support/file.h"
#include "compiler/workload/hf_values.h"

namespace rdusim {
namespace {

constexpr std::uint64_t config_limit = std::uint64_t{1} << 20;  // bytes; the longest published ones have some 10 KB
// Bounds of numbers: far beyond what models have, and near enough that nothing made of them overflows.
constexpr double least = 1e-6;
constexpr double least_epsilon = 1e-30;
constexpr double no_limit = 1e12;

struct Architecture {
  std::string_view name;
  DecoderFamily family;
};
constexpr std::array<Architecture, 12> architectures = {{{"DeepseekV3ForCausalLM", DecoderFamily::deepseek_v3},
                                                         {"Gemma2ForCausalLM", DecoderFamily::gemma2},
                                                         {"Gemma3ForCausalLM", DecoderFamily::gemma3},
                                                         {"GemmaForCausalLM", DecoderFamily::gemma},
                                                         {"GptOssForCausalLM", DecoderFamily::gpt_oss},
                                                         {"LlamaForCausalLM", DecoderFamily::llama},
                                                         {"MistralForCausalLM", DecoderFamily::mistral},
                                                         {"MixtralForCausalLM", DecoderFamily::mixtral},
                                                         {"Phi3ForCausalLM", DecoderFamily::phi3},
                                                         {"Qwen2ForCausalLM", DecoderFamily::qwen2},
                                                         {"Qwen3ForCausalLM", DecoderFamily::qwen3},
                                                         {"Qwen3MoeForCausalLM", DecoderFamily::qwen3_moe}}};

// Keys that say nothing of what is computed when the model is used: tokens' numbers, training, the library's own.
constexpr std::array harmless_keys = {"_name_or_path",
                                      "architectures",
                                      "attention_dropout",
                                      "attn_implementation",
                                      "auto_map",
                                      "aux_loss_alpha",
                                      "bos_token_id",
                                      "cache_implementation",
                                      "embd_pdrop",
                                      "eos_token_id",
                                      "ep_size",
                                      "head_dim",
                                      "hidden_dropout",
                                      "initial_context_length",
                                      "initializer_range",
                                      "is_llama_config",
                                      "max_window_layers",
                                      "model_type",
                                      "num_nextn_predict_layers",
                                      "original_max_position_embeddings",
                                      "output_router_logits",
                                      "pad_token_id",
                                      "pretraining_tp",
                                      "qk_head_dim",
                                      "resid_pdrop",
                                      "router_aux_loss_coef",
                                      "router_jitter_noise",
                                      "seq_aux",
                                      "sliding_window",
                                      "transformers_version",
                                      "transformers.js_config",
                                      "use_cache",
                                      "use_mrope"};

bool is_gemma(DecoderFamily f) {
  return f == DecoderFamily::gemma || f == DecoderFamily::gemma2 || f == DecoderFamily::gemma3;
}
bool is_qwen(DecoderFamily f) {
  return f == DecoderFamily::qwen2 || f == DecoderFamily::qwen3 || f == DecoderFamily::qwen3_moe;
}

class ConfigReader {
 public:
  ConfigReader(const Json& root, const std::string& where) : root_(root), values_(root, where, "", out_) {
    config_.where = where;
  }

  Result<DecoderConfig> read() {
    if (!read_architecture()) return out_;
    read_extents();
    read_heads();
    read_rotary();
    read_mlp();
    read_flags();
    read_quantisation();
    if (!out_.has_errors()) read_layers();
    values_.warn_of_unread({harmless_keys.begin(), harmless_keys.end()});
    if (out_.has_errors()) return out_;
    return {std::move(config_), std::move(out_)};
  }

 private:
  bool is(DecoderFamily family) const { return config_.family == family; }

  bool read_architecture() {
    const auto names = values_.texts("architectures");
    if (!names) {
      if (!out_.has_errors())
        values_.error(Code::RDU1005, "", "'architectures' is missing").suggest("it is one of {}", list_of_known());
      return false;
    }
    if (names->size() != 1) {
      values_.error(Code::RDU1007, "architectures",
                    fmt::format("'architectures' lists {} names, where one is asked for", names->size()));
      return false;
    }
    const std::string& name = names->front();
    const auto* const found =
        std::find_if(architectures.begin(), architectures.end(), [&](const Architecture& a) { return a.name == name; });
    if (found == architectures.end()) {
      Diagnostic& d =
          values_.error(Code::RDU1041, "architectures", fmt::format("'{}' is not an architecture that is known", name));
      const auto known = known_architectures();
      if (const auto near = nearest(name, known); !near.empty()) d.suggest("did you mean '{}'?", near);
      d.suggest("those known are {}", list_of_known());
      return false;
    }
    config_.architecture = name;
    config_.family = found->family;
    return true;
  }

  static std::string list_of_known() { return fmt::format("{}", fmt::join(known_architectures(), ", ")); }

  void read_extents() {
    config_.hidden = values_.required_integer("hidden_size", 1, DecoderLimits::hidden);
    config_.intermediate = values_.required_integer("intermediate_size", 1, DecoderLimits::intermediate);
    config_.vocabulary = values_.required_integer("vocab_size", 1, DecoderLimits::vocabulary);
    config_.positions = values_.required_integer("max_position_embeddings", 1, DecoderLimits::positions);
    config_.epsilon = values_.required_number("rms_norm_eps", least_epsilon, 1);
    const std::int64_t layers = values_.required_integer("num_hidden_layers", 1, DecoderLimits::layers);
    config_.layers.resize(static_cast<std::size_t>(layers));
    for (const std::string_view key : {"torch_dtype", "dtype"}) {
      if (values_.text(key) == "float32") config_.dtype = DType::fp32;
    }
  }

  void read_heads() {
    config_.heads = values_.required_integer("num_attention_heads", 1, DecoderLimits::attention_width);
    config_.kv_heads =
        values_.integer("num_key_value_heads", 1, DecoderLimits::attention_width).value_or(config_.heads);
    if (is(DecoderFamily::deepseek_v3)) {
      read_latent();
    } else if (const auto given = values_.integer("head_dim", 1, DecoderLimits::attention_width)) {
      config_.head_width = *given;
    } else if (is_gemma(config_.family)) {
      config_.head_width = 256;  // what the library takes where the key is absent
    } else if (is(DecoderFamily::qwen3) || is(DecoderFamily::qwen3_moe)) {
      config_.head_width = 128;
    } else if (config_.heads > 0 && config_.hidden > 0) {
      if (config_.hidden % config_.heads != 0) {
        values_
            .error(
                Code::RDU1042, "num_attention_heads",
                fmt::format("{} heads do not divide the hidden size {}: {:.2f} columns a head", config_.heads,
                            config_.hidden, static_cast<double>(config_.hidden) / static_cast<double>(config_.heads)))
            .suggest("correct 'num_attention_heads' or 'hidden_size', or give 'head_dim'");
        return;
      }
      config_.head_width = config_.hidden / config_.heads;
    }
    if (config_.heads > 0 && config_.kv_heads > 0 && config_.heads % config_.kv_heads != 0) {
      values_.error(Code::RDU1042, "num_key_value_heads",
                    fmt::format("{} key-value heads do not divide the {} heads that share them", config_.kv_heads,
                                config_.heads));
    }
    if (config_.heads * config_.head_width > DecoderLimits::attention_width) {
      values_.error(Code::RDU1043, "num_attention_heads",
                    fmt::format("{} heads of {} columns are wider than {}", config_.heads, config_.head_width,
                                DecoderLimits::attention_width));
    }
    const auto& latent = config_.latent;
    const std::int64_t scored = latent ? latent->plain_width + latent->rotary_width : config_.head_width;
    config_.attention_scale = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(scored, 1)));
    if (is(DecoderFamily::gemma2) || is(DecoderFamily::gemma3)) {
      if (const auto scalar = values_.number("query_pre_attn_scalar", least, 1e6)) {
        config_.attention_scale = 1 / std::sqrt(*scalar);
      } else {
        config_.attention_scale = 1 / std::sqrt(256.0);  // the library's
      }
    }
  }

  void read_latent() {
    constexpr std::int64_t widest = 1 << 16;
    LatentAttention& latent = config_.latent.emplace();
    latent.query_rank = values_.integer("q_lora_rank", 1, DecoderLimits::hidden).value_or(0);
    latent.key_value_rank = values_.required_integer("kv_lora_rank", 1, DecoderLimits::hidden);
    latent.plain_width = values_.required_integer("qk_nope_head_dim", 1, widest);
    latent.rotary_width = values_.required_integer("qk_rope_head_dim", 2, widest);
    latent.value_width = values_.required_integer("v_head_dim", 1, widest);
    latent.interleaved = values_.boolean("rope_interleave").value_or(true);
    config_.head_width = std::max(latent.plain_width + latent.rotary_width, latent.value_width);
  }

  // ---- rotary embedding

  void read_rotary() {
    const bool mixtral = is(DecoderFamily::mixtral);
    config_.rotary_theta = values_.number("rope_theta", least, no_limit).value_or(mixtral ? 1e6 : 10000);
    if (is(DecoderFamily::gemma3))
      config_.rotary_local_theta = values_.number("rope_local_base_freq", least, no_limit).value_or(10000);
    read_scaling("rope_scaling");
    read_scaling("rope_parameters");  // newer files: the same, with the base in it
    const double share = values_.number("partial_rotary_factor", least, 1).value_or(1);
    const std::int64_t width = config_.latent ? config_.latent->rotary_width : config_.head_width;
    config_.rotary_columns = static_cast<std::int64_t>(static_cast<double>(width) * share);
    if (width > 0 && (config_.rotary_columns % 2 != 0 || config_.rotary_columns == 0)) {
      values_.error(Code::RDU1043, config_.latent ? "qk_rope_head_dim" : "head_dim",
                    fmt::format("{} columns of a head rotate, which are no pairs", config_.rotary_columns));
    }
    check_factors();
    values_.must_be("rope_interleaved", false);
    if (!is(DecoderFamily::deepseek_v3)) values_.must_be("rope_interleave", false);
  }

  void read_scaling(std::string_view key) {
    const Json* node = values_.find(key);
    if (node == nullptr) return;
    if (node->as_object() == nullptr) {
      values_.error(Code::RDU1006, key,
                    fmt::format("'{}' is {}, where an object is asked for", key, node->type_name()));
      return;
    }
    HfValues inner(*node, config_.where, std::string(key), out_);
    if (const auto theta = inner.number("rope_theta", least, no_limit)) config_.rotary_theta = *theta;
    auto kind = inner.text("rope_type");
    const auto older = inner.text("type");
    if (!kind) kind = older;
    if (!kind) {
      if (!out_.has_errors()) inner.error(Code::RDU1005, "", fmt::format("'{}.rope_type' is missing", key));
      return;
    }
    RotaryScaling& s = config_.scaling;
    if (*kind == "default") {
      s.kind = RotaryScalingKind::none;
    } else if (*kind == "linear") {
      s.kind = RotaryScalingKind::linear;
      s.factor = inner.required_number("factor", least, no_limit);
    } else if (*kind == "llama3") {
      s.kind = RotaryScalingKind::llama3;
      s.factor = inner.required_number("factor", least, no_limit);
      s.low_frequency_factor = inner.required_number("low_freq_factor", least, no_limit);
      s.high_frequency_factor = inner.required_number("high_freq_factor", least, no_limit);
      s.original_positions = inner.required_integer("original_max_position_embeddings", 1, DecoderLimits::positions);
      if (!out_.has_errors() && s.high_frequency_factor <= s.low_frequency_factor) {
        inner.error(Code::RDU1043, "high_freq_factor",
                    fmt::format("'{}.high_freq_factor' {} is not above low_freq_factor {}", key,
                                s.high_frequency_factor, s.low_frequency_factor));
      }
    } else if (*kind == "yarn") {
      read_yarn(inner);
    } else if (*kind == "longrope" || *kind == "su") {
      read_longrope(inner);
    } else if (*kind == "dynamic") {
      s.kind = RotaryScalingKind::dynamic;
    } else {
      inner.error(Code::RDU1007, "rope_type",
                  fmt::format("'{}' scales by '{}', which is none of default, linear, dynamic, llama3, longrope, yarn",
                              key, *kind));
      return;
    }
    if (s.kind == RotaryScalingKind::dynamic) inner.number("factor", least, no_limit);
    inner.warn_of_unread({});
  }

  // Positions of training: within the object, beside it, or the model's.
  std::int64_t original_positions(HfValues& inner) {
    const auto own = inner.integer("original_max_position_embeddings", 1, DecoderLimits::positions);
    const auto beside = values_.integer("original_max_position_embeddings", 1, DecoderLimits::positions);
    return own ? *own : beside.value_or(config_.positions);
  }

  void read_yarn(HfValues& inner) {
    RotaryScaling& s = config_.scaling;
    s.kind = RotaryScalingKind::yarn;
    s.factor = inner.required_number("factor", least, no_limit);
    s.original_positions = original_positions(inner);
    s.fast_turns = inner.number("beta_fast", least, no_limit).value_or(32);
    s.slow_turns = inner.number("beta_slow", least, no_limit).value_or(1);
    s.whole_pairs = inner.boolean("truncate").value_or(true);
    if (!out_.has_errors() && s.fast_turns <= s.slow_turns)
      inner.error(Code::RDU1043, "beta_fast",
                  fmt::format("'beta_fast' {} is not above beta_slow {}", s.fast_turns, s.slow_turns));
    const auto grown = [&](double by) { return s.factor <= 1 ? 1.0 : 0.1 * by * std::log(s.factor) + 1; };
    const auto one = inner.number("mscale", least, no_limit), all = inner.number("mscale_all_dim", least, no_limit);
    // DeepSeek's scores are scaled too: by the square of what one of cosines and sines would be.
    if (config_.latent && all) config_.attention_scale *= grown(*all) * grown(*all);
    s.amplitude =
        inner.number("attention_factor", least, no_limit).value_or(one && all ? grown(*one) / grown(*all) : grown(1));
  }

  void read_longrope(HfValues& inner) {
    RotaryScaling& s = config_.scaling;
    s.kind = RotaryScalingKind::longrope;
    s.original_positions = original_positions(inner);
    s.short_factors = inner.numbers("short_factor", least, no_limit);
    s.long_factors = inner.numbers("long_factor", least, no_limit);
    const double grown = static_cast<double>(config_.positions) / static_cast<double>(s.original_positions);
    const double amplitude = grown <= 1 || s.original_positions == 1
                                 ? 1
                                 : std::sqrt(1 + std::log(grown) / std::log(static_cast<double>(s.original_positions)));
    inner.number("factor", least, no_limit);  // the library works it out
    s.amplitude = inner.number("attention_factor", least, no_limit).value_or(amplitude);
  }

  // A factor for each pair that turns.
  void check_factors() {
    const RotaryScaling& s = config_.scaling;
    if (s.kind != RotaryScalingKind::longrope || out_.has_errors()) return;
    const auto pairs = static_cast<std::size_t>(config_.rotary_columns / 2);
    for (const auto& [key, factors] :
         {std::pair("short_factor", &s.short_factors), std::pair("long_factor", &s.long_factors)})
      if (factors->size() != pairs)
        values_.error(Code::RDU1043, "rope_scaling",
                      fmt::format("'{}' has {} numbers, and {} pairs of columns turn", key, factors->size(), pairs));
  }

  // Sizes and operators are those of the dtype asked for; of files it matters (read_hf_model).
  void read_quantisation() {
    const Json* own = values_.find("quantization_config");
    if (own == nullptr) return;
    config_.quantised = HfValues(*own, config_.where, "quantization_config", out_).text("quant_method").value_or("");
    if (config_.quantised.empty()) config_.quantised = "by a method without a name";
  }

  // ---- MLP

  void read_mlp() {
    read_activation();
    switch (config_.family) {
      case DecoderFamily::mixtral:
        config_.experts = {.experts = values_.required_integer("num_local_experts", 1, DecoderLimits::experts),
                           .per_token = values_.required_integer("num_experts_per_tok", 1, DecoderLimits::experts),
                           .intermediate = config_.intermediate};
        break;
      case DecoderFamily::gpt_oss:
        config_.experts = {.experts = values_.required_integer("num_local_experts", 1, DecoderLimits::experts),
                           .per_token = experts_per_token(),
                           .intermediate = config_.intermediate,
                           .router_bias = true,
                           .biases = true};
        config_.clamped_gate = ClampedGate{.limit = values_.number("swiglu_limit", least, 1e6).value_or(7)};
        break;
      case DecoderFamily::qwen3_moe:
        config_.experts = {
            .experts = values_.required_integer("num_experts", 1, DecoderLimits::experts),
            .per_token = values_.required_integer("num_experts_per_tok", 1, DecoderLimits::experts),
            .intermediate = values_.required_integer("moe_intermediate_size", 1, DecoderLimits::intermediate)};
        config_.experts->renormalised = values_.boolean("norm_topk_prob").value_or(false);
        break;
      case DecoderFamily::deepseek_v3:
        read_deepseek_experts();
        break;
      default:
        break;
    }
    if (config_.experts && config_.experts->experts > 0 && config_.experts->per_token > config_.experts->experts) {
      values_.error(
          Code::RDU1043, "num_experts_per_tok",
          fmt::format("a token takes {} of {} experts", config_.experts->per_token, config_.experts->experts));
    }
  }

  std::int64_t experts_per_token() {
    // gpt-oss writes it twice.
    const auto other = values_.integer("experts_per_token", 1, DecoderLimits::experts);
    if (const auto n = values_.integer("num_experts_per_tok", 1, DecoderLimits::experts)) return *n;
    return other ? *other : values_.required_integer("num_experts_per_tok", 1, DecoderLimits::experts);
  }

  void read_deepseek_experts() {
    const std::int64_t each = values_.required_integer("moe_intermediate_size", 1, DecoderLimits::intermediate);
    const std::int64_t shared = values_.integer("n_shared_experts", 0, DecoderLimits::experts).value_or(0);
    config_.experts = {.experts = values_.required_integer("n_routed_experts", 1, DecoderLimits::experts),
                       .per_token = values_.required_integer("num_experts_per_tok", 1, DecoderLimits::experts),
                       .intermediate = each,
                       .shared_intermediate = each * shared,
                       .router_bias = true,
                       .sigmoid_scores = true};
    if (config_.experts->shared_intermediate > DecoderLimits::intermediate) {
      values_.error(
          Code::RDU1043, "n_shared_experts",
          fmt::format("{} shared experts of {} columns are wider than {}", shared, each, DecoderLimits::intermediate));
    }
    for (const std::string_view key : {"n_group", "topk_group"}) values_.integer(key, 1, DecoderLimits::experts);
    for (const auto& [key, known] : {std::pair("topk_method", "noaux_tc"), std::pair("scoring_func", "sigmoid")})
      if (const auto given = values_.text(key); given && *given != known)
        values_.error(Code::RDU1007, key,
                      fmt::format("'{}' is '{}'; this architecture has {} only", key, *given, known));
    config_.experts->routed_scale = values_.number("routed_scaling_factor", least, no_limit).value_or(2.5);
    config_.experts->renormalised = values_.boolean("norm_topk_prob").value_or(true);
  }

  void read_activation() {
    const auto plain = values_.text("hidden_act");
    const auto gemma = is_gemma(config_.family) ? values_.text("hidden_activation") : std::nullopt;
    std::string name = "silu";
    if (is_gemma(config_.family)) {
      // Gemma's files say "gelu" and mean its approximation by tanh; the library does not look at hidden_act.
      name = gemma.value_or("gelu_pytorch_tanh");
    } else if (plain) {
      name = *plain;
    }
    if (name == "silu" || name == "swish") {
      config_.activation = GateActivation::silu;
    } else if (name == "gelu") {
      config_.activation = GateActivation::gelu;
    } else if (name == "gelu_pytorch_tanh" || name == "gelu_new") {
      config_.activation = GateActivation::gelu_tanh;
    } else {
      values_.error(Code::RDU1007, gemma ? "hidden_activation" : "hidden_act",
                    fmt::format("'{}' is none of silu, gelu, gelu_pytorch_tanh", name));
    }
  }

  // ---- what else differs

  void read_flags() {
    config_.tied_embeddings = values_.boolean("tie_word_embeddings").value_or(is_gemma(config_.family));
    switch (config_.family) {
      case DecoderFamily::llama:
        config_.mlp_bias = values_.boolean("mlp_bias").value_or(false);
        read_attention_bias(false);
        break;
      case DecoderFamily::qwen3:
      case DecoderFamily::qwen3_moe:
        config_.query_key_norm = true;
        read_attention_bias(false);
        break;
      case DecoderFamily::gpt_oss:
        config_.attention_sinks = true;
        read_attention_bias(true);
        break;
      case DecoderFamily::qwen2:
        config_.query_key_value_bias = true;  // not a key: the architecture has them
        break;
      case DecoderFamily::gemma:
      case DecoderFamily::gemma2:
      case DecoderFamily::gemma3:
        read_gemma();
        break;
      case DecoderFamily::phi3:
        config_.fused_projections = true;
        values_.must_be("attention_bias", false);
        break;
      default:
        values_.must_be("attention_bias", false);
        break;
    }
  }

  void read_attention_bias(bool absent) {
    config_.query_key_value_bias = config_.attention_output_bias = values_.boolean("attention_bias").value_or(absent);
  }

  void read_gemma() {
    read_attention_bias(false);
    config_.norm_adds_one = config_.embedding_scaled = true;
    config_.norm_after = !is(DecoderFamily::gemma);
    config_.query_key_norm = is(DecoderFamily::gemma3);
    if (is(DecoderFamily::gemma)) return;
    config_.attention_cap = values_.number("attn_logit_softcapping", least, 1e6);
    config_.logit_cap = values_.number("final_logit_softcapping", least, 1e6);
    values_.must_be("use_bidirectional_attention", false);
  }

  // ---- layer by layer

  void read_layers() {
    const std::size_t count = config_.layers.size();
    const std::int64_t window = read_window();
    const std::vector<bool> sliding = sliding_layers();
    for (std::size_t i = 0; i < count; ++i) {
      DecoderLayer& layer = config_.layers[i];
      if (sliding[i] && window != 0) layer.window = window;
      layer.local_rotary = is(DecoderFamily::gemma3) && sliding[i];
    }
    read_expert_layers();
  }

  // 0: none.
  std::int64_t read_window() {
    const bool switched = !is_qwen(config_.family) || values_.boolean("use_sliding_window").value_or(false);
    const bool present = root_.find("sliding_window") != nullptr;
    const auto given = values_.integer("sliding_window", 1, DecoderLimits::positions);
    if (!switched) return 0;
    if (given) return *given;
    if (present) return 0;  // null
    switch (config_.family) {
      case DecoderFamily::mistral:
      case DecoderFamily::qwen2:
      case DecoderFamily::qwen3:
      case DecoderFamily::qwen3_moe:
      case DecoderFamily::gemma2:
      case DecoderFamily::gemma3:
        return 4096;  // what the library takes where the key is absent
      case DecoderFamily::gpt_oss:
        return 128;
      default:
        return 0;
    }
  }

  std::vector<bool> sliding_layers() {
    const std::size_t count = config_.layers.size();
    std::vector<bool> out(count);
    const std::int64_t pattern =
        is(DecoderFamily::gemma3) ? values_.integer("sliding_window_pattern", 1, 1024).value_or(6) : 2;
    const std::int64_t first = values_.integer("max_window_layers", 0, DecoderLimits::layers).value_or(28);
    const auto types = values_.texts("layer_types");
    if (types && types->size() != count) {
      values_.error(Code::RDU1043, "layer_types",
                    fmt::format("'layer_types' lists {} layers of {}", types->size(), count));
      return out;
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (types) {
        const std::string& type = (*types)[i];
        if (type != "sliding_attention" && type != "full_attention") {
          values_.error(Code::RDU1007, "layer_types",
                        fmt::format("'{}' is neither sliding_attention nor full_attention", type));
          return out;
        }
        out[i] = type == "sliding_attention";
        continue;
      }
      switch (config_.family) {
        case DecoderFamily::gemma2:
        case DecoderFamily::gemma3:
        case DecoderFamily::gpt_oss:
          out[i] = (static_cast<std::int64_t>(i) + 1) % pattern != 0;
          break;
        case DecoderFamily::qwen2:
        case DecoderFamily::qwen3:
        case DecoderFamily::qwen3_moe:
          out[i] = static_cast<std::int64_t>(i) >= first;
          break;
        default:
          out[i] = true;
      }
    }
    return out;
  }

  void read_expert_layers() {
    if (!config_.experts) return;
    std::int64_t step = 1;
    std::int64_t phase = 0;
    std::int64_t dense = 0;  // layers at the start
    if (is(DecoderFamily::qwen3_moe)) {
      step = values_.integer("decoder_sparse_step", 1, DecoderLimits::layers).value_or(1);
      phase = 1;
    } else if (is(DecoderFamily::deepseek_v3)) {
      dense = values_.integer("first_k_dense_replace", 0, DecoderLimits::layers).value_or(0);
      step = values_.integer("moe_layer_freq", 1, DecoderLimits::layers).value_or(1);
    }
    for (std::size_t i = 0; i < config_.layers.size(); ++i) {
      const auto n = static_cast<std::int64_t>(i);
      config_.layers[i].experts = n >= dense && (n + phase) % step == 0;
    }
    if (!is(DecoderFamily::qwen3_moe)) return;
    const Json* list = values_.find("mlp_only_layers");
    if (list == nullptr) return;
    const JsonArray* numbers = list->as_array();
    const auto in_range = [&](const Json& j) {
      const auto n = j.as_int64();
      return n && *n >= 0 && static_cast<std::uint64_t>(*n) < config_.layers.size();
    };
    if (numbers == nullptr || !std::all_of(numbers->begin(), numbers->end(), in_range)) {
      values_.error(Code::RDU1007, "mlp_only_layers", "'mlp_only_layers' is not a list of layers of the model");
      return;
    }
    for (const Json& j : *numbers) config_.layers[static_cast<std::size_t>(*j.as_int64())].experts = false;
  }

  const Json& root_;
  Diagnostics out_;
  HfValues values_;
  DecoderConfig config_;
};

}  // namespace

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> out;
  for (const Architecture& a : architectures) out.push_back(a.name);
  return out;
}

bool is_hf_model(const std::string& path) {
  std::error_code error;
  return path.ends_with(".json") || std::filesystem::is_directory(path, error);
}

std::string hf_config_path(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  return path.ends_with('/') ? path + "config.json" : path + "/config.json";
}

Result<DecoderConfig> read_hf_config(const std::string& path) {
  const std::string file = hf_config_path(path);
  const auto text = read_file(file, config_limit);
  if (!text) return text.diagnostics();
  return parse_hf_config(*text, file);
}

Result<DecoderConfig> parse_hf_config(std::string_view text, const std::string& where) {
  if (!is_utf8(text)) {
    Diagnostics out;
    out.error(Code::RDU1002, where, "the file is not UTF-8");
    return out;
  }
  const auto json = parse_json(text, where, Code::RDU1040, {.max_depth = 16, .max_bytes = config_limit});
  if (!json) return json.diagnostics();
  if (json->as_object() == nullptr) {
    Diagnostics out;
    out.error(Code::RDU1040, where, "the file holds {}, where an object is asked for", json->type_name());
    return out;
  }
  return ConfigReader(*json, where).read();
}

}  // namespace rdusim
