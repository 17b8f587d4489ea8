// Graphs of Mixtral, Qwen 3's mixture, gpt-oss and DeepSeek-V3, made from a model's files, compute what the models compute: evaluated operator by
// operator they agree with plain implementations in double, which read the same tensors by the names and in the layouts
// that the models' own libraries give them, choose experts by themselves, and know nothing of the graph.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numbers>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "compiler/workload/fill_reader.h"
#include "compiler/workload/hf_config.h"
#include "compiler/workload/hf_graph.h"
#include "sim/reference/reference.h"
#include "tests/compiler/workload/data_files.h"
#include "tests/compiler/workload/temporary_folder.h"

namespace rdusim::hf_mixture_test {

namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;
using Named = std::map<std::string, std::vector<std::byte>>;

// The tensors of a model's file, in fp32.
class Tensors {
 public:
  // Uniform in [middle - spread, middle + spread].
  void add(const std::string& name, std::vector<std::int64_t> shape, double spread, double middle = 0) {
    std::size_t n = 1;
    for (const std::int64_t e : shape) n *= static_cast<std::size_t>(e);
    std::uniform_real_distribution<float> draw(static_cast<float>(middle - spread),
                                               static_cast<float>(middle + spread));
    Row& row = values_[name];
    for (std::size_t i = 0; i < n; ++i) row.push_back(static_cast<double>(draw(random_)));
    shapes_[name] = std::move(shape);
  }
  // A matrix whose products have the variance of what it multiplies; `inputs` that a sum goes over.
  void matrix(const std::string& name, std::vector<std::int64_t> shape, std::int64_t inputs) {
    add(name, std::move(shape), std::sqrt(3.0 / static_cast<double>(inputs)));
  }
  const Row& operator[](const std::string& name) const { return values_.at(name); }

  std::string file() const {
    std::string header = "{", data;
    for (const auto& [name, row] : values_) {
      std::string extents;
      for (const std::int64_t e : shapes_.at(name)) extents += (extents.empty() ? "" : ",") + std::to_string(e);
      const std::size_t begin = data.size();
      for (const double v : row) {
        const auto f = static_cast<float>(v);
        data.append(reinterpret_cast<const char*>(&f), sizeof f);
      }
      header += fmt::format("{}\"{}\":{{\"dtype\":\"F32\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                            begin == 0 ? "" : ",", name, extents, begin, data.size());
    }
    return safetensors(header + "}", data);
  }

 private:
  std::map<std::string, Row> values_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
  std::mt19937 random_{20};
};

Row sum(Row a, const Row& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}
Row scaled(Row a, double by) {
  for (double& v : a) v *= by;
  return a;
}
Row part(const Row& a, std::size_t begin, std::size_t count) {
  const auto from = a.begin() + static_cast<std::ptrdiff_t>(begin);
  return {from, from + static_cast<std::ptrdiff_t>(count)};
}
// w [out, in] times x.
Row linear(const Row& w, const Row& x) {
  Row out(w.size() / x.size());
  for (std::size_t o = 0; o < out.size(); ++o)
    for (std::size_t i = 0; i < x.size(); ++i) out[o] += w[o * x.size() + i] * x[i];
  return out;
}
Row norm(const Row& w, const Row& x, double epsilon) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  Row out = scaled(x, 1 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon));
  for (std::size_t i = 0; i < x.size(); ++i) out[i] *= w[i];
  return out;
}
double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
// The places of the `count` greatest.
std::set<std::size_t> greatest(const Row& of, std::size_t count) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < of.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return of[a] > of[b]; });
  return {order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count)};
}

// Angles of yarn: arXiv 2309.00071, as the library rounds its ramp.
struct Yarn {
  double theta = 10000, factor = 1, fast = 32, slow = 1, positions = 64;
  bool whole = true;
  double angle(std::size_t position, std::size_t pair, std::size_t width) const {
    const auto d = static_cast<double>(width);
    const auto turns = [&](double n) {
      return d * std::log(positions / (n * 2 * std::numbers::pi)) / (2 * std::log(theta));
    };
    double low = turns(fast), high = turns(slow);
    if (whole) low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.0);
    high = std::min(high, d - 1);
    const double ramp = std::min(std::max((static_cast<double>(pair) - low) / std::max(high - low, 0.001), 0.0), 1.0);
    const double plain = std::pow(theta, -2.0 * static_cast<double>(pair) / d);
    return static_cast<double>(position) * (plain / factor * ramp + plain * (1 - ramp));
  }
};

// ---- gpt-oss

