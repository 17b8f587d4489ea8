#include "sim/cli/model_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/json.h"
#include "compiler/target/describe.h"
#include "compiler/workload/hf_config.h"
#include "compiler/workload/hf_sizes.h"
#include "sim/cli/commands.h"
#include "sim/cli/terminal.h"

namespace rdusim::cli {

CommandWords words(ModelRequest& r) {
  return {"model",
          "how large a Hugging Face decoder is, what each chip holds of it, and how fast its memory lets it be",
          "rdusim model examples/llama-3.1-405b/config.json --chips 16 --context 8192",
          {{"config", "a config.json, or a folder that has one", &r.config, true},
           {"--target", "a machine by name, or its file (default: sn40l)", &r.target},
           {"--chips", "chips of tensor parallelism (default: 1)", &r.chips},
           {"--dtype", "bf16, fp32, fp8 (linear layers of attention and MLP); default: the weights' own", &r.dtype},
           {"--context", "positions in the cache (default: 4096, or all that the model has)", &r.context},
           {"--batch", "sequences (default: 1)", &r.batch},
           {"--layers", "only the first so many", &r.layers},
           {"--json", "as JSON", &r.json}}};
}

namespace {

// All that is printed, as numbers.
struct ModelFigures {
  DecoderConfig config;
  DecoderRequest request;
  DecoderTypes types;
  DecoderSizes sizes;
  std::vector<ChipSizes> chips;
  std::vector<std::string> uneven;
  std::int64_t copies = 1;  // of key-value heads
  Bytes capacity = 0;
  std::size_t fullest = 0;  // chip

