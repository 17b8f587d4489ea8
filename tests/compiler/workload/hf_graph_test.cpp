// Decoders as operator graphs: the operators that a layer consists of, their shapes, what is in the files and what is
// not.
#include "compiler/workload/hf_graph.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "compiler/workload/hf_config.h"
#include "compiler/workload/hf_sizes.h"
#include "compiler/workload/read_workload.h"
#include "tests/compiler/workload/data_files.h"
#include "tests/compiler/workload/temporary_folder.h"

namespace rdusim::hf_graph_test {

namespace {

const std::string examples = RDUSIM_SOURCE_DIR "/examples/";
const std::string configs = RDUSIM_SOURCE_DIR "/tests/compiler/workload/configs/";

OperatorGraph graph_of(const std::string& path, const DecoderRequest& request) {
  const auto graph = read_hf_model(path, request);
  INFO(path);
  INFO(graph.diagnostics().to_text());
  REQUIRE(graph.ok());
  CHECK(check_graph(*graph).to_text() == "");
  return *graph;
}

const Operand& operand(const OperatorGraph& g, const std::string& name) {
  const auto found =
      std::find_if(g.operands.begin(), g.operands.end(), [&](const Operand& o) { return o.name == name; });
  REQUIRE_MESSAGE(found != g.operands.end(), name);
  return *found;
}
const Operator& op(const OperatorGraph& g, const std::string& name) {
  const auto found =
      std::find_if(g.operators.begin(), g.operators.end(), [&](const Operator& o) { return o.name == name; });
  REQUIRE_MESSAGE(found != g.operators.end(), name);
  return *found;
}

std::size_t count(const OperatorGraph& g, OperatorKind kind) {
  return static_cast<std::size_t>(
      std::count_if(g.operators.begin(), g.operators.end(), [&](const Operator& o) { return o.kind == kind; }));
}

std::int64_t weight_elements(const OperatorGraph& g) {
  std::int64_t n = 0;
  for (const Operand& o : g.operands) {
    if (o.name.ends_with(".weight") || o.name.ends_with(".bias")) n += *element_count(o.shape);
  }
  return n;
}

using Shape = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a layer of Llama-3.1-8B that decodes, operator by operator") {
  const OperatorGraph g = graph_of(examples + "llama-3.1-8b/config.json", {.context = 4096, .layers = 1});
  CHECK(g.name == "llama-3.1-8b");
  std::vector<std::string_view> kinds;
  for (const Operator& o : g.operators) kinds.push_back(name_of(o.kind));
  CHECK(kinds == std::vector<std::string_view>{"gather",   "rms_norm", "matmul", "matmul",    "matmul",   "rotary",
                                               "rotary",   "append",   "append", "attention", "matmul",   "add",
                                               "rms_norm", "matmul",   "matmul", "silu",      "multiply", "matmul",
                                               "add",      "rms_norm", "matmul"});
  CHECK(operand(g, "tokens").shape == Shape{1});
  CHECK(operand(g, "tokens").dtype == DType::int32);
  const Operand& cache = operand(g, "cache.0.key");
  CHECK(cache.role == TensorRole::state);
  CHECK(cache.shape == Shape{4096, 1024});
  const Operator& append = op(g, "model.layers.0.self_attn.value_cached");
  CHECK(append.kind == OperatorKind::append);
  CHECK(append.attributes.begin == std::vector<std::int64_t>{4095});
  CHECK(g.operand(append.in[0]).name == "cache.0.value");
  CHECK(g.operand(append.in[1]).shape == Shape{1, 1024});
  CHECK(storage_of(g, append.out) == append.in[0]);
  CHECK(operand(g, "model.layers.0.mlp.gate_proj.weight").shape == Shape{14336, 4096});
  CHECK(operand(g, "logits").shape == Shape{1, 128256});
  CHECK(operand(g, "logits").dtype == DType::bf16);
  const Operator& attention = op(g, "model.layers.0.self_attn.attention");
  CHECK(attention.attributes.heads == 32);
  CHECK(attention.attributes.kv_heads == 8);
  CHECK(attention.attributes.causal);
  CHECK(attention.attributes.window == 0);
  CHECK(attention.attributes.scale == doctest::Approx(0.08838834764831845).epsilon(1e-15));
  CHECK(op(g, "lm_head").attributes.transposed);
  CHECK(op(g, "model.norm").attributes.epsilon == 1e-5);
}

TEST_CASE(
    "every example but the mixture of experts becomes a graph that keeps the rules, decode and prefill, batches, fp8") {
  for (const char* name :
       {"llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "mistral-7b", "qwen3-32b", "smollm2-135m"}) {
    for (const DecoderPhase phase : {DecoderPhase::decode, DecoderPhase::prefill}) {
      for (const std::int64_t batch : {1, 3}) {
        graph_of(examples + name, {.phase = phase, .batch = batch, .context = 64, .layers = 2});
        graph_of(examples + name,
                 {.phase = phase, .batch = batch, .context = 1, .layers = 1, .dtype = DType::fp8_e4m3});
      }
    }
  }
  for (const char* name : {"gemma-7b", "gemma-3-1b", "phi-3-mini-4k", "qwen2.5-7b", "llama-2-7b"})
    graph_of(configs + name + ".json", {.batch = 2, .context = 64, .layers = 7});
}

TEST_CASE("the weights of a graph are those that its sizes count") {
  for (const char* path : {"llama-3.1-8b", "qwen3-32b", "smollm2-135m"}) {
    const auto config = read_hf_config(examples + path);
    REQUIRE(config.ok());
    CHECK(weight_elements(graph_of(examples + path, {.context = 8})) ==
          decoder_sizes(*config, {.context = 8}).all.parameters);
  }
  for (const char* path : {"gemma-3-1b.json", "phi-3-mini-4k.json", "qwen2.5-7b.json"}) {
    const auto config = read_hf_config(configs + path);
    REQUIRE(config.ok());
    CHECK(weight_elements(graph_of(configs + path, {.context = 8})) ==
          decoder_sizes(*config, {.context = 8}).all.parameters);
  }
}

TEST_CASE("prefill has a row a token, an empty cache, and logits of the last token of each sequence") {
  const OperatorGraph g =
      graph_of(examples + "smollm2-135m", {.phase = DecoderPhase::prefill, .batch = 2, .context = 16, .layers = 1});
  CHECK(operand(g, "tokens").shape == Shape{32});
  CHECK(count(g, OperatorKind::concat) == 0);
  CHECK(operand(g, "present.0.key").shape == Shape{32, 192});
  CHECK(operand(g, "model.layers.0.self_attn.attention.out").shape == Shape{2, 16, 576});
  CHECK(op(g, "model.last").attributes.begin == Shape{0, 15, 0});
  CHECK(operand(g, "logits").shape == Shape{2, 49152});
  const OperatorGraph one =
      graph_of(examples + "smollm2-135m", {.phase = DecoderPhase::prefill, .context = 16, .layers = 1});
  CHECK(op(one, "model.last").attributes.begin == Shape{15, 0});
  CHECK(count(one, OperatorKind::reshape) == 0);
}

TEST_CASE("a tied head reads the embedding, and there is no second table") {
  const OperatorGraph g = graph_of(examples + "smollm2-135m", {.context = 4, .layers = 1});
  CHECK(g.operand(op(g, "lm_head").in[1]).name == "model.embed_tokens.weight");
  for (const Operand& o : g.operands) CHECK(o.name != "lm_head.weight");
}

TEST_CASE("norms of queries and keys work head by head") {
  const OperatorGraph g = graph_of(examples + "qwen3-32b", {.batch = 2, .context = 4, .layers = 1});
  CHECK(operand(g, "model.layers.0.self_attn.q_norm.out").shape == Shape{128, 128});
  CHECK(operand(g, "model.layers.0.self_attn.k_norm.out").shape == Shape{16, 128});
  CHECK(operand(g, "model.layers.0.self_attn.q_rotary.out").shape == Shape{2, 8192});
}

TEST_CASE("a window bounds the cache and stands in the operator") {
  const OperatorGraph g = graph_of(examples + "mistral-7b", {.context = 8192, .layers = 1});
  CHECK(operand(g, "cache.0.key").shape == Shape{4096, 1024});
  CHECK(op(g, "model.layers.0.self_attn.attention").attributes.window == 4096);
  const OperatorGraph mixed = graph_of(configs + "gemma-3-1b.json", {.context = 2048, .layers = 6});
  CHECK(operand(mixed, "cache.0.key").shape == Shape{512, 256});
  CHECK(operand(mixed, "cache.5.key").shape == Shape{2048, 256});
  // Sliding layers have angles of their own.
  const auto table = [&](const std::string& layer) {
    return mixed.operand(op(mixed, "model.layers." + layer + ".self_attn.q_rotary").in[1]).name;
  };
  CHECK(table("0") == "rotary.local.cosines");
  CHECK(table("5") == "rotary.cosines");
}

TEST_CASE("Gemma: the embedding is scaled, norms multiply by one more, GeGLU, and norms before what is added") {
  const OperatorGraph g = graph_of(configs + "gemma-3-1b.json", {.context = 4, .layers = 1});
  CHECK(count(g, OperatorKind::gelu_tanh) == 1);
  CHECK(count(g, OperatorKind::silu) == 0);
  CHECK(count(g, OperatorKind::rms_norm) == 7);  // four of the layer, of queries, of keys, the last
  CHECK(std::get<ConstantFill>(operand(g, "model.embed_scale").fill).value == 34);  // sqrt(1152) = 33.94 in bf16
  CHECK(op(g, "model.norm.one_more").kind == OperatorKind::add);
  const auto& sum = op(g, "model.layers.0.mlp.residual");
  CHECK(g.operand(sum.in[1]).name == "model.layers.0.post_feedforward_layernorm.out");
}

TEST_CASE("Qwen 2's biases are added to queries, keys and values, and Phi-3's one matrix is cut") {
  const OperatorGraph qwen =
      graph_of(configs + "qwen2.5-7b.json", {.phase = DecoderPhase::prefill, .context = 4, .layers = 1});
  CHECK(qwen.operand(op(qwen, "model.layers.0.self_attn.v_proj.biased").out).name == "present.0.value");
  const OperatorGraph phi = graph_of(configs + "phi-3-mini-4k.json", {.context = 4, .layers = 1});
  CHECK(op(phi, "model.layers.0.self_attn.v").attributes.begin == Shape{0, 6144});
  CHECK(op(phi, "model.layers.0.mlp.up").attributes.end == Shape{1, 16384});
}

TEST_CASE("fp8: what meets a matrix is cast once, results are bf16") {
  const OperatorGraph g = graph_of(examples + "llama-3.1-8b", {.context = 4, .layers = 1, .dtype = DType::fp8_e4m3});
  CHECK(count(g, OperatorKind::cast) == 4);  // before q, k and v; o; gate and up; down
  CHECK(operand(g, "model.layers.0.self_attn.q_proj.weight").dtype == DType::fp8_e4m3);
  CHECK(operand(g, "model.layers.0.self_attn.q_proj.out").dtype == DType::bf16);
  CHECK(operand(g, "lm_head.weight").dtype == DType::bf16);
  CHECK(operand(g, "cache.0.key").dtype == DType::bf16);
}

TEST_CASE("values that are not in files follow from the tensor's name, in a range that keeps activations near 1") {
  const OperatorGraph g = graph_of(examples + "smollm2-135m", {.context = 4, .layers = 2});
  std::set<std::uint64_t> seeds;
  std::size_t random = 0;
  for (const Operand& o : g.operands) {
    if (const auto* fill = std::get_if<RandomFill>(&o.fill)) {
      ++random;
      seeds.insert(fill->seed);
    }
  }
  CHECK(random > 20);
  CHECK(seeds.size() == random);
  const auto& w = std::get<RandomFill>(operand(g, "model.layers.1.mlp.down_proj.weight").fill);
  CHECK(w.high == doctest::Approx(std::sqrt(3.0 / 1536)).epsilon(1e-12));
  CHECK(w.low == -w.high);
  const auto& n = std::get<RandomFill>(operand(g, "model.norm.weight").fill);
  CHECK(n.low == 0.75);
  CHECK(n.high == 1.25);
  CHECK(std::get<RandomFill>(operand(g, "tokens").fill).high == 49151);
  CHECK(graph_of(examples + "smollm2-135m", {.context = 4, .layers = 2}) == g);
}

TEST_CASE("what has no operator is refused by name, all of it at once") {
  const auto refused = [](const std::string& path, std::vector<std::string> words) {
    const auto graph = read_hf_model(path, {.context = 4, .layers = 4});
    REQUIRE_MESSAGE(!graph.ok(), path);
    for (const Diagnostic& d : graph.diagnostics().list()) CHECK(d.code == Code::RDU1045);
    for (const std::string& w : words) CHECK_MESSAGE(graph.diagnostics().to_text().find(w) != std::string::npos, w);
  };
  refused(configs + "gemma-2-9b.json", {"capped at 50"});
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RDUSIM_SOURCE_DIR "/tests/errors/configs")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("RDU1045") && !name.starts_with("RDU1069")) continue;
    ++inputs;
    const auto graph = read_hf_model(entry.path().string(), {});
    REQUIRE(!graph.ok());
    for (const Diagnostic& d : graph.diagnostics().list()) {
      CHECK(name.starts_with("RDU" + std::to_string(static_cast<int>(d.code))));
      CHECK(d.where == entry.path().string());
    }
  }
  CHECK(inputs == 3);
}