// What the tokens stand for, a row each.
Rows embedded(const Tensors& t, const std::vector<std::int32_t>& tokens, std::size_t hidden) {
  Rows x;
  for (const std::int32_t token : tokens)
    x.push_back(part(t["model.embed_tokens.weight"], static_cast<std::size_t>(token) * hidden, hidden));
  return x;
}

struct GptOss {
  std::size_t hidden = 40, heads = 6, kv_heads = 3, width = 16, inner = 24, experts = 5, per_token = 2, vocabulary = 97;
  std::vector<std::string> kinds;  // of layers
  std::size_t window = 3;
  Yarn yarn{.theta = 5000, .factor = 4, .fast = 8, .slow = 1, .positions = 64, .whole = false};
  double limit = 1.5;  // low enough that it is met

  std::string config() const {
    return fmt::format(
        R"({{"architectures": ["GptOssForCausalLM"], "num_hidden_layers": {}, "vocab_size": {}, "hidden_size": {},
        "intermediate_size": {}, "num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {},
        "num_local_experts": {}, "num_experts_per_tok": {}, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
        "rope_theta": 5000, "rope_scaling": {{"rope_type": "yarn", "factor": 4.0, "beta_fast": 8.0, "beta_slow": 1.0,
        "truncate": false, "original_max_position_embeddings": 64}}, "attention_bias": true, "sliding_window": {},
        "layer_types": ["{}"], "swiglu_limit": {}, "torch_dtype": "float32"}})",
        kinds.size(), vocabulary, hidden, inner, heads, kv_heads, width, experts, per_token, window,
        fmt::join(kinds, "\", \""), limit);
  }

  Tensors tensors() const {
    Tensors t;
    const auto n = [](std::size_t v) { return static_cast<std::int64_t>(v); };
    const std::int64_t h = n(hidden), q = n(heads * width), kv = n(kv_heads * width), e = n(experts), i = n(inner);
    t.add("model.embed_tokens.weight", {n(vocabulary), h}, 1);
    t.add("model.norm.weight", {h}, 0.25, 1);
    t.matrix("lm_head.weight", {n(vocabulary), h}, h);
    for (std::size_t l = 0; l < kinds.size(); ++l) {
      const std::string at = fmt::format("model.layers.{}.", l);
      for (const char* name : {"input_layernorm", "post_attention_layernorm"})
        t.add(at + name + ".weight", {h}, 0.25, 1);
      for (const auto& [name, out, in] : {std::tuple("q_proj", q, h), std::tuple("k_proj", kv, h),
                                          std::tuple("v_proj", kv, h), std::tuple("o_proj", h, q)}) {
        t.matrix(at + "self_attn." + name + ".weight", {out, in}, in);
        t.add(at + "self_attn." + name + ".bias", {out}, 0.5);
      }
      t.add(at + "self_attn.sinks", {n(heads)}, 2);
      t.matrix(at + "mlp.router.weight", {e, h}, h);
      t.add(at + "mlp.router.bias", {e}, 1);
      t.matrix(at + "mlp.experts.gate_up_proj", {e, h, 2 * i}, h);
      t.add(at + "mlp.experts.gate_up_proj_bias", {e, 2 * i}, 0.5);
      t.matrix(at + "mlp.experts.down_proj", {e, i, h}, i);
      t.add(at + "mlp.experts.down_proj_bias", {e, h}, 0.5);
    }
    return t;
  }

  void turn(Row& row, std::size_t position) const {
    const double amplitude = 0.1 * std::log(yarn.factor) + 1;
    for (std::size_t head = 0; head < row.size() / width; ++head)
      for (std::size_t j = 0; j < width / 2; ++j) {
        double& a = row[head * width + j];
        double& b = row[head * width + j + width / 2];
        const double angle = yarn.angle(position, j, width), c = amplitude * std::cos(angle),
                     s = amplitude * std::sin(angle), turned = a * c - b * s;
        b = b * c + a * s;
        a = turned;
      }
  }

  // The logits of the last token. Experts of token p are chosen[p]; where there are none yet, they are chosen and put
  // there.
  Row logits(const Tensors& t, const std::vector<std::int32_t>& tokens,
             std::vector<std::set<std::size_t>>& chosen) const {
    Rows x = embedded(t, tokens, hidden);
    const bool choose = chosen.empty();
    for (std::size_t l = 0; l < kinds.size(); ++l) {
      const std::string at = fmt::format("model.layers.{}.", l), self = at + "self_attn.";
      const auto through = [&](const char* name, const Row& in) {
        return sum(linear(t[self + name + ".weight"], in), t[self + name + ".bias"]);
      };
      Rows q, k, v;
      for (std::size_t p = 0; p < x.size(); ++p) {
        const Row in = norm(t[at + "input_layernorm.weight"], x[p], 1e-5);
        q.push_back(through("q_proj", in));
        k.push_back(through("k_proj", in));
        v.push_back(through("v_proj", in));
        turn(q[p], p);
        turn(k[p], p);
      }
      for (std::size_t p = 0; p < x.size(); ++p) {
        Row out(q[p].size());
        const std::size_t first = kinds[l] == "sliding_attention" && p + 1 > window ? p + 1 - window : 0;
        for (std::size_t head = 0; head < heads; ++head) {
          const std::size_t kv = head / (heads / kv_heads) * width;
          Row weight;
          double total = std::exp(t[self + "sinks"][head]);
          for (std::size_t j = first; j <= p; ++j) {
            double score = 0;
            for (std::size_t d = 0; d < width; ++d) score += q[p][head * width + d] * k[j][kv + d];
            weight.push_back(std::exp(score / std::sqrt(static_cast<double>(width))));
            total += weight.back();
          }
          for (std::size_t j = first; j <= p; ++j)
            for (std::size_t d = 0; d < width; ++d) out[head * width + d] += weight[j - first] / total * v[j][kv + d];
        }
        x[p] = sum(x[p], through("o_proj", out));
        const Row in = norm(t[at + "post_attention_layernorm.weight"], x[p], 1e-5);
        const Row scores = sum(linear(t[at + "mlp.router.weight"], in), t[at + "mlp.router.bias"]);
        if (choose && l == 0) chosen.push_back(greatest(scores, per_token));
        double total = 0;
        for (const std::size_t e : chosen[p]) total += std::exp(scores[e]);
        for (const std::size_t e : chosen[p])
          x[p] = sum(x[p], scaled(expert(t, at + "mlp.experts.", e, in), std::exp(scores[e]) / total));
      }
    }
    return linear(t["lm_head.weight"], norm(t["model.norm.weight"], x.back(), 1e-5));
  }

  Row expert(const Tensors& t, const std::string& at, std::size_t e, const Row& in) const {
    const Row &both = t[at + "gate_up_proj"], &both_bias = t[at + "gate_up_proj_bias"];
    Row out = part(t[at + "down_proj_bias"], e * hidden, hidden);
    for (std::size_t i = 0; i < inner; ++i) {
      double gate = both_bias[e * 2 * inner + 2 * i], up = both_bias[e * 2 * inner + 2 * i + 1];
      for (std::size_t d = 0; d < hidden; ++d) {
        gate += in[d] * both[(e * hidden + d) * 2 * inner + 2 * i];
        up += in[d] * both[(e * hidden + d) * 2 * inner + 2 * i + 1];
      }
      gate = std::min(gate, limit);
      up = std::clamp(up, -limit, limit);
      const double made = (up + 1) * gate * sigmoid(1.702 * gate);
      for (std::size_t d = 0; d < hidden; ++d) out[d] += made * t[at + "down_proj"][(e * inner + i) * hidden + d];
    }
    return out;
  }
};

