// Whole decoders from a config.json: compiled, sharded, run with values, and compared to the bit with the reference's
// evaluation of the graph (which tests/sim/reference holds to a plain implementation of the published models).
#include <doctest/doctest.h>

#include <string>

#include "tests/system/command.h"
#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::sharded_decoder_test {
namespace {

// Two layers of Llama's kind: 8 heads of 64 columns, 2 of keys and values. Whole tiles for up to 16 chips, on which
// eight hold each head of keys and values, and two each head of queries.
constexpr const char* config = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
  "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64,
  "vocab_size": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
  "max_position_embeddings": 2048, "tie_word_embeddings": false, "torch_dtype": "bfloat16"
})";

Json decoded(const Folder& folder, const std::string& phase, const std::string& chips,
             std::vector<std::string> run_options = {}) {
  folder.write("config.json", config);
  rdusim_ok({"compile", "config.json", "-o", "prog.bin", "--target", "sn40l", "--chips", chips, "--shard", "tensor",
             "--phase", phase, "--batch", "1", "--context", "40"},
            folder);
  return run(folder, std::move(run_options));
}

const Json& output(const Json& report, const std::string& name) {
  for (const Json& o : *at(report, "outputs").as_array())
    if (text(o, "name") == name) return o;
  FAIL("there is no output ", name);
  return report;
}

TEST_CASE(
    "a step of decoding is exact on one chip and on more, with two all-reduces a layer, caches appended to in place") {
  const Folder folder;
  std::string first_cache;
  for (const std::string chips : {"1", "2", "4", "8", "16"}) {
    CAPTURE(chips);
    const Json report = decoded(folder, "decode", chips);
    check_exact_pass(report);
    CHECK(real(report, "tokens_per_s") > 0);
    CHECK(list(report, "collectives").size() == (chips == "1" ? 0 : 2));  // the output head is cut by columns
    for (const Json& c : list(report, "collectives")) CHECK(number(c, "trips") == 2);
    // What the first layer appends comes before any sum over chips: the same bits however many there are.
    const std::string cache = text(output(report, "model.layers.0.self_attn.key_cached.out"), "sha256");
    if (chips == "1") first_cache = cache;
    CHECK(cache == first_cache);
  }
}

TEST_CASE("a prefill is exact on one chip and on more") {
  const Folder folder;
  for (const std::string chips : {"1", "4"}) {
    CAPTURE(chips);
    const Json report = decoded(folder, "prefill", chips);
    check_exact_pass(report);
    CHECK(at(report, "tokens_per_s").is_null());
  }
}

TEST_CASE("a decoder without values passes every other check in as many cycles") {
  const Folder folder;
  const Json valued = decoded(folder, "decode", "4");
  const Json timed = run(folder, {"--timing-only"});
  CHECK(text(timed, "verdict") == "pass");
  CHECK(number(timed, "cycles", "simulated") == number(valued, "cycles", "simulated"));
}

TEST_CASE("a vocabulary is cut within a tile: every column once, and the time of what is padded told") {
  const Folder folder;
  std::string odd = config;
  odd.replace(odd.find("\"vocab_size\": 512"), 17, "\"vocab_size\": 528");
  folder.write("odd.json", odd);
  rdusim_ok({"compile", "odd.json", "-o", "prog.bin", "--chips", "4", "--shard", "tensor", "--phase", "decode",
             "--context", "40"},
            folder);
  const Json report = run(folder, {"--check", "exact"});
  check_exact_pass(report);
  CHECK(list(report, "collectives").size() == 2);
  // 132 columns a chip take five tiles; 528 on one would take 17: 20 - 17 tiles of 32 columns, of 256 products each.
  // Besides, two chips each work out the same keys and values, 128 columns of each, in both layers.
  CHECK(number(report, "macs", "padding") == 3 * 32 * 256 + 2 * 2 * 128 * 256);
}

