// `rdusim model CONFIG`: how large a decoder is, what each chip holds of it, and how fast its memory lets it be.
#pragma once

#include "sim/cli/words.h"

namespace rdusim::cli {

struct ModelRequest {
  std::string config;  // a config.json, or a folder that has one
  std::string target = "sn40l", dtype;
  std::optional<std::uint32_t> chips, context, batch, layers;
  bool json = false;
};

CommandWords words(ModelRequest& request);

}  // namespace rdusim::cli
