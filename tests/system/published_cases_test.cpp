// Odd splits and collectives on which other tools failed or whose numbers others published, through compiler and run.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::published_cases_test {
namespace {

// Extents along `axis` of the slices of tensor `name`, and how many have each.
std::map<std::int64_t, int> slices(const Folder& folder, const std::string& name, int axis) {
  const Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  std::map<std::int64_t, int> extents;
  std::int64_t next = 0;
  for (const Json& t : list(program, "tensors")) {
    if (!text(t, "name").starts_with(name + "_c")) continue;
    CHECK(number(t, "offset", axis) == next);  // no gap, no overlap
    next += number(t, "shape", axis);
    ++extents[number(t, "shape", axis)];
  }
  return extents;
}

Json exact(const Folder& folder, const Matmul& shape, std::vector<std::string> options) {
  const Json report = compile_and_run(folder, shape, std::move(options));
  check_exact_pass(report);
  CHECK(text(report, "outputs", 0, "sha256") == shape.sha256());
  CHECK(number(report, "macs", "useful") == shape.m * shape.k * shape.n);
  return report;
}

// Llama-3.1-70B's down-projection (https://huggingface.co/meta-llama/Llama-3.1-70B, config.json): 28672 / 12 = 2389.33.
TEST_CASE("28672 over 12 chips is 4 x 2390 and 8 x 2389 padded, whole tiles uneven, and no row is lost") {
  const Folder folder;
  const Matmul shape = matmul(1, 28672, 64);
  refused(folder, shape, {"--chips", "12", "--shard", "row"}, "RDU4102");
  const Json padded = exact(folder, shape, {"--chips", "12", "--shard", "row", "--pad"});
  CHECK(slices(folder, "w", 0) == std::map<std::int64_t, int>{{2390, 4}, {2389, 8}});
  CHECK(number(padded, "macs", "padding") == (12 * 2400 - 28672) * 64);
  CHECK(number(padded, "collectives", 0, "contributions") == 12);
  const Json uneven = exact(folder, shape, {"--chips", "12", "--shard", "row", "--uneven"});
  CHECK(slices(folder, "w", 0) == std::map<std::int64_t, int>{{2400, 8}, {2368, 4}});
  CHECK(number(uneven, "macs", "padding") == 0);
}

// https://github.com/aws-neuron/aws-neuron-sdk/issues/822: [8192, 1024] over 24 became 25 pieces.
TEST_CASE("1024 columns padded over 24 chips are 16 pieces of 43 and 8 of 42") {
  const Folder folder;
  exact(folder, matmul(32, 64, 1024), {"--target", "sn50", "--chips", "24", "--shard", "column", "--pad"});
  CHECK(slices(folder, "w", 1) == std::map<std::int64_t, int>{{43, 16}, {42, 8}});
}

// https://github.com/vllm-project/vllm/issues/52051: gpt-oss-120b's 2880 columns were padded without a word.
TEST_CASE("what padding 2880 columns would cost is told before, and counted after") {
  const Folder folder;
  const Matmul shape = matmul(2, 64, 2880);
  for (const auto& [chips, columns] : {std::pair{"8", 3072}, {"12", 3072}}) {
    CAPTURE(chips);
    const std::vector<std::string> options = {"--chips", chips, "--shard", "column"};
    const Outcome refusal = refused(folder, shape, options, "RDU4103");
    CHECK(refusal.err.find("--pad makes it 3072 long, 6.7 % longer") != std::string::npos);
    const Json report = exact(folder, shape, {"--chips", chips, "--shard", "column", "--pad"});
    CHECK(number(report, "macs", "padding") == std::int64_t{2} * 64 * (columns - 2880));
  }
}

// https://github.com/NVlabs/timeloop/issues/300 and 328: 700 padded to 768 were 768 of work.
TEST_CASE("700 columns over 8 chips, 88 or 87 each in three tiles, are 700 of work and two tiles of padding") {
  const Folder folder;
  const Json report = exact(folder, matmul(4, 64, 700), {"--chips", "8", "--shard", "column", "--pad"});
  CHECK(slices(folder, "w", 1) == std::map<std::int64_t, int>{{88, 4}, {87, 4}});
  // On one chip the last of 22 tiles is ragged as well: what sharding adds are two.
  CHECK(number(report, "macs", "padding") == std::int64_t{4} * 64 * (768 - 704));
}

// https://github.com/tenstorrent/tt-metal/issues/31183: vocabularies of 32003, a prime, and of 128258 = 2 x 13 x 4933.
TEST_CASE("a vocabulary that nothing divides is on any number of chips, every column once") {
  const Folder folder;
  for (const std::int64_t vocabulary : {32003, 128258}) {
    const Matmul shape = matmul(1, 32, vocabulary);
    for (const std::string chips : {"7", "16"}) {
      CAPTURE(vocabulary);
      CAPTURE(chips);
      exact(folder, shape, {"--chips", chips, "--shard", "tensor"});
      std::int64_t columns = 0;
      for (const auto& [extent, count] : slices(folder, "w", 1)) columns += extent * count;
      CHECK(columns == vocabulary);
    }
  }
}

// https://github.com/tenstorrent/tt-metal/issues/34137 and 22654: batched products of odd extents.
TEST_CASE("a stack of 5 x 12 products of 197 x 197 by 197 x 64 is exact") {
  const Folder folder;
  folder.write("workload.toml", R"(name = "stack"
[tensors.x]
role = "input"
shape = [5, 12, 197, 197]
dtype = "int8"
fill = { pattern = { modulus = 61, shift = 30 } }
[tensors.w]
role = "input"
shape = [5, 12, 197, 64]
dtype = "int8"
fill = { pattern = { modulus = 89, shift = 44 } }
[tensors.y]
role = "output"
[[ops]]
kind = "matmul"
in = ["x", "w"]
out = "y"
)");
  rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--chips", "1"}, folder);
  const Json report = run(folder);
  check_exact_pass(report);
  CHECK(number(report, "macs", "useful") == std::int64_t{60} * 197 * 197 * 64);
}

// A layer of Llama's kind with these heads.
std::string decoder(int heads, int kv_heads, int head_dim) {
  return fmt::format(R"({{
  "architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 128, "intermediate_size": 2048, "num_hidden_layers": 1,
  "num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {},
  "vocab_size": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
  "max_position_embeddings": 2048, "tie_word_embeddings": false, "torch_dtype": "bfloat16"
}})",
                     heads, kv_heads, head_dim);
}

