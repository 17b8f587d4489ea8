// Decoders' graphs compute what the models compute: evaluated operator by operator, they agree with a plain
// implementation of the published architectures in double, written without a look at the graph; and a prompt taken
// token by token through the cache gives what it gives at once.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "compiler/workload/fill_reader.h"
#include "compiler/workload/hf_config.h"
#include "compiler/workload/hf_graph.h"
#include "sim/reference/reference.h"

namespace rdusim::hf_decoder_test {

namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

// Two layers with a small vocabulary.
std::string config_text(const std::string& architecture, const std::string& extents, const std::string& more = "") {
  return R"({"architectures": [")" + architecture + R"("], "num_hidden_layers": 2, "vocab_size": 211,
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 100000, "torch_dtype": "float32", )" +
         extents + more + "}";
}

// Of SmolLM2-135M (https://huggingface.co/HuggingFaceTB/SmolLM2-135M, config.json).
const std::string smollm2 = R"("hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9,
    "num_key_value_heads": 3, "head_dim": 64)";
// Heads x their width are not the hidden size.
const std::string small = R"("hidden_size": 40, "intermediate_size": 72, "num_attention_heads": 6,
    "num_key_value_heads": 3, "head_dim": 16)";

DecoderConfig config_of(const std::string& text) {
  const auto config = parse_hf_config(text, "config.json");
  INFO(config.diagnostics().to_text());
  REQUIRE(config.ok());
  return *config;
}

OperatorGraph decoder(const DecoderConfig& config, const DecoderRequest& request) {
  HfFiles none;
  const auto graph = decoder_graph("decoder", config, request, none);
  INFO(graph.diagnostics().to_text());
  REQUIRE(graph.ok());
  return *graph;
}

std::vector<std::byte> values_of(const Operand& o) {
  std::vector<std::byte> out(static_cast<std::size_t>(*element_count(o.shape)) * bytes_of(o.dtype));
  const auto read =
      read_fill(o.fill, o.dtype, o.shape, std::vector<std::int64_t>(o.shape.size(), 0), o.shape, ".", out);
  INFO(read.diagnostics().to_text());
  REQUIRE(read.ok());
  return out;
}

using Named = std::map<std::string, std::vector<std::byte>>;

