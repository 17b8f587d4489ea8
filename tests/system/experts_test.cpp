// A mixture of experts with recorded routing, from config.json to checked values.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/support/file.h"
#include "tests/system/command.h"
#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::experts_test {
namespace {

// Mixtral's kind, small: two layers, eight experts of 64 columns.
constexpr const char* config = R"({
  "architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
  "hidden_size": 128, "intermediate_size": 64, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 8, "num_experts_per_tok": 2,
  "vocab_size": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
  "max_position_embeddings": 2048, "tie_word_embeddings": false, "torch_dtype": "bfloat16"
})";

// Qwen's kind, with one layer of 128 experts of which a token has eight.
std::string of_128_experts(const std::string& renormalised) {
  std::string model = config;
  model.replace(model.find("\"MixtralForCausalLM\"], \"model_type\": \"mixtral\""), 46,
                "\"Qwen3MoeForCausalLM\"], \"model_type\": \"qwen3_moe\"");
  model.replace(model.find("\"num_hidden_layers\": 2"), 22,
                "\"num_hidden_layers\": 1, \"num_experts\": 128, \"moe_intermediate_size\": 32, \"head_dim\": 32");
  model.replace(model.find("\"num_local_experts\": 8, \"num_experts_per_tok\": 2"), 48, "\"num_experts_per_tok\": 8");
  model.insert(model.rfind('}'), ", \"norm_topk_prob\": " + renormalised);
  return model;
}

// 64 tokens of a batch that was recorded (github.com/stanford-ppl/step_artifact, dyn_tiling/expert_routing): the file
// says more.
constexpr const char* recorded = RDUSIM_SOURCE_DIR "/tests/system/mixtral-8x7b-b64.csv";

Json compiled_and_run(const Folder& folder, const std::string& phase, const std::string& context,
                      const std::string& chips, const std::string& experts = "sharded") {
  folder.write("config.json", config);
  rdusim_ok({"compile", "config.json", "-o", "prog.bin", "--chips", chips, "--shard", "tensor", "--phase", phase,
             "--context", context, "--routing", recorded, "--experts", experts},
            folder);
  return run(folder, {"--check", "exact"});
}

// Rows that the experts of the first layer work on, chip 0's.
std::uint64_t rows_of_experts(const Json& report) {
  std::uint64_t rows = 0;
  for (const Json& w : list(report, "decisions", "work")) {
    const std::string name = text(w, "name");
    if (name.find("layers.0.") != std::string::npos && name.find("experts.") != std::string::npos &&
        name.ends_with(".down_proj"))
      rows += number(w, "m");
  }
  return rows;
}

TEST_CASE("a prefill of 64 recorded tokens accounts for all 128 assignments, on one chip and on two") {
  const Folder folder;
  for (const std::string chips : {"1", "2"}) {
    CAPTURE(chips);
    const Json report = compiled_and_run(folder, "prefill", "64", chips);
    check_exact_pass(report);
    CHECK(rows_of_experts(report) == 128);
  }
}

// 64 tokens of another batch, top-8 of 128 (the same source): 68 experts get no token, the busiest 42.
TEST_CASE("experts that get no token make nobody wait, and 512 assignments are accounted for") {
  const Folder folder;
  for (const std::string renormalised : {"true", "false"}) {
    CAPTURE(renormalised);
    folder.write("config.json", of_128_experts(renormalised));
    rdusim_ok({"compile", "config.json", "-o", "prog.bin", "--phase", "prefill", "--context", "64", "--routing",
               RDUSIM_SOURCE_DIR "/tests/system/qwen3-moe-b64.csv"},
              folder);
    const Json report = run(folder, {"--check", "exact"});
    check_exact_pass(report);
    CHECK(rows_of_experts(report) == 512);
    std::int64_t busy = 0, most = 0;
    for (const Json& w : list(report, "decisions", "work")) {
      if (!text(w, "name").ends_with(".down_proj")) continue;
      ++busy;
      most = std::max<std::int64_t>(most, number(w, "m"));
    }
    CHECK(busy == 60);
    CHECK(most == 42);
  }
}

