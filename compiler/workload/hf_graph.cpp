#include "compiler/workload/hf_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include "compiler/workload/float_bits.h"
#include "compiler/workload/hf_config.h"
#include "compiler/workload/hf_rotary.h"
#include "compiler/workload/hf_routing.h"
#include "compiler/workload/hf_weights.h"

namespace rdusim {
namespace {

// Numbers of the rotary tables; each is written into the program.
constexpr std::int64_t most_angles = std::int64_t{1} << 22;

using Extents = std::vector<std::int64_t>;
using Operands = std::vector<OperandId>;

// FNV-1a (Fowler, Noll, Vo), 64 bits.
std::uint64_t seed_of(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

Fill random_within(std::string_view name, double low, double high) {
  return RandomFill{seed_of(name), low, high};
}

Fill constant_of(double value, DType dtype) {
  const FloatFormat format = float_format(dtype);
  return ConstantFill{float_value(*round_to_float(value, format), format), 0};
}

// Variance 1 / columns: a row of products has the variance of its operand.
Fill symbolic(const DecoderWeight& weight, bool norm_adds_one) {
  constexpr double spread = 0.25;
  if (weight.part == DecoderPart::norms) {
    const double middle = norm_adds_one ? 0 : 1;
    return random_within(weight.name, middle - spread, middle + spread);
  }
  if (weight.part == DecoderPart::embedding) return random_within(weight.name, -1, 1);
  if (weight.shape.size() < 2) return random_within(weight.name, -spread, spread);  // a bias
  const double bound = std::sqrt(3 / static_cast<double>(weight.shape.back()));
  return random_within(weight.name, -bound, bound);
}

// What an operator gives, where it is not an intermediate of the activations' dtype named after it.
struct ResultOptions {
  std::optional<DType> dtype = {};
  TensorRole role = TensorRole::intermediate;
  std::string name = {};
};

// Rows of the tokens that one chip has between attention and attention, where tokens are dealt out; all of them elsewhere.
struct Home {
  std::int64_t begin = 0, end = 0;
  OperatorAttributes at = {};  // alone on that chip
  std::string suffix = {};     // of what is done there

  std::int64_t rows() const { return end - begin; }
};

class GraphBuilder {
 public:
  GraphBuilder(const std::string& name, const DecoderConfig& config, const DecoderRequest& request, HfFiles& files)
      : c_(config),
        files_(files),
        types_(types_of(config, request)),
        decode_(request.phase == DecoderPhase::decode),
        scattered_(request.sequence_parallel),
        experts_(request.experts),
        chips_(request.chips),
        batch_(request.batch),
        context_(context_of(config, request)),
        positions_(decode_ ? 1 : context_),
        rows_(batch_ * positions_) {
    graph_.name = name;
    if (decode_) graph_.tokens = static_cast<std::uint64_t>(batch_);
    const bool dealt = experts_ == ExpertPlacement::all_to_all && chips_ > 1;
    const std::int64_t homes = dealt ? std::min<std::int64_t>(chips_, rows_) : 1;
    for (std::int64_t h = 0; h < homes; ++h) {
      Home home{h * rows_ / homes, (h + 1) * rows_ / homes};
      if (dealt) {
        home.at.alone = {h, homes};
        home.suffix = fmt::format(".home{}", h);
      }
      homes_.push_back(std::move(home));
    }
  }

  Result<OperatorGraph> build(const std::string& routing) && {
    if (c_.experts &&
        std::any_of(c_.layers.begin(), c_.layers.end(), [](const DecoderLayer& l) { return l.experts; })) {
      auto read = read_routing(routing, *c_.experts, rows_);
      if (!read) return read.diagnostics();
      graph_.assumes = fmt::format("the experts of {} token{} in {}", rows_, rows_ == 1 ? "" : "s", read->source);
      routing_ = *std::move(read);
    }
    if (rows_ > most_angles / (c_.rotary_columns / 2)) {
      out_.error(
          Code::RDU1046, c_.where,
          "the rotary tables of {} rows of {} angles have more than {} numbers; ask for a smaller batch or context",
          rows_, c_.rotary_columns / 2, most_angles);
      return out_;
    }
    const OperandId tokens = operand("tokens", TensorRole::input, {rows_}, DType::int32,
                                     random_within("tokens", 0, static_cast<double>(c_.vocabulary - 1)));
    const OperandId table = weight(embedding_weight(c_));
    OperatorAttributes embedding;
    embedding.scattered = scattered_;
    OperandId x = apply(OperatorKind::gather, "model.embed_tokens", {table, tokens}, {rows_, c_.hidden}, embedding);
    if (c_.embedding_scaled) {
      const double scale = std::sqrt(static_cast<double>(c_.hidden));
      x = apply(OperatorKind::multiply, "model.embed_tokens.scaled", {x, number("model.embed_scale", scale)},
                {rows_, c_.hidden});
    }
    Parts parts = dealt_out("model.embed_tokens", x);
    for (std::size_t i = 0; i < c_.layers.size(); ++i) parts = layer(i, parts);
    // A norm is of each row: whether the last are taken before or after makes no difference to their bits.
    const bool all_normed = scattered_ || is_dealt();
    if (all_normed) parts = normed("model.norm", parts, final_norm_weight(c_));
    x = last_rows(joined("model.rows", parts));
    if (!all_normed) x = norm("model.norm", x, batch_, final_norm_weight(c_));
    logits(x, table);
    if (out_.has_errors()) return out_;
    return std::move(graph_);
  }

 private:
  // ---- parts of a graph

  // Rows of one tensor, by home.
  using Parts = std::vector<OperandId>;

  Parts dealt_out(const std::string& name, OperandId in) {
    if (!is_dealt()) return {in};
    Parts parts;
    for (const Home& home : homes_) {
      OperatorAttributes a = home.at;
      a.begin = {home.begin, 0};
      a.end = {home.end, c_.hidden};
      parts.push_back(apply(OperatorKind::slice, name + home.suffix, {in}, {home.rows(), c_.hidden}, std::move(a)));
    }
    return parts;
  }
  OperandId joined(const std::string& name, const Parts& parts) { return stacked_rows(name, parts, {}); }

  // The rows of one after the other.
  OperandId stacked_rows(const std::string& name, const Operands& in, OperatorAttributes a) {
    if (in.size() == 1) return in.front();
    std::int64_t rows = 0;
    for (const OperandId o : in) rows += graph_.operand(o).shape.front();
    const Operand& first = graph_.operand(in.front());
    const Extents shape = {rows, first.shape.back()};
    a.axes = {0};
    return apply(OperatorKind::concat, name, in, shape, std::move(a), {.dtype = first.dtype});
  }
  bool is_dealt() const { return homes_.front().at.alone.size() == 2; }

  OperandId operand(const std::string& name, TensorRole role, Extents shape, DType dtype, Fill fill) {
    const OperandId id{graph_.operands.size()};
    graph_.operands.push_back({.id = id,
                               .name = name,
                               .role = role,
                               .shape = std::move(shape),
                               .dtype = dtype,
                               .fill = std::move(fill),
                               .where = c_.where});
    return id;
  }

  // A point-wise operator's second operand that has one number.
  OperandId number(const std::string& name, double value) {
    return operand(name, TensorRole::weight, {1}, types_.other, constant_of(value, types_.other));
  }
  // The same, made once for all layers.
  OperandId shared_number(const std::string& name, double value) {
    const auto known = numbers_.find(name);
    if (known != numbers_.end()) return known->second;
    return numbers_.emplace(name, number(name, value)).first->second;
  }

  // A part of weight `w` as an operand of its own: the elements from number `first` on, or, with `steps`, those that
  // FileFill says, in its order. `inputs`: that a column of it adds up, for the range of random values.
  struct Steps {
    Extents extents, strides;
  };
  OperandId part_of(const DecoderWeight& w, const std::string& name, Extents shape, std::int64_t inputs,
                    std::int64_t first = 0, Steps steps = {}) {
    const DType dtype = w.linear ? types_.linear : types_.other;
    DecoderWeight own = w;
    own.name = name;
    own.shape = w.linear ? Extents{1, inputs} : Extents{inputs};
    Fill fill = symbolic(own, c_.norm_adds_one);
    if (files_.any()) {
      const auto found = files_.find(w.name, dtype, w.shape);
      if (found) {
        FileFill at = *found;
        at.data_offset += static_cast<std::uint64_t>(first) * bytes_of(dtype);
        at.extents = std::move(steps.extents);
        at.strides = std::move(steps.strides);
        fill = std::move(at);
      } else {
        out_.append(found.diagnostics());
      }
    }
    return operand(name, TensorRole::weight, std::move(shape), dtype, std::move(fill));
  }

  OperandId weight(DecoderWeight w, std::optional<std::int64_t> expert = {}) {
    if (expert) w.name = fmt::format(fmt::runtime(w.name), *expert);
    if (const auto known = whole_weights_.find(w.name); known != whole_weights_.end()) return known->second;
    const DType dtype = w.linear ? types_.linear : types_.other;
    Fill fill = symbolic(w, c_.norm_adds_one);
    if (files_.any()) {
      const auto found = files_.find(w.name, dtype, w.shape);
      if (found)
        fill = *found;
      else
        out_.append(found.diagnostics());
    }
    const OperandId made = operand(w.name, TensorRole::weight, w.shape, dtype, std::move(fill));
    whole_weights_.emplace(w.name, made);
    return made;
  }

  // The operator `name`; gives its result.
  OperandId apply(OperatorKind kind, const std::string& name, Operands in, Extents shape, OperatorAttributes attributes,
                  const ResultOptions& result) {
    const OperandId out = operand(result.name.empty() ? name + ".out" : result.name, result.role, std::move(shape),
                                  result.dtype.value_or(types_.other), ZeroFill{});
    graph_.operators.push_back({.id = OperatorId{graph_.operators.size()},
                                .name = name,
                                .kind = kind,
                                .in = std::move(in),
                                .out = out,
                                .attributes = std::move(attributes),
                                .where = c_.where});
    return out;
  }
  OperandId apply(OperatorKind kind, const std::string& name, Operands in, Extents shape,
                  OperatorAttributes attributes = {}) {
    return apply(kind, name, std::move(in), std::move(shape), std::move(attributes), ResultOptions{});
  }

  OperandId reshape(const std::string& name, OperandId in, Extents shape, const OperatorAttributes& a = {}) {
    return apply(OperatorKind::reshape, name, {in}, std::move(shape), a, {.dtype = graph_.operand(in).dtype});
  }

  OperandId columns(const std::string& name, OperandId in, std::int64_t begin, std::int64_t end) {
    OperatorAttributes a;
    a.begin = {0, begin};
    a.end = {rows_, end};
    return apply(OperatorKind::slice, name, {in}, {rows_, end - begin}, std::move(a));
  }

  Parts normed(const std::string& name, Parts in, const DecoderWeight& w) {
    for (std::size_t h = 0; h < homes_.size(); ++h)
      in[h] = norm(name + homes_[h].suffix, in[h], homes_[h].rows(), w, c_.epsilon, {}, homes_[h].at);
    return in;
  }
  OperandId norm(const std::string& name, OperandId in, std::int64_t rows, const DecoderWeight& w) {
    return norm(name, in, rows, w, c_.epsilon, ResultOptions{});
  }
  OperandId norm(const std::string& name, OperandId in, std::int64_t rows, const DecoderWeight& w, double epsilon,
                 const ResultOptions& result, OperatorAttributes a = {}) {
    OperandId scale = weight(w);
    if (c_.norm_adds_one) {
      scale = apply(OperatorKind::add, name + ".one_more", {scale, shared_number("one", 1)}, w.shape);
    }
    a.epsilon = epsilon;
    return apply(OperatorKind::rms_norm, name, {in, scale}, {rows, w.shape.front()}, std::move(a), result);
  }

  // `in` in the dtype of linear layers. `a`: attributes of the operator that makes it so.
  OperandId narrowed(OperandId in, const OperatorAttributes& a = {}) {
    if (types_.linear == types_.other) return in;
    const auto known = narrowed_.find(in);
    if (known != narrowed_.end()) return known->second;
    const Operand& o = graph_.operand(in);
    ResultOptions result;
    result.dtype = types_.linear;
    const std::string name = o.name + ".narrowed";
    const Extents shape = o.shape;
    const OperandId out = apply(OperatorKind::cast, name, {in}, shape, a, result);
    narrowed_.emplace(in, out);
    return out;
  }

  // in w^T, and a bias where the list has one.
  OperandId linear(const std::string& name, OperandId in, ResultOptions result = {}, bool scattered = false) {
    return linear(name, in, all_rows(), result, scattered);
  }
  OperandId linear(const std::string& name, OperandId in, const Home& home, const ResultOptions& result = {},
                   bool scattered = false) {
    const DecoderWeight& w = at(name + ".weight");
    const bool biased = layer_weights_.contains(name + ".bias");
    OperatorAttributes a = home.at;
    a.transposed = true;
    a.scattered = scattered;
    const Extents shape = {home.rows(), w.shape.front()};
    const OperandId out = apply(OperatorKind::matmul, name + home.suffix, {narrowed(in, home.at), weight(w)}, shape,
                                std::move(a), biased ? ResultOptions{} : result);
    if (!biased) return out;
    return apply(OperatorKind::add, name + home.suffix + ".biased", {out, weight(at(name + ".bias"))}, shape, home.at,
                 result);
  }

  const DecoderWeight& at(const std::string& name) const { return layer_weights_.at(name); }
  Home all_rows() const { return {0, rows_}; }

  // ---- a layer

  Parts layer(std::size_t index, Parts x) {
    layer_weights_.clear();
    for (DecoderWeight& w : layer_weights(c_, index)) {
      std::string name = w.name;
      layer_weights_.emplace(std::move(name), std::move(w));
    }
    prefix_ = fmt::format("model.layers.{}.", index);
    const auto normed = [&](const std::string& name, const Parts& in) {
      return this->normed(prefix_ + name, in, at(prefix_ + name + ".weight"));
    };
    const auto with_residual = [&](const std::string& name, const Parts& residual, Parts in) {
      for (std::size_t h = 0; h < homes_.size(); ++h)
        in[h] = apply(OperatorKind::add, prefix_ + name + homes_[h].suffix, {residual[h], in[h]},
                      {homes_[h].rows(), c_.hidden}, homes_[h].at);
      return in;
    };
    const OperandId seen = joined(prefix_ + "input_layernorm.gathered", normed("input_layernorm", x));
    const OperandId attended = c_.latent ? latent_attention(index, seen) : attention(index, seen);
    Parts a = dealt_out(prefix_ + "self_attn", attended);
    if (c_.norm_after) a = normed("post_attention_layernorm", a);
    x = with_residual("self_attn.residual", x, std::move(a));
    const Parts before = normed(c_.norm_after ? "pre_feedforward_layernorm" : "post_attention_layernorm", x);
    Parts m;
    if (!c_.layers[index].experts)
      m = dealt_out(prefix_ + "mlp", mlp(joined(prefix_ + "mlp.gathered", before)));
    else if (is_dealt())
      m = exchanged(before);
    else
      m = {experts(before.front())};
    if (c_.norm_after) m = normed("post_feedforward_layernorm", m);
    return with_residual("mlp.residual", x, std::move(m));
  }

  // What a step of decoding makes goes into the cache; what a prefill makes is the cache.
  ResultOptions made(std::size_t index, const char* what) const {
    if (decode_) return {};
    return {.role = TensorRole::output, .name = fmt::format("present.{}.{}", index, what)};
  }

  OperandId attention(std::size_t index, OperandId x) {
    const DecoderLayer& layer = c_.layers[index];
    const std::string at_attention = prefix_ + "self_attn.";
    const std::int64_t q_width = c_.query_width();
    const std::int64_t kv_width = c_.key_value_width();
    const ResultOptions key = made(index, "key"), value = made(index, "value");
    OperandId q;
    OperandId k;
    OperandId v;
    if (c_.fused_projections) {
      const OperandId all = linear(at_attention + "qkv_proj", x);
      q = columns(at_attention + "q", all, 0, q_width);
      k = columns(at_attention + "k", all, q_width, q_width + kv_width);
      OperatorAttributes a;
      a.begin = {0, q_width + kv_width};
      a.end = {rows_, q_width + 2 * kv_width};
      v = apply(OperatorKind::slice, at_attention + "v", {all}, {rows_, kv_width}, std::move(a), value);
    } else {
      q = linear(at_attention + "q_proj", x);
      k = linear(at_attention + "k_proj", x);
      v = linear(at_attention + "v_proj", x, value);
    }
    if (c_.query_key_norm) {
      q = head_norm("q_norm", q, c_.heads);
      k = head_norm("k_norm", k, c_.kv_heads);
    }
    q = rotary(at_attention + "q_rotary", q, c_.heads, layer.local_rotary, {});
    k = rotary(at_attention + "k_rotary", k, c_.kv_heads, layer.local_rotary, key);

    OperatorAttributes a;
    a.heads = static_cast<std::uint32_t>(c_.heads);
    a.kv_heads = static_cast<std::uint32_t>(c_.kv_heads);
    a.scale = c_.attention_scale;
    a.causal = true;
    a.window = layer.window;
    Operands in = {stacked(at_attention + "q_stacked", q), cached(index, "key", k), cached(index, "value", v)};
    if (c_.attention_sinks)
      in.push_back(part_of(at(at_attention + "sinks"), at_attention + "sinks",
                           c_.heads == 1 ? Extents{1, 1} : Extents{c_.heads, 1, 1}, 1));
    OperandId out = apply(OperatorKind::attention, at_attention + "attention", in, stack_shape(positions_, q_width), a);
    if (batch_ != 1) out = reshape(at_attention + "unstacked", out, {rows_, q_width});
    return linear(at_attention + "o_proj", out, {}, scattered_);
  }

  // in w^T of a part of a weight, whose elements [out, in] begin at number `first`, or are in an order of their own.
  OperandId part_product(const std::string& name, OperandId in, const DecoderWeight& w, std::int64_t out,
                         std::int64_t inputs, std::int64_t first, Steps steps = {}, OperatorAttributes a = {}) {
    const OperandId matrix = part_of(w, name + ".weight", {out, inputs}, inputs, first, std::move(steps));
    a.transposed = true;
    return apply(OperatorKind::matmul, name, {narrowed(in), matrix}, {rows_, out}, std::move(a));
  }

  // Heads of an attention that one chip has, where they are dealt by hand; all of them elsewhere.
  struct Heads {
    std::int64_t first = 0, count = 0;
    OperatorAttributes at = {};  // alone on that chip
    std::string suffix = {};     // of what is done there
  };

  // Rows of the heads' columns side by side as a stack of a matrix a head, and back.
  OperandId by_head(const std::string& name, OperandId in, std::int64_t width, const Heads& heads) {
    const ResultOptions same{.dtype = graph_.operand(in).dtype};
    if (rows_ == 1) return apply(OperatorKind::reshape, name, {in}, {heads.count, 1, width}, heads.at, same);
    OperatorAttributes a = heads.at;
    a.axes = {1, 0, 2};
    const OperandId apart =
        apply(OperatorKind::reshape, name + ".apart", {in}, {rows_, heads.count, width}, heads.at, same);
    return apply(OperatorKind::transpose, name, {apart}, {heads.count, rows_, width}, std::move(a), same);
  }
  OperandId by_row(const std::string& name, OperandId in, std::int64_t width, const Heads& heads) {
    const ResultOptions same{.dtype = graph_.operand(in).dtype};
    const Extents shape = {rows_, heads.count * width};
    if (rows_ == 1) return apply(OperatorKind::reshape, name, {in}, shape, heads.at, same);
    OperatorAttributes a = heads.at;
    a.axes = {1, 0, 2};
    const OperandId apart =
        apply(OperatorKind::transpose, name + ".apart", {in}, {rows_, heads.count, width}, std::move(a), same);
    return apply(OperatorKind::reshape, name, {apart}, shape, heads.at, same);
  }

  // Multi-head latent attention with kv_b absorbed: what it would make keys of multiplies the queries, what it would make
  // values of multiplies what is attended. So all heads look at the narrow rows as they are cached, and no step expands
  // the cache: of 4096 positions that would be 120 times the products of DeepSeek-V3's attention. Rotating columns are
  // further columns of queries and keys, in a cache of their own. Where the file has pairs side by side, their rows of
  // the matrices are read so that they lie half a head apart.
  //
  // A stack of matrices is not cut by the shard pass. Over several chips, each carries out its own heads alone, from the
  // queries to the values: they meet in what all have, the narrow rows, and in what the output projection reads.
  OperandId latent_attention(std::size_t index, OperandId x) {
    const LatentAttention& l = *c_.latent;
    const std::string self = prefix_ + "self_attn.";
    const std::int64_t rank = l.key_value_rank, turning = l.rotary_width;
    constexpr double epsilon = 1e-6;  // the library's, of the narrow rows' norms
    const auto narrow_norm = [&](const char* name, OperandId in, const ResultOptions& result) {
      return norm(self + name, in, rows_, at(self + name + ".weight"), epsilon, result);
    };
    OperandId narrow = x;
    std::string from = "q_proj";
    if (l.query_rank != 0) {
      narrow = narrow_norm("q_a_layernorm", linear(self + "q_a_proj", x), {});
      from = "q_b_proj";
    }
    const DecoderWeight& of_keys = at(self + "kv_a_proj_with_mqa.weight");
    const OperandId latent =
        narrow_norm("kv_a_layernorm", part_product(self + "kv_a_proj.latent", x, of_keys, rank, c_.hidden, 0),
                    made(index, "latent"));
    OperandId k_turned = part_product(self + "kv_a_proj.rotary", x, of_keys, turning, c_.hidden, rank * c_.hidden,
                                      pairs(1, turning, c_.hidden));
    k_turned = rotary(self + "k_rotary", k_turned, 1, false, made(index, "rotary"));
    const OperandId cache = cached(index, "latent", latent), turned_cache = cached(index, "rotary", k_turned);

    const std::int64_t parts = std::min<std::int64_t>(chips_, c_.heads);
    std::vector<Heads> dealt;
    for (std::int64_t p = 0; p < parts; ++p) {
      // The first chips have one more, as `rdusim model` deals them.
      const std::int64_t each = c_.heads / parts, more = c_.heads % parts;
      Heads heads{p * each + std::min(p, more), each + (p < more ? 1 : 0)};
      if (parts > 1) {
        heads.at.alone = {p, parts};
        heads.suffix = fmt::format(".heads{}", p);
      }
      dealt.push_back(std::move(heads));
    }
    const Operands values = latent_heads(index, self, from, narrow, cache, turned_cache, dealt);
    OperandId all = values.front();
    if (parts > 1) {
      OperatorAttributes a;
      a.axes = {1};
      all = apply(OperatorKind::concat, self + "values.gathered", values, {rows_, c_.heads * l.value_width},
                  std::move(a));
    }
    return linear(self + "o_proj", all, {}, scattered_);
  }

  // Rows of `turning` columns that rotate, `inputs` long, of each of `heads` parts of `stride` rows.
  Steps pairs(std::int64_t heads, std::int64_t stride, std::int64_t inputs) const {
    const std::int64_t turning = c_.latent->rotary_width;
    if (c_.latent->interleaved) return {{heads, 2, turning / 2, inputs}, {stride * inputs, inputs, 2 * inputs, 1}};
    return {{heads, turning, inputs}, {stride * inputs, inputs, 1}};
  }

  // What heads attend to, as their values, side by side, of each chip's. Step by step for all chips, which take such steps
  // side by side. `from`: the projection of the queries, which takes `narrow`.
  Operands latent_heads(std::size_t index, const std::string& self, const std::string& from, OperandId narrow,
                        OperandId cache, OperandId turned_cache, const std::vector<Heads>& dealt) {
    const LatentAttention& l = *c_.latent;
    const std::int64_t rank = l.key_value_rank, plain = l.plain_width, turning = l.rotary_width, value = l.value_width;
    const std::int64_t query = plain + turning, stride = (plain + value) * rank;
    const DecoderWeight& of_queries = at(self + from + ".weight");
    const std::int64_t inputs = of_queries.shape.back();
    const auto each = [&](Operands now, auto&& step) {
      now.resize(dealt.size());
      for (std::size_t p = 0; p < dealt.size(); ++p) now[p] = step(dealt[p], now[p]);
      return now;
    };
    // The two parts of kv_b, a matrix a head each: [plain, rank] and [value, rank].
    const auto of_heads = [&](const Heads& h, const char* what, std::int64_t columns, std::int64_t begin) {
      return part_of(at(self + "kv_b_proj.weight"), self + what + h.suffix + ".weight", {h.count, columns, rank}, rank,
                     h.first * stride + begin * rank, {{h.count, columns, rank}, {stride, rank, 1}});
    };
    const Operands plain_queries = each({}, [&](const Heads& h, OperandId) {
      return part_product(self + from + ".plain" + h.suffix, narrow, of_queries, h.count * plain, inputs,
                          h.first * query * inputs, {{h.count, plain, inputs}, {query * inputs, inputs, 1}}, h.at);
    });
    Operands turned_queries = each({}, [&](const Heads& h, OperandId) {
      return part_product(self + from + ".rotary" + h.suffix, narrow, of_queries, h.count * turning, inputs,
                          h.first * query * inputs + plain * inputs, pairs(h.count, query, inputs), h.at);
    });
    turned_queries = each(turned_queries, [&](const Heads& h, OperandId q) {
      return rotary(self + "q_rotary" + h.suffix, q, h.count, false, {}, h.at);
    });
    Operands now = each(plain_queries, [&](const Heads& h, OperandId q) {
      return by_head(self + "q_by_head" + h.suffix, narrowed(q, h.at), plain, h);
    });
    now = each(now, [&](const Heads& h, OperandId q) {
      return apply(OperatorKind::matmul, self + "q_absorbed" + h.suffix, {q, of_heads(h, "kv_b_proj.keys", plain, 0)},
                   {h.count, rows_, rank}, h.at);
    });
    now = each(now, [&](const Heads& h, OperandId q) { return by_row(self + "q_by_row" + h.suffix, q, rank, h); });
    now = each(now, [&](const Heads& h, OperandId q) { return stacked(self + "q_stacked" + h.suffix, q, h.at); });
    turned_queries = each(turned_queries, [&](const Heads& h, OperandId q) {
      return stacked(self + "q_rotary_stacked" + h.suffix, q, h.at);
    });
    for (std::size_t p = 0; p < dealt.size(); ++p) {
      const Heads& h = dealt[p];
      OperatorAttributes a = h.at;
      a.heads = static_cast<std::uint32_t>(h.count);
      a.kv_heads = 1;
      a.scale = c_.attention_scale;
      a.causal = true;
      a.window = c_.layers[index].window;
      now[p] = apply(OperatorKind::attention, self + "attention" + h.suffix,
                     {now[p], cache, cache, turned_queries[p], turned_cache}, stack_shape(positions_, h.count * rank),
                     std::move(a));
    }
    if (batch_ != 1)
      now = each(now, [&](const Heads& h, OperandId out) {
        return reshape(self + "unstacked" + h.suffix, out, {rows_, h.count * rank}, h.at);
      });
    now = each(now, [&](const Heads& h, OperandId out) {
      return by_head(self + "attended_by_head" + h.suffix, narrowed(out, h.at), rank, h);
    });
    now = each(now, [&](const Heads& h, OperandId out) {
      OperatorAttributes a = h.at;
      a.transposed = true;
      return apply(OperatorKind::matmul, self + "values" + h.suffix,
                   {out, of_heads(h, "kv_b_proj.values", value, plain)}, {h.count, rows_, value}, std::move(a));
    });
    return each(
        now, [&](const Heads& h, OperandId out) { return by_row(self + "values_by_row" + h.suffix, out, value, h); });
  }

  OperandId head_norm(const std::string& name, OperandId in, std::int64_t heads) {
    const std::string full = prefix_ + "self_attn." + name;
    OperandId x = reshape(full + ".by_head", in, {rows_ * heads, c_.head_width});
    x = norm(full, x, rows_ * heads, at(full + ".weight"));
    return reshape(full + ".by_row", x, {rows_, heads * c_.head_width});
  }

  OperandId rotary(const std::string& name, OperandId in, std::int64_t heads, bool local, const ResultOptions& result,
                   OperatorAttributes a = {}) {
    auto& tables = tables_[local ? 1 : 0];
    if (!tables) {
      const RotaryTable t = rotary_table(c_, local, decode_ ? context_ - 1 : 0, positions_, batch_, types_.other);
      const std::string prefix = local ? "rotary.local." : "rotary.";
      const Extents shape = {rows_, c_.rotary_columns / 2};
      tables = {operand(prefix + "cosines", TensorRole::input, shape, types_.other, ValuesFill{{}, t.cosines}),
                operand(prefix + "sines", TensorRole::input, shape, types_.other, ValuesFill{{}, t.sines})};
    }
    a.heads = static_cast<std::uint32_t>(heads);
    return apply(OperatorKind::rotary, name, {in, tables->first, tables->second}, graph_.operand(in).shape,
                 std::move(a), result);
  }

  // One matrix a sequence, where there are several.
  Extents stack_shape(std::int64_t positions, std::int64_t width) const {
    return batch_ == 1 ? Extents{positions, width} : Extents{batch_, positions, width};
  }
  OperandId stacked(const std::string& name, OperandId in, const OperatorAttributes& a = {}) {
    if (batch_ == 1) return in;
    const Extents shape = stack_shape(positions_, graph_.operand(in).shape.back());
    return reshape(name, in, shape, a);
  }

  // What attention sees: the cache, whose last row is what is new.
  OperandId cached(std::size_t index, const std::string& what, OperandId fresh) {
    const std::string name = fmt::format("{}self_attn.{}", prefix_, what);
    const OperandId now = stacked(name + "_stacked", fresh);
    const std::int64_t window = c_.layers[index].window;
    const std::int64_t seen = window == 0 ? context_ : std::min(context_, window);
    if (!decode_) return now;
    const Extents shape = stack_shape(seen, graph_.operand(fresh).shape.back());
    const std::string cache_name = fmt::format("cache.{}.{}", index, what);
    const OperandId cache =
        operand(cache_name, TensorRole::state, shape, types_.other, random_within(cache_name, -1, 1));
    OperatorAttributes a;
    a.begin = {seen - 1};
    return apply(OperatorKind::append, name + "_cached", {cache, now}, shape, std::move(a));
  }

  OperandId mlp(OperandId x) { return mlp(prefix_ + "mlp.", c_.intermediate, x, all_rows()); }
  OperandId mlp(const std::string& at_mlp, std::int64_t width, OperandId x, const Home& home) {
    OperandId gate;
    OperandId up;
    if (c_.fused_projections) {
      const OperandId both = linear(at_mlp + "gate_up_proj", x);
      gate = columns(at_mlp + "gate", both, 0, c_.intermediate);
      up = columns(at_mlp + "up", both, c_.intermediate, 2 * c_.intermediate);
    } else {
      gate = linear(at_mlp + "gate_proj", x, home);
      up = linear(at_mlp + "up_proj", x, home);
    }
    const Extents shape = {home.rows(), width};
    const OperandId activated = apply(activation(), at_mlp + "activation" + home.suffix, {gate}, shape, home.at);
    const OperandId product =
        apply(OperatorKind::multiply, at_mlp + "gated" + home.suffix, {activated, up}, shape, home.at);
    return linear(at_mlp + "down_proj", product, home, {}, scattered_);
  }

  // ---- a mixture of experts, of which each token's are known: those that no token goes to have weights and nothing else

  // `rows` of `in`, by their numbers; `in` itself where those are all, in order.
  OperandId rows_of(const std::string& name, OperandId in, const std::vector<std::int64_t>& rows,
                    const OperatorAttributes& a = {}) {
    const Extents shape = graph_.operand(in).shape;
    if (static_cast<std::int64_t>(rows.size()) == shape.front() && std::is_sorted(rows.begin(), rows.end()) &&
        std::adjacent_find(rows.begin(), rows.end()) == rows.end())
      return in;
    const auto count = static_cast<std::int64_t>(rows.size());
    const OperandId indices =
        operand(name + ".indices", TensorRole::input, {count}, DType::int32, ValuesFill{rows, {}});
    return apply(OperatorKind::gather, name, {in, indices}, {count, shape.back()}, a,
                 {.dtype = graph_.operand(in).dtype});
  }

  // A column an expert and a row a token of a home: `chosen` where `of` says that the token goes there, `other` elsewhere.
  // Made once for all layers.
  template <class F>
  OperandId mask(const std::string& name, const Home& home, double chosen, double other, F&& of) {
    const auto known = numbers_.find(name + home.suffix);
    if (known != numbers_.end()) return known->second;
    ValuesFill fill;
    for (std::int64_t t = home.begin; t < home.end; ++t)
      for (std::int64_t e = 0; e < c_.experts->experts; ++e)
        fill.floats.push_back(of(routing_->of_tokens[static_cast<std::size_t>(t)], e) ? chosen : other);
    const OperandId made = operand(name + home.suffix, TensorRole::input, {home.rows(), c_.experts->experts},
                                   types_.other, std::move(fill));
    numbers_.emplace(name + home.suffix, made);
    return made;
  }
  static bool goes_to(const std::vector<std::int64_t>& experts, std::int64_t e) {
    return std::binary_search(experts.begin(), experts.end(), e);
  }

  // The weights of all experts of each token of a home, whose rows are x: the softmax over those that it goes to, zero for
  // the others; or the softmax over all, of which those of the others are not looked at.
  OperandId expert_weights(const std::string& at_moe, OperandId x, const Home& home) {
    const std::string layer = at_moe + (c_.family == DecoderFamily::gpt_oss ? "router" : "gate");
    const std::string name = layer + home.suffix;
    const Extents shape = {home.rows(), c_.experts->experts};
    OperatorAttributes a = home.at;
    a.transposed = true;
    OperandId scores = apply(OperatorKind::matmul, name, {x, weight(at(layer + ".weight"))}, shape, a);
    if (layer_weights_.contains(layer + ".bias"))
      scores = apply(OperatorKind::add, name + ".biased", {scores, weight(at(layer + ".bias"))}, shape, home.at);
    if (c_.experts->router_bias && c_.experts->sigmoid_scores) {
      // Groups, and the correction that is added to the scores, matter to the choice only, and that is given: the correction
      // is in memory, and nobody reads it.
      weight(at(layer + ".e_score_correction_bias"));
      return sigmoid_weights(name, scores, home);
    }
    if (!c_.experts->renormalised) return apply(OperatorKind::softmax, name + ".weights", {scores}, shape, home.at);
    // exp(x - max) of it is zero, and it is exact in bf16.
    constexpr double never = -0x1p100;
    const OperandId others = mask("experts.not_chosen", home, 0, never, goes_to);
    const OperandId chosen = apply(OperatorKind::add, name + ".chosen", {scores, others}, shape, home.at);
    return apply(OperatorKind::softmax, name + ".weights", {chosen}, shape, home.at);
  }

  // DeepSeek-V3: each score's sigmoid, of those chosen its share, scaled.
  OperandId sigmoid_weights(const std::string& name, OperandId scores, const Home& home) {
    const Extents shape = {home.rows(), c_.experts->experts}, column = {home.rows(), 1};
    const OperandId chosen = mask("experts.chosen", home, 1, 0, goes_to);
    const OperandId open = apply(OperatorKind::sigmoid, name + ".open", {scores}, shape, home.at);
    OperandId weights = apply(OperatorKind::multiply, name + ".chosen", {open, chosen}, shape, home.at);
    if (c_.experts->renormalised) {
      const OperandId sum = apply(OperatorKind::reduce_sum, name + ".sum", {weights}, column, home.at);
      weights = apply(OperatorKind::divide, name + ".shares", {weights, sum}, shape, home.at);
    }
    return apply(OperatorKind::multiply, name + ".weights",
                 {weights, shared_number("experts.scale", c_.experts->routed_scale)}, shape, home.at);
  }

  // A linear layer of one expert: its matrix, [out, in] where `transposed`, and its bias.
  struct ExpertLayer {
    OperandId matrix;
    std::optional<OperandId> bias = {};
    bool transposed = true;
  };
  struct ExpertLayers {
    ExpertLayer gate, up, down;
  };

  ExpertLayers layers_of_expert(const std::string& at_moe, std::int64_t e) {
    if (c_.family == DecoderFamily::gpt_oss) return layers_of_stacks(at_moe + "experts.", e);
    const bool mixtral = c_.family == DecoderFamily::mixtral;
    const std::string each = at_moe + "experts.{}.";
    const auto matrix = [&](const char* of_mixtral, const char* of_others) {
      return ExpertLayer{weight(at(each + (mixtral ? of_mixtral : of_others) + ".weight"), e)};
    };
    const ExpertLayer gate = matrix("w1", "gate_proj"), up = matrix("w3", "up_proj");
    return {gate, up, matrix("w2", "down_proj")};
  }

  // gpt-oss has the matrices of all experts in one tensor, [in, out] each, and gates and ups in turn along their columns.
  ExpertLayers layers_of_stacks(const std::string& stacks, std::int64_t e) {
    const std::int64_t h = c_.hidden, i = c_.experts->intermediate;
    const std::string own = fmt::format("{}{}.", stacks, e);
    const DecoderWeight &both = at(stacks + "gate_up_proj"), &both_biases = at(stacks + "gate_up_proj_bias");
    const auto half = [&](const char* name, std::int64_t of) {
      const OperandId matrix =
          part_of(both, own + name + ".weight", {h, i}, h, e * h * 2 * i + of, {{h, i}, {2 * i, 2}});
      const OperandId bias = part_of(both_biases, own + name + ".bias", {i}, 1, e * 2 * i + of, {{i}, {2}});
      return ExpertLayer{matrix, bias, false};
    };
    const ExpertLayer gate = half("gate_proj", 0), up = half("up_proj", 1);
    const OperandId down = part_of(at(stacks + "down_proj"), own + "down_proj.weight", {i, h}, i, e * i * h);
    const OperandId bias = part_of(at(stacks + "down_proj_bias"), own + "down_proj.bias", {h}, 1, e * h);
    return {gate, up, {down, bias, false}};
  }

  // What down takes of a gate and an up of that shape.
  OperandId gated(const std::string& name, OperandId gate, OperandId up, const Extents& shape,
                  const OperatorAttributes& here) {
    const auto step = [&](OperatorKind kind, const char* what, Operands in) {
      return apply(kind, name + what, std::move(in), shape, here);
    };
    if (!c_.clamped_gate) {
      const OperandId activated = step(activation(), "activation", {gate});
      return step(OperatorKind::multiply, "gated", {activated, up});
    }
    const OperandId limit = shared_number("experts.limit", c_.clamped_gate->limit);
    const OperandId floor = shared_number("experts.least", -c_.clamped_gate->limit);
    const OperandId slope = shared_number("experts.slope", c_.clamped_gate->slope);
    gate = step(OperatorKind::minimum, "gate_clamped", {gate, limit});
    up = step(OperatorKind::minimum, "up_clamped_above", {up, limit});
    up = step(OperatorKind::maximum, "up_clamped", {up, floor});
    const OperandId steep = step(OperatorKind::multiply, "gate_steep", {gate, slope});
    const OperandId open = step(OperatorKind::sigmoid, "gate_open", {steep});
    const OperandId activated = step(OperatorKind::multiply, "activation", {gate, open});
    const OperandId one_more = step(OperatorKind::add, "up_one_more", {up, shared_number("one", 1)});
    return step(OperatorKind::multiply, "gated", {activated, one_more});
  }

  // What all that is done of one expert has: the chip that does it, where each is on one.
  OperatorAttributes at_expert(std::int64_t e) const {
    OperatorAttributes here;
    if (experts_ != ExpertPlacement::sharded) here.alone = {e, c_.experts->experts};
    return here;
  }

  // What one expert makes of `rows` of `x`, those of its tokens, in that order; nothing where it has none.
  std::optional<OperandId> expert(const std::string& at_moe, std::int64_t e, OperandId x,
                                  const std::vector<std::int64_t>& rows) {
    const ExpertLayers layers = layers_of_expert(at_moe, e);
    const OperatorAttributes here = at_expert(e);
    if (rows.empty()) {
      for (const ExpertLayer& l : {layers.gate, layers.up, layers.down}) {
        graph_.operands[l.matrix.value].alone = here.alone;
        if (l.bias) graph_.operands[l.bias->value].alone = here.alone;
      }
      return std::nullopt;
    }
    const auto count = static_cast<std::int64_t>(rows.size());
    const std::string name = fmt::format("{}experts.{}.", at_moe, e);
    const Extents wide = {count, c_.experts->intermediate}, narrow = {count, c_.hidden};
    const auto through = [&](const char* what, const ExpertLayer& l, OperandId in, const Extents& shape) {
      OperatorAttributes product = here;
      product.transposed = l.transposed;
      const OperandId out = apply(OperatorKind::matmul, name + what, {in, l.matrix}, shape, product);
      return l.bias ? apply(OperatorKind::add, name + what + ".biased", {out, *l.bias}, shape, here) : out;
    };
    const OperandId own_rows = rows_of(name + "tokens", x, rows, here);
    const OperandId in = own_rows == x && !is_dealt() ? narrowed(x) : narrowed(own_rows, here);
    const OperandId gate = through("gate_proj", layers.gate, in, wide), up = through("up_proj", layers.up, in, wide);
    const OperandId product = gated(name, gate, up, wide, here);
    return through("down_proj", layers.down, narrowed(product, here), narrow);
  }

  // Of each token of a home the sum of its experts' results, which are added in rising number. `places`: by token its
  // rows of `results`. `weights`: those rows are yet to be weighted, by a column of it each.
  OperandId sum_of_experts(const std::string& at_moe, const Home& home, OperandId results,
                           const std::vector<std::vector<std::int64_t>>& places, std::optional<OperandId> weights) {
    const Extents shape = {home.rows(), c_.hidden};
    std::optional<OperandId> sum;
    for (std::size_t j = 0; j < static_cast<std::size_t>(c_.experts->per_token); ++j) {
      std::vector<std::int64_t> of_tokens;
      for (const auto& own : places) of_tokens.push_back(own[j]);
      OperandId addend = rows_of(fmt::format("{}result.{}{}", at_moe, j, home.suffix), results, of_tokens, home.at);
      if (weights) addend = weighted(at_moe, home, j, addend, *weights);
      sum = sum ? apply(OperatorKind::add, fmt::format("{}sum.{}{}", at_moe, j, home.suffix), {*sum, addend}, shape,
                        home.at)
                : addend;
    }
    return *sum;
  }

  // Each token's result of its expert number j, by the weight that the token gives to it.
  OperandId weighted(const std::string& at_moe, const Home& home, std::size_t j, OperandId result, OperandId weights) {
    const OperandId at_j =
        mask(fmt::format("experts.number.{}", j), home, 1, 0,
             [&](const std::vector<std::int64_t>& experts, std::int64_t e) { return experts[j] == e; });
    const std::string name = fmt::format("{}weight.{}{}", at_moe, j, home.suffix);
    const Extents shape = {home.rows(), c_.experts->experts};
    const OperandId one = apply(OperatorKind::multiply, name + ".of_all", {weights, at_j}, shape, home.at);
    const OperandId column = apply(OperatorKind::reduce_sum, name, {one}, {home.rows(), 1}, home.at);
    return apply(OperatorKind::multiply, fmt::format("{}weighted.{}{}", at_moe, j, home.suffix), {result, column},
                 {home.rows(), c_.hidden}, home.at);
  }

  OperandId with_shared_expert(const std::string& at_moe, OperandId sum, OperandId x, const Home& home) {
    if (c_.experts->shared_intermediate == 0) return sum;
    const OperandId shared = mlp(at_moe + "shared_experts.", c_.experts->shared_intermediate, x, home);
    return apply(OperatorKind::add, at_moe + "with_shared" + home.suffix, {sum, shared}, {home.rows(), c_.hidden},
                 home.at);
  }

  std::string name_of_experts() const {
    return prefix_ + (c_.family == DecoderFamily::mixtral ? "block_sparse_moe." : "mlp.");
  }

  // All tokens in one place. An expert's results are weighted where they are made.
  OperandId experts(OperandId x) {
    const std::string at_moe = name_of_experts();
    const OperandId weights = expert_weights(at_moe, x, all_rows());
    Operands parts;
    std::vector<std::vector<std::int64_t>> places(static_cast<std::size_t>(rows_));  // by token: its rows of all parts
    std::int64_t rows = 0;
    for (std::int64_t e = 0; e < c_.experts->experts; ++e) {
      const std::vector<std::int64_t> tokens = routing_->tokens_of(e);
      const auto out = expert(at_moe, e, x, tokens);
      if (!out) continue;
      const std::string name = fmt::format("{}experts.{}.", at_moe, e);
      const OperatorAttributes here = at_expert(e);
      OperatorAttributes own = here;
      own.begin = {0, e};
      own.end = {rows_, e + 1};
      const OperandId of_all = apply(OperatorKind::slice, name + "weight", {weights}, {rows_, 1}, std::move(own));
      parts.push_back(apply(OperatorKind::multiply, name + "weighted",
                            {*out, rows_of(name + "weights", of_all, tokens, here)},
                            {static_cast<std::int64_t>(tokens.size()), c_.hidden}, here));
      for (const std::int64_t token : tokens) places[static_cast<std::size_t>(token)].push_back(rows++);
    }
    const OperandId all = stacked_rows(at_moe + "results", parts, {});
    return with_shared_expert(at_moe, sum_of_experts(at_moe, all_rows(), all, places, {}), x, all_rows());
  }

  // A token's results on their way: the token, and its expert.
  using Assignment = std::pair<std::int64_t, std::int64_t>;

  // Which tokens of a home go to experts of `chip`, rising.
  std::vector<std::int64_t> sent_to(std::uint32_t chip, const Home& home) const {
    std::vector<std::int64_t> tokens;
    for (std::int64_t t = home.begin; t < home.end; ++t) {
      const auto& experts = routing_->of_tokens[static_cast<std::size_t>(t)];
      if (std::any_of(experts.begin(), experts.end(), [&](std::int64_t e) { return chip_of_expert(e) == chip; }))
        tokens.push_back(t);
    }
    return tokens;
  }
  std::uint32_t chip_of_expert(std::int64_t e) const { return home_of({e, c_.experts->experts}, chips_)->value; }

  // Tokens are dealt out by rows, whole experts to chips. Each home works out what its tokens give to their experts, and
  // sends each token once to every chip that has one of those; the chip sends back what its experts make of it, and the
  // home weights and adds up. Each pair of chips has a number of tokens of its own, which the routing says: a pair
  // without any sends nothing.
  Parts exchanged(const Parts& x) {
    const std::string at_moe = name_of_experts();
    const auto suffix = [](const char* what, std::uint32_t chip) { return fmt::format("{}.chip{}", what, chip); };
    Parts weights;
    for (std::size_t h = 0; h < homes_.size(); ++h) weights.push_back(expert_weights(at_moe, x[h], homes_[h]));
    // What is on a chip: the tokens that are sent to it, and what its experts make, whose a row is.
    struct OnChip {
      std::vector<std::int64_t> tokens;
      std::optional<OperandId> rows;
      std::vector<std::int64_t> experts;
      Operands made;
      std::vector<Assignment> done;
      OperatorAttributes at;
    };
    std::vector<OnChip> chips(chips_);
    std::vector<Operands> sent(chips_);
    for (std::uint32_t chip = 0; chip < chips_; ++chip) chips[chip].at.alone = {chip, chips_};
    for (std::int64_t e = 0; e < c_.experts->experts; ++e) chips[chip_of_expert(e)].experts.push_back(e);
    for (std::uint32_t chip = 0; chip < chips_; ++chip)
      for (std::size_t h = 0; h < homes_.size(); ++h) {
        const Home& home = homes_[h];
        std::vector<std::int64_t> tokens = sent_to(chip, home);
        if (tokens.empty()) continue;
        chips[chip].tokens.insert(chips[chip].tokens.end(), tokens.begin(), tokens.end());
        for (std::int64_t& t : tokens) t -= home.begin;
        sent[chip].push_back(
            rows_of(at_moe + suffix("to", chip) + home.suffix, narrowed(x[h], home.at), tokens, home.at));
      }
    for (std::uint32_t chip = 0; chip < chips_; ++chip)
      if (!sent[chip].empty())
        chips[chip].rows = stacked_rows(at_moe + suffix("received", chip), sent[chip], chips[chip].at);
    // Expert after expert of every chip in turn: chips that have as many take as many side by side.
    for (std::size_t i = 0, more = chips_; more > 0; ++i) {
      more = 0;
      for (OnChip& c : chips) {
        if (i >= c.experts.size()) continue;
        ++more;
        const std::int64_t e = c.experts[i];
        std::vector<std::int64_t> rows;
        for (const std::int64_t token : routing_->tokens_of(e)) {
          rows.push_back(std::lower_bound(c.tokens.begin(), c.tokens.end(), token) - c.tokens.begin());
          c.done.emplace_back(token, e);
        }
        if (const auto out = expert(at_moe, e, c.rows.value_or(x.front()), rows)) c.made.push_back(*out);
      }
    }
    std::vector<Operands> returned(homes_.size());                        // by home: what chips send back
    std::vector<std::map<Assignment, std::int64_t>> back(homes_.size());  // and in which row what is
    for (std::uint32_t chip = 0; chip < chips_; ++chip) {
      const OnChip& c = chips[chip];
      if (c.made.empty()) continue;
      const OperandId results = stacked_rows(at_moe + suffix("made", chip), c.made, c.at);
      for (std::size_t h = 0; h < homes_.size(); ++h) {
        std::vector<std::int64_t> rows;
        for (std::size_t row = 0; row < c.done.size(); ++row) {
          if (c.done[row].first < homes_[h].begin || c.done[row].first >= homes_[h].end) continue;
          const auto place = static_cast<std::int64_t>(back[h].size());
          back[h].emplace(c.done[row], place);
          rows.push_back(static_cast<std::int64_t>(row));
        }
        if (rows.empty()) continue;
        returned[h].push_back(rows_of(at_moe + suffix("from", chip) + homes_[h].suffix, results, rows, c.at));
      }
    }
    Parts out;
    for (std::size_t h = 0; h < homes_.size(); ++h) {
      const Home& home = homes_[h];
      std::vector<std::vector<std::int64_t>> places;  // by token of the home: its rows of what came back
      for (std::int64_t t = home.begin; t < home.end; ++t) {
        places.emplace_back();
        for (const std::int64_t e : routing_->of_tokens[static_cast<std::size_t>(t)])
          places.back().push_back(back[h].at({t, e}));
      }
      const OperandId all = stacked_rows(at_moe + "returned" + home.suffix, returned[h], home.at);
      const OperandId sum = sum_of_experts(at_moe, home, all, places, weights[h]);
      out.push_back(with_shared_expert(at_moe, sum, x[h], home));
    }
    return out;
  }

  OperatorKind activation() const {
    switch (c_.activation) {
      case GateActivation::gelu:
        return OperatorKind::gelu;
      case GateActivation::gelu_tanh:
        return OperatorKind::gelu_tanh;
      case GateActivation::silu:
        break;
    }
    return OperatorKind::silu;
  }

  // ---- behind the layers

  OperandId last_rows(OperandId x) {
    if (positions_ == 1) return x;
    OperatorAttributes a;
    if (batch_ == 1) {
      a.begin = {rows_ - 1, 0};
      a.end = {rows_, c_.hidden};
      return apply(OperatorKind::slice, "model.last", {x}, {1, c_.hidden}, std::move(a));
    }
    x = reshape("model.by_sequence", x, stack_shape(positions_, c_.hidden));
    a.begin = {0, positions_ - 1, 0};
    a.end = {batch_, positions_, c_.hidden};
    x = apply(OperatorKind::slice, "model.last", {x}, {batch_, 1, c_.hidden}, std::move(a));
    return reshape("model.last.by_row", x, {batch_, c_.hidden});
  }

  void logits(OperandId x, OperandId table) {
    OperatorAttributes a;
    a.transposed = true;
    const Extents shape = {batch_, c_.vocabulary};
    const OperandId matrix = c_.tied_embeddings ? table : weight(head_weight(c_));
    const ResultOptions named{.role = TensorRole::output, .name = "logits"};
    const OperandId plain = apply(OperatorKind::matmul, "lm_head", {x, matrix}, shape, std::move(a),
                                  c_.logit_cap ? ResultOptions{} : named);
    if (!c_.logit_cap) return;
    const OperandId cap = number("lm_head.cap", *c_.logit_cap);
    const OperandId scaled = apply(OperatorKind::divide, "lm_head.scaled", {plain, cap}, shape);
    const OperandId bent = apply(OperatorKind::tanh, "lm_head.bent", {scaled}, shape);
    apply(OperatorKind::multiply, "lm_head.capped", {bent, cap}, shape, {}, named);
  }

  const DecoderConfig& c_;
  HfFiles& files_;
  DecoderTypes types_;
  bool decode_;
  bool scattered_;  // by rows, between attention and MLP
  ExpertPlacement experts_;
  std::uint32_t chips_;
  std::vector<Home> homes_;  // one, of all rows, where tokens are not dealt out
  std::int64_t batch_;
  std::int64_t context_;
  std::int64_t positions_;  // of a sequence in this step
  std::int64_t rows_;
  OperatorGraph graph_;
  Diagnostics out_;

  std::string prefix_;  // of the layer at hand
  std::map<std::string, DecoderWeight> layer_weights_;
  std::map<OperandId, OperandId> narrowed_;
  std::map<std::string, OperandId> numbers_;  // that all layers share, by name
  std::map<std::string, OperandId> whole_weights_;
  std::optional<ExpertRouting> routing_;                                  // where a layer has experts
  std::array<std::optional<std::pair<OperandId, OperandId>>, 2> tables_;  // global, local
};

// "llama-3.1-8b" of examples/llama-3.1-8b/config.json.
std::string name_of_model(const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path path = fs::absolute(file, error);
  if (error) return "model";
  const std::string stem = path.stem().string();
  const std::string folder = path.parent_path().filename().string();
  std::string name = stem == "config" && !folder.empty() ? folder : stem;
  constexpr std::size_t longest = 200;  // a pass may add to it
  name.resize(std::min(name.size(), longest));
  for (char& c : name) {
    if (c < ' ' || c > '~') c = '_';
  }
  return name.empty() ? "model" : name;
}

}  // namespace

std::vector<std::string> not_expressible(const DecoderConfig& c) {
  std::vector<std::string> out;
  if (c.attention_cap) out.push_back(fmt::format("attention scores that are capped at {}", *c.attention_cap));
  if (!c.latent && c.rotary_columns != c.head_width)
    out.push_back(fmt::format("rotary embedding of {} of a head's {} columns", c.rotary_columns, c.head_width));
  return out;
}

Result<OperatorGraph> decoder_graph(const std::string& name, const DecoderConfig& config, const DecoderRequest& request,
                                    HfFiles& files) {
  Diagnostics out;
  for (const std::string& what : not_expressible(config))
    out.error(Code::RDU1045, config.where, "'{}' has {}, for which rdusim has no operator", config.architecture, what);
  if (out.has_errors()) return out;
  const bool mixture =
      std::any_of(config.layers.begin(), config.layers.end(), [](const DecoderLayer& l) { return l.experts; });
  if (!mixture && (!request.routing.empty() || request.experts != ExpertPlacement::sharded)) {
    out.error(Code::RDU1046, config.where, "{}, and '{}' has no experts in the layers asked for",
              request.routing.empty() ? "experts are to lie on chips of their own" : "a routing is given",
              config.architecture);
    return out;
  }
  if (mixture && request.routing.empty()) {
    out.error(Code::RDU1069, config.where, "'{}' has a router that takes {} of {} experts, and which ones is data",
              config.architecture, config.experts->per_token, config.experts->experts)
        .suggest("--routing FILE gives a line a token, its experts by number");
    return out;
  }
  return GraphBuilder(name, config, request, files).build(request.routing);
}

Result<OperatorGraph> read_hf_model(const std::string& path, const DecoderRequest& request) {
  auto read = read_hf_config(path);
  if (!read) return read.diagnostics();
  const auto config = asked_of(*read, request);
  if (!config) return config.diagnostics();
  const std::string file = hf_config_path(path);
  auto files = HfFiles::open(std::filesystem::path(file).parent_path().string());
  if (!files) return files.diagnostics();
  if (files->any() && !config->quantised.empty()) {
    Diagnostics out;
    out.error(Code::RDU1020, config->where,
              "the weights beside it are quantised ('{}'), with scales in tensors of their own; those that are read "
              "are bf16, "
              "fp32 or fp8 as they stand",
              config->quantised)
        .suggest("convert the files to bf16, or take them away: sizes and cycles are those of random weights too");
    return out;
  }
  auto graph = decoder_graph(name_of_model(file), *config, request, *files);
  if (!graph) return graph.diagnostics();
  return {*std::move(graph), read.diagnostics()};
}

}  // namespace rdusim
