// A decoder, whole, from its config.json to checked logits: what it does with tokens, caches and heads on one chip.
#include <doctest/doctest.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::decoder_test {
namespace {

// Two layers with a small vocabulary; heads are whole tiles, extents are not.
constexpr std::string_view config = R"({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2,
  "vocab_size": 211, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 100000,
  "torch_dtype": "bfloat16", "hidden_size": 96, "intermediate_size": 160, "num_attention_heads": 4,
  "num_key_value_heads": 2, "head_dim": 32})";

}  // namespace

TEST_CASE("a decoder's steps and prompts are exact, for one sequence and several, and caches are updated in place") {
  struct Request {
    std::string phase, context, batch, dtype;
    std::size_t outputs;
  };
  for (const Request& r : {Request{"decode", "70", "1", "bf16", 5}, Request{"decode", "1", "1", "bf16", 5},
                           Request{"decode", "70", "3", "fp32", 5}, Request{"prefill", "33", "2", "bf16", 5}}) {
    CAPTURE(r.phase);
    CAPTURE(r.context);
    CAPTURE(r.batch);
    const Folder folder;
    folder.write("config.json", std::string(config));
    rdusim_ok({"compile", "config.json", "-o", "prog.bin", "--phase", r.phase, "--context", r.context, "--batch",
               r.batch, "--dtype", r.dtype},
              folder);
    const Json report = run(folder, {"--check", "exact"});
    check_exact_pass(report);
    // Logits, and keys and values of both layers: as outputs of a prompt, as the caches that a step leaves.
    CHECK(list(report, "outputs").size() == r.outputs);
  }
}

}  // namespace rdusim::test::decoder_test