TEST_CASE("one token goes to two experts: the others have weights in memory and nothing to do") {
  const Folder folder;
  const Json report = compiled_and_run(folder, "decode", "40", "1");
  check_exact_pass(report);
  CHECK(rows_of_experts(report) == 2);
  const std::string shown = rdusim_ok({"show", "prog.bin"}, folder).out;
  // 2 layers x 8 experts x 64 x 128 of bf16.
  CHECK(shown.find("model.layers.*.block_sparse_moe.experts.*.w1.weight") != std::string::npos);
  CHECK(shown.find("262.14 kB (256.00 KiB) in 16 tensors") != std::string::npos);
}

// Of each expert of the first layer with a token: the chips that have work of it, as the report has them.
std::map<int, std::string> chips_of_experts(const Json& report) {
  std::map<int, std::string> chips;
  for (const Json& w : list(report, "decisions", "work")) {
    const std::string name = text(w, "name");
    const std::size_t at = name.find("experts.");
    if (name.find("layers.0.") == std::string::npos || at == std::string::npos || !name.ends_with(".gate_proj"))
      continue;
    chips[std::stoi(name.substr(at + 8))] += text(w, "chips") + ";";
  }
  return chips;
}

// Nobody splits what an expert adds up, so that the number of chips makes no difference to its bits.
TEST_CASE("experts on chips of their own give the bits of one chip, each carried out by the chip that it is dealt to") {
  const Folder folder;
  const Json alone = compiled_and_run(folder, "prefill", "64", "1");
  for (const int chips : {2, 4}) {
    CAPTURE(chips);
    const Json report = compiled_and_run(folder, "prefill", "64", std::to_string(chips), "parallel");
    check_exact_pass(report);
    CHECK(rows_of_experts(report) == 128);
    for (const Json& o : list(alone, "outputs")) {
      CAPTURE(text(o, "name"));
      for (const Json& own : list(report, "outputs"))
        if (text(own, "name") == text(o, "name")) CHECK(text(own, "sha256") == text(o, "sha256"));
    }
    const auto of_experts = chips_of_experts(report);
    CHECK(of_experts.size() == 8);
    for (const auto& [expert, on] : of_experts) CHECK(on == std::to_string(expert * chips / 8) + ";");
    std::size_t broadcasts = 0;
    for (const Json& c : list(report, "collectives")) broadcasts += text(c, "kind") == "broadcast";
    CHECK(broadcasts == 8);  // of a layer, for both
    const std::string shown = rdusim_ok({"show", "prog.bin"}, folder).out;
    CHECK(shown.find("on one chip alone: ") != std::string::npos);
  }
}

TEST_CASE("a step's two experts keep two chips busy, and the others have nothing of them but the results") {
  const Folder folder;
  const Json alone = compiled_and_run(folder, "decode", "40", "1");
  const Json report = compiled_and_run(folder, "decode", "40", "4", "parallel");
  check_exact_pass(report);
  const auto of_experts = chips_of_experts(report);
  CHECK(of_experts == std::map<int, std::string>{{2, "1;"}, {6, "3;"}});
  CHECK(text(report, "outputs", 0, "sha256") == text(alone, "outputs", 0, "sha256"));
  const auto read = [&](const std::string& chip) {
    std::int64_t bytes = 0;
    for (const Json& m : list(report, "memories"))
      if (text(m, "name").find(chip) != std::string::npos) bytes += number(m, "read_bytes");
    return bytes;
  };
  CHECK(read("chip0") == read("chip2"));
  CHECK(read("chip1") == read("chip3"));
  // 2 layers x 3 matrices of 64 x 128 of bf16 that only these chips read, and what meets them.
  constexpr std::int64_t matrices = 2 * 3 * 64 * 128 * 2;
  CHECK(read("chip1") - read("chip0") >= matrices);
  CHECK(read("chip1") - read("chip0") < matrices + 4096);
}