// Evaluates the graph with the values of `given` instead of its fills; all operands by name.
Named evaluated(const OperatorGraph& graph, const Named& given) {
  OperandBytes bytes(graph.operands.size());
  for (const Operand& o : graph.operands) {
    if (o.role == TensorRole::intermediate || o.role == TensorRole::output) continue;
    const auto found = given.find(o.name);
    bytes[o.id.value] = found == given.end() ? ElementBytes(values_of(o)) : found->second;
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

std::vector<std::byte> token_bytes(const std::vector<std::int32_t>& tokens) {
  std::vector<std::byte> out(tokens.size() * sizeof(std::int32_t));
  std::memcpy(out.data(), tokens.data(), out.size());
  return out;
}

Row floats(std::span<const std::byte> bytes) {
  Row out;
  for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i)
    out.push_back(element_as_double(DType::fp32, bytes, i));
  return out;
}

Named weights_of(const OperatorGraph& graph) {
  Named out;
  for (const Operand& o : graph.operands) {
    if (o.role == TensorRole::weight) out.emplace(o.name, values_of(o));
  }
  return out;
}

// ---- the model, from its description

class PlainDecoder {
 public:
  PlainDecoder(const DecoderConfig& config, const Named& weights) : c_(config) {
    for (const auto& [name, bytes] : weights) {
      if (name.ends_with(".weight") || name.ends_with(".bias")) weights_.emplace(name, floats(bytes));
    }
  }

  // The logits of the last token.
  Row logits(const std::vector<std::int32_t>& tokens) {
    Rows x;
    for (const std::int32_t t : tokens) {
      const Row& table = weights_.at("model.embed_tokens.weight");
      Row row(table.begin() + t * c_.hidden, table.begin() + (t + 1) * c_.hidden);
      if (c_.embedding_scaled) {
        for (double& v : row) v *= std::sqrt(static_cast<double>(c_.hidden));
      }
      x.push_back(std::move(row));
    }
    for (std::size_t i = 0; i < c_.layers.size(); ++i) layer(i, x);
    const Row last = normed("model.norm.weight", x.back());
    return times(c_.tied_embeddings ? "model.embed_tokens.weight" : "lm_head.weight", last);
  }

 private:
  Row times(const std::string& name, const Row& x) const {
    const Row& w = weights_.at(name);
    Row out(w.size() / x.size());
    for (std::size_t o = 0; o < out.size(); ++o) {
      for (std::size_t i = 0; i < x.size(); ++i) out[o] += w[o * x.size() + i] * x[i];
    }
    const auto bias = weights_.find(name.substr(0, name.rfind('.')) + ".bias");
    if (bias != weights_.end()) out = sum(out, bias->second);
    return out;
  }

  static Row sum(Row a, const Row& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }

  Row normed(const std::string& name, const Row& x) const {
    const Row& w = weights_.at(name);
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + c_.epsilon);
    Row out = x;
    for (std::size_t i = 0; i < x.size(); ++i) out[i] *= scale * (w[i] + (c_.norm_adds_one ? 1 : 0));
    return out;
  }

  // Turns pairs (j, j + half) of each head of a row at `position`.
  void turn(Row& row, std::size_t position, double theta) const {
    const auto d = static_cast<std::size_t>(c_.head_width);
    for (std::size_t head = 0; head < row.size() / d; ++head) {
      for (std::size_t j = 0; j < d / 2; ++j) {
        const double angle =
            static_cast<double>(position) * std::pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(d));
        double& a = row[head * d + j];
        double& b = row[head * d + j + d / 2];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = b * std::cos(angle) + a * std::sin(angle);
        a = turned;
      }
    }
  }

  Row by_head(const std::string& name, const Row& x) const {
    const auto d = static_cast<std::ptrdiff_t>(c_.head_width);
    Row out;
    for (auto at = x.begin(); at != x.end(); at += d) {
      const Row head = normed(name, Row(at, at + d));
      out.insert(out.end(), head.begin(), head.end());
    }
    return out;
  }

  void layer(std::size_t index, Rows& x) const {
    const std::string at = "model.layers." + std::to_string(index) + ".";
    const double theta = c_.layers[index].local_rotary ? c_.rotary_local_theta : c_.rotary_theta;
    Rows q, k, v;
    for (std::size_t p = 0; p < x.size(); ++p) {
      const Row n = normed(at + "input_layernorm.weight", x[p]);
      if (c_.fused_projections) {
        const Row all = times(at + "self_attn.qkv_proj.weight", n);
        const auto a = all.begin() + c_.query_width();
        const auto b = a + c_.key_value_width();
        q.emplace_back(all.begin(), a);
        k.emplace_back(a, b);
        v.emplace_back(b, all.end());
      } else {
        q.push_back(times(at + "self_attn.q_proj.weight", n));
        k.push_back(times(at + "self_attn.k_proj.weight", n));
        v.push_back(times(at + "self_attn.v_proj.weight", n));
      }
      if (c_.query_key_norm) {
        q[p] = by_head(at + "self_attn.q_norm.weight", q[p]);
        k[p] = by_head(at + "self_attn.k_norm.weight", k[p]);
      }
      turn(q[p], p, theta);
      turn(k[p], p, theta);
    }
    for (std::size_t p = 0; p < x.size(); ++p) {
      Row a = times(at + "self_attn.o_proj.weight", attended(index, p, q[p], k, v));
      if (c_.norm_after) a = normed(at + "post_attention_layernorm.weight", a);
      x[p] = sum(x[p], a);
      const std::string before = c_.norm_after ? "pre_feedforward_layernorm" : "post_attention_layernorm";
      Row m = mlp(at + "mlp.", normed(at + before + ".weight", x[p]));
      if (c_.norm_after) m = normed(at + "post_feedforward_layernorm.weight", m);
      x[p] = sum(x[p], m);
    }
  }

  Row attended(std::size_t index, std::size_t p, const Row& q, const Rows& k, const Rows& v) const {
    const auto d = static_cast<std::size_t>(c_.head_width);
    const auto group = static_cast<std::size_t>(c_.heads / c_.kv_heads);
    const auto window = static_cast<std::size_t>(c_.layers[index].window);
    const std::size_t first = window != 0 && p + 1 > window ? p + 1 - window : 0;
    Row out(q.size());
    for (std::size_t head = 0; head < q.size() / d; ++head) {
      const std::size_t kv = head / group * d;
      Row weights;
      double total = 0;
      for (std::size_t j = first; j <= p; ++j) {
        double score = 0;
        for (std::size_t i = 0; i < d; ++i) score += q[head * d + i] * k[j][kv + i];
        weights.push_back(std::exp(score * c_.attention_scale));
        total += weights.back();
      }
      for (std::size_t j = first; j <= p; ++j) {
        for (std::size_t i = 0; i < d; ++i) out[head * d + i] += weights[j - first] / total * v[j][kv + i];
      }
    }
    return out;
  }

  Row mlp(const std::string& at, const Row& x) const {
    Row gate, up;
    if (c_.fused_projections) {
      const Row both = times(at + "gate_up_proj.weight", x);
      gate.assign(both.begin(), both.begin() + c_.intermediate);
      up.assign(both.begin() + c_.intermediate, both.end());
    } else {
      gate = times(at + "gate_proj.weight", x);
      up = times(at + "up_proj.weight", x);
    }
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i];
      const double s = 0.7978845608028654 * (g + 0.044715 * g * g * g);
      gate[i] = (c_.activation == GateActivation::silu ? g / (1 + std::exp(-g)) : 0.5 * g * (1 + std::tanh(s))) * up[i];
    }
    return times(at + "down_proj.weight", gate);
  }

  const DecoderConfig& c_;
  std::map<std::string, Row> weights_;
};

