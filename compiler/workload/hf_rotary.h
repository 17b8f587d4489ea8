// The angles of rotary position embedding, as cosines and sines.
//
//   law     pair i of d / 2 turns by theta^(-2i / d) a position; then as `scaling` says:
//           linear: slower by `factor`; llama3: pairs whose wavelength is above positions / low are slower by `factor`,
//           those below positions / high are as they were, those between are mixed by how near they are to each; yarn: pairs
//           from where one turns slow_turns times within the positions of training are slower by `factor`, those up to where
//           one turns fast_turns times as they were, those between mixed by their number; longrope: each is slower by a factor
//           of its own, of the long ones where the context is longer than those positions; dynamic: as they were, as long
//           as no context is beyond the model's positions, and none is. What yarn and longrope make is scaled by
//           `amplitude`
//   source  arXiv 2104.09864, 2309.00071 (yarn), 2402.13753 (longrope); modeling_rope_utils.py of
//           github.com/huggingface/transformers
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/workload/hf_decoder_config.h"

namespace rdusim {

// Radians a position, of rotary_columns / 2 pairs, where the last token sees `context` positions. `local`: with
// rotary_local_theta and without scaling.
std::vector<double> rotary_frequencies(const DecoderConfig& config, bool local, std::int64_t context = 1);

struct RotaryTable {
  std::vector<double> cosines, sines;  // row-major, one row a position, rounded to the dtype
};

// Of positions first to first + count - 1, the last that the last token sees, `repeats` times over.
RotaryTable rotary_table(const DecoderConfig& config, bool local, std::int64_t first, std::int64_t count,
                         std::int64_t repeats, DType dtype);

}  // namespace rdusim