TEST_CASE("every chip holds the matrices of its experts and of no others, whether a token goes to them or not") {
  const Folder folder;
  for (const std::string chips : {"2", "4"}) {
    CAPTURE(chips);
    compiled_and_run(folder, "decode", "40", chips, "parallel");
    const Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
    std::map<int, std::int64_t> bytes;  // of experts, by chip
    for (const Json& t : list(program, "tensors")) {
      const std::string name = text(t, "name");
      if (name.find("experts.") == std::string::npos || name.find(".weight_c") == std::string::npos) continue;
      const int expert = std::stoi(name.substr(name.find("experts.") + 8)), chip = static_cast<int>(number(t, "chip"));
      CHECK(chip == expert * std::stoi(chips) / 8);
      std::int64_t elements = 2;
      for (const Json& n : list(t, "shape")) elements *= *n.as_int64();
      bytes[chip] += elements;
    }
    for (int chip = 0; chip < std::stoi(chips); ++chip)
      CHECK(bytes[chip] == 2 * 8 / std::stoi(chips) * 3 * 64 * 128 * 2);  // layers, experts, matrices of bf16
  }
}

// What the recorded tokens send, chip by chip, as the file has it: of the tokens of each home those that go to experts of
// each other chip, and the results that come back.
struct Exchange {
  std::map<std::pair<std::size_t, std::size_t>, std::int64_t> there, back;  // (home, chip): rows
};
Exchange exchange_of(std::size_t tokens, std::size_t chips, std::size_t experts) {
  std::istringstream lines(*read_file(recorded, 1 << 20));
  Exchange e;
  std::size_t t = 0;
  for (std::string line; t < tokens && std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    // Home h has tokens h tokens / chips to (h + 1) tokens / chips.
    std::size_t home = 0;
    while ((home + 1) * tokens / chips <= t) ++home;
    std::map<std::size_t, std::int64_t> to;
    std::istringstream numbers(line);
    for (std::string number; std::getline(numbers, number, ',');) ++to[std::stoul(number) * chips / experts];
    for (const auto& [chip, assignments] : to) {
      if (chip == home) continue;
      ++e.there[{home, chip}];
      e.back[{chip, home}] += assignments;
    }
    ++t;
  }
  REQUIRE(t == tokens);
  return e;
}

TEST_CASE(
    "tokens travel to the chips of their experts and back, as many of each pair as the routing says, to the bits of "
    "one chip") {
  const Folder folder;
  for (const auto& [phase, context, batch] :
       {std::tuple("prefill", "64", "1"), std::tuple("decode", "40", "64"), std::tuple("decode", "40", "13")}) {
    CAPTURE(phase);
    CAPTURE(batch);
    const std::size_t tokens = phase == std::string("prefill") ? 64 : std::stoul(batch);
    folder.write("config.json", config);
    std::string alone;
    for (const std::size_t chips : {1, 2, 4}) {
      CAPTURE(chips);
      rdusim_ok(
          {"compile", "config.json", "-o", "prog.bin", "--chips", std::to_string(chips), "--shard", "tensor", "--phase",
           phase, "--context", context, "--batch", batch, "--routing", recorded, "--experts", "all-to-all"},
          folder);
      const Json report = run(folder, {"--check", "exact"});
      check_exact_pass(report);
      CHECK(rows_of_experts(report) == 2 * tokens);
      if (chips == 1) alone = text(report, "outputs", 0, "sha256");
      CHECK(text(report, "outputs", 0, "sha256") == alone);
      if (chips == 1) continue;
      const auto of_experts = chips_of_experts(report);
      for (const auto& [expert, on] : of_experts)
        CHECK(on == std::to_string(static_cast<std::size_t>(expert) * chips / 8) + ";");
      // Of the layer's sends, both ways, the bytes: two a column of 128, and two layers are two trips.
      Exchange found;
      const Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
      for (const Json& c : list(program, "collectives")) {
        const std::string name = text(c, "name");
        // What is sent whole needs no rows picked.
        const bool there = name.find("moe.to.chip") != std::string::npos || name.find("post_att") != std::string::npos;
        if (!there && name.find("moe.") == std::string::npos) continue;
        std::vector<std::size_t> members;
        for (const Json& m : list(c, "members")) members.push_back(static_cast<std::size_t>(*m.as_int64()));
        for (std::size_t m = 1; m < members.size(); ++m)
          (there ? found.there : found.back)[{members[0], members[m]}] += *list(c, "bytes")[0].as_int64() / 256;
      }
      const Exchange due = exchange_of(tokens, chips, 8);
      CHECK(found.there == due.there);
      CHECK(found.back == due.back);
      CHECK(number(list(report, "decisions", "sections")[1], "trips") == 2);
    }
  }
}