std::string compile_decoder(const Folder& folder, const std::string& config, std::vector<std::string> options) {
  folder.write("config.json", config);
  std::vector<std::string> request = {"compile", "config.json", "-o",     "prog.bin",  "--shard",
                                      "tensor",  "--phase",     "decode", "--context", "40"};
  request.insert(request.end(), options.begin(), options.end());
  return rdusim_ok(request, folder).out;
}

// https://github.com/tenstorrent/vllm/issues/50: 8 heads of keys and values on 16 and 32 chips.
TEST_CASE(
    "8 heads of keys and values on 16 and 32 chips are there twice and four times, and the memory table says so") {
  const Folder folder;
  for (const auto& [chips, copies] : {std::pair{"16", "2"}, {"32", "4"}}) {
    CAPTURE(chips);
    const std::string shown = compile_decoder(folder, decoder(16, 8, 64), {"--target", "sn50", "--chips", chips});
    const std::string said = std::string("on ") + copies + " chips alike";
    for (const std::string weight : {"k_proj.weight", "v_proj.weight"}) {
      const std::size_t at = shown.find(weight + " ", shown.find("memory of each"));
      REQUIRE(at != std::string::npos);
      CHECK(shown.substr(at, shown.find('\n', at) - at).find(said) != std::string::npos);
    }
    const Json report = run(folder);
    check_exact_pass(report);
    CHECK(list(report, "collectives").size() == 2);  // nothing of an attention is gathered
  }
}