  const ChipSizes& full() const { return chips[fullest]; }
  bool fits() const { return full().total <= capacity; }
  Bytes step_bytes() const { return sizes.all.bytes_read + sizes.cache_bytes; }
};

// Milliseconds of a step and tokens a second of all sequences, where each chip reads `bytes` at `gb_per_s`.
struct RooflinePoint {
  double gb_per_s = 0;
  double ms = 0;
  double tokens_per_s = 0;
};

RooflinePoint point(double bytes_a_chip, double gb_per_s, std::int64_t batch) {
  const double ms = bytes_a_chip / gb_per_s / 1e6;
  return {gb_per_s, ms, static_cast<double>(batch) * 1000 / ms};
}

struct Roofline {
  RooflinePoint peak, sustainable;  // every chip with an even share
  RooflinePoint fullest;            // what the chip with most to read needs, at what its memory sustains
  double compute_ms = 0;            // the multiply-accumulates of a step at their peak rate
};

Roofline roofline_of(const ModelFigures& f, const Target& target) {
  const auto chips = static_cast<double>(f.chips.size());
  const double share = static_cast<double>(f.step_bytes()) / chips;
  const auto most = std::max_element(f.chips.begin(), f.chips.end(),
                                     [](const ChipSizes& a, const ChipSizes& b) { return a.read < b.read; });
  const double sustainable = sustainable_gb_per_s(target, target.hbm);
  Roofline r;
  r.peak = point(share, peak_gb_per_s(target, target.hbm), f.request.batch);
  r.sustainable = point(share, sustainable, f.request.batch);
  r.fullest = point(static_cast<double>(most->read), sustainable, f.request.batch);
  const double tera = 2 * static_cast<double>(f.sizes.macs_per_token) * static_cast<double>(f.request.batch) / 1e12;
  const double rate = peak_tflops(target, f.types.linear) * chips;
  r.compute_ms = rate > 0 ? tera / rate * 1000 : 0;
  return r;
}

Result<ModelFigures> figures(const ModelRequest& r, const Target& target) {
  Diagnostics wrong;
  DecoderRequest request;
  if (!r.dtype.empty()) {
    const auto dtype = decoder_dtype(r.dtype);
    if (dtype)
      request.dtype = *dtype;
    else
      wrong.append(dtype.diagnostics());
  }
  const std::uint32_t chips = r.chips.value_or(1);
  if (chips == 0) wrong.error(Code::RDU4108, "--chips", "0 chips are asked for");
  if (chips > target.chips)
    wrong.error(Code::RDU2009, "--chips", "{} chips are asked for; '{}' has {}", chips, target.name, target.chips);
  request.batch = r.batch.value_or(1);
  if (r.layers) request.layers = *r.layers;
  auto read = read_hf_config(r.config);
  if (!read) wrong.append(read.diagnostics());
  if (wrong.has_errors()) return wrong;
  if (r.context) request.context = *r.context;
  auto config = asked_of(*read, request);
  if (!config) return config.diagnostics();

  ModelFigures f;
  f.config = *std::move(config);
  f.request = request;
  f.types = types_of(f.config, request);
  f.sizes = decoder_sizes(f.config, request);
  f.chips = chip_sizes(f.config, request, chips, target.native_tile);
  f.uneven = uneven_shares(f.config, chips);
  f.copies = key_value_copies(f.config, chips);
  f.capacity = target.hbm.capacity_bytes;
  const auto fullest = std::max_element(f.chips.begin(), f.chips.end(),
                                        [](const ChipSizes& a, const ChipSizes& b) { return a.total < b.total; });
  f.fullest = static_cast<std::size_t>(fullest - f.chips.begin());
  return {std::move(f), read.diagnostics()};
}

// ---- text

// What the fullest chip has of a part, in the part's own unit.
std::string held(const ModelFigures& f, DecoderPart part) {
  const ChipDeal& d = f.full().deal;
  const DecoderConfig& c = f.config;
  switch (part) {
    case DecoderPart::embedding:
    case DecoderPart::head: {
      const std::int64_t padding = d.vocabulary_stored - d.vocabulary;
      return fmt::format("{} of {} rows{}", with_commas(static_cast<std::uint64_t>(d.vocabulary)),
                         with_commas(static_cast<std::uint64_t>(c.vocabulary)),
                         padding == 0 ? "" : fmt::format(", and {} of padding", padding));
    }
    case DecoderPart::attention: {
      if (c.latent) return fmt::format("{} of {} heads, latent", d.query_heads, c.heads);
      return fmt::format("{} of {} heads, {} of {} key-value heads{}", d.query_heads, c.heads, d.key_value_heads,
                         c.kv_heads, f.copies == 1 ? "" : fmt::format(" ({} copies of each)", f.copies));
    }
    case DecoderPart::mlp: {
      if (!c.experts) return fmt::format("{} of {} columns", d.columns, c.intermediate);
      if (d.experts < c.experts->experts || f.chips.size() == 1)
        return fmt::format("{} of {} experts", d.experts, c.experts->experts);
      return fmt::format("{} of {} columns of each of {} experts", d.expert_columns / d.experts,
                         c.experts->intermediate, c.experts->experts);
    }
    case DecoderPart::norms:
      return f.chips.size() == 1 ? "" : "all, on every chip";
  }
  return "";
}

std::string parameter_table(const ModelFigures& f) {
  std::string text = fmt::format("{:<12}{:>19}{:>19}  {}\n", "part", "parameters", "read a token", "bytes");
  const auto row = [&](std::string_view name, const PartSizes& p) {
    text += fmt::format("{:<12}{:>19}{:>19}  {}\n", name, with_commas(static_cast<std::uint64_t>(p.parameters)),
                        with_commas(static_cast<std::uint64_t>(p.parameters_read)), format_bytes(p.bytes));
  };
  for (std::size_t i = 0; i < decoder_parts; ++i) row(name_of(static_cast<DecoderPart>(i)), f.sizes.parts[i]);
  row("all", f.sizes.all);
  return text;
}

std::string memory_table(const ModelFigures& f, const Target& target) {
  const ChipSizes& chip = f.full();
  std::string text = fmt::format("memory of chip {} of {}, {}\n", f.fullest, f.chips.size(),
                                 f.uneven.empty() ? "as of every other" : "the fullest");
  const auto row = [&](std::string_view name, Bytes bytes, const std::string& what) {
    text += fmt::format("  {:<10}{:>20}  {:<26}  {}\n", name, with_commas(bytes), format_bytes(bytes), what);
  };
  for (std::size_t i = 0; i < decoder_parts; ++i) {
    const auto part = static_cast<DecoderPart>(i);
    if (chip.parts[i] != 0) row(name_of(part), chip.parts[i], held(f, part));
  }
  row("KV cache", chip.cache, fmt::format("{} x {} positions", f.request.batch, context_of(f.config, f.request)));
  row("all", chip.total,
      fmt::format("{:.1f} % of {}'s HBM: {}", 100 * static_cast<double>(chip.total) / static_cast<double>(f.capacity),
                  target.name, f.fits() ? "fits" : "does not fit"));
  row("HBM", f.capacity, "");
  const Bytes whole = f.sizes.all.bytes;
  const std::uint64_t chips = f.chips.size();
  if (chips > 1) row("weights/n", ceil_div(whole, chips), "an even share of the weights, without copies or padding");
  for (const std::string& u : f.uneven) text += fmt::format("  uneven: {}\n", u);
  while (text.find(" \n") != std::string::npos) text.erase(text.find(" \n"), 1);
  return text;
}

std::string as_text(const ModelFigures& f, const Target& target) {
  const DecoderConfig& c = f.config;
  std::string text = fmt::format("{}, {} layers, hidden size {}, {} heads of {} ({} for keys and values)\n",
                                 c.architecture, c.layers.size(), c.hidden, c.heads, c.head_width, c.kv_heads);
  text += fmt::format("dtype {}{}\n", name_of(f.types.linear),
                      f.types.linear == f.types.other
                          ? ""
                          : fmt::format(" in the linear layers, {} elsewhere", name_of(f.types.other)));
  text += parameter_table(f);
  text += fmt::format("KV cache    {} bytes a token; {} at context {}, batch {}\n",
                      with_commas(f.sizes.cache_bytes_per_token), format_bytes(f.sizes.cache_bytes),
                      context_of(f.config, f.request), f.request.batch);
  text += memory_table(f, target);
  const Roofline r = roofline_of(f, target);
  text += fmt::format("roofline of a step of decoding on {} chip{} of {}: {} of weights and {} of cache are read\n",
                      f.chips.size(), f.chips.size() == 1 ? "" : "s", target.name, format_bytes(f.sizes.all.bytes_read),
                      format_bytes(f.sizes.cache_bytes));
  const auto row = [&](std::string_view name, const RooflinePoint& p) {
    text += fmt::format("  {:<28}{:>9.3f} ms, {:>10.1f} tokens/s at most ({:.0f} GB/s a chip)\n", name, p.ms,
                        p.tokens_per_s, p.gb_per_s);
  };
  row("at the memory's peak", r.peak);
  row("at what it sustains", r.sustainable);
  row("chip with most to read", r.fullest);
  if (r.compute_ms > 0)
    text += fmt::format("  {:<28}{:>9.3f} ms for {} multiply-accumulates a token\n", "arithmetic at its peak",
                        r.compute_ms, with_commas(static_cast<std::uint64_t>(f.sizes.macs_per_token)));
  return text;
}

// ---- JSON

Json point_json(const RooflinePoint& p) {
  return Json().set("gb_per_s", p.gb_per_s).set("ms_per_step", p.ms).set("tokens_per_s", p.tokens_per_s);
}

Json chip_json(const ChipSizes& chip) {
  Json j;
  for (std::size_t i = 0; i < decoder_parts; ++i)
    j.set(fmt::format("{}_bytes", name_of(static_cast<DecoderPart>(i))), chip.parts[i]);
  const ChipDeal& d = chip.deal;
  return j.set("cache_bytes", chip.cache)
      .set("total_bytes", chip.total)
      .set("read_bytes_per_step", chip.read)
      .set("heads", d.query_heads)
      .set("key_value_heads", d.key_value_heads)
      .set("columns", d.columns)
      .set("experts", d.experts)
      .set("vocabulary_rows", d.vocabulary)
      .set("vocabulary_rows_stored", d.vocabulary_stored);
}

Json as_json(const ModelFigures& f, const Target& target) {
  Json parts;
  const auto part_json = [](const PartSizes& p) {
    return Json()
        .set("parameters", p.parameters)
        .set("bytes", p.bytes)
        .set("parameters_read_per_token", p.parameters_read)
        .set("bytes_read_per_token", p.bytes_read);
  };
  for (std::size_t i = 0; i < decoder_parts; ++i)
    parts.set(std::string(name_of(static_cast<DecoderPart>(i))), part_json(f.sizes.parts[i]));
  parts.set("all", part_json(f.sizes.all));
  JsonArray chips;
  for (const ChipSizes& chip : f.chips) chips.push_back(chip_json(chip));
  JsonArray uneven;
  for (const std::string& u : f.uneven) uneven.push_back(u);
  const Roofline r = roofline_of(f, target);
  return Json()
      .set("schema", "rdusim.model/1")
      .set("model", Json()
                        .set("architecture", f.config.architecture)
                        .set("layers", std::uint64_t{f.config.layers.size()})
                        .set("hidden_size", f.config.hidden)
                        .set("heads", f.config.heads)
                        .set("key_value_heads", f.config.kv_heads)
                        .set("head_width", f.config.head_width)
                        .set("vocabulary", f.config.vocabulary))
      .set("options", Json()
                          .set("target", target.name)
                          .set("chips", std::uint64_t{f.chips.size()})
                          .set("dtype", name_of(f.types.linear))
                          .set("context", context_of(f.config, f.request))
                          .set("batch", f.request.batch))
      .set("parts", std::move(parts))
      .set("cache", Json()
                        .set("bytes_per_token", f.sizes.cache_bytes_per_token)
                        .set("bytes", f.sizes.cache_bytes)
                        .set("key_value_copies", f.copies))
      .set("macs_per_token", f.sizes.macs_per_token)
      .set("memory", Json()
                         .set("capacity_bytes", f.capacity)
                         .set("fits", f.fits())
                         .set("fullest_chip", std::uint64_t{f.fullest})
                         .set("uneven", std::move(uneven))
                         .set("chips", std::move(chips)))
      .set("roofline", Json()
                           .set("peak", point_json(r.peak))
                           .set("sustainable", point_json(r.sustainable))
                           .set("fullest_chip", point_json(r.fullest))
                           .set("compute_ms_per_step", r.compute_ms));
}

// The fewest chips that the model fits, of as many as the target has; `evenly`: of those over which everything divides.
std::optional<std::int64_t> chips_that_fit(const ModelFigures& f, const Target& target, bool evenly) {
  constexpr std::int64_t most = 1024;  // to look through
  for (std::int64_t n = 1; n <= std::min<std::int64_t>(target.chips, most); ++n) {
    if (evenly && !uneven_shares(f.config, n).empty()) continue;
    const auto chips = chip_sizes(f.config, f.request, n, target.native_tile);
    const bool fits =
        std::all_of(chips.begin(), chips.end(), [&](const ChipSizes& c) { return c.total <= f.capacity; });
    if (fits) return n;
  }
  return std::nullopt;
}

Diagnostics does_not_fit(const ModelFigures& f, const Target& target) {
  Diagnostics out;
  Diagnostic& d =
      out.error(Code::RDU3017, f.config.where, "chip {} of {} holds {}; the HBM of '{}' has {} a chip", f.fullest,
                f.chips.size(), format_bytes(f.full().total), target.name, format_bytes(f.capacity));
  for (std::size_t i = 0; i < decoder_parts; ++i) {
    const Bytes bytes = f.full().parts[i];
    if (bytes != 0) d.note(f.config.where, "{} {}", name_of(static_cast<DecoderPart>(i)), format_bytes(bytes));
  }
  d.note(f.config.where, "KV cache {}", format_bytes(f.full().cache));
  const auto any = chips_that_fit(f, target, false);
  const auto even = chips_that_fit(f, target, true);
  if (even)
    d.suggest("it fits {} chips{}", *even, any < even ? fmt::format(", or {} with uneven shares", *any) : "");
  else if (any)
    d.suggest("it fits {} chips, with uneven shares", *any);
  else
    d.suggest("it fits no number of the chips of '{}': take a shorter context, a smaller batch, or fp8", target.name);
  return out;
}

}  // namespace

ExitStatus model(const ModelRequest& request) {
  const auto target = find_target(request.target);
  if (!target) return refuse(target.diagnostics());
  const auto f = figures(request, *target);
  if (!f) return refuse(f.diagnostics());
  report(f.diagnostics());
  const std::string text = request.json ? to_text(as_json(*f, *target)) : as_text(*f, *target);
  const ExitStatus printed = print_result(text, ExitStatus::done);
  return printed != ExitStatus::done || f->fits() ? printed : refuse(does_not_fit(*f, *target));
}

}  // namespace rdusim::cli