// The greatest difference, in units of the greatest logit.
double distance(const Row& a, const Row& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  double scale = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    scale = std::max(scale, std::abs(b[i]));
  }
  CHECK(scale > 0.1);
  return most / scale;
}

const std::vector<std::int32_t> prompt = {17, 203, 4, 99, 150, 17, 0, 210};

// fp32 over two layers of rows of 576 and 1536; a wrong sign, head or position is off by 0.1 and more.
constexpr double tolerance = 2e-5;

void check_model(const DecoderConfig& config) {
  CAPTURE(config.architecture);
  const auto length = static_cast<std::int64_t>(prompt.size());
  const OperatorGraph whole = decoder(config, {.phase = DecoderPhase::prefill, .context = length});
  Named given = weights_of(whole);
  PlainDecoder plain(config, given);
  given["tokens"] = token_bytes(prompt);
  const Named at_once = evaluated(whole, given);
  CHECK(distance(floats(at_once.at("logits")), plain.logits(prompt)) < tolerance);

  // The same, token by token: what a step makes is appended to the cache of the next.
  Named cache;
  for (std::int64_t c = 1; c <= length; ++c) {
    const OperatorGraph step = decoder(config, {.context = c});
    given["tokens"] = token_bytes({prompt[static_cast<std::size_t>(c - 1)]});
    for (const Operand& o : step.operands) {
      if (o.role != TensorRole::state) continue;
      const auto& all = cache["present" + o.name.substr(5)];
      const auto row = static_cast<std::size_t>(o.shape.back()) * sizeof(float);
      const auto before = (static_cast<std::size_t>(o.shape[0]) - 1) * row;
      REQUIRE(before <= all.size());
      given[o.name].assign(all.end() - static_cast<std::ptrdiff_t>(before), all.end());
      given[o.name].resize(before + row, std::byte{0xff});  // what the step is to replace
    }
    Named made = evaluated(step, given);
    for (const Operator& op : step.operators) {
      if (op.kind != OperatorKind::append) continue;
      const auto& now = made.at(step.operand(op.out).name);
      const auto row = static_cast<std::ptrdiff_t>(step.operand(op.out).shape.back()) * std::ptrdiff_t{sizeof(float)};
      auto& all = cache["present" + step.operand(op.in[0]).name.substr(5)];
      all.insert(all.end(), now.end() - row, now.end());
    }
    if (c == length) CHECK(made.at("logits") == at_once.at("logits"));  // to the bit: no sum is ordered otherwise
  }
  CHECK(cache.size() == 2 * config.layers.size());
  for (const auto& [name, bytes] : cache) CHECK(bytes == at_once.at(name));
}

}  // namespace

TEST_CASE("a decoder of SmolLM2's shape computes what the model does, at once and token by token") {
  check_model(config_of(config_text("LlamaForCausalLM", smollm2, R"(, "tie_word_embeddings": true)")));
}

TEST_CASE("so do those with norms of queries and keys, biases, one matrix for all, and windows") {
  check_model(config_of(config_text("Qwen3ForCausalLM", small)));
  check_model(config_of(config_text("Qwen2ForCausalLM", small)));
  check_model(config_of(config_text("Phi3ForCausalLM", small)));
  check_model(config_of(config_text("MistralForCausalLM", small, R"(, "sliding_window": 3)")));
}

TEST_CASE("and Gemma, of the first and the third kind") {
  check_model(config_of(config_text("GemmaForCausalLM", small)));
  check_model(
      config_of(config_text("Gemma3ForCausalLM", small, R"(, "sliding_window": 3, "sliding_window_pattern": 2)")));
}

TEST_CASE("sequences of a batch do not see each other") {
  const DecoderConfig config = config_of(config_text("LlamaForCausalLM", small));
  const std::vector<std::int32_t> other = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<std::int32_t> both = prompt;
  both.insert(both.end(), other.begin(), other.end());
  const Named two = evaluated(decoder(config, {.phase = DecoderPhase::prefill, .batch = 2, .context = 8}),
                              {{"tokens", token_bytes(both)}});
  const OperatorGraph one = decoder(config, {.phase = DecoderPhase::prefill, .context = 8});
  auto expected = evaluated(one, {{"tokens", token_bytes(prompt)}}).at("logits");
  const auto second = evaluated(one, {{"tokens", token_bytes(other)}}).at("logits");
  expected.insert(expected.end(), second.begin(), second.end());
  CHECK(two.at("logits") == expected);
}

}  // namespace rdusim::hf_decoder_test