// https://github.com/microsoft/DeepSpeed/issues/3634: 52 heads over 8; Gradient-HuggingFace, issue 4: 32 over 12.
TEST_CASE("52 heads over 8 chips and 32 over 12 are refused, or dealt unevenly and exactly where that is asked for") {
  const Folder folder;
  struct Case {
    int heads;
    std::string chips, code;
  };
  for (const auto& [heads, chips, code] : {Case{52, "8", "RDU4103"}, {32, "12", "RDU4102"}}) {
    CAPTURE(heads);
    folder.write("config.json", decoder(heads, heads, 32));
    const Outcome plain = rdusim({"compile", "config.json", "-o", "refused.bin", "--shard", "tensor", "--phase",
                                  "decode", "--context", "40", "--chips", chips},
                                 folder);
    CHECK(plain.status == 2);
    INFO(plain.err);
    CHECK(plain.err.find(code) != std::string::npos);
    CHECK(plain.err.find("--uneven") != std::string::npos);
    CHECK_FALSE(folder.has("refused.bin"));
    compile_decoder(folder, decoder(heads, heads, 32), {"--chips", chips, "--uneven"});
    const Json report = run(folder);
    check_exact_pass(report);
    CHECK(list(report, "collectives").size() == 2);
  }
}

// https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md: a ring of n sends 2 (n - 1) / n of the bytes a chip.
TEST_CASE("16 KiB over a ring of 16: 30 steps of 1,024 bytes, 30,720 a chip, and the bus has 1.875 of the algorithm") {
  const Folder folder;
  Matmul shape = matmul(1, 32 * 16, 4096);
  shape.schedule = "sites = 1\nunroll_k = 1\nblock_n = 128";
  const Json report = compile_and_run(folder, shape, {"--chips", "16", "--shard", "row", "--collective", "ring"});
  check_exact_pass(report);
  const Json& ring = at(report, "collectives", 0);
  CHECK(number(ring, "bytes") == 16384);
  CHECK(number(ring, "sent_bytes") == 16 * 30720);
  CHECK(real(ring, "busbw_gb_per_s") == doctest::Approx(1.875 * real(ring, "algbw_gb_per_s")).epsilon(1e-9));
  int receives = 0;
  for (const Json& stage : list(report, "stages")) {
    if (text(stage, "name").find("all_reduce.recv_c") == std::string::npos) continue;
    ++receives;
    CHECK(number(stage, "firings") == 30);
  }
  CHECK(receives == 16);
  for (const Json& buffer : list(report, "buffers"))
    if (text(buffer, "name").find("all_reduce.landing_c") != std::string::npos)
      CHECK(number(buffer, "bytes") % 1024 == 0);
}

// LLMServingSim, issue 11: 8 units in 8 groups of one, 16 in 16, waited for each other.
TEST_CASE("8 groups of one chip each, and 16, have nothing to do: no bytes on links, not a cycle more") {
  const Folder folder;
  for (const int chips : {8, 16}) {
    CAPTURE(chips);
    const Matmul shape = matmul(32, 64, 32 * chips);
    const Json alone = exact(folder, shape, {"--chips", std::to_string(chips), "--shard", "column"});
    Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
    remove(program, "certificate");
    for (int c = 0; c < chips; ++c)
      at(program, "collectives")
          .as_array()
          ->push_back(parsed(fmt::format(
              R"({{"id": {}, "name": "alone{}", "kind": "all_reduce", "algorithm": "ring", "reason": "a group of one",
                   "members": [{}], "order": 0, "bytes": [{}], "op": 0}})",
              c, c, c, 32 * 32 * 4)));
    folder.write("groups.json", to_text(program));
    rdusim_ok({"assemble", "groups.json", "-o", "groups.bin"}, folder);
    const Json report = run(folder, {}, "groups.bin");
    CHECK(text(report, "verdict") == "pass");
    CHECK(list(report, "collectives").size() == static_cast<std::size_t>(chips));
    for (const Json& l : list(report, "links")) CHECK(number(l, "bytes") == 0);
    CHECK(number(report, "cycles", "simulated") == number(alone, "cycles", "simulated"));
    CHECK(text(report, "outputs", 0, "sha256") == shape.sha256());
  }
}

}  // namespace
}  // namespace rdusim::test::published_cases_test
