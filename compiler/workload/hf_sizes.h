// How large a decoder is: parameters, bytes by part, what a token reads, and what each chip holds under tensor
// parallelism. Exact: every figure is a sum over the weights of hf_weights.h.
//
//   cache     a token: keys and values of every layer (latent attention: its narrow rows); a layer with a window holds
//             no more positions than that
//   read      by a step of decoding: each weight once, of the embedding nothing (a row), of the experts those of one
//             token (the least that a batch can need); and the cache of each sequence
//   chip      as hf_weights.h deals it; over more than one chip, rows of the vocabulary are padded to whole tiles
//   not held  activations: they stay in the chip's own memory
//   units     bytes; bytes are printed with both GB (10^9) and GiB (2^30)
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compiler/support/units.h"
#include "compiler/workload/hf_request.h"
#include "compiler/workload/hf_weights.h"

namespace rdusim {

struct PartSizes {
  std::int64_t parameters = 0;
  Bytes bytes = 0;
  std::int64_t parameters_read = 0;
  Bytes bytes_read = 0;
};

struct DecoderSizes {
  std::array<PartSizes, decoder_parts> parts;  // by DecoderPart
  PartSizes all;                               // their sum
  Bytes cache_bytes_per_token = 0;             // before any window is full
  Bytes cache_bytes = 0;                       // of batch sequences of context positions; a step reads all of it
  std::int64_t macs_per_token = 0;             // of a step of decoding: matrices, scores and weighted values

  const PartSizes& part(DecoderPart p) const { return parts[static_cast<std::size_t>(p)]; }
};

// Requires `config` from asked_of(config, request).
DecoderSizes decoder_sizes(const DecoderConfig& config, const DecoderRequest& request);

// What one chip has of each unit.
struct ChipDeal {
  std::int64_t query_heads = 0;  // with copies, where chips are a multiple of the heads
  std::int64_t output_rows = 0;
  std::int64_t key_value_heads = 0;  // with copies
  std::int64_t columns = 0;
  std::int64_t shared_columns = 0;
  std::int64_t experts = 0;
  std::int64_t expert_columns = 0;
  std::int64_t vocabulary = 0;         // true rows; over all chips their sum is the vocabulary
  std::int64_t vocabulary_stored = 0;  // with padding

  std::int64_t count(DealtUnit unit) const;
};

struct ChipSizes {
  ChipDeal deal;
  std::array<Bytes, decoder_parts> parts{};
  Bytes cache = 0;
  Bytes total = 0;
  Bytes read = 0;  // a step of decoding: weights and cache
};

// Of each chip of `chips`; tiles are of `tile` rows. Requires 1 <= chips <= 2^20 and tile >= 1.
std::vector<ChipSizes> chip_sizes(const DecoderConfig& config, const DecoderRequest& request, std::int64_t chips,
                                  std::int64_t tile);

// What does not divide over `chips`, a line each: "128 heads over 12 chips: 11 or 10". Empty: every chip has the same.
std::vector<std::string> uneven_shares(const DecoderConfig& config, std::int64_t chips);

// Of each key-value head, how many chips have it, at most. 1: no copies.
std::int64_t key_value_copies(const DecoderConfig& config, std::int64_t chips);

}  // namespace rdusim