// ---- Mixtral, and Qwen's mixture, with norms of heads and other names

struct Mixtral {
  bool of_qwen = false;
  bool renormalised = true;  // Mixtral is always
  std::size_t hidden = 40, heads = 4, kv_heads = 2, width = 8, inner = 24, experts = 5, per_token = 2, vocabulary = 97,
              layers = 2;

  std::string config() const {
    const std::string own =
        of_qwen
            ? fmt::format(R"("architectures": ["Qwen3MoeForCausalLM"], "num_experts": {}, "moe_intermediate_size": {},
                              "norm_topk_prob": {}, "decoder_sparse_step": 1, "mlp_only_layers": [], )",
                          experts, inner, renormalised)
            : fmt::format(R"("architectures": ["MixtralForCausalLM"], "num_local_experts": {}, )", experts);
    return fmt::format(
        R"({{{} "num_hidden_layers": {}, "vocab_size": {}, "hidden_size": {}, "intermediate_size": {},
        "num_attention_heads": {}, "num_key_value_heads": {}, "head_dim": {}, "num_experts_per_tok": {},
        "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 5000, "hidden_act": "silu",
        "tie_word_embeddings": false, "torch_dtype": "float32"}})",
        own, layers, vocabulary, hidden, inner, heads, kv_heads, width, per_token);
  }
  std::string of_experts(const std::string& at) const { return at + (of_qwen ? "mlp." : "block_sparse_moe."); }

  Tensors tensors() const {
    Tensors t;
    const auto n = [](std::size_t v) { return static_cast<std::int64_t>(v); };
    const std::int64_t h = n(hidden), q = n(heads * width), kv = n(kv_heads * width), i = n(inner);
    t.add("model.embed_tokens.weight", {n(vocabulary), h}, 1);
    t.add("model.norm.weight", {h}, 0.25, 1);
    t.matrix("lm_head.weight", {n(vocabulary), h}, h);
    for (std::size_t l = 0; l < layers; ++l) {
      const std::string at = fmt::format("model.layers.{}.", l), moe = of_experts(at);
      for (const char* name : {"input_layernorm", "post_attention_layernorm"})
        t.add(at + name + ".weight", {h}, 0.25, 1);
      for (const auto& [name, out, in] : {std::tuple("q_proj", q, h), std::tuple("k_proj", kv, h),
                                          std::tuple("v_proj", kv, h), std::tuple("o_proj", h, q)})
        t.matrix(at + "self_attn." + name + ".weight", {out, in}, in);
      if (of_qwen)
        for (const char* name : {"q_norm", "k_norm"}) t.add(at + "self_attn." + name + ".weight", {n(width)}, 0.25, 1);
      t.matrix(moe + "gate.weight", {n(experts), h}, h);
      for (std::size_t e = 0; e < experts; ++e) {
        const std::string own = fmt::format("{}experts.{}.", moe, e);
        t.matrix(own + (of_qwen ? "gate_proj" : "w1") + ".weight", {i, h}, h);
        t.matrix(own + (of_qwen ? "up_proj" : "w3") + ".weight", {i, h}, h);
        t.matrix(own + (of_qwen ? "down_proj" : "w2") + ".weight", {h, i}, i);
      }
    }
    return t;
  }

  Row turned(const Tensors& t, const std::string& own, Row row, std::size_t position) const {
    for (std::size_t head = 0; head < row.size() / width; ++head) {
      Row of_head = part(row, head * width, width);
      if (of_qwen) of_head = norm(t[own], of_head, 1e-5);
      for (std::size_t j = 0; j < width / 2; ++j) {
        const double angle =
            static_cast<double>(position) * std::pow(5000, -2 * static_cast<double>(j) / static_cast<double>(width));
        const double a = of_head[j], b = of_head[j + width / 2];
        row[head * width + j] = a * std::cos(angle) - b * std::sin(angle);
        row[head * width + j + width / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
    return row;
  }

  Row logits(const Tensors& t, const std::vector<std::int32_t>& tokens,
             std::vector<std::set<std::size_t>>& chosen) const {
    Rows x = embedded(t, tokens, hidden);
    const bool choose = chosen.empty();
    for (std::size_t l = 0; l < layers; ++l) {
      const std::string at = fmt::format("model.layers.{}.", l), self = at + "self_attn.";
      Rows q, k, v;
      for (std::size_t p = 0; p < x.size(); ++p) {
        const Row in = norm(t[at + "input_layernorm.weight"], x[p], 1e-5);
        q.push_back(turned(t, self + "q_norm.weight", linear(t[self + "q_proj.weight"], in), p));
        k.push_back(turned(t, self + "k_norm.weight", linear(t[self + "k_proj.weight"], in), p));
        v.push_back(linear(t[self + "v_proj.weight"], in));
      }
      for (std::size_t p = 0; p < x.size(); ++p) {
        Row out(q[p].size());
        for (std::size_t head = 0; head < heads; ++head) {
          const std::size_t kv = head / (heads / kv_heads) * width;
          Row weight;
          double total = 0;
          for (std::size_t j = 0; j <= p; ++j) {
            double score = 0;
            for (std::size_t d = 0; d < width; ++d) score += q[p][head * width + d] * k[j][kv + d];
            weight.push_back(std::exp(score / std::sqrt(static_cast<double>(width))));
            total += weight.back();
          }
          for (std::size_t j = 0; j <= p; ++j)
            for (std::size_t d = 0; d < width; ++d) out[head * width + d] += weight[j] / total * v[j][kv + d];
        }
        x[p] = sum(x[p], linear(t[self + "o_proj.weight"], out));
        const Row in = norm(t[at + "post_attention_layernorm.weight"], x[p], 1e-5);
        const Row scores = linear(t[of_experts(at) + "gate.weight"], in);
        if (choose && l == 0) chosen.push_back(greatest(scores, per_token));
        double total = 0;
        for (std::size_t e = 0; e < experts; ++e)
          if (!renormalised || chosen[p].count(e) != 0) total += std::exp(scores[e]);
        for (const std::size_t e : chosen[p])
          x[p] = sum(x[p], scaled(expert(t, fmt::format("{}experts.{}.", of_experts(at), e), in),
                                  std::exp(scores[e]) / total));
      }
    }
    return linear(t["lm_head.weight"], norm(t["model.norm.weight"], x.back(), 1e-5));
  }

  Row expert(const Tensors& t, const std::string& own, const Row& in) const {
    const Row gate = linear(t[own + (of_qwen ? "gate_proj" : "w1") + ".weight"], in);
    Row made = linear(t[own + (of_qwen ? "up_proj" : "w3") + ".weight"], in);
    for (std::size_t i = 0; i < inner; ++i) made[i] *= gate[i] * sigmoid(gate[i]);
    return linear(t[own + (of_qwen ? "down_proj" : "w2") + ".weight"], made);
  }
};

// ---- DeepSeek-V3

struct DeepSeek {
  std::size_t hidden = 40, heads = 3, dense = 56, inner = 24, experts = 6, per_token = 2, groups = 3, groups_kept = 2;
  std::size_t query_rank = 20, rank = 16, plain = 8, turning = 6, value = 10, vocabulary = 97, layers = 2;
  bool renormalised = true;
  Yarn yarn{.theta = 5000, .factor = 4, .fast = 8, .slow = 1, .positions = 64, .whole = true};

  double grown(double by) const { return 0.1 * by * std::log(yarn.factor) + 1; }

  std::string config() const {
    return fmt::format(
        R"({{"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": {}, "vocab_size": {}, "hidden_size": {},
        "intermediate_size": {}, "moe_intermediate_size": {}, "num_attention_heads": {}, "num_key_value_heads": {},
        "n_routed_experts": {}, "n_shared_experts": 1, "num_experts_per_tok": {}, "n_group": {}, "topk_group": {},
        "first_k_dense_replace": 1, "moe_layer_freq": 1, "topk_method": "noaux_tc", "scoring_func": "sigmoid",
        "norm_topk_prob": {}, "routed_scaling_factor": 1.75, {} "kv_lora_rank": {}, "qk_nope_head_dim": {},
        "qk_rope_head_dim": {}, "v_head_dim": {}, "max_position_embeddings": 256, "rms_norm_eps": 1e-6,
        "rope_theta": 5000, "rope_scaling": {{"type": "yarn", "factor": 4, "beta_fast": 8, "beta_slow": 1,
        "mscale": 1.0, "mscale_all_dim": 0.8, "original_max_position_embeddings": 64}}, "attention_bias": false,
        "torch_dtype": "float32"}})",
        layers, vocabulary, hidden, dense, inner, heads, heads, experts, per_token, groups, groups_kept, renormalised,
        query_rank == 0 ? "" : fmt::format("\"q_lora_rank\": {},", query_rank), rank, plain, turning, value);
  }

  Tensors tensors() const {
    Tensors t;
    const auto n = [](std::size_t v) { return static_cast<std::int64_t>(v); };
    const std::int64_t h = n(hidden);
    t.add("model.embed_tokens.weight", {n(vocabulary), h}, 1);
    t.add("model.norm.weight", {h}, 0.25, 1);
    t.matrix("lm_head.weight", {n(vocabulary), h}, h);
    for (std::size_t l = 0; l < layers; ++l) {
      const std::string at = fmt::format("model.layers.{}.", l), self = at + "self_attn.";
      const auto gated = [&](const std::string& name, std::size_t width) {
        t.matrix(name + ".gate_proj.weight", {n(width), h}, h);
        t.matrix(name + ".up_proj.weight", {n(width), h}, h);
        t.matrix(name + ".down_proj.weight", {h, n(width)}, n(width));
      };
      for (const char* name : {"input_layernorm", "post_attention_layernorm"})
        t.add(at + name + ".weight", {h}, 0.25, 1);
      const std::int64_t queries = n(heads * (plain + turning));
      if (query_rank != 0) {
        t.matrix(self + "q_a_proj.weight", {n(query_rank), h}, h);
        t.add(self + "q_a_layernorm.weight", {n(query_rank)}, 0.25, 1);
        t.matrix(self + "q_b_proj.weight", {queries, n(query_rank)}, n(query_rank));
      } else {
        t.matrix(self + "q_proj.weight", {queries, h}, h);
      }
      t.matrix(self + "kv_a_proj_with_mqa.weight", {n(rank + turning), h}, h);
      t.add(self + "kv_a_layernorm.weight", {n(rank)}, 0.25, 1);
      t.matrix(self + "kv_b_proj.weight", {n(heads * (plain + value)), n(rank)}, n(rank));
      t.matrix(self + "o_proj.weight", {h, n(heads * value)}, n(heads * value));
      if (l == 0) {
        gated(at + "mlp", dense);
        continue;
      }
      t.matrix(at + "mlp.gate.weight", {n(experts), h}, h);
      t.add(at + "mlp.gate.e_score_correction_bias", {n(experts)}, 0.5);
      for (std::size_t e = 0; e < experts; ++e) gated(fmt::format("{}mlp.experts.{}", at, e), inner);
      gated(at + "mlp.shared_experts", inner);
    }
    return t;
  }

  // Pairs lie side by side.
  void turn(Row& row, std::size_t first, std::size_t position) const {
    const double amplitude = grown(1) / grown(0.8);
    for (std::size_t j = 0; j < turning / 2; ++j) {
      double& a = row[first + 2 * j];
      double& b = row[first + 2 * j + 1];
      const double angle = yarn.angle(position, j, turning), c = amplitude * std::cos(angle),
                   s = amplitude * std::sin(angle), turned = a * c - b * s;
      b = b * c + a * s;
      a = turned;
    }
  }

  Row gated(const Tensors& t, const std::string& at, const Row& in) const {
    const Row gate = linear(t[at + ".gate_proj.weight"], in), up = linear(t[at + ".up_proj.weight"], in);
    Row made;
    for (std::size_t i = 0; i < gate.size(); ++i) made.push_back(gate[i] * sigmoid(gate[i]) * up[i]);
    return linear(t[at + ".down_proj.weight"], made);
  }

  std::set<std::size_t> choice(const Row& scores, const Row& correction) const {
    Row corrected = sum(scores, correction), of_groups;
    const std::size_t each = experts / groups;
    for (std::size_t g = 0; g < groups; ++g) {
      double score = 0;
      const Row own = part(corrected, g * each, each);
      for (const std::size_t e : greatest(own, 2)) score += own[e];
      of_groups.push_back(score);
    }
    const auto kept = greatest(of_groups, groups_kept);
    for (std::size_t e = 0; e < experts; ++e)
      if (!kept.contains(e / each)) corrected[e] = -1e9;
    return greatest(corrected, per_token);
  }

  // As GptOss::logits; keys and values of every position are worked out whole.
  Row logits(const Tensors& t, const std::vector<std::int32_t>& tokens,
             std::vector<std::set<std::size_t>>& chosen) const {
    Rows x = embedded(t, tokens, hidden);
    const bool choose = chosen.empty();
    const std::size_t query = plain + turning;
    for (std::size_t l = 0; l < layers; ++l) {
      const std::string at = fmt::format("model.layers.{}.", l), self = at + "self_attn.";
      Rows q, keys, values, turned;
      for (std::size_t p = 0; p < x.size(); ++p) {
        const Row in = norm(t[at + "input_layernorm.weight"], x[p], 1e-6);
        q.push_back(query_rank == 0
                        ? linear(t[self + "q_proj.weight"], in)
                        : linear(t[self + "q_b_proj.weight"], norm(t[self + "q_a_layernorm.weight"],
                                                                   linear(t[self + "q_a_proj.weight"], in), 1e-6)));
        for (std::size_t head = 0; head < heads; ++head) turn(q[p], head * query + plain, p);
        const Row narrow = linear(t[self + "kv_a_proj_with_mqa.weight"], in);
        turned.push_back(part(narrow, rank, turning));
        turn(turned[p], 0, p);
        const Row wide =
            linear(t[self + "kv_b_proj.weight"], norm(t[self + "kv_a_layernorm.weight"], part(narrow, 0, rank), 1e-6));
        keys.push_back(wide);
        values.push_back(wide);
      }
      for (std::size_t p = 0; p < x.size(); ++p) {
        Row out(heads * value);
        for (std::size_t head = 0; head < heads; ++head) {
          const std::size_t of_key = head * (plain + value), of_value = of_key + plain;
          Row weight;
          double total = 0;
          for (std::size_t j = 0; j <= p; ++j) {
            double score = 0;
            for (std::size_t d = 0; d < plain; ++d) score += q[p][head * query + d] * keys[j][of_key + d];
            for (std::size_t d = 0; d < turning; ++d) score += q[p][head * query + plain + d] * turned[j][d];
            weight.push_back(std::exp(score / std::sqrt(static_cast<double>(query)) * grown(0.8) * grown(0.8)));
            total += weight.back();
          }
          for (std::size_t j = 0; j <= p; ++j)
            for (std::size_t d = 0; d < value; ++d)
              out[head * value + d] += weight[j] / total * values[j][of_value + d];
        }
        x[p] = sum(x[p], linear(t[self + "o_proj.weight"], out));
        const Row in = norm(t[at + "post_attention_layernorm.weight"], x[p], 1e-6);
        if (l == 0) {
          x[p] = sum(x[p], gated(t, at + "mlp", in));
          continue;
        }
        Row scores = linear(t[at + "mlp.gate.weight"], in);
        for (double& s : scores) s = sigmoid(s);
        if (choose) chosen.push_back(choice(scores, t[at + "mlp.gate.e_score_correction_bias"]));
        double total = 0;
        for (const std::size_t e : chosen[p]) total += scores[e];
        Row made = gated(t, at + "mlp.shared_experts", in);
        for (const std::size_t e : chosen[p])
          made = sum(made, scaled(gated(t, fmt::format("{}mlp.experts.{}", at, e), in),
                                  1.75 * scores[e] / (renormalised ? total : 1)));
        x[p] = sum(x[p], made);
      }
    }
    return linear(t["lm_head.weight"], norm(t["model.norm.weight"], x.back(), 1e-6));
  }
};

