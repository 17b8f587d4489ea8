#include "compiler/workload/hf_weights.h"

#include <fmt/format.h>

namespace rdusim {
namespace {

using Shares = std::vector<DealtShare>;

class LayerList {
 public:
  LayerList(const DecoderConfig& config, std::size_t layer)
      : c_(config), layer_(config.layers[layer]), prefix_(fmt::format("model.layers.{}.", layer)) {}

  std::vector<DecoderWeight> list() && {
    norm("input_layernorm");
    if (c_.latent)
      latent_attention();
    else
      attention();
    norm("post_attention_layernorm");
    if (c_.norm_after) norm("pre_feedforward_layernorm");
    if (!layer_.experts)
      dense();
    else if (c_.family == DecoderFamily::gpt_oss)
      stacked_experts();
    else
      experts();
    if (c_.norm_after) norm("post_feedforward_layernorm");
    return std::move(out_);
  }

 private:
  DecoderWeight& add(const std::string& name, std::vector<std::int64_t> shape, DecoderPart part, Shares shares) {
    const bool matrix = shape.size() >= 2;
    out_.push_back({.name = prefix_ + name,
                    .shape = std::move(shape),
                    .part = part,
                    .linear = matrix,
                    .shares = std::move(shares)});
    return out_.back();
  }

  void norm(const std::string& name) { add(name + ".weight", {c_.hidden}, DecoderPart::norms, {}); }

  void attention() {
    const std::int64_t d = c_.head_width;
    const std::int64_t q = c_.query_width();
    const std::int64_t kv = c_.key_value_width();
    constexpr auto part = DecoderPart::attention;
    if (c_.fused_projections) {
      add("self_attn.qkv_proj.weight", {q + 2 * kv, c_.hidden}, part,
          {{DealtUnit::query_heads, d * c_.hidden}, {DealtUnit::key_value_heads, 2 * d * c_.hidden}});
    } else {
      for (const auto& [name, width, unit] :
           {Projection{"q_proj", q, DealtUnit::query_heads}, Projection{"k_proj", kv, DealtUnit::key_value_heads},
            Projection{"v_proj", kv, DealtUnit::key_value_heads}}) {
        add(fmt::format("self_attn.{}.weight", name), {width, c_.hidden}, part, {{unit, d * c_.hidden}});
        if (c_.query_key_value_bias) add(fmt::format("self_attn.{}.bias", name), {width}, part, {{unit, d}});
      }
    }
    if (c_.query_key_norm) {
      add("self_attn.q_norm.weight", {d}, DecoderPart::norms, {});
      add("self_attn.k_norm.weight", {d}, DecoderPart::norms, {});
    }
    if (c_.attention_sinks) add("self_attn.sinks", {c_.heads}, part, {});
    add("self_attn.o_proj.weight", {c_.hidden, q}, part, {{DealtUnit::output_rows, c_.hidden}});
    if (c_.attention_output_bias) add("self_attn.o_proj.bias", {c_.hidden}, part, {});
  }

  void latent_attention() {
    const LatentAttention& l = *c_.latent;
    const std::int64_t query = l.plain_width + l.rotary_width;
    const std::int64_t key_value = l.plain_width + l.value_width;
    constexpr auto part = DecoderPart::attention;
    const auto from = [&](std::int64_t columns, std::int64_t width) {
      return Shares{{DealtUnit::query_heads, columns * width}};
    };
    if (l.query_rank == 0) {
      add("self_attn.q_proj.weight", {c_.heads * query, c_.hidden}, part, from(c_.hidden, query));
    } else {
      add("self_attn.q_a_proj.weight", {l.query_rank, c_.hidden}, part, {});
      add("self_attn.q_a_layernorm.weight", {l.query_rank}, DecoderPart::norms, {});
      add("self_attn.q_b_proj.weight", {c_.heads * query, l.query_rank}, part, from(l.query_rank, query));
    }
    add("self_attn.kv_a_proj_with_mqa.weight", {l.key_value_rank + l.rotary_width, c_.hidden}, part, {});
    add("self_attn.kv_a_layernorm.weight", {l.key_value_rank}, DecoderPart::norms, {});
    add("self_attn.kv_b_proj.weight", {c_.heads * key_value, l.key_value_rank}, part,
        from(l.key_value_rank, key_value));
    add("self_attn.o_proj.weight", {c_.hidden, c_.heads * l.value_width}, part, {{DealtUnit::output_rows, c_.hidden}});
  }

  void gated(const std::string& at, std::int64_t columns, DealtUnit unit, bool bias) {
    for (const std::string_view name : {"gate_proj", "up_proj"}) {
      add(fmt::format("{}.{}.weight", at, name), {columns, c_.hidden}, DecoderPart::mlp, {{unit, c_.hidden}});
      if (bias) add(fmt::format("{}.{}.bias", at, name), {columns}, DecoderPart::mlp, {{unit, 1}});
    }
    add(at + ".down_proj.weight", {c_.hidden, columns}, DecoderPart::mlp, {{unit, c_.hidden}});
    if (bias) add(at + ".down_proj.bias", {c_.hidden}, DecoderPart::mlp, {});
  }

