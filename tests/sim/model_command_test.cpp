// `rdusim model` and `rdusim compile` of a Hugging Face model, as scripts see them.
#include <doctest/doctest.h>

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "compiler/support/json.h"

namespace rdusim::model_command_test {
namespace {

struct ModelRun {
  int status = -1;
  std::string out, err;
};

ModelRun run_model(const std::string& words) {
  std::string folder = (std::filesystem::temp_directory_path() / "rdusim-model-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string command = std::string(RDUSIM_BINARY) + " " + words + " >" + folder + "/out 2>" + folder + "/err";
  const int status = std::system(command.c_str());
  const auto slurp = [](const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  ModelRun r{WEXITSTATUS(status), slurp(folder + "/out"), slurp(folder + "/err")};
  std::filesystem::remove_all(folder);
  return r;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string models = RDUSIM_SOURCE_DIR "/examples/";

Json figures_of(const std::string& words, int status = 0) {
  const ModelRun r = run_model("model " + words + " --json");
  INFO(words);
  INFO(r.err);
  REQUIRE(r.status == status);
  const auto json = parse_json(r.out, "out", Code::RDU5006);
  REQUIRE(json.ok());
  return *json;
}

const Json& at(const Json& j, const std::string& path) {
  const Json* here = &j;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    here = here->find(path.substr(begin, end - begin));
    REQUIRE_MESSAGE(here != nullptr, path);
    begin = end + 1;
  }
  return *here;
}

}  // namespace

TEST_CASE("rdusim model: Llama-3.1-8B on 16 chips of sn40l, to the byte, and its roofline") {
  const Json j = figures_of(models + "llama-3.1-8b --chips 16 --context 4096");
  CHECK(at(j, "parts.all.parameters").as_uint64() == 8'030'261'248);
  CHECK(at(j, "parts.all.parameters_read_per_token").as_uint64() == 7'504'924'672);
  CHECK(at(j, "cache.bytes_per_token").as_uint64() == 131'072);
  CHECK(at(j, "cache.key_value_copies").as_uint64() == 2);
  CHECK(at(j, "memory.capacity_bytes").as_uint64() == std::uint64_t{64} << 30U);
  CHECK(*at(j, "memory.fits").as_bool());
  CHECK(at(j, "memory.chips").as_array()->size() == 16);
  // (15,009,849,344 + 4096 x 131,072) bytes over 16 chips of 1.8 TB/s.
  CHECK(*at(j, "roofline.peak.ms_per_step").as_number() == doctest::Approx(0.5398).epsilon(1e-3));
  CHECK(*at(j, "roofline.peak.tokens_per_s").as_number() == doctest::Approx(1852.5).epsilon(1e-3));
  CHECK(*at(j, "roofline.sustainable.ms_per_step").as_number() > 0.5398);
}

TEST_CASE("rdusim model: the published roofline of 8 sockets at a mean context of 768") {
  // 1.049 ms at 1.8 TB/s a socket: 15.0098e9 + 768 x 131,072 bytes over 8.
  CHECK(*at(figures_of(models + "llama-3.1-8b --chips 8 --context 768"), "roofline.peak.ms_per_step").as_number() ==
        doctest::Approx(1.049).epsilon(0.001));
  CHECK(*at(figures_of(models + "llama-3.1-70b --chips 8 --context 768"), "roofline.peak.ms_per_step").as_number() ==
        doctest::Approx(9.67).epsilon(0.001));
}

TEST_CASE("rdusim model: a batch reads the weights once, and a cache each") {
  const Json one = figures_of(models + "llama-3.1-8b --context 1000");
  const Json eight = figures_of(models + "llama-3.1-8b --context 1000 --batch 8");
  CHECK(at(eight, "cache.bytes").as_uint64() == 8 * *at(one, "cache.bytes").as_uint64());
  CHECK(*at(eight, "roofline.peak.tokens_per_s").as_number() > 7 * *at(one, "roofline.peak.tokens_per_s").as_number());
}

TEST_CASE(
    "rdusim model: 405B does not fit 8 chips, and is refused with what takes the room and the chips that hold it") {
  const ModelRun r = run_model("model " + models + "llama-3.1-405b --chips 8");
  CHECK(r.status == 2);
  CHECK(says(r.err, "error RDU3017 chip-memory-exceeded"));
  CHECK(says(r.err, "note: mlp "));
  CHECK(says(r.err, "note: KV cache "));
  CHECK(says(r.err, "GiB"));
  CHECK(says(r.err, "help: it fits 16 chips, or 13 with uneven shares"));
  CHECK(says(r.out, "does not fit"));
  CHECK(!*at(figures_of(models + "llama-3.1-405b --chips 8", 2), "memory.fits").as_bool());
  const ModelRun all = run_model("model " + models + "llama-3.1-405b --chips 16");
  CHECK(all.status == 0);
  CHECK(says(all.out, "8,016 of 128,256 rows, and 16 of padding"));
  CHECK(says(all.out, "1 of 8 key-value heads (2 copies of each)"));
  CHECK(says(all.out, "3328 of 53248 columns"));
  CHECK(says(all.out, "68.72 GB (64.00 GiB)"));
}

TEST_CASE("rdusim model: 405B on 12 chips says which share is meant, and in both units") {
  const ModelRun r = run_model("model " + models + "llama-3.1-405b --chips 12 --context 1");
  CHECK(r.status == 2);
  CHECK(says(r.out, "67.64 GB (63.00 GiB)"));  // an even share, which 64 GiB would hold and 64 GB would not
  CHECK(says(r.out, "uneven: 128 heads over 12 chips: 11 or 10"));
  CHECK(says(r.out, "uneven: 53248 columns of the MLP over 12 chips: 4438 or 4437"));
}

TEST_CASE("rdusim model: what is asked wrongly is refused, status 2") {
  for (const auto& [words, code] :
       {std::pair{"llama-3.1-8b --chips 0", "RDU4108"}, std::pair{"llama-3.1-8b --chips 17", "RDU2009"},
        std::pair{"llama-3.1-8b --dtype int8", "RDU1046"}, std::pair{"llama-3.1-8b --layers 33", "RDU1046"},
        std::pair{"llama-3.1-8b --context 131073", "RDU1046"}, std::pair{"llama-3.1-8b --target nowhere", "RDU2001"},
        std::pair{"no-such-model", "RDU1001"}}) {
    const ModelRun r = run_model("model " + models + words);
    CAPTURE(words);
    CHECK(r.status == 2);
    CHECK(says(r.err, code));
    CHECK(r.out.empty());
  }
}

TEST_CASE("rdusim model: every example is described") {
  for (const std::string name : {"llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "mistral-7b", "qwen3-32b",
                                 "mixtral-8x7b", "smollm2-135m", "gpt-oss-20b", "deepseek-v3"}) {
    // 1.3 TB in bf16 do not fit the HBM of 16 sn40l.
    const std::string machine = name == "deepseek-v3" ? "--target sn50 --chips 64" : "--chips 16";
    const ModelRun r = run_model("model " + models + name + "/config.json " + machine);
    CAPTURE(name);
    CHECK(r.status == 0);
    CHECK(r.err.empty());
    CHECK(says(r.out, "tokens/s at most"));
    CHECK(!says(r.out, " \n"));
  }
}

TEST_CASE("rdusim compile takes a model's options for models only, and judges them") {
  const ModelRun toml = run_model("compile w.toml -o /dev/null --phase decode");
  CHECK(toml.status == 2);
  CHECK(says(toml.err, "RDU6005"));
  CHECK(says(toml.err, "belong to a Hugging Face model"));
  const ModelRun phase = run_model("compile " + models + "smollm2-135m -o /dev/null --phase train");
  CHECK(phase.status == 2);
  CHECK(says(phase.err, "RDU1046"));
  const ModelRun experts = run_model("compile " + models + "mixtral-8x7b -o /dev/null");
  CHECK(experts.status == 2);
  CHECK(says(experts.err, "error RDU1069 routing-missing"));
  CHECK(says(experts.err, "a router that takes 2 of 8 experts"));
}

}  // namespace rdusim::model_command_test