TEST_CASE("rotary tables that would be too large are refused before they are made") {
  const auto graph =
      read_hf_model(examples + "llama-3.1-8b", {.phase = DecoderPhase::prefill, .batch = 16, .context = 131072});
  REQUIRE(!graph.ok());
  CHECK(graph.diagnostics().contains(Code::RDU1046));
}

namespace {

// A model of one small layer, its files as `parts` deals them out.
struct SmallModel {
  static constexpr const char* config = R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 8,
    "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
    "vocab_size": 12, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "torch_dtype": "float32"})";

  // All weights: name and extents.
  static std::vector<std::pair<std::string, Shape>> tensors() {
    const std::string l = "model.layers.0.";
    return {{"model.embed_tokens.weight", {12, 8}},
            {l + "input_layernorm.weight", {8}},
            {l + "self_attn.q_proj.weight", {8, 8}},
            {l + "self_attn.k_proj.weight", {4, 8}},
            {l + "self_attn.v_proj.weight", {4, 8}},
            {l + "self_attn.o_proj.weight", {8, 8}},
            {l + "post_attention_layernorm.weight", {8}},
            {l + "mlp.gate_proj.weight", {16, 8}},
            {l + "mlp.up_proj.weight", {16, 8}},
            {l + "mlp.down_proj.weight", {8, 16}},
            {"model.norm.weight", {8}},
            {"lm_head.weight", {12, 8}}};
  }

  static std::string file(const std::vector<std::pair<std::string, Shape>>& list, const std::string& dtype = "F32") {
    std::string header = "{";
    std::size_t at = 0;
    for (const auto& [name, shape] : list) {
      std::size_t bytes = 4;
      std::string extents;
      for (const std::int64_t e : shape) {
        bytes *= static_cast<std::size_t>(e);
        extents += (extents.empty() ? "" : ",") + std::to_string(e);
      }
      header += (at == 0 ? "\"" : ",\"") + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + extents +
                "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(at + bytes) + "]}";
      at += bytes;
    }
    return safetensors(header + "}", std::string(at, '\0'));
  }
};

}  // namespace

