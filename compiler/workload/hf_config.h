// The config.json of a Hugging Face model, to a DecoderConfig.
//
//   accepts   the architectures that known_architectures() lists; any other is refused by name (RDU1041)
//   checks    the kind and range of every value that is read, and that they agree with each other; `null` counts as
//   absent warns     of keys that it neither reads nor knows to change nothing (RDU1044) the page  hf-config.md says
//   which keys are read
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/result.h"
#include "compiler/workload/hf_decoder_config.h"

namespace rdusim {

// Whether `path` is what read_hf_config reads: a folder, or a file that ends in .json.
bool is_hf_model(const std::string& path);

// The config.json that `path` names, or that lies in the folder `path`.
std::string hf_config_path(const std::string& path);

// Errors: RDU1001, RDU1002, RDU1005-RDU1007, RDU1024, RDU1040-RDU1043. Warning: RDU1044.
Result<DecoderConfig> read_hf_config(const std::string& path);

// Of its text; `where` names it in messages.
Result<DecoderConfig> parse_hf_config(std::string_view text, const std::string& where);

std::vector<std::string_view> known_architectures();  // in alphabetical order

}  // namespace rdusim
