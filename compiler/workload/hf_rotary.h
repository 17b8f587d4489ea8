// The angles of rotary position embedding, as cosines and sines.
//
//   law     pair i of d / 2 turns by theta^(-2i / d) a position; then as `scaling` says:
//           linear: slower by `factor`; llama3: pairs whose wavelength is above positions / low are slower by `factor`,
//           those below positions / high are as they were, those between are mixed by how near they are to each
//   source  arXiv 2104.09864; modeling_rope_utils.py of github.com/huggingface/transformers (`linear`, `llama3`)
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/workload/hf_decoder_config.h"

namespace rdusim {

// Radians a position, of rotary_columns / 2 pairs. `local`: with rotary_local_theta and without scaling. Requires a
// scaling that is none, linear or llama3.
std::vector<double> rotary_frequencies(const DecoderConfig& config, bool local);

struct RotaryTable {
  std::vector<double> cosines, sines;  // row-major, one row a position, rounded to the dtype
};

// Of positions first to first + count - 1, `repeats` times over.
RotaryTable rotary_table(const DecoderConfig& config, bool local, std::int64_t first, std::int64_t count,
                         std::int64_t repeats, DType dtype);

}  // namespace rdusim
