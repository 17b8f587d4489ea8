// What is read of a model's config.json, what is refused, and that nothing crashes on any text.
#include "compiler/workload/hf_config.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

namespace rdusim::hf_config_test {

namespace {

std::string shipped(const std::string& name) {
  return RDUSIM_SOURCE_DIR "/examples/" + name + "/config.json";
}
std::string published(const std::string& name) {
  return RDUSIM_SOURCE_DIR "/tests/compiler/workload/configs/" + name + ".json";
}

DecoderConfig config_of(const std::string& path) {
  const auto config = read_hf_config(path);
  INFO(path);
  INFO(config.diagnostics().to_text());
  REQUIRE(config.ok());
  CHECK(config.diagnostics().empty());
  return *config;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

// A small Llama, with `more` put before its end.
std::string llama(const std::string& more = "") {
  return R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 96, "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5)" +
         more + "}";
}

std::string with_architecture(const std::string& architecture, const std::string& more = "") {
  std::string text = llama(more);
  return text.replace(text.find("LlamaForCausalLM"), std::string("LlamaForCausalLM").size(), architecture);
}

DecoderConfig parsed(const std::string& text) {
  const auto config = parse_hf_config(text, "config.json");
  INFO(text);
  INFO(config.diagnostics().to_text());
  REQUIRE(config.ok());
  return *config;
}

}  // namespace

TEST_CASE("every example and every published config of the tests is read without a word") {
  std::size_t count = 0;
  for (const char* folder : {"/examples", "/tests/compiler/workload/configs"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(RDUSIM_SOURCE_DIR) + folder)) {
      if (entry.path().extension() != ".json") continue;
      config_of(entry.path().string());
      ++count;
    }
  }
  CHECK(count >= 17);
}

TEST_CASE("each bad config provokes just the code that its name begins with") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RDUSIM_SOURCE_DIR "/tests/errors/configs")) {
    const std::string code = entry.path().filename().string().substr(0, 7);
    // Those are read; what is asked of them cannot be done (hf_graph_test.cpp).
    if (code == "RDU1045" || code == "RDU1047" || code == "RDU1069") continue;
    ++count;
    const auto config = read_hf_config(entry.path().string());
    CAPTURE(entry.path().string());
    INFO(config.diagnostics().to_text());
    CHECK(!config.diagnostics().empty());
    for (const Diagnostic& d : config.diagnostics().list()) {
      CHECK("RDU" + std::to_string(static_cast<int>(d.code)) == code);
      CHECK(d.where.starts_with(entry.path().string()));
    }
    CHECK(config.ok() == (code == "RDU1044"));
  }
  CHECK(count >= 30);
}

TEST_CASE("a folder is read by its config.json, and a missing one is named") {
  CHECK(config_of(RDUSIM_SOURCE_DIR "/examples/llama-3.1-8b").hidden == 4096);
  CHECK(config_of(RDUSIM_SOURCE_DIR "/examples/llama-3.1-8b/").hidden == 4096);
  const auto missing = read_hf_config(RDUSIM_SOURCE_DIR "/examples/ci");
  REQUIRE(!missing.ok());
  CHECK(missing.diagnostics().contains(Code::RDU1001));
  CHECK(missing.diagnostics().to_text().find("examples/ci/config.json") != std::string::npos);
}

TEST_CASE("Llama-3.1-8B has the numbers of its file") {
  const DecoderConfig c = config_of(shipped("llama-3.1-8b"));
  CHECK(c.hidden == 4096);
  CHECK(c.intermediate == 14336);
  CHECK(c.layers.size() == 32);
  CHECK(c.heads == 32);
  CHECK(c.kv_heads == 8);
  CHECK(c.head_width == 128);
  CHECK(c.rotary_columns == 128);
  CHECK(c.vocabulary == 128256);
  CHECK(c.epsilon == 1e-5);
  CHECK(c.rotary_theta == 500000);
  CHECK(c.scaling == RotaryScaling{RotaryScalingKind::llama3, 8, 1, 4, 8192});
  CHECK(c.activation == GateActivation::silu);
  CHECK(!c.tied_embeddings);
  CHECK(c.attention_scale == doctest::Approx(0.08838834764831845).epsilon(1e-15));
}

