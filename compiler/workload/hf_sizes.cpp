#include "compiler/workload/hf_sizes.h"

#include <fmt/format.h>

#include <algorithm>

namespace rdusim {
namespace {

struct DealtRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

DealtRange dealt(std::int64_t units, std::int64_t chips, std::int64_t chip) {
  const std::int64_t each = units / chips;
  const std::int64_t more = units % chips;
  const std::int64_t begin = chip * each + std::min(chip, more);
  return {begin, begin + each + (chip < more ? 1 : 0)};
}

// Several chips work on each query head, and each takes its part of what the head gives.
bool heads_are_shared(const DecoderConfig& c, std::int64_t chips) {
  return !c.latent && chips > c.heads && chips % c.heads == 0;
}

DealtRange dealt_query_heads(const DecoderConfig& c, std::int64_t chips, std::int64_t chip) {
  if (!heads_are_shared(c, chips)) return dealt(c.heads, chips, chip);
  const std::int64_t head = chip / (chips / c.heads);
  return {head, head + 1};
}

// Key-value heads of which chip `chip` has some query head.
DealtRange key_value_heads(const DecoderConfig& c, std::int64_t chips, std::int64_t chip) {
  if (chips <= c.kv_heads) return dealt(c.kv_heads, chips, chip);
  const DealtRange q = dealt_query_heads(c, chips, chip);
  if (q.size() == 0) return {};
  const std::int64_t group = c.heads / c.kv_heads;
  return {q.begin / group, (q.end - 1) / group + 1};
}

// Latent attention has no key-value heads to keep together: each head makes its own of the narrow rows.
std::int64_t query_heads(const DecoderConfig& c, std::int64_t chips, std::int64_t chip) {
  if (c.latent || chips > c.kv_heads) return dealt_query_heads(c, chips, chip).size();
  return dealt(c.kv_heads, chips, chip).size() * (c.heads / c.kv_heads);
}

ChipDeal deal(const DecoderConfig& c, std::int64_t chips, std::int64_t chip, std::int64_t tile) {
  ChipDeal d;
  d.query_heads = query_heads(c, chips, chip);
  const std::int64_t width = c.latent ? c.latent->value_width : c.head_width;
  d.output_rows = heads_are_shared(c, chips) ? dealt(c.heads * width, chips, chip).size() : d.query_heads * width;
  d.key_value_heads = key_value_heads(c, chips, chip).size();
  d.columns = dealt(c.intermediate, chips, chip).size();
  if (c.experts) {
    const DecoderExperts& e = *c.experts;
    d.shared_columns = dealt(e.shared_intermediate, chips, chip).size();
    const bool whole = chips <= e.experts;
    d.experts = whole ? dealt(e.experts, chips, chip).size() : e.experts;
    d.expert_columns = whole ? d.experts * e.intermediate : e.experts * dealt(e.intermediate, chips, chip).size();
  }
  d.vocabulary = dealt(c.vocabulary, chips, chip).size();
  d.vocabulary_stored = chips == 1 ? d.vocabulary : (d.vocabulary + tile - 1) / tile * tile;
  return d;
}

// All weights: calls each(weight).
template <class Each>
void for_each_weight(const DecoderConfig& c, Each each) {
  each(embedding_weight(c));
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    for (const DecoderWeight& w : layer_weights(c, i)) each(w);
  }
  each(final_norm_weight(c));
  if (!c.tied_embeddings) each(head_weight(c));
}

std::int64_t dealt_elements(const DecoderWeight& w, const ChipDeal& chip) {
  if (w.shares.empty()) return w.elements();
  std::int64_t n = 0;
  for (const DealtShare& s : w.shares) n += s.elements * chip.count(s.unit);
  return n;
}

std::int64_t read_elements(const DecoderConfig& c, const DecoderWeight& w) {
  if (w.gathered) return 0;
  if (!w.routed) return w.elements();
  return w.elements() / c.experts->experts * c.experts->per_token;
}

// The fullest chip's share of the experts of one token is at least this.
std::int64_t dealt_read_elements(const DecoderConfig& c, const DecoderWeight& w, const ChipDeal& chip,
                                 std::int64_t chips) {
  if (w.gathered) return 0;
  const std::int64_t held = dealt_elements(w, chip);
  if (!w.routed || chip.experts == 0) return held;
  const std::int64_t used = chips > c.experts->experts
                                ? c.experts->per_token
                                : std::min((c.experts->per_token + chips - 1) / chips, chip.experts);
  return held / chip.experts * used;
}

// Elements of the cache a position of one layer.
std::int64_t cache_row(const DecoderConfig& c, std::int64_t kv_heads) {
  return c.latent ? c.latent->key_value_rank + c.latent->rotary_width : 2 * kv_heads * c.head_width;
}

std::int64_t cached_positions(const DecoderLayer& layer, std::int64_t context) {
  return layer.window == 0 ? context : std::min(context, layer.window);
}

Bytes cache_bytes(const DecoderConfig& c, const DecoderRequest& r, std::int64_t kv_heads, DType dtype) {
  Bytes sum = 0;
  const std::int64_t context = context_of(c, r);
  for (const DecoderLayer& layer : c.layers) {
    sum += static_cast<Bytes>(cache_row(c, kv_heads) * cached_positions(layer, context) * r.batch) * bytes_of(dtype);
  }
  return sum;
}

}  // namespace

