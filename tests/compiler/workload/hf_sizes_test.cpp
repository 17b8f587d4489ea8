// Parameters and memory, held to what the models' makers published and to closed forms.
#include "compiler/workload/hf_sizes.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "compiler/workload/hf_config.h"

namespace rdusim::hf_sizes_test {

namespace {

DecoderConfig named(const std::string& name) {
  const bool example = name.find("llama-3") == 0 || name == "mistral-7b" || name == "mixtral-8x7b" ||
                       name == "qwen3-32b" || name == "smollm2-135m" || name == "gpt-oss-20b" || name == "deepseek-v3";
  const auto config = read_hf_config(example ? RDUSIM_SOURCE_DIR "/examples/" + name
                                             : RDUSIM_SOURCE_DIR "/tests/compiler/workload/configs/" + name + ".json");
  REQUIRE_MESSAGE(config.ok(), name);
  return *config;
}

DecoderSizes sizes(const std::string& name, const DecoderRequest& request = {.context = 1}) {
  return decoder_sizes(named(name), request);
}

const ChipSizes& fullest(const std::vector<ChipSizes>& chips) {
  return *std::max_element(chips.begin(), chips.end(),
                           [](const ChipSizes& a, const ChipSizes& b) { return a.total < b.total; });
}

double billions(std::int64_t n) {
  return static_cast<double>(n) / 1e9;
}

constexpr std::int64_t tile = 32;

}  // namespace

TEST_CASE("Llama 3.1: parameters to the last one, those read a token, and bytes of cache a token") {
  struct Row {
    const char* name;
    std::int64_t parameters, read;
    Bytes cache;
  };
  for (const Row& r : {Row{"llama-3.1-8b", 8'030'261'248, 7'504'924'672, 131'072},
                       Row{"llama-3.1-70b", 70'553'706'496, 69'503'033'344, 327'680},
                       Row{"llama-3.1-405b", 405'853'388'800, 403'752'042'496, 516'096}}) {
    CAPTURE(r.name);
    const DecoderSizes s = sizes(r.name);
    CHECK(s.all.parameters == r.parameters);
    CHECK(s.all.parameters_read == r.read);
    CHECK(s.all.bytes == static_cast<Bytes>(r.parameters) * 2);
    CHECK(s.all.bytes_read == static_cast<Bytes>(r.read) * 2);
    CHECK(s.cache_bytes_per_token == r.cache);
  }
}

TEST_CASE("parameters of other models, as their makers' files and papers give them") {
  CHECK(sizes("llama-2-7b").all.parameters == 6'738'415'616);
  CHECK(sizes("mistral-7b").all.parameters == 7'241'732'096);
  CHECK(sizes("mixtral-8x7b").all.parameters == 46'702'792'704);
  CHECK(sizes("smollm2-135m").all.parameters == 134'515'008);
  CHECK(sizes("smollm2-135m").all.parameters_read == 134'515'008);  // its head is its embedding
  CHECK(sizes("qwen2.5-7b").all.parameters == 7'615'616'512);
  CHECK(sizes("phi-3-mini-4k").all.parameters == 3'821'079'552);
  // Papers leave the embedding out of the count.
  const auto without_embedding = [](const char* name) {
    const DecoderSizes s = sizes(name);
    return s.all.parameters - s.part(DecoderPart::embedding).parameters;
  };
  CHECK(without_embedding("gemma-7b") == 7'751'248'896);
  CHECK(without_embedding("gemma-2-9b") == 8'324'201'984);
  CHECK(without_embedding("gemma-3-1b") / 1'000'000 == 697);  // "698M"
  CHECK(billions(sizes("qwen3-32b").all.parameters) == doctest::Approx(32.8).epsilon(0.002));
  CHECK(billions(sizes("qwen3-30b-a3b").all.parameters) == doctest::Approx(30.5).epsilon(0.002));
}

TEST_CASE("mixtures of experts: what a token reads, as published") {
  // arXiv 2401.04088: 12.9B; Qwen3 technical report: 3.3B with the embedding.
  CHECK(billions(sizes("mixtral-8x7b").all.parameters_read) == doctest::Approx(12.75).epsilon(0.001));
  const DecoderSizes qwen = sizes("qwen3-30b-a3b");
  CHECK(billions(qwen.all.parameters_read + qwen.part(DecoderPart::embedding).parameters) ==
        doctest::Approx(3.35).epsilon(0.01));
  // arXiv 2508.10925, table 1: 116.83B and 5.13B; 20.91B and 3.61B (with the head, without the embedding).
  CHECK(billions(sizes("gpt-oss-120b").all.parameters) == doctest::Approx(116.83).epsilon(0.0001));
  CHECK(billions(sizes("gpt-oss-120b").all.parameters_read) == doctest::Approx(5.13).epsilon(0.001));
  CHECK(billions(sizes("gpt-oss-20b").all.parameters) == doctest::Approx(20.91).epsilon(0.0005));
  CHECK(billions(sizes("gpt-oss-20b").all.parameters_read) == doctest::Approx(3.61).epsilon(0.002));
  // arXiv 2412.19437: 671B, 37B a token.
  CHECK(billions(sizes("deepseek-v3").all.parameters) == doctest::Approx(671.03).epsilon(0.0001));
  CHECK(billions(sizes("deepseek-v3").all.parameters_read) == doctest::Approx(36.6).epsilon(0.01));
}

TEST_CASE("the latent cache of DeepSeek-V3 has 70,272 bytes a token, and every chip has all of it") {
  // "Insights into DeepSeek-V3", arXiv 2505.09343, table 1.
  CHECK(sizes("deepseek-v3").cache_bytes_per_token == 70'272);
  for (const ChipSizes& chip : chip_sizes(named("deepseek-v3"), {.context = 100}, 16, tile))
    CHECK(chip.cache == 7'027'200);
}

TEST_CASE("a cache holds no more positions of a layer than its window") {
  CHECK(sizes("mistral-7b", {.context = 4096}).cache_bytes == Bytes{4096} * 131'072);
  CHECK(sizes("mistral-7b", {.context = 8192}).cache_bytes == Bytes{4096} * 131'072);
  // 22 layers of 512 and 4 of all 8192 positions, 1 head of 256 for keys and values each.
  CHECK(sizes("gemma-3-1b", {.context = 8192}).cache_bytes == (Bytes{22} * 512 + Bytes{4} * 8192) * 2 * 256 * 2);
  CHECK(sizes("llama-3.1-8b", {.batch = 3, .context = 1000}).cache_bytes == Bytes{3000} * 131'072);
}

TEST_CASE("fp8 halves the linear layers and nothing else") {
  const DecoderSizes bf16 = sizes("llama-3.1-8b");
  const DecoderSizes fp8 = sizes("llama-3.1-8b", {.context = 1, .dtype = DType::fp8_e4m3});
  CHECK(fp8.part(DecoderPart::mlp).bytes * 2 == bf16.part(DecoderPart::mlp).bytes);
  CHECK(fp8.part(DecoderPart::attention).bytes * 2 == bf16.part(DecoderPart::attention).bytes);
  CHECK(fp8.part(DecoderPart::embedding).bytes == bf16.part(DecoderPart::embedding).bytes);
  CHECK(fp8.part(DecoderPart::head).bytes == bf16.part(DecoderPart::head).bytes);
  CHECK(fp8.part(DecoderPart::norms).bytes == bf16.part(DecoderPart::norms).bytes);
  CHECK(fp8.cache_bytes_per_token == bf16.cache_bytes_per_token);
  CHECK(sizes("llama-3.1-8b", {.context = 1, .dtype = DType::fp32}).all.bytes == bf16.all.bytes * 2);
}

TEST_CASE("8 key-value heads on 16 and 32 chips: two and four copies, and the memory shows them") {
  const DecoderConfig c = named("llama-3.1-405b");
  const DecoderRequest r{.context = 4096};
  for (const auto& [chips, copies] : {std::pair{4, 1}, std::pair{8, 1}, std::pair{16, 2}, std::pair{32, 4}}) {
    CAPTURE(chips);
    CHECK(key_value_copies(c, chips) == copies);
    Bytes cache = 0;
    for (const ChipSizes& chip : chip_sizes(c, r, chips, tile)) {
      CHECK(chip.deal.key_value_heads == std::max(8 / chips, 1));
      CHECK(chip.deal.query_heads == 128 / chips);
      cache += chip.cache;
    }
    CHECK(cache == decoder_sizes(c, r).cache_bytes * static_cast<Bytes>(copies));
  }
}

TEST_CASE("64 heads on 128 and 256 chips: two and four chips have each, and take a part each of what it gives") {
  const DecoderConfig c = named("llama-3.1-70b");
  for (const std::int64_t n : {128, 256}) {
    CAPTURE(n);
    for (const ChipSizes& chip : chip_sizes(c, {.context = 4096}, n, tile)) {
      CHECK(chip.deal.query_heads == 1);
      CHECK(chip.deal.key_value_heads == 1);
      CHECK(chip.deal.output_rows == 8192 / n);
      // Queries, keys and values of a head of 128, and the rows: of 80 layers, in bf16.
      CHECK(chip.parts[static_cast<std::size_t>(DecoderPart::attention)] ==
            static_cast<Bytes>(80 * 2 * 8192 * (3 * 128 + 8192 / n)));
    }
    CHECK(key_value_copies(c, n) == n / 8);
    CHECK(uneven_shares(c, n).empty());
  }
}

TEST_CASE("Llama-3.1-405B on 16 chips: 3,328 columns, 8,016 rows of the vocabulary stored as 8,032") {
  const auto chips = chip_sizes(named("llama-3.1-405b"), {.context = 1}, 16, tile);
  std::int64_t rows = 0;
  for (const ChipSizes& chip : chips) {
    CHECK(chip.deal.columns == 3328);
    CHECK(chip.deal.vocabulary == 8016);
    CHECK(chip.deal.vocabulary_stored == 8032);
    CHECK(chip.parts[static_cast<std::size_t>(DecoderPart::head)] == Bytes{8032} * 16384 * 2);
    rows += chip.deal.vocabulary;
  }
  CHECK(rows == 128256);
  CHECK(uneven_shares(named("llama-3.1-405b"), 16).empty());
}

TEST_CASE("Llama-3.1-405B: 16 chips of 64 GB hold it, 8 do not, and 12 lie between GB and GiB") {
  const DecoderConfig c = named("llama-3.1-405b");
  const DecoderRequest r{.context = 1};
  const Bytes weights = decoder_sizes(c, r).all.bytes;
  CHECK(weights == 811'706'777'600);
  constexpr Bytes gb = 64'000'000'000;
  constexpr Bytes gib = Bytes{64} << 30U;
  // An even share, to the byte.
  CHECK(ceil_div(weights, std::uint64_t{16}) == 50'731'673'600);
  CHECK(ceil_div(weights, std::uint64_t{12}) == 67'642'231'467);
  CHECK(ceil_div(weights, std::uint64_t{8}) == 101'463'347'200);
  CHECK(ceil_div(weights, std::uint64_t{12}) > gb);
  CHECK(ceil_div(weights, std::uint64_t{12}) < gib);
  // What chips hold, with copies, padding and whole heads.
  CHECK(fullest(chip_sizes(c, r, 16, tile)).total < gb);
  CHECK(fullest(chip_sizes(c, r, 8, tile)).total > gib);
  CHECK(fullest(chip_sizes(c, r, 12, tile)).total > gib);  // 11 heads, and two key-value heads, on some
  CHECK(uneven_shares(c, 12).size() == 2);                 // heads and columns; 128,256 rows divide by 12
}

TEST_CASE("Llama-3.1-405B on 16 chips, a chip, byte by byte") {
  const ChipSizes chip = chip_sizes(named("llama-3.1-405b"), {.context = 8192}, 16, tile).front();
  const auto part = [&](DecoderPart p) { return chip.parts[static_cast<std::size_t>(p)]; };
  CHECK(part(DecoderPart::embedding) == Bytes{8032} * 16384 * 2);
  // q and o: 8 heads of 128; k and v: one.
  CHECK(part(DecoderPart::attention) == Bytes{126} * (2 * 8 + 2) * 128 * 16384 * 2);
  CHECK(part(DecoderPart::mlp) == Bytes{126} * 3 * 3328 * 16384 * 2);
  CHECK(part(DecoderPart::norms) == (Bytes{126} * 2 + 1) * 16384 * 2);
  CHECK(chip.cache == Bytes{126} * 2 * 128 * 8192 * 2);
  CHECK(chip.total == part(DecoderPart::embedding) * 2 + part(DecoderPart::attention) + part(DecoderPart::mlp) +
                          part(DecoderPart::norms) + chip.cache);
  CHECK(chip.read == chip.total - part(DecoderPart::embedding));
}

TEST_CASE("a vocabulary that is prime is padded to whole tiles, and no row is lost") {
  DecoderConfig c = named("smollm2-135m");
  for (const std::int64_t vocabulary : {32003, 128258}) {
    c.vocabulary = vocabulary;
    for (std::int64_t n = 1; n <= 40; ++n) {
      std::int64_t rows = 0;
      for (const ChipSizes& chip : chip_sizes(c, {.context = 1}, n, tile)) {
        rows += chip.deal.vocabulary;
        CHECK(chip.deal.vocabulary_stored >= chip.deal.vocabulary);
        if (n > 1) CHECK(chip.deal.vocabulary_stored % tile == 0);
      }
      CHECK(rows == vocabulary);
    }
  }
}

TEST_CASE("Mixtral on 8 chips: an expert each, on 6 two chips have two, on 16 half of each one's columns") {
  const DecoderConfig c = named("mixtral-8x7b");
  const auto experts = [&](std::int64_t n) {
    std::vector<std::int64_t> out;
    for (const ChipSizes& chip : chip_sizes(c, {.context = 1}, n, tile)) out.push_back(chip.deal.experts);
    return out;
  };
  CHECK(experts(8) == std::vector<std::int64_t>(8, 1));
  CHECK(experts(6) == std::vector<std::int64_t>{2, 2, 1, 1, 1, 1});
  const auto mlp = [&](std::int64_t n) {
    return chip_sizes(c, {.context = 1}, n, tile).front().parts[static_cast<std::size_t>(DecoderPart::mlp)];
  };
  const Bytes router = Bytes{32} * 8 * 4096 * 2;
  CHECK(mlp(8) == Bytes{32} * 3 * 14336 * 4096 * 2 + router);
  CHECK(mlp(16) == Bytes{32} * 3 * 14336 / 2 * 4096 * 2 + router);
}

TEST_CASE("on one chip a chip holds the model, to the byte") {
  for (const char* name : {"llama-3.1-8b", "mixtral-8x7b", "qwen2.5-7b", "gemma-2-9b", "gemma-3-1b", "phi-3-mini-4k",
                           "deepseek-v3", "gpt-oss-120b", "qwen3-30b-a3b", "smollm2-135m"}) {
    CAPTURE(name);
    for (const DType dtype : {DType::bf16, DType::fp8_e4m3}) {
      const DecoderRequest r{.batch = 2, .context = 2048, .dtype = dtype};
      const DecoderConfig c = named(name);
      const DecoderSizes s = decoder_sizes(c, r);
      const auto chips = chip_sizes(c, r, 1, tile);
      for (std::size_t i = 0; i < decoder_parts; ++i) CHECK(chips[0].parts[i] == s.parts[i].bytes);
      CHECK(chips[0].cache == s.cache_bytes);
      CHECK(chips[0].read == s.all.bytes_read + s.cache_bytes);
    }
  }
}

TEST_CASE("over any number of chips everything is held somewhere, and copies are all that is more") {
  const std::vector<std::string> names = {"llama-3.1-70b", "mixtral-8x7b", "qwen2.5-7b",  "gemma-2-9b",
                                          "phi-3-mini-4k", "deepseek-v3",  "gpt-oss-20b", "smollm2-135m"};
  std::vector<DecoderConfig> configs;
  for (const std::string& n : names) configs.push_back(named(n));
  CHECK(rc::check([&] {
    const DecoderConfig& c = configs[*rc::gen::inRange<std::size_t>(0, configs.size())];
    const std::int64_t n = *rc::gen::inRange(1, 70);
    const DecoderRequest r{.context = *rc::gen::inRange(1, 4000)};
    const auto chips = chip_sizes(c, r, n, 1);
    ChipDeal all;
    for (const ChipSizes& chip : chips) {
      all.query_heads += chip.deal.query_heads;
      all.output_rows += chip.deal.output_rows;
      all.key_value_heads += chip.deal.key_value_heads;
      all.columns += chip.deal.columns;
      all.expert_columns += chip.deal.expert_columns;
      all.vocabulary += chip.deal.vocabulary;
    }
    const bool shared = !c.latent && n > c.heads && n % c.heads == 0;
    RC_ASSERT(all.query_heads == (shared ? n : c.heads));
    RC_ASSERT(all.output_rows == c.heads * (c.latent ? c.latent->value_width : c.head_width));
    RC_ASSERT(all.key_value_heads >= c.kv_heads);
    RC_ASSERT(all.columns == c.intermediate);
    RC_ASSERT(all.vocabulary == c.vocabulary);
    if (c.experts) RC_ASSERT(all.expert_columns == c.experts->experts * c.experts->intermediate);
    // Where all shares are even, so are all chips.
    if (uneven_shares(c, n).empty()) {
      for (const ChipSizes& chip : chips) RC_ASSERT(chip.total == chips.front().total);
    }
    Bytes held = 0;
    for (const ChipSizes& chip : chips) held += chip.total;
    RC_ASSERT(held >= decoder_sizes(c, r).all.bytes + decoder_sizes(c, r).cache_bytes);
  }));
}

}  // namespace rdusim::hf_sizes_test
