// Every weight of a decoder: its name and shape in the model's files, the part it belongs to, how tensor parallelism
// deals it out over chips, and how much of it a token reads. Sizes, files and the operator graph all come from this
// list.
//
//   columns   q, k, v, gate and up are split along their outputs, o and down along their inputs: a chip has whole heads
//             and whole columns of the MLP, and two all-reduces a layer add what the chips have
//   heads     while chips are no more than key-value heads, those are dealt with the heads that share them; beyond,
//   heads
//             are dealt, and a chip has every key-value head that one of its heads reads: copies
//   experts   whole, while chips are no more than experts; beyond, the columns of each are dealt
//   rows      of the vocabulary, for embedding and head
//   copied    norms, router, what is added to a whole sum, and latent attention's narrow layers
//   dealing   of c units over n chips: the first c mod n have one more
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/workload/hf_decoder_config.h"

namespace rdusim {

enum class DecoderPart : std::uint8_t { embedding, attention, mlp, norms, head };
inline constexpr std::size_t decoder_parts = 5;

// What is dealt out.
enum class DealtUnit : std::uint8_t {
  query_heads,
  output_rows,  // of the matrix that takes the heads' outputs: a row for each of their columns
  key_value_heads,
  columns,         // of a dense MLP
  shared_columns,  // of the shared expert
  experts,
  expert_columns,  // of all experts: experts x intermediate of them
  vocabulary,
};

// `elements` of a weight belong to each unit. Those of no share are on every chip.
struct DealtShare {
  DealtUnit unit = DealtUnit::columns;
  std::int64_t elements = 0;
};

struct DecoderWeight {
  std::string name;  // as in the files; of one expert's: with "{}" for its number
  std::vector<std::int64_t> shape;
  DecoderPart part = DecoderPart::mlp;
  bool linear = false;      // a matrix that activations are multiplied with, but the head
  bool gathered = false;    // one row a token is read (an embedding that is not the head)
  bool routed = false;      // of the experts: a token reads per_token of them
  std::int64_t copies = 1;  // experts that have one each
  std::vector<DealtShare> shares = {};

  std::int64_t elements() const;  // of all copies
};

// Of layer `layer`, in the order of the computation. Requires layer < config.layers.size().
std::vector<DecoderWeight> layer_weights(const DecoderConfig& config, std::size_t layer);

DecoderWeight embedding_weight(const DecoderConfig& config);
DecoderWeight final_norm_weight(const DecoderConfig& config);
// Requires !config.tied_embeddings.
DecoderWeight head_weight(const DecoderConfig& config);

std::string_view name_of(DecoderPart part);

}  // namespace rdusim