TEST_CASE("one token's two experts make two chips work, and the rest have neither tokens nor results of it") {
  const Folder folder;
  const Json alone = compiled_and_run(folder, "decode", "40", "1");
  const Json report = compiled_and_run(folder, "decode", "40", "4", "all-to-all");
  check_exact_pass(report);
  CHECK(chips_of_experts(report) == std::map<int, std::string>{{2, "1;"}, {6, "3;"}});
  CHECK(text(report, "outputs", 0, "sha256") == text(alone, "outputs", 0, "sha256"));
  for (const Json& c : list(report, "collectives"))
    if (text(c, "name").find("moe.") != std::string::npos) CHECK(number(c, "chips") == 2);
}

TEST_CASE("tokens that are dealt out are dealt to chips that are known, and by one rule") {
  const Folder folder;
  folder.write("config.json", config);
  const std::vector<std::string> options = {"compile",   "config.json", "-o",        "prog.bin",
                                            "--context", "64",          "--routing", recorded,
                                            "--experts", "all-to-all",  "--shard",   "tensor"};
  CHECK(rdusim(options, folder).status == 2);
  std::vector<std::string> twice = options;
  twice.insert(twice.end(), {"--chips", "2", "--sequence-parallel"});
  CHECK(rdusim(twice, folder).status == 2);
}

TEST_CASE("no fault of tokens on their way is missed") {
  const Folder folder;
  compiled_and_run(folder, "decode", "40", "2", "all-to-all");
  check_none_missed(matrix_of(folder, {"--seeds", "1"}));
}

TEST_CASE("layers of experts on chips of their own are launched one by one where that is asked for") {
  const Folder folder;
  const std::vector<std::string> options = {"compile",   "config.json", "-o",        "prog.bin", "--chips",   "2",
                                            "--shard",   "tensor",      "--phase",   "decode",   "--context", "40",
                                            "--routing", recorded,      "--experts", "parallel"};
  folder.write("config.json", config);
  const auto outcome = [&](bool relaunch) {
    std::vector<std::string> all = options;
    if (relaunch) all.push_back("--relaunch");
    rdusim_ok(all, folder);
    return run(folder, {"--check", "exact"});
  };
  const Json streamed = outcome(false), launched = outcome(true);
  check_exact_pass(launched);
  CHECK(number(list(streamed, "decisions", "sections")[1], "trips") == 2);
  CHECK(number(list(streamed, "decisions", "sections")[1], "launches") == 1);
  CHECK(number(list(launched, "decisions", "sections")[1], "launches") == 2);
  CHECK(text(launched, "outputs", 0, "sha256") == text(streamed, "outputs", 0, "sha256"));
}

TEST_CASE("no fault of experts on chips of their own is missed") {
  const Folder folder;
  compiled_and_run(folder, "decode", "40", "2", "parallel");
  check_none_missed(matrix_of(folder, {"--seeds", "1"}));
}