TEST_CASE("a decoder over a number of chips that does not divide its heads or extents is exact with --uneven") {
  const Folder folder;
  // Three heads of keys and values over two chips: two and one, with the two heads each that share them. Over four and
  // five, attention is worked out by every chip, and the rest is cut between tiles.
  std::string odd = config;
  odd.replace(odd.find("\"num_attention_heads\": 8, \"num_key_value_heads\": 2"), 50,
              "\"num_attention_heads\": 6, \"num_key_value_heads\": 3");
  odd.replace(odd.find("\"intermediate_size\": 512"), 24, "\"intermediate_size\": 544");
  folder.write("odd.json", odd);
  for (const std::string chips : {"2", "4", "5"}) {
    CAPTURE(chips);
    std::vector<std::string> compile = {"compile", "odd.json", "-o",      "prog.bin", "--chips",   chips,
                                        "--shard", "tensor",   "--phase", "decode",   "--context", "40"};
    if (chips == "5") CHECK(errors_of(rdusim(compile, folder)).starts_with("RDU4102"));
    compile.push_back("--uneven");
    rdusim_ok(compile, folder);
    const Json report = run(folder, {"--check", "exact"});
    check_exact_pass(report);
    // Unequal columns stay where they are: two all-reduces a layer where heads are dealt, and three more for what an
    // attention that is not dealt reads.
    CHECK(list(report, "collectives").size() == (chips == "2" ? 2 : 5));
    CHECK(*at(report, "decisions", "shard", "uneven").as_bool());
  }
}

TEST_CASE("a layer that asks for more sites than a chip has is cut so that it fits") {
  const Folder folder;
  rdusim_ok({"compile", std::string(RDUSIM_SOURCE_DIR) + "/examples/llama-3.1-405b/config.json", "-o", "prog.bin",
             "--chips", "16", "--shard", "tensor", "--phase", "decode", "--context", "256", "--layers", "3"},
            folder);
  CHECK(rdusim_ok({"show", "prog.bin"}, folder).out.find("3 trips of 18 operators each") != std::string::npos);
}

TEST_CASE("layers are trips of one section, whatever their number, and compute what sections of their own compute") {
  const Folder folder;
  std::string deep = config;
  deep.replace(deep.find("\"num_hidden_layers\": 2"), 22, "\"num_hidden_layers\": 5");
  folder.write("config.json", deep);
  const auto compiled = [&](const std::string& layers, const std::string& chips) {
    rdusim_ok({"compile", "config.json", "-o", "prog.bin", "--phase", "decode", "--context", "40", "--layers", layers,
               "--chips", chips, "--shard", "tensor"},
              folder);
    return rdusim_ok({"show", "prog.bin", "--json"}, folder).out;
  };
  const Json two = parsed(compiled("2", "2")), five = parsed(compiled("5", "2"));
  for (const char* part : {"stages", "buffers", "edges", "collectives", "sections", "trees"}) {
    CAPTURE(part);
    CHECK(list(two, part).size() == list(five, part).size());
  }
  REQUIRE(list(five, "sections").size() == 3);
  CHECK(number(list(five, "sections")[1], "trips") == 5);
  const Json report = run(folder, {"--check", "exact"});
  check_exact_pass(report);
  CHECK(list(report, "outputs").size() == 11);
  REQUIRE(list(report, "collectives").size() == 2);
  for (const Json& c : list(report, "collectives")) CHECK(number(c, "trips") == 5);
}

// The sums of a direct reduction are of one order, whether they are scattered or not: the same bits.
TEST_CASE("sequence-parallel, a decoder gives the logits and the caches of the form with all-reduces, to the bit") {
  const Folder folder;
  folder.write("config.json", config);
  for (const std::string chips : {"2", "4"}) {
    CAPTURE(chips);
    std::vector<std::string> compile = {"compile",   "config.json", "-o",      "prog.bin",     "--phase",
                                        "prefill",   "--chips",     chips,     "--collective", "direct",
                                        "--context", "128",         "--shard", "tensor"};
    rdusim_ok(compile, folder);
    const Json reduced = run(folder, {"--check", "exact"});
    check_exact_pass(reduced);
    compile.push_back("--sequence-parallel");
    rdusim_ok(compile, folder);
    const Json scattered = run(folder, {"--check", "exact"});
    check_exact_pass(scattered);
    for (const Json& o : list(reduced, "outputs")) {
      CAPTURE(text(o, "name"));
      CHECK(text(output(scattered, text(o, "name")), "sha256") == text(o, "sha256"));
    }
    // Of each layer's trip: norm, attention's sum, norm, MLP's sum; and the last norm.
    std::string kinds;
    for (const Json& c : list(scattered, "collectives")) kinds += text(c, "kind") + " ";
    CHECK(kinds == "all_gather reduce_scatter all_gather reduce_scatter all_gather ");
    CHECK(number(scattered, "collectives", 1, "trips") == 2);
  }
}

}  // namespace
}  // namespace rdusim::test::sharded_decoder_test