// ---- graphs

std::vector<std::byte> token_bytes(const std::vector<std::int32_t>& tokens) {
  std::vector<std::byte> out(tokens.size() * sizeof(std::int32_t));
  std::memcpy(out.data(), tokens.data(), out.size());
  return out;
}

// All operands by name, where those of `given` have other values than their fills.
Named evaluated(const OperatorGraph& graph, const std::string& folder, const Named& given) {
  OperandBytes bytes(graph.operands.size());
  for (const Operand& o : graph.operands) {
    if (o.role == TensorRole::intermediate || o.role == TensorRole::output) continue;
    if (const auto found = given.find(o.name); found != given.end()) {
      bytes[o.id.value] = found->second;
      continue;
    }
    std::vector<std::byte> own(static_cast<std::size_t>(*element_count(o.shape)) * bytes_of(o.dtype));
    const auto read =
        read_fill(o.fill, o.dtype, o.shape, std::vector<std::int64_t>(o.shape.size(), 0), o.shape, folder, own);
    INFO(read.diagnostics().to_text());
    REQUIRE(read.ok());
    bytes[o.id.value] = own;
  }
  const auto done = evaluate(graph, {}, true, bytes);
  INFO(done.diagnostics().to_text());
  REQUIRE(done.ok());
  Named out;
  for (const Operand& o : graph.operands) {
    const ElementBytes& all = bytes[o.id.value];
    out.emplace(o.name, std::vector<std::byte>(all.begin(), all.end()));
  }
  return out;
}