TEST_CASE("of 128 experts 60 have tokens, each on one of two chips, in sections that suit both") {
  const Folder folder;
  folder.write("config.json", of_128_experts("true"));
  const auto outcome = [&](const std::string& chips, const std::string& experts) {
    rdusim_ok(
        {"compile", "config.json", "-o", "prog.bin", "--phase", "prefill", "--context", "64", "--chips", chips,
         "--shard", "tensor", "--experts", experts, "--routing", RDUSIM_SOURCE_DIR "/tests/system/qwen3-moe-b64.csv"},
        folder);
    return run(folder, {"--check", "exact"});
  };
  const Json whole = outcome("1", "parallel");
  for (const std::string experts : {"parallel", "all-to-all"}) {
    CAPTURE(experts);
    const Json report = outcome("2", experts);
    check_exact_pass(report);
    CHECK(rows_of_experts(report) == 512);
    CHECK(chips_of_experts(report).size() == 60);
    CHECK(text(report, "outputs", 0, "sha256") == text(whole, "outputs", 0, "sha256"));
  }
}

// gpt-oss's kind, small: a layer with a window and one without, heads with sinks, biases, clamped gates.
constexpr const char* gpt_oss = R"({
  "architectures": ["GptOssForCausalLM"], "hidden_size": 128, "intermediate_size": 64, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "num_local_experts": 8, "num_experts_per_tok": 2,
  "vocab_size": 211, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 150000, "sliding_window": 24,
  "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
  "original_max_position_embeddings": 64}, "layer_types": ["sliding_attention", "full_attention"],
  "swiglu_limit": 0.5, "torch_dtype": "bfloat16"})";

// A prompt and steps of a model of experts, on one chip and several, with experts cut and apart.
void check_exact_everywhere(const char* model, const char* prompt, std::size_t outputs) {
  const Folder folder;
  folder.write("config.json", model);
  for (const auto& [phase, context, batch] :
       {std::tuple("prefill", prompt, "1"), std::tuple("decode", "70", "1"), std::tuple("decode", "70", "5")}) {
    CAPTURE(phase);
    CAPTURE(batch);
    for (const auto& [chips, experts] : {std::pair("1", "sharded"), std::pair("2", "sharded"),
                                         std::pair("2", "parallel"), std::pair("2", "all-to-all")}) {
      CAPTURE(chips);
      CAPTURE(experts);
      rdusim_ok({"compile", "config.json", "-o", "prog.bin", "--chips", chips, "--shard", "tensor", "--phase", phase,
                 "--context", context, "--batch", batch, "--routing", recorded, "--experts", experts},
                folder);
      const Json report = run(folder, {"--check", "exact"});
      check_exact_pass(report);
      CHECK(list(report, "outputs").size() == outputs);
    }
  }
}

TEST_CASE("gpt-oss's prompts and steps are exact, on one chip and several, with experts cut and apart") {
  check_exact_everywhere(gpt_oss, "64", 5);  // logits, and keys and values of both layers
}

TEST_CASE("fp8 casts what meets gpt-oss's matrices, those of the experts' stacks too") {
  const Folder folder;
  folder.write("config.json", gpt_oss);
  rdusim_ok({"compile", "config.json", "-o", "prog.bin", "--context", "40", "--dtype", "fp8", "--routing", recorded},
            folder);
  check_exact_pass(run(folder, {"--check", "exact"}));
}

// DeepSeek-V3's kind, small: a dense layer and two of experts.
constexpr const char* deepseek = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 128, "intermediate_size": 192, "moe_intermediate_size": 64,
  "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 4, "n_routed_experts": 8,
  "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "n_group": 4, "topk_group": 2,
  "q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 32, "v_head_dim": 64,
  "vocab_size": 211, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "rope_theta": 10000,
  "routed_scaling_factor": 2.5, "torch_dtype": "bfloat16"})";

TEST_CASE("DeepSeek-V3's prompts and steps are exact, on one chip and several, with experts cut and apart") {
  check_exact_everywhere(deepseek, "40", 7);  // logits, and narrow and rotating rows of three layers
}