TEST_CASE("a head's width is a key of its own: Qwen3-32B's 64 heads of 128 are wider than its hidden size") {
  const DecoderConfig c = config_of(shipped("qwen3-32b"));
  CHECK(c.hidden == 5120);
  CHECK(c.query_width() == 8192);
  CHECK(c.query_key_norm);
  CHECK(!c.query_key_value_bias);
}

TEST_CASE("24 heads of a hidden size of 2048 are refused where the file is read, with the columns a head") {
  const auto config = read_hf_config(RDUSIM_SOURCE_DIR "/tests/errors/configs/RDU1042-24-heads-of-2048.json");
  REQUIRE(!config.ok());
  CHECK(config.diagnostics().to_text().find("24 heads do not divide the hidden size 2048: 85.33 columns a head") !=
        std::string::npos);
}

TEST_CASE("8 key-value heads of 32 heads are taken, and heads that are no multiple of them are not") {
  CHECK(parsed(llama(R"(, "num_key_value_heads": 2)")).kv_heads == 2);
  CHECK(parsed(llama()).kv_heads == 4);  // absent: one a head
  CHECK(!parse_hf_config(llama(R"(, "num_key_value_heads": 8)"), "c").ok());
}

TEST_CASE("an unknown architecture is refused by name, with the list of those known") {
  const auto config = parse_hf_config(with_architecture("MambaForCausalLM"), "config.json");
  REQUIRE(!config.ok());
  const std::string text = config.diagnostics().to_text();
  CHECK(text.find("'MambaForCausalLM'") != std::string::npos);
  for (const std::string_view known : known_architectures()) CHECK(text.find(known) != std::string::npos);
  CHECK(parse_hf_config(with_architecture("LamaForCausalLM"), "c")
            .diagnostics()
            .to_text()
            .find("did you mean 'LlamaForCausalLM'?") != std::string::npos);
}

TEST_CASE("the known architectures are in order, and each of them reads a plain config") {
  const auto known = known_architectures();
  CHECK(std::is_sorted(known.begin(), known.end()));
  for (const std::string_view name : known) {
    const auto config = parse_hf_config(
        with_architecture(std::string(name), R"(, "num_local_experts": 4, "num_experts": 4, "n_routed_experts": 4,
          "num_experts_per_tok": 2, "moe_intermediate_size": 32, "kv_lora_rank": 8, "qk_nope_head_dim": 8,
          "qk_rope_head_dim": 4, "v_head_dim": 8)"),
        "config.json");
    INFO(config.diagnostics().to_text());
    CHECK_MESSAGE(config.ok(), name);
  }
}

TEST_CASE("everything that is missing is named at once") {
  const auto config = parse_hf_config(R"({"architectures": ["MixtralForCausalLM"]})", "config.json");
  REQUIRE(!config.ok());
  const std::string text = config.diagnostics().to_text();
  for (const char* key : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
                          "max_position_embeddings", "rms_norm_eps", "num_local_experts", "num_experts_per_tok"}) {
    CHECK_MESSAGE(text.find("'" + std::string(key) + "' is missing") != std::string::npos, key);
  }
  for (const Diagnostic& d : config.diagnostics().list()) CHECK(d.code == Code::RDU1005);
}

TEST_CASE("null counts as absent") {
  CHECK(parsed(llama(R"(, "rope_scaling": null, "head_dim": null)")).head_width == 16);
  const auto missing = parse_hf_config(R"({"architectures": null})", "c");
  CHECK(missing.diagnostics().contains(Code::RDU1005));
}

