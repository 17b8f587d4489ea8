// Layers that the host launches one by one, and launches that go as the one before.
#include <doctest/doctest.h>

#include <string>

#include "tests/system/command.h"
#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::relaunch_test {
namespace {

std::string config(int layers) {
  return R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
  "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 512, "rms_norm_eps": 1e-5,
  "rope_theta": 10000.0, "hidden_act": "silu", "max_position_embeddings": 2048, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "num_hidden_layers": )" +
         std::to_string(layers) + "}";
}

void compile_decoder(const Folder& folder, int layers, std::vector<std::string> options) {
  folder.write("config.json", config(layers));
  options.insert(options.begin(), {"compile", "config.json", "-o", "prog.bin", "--shard", "tensor", "--context", "40"});
  rdusim_ok(options, folder);
}

Json parsed(const std::string& text) {
  auto json = parse_json(text, "output", Code::RDU8001);
  REQUIRE(json);
  return std::move(json).value();
}

// The one row of host.reuse.
const Json& reuse(const Json& report) {
  const auto& rows = list(report, "host", "reuse");
  REQUIRE(rows.size() == 1);
  return rows.front();
}

TEST_CASE("layers launched one by one compute the same values, and each pays its launch") {
  const Folder folder;
  for (const std::string chips : {"1", "4"}) {
    CAPTURE(chips);
    compile_decoder(folder, 3, {"--chips", chips});
    const Json streamed = run(folder, {"--check", "exact"});
    compile_decoder(folder, 3, {"--chips", chips, "--relaunch"});
    const Json launched = run(folder, {"--check", "exact"});
    check_exact_pass(launched);
    const auto& before = list(streamed, "outputs");
    const auto& after = list(launched, "outputs");
    REQUIRE(before.size() == after.size());
    for (std::size_t i = 0; i < after.size(); ++i) CHECK(text(after[i], "sha256") == text(before[i], "sha256"));
    // Two launches more of each the machine's 4,200 cycles, by the model and on the machine.
    CHECK(number(launched, "cycles", "causes", "simulated", "launch") ==
          number(streamed, "cycles", "causes", "simulated", "launch") + 2 * 4200);
    CHECK(number(launched, "cycles", "causes", "predicted", "launch") ==
          number(streamed, "cycles", "causes", "predicted", "launch") + 2 * 4200);
    CHECK(number(launched, "cycles", "simulated") > number(streamed, "cycles", "simulated"));
    CHECK(text(reuse(launched), "why_not") == "each has values of its own");
    CHECK(at(streamed, "host", "reuse").is_null());
    const auto& sections = list(launched, "decisions", "sections");
    REQUIRE(sections.size() == 3);
    CHECK(number(sections[1], "trips") == 3);
    CHECK(number(sections[1], "launches") == 3);
    CHECK(number(list(streamed, "decisions", "sections")[1], "launches") == 1);
  }
}

TEST_CASE("launches that go as the one before are simulated once, to the same report") {
  const Folder folder;
  struct Case {
    std::string target, chips, phase;
    std::vector<std::string> compile, run;
  };
  const std::vector<Case> cases = {
      {"sn40l", "1", "decode", {}, {}},
      {"sn40l", "4", "decode", {}, {}},
      {"sn40l", "4", "prefill", {}, {}},
      {"sn40l", "4", "decode", {"--collective", "ring"}, {}},
      {"sn40l", "2", "decode", {"--collective", "halving-doubling"}, {"--network", "flit"}},
      {"sn50", "8", "decode", {}, {}},
      {"sn10", "2", "decode", {"--collective", "direct"}, {}},
      {"wormhole", "2", "decode", {}, {}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.target);
    CAPTURE(c.chips);
    CAPTURE(c.phase);
    std::vector<std::string> options = {"--target", c.target, "--chips", c.chips, "--phase", c.phase, "--relaunch"};
    options.insert(options.end(), c.compile.begin(), c.compile.end());
    compile_decoder(folder, 5, options);
    std::vector<std::string> how = {"--timing-only"};
    how.insert(how.end(), c.run.begin(), c.run.end());
    const Json some = run(folder, how);
    how.push_back("--no-reuse");
    const Json all = run(folder, how);
    CHECK(text(some, "verdict") == "pass");
    CHECK(without_host(some) == without_host(all));
    CHECK(number(reuse(some), "simulated") + number(reuse(some), "reused") == 5);
    CHECK(number(reuse(some), "simulated") <= 2);
    CHECK(number(reuse(all), "reused") == 0);
    CHECK(text(reuse(all), "why_not") == "as asked");
  }
}

