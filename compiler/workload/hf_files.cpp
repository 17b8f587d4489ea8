#include "compiler/workload/hf_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "compiler/support/file.h"
#include "compiler/support/json.h"

namespace rdusim {
namespace {

constexpr std::string_view single_file = "model.safetensors";
constexpr std::string_view index_file = "model.safetensors.index.json";
constexpr std::uint64_t index_limit = std::uint64_t{64} << 20;  // bytes; a map of 10^5 tensors has some 10 MB

}  // namespace

Result<std::map<std::string, std::string>> parse_weight_map(std::string_view text, const std::string& where) {
  Diagnostics out;
  const auto json = parse_json(text, where, Code::RDU1047, {.max_depth = 16, .max_bytes = index_limit});
  if (!json) return json.diagnostics();
  const Json* map = json->find("weight_map");
  if (map == nullptr || map->as_object() == nullptr) {
    out.error(Code::RDU1047, where, "it has no object 'weight_map' from tensors to files");
    return out;
  }
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : *map->as_object()) {
    const std::string* name = file.as_string();
    if (name == nullptr || !name->ends_with(".safetensors")) {
      out.error(Code::RDU1047, fmt::format("{}:{}:{}", where, file.line, file.column),
                "the file of '{}' is not a name that ends in .safetensors", tensor);
      continue;
    }
    files.emplace(tensor, *name);
  }
  if (out.has_errors()) return out;
  return files;
}

Result<HfFiles> HfFiles::open(const std::string& folder) {
  const std::string base = folder.empty() ? "." : folder;
  HfFiles out;
  out.folder_ = base;
  std::error_code error;
  const std::string index = fmt::format("{}/{}", base, index_file);
  if (std::filesystem::exists(index, error)) {
    const auto text = read_file(index, index_limit);
    if (!text) return text.diagnostics();
    auto files = parse_weight_map(*text, index);
    if (!files) return files.diagnostics();
    out.where_ = index;
    out.files_ = *std::move(files);
    out.any_ = true;
    return out;
  }
  out.where_ = fmt::format("{}/{}", base, single_file);
  out.any_ = std::filesystem::exists(out.where_, error);
  return out;
}

Result<const HfFiles::OpenedFile*> HfFiles::opened(const std::string& file) {
  if (const auto known = opened_.find(file); known != opened_.end()) return &known->second;
  const auto path = path_within(folder_, file, where_);
  if (!path) return path.diagnostics();
  const auto data = DataFile::open(*path, file, where_);
  if (!data) return data.diagnostics();
  auto index = read_safetensors_index(*data, file, where_);
  if (!index) return index.diagnostics();
  const auto digest = data->sha256();
  if (!digest) {
    Diagnostics out;
    out.error(Code::RDU1001, where_, "'{}' cannot be read to its end", file);
    return out;
  }
  return &opened_.emplace(file, OpenedFile{*std::move(index), data->size(), *digest}).first->second;
}

Result<FileFill> HfFiles::find(const std::string& tensor, DType dtype, const std::vector<std::int64_t>& shape) {
  std::string file(single_file);
  if (files_) {
    const auto found = files_->find(tensor);
    if (found == files_->end()) {
      Diagnostics out;
      out.error(Code::RDU1020, where_, "it has no tensor '{}'", tensor);
      return out;
    }
    file = found->second;
  }
  const auto in = opened(file);
  if (!in) return in.diagnostics();
  const auto offset = safetensors_data_offset((*in)->index, tensor, dtype, shape, file, where_);
  if (!offset) return offset.diagnostics();
  return FileFill{
      .path = file, .tensor = tensor, .size_bytes = (*in)->size_bytes, .sha256 = (*in)->sha256, .data_offset = *offset};
}

}  // namespace rdusim