TEST_CASE("biases, ties and norms follow the architecture") {
  const DecoderConfig qwen = config_of(published("qwen2.5-7b"));
  CHECK(qwen.query_key_value_bias);
  CHECK(!qwen.attention_output_bias);
  CHECK(config_of(shipped("smollm2-135m")).tied_embeddings);
  CHECK(!parsed(llama()).query_key_value_bias);
  const DecoderConfig biased = parsed(llama(R"(, "attention_bias": true, "mlp_bias": true)"));
  CHECK(biased.query_key_value_bias);
  CHECK(biased.attention_output_bias);
  CHECK(biased.mlp_bias);
  const DecoderConfig gemma = config_of(published("gemma-7b"));
  CHECK(gemma.activation == GateActivation::gelu_tanh);
  CHECK(gemma.norm_adds_one);
  CHECK(gemma.embedding_scaled);
  CHECK(gemma.tied_embeddings);
  CHECK(!gemma.norm_after);
  const DecoderConfig gemma2 = config_of(published("gemma-2-9b"));
  CHECK(gemma2.norm_after);
  CHECK(gemma2.attention_cap == 50.0);
  CHECK(gemma2.logit_cap == 30.0);
  CHECK(config_of(published("phi-3-mini-4k")).fused_projections);
}

TEST_CASE("windows: Mistral's on every layer, Gemma 2's on every other, Gemma 3's on five of six, Qwen's off") {
  for (const DecoderLayer& l : config_of(shipped("mistral-7b")).layers) CHECK(l.window == 4096);
  for (const DecoderLayer& l : config_of(shipped("mixtral-8x7b")).layers) CHECK(l.window == 0);
  for (const DecoderLayer& l : config_of(shipped("qwen3-32b")).layers) CHECK(l.window == 0);
  const DecoderConfig gemma2 = config_of(published("gemma-2-9b"));
  CHECK(gemma2.layers[0].window == 4096);
  CHECK(gemma2.layers[1].window == 0);
  const DecoderConfig gemma3 = config_of(published("gemma-3-1b"));
  for (std::size_t i = 0; i < gemma3.layers.size(); ++i) {
    CHECK(gemma3.layers[i].window == (i % 6 == 5 ? 0 : 512));
    CHECK(gemma3.layers[i].local_rotary == (i % 6 != 5));
  }
  const DecoderConfig qwen = parsed(with_architecture(
      "Qwen2ForCausalLM", R"(, "use_sliding_window": true, "sliding_window": 8, "max_window_layers": 3)"));
  CHECK(qwen.layers[2].window == 0);
  CHECK(qwen.layers[3].window == 8);
  const DecoderConfig typed = parsed(with_architecture(
      "MistralForCausalLM",
      R"(, "sliding_window": 8, "layer_types": ["full_attention", "sliding_attention", "full_attention",
      "sliding_attention"])"));
  CHECK(typed.layers[0].window == 0);
  CHECK(typed.layers[3].window == 8);
}