TEST_CASE("values come from model.safetensors where it is there, each from its place") {
  const TemporaryFolder folder;
  folder.write("config.json", SmallModel::config);
  const std::string bytes = SmallModel::file(SmallModel::tensors());
  folder.write("model.safetensors", bytes);
  const OperatorGraph g = graph_of(folder.path(), {.context = 4});
  std::size_t found = 0;
  for (const auto& [name, shape] : SmallModel::tensors()) {
    const Operand& o = operand(g, name);
    CHECK(o.shape == shape);
    CHECK(o.dtype == DType::fp32);
    const auto& fill = std::get<FileFill>(o.fill);
    CHECK(fill.path == "model.safetensors");
    CHECK(fill.tensor == name);
    CHECK(fill.size_bytes == bytes.size());
    CHECK(fill.sha256.size() == 64);
    ++found;
  }
  CHECK(found == 12);
  CHECK(std::get<FileFill>(operand(g, "lm_head.weight").fill).data_offset == bytes.size() - 12 * 8 * 4);
}

TEST_CASE("an index deals the tensors out over files") {
  const TemporaryFolder folder;
  folder.write("config.json", SmallModel::config);
  const auto all = SmallModel::tensors();
  const std::vector<std::pair<std::string, Shape>> first(all.begin(), all.begin() + 5);
  const std::vector<std::pair<std::string, Shape>> rest(all.begin() + 5, all.end());
  folder.write("model-00001-of-00002.safetensors", SmallModel::file(first));
  folder.write("model-00002-of-00002.safetensors", SmallModel::file(rest));
  std::string map = "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {";
  for (std::size_t i = 0; i < all.size(); ++i)
    map +=
        (i == 0 ? "\"" : ", \"") + all[i].first + "\": \"model-0000" + (i < 5 ? "1" : "2") + "-of-00002.safetensors\"";
  const std::string whole = map + "}}";
  folder.write("model.safetensors.index.json", whole);
  const OperatorGraph g = graph_of(folder / "config.json", {.context = 4});
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(std::get<FileFill>(operand(g, all[i].first).fill).path ==
          (i < 5 ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors"));
  }

  SUBCASE("a tensor that is in no file is named") {
    std::string less = whole;
    less.replace(less.find("lm_head.weight"), 14, "lm_head.wait__");
    folder.write("model.safetensors.index.json", less);
    const auto graph = read_hf_model(folder.path(), {.context = 4});
    REQUIRE(!graph.ok());
    CHECK(graph.diagnostics().contains(Code::RDU1020));
    CHECK(graph.diagnostics().to_text().find("'lm_head.weight'") != std::string::npos);
  }
  SUBCASE("a file beyond the folder is refused") {
    std::string out = whole;
    out.replace(out.find("model-00001"), 11, "../model-01");
    folder.write("model.safetensors.index.json", out);
    const auto graph = read_hf_model(folder.path(), {.context = 4});
    REQUIRE(!graph.ok());
    CHECK(graph.diagnostics().contains(Code::RDU1021));
  }
  SUBCASE("a file that is not there is named") {
    std::filesystem::remove(folder / "model-00002-of-00002.safetensors");
    const auto graph = read_hf_model(folder.path(), {.context = 4});
    REQUIRE(!graph.ok());
    CHECK(graph.diagnostics().contains(Code::RDU1001));
  }
}

TEST_CASE("values of another dtype than asked for are refused, with both") {
  const TemporaryFolder folder;
  folder.write("config.json", SmallModel::config);
  folder.write("model.safetensors", SmallModel::file(SmallModel::tensors()));
  const auto graph = read_hf_model(folder.path(), {.context = 4, .dtype = DType::bf16});
  REQUIRE(!graph.ok());
  CHECK(graph.diagnostics().contains(Code::RDU1020));
  CHECK(graph.diagnostics().to_text().find("has the dtype F32, where bf16 is asked for") != std::string::npos);
}

TEST_CASE("files of quantised weights are refused in one line, whatever dtype is asked for, and none are no fault") {
  const TemporaryFolder folder;
  std::string quantised = SmallModel::config;
  quantised.insert(quantised.rfind('}'),
                   R"(, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]})");
  folder.write("config.json", quantised);
  CHECK(read_hf_model(folder.path(), {.context = 4}).ok());
  folder.write("model.safetensors", SmallModel::file(SmallModel::tensors()));
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp8_e4m3}) {
    const auto graph = read_hf_model(folder.path(), {.context = 4, .dtype = dtype});
    REQUIRE(!graph.ok());
    CHECK(graph.diagnostics().error_count() == 1);
    CHECK(graph.diagnostics().contains(Code::RDU1020));
    CHECK(graph.diagnostics().to_text().find("quantised ('fp8')") != std::string::npos);
  }
}

TEST_CASE("an index that is none is refused") {
  const auto graph = read_hf_model(RDUSIM_SOURCE_DIR "/tests/errors/configs/RDU1047-no-weight-map", {.context = 4});
  REQUIRE(!graph.ok());
  for (const Diagnostic& d : graph.diagnostics().list()) CHECK(d.code == Code::RDU1047);
  for (const char* text : {"", "[]", "{}", R"({"weight_map": 1})", R"({"weight_map": {"a": 1}})",
                           R"({"weight_map": {"a": "b.bin"}})", R"({"weight_map": {"a": "b.safetensors"})"}) {
    CHECK_MESSAGE(parse_weight_map(text, "index").diagnostics().contains(Code::RDU1047), text);
  }
  CHECK(parse_weight_map(R"({"weight_map": {"a": "b.safetensors"}})", "index")->at("a") == "b.safetensors");
}

}  // namespace rdusim::hf_graph_test