TEST_CASE("who wants every event has every launch simulated, in as many cycles") {
  const Folder folder;
  compile_decoder(folder, 3, {"--chips", "4", "--relaunch"});
  const Json some = run(folder, {"--timing-only"});
  const Json traced = run(folder, {"--timing-only", "--trace", "run.rdulog"});
  CHECK(text(reuse(traced), "why_not") == "a trace tells each of their events");
  CHECK(without_host(some) == without_host(traced));
  const Json divided = run(folder, {"--timing-only", "--processes", "2"});
  CHECK(text(reuse(divided), "why_not") == "chips are divided over processes");
  CHECK(without_host(some) == without_host(divided));
  const Json replayed = parsed(rdusim_ok({"trace", "replay", "run.rdulog", "--json"}, folder).out);
  CHECK(number(replayed, "cycles", "simulated") == number(some, "cycles", "simulated"));
}

TEST_CASE("a limit of cycles within launches that would be reused is met where it is without reuse") {
  const Folder folder;
  compile_decoder(folder, 5, {"--chips", "1", "--relaunch"});
  const Json whole = run(folder, {"--timing-only"});
  const std::string limit = std::to_string(number(whole, "cycles", "simulated") * 3 / 5);
  for (const std::string more : {"--report", "--no-reuse"}) {
    CAPTURE(more);
    std::vector<std::string> options = {"run", "prog.bin", "--timing-only", "--max-cycles", limit};
    options.push_back(more);
    if (more == "--report") options.push_back("r.json");
    const Outcome out = rdusim(options, folder);
    CHECK(out.status == 3);
    CHECK(out.err.find("RDU7027") != std::string::npos);
  }
}

TEST_CASE("launches whose tensors lie otherwise in memory are each simulated, and it is said why") {
  const Folder folder;
  compile_decoder(folder, 3, {"--chips", "1", "--relaunch"});
  const std::string all = rdusim_ok({"show", "prog.bin", "--json"}, folder).out;
  const auto place_of = [](Json& program, const std::string& tensor) -> Json& {
    const auto& tensors = list(program, "tensors");
    int i = 0;
    while (text(tensors[static_cast<std::size_t>(i)], "name").find(tensor) == std::string::npos) ++i;
    return at(program, "memory", "tensors", i, "address");
  };
  // Where `tensor` lies so many bytes from where `from` does.
  const auto with_address = [&](const std::string& tensor, const std::string& from, std::int64_t further) {
    Json program = parsed(all);
    const std::int64_t begin = *place_of(program, from).as_int64();
    place_of(program, tensor) = begin + further;
    folder.write("prog.json", to_text(program));
    rdusim_ok({"assemble", "prog.json", "-o", "prog.bin"}, folder);
    const Json some = run(folder, {"--timing-only"});
    CHECK(without_host(some) == without_host(run(folder, {"--timing-only", "--no-reuse"})));
    const std::string* why = at(reuse(some), "why_not").as_string();
    return why == nullptr ? std::string("reused") : *why;
  };
  const auto tells = [](const std::string& why, const char* reason) {
    CAPTURE(why);
    CHECK(why.find(reason) != std::string::npos);
  };
  const std::string layer = "layers.1.input_layernorm.weight";
  // A channel further, in the room that is left to its rows.
  tells(with_address(layer, layer, 512), "does not begin where rows do");
  // What all launches read, in that room.
  tells(with_address("model.norm.weight", layer, 1024), "lie in the same rows of memory");
  CHECK(with_address(layer, layer, 0) == "reused");
}

}  // namespace
}  // namespace rdusim::test::relaunch_test
