// What can be asked of a model, and what is refused with the numbers.
#include "compiler/workload/hf_request.h"

#include <doctest/doctest.h>

#include "compiler/workload/hf_config.h"

namespace rdusim::hf_request_test {

namespace {

DecoderConfig smollm() {
  const auto config = read_hf_config(RDUSIM_SOURCE_DIR "/examples/smollm2-135m");
  REQUIRE(config.ok());
  return *config;
}

std::string refusal(const DecoderRequest& request) {
  const auto config = asked_of(smollm(), request);
  REQUIRE(!config.ok());
  for (const Diagnostic& d : config.diagnostics().list()) CHECK(d.code == Code::RDU1046);
  return config.diagnostics().to_text();
}

}  // namespace

TEST_CASE("fewer layers are the first ones, and more than the model has are refused") {
  CHECK(asked_of(smollm(), {.layers = 2})->layers.size() == 2);
  CHECK(asked_of(smollm(), {.layers = 30})->layers.size() == 30);
  CHECK(refusal({.layers = 31}).find("layers 31 is asked for; 1 to 30") != std::string::npos);
  CHECK(refusal({.layers = 0}).find("layers 0") != std::string::npos);
}

TEST_CASE("a context is one that the model has positions for") {
  CHECK(asked_of(smollm(), {.context = 8192}).ok());
  CHECK(asked_of(smollm(), {.context = 1}).ok());
  CHECK(refusal({.context = 8193}).find("context 8193 is asked for; 1 to 8192") != std::string::npos);
  CHECK(!asked_of(smollm(), {.context = 0}).ok());
}

TEST_CASE("a batch is at least one sequence") {
  CHECK(asked_of(smollm(), {.batch = 64}).ok());
  CHECK(!asked_of(smollm(), {.batch = 0}).ok());
  CHECK(!asked_of(smollm(), {.batch = -1}).ok());
}

TEST_CASE("a cache of more bytes than can be counted is refused") {
  DecoderConfig c = smollm();
  c.positions = DecoderLimits::positions;
  c.kv_heads = c.heads = 1024;
  c.head_width = 256;
  c.layers.resize(1024);
  const auto asked = asked_of(c, {.batch = 65536, .context = DecoderLimits::positions});
  REQUIRE(!asked.ok());
  CHECK(asked.diagnostics().contains(Code::RDU1046));
}

TEST_CASE("dtypes and phases by name") {
  CHECK(*decoder_dtype("bf16") == DType::bf16);
  CHECK(*decoder_dtype("fp8") == DType::fp8_e4m3);
  CHECK(*decoder_dtype("fp8_e5m2") == DType::fp8_e5m2);
  CHECK(*decoder_dtype("fp32") == DType::fp32);
  CHECK(decoder_dtype("int8").diagnostics().contains(Code::RDU1046));
  CHECK(decoder_dtype("float").diagnostics().contains(Code::RDU1046));
  CHECK(*decoder_phase("decode") == DecoderPhase::decode);
  CHECK(*decoder_phase("prefill") == DecoderPhase::prefill);
  CHECK(decoder_phase("train").diagnostics().contains(Code::RDU1046));
}

TEST_CASE("fp8 is for the linear layers, the rest stays in bf16") {
  const DecoderTypes t = types_of(smollm(), {.dtype = DType::fp8_e4m3});
  CHECK(t.linear == DType::fp8_e4m3);
  CHECK(t.other == DType::bf16);
  CHECK(types_of(smollm(), {.dtype = DType::fp32}).other == DType::fp32);
  CHECK(types_of(smollm(), {}).linear == DType::bf16);
}

}  // namespace rdusim::hf_request_test