// Bytes of a program's weights by chip, of those whose names have `part`; but the constants that are no parameters.
std::map<int, std::int64_t> weight_bytes(const Json& program, const std::string& part) {
  std::map<int, std::int64_t> bytes;
  for (const Json& t : list(program, "tensors")) {
    if (text(t, "role") != "weight") continue;
    const std::string name = text(t, "name");
    if ((name.find("model.") != 0 && name.find("lm_head.") != 0) || name.find(part) == std::string::npos) continue;
    std::int64_t elements = 2;
    for (const Json& n : list(t, "shape")) elements *= *n.as_int64();
    bytes[static_cast<int>(number(t, "chip"))] += elements;
  }
  return bytes;
}

// Four heads over one to four chips: each chip has its heads' matrices and no others, and attends with them.
TEST_CASE("DeepSeek-V3's heads are dealt, equally or not, and every chip has the matrices of its own") {
  const Folder folder;
  folder.write("config.json", deepseek);
  for (const auto& [chips, heads] : {std::pair(1, std::vector{4}), std::pair(2, std::vector{2, 2}),
                                     std::pair(3, std::vector{2, 1, 1}), std::pair(4, std::vector{1, 1, 1, 1})}) {
    CAPTURE(chips);
    for (const std::string batch : {"1", "3"}) {
      rdusim_ok({"compile", "config.json", "-o", "prog.bin", "--chips", std::to_string(chips), "--shard", "tensor",
                 "--uneven", "--experts", "all-to-all", "--context", "40", "--batch", batch, "--routing", recorded},
                folder);
      const Json report = run(folder, {"--check", "exact"});
      check_exact_pass(report);
      const Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
      const auto of_heads = weight_bytes(program, "kv_b_proj"), of_queries = weight_bytes(program, "q_b_proj");
      for (int chip = 0; chip < chips; ++chip) {
        CHECK(of_heads.at(chip) == 3 * heads[static_cast<std::size_t>(chip)] * (32 + 64) * 64 * 2);
        CHECK(of_queries.at(chip) == 3 * heads[static_cast<std::size_t>(chip)] * (32 + 32) * 64 * 2);
      }
      int attending = 0;
      for (const Json& w : list(report, "decisions", "work"))
        if (text(w, "name").find("layers.0.self_attn.attention") != std::string::npos) ++attending;
      CHECK(attending == chips);
    }
  }
}

TEST_CASE("gpt-oss-20b compiles from its published dimensions, its weights in memory to the byte") {
  const Folder folder;
  std::string routing;
  for (int t = 0; t < 4; ++t) routing += fmt::format("{},{},{},{}\n", t, t + 9, t + 17, t + 27);
  folder.write("routing.csv", routing);
  const std::string model = RDUSIM_SOURCE_DIR "/examples/gpt-oss-20b";
  const auto compiled = [&](const std::string& part, const std::vector<std::string>& options) {
    std::vector<std::string> all = {"compile",  model, "-o",      "prog.bin", "--context", "512",
                                    "--layers", "2",   "--batch", "4",        "--routing", "routing.csv"};
    all.insert(all.end(), options.begin(), options.end());
    rdusim_ok(all, folder);
    CHECK(text(run(folder, {"--timing-only"}), "verdict") == "pass");
    return weight_bytes(parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out), part);
  };
  // Of two layers: q, k, v and o with biases, sinks, two norms, the router, and 32 experts.
  constexpr std::int64_t h = 2880, q = 64 * 64, kv = 8 * 64;
  constexpr std::int64_t attention = (h + 1) * (q + 2 * kv) + (q + 1) * h + 64 + 2 * h, router = 32 * (h + 1);
  constexpr std::int64_t expert = (h + 1) * 2 * h + (h + 1) * h, ends = 2 * 201088 * h + h;
  constexpr std::int64_t all = 2 * (2 * (attention + router + 32 * expert) + ends);
  const auto whole = compiled("", {});
  CHECK(whole.size() == 1);
  CHECK(whole.at(0) == all);
  const Json sizes = parsed(rdusim_ok({"model", model, "--layers", "2", "--context", "512", "--json"}, folder).out);
  CHECK(number(sizes, "parts", "all", "bytes") == all);
  const auto dealt = compiled(".experts.", {"--chips", "4", "--shard", "tensor", "--experts", "parallel", "--uneven"});
  CHECK(dealt.size() == 4);
  for (const auto& [chip, bytes] : dealt) CHECK(bytes == 2 * 2 * 8 * expert);
}

