#include "compiler/workload/hf_request.h"

#include <algorithm>

#include "compiler/support/units.h"

namespace rdusim {
namespace {

// Sequences; so that tokens, and elements of a cache, can be counted in 63 bits.
constexpr std::int64_t most_sequences = std::int64_t{1} << 16;

}  // namespace

std::int64_t context_of(const DecoderConfig& config, const DecoderRequest& request) {
  return request.context.value_or(std::min<std::int64_t>(4096, config.positions));
}

DecoderTypes types_of(const DecoderConfig& config, const DecoderRequest& request) {
  const DType asked = request.dtype.value_or(config.dtype);
  return {asked, bytes_of(asked) == 1 ? DType::bf16 : asked};
}

Result<DecoderConfig> asked_of(DecoderConfig config, const DecoderRequest& request) {
  Diagnostics out;
  const auto wrong = [&](std::string_view what, std::int64_t asked, std::int64_t most, std::string_view why) {
    if (asked >= 1 && asked <= most) return;
    out.error(Code::RDU1046, config.where, "{} {} is asked for; 1 to {} is accepted, {}", what, asked, most, why);
  };
  wrong("batch", request.batch, most_sequences, "the limit of rdusim");
  const std::int64_t context = context_of(config, request);
  wrong("context", context, config.positions, "the model's max_position_embeddings");
  if (request.layers)
    wrong("layers", *request.layers, static_cast<std::int64_t>(config.layers.size()), "the model's layers");
  if (request.dtype && is_integer(*request.dtype))
    out.error(Code::RDU1046, config.where, "dtype {} is asked for; bf16, fp32 and fp8 are accepted",
              name_of(*request.dtype));
  if (out.has_errors()) return out;
  const std::int64_t width =
      config.latent ? config.latent->key_value_rank + config.latent->rotary_width : 2 * config.key_value_width();
  const std::int64_t token = width * static_cast<std::int64_t>(config.layers.size()) * 4;  // bytes, at most
  const auto sequence = checked_multiply(token, context);
  if (!sequence || !checked_multiply(*sequence, request.batch)) {
    out.error(Code::RDU1046, config.where,
              "the key-value cache of {} sequences of {} positions has more than 2^63 bytes", request.batch, context);
    return out;
  }
  if (request.layers) config.layers.resize(static_cast<std::size_t>(*request.layers));
  return config;
}

Result<DType> decoder_dtype(const std::string& text) {
  if (text == "fp8") return DType::fp8_e4m3;
  const auto named = dtype_named(text);
  if (named && !is_integer(*named)) return *named;
  Diagnostics out;
  out.error(Code::RDU1046, "--dtype", "'{}' is none of bf16, fp32, fp8, fp8_e4m3, fp8_e5m2", text);
  return out;
}

Result<DecoderPhase> decoder_phase(const std::string& text) {
  if (text == "decode") return DecoderPhase::decode;
  if (text == "prefill") return DecoderPhase::prefill;
  Diagnostics out;
  out.error(Code::RDU1046, "--phase", "'{}' is neither decode nor prefill", text);
  return out;
}

}  // namespace rdusim
