#include "compiler/workload/hf_routing.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "compiler/support/file.h"
#include "compiler/support/units.h"

namespace rdusim {

namespace {

constexpr Bytes most_bytes = Bytes{64} << 20;

// "6,2" as numbers; nothing where it is not that.
std::optional<std::vector<std::int64_t>> numbers_in(std::string_view line) {
  std::vector<std::int64_t> list;
  while (true) {
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    list.push_back(value);
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    if (line.empty()) return list;
    if (line.front() != ',') return std::nullopt;
    line.remove_prefix(1);
  }
}

}  // namespace

std::vector<std::int64_t> ExpertRouting::tokens_of(std::int64_t expert) const {
  std::vector<std::int64_t> tokens;
  for (std::size_t t = 0; t < of_tokens.size(); ++t)
    if (std::binary_search(of_tokens[t].begin(), of_tokens[t].end(), expert))
      tokens.push_back(static_cast<std::int64_t>(t));
  return tokens;
}

Result<ExpertRouting> read_routing(const std::string& path, const DecoderExperts& experts, std::int64_t tokens) {
  auto file = read_file(path, most_bytes);
  if (!file) return file.diagnostics();
  const std::string_view text = *file;
  ExpertRouting routing;
  routing.source =
      fmt::format("{} (sha256 {})", std::filesystem::path(path).filename().string(), sha256(text).substr(0, 12));
  Diagnostics out;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size() && routing.of_tokens.size() < static_cast<std::uint64_t>(tokens);) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const std::string where = fmt::format("{}:{}", path, number);
    auto list = numbers_in(line);
    if (!list) {
      out.error(Code::RDU1068, where, "a token's experts are numbers, separated by commas");
      return out;
    }
    std::sort(list->begin(), list->end());
    if (std::adjacent_find(list->begin(), list->end()) != list->end()) {
      out.error(Code::RDU1068, where, "a token goes to an expert twice");
      return out;
    }
    if (list->size() != static_cast<std::uint64_t>(experts.per_token) || list->back() >= experts.experts) {
      out.error(Code::RDU1068, where, "a token goes to {} experts, the greatest number {}; the model's go to {} of {}",
                list->size(), list->back(), experts.per_token, experts.experts);
      return out;
    }
    routing.of_tokens.push_back(std::move(*list));
  }
  if (routing.of_tokens.size() < static_cast<std::uint64_t>(tokens)) {
    out.error(Code::RDU1068, path, "it has the experts of {} tokens, and the step has {}", routing.of_tokens.size(),
              tokens)
        .suggest("ask for a smaller --batch or --context");
    return out;
  }
  return routing;
}

}  // namespace rdusim