std::int64_t ChipDeal::count(DealtUnit unit) const {
  switch (unit) {
    case DealtUnit::query_heads:
      return query_heads;
    case DealtUnit::output_rows:
      return output_rows;
    case DealtUnit::key_value_heads:
      return key_value_heads;
    case DealtUnit::columns:
      return columns;
    case DealtUnit::shared_columns:
      return shared_columns;
    case DealtUnit::experts:
      return experts;
    case DealtUnit::expert_columns:
      return expert_columns;
    case DealtUnit::vocabulary:
      return vocabulary_stored;
  }
  return 0;
}

DecoderSizes decoder_sizes(const DecoderConfig& c, const DecoderRequest& request) {
  const DecoderTypes types = types_of(c, request);
  DecoderSizes out;
  for_each_weight(c, [&](const DecoderWeight& w) {
    PartSizes& part = out.parts[static_cast<std::size_t>(w.part)];
    const Bytes size = bytes_of(w.linear ? types.linear : types.other);
    const std::int64_t read = read_elements(c, w);
    part.parameters += w.elements();
    part.bytes += static_cast<Bytes>(w.elements()) * size;
    part.parameters_read += read;
    part.bytes_read += static_cast<Bytes>(read) * size;
    if (w.shape.size() >= 2 && !w.name.ends_with("_bias")) out.macs_per_token += read;
  });
  for (const PartSizes& p : out.parts) {
    out.all.parameters += p.parameters;
    out.all.bytes += p.bytes;
    out.all.parameters_read += p.parameters_read;
    out.all.bytes_read += p.bytes_read;
  }
  out.cache_bytes_per_token = static_cast<Bytes>(cache_row(c, c.kv_heads)) * c.layers.size() * bytes_of(types.other);
  out.cache_bytes = cache_bytes(c, request, c.kv_heads, types.other);
  const std::int64_t scored = c.latent ? c.latent->plain_width + c.latent->rotary_width : c.head_width;
  const std::int64_t weighted = c.latent ? c.latent->value_width : c.head_width;
  const std::int64_t context = context_of(c, request);
  for (const DecoderLayer& layer : c.layers)
    out.macs_per_token += c.heads * (scored + weighted) * cached_positions(layer, context);
  return out;
}

std::vector<ChipSizes> chip_sizes(const DecoderConfig& c, const DecoderRequest& request, std::int64_t chips,
                                  std::int64_t tile) {
  const DecoderTypes types = types_of(c, request);
  std::vector<ChipSizes> out(static_cast<std::size_t>(chips));
  for (std::int64_t i = 0; i < chips; ++i) out[static_cast<std::size_t>(i)].deal = deal(c, chips, i, tile);
  for_each_weight(c, [&](const DecoderWeight& w) {
    const Bytes size = bytes_of(w.linear ? types.linear : types.other);
    for (ChipSizes& chip : out) {
      const Bytes bytes = static_cast<Bytes>(dealt_elements(w, chip.deal)) * size;
      chip.parts[static_cast<std::size_t>(w.part)] += bytes;
      chip.total += bytes;
      chip.read += static_cast<Bytes>(dealt_read_elements(c, w, chip.deal, chips)) * size;
    }
  });
  for (ChipSizes& chip : out) {
    chip.cache = cache_bytes(c, request, chip.deal.key_value_heads, types.other);
    chip.total += chip.cache;
    chip.read += chip.cache;
  }
  return out;
}

std::vector<std::string> uneven_shares(const DecoderConfig& c, std::int64_t chips) {
  std::vector<std::string> out;
  const auto say = [&](std::string_view what, std::int64_t units) {
    if (units % chips == 0) return;
    out.push_back(fmt::format("{} {} over {} chips: {} or {}", units, what, chips, units / chips + 1, units / chips));
  };
  if (!c.latent && chips <= c.kv_heads)
    say("key-value heads", c.kv_heads);
  else if (!heads_are_shared(c, chips))
    say("heads", c.heads);
  else
    say("columns of the heads", c.heads * c.head_width);
  const bool all_experts =
      std::all_of(c.layers.begin(), c.layers.end(), [](const DecoderLayer& l) { return l.experts; });
  if (!all_experts) say("columns of the MLP", c.intermediate);
  if (c.experts) {
    if (chips <= c.experts->experts)
      say("experts", c.experts->experts);
    else
      say("columns of an expert", c.experts->intermediate);
    if (c.experts->shared_intermediate != 0) say("columns of the shared expert", c.experts->shared_intermediate);
  }
  say("rows of the vocabulary", c.vocabulary);
  return out;
}

std::int64_t key_value_copies(const DecoderConfig& c, std::int64_t chips) {
  if (c.latent) return chips;
  std::vector<std::int64_t> chips_with(static_cast<std::size_t>(c.kv_heads));
  for (std::int64_t chip = 0; chip < chips; ++chip) {
    const DealtRange r = key_value_heads(c, chips, chip);
    for (std::int64_t h = r.begin; h < r.end; ++h) ++chips_with[static_cast<std::size_t>(h)];
  }
  return *std::max_element(chips_with.begin(), chips_with.end());
}

}  // namespace rdusim