  void dense() {
    if (!c_.fused_projections) return gated("mlp", c_.intermediate, DealtUnit::columns, c_.mlp_bias);
    add("mlp.gate_up_proj.weight", {2 * c_.intermediate, c_.hidden}, DecoderPart::mlp,
        {{DealtUnit::columns, 2 * c_.hidden}});
    add("mlp.down_proj.weight", {c_.hidden, c_.intermediate}, DecoderPart::mlp, {{DealtUnit::columns, c_.hidden}});
  }

  // A matrix an expert.
  void expert_matrix(const std::string& name, std::vector<std::int64_t> shape) {
    DecoderWeight& w = add(name, std::move(shape), DecoderPart::mlp, {{DealtUnit::expert_columns, c_.hidden}});
    w.routed = true;
    w.copies = c_.experts->experts;
  }

  void experts() {
    const DecoderExperts& e = *c_.experts;
    const bool mixtral = c_.family == DecoderFamily::mixtral;
    const std::string at = mixtral ? "block_sparse_moe" : "mlp";
    add(at + ".gate.weight", {e.experts, c_.hidden}, DecoderPart::mlp, {}).linear = false;
    if (e.router_bias) add(at + ".gate.e_score_correction_bias", {e.experts}, DecoderPart::mlp, {});
    const std::string each = at + ".experts.{}.";
    expert_matrix(each + (mixtral ? "w1.weight" : "gate_proj.weight"), {e.intermediate, c_.hidden});
    expert_matrix(each + (mixtral ? "w3.weight" : "up_proj.weight"), {e.intermediate, c_.hidden});
    expert_matrix(each + (mixtral ? "w2.weight" : "down_proj.weight"), {c_.hidden, e.intermediate});
    if (e.shared_intermediate != 0)
      gated(at + ".shared_experts", e.shared_intermediate, DealtUnit::shared_columns, false);
  }

  // gpt-oss: all experts in one tensor each.
  void stacked_experts() {
    const DecoderExperts& e = *c_.experts;
    add("mlp.router.weight", {e.experts, c_.hidden}, DecoderPart::mlp, {}).linear = false;
    add("mlp.router.bias", {e.experts}, DecoderPart::mlp, {});
    const auto stacked = [&](const std::string& name, std::vector<std::int64_t> shape, DealtUnit unit,
                             std::int64_t elements, bool linear) {
      DecoderWeight& w = add(name, std::move(shape), DecoderPart::mlp, {{unit, elements}});
      w.routed = true;
      w.linear = linear;
    };
    stacked("mlp.experts.gate_up_proj", {e.experts, c_.hidden, 2 * e.intermediate}, DealtUnit::expert_columns,
            2 * c_.hidden, true);
    stacked("mlp.experts.gate_up_proj_bias", {e.experts, 2 * e.intermediate}, DealtUnit::expert_columns, 2, false);
    stacked("mlp.experts.down_proj", {e.experts, e.intermediate, c_.hidden}, DealtUnit::expert_columns, c_.hidden,
            true);
    stacked("mlp.experts.down_proj_bias", {e.experts, c_.hidden}, DealtUnit::experts, c_.hidden, false);
  }

  struct Projection {
    std::string_view name;
    std::int64_t width;
    DealtUnit unit;
  };

  const DecoderConfig& c_;
  const DecoderLayer& layer_;
  std::string prefix_;
  std::vector<DecoderWeight> out_;
};

}  // namespace

std::int64_t DecoderWeight::elements() const {
  std::int64_t n = copies;
  for (const std::int64_t extent : shape) n *= extent;  // cannot overflow: DecoderLimits
  return n;
}

std::vector<DecoderWeight> layer_weights(const DecoderConfig& config, std::size_t layer) {
  return LayerList(config, layer).list();
}

DecoderWeight embedding_weight(const DecoderConfig& config) {
  return {.name = "model.embed_tokens.weight",
          .shape = {config.vocabulary, config.hidden},
          .part = DecoderPart::embedding,
          .gathered = !config.tied_embeddings,
          .shares = {{DealtUnit::vocabulary, config.hidden}}};
}

DecoderWeight final_norm_weight(const DecoderConfig& config) {
  return {.name = "model.norm.weight", .shape = {config.hidden}, .part = DecoderPart::norms};
}

DecoderWeight head_weight(const DecoderConfig& config) {
  return {.name = "lm_head.weight",
          .shape = {config.vocabulary, config.hidden},
          .part = DecoderPart::head,
          .shares = {{DealtUnit::vocabulary, config.hidden}}};
}

std::string_view name_of(DecoderPart part) {
  switch (part) {
    case DecoderPart::embedding:
      return "embedding";
    case DecoderPart::attention:
      return "attention";
    case DecoderPart::mlp:
      return "mlp";
    case DecoderPart::norms:
      return "norms";
    case DecoderPart::head:
      return "head";
  }
  return "";
}

}  // namespace rdusim