TEST_CASE("DeepSeek-V3 compiles from its published dimensions, its weights and caches in memory to the byte") {
  const Folder folder;
  folder.write("routing.csv", "3,40,77,101,130,166,200,255\n");
  const std::string model = RDUSIM_SOURCE_DIR "/examples/deepseek-v3";
  rdusim_ok({"compile", model, "-o", "prog.bin", "--context", "512", "--layers", "4", "--routing", "routing.csv"},
            folder);
  CHECK(text(run(folder, {"--timing-only"}), "verdict") == "pass");
  const Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  // Three dense layers, and one of 256 experts and a shared one.
  constexpr std::int64_t h = 7168, heads = 128;
  constexpr std::int64_t attention =
      1536 * h + 1536 + heads * 192 * 1536 + 576 * h + 512 + heads * 256 * 512 + h * heads * 128;
  constexpr std::int64_t layer = attention + 2 * h, dense = 3 * h * 18432, mixture = 256 * h + 256 + 257 * 3 * h * 2048;
  constexpr std::int64_t all = 2 * (4 * layer + 3 * dense + mixture + 2 * 129280 * h + h);
  CHECK(weight_bytes(program, "").at(0) == all);
  const Json sizes = parsed(rdusim_ok({"model", model, "--layers", "4", "--context", "512", "--json"}, folder).out);
  CHECK(number(sizes, "parts", "all", "bytes") == all);
  std::int64_t cache = 0;
  for (const Json& t : list(program, "tensors"))
    if (text(t, "role") == "state") cache += 2 * *list(t, "shape")[0].as_int64() * *list(t, "shape")[1].as_int64();
  CHECK(cache == 4 * 512 * 576 * 2);
}

TEST_CASE("experts are dealt only where there are some, and in a way that there is") {
  const Folder folder;
  folder.write("config.json", config);
  CHECK(rdusim({"compile", "config.json", "-o", "prog.bin", "--experts", "apart"}, folder).status == 2);
  std::string dense = config;
  dense.replace(dense.find("MixtralForCausalLM"), 18, "LlamaForCausalLM");
  folder.write("config.json", dense);
  CHECK(errors_of(rdusim({"compile", "config.json", "-o", "prog.bin", "--experts", "parallel"}, folder)) == "RDU1046");
  CHECK_FALSE(folder.has("prog.bin"));
}

TEST_CASE("what is proved of a program with recorded routing is proved of this input only") {
  const Folder folder;
  compiled_and_run(folder, "decode", "40", "2");
  const std::string out = rdusim_ok({"check", "prog.bin"}, folder).out;
  CHECK(
      out.find("scope: this input only: the operators were made for the experts of 1 token in mixtral-8x7b-b64.csv") !=
      std::string::npos);
  CHECK(out.find("every schedule") == std::string::npos);
}

TEST_CASE("a mixture of experts without a routing, or with one that does not fit, is refused") {
  const Folder folder;
  folder.write("config.json", config);
  const std::vector<std::string> compile = {"compile", "config.json", "-o", "prog.bin"};
  CHECK(errors_of(rdusim(compile, folder)) == "RDU1069");
  const auto with = [&](const std::string& file) {
    std::vector<std::string> all = compile;
    all.insert(all.end(), {"--phase", "prefill", "--context", "65", "--routing", file});
    return errors_of(rdusim(all, folder));
  };
  CHECK(with(recorded) == "RDU1068");
  CHECK(with("absent.csv") == "RDU1001");
  CHECK_FALSE(folder.has("prog.bin"));
}

}  // namespace
}  // namespace rdusim::test::experts_test