TEST_CASE("experts: Mixtral's on every layer, DeepSeek's after the first three, Qwen's where its step says") {
  for (const DecoderLayer& l : config_of(shipped("mixtral-8x7b")).layers) CHECK(l.experts);
  const DecoderConfig deepseek = config_of(shipped("deepseek-v3"));
  CHECK(!deepseek.layers[2].experts);
  CHECK(deepseek.layers[3].experts);
  CHECK(deepseek.experts->shared_intermediate == 2048);
  CHECK(deepseek.latent->key_value_rank == 512);
  CHECK(deepseek.latent->interleaved);
  CHECK(deepseek.experts->routed_scale == 2.5);
  const double grown = 0.1 * std::log(40.0) + 1;  // of mscale_all_dim 1
  CHECK(deepseek.attention_scale == doctest::Approx(grown * grown / std::sqrt(192.0)).epsilon(1e-12));
  std::string softmax = text_of(shipped("deepseek-v3"));
  softmax.replace(softmax.find("\"sigmoid\""), 9, "\"softmax\"");
  CHECK(parse_hf_config(softmax, "config.json").diagnostics().contains(Code::RDU1007));
  const DecoderConfig qwen = parsed(with_architecture(
      "Qwen3MoeForCausalLM", R"(, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
      "decoder_sparse_step": 2, "mlp_only_layers": [3])"));
  CHECK(!qwen.layers[0].experts);
  CHECK(qwen.layers[1].experts);
  CHECK(!qwen.layers[3].experts);
}

TEST_CASE("newer files give the rotary base within rope_parameters") {
  const DecoderConfig c =
      parsed(llama(R"(, "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 12345.0})"));
  CHECK(c.rotary_theta == 12345.0);
  CHECK(c.scaling.kind == RotaryScalingKind::linear);
  CHECK(c.scaling.factor == 4.0);
}

TEST_CASE("scalings by yarn and longrope are read with what the library takes where their keys are absent") {
  const auto yarn = [](const std::string& keys) {
    return parsed(llama(R"(, "rope_scaling": {"type": "yarn", "factor": 40.0)" + keys + "}")).scaling;
  };
  const RotaryScaling plain = yarn("");
  CHECK(plain.original_positions == parsed(llama()).positions);
  CHECK(plain.fast_turns == 32);
  CHECK(plain.slow_turns == 1);
  CHECK(plain.whole_pairs);
  CHECK(plain.amplitude == doctest::Approx(1.3688879454).epsilon(1e-10));
  CHECK(yarn(R"(, "mscale": 1.0, "mscale_all_dim": 1.0)").amplitude == 1);  // DeepSeek-V3's
  CHECK(yarn(R"(, "attention_factor": 1.5, "mscale": 2.0, "mscale_all_dim": 1.0)").amplitude == 1.5);
  CHECK(yarn(R"(, "original_max_position_embeddings": 32, "truncate": false, "beta_fast": 8)").original_positions ==
        32);

  const DecoderConfig c = parsed(llama(R"(, "original_max_position_embeddings": 16, "rope_scaling": {"type": "longrope",
    "short_factor": [1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5], "long_factor": [2, 3, 4, 5, 6, 7, 8, 9]})"));
  CHECK(c.scaling.original_positions == 16);
  CHECK(c.scaling.short_factors[1] == 1.5);
  CHECK(c.scaling.long_factors[7] == 9);
  const double grown = static_cast<double>(c.positions) / 16;
  CHECK(c.scaling.amplitude == doctest::Approx(std::sqrt(1 + std::log(grown) / std::log(16.0))).epsilon(1e-12));
}

TEST_CASE("an unknown key is told once, at its place, and the nearest known one named") {
  const auto config = parse_hf_config(llama(",\n\"rope_tetha\": 5.0"), "config.json");
  REQUIRE(config.ok());
  REQUIRE(config.diagnostics().list().size() == 1);
  CHECK(config.diagnostics().list()[0].where.starts_with("config.json:4:"));
  CHECK(config.diagnostics().to_text().find("did you mean 'rope_theta'?") != std::string::npos);
}

TEST_CASE("weights published in fp32 stay so, and other types become bf16") {
  CHECK(parsed(llama(R"(, "torch_dtype": "float32")")).dtype == DType::fp32);
  CHECK(parsed(llama(R"(, "dtype": "float16")")).dtype == DType::bf16);
  CHECK(parsed(llama()).dtype == DType::bf16);
}

TEST_CASE("a config with bytes changed, cut or put in is read or refused, never more") {
  const std::string texts[] = {text_of(shipped("llama-3.1-8b")), text_of(shipped("deepseek-v3")),
                               text_of(published("gemma-3-1b")), text_of(shipped("gpt-oss-20b"))};
  CHECK(rc::check([&] {
    std::string text = texts[*rc::gen::inRange<std::size_t>(0, 4)];
    const int edits = *rc::gen::inRange(1, 6);
    for (int i = 0; i < edits; ++i) {
      const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
      switch (*rc::gen::inRange(0, 4)) {
        case 0:
          text[at] = *rc::gen::elementOf(std::string("0123456789-.eE\"{}[],:ntf\xff\0", 27));
          break;
        case 1:
          text.erase(at, *rc::gen::inRange<std::size_t>(1, 40));
          break;
        case 2:
          text.insert(at, *rc::gen::elementOf(std::vector<std::string>{"9999999999", "-", "null", "[]", "{}", "0.5"}));
          break;
        default:
          text.resize(at);
      }
      if (text.empty()) break;
    }
    const auto config = parse_hf_config(text, "fuzz.json");
    if (!config.ok()) {
      RC_ASSERT(config.diagnostics().has_errors());
      return;
    }
    RC_ASSERT(config->heads % config->kv_heads == 0);
    RC_ASSERT(config->rotary_columns % 2 == 0);
    RC_ASSERT(!config->layers.empty());
    RC_ASSERT(config->query_width() <= DecoderLimits::attention_width);
  }));
}

}  // namespace rdusim::hf_config_test