// The greatest difference, in units of the greatest logit.
double distance(const std::vector<std::byte>& made, const Row& due) {
  REQUIRE(made.size() == due.size() * sizeof(float));
  double most = 0, scale = 0;
  for (std::size_t i = 0; i < due.size(); ++i) {
    most = std::max(most, std::abs(element_as_double(DType::fp32, made, i) - due[i]));
    scale = std::max(scale, std::abs(due[i]));
  }
  CHECK(scale > 0.1);
  return most / scale;
}

const std::vector<std::int32_t> prompt = {17, 93, 4, 80, 55, 17, 0, 96};

// fp32; a sink, bias, limit or expert that is not as the model has it is off by 0.001 and more.
constexpr double tolerance = 2e-5;

std::string routing_text(const std::vector<std::set<std::size_t>>& chosen) {
  std::string text;
  for (const auto& of_token : chosen) text += fmt::format("{}\n", fmt::join(of_token, ","));
  return text;
}

OperatorGraph graph_of(const TemporaryFolder& folder, DecoderRequest request) {
  request.routing = folder / "routing.csv";
  const auto graph = read_hf_model(folder.path(), request);
  INFO(graph.diagnostics().to_text());
  REQUIRE(graph.ok());
  return *graph;
}

// At once, and token by token: what a step makes is appended to the cache of the next. `chosen`: empty where the model
// chooses (of one layer of experts, since a routing is one for all).
template <class Model>
void check_model(const Model& model, std::vector<std::set<std::size_t>> chosen) {
  const Tensors tensors = model.tensors();
  const Row due = model.logits(tensors, prompt, chosen);
  const TemporaryFolder folder;
  folder.write("config.json", model.config());
  folder.write("model.safetensors", tensors.file());
  folder.write("routing.csv", routing_text(chosen));
  const auto length = static_cast<std::int64_t>(prompt.size());
  // All experts in one place; each in one; and tokens dealt out as well, evenly, unevenly, and one to a chip.
  for (const auto& [experts, chips] :
       {std::pair(ExpertPlacement::sharded, 1u), std::pair(ExpertPlacement::parallel, 1u),
        std::pair(ExpertPlacement::all_to_all, 2u), std::pair(ExpertPlacement::all_to_all, 3u),
        std::pair(ExpertPlacement::all_to_all, 11u)}) {
    CAPTURE(chips);
    const OperatorGraph whole =
        graph_of(folder, {.phase = DecoderPhase::prefill, .context = length, .experts = experts, .chips = chips});
    const Named at_once = evaluated(whole, folder.path(), {{"tokens", token_bytes(prompt)}});
    CHECK(distance(at_once.at("logits"), due) < tolerance);
    if (experts != ExpertPlacement::sharded) continue;
    Named cache;
    for (std::int64_t c = 1; c <= length; ++c) {
      const auto place = static_cast<std::size_t>(c - 1);
      folder.write("routing.csv", routing_text({chosen[place]}));
      const OperatorGraph step = graph_of(folder, {.context = c});
      Named given = {{"tokens", token_bytes({prompt[place]})}};
      for (const Operand& o : step.operands) {
        if (o.role != TensorRole::state) continue;
        const auto& all = cache["present" + o.name.substr(5)];
        const auto row = static_cast<std::size_t>(o.shape.back()) * sizeof(float);
        const auto before = (static_cast<std::size_t>(o.shape[0]) - 1) * row;
        REQUIRE(before <= all.size());
        given[o.name].assign(all.end() - static_cast<std::ptrdiff_t>(before), all.end());
        given[o.name].resize(before + row, std::byte{0xff});  // what the step is to replace
      }
      Named made = evaluated(step, folder.path(), given);
      for (const Operator& op : step.operators) {
        if (op.kind != OperatorKind::append) continue;
        const auto& now = made.at(step.operand(op.out).name);
        const auto row = static_cast<std::ptrdiff_t>(step.operand(op.out).shape.back()) * std::ptrdiff_t{sizeof(float)};
        auto& all = cache["present" + step.operand(op.in[0]).name.substr(5)];
        all.insert(all.end(), now.end() - row, now.end());
      }
      if (c == length) CHECK(made.at("logits") == at_once.at("logits"));  // to the bit: no sum is ordered otherwise
    }
    CHECK(!cache.empty());
    for (const auto& [name, bytes] : cache) CHECK(bytes == at_once.at(name));
    folder.write("routing.csv", routing_text(chosen));
  }
}

