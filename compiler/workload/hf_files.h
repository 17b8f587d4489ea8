// The safetensors files of a model's folder: model.safetensors, or several that model.safetensors.index.json names.
//
//   index   {"metadata": {...}, "weight_map": {tensor: file}}; files lie in the folder
//   holds   nothing of the tensors: where each one is, and the hash of each file that is used
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/support/result.h"
#include "compiler/workload/fill.h"
#include "compiler/workload/safetensors.h"

namespace rdusim {

// Tensor to file, of the text of an index; `where` names it. Errors: RDU1047.
Result<std::map<std::string, std::string>> parse_weight_map(std::string_view text, const std::string& where);

class HfFiles {
 public:
  // Of a model without files: every tensor is symbolic.
  HfFiles() = default;

  // Errors: RDU1001, RDU1024, RDU1047.
  static Result<HfFiles> open(const std::string& folder);

  // False: the folder has no safetensors.
  bool any() const { return any_; }

  // Where the tensor's elements are, given that it has just this dtype and shape. Opens and hashes the file where that
  // has not been done. Requires any(). Errors: RDU1001, RDU1007, RDU1019-RDU1021.
  Result<FileFill> find(const std::string& tensor, DType dtype, const std::vector<std::int64_t>& shape);

 private:
  struct OpenedFile {
    SafetensorsIndex index;
    std::uint64_t size_bytes = 0;
    std::string sha256;
  };

  Result<const OpenedFile*> opened(const std::string& file);

  std::string folder_;
  std::string where_;
  bool any_ = false;
  std::optional<std::map<std::string, std::string>> files_;  // absent: all in model.safetensors
  std::map<std::string, OpenedFile> opened_;
};

}  // namespace rdusim