const std::vector<std::set<std::size_t>> of_five = {{0, 3}, {1, 2}, {0, 1}, {2, 3}, {1, 3}, {0, 2}, {0, 3}, {2, 3}};

}  // namespace

TEST_CASE("gpt-oss chooses by scores with biases, and joins sinks to its softmax, in windows and without") {
  check_model(GptOss{.kinds = {"full_attention"}}, {});
  check_model(GptOss{.kinds = {"sliding_attention"}}, {});
}

TEST_CASE("gpt-oss's layers take turns between windows and all positions, and one of five experts gets no token") {
  check_model(GptOss{.kinds = {"sliding_attention", "full_attention", "sliding_attention"}}, of_five);
}

TEST_CASE("Mixtral's experts are weighted by the softmax over the chosen, and one of five gets no token") {
  check_model(Mixtral{.layers = 1}, {});
  check_model(Mixtral{}, of_five);
}

TEST_CASE("Qwen's mixture weights by the softmax over all experts, or over the chosen") {
  check_model(Mixtral{.of_qwen = true, .renormalised = false}, of_five);
  check_model(Mixtral{.of_qwen = true, .layers = 1}, {});
}

TEST_CASE("DeepSeek-V3's heads look at the narrow rows as they would at the keys and values made of them") {
  check_model(DeepSeek{}, {});
}

TEST_CASE("so do those whose queries are made directly, and whose experts' weights are not shares") {
  check_model(DeepSeek{.query_rank = 0, .renormalised = false}, {});
}

}  // namespace rdusim::hf_mixture_test
