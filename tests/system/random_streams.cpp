#include "tests/system/random_streams.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "tests/system/scenario.h"

namespace rdusim::test {
namespace {

using Rates = std::vector<std::uint32_t>;  // by phase

Cyclic<std::uint32_t> cyclic(const Rates& rates) {
  Cyclic<std::uint32_t> c;
  for (const std::uint32_t r : rates) {
    if (!c.empty() && c.back().value == r)
      ++c.back().repeat;
    else
      c.push_back({1, r});
  }
  return c;
}

class Maker {
 public:
  Maker(std::uint64_t seed, std::uint32_t stages, std::uint32_t chips)
      : random_(seed), s_("random", machine()), left_(stages), chips_(chips) {}

  StreamProgram make() {
    rounds_ = 1 + below(3);
    while (left_ >= 12 || (nodes_.empty() && left_ >= 3)) add_node();
    for (Node& n : nodes_)
      for (Output& o : n.outputs)
        if (!o.taken) store(n, o);
    for (Node& n : nodes_) finish(n);
    return std::move(s_);
  }

 private:
  struct Output {
    BufferId buffer;
    std::uint32_t pages;  // a round
    bool taken = false;
    EdgeId edge;
  };
  struct Node {
    GroupId group;
    std::uint32_t chip = 0;
    std::uint32_t phases = 1;
    StageId stage;
    std::vector<Port> inputs;
    std::vector<Output> outputs;
    std::vector<Port> output_ports;
  };
  static constexpr std::uint32_t stages_a_site = 3;

  // Eight chips on a ring, 64 sites each, joined by tokens.
  static std::string machine() {
    std::string toml = single_element_target();
    const auto replace = [&](const std::string& from, const std::string& to) {
      const auto at = toml.find(from);
      REQUIRE(at != std::string::npos);
      toml.replace(at, from.size(), to);
    };
    replace("crossing = [\"barrier\"]", "crossing = [\"token\"]");
    const auto line = toml.find("token_bits ");
    toml.replace(line, toml.find('\n', line) - line, "token_bits = { value = 16, published = \"here\" }");
    toml = with_value(toml, "[site]", "movement_engines", "16");
    toml = with_value(toml, "[mesh]", "width_sites", "8");
    return with_value(toml, "[mesh]", "height_sites", "8");
  }

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  // `pages` spread over `phases`; the last phase has one at least.
  Rates spread(std::uint32_t pages, std::uint32_t phases) {
    Rates r(phases, 0);
    r.back() = 1;
    for (std::uint32_t i = 1; i < pages; ++i) ++r[below(phases)];
    return r;
  }

  void place(Node& n) {
    if (nodes_.empty() || on_site_ == stages_a_site || below(3) == 0) {
      n.chip = below(chips_);
      n.group = s_.group(1, n.chip, sites_[n.chip]++);
      on_site_ = 0;
    } else {
      n.chip = nodes_.back().chip;
      n.group = nodes_.back().group;
    }
    ++on_site_;
  }

  // What the node needs and pops of `pages` pages a round. A first input has a page in every phase, for the body.
  Port input(Node& n, BufferId b, std::uint32_t pages) {
    const Rates pop = spread(pages, n.phases);
    Rates need = pop;
    for (std::uint32_t& r : need) r = std::max(r, n.inputs.empty() ? 1u : 0u);
    return StreamProgram::input(b, cyclic(need), cyclic(pop));
  }

  std::uint64_t depth(std::uint32_t pages) { return 1 + below(pages + 2); }

  void add_node() {
    nodes_.reserve(256);
    Node n;
    n.phases = 1 + below(4);
    place(n);
    n.stage = s_.generic("node" + std::to_string(nodes_.size()), n.group, {}, {}, 0);
    --left_;
    const std::uint32_t wanted = 1 + below(2);
    for (std::uint32_t i = 0; i < wanted && !nodes_.empty(); ++i) {
      Node& from =
          nodes_[nodes_.size() - 1 - below(static_cast<std::uint32_t>(std::min<std::size_t>(nodes_.size(), 5)))];
      if (from.outputs.size() < 3) take(from, n);
    }
    // All hang together: the last one has given nothing away yet.
    if (n.inputs.empty() && !nodes_.empty()) take(nodes_.back(), n);
    if (n.inputs.empty() || below(4) == 0) load(n);
    // A loop of its own, with pages in it from the start: sometimes enough.
    if (below(6) == 0) {
      const std::uint32_t pages = n.phases;
      const BufferId b = s_.buffer(name("loop"), n.group, pages + below(2));
      s_.p.buffers[b.value].initial_pages = 1 + below(pages);
      n.inputs.push_back(input(n, b, pages));
      n.output_ports.push_back(StreamProgram::output(b, cyclic(spread(pages, n.phases))));
      s_.join(n.stage, b, {n.stage});
    }
    nodes_.push_back(std::move(n));
  }

  std::string name(const char* what) { return what + std::to_string(s_.p.buffers.size()); }

  Output& output(Node& n) {
    const std::uint32_t pages = 1 + below(5);
    Output o{s_.buffer(name("b"), n.group, depth(pages)), pages, false, {}};
    n.output_ports.push_back(StreamProgram::output(o.buffer, cyclic(spread(pages, n.phases))));
    n.outputs.push_back(o);
    return n.outputs.back();
  }

  void take(Node& from, Node& to) {
    Output& o = output(from);
    o.taken = true;
    BufferId b = o.buffer;
    if (from.group == to.group) {
      s_.join(from.stage, b, {to.stage});
    } else {
      const BufferId landing = s_.buffer(name("landing"), to.group, depth(o.pages));
      const StageId recv =
          s_.receive("recv" + std::to_string(landing.value), to.group, landing, std::uint64_t{o.pages} * rounds_);
      s_.cross(from.stage, b, recv, Handshake::token);
      s_.join(recv, landing, {to.stage});
      --left_;
      b = landing;
    }
    to.inputs.push_back(input(to, b, o.pages));
  }

  void load(Node& n) {
    const std::uint32_t pages = 1 + below(5);
    const std::uint64_t all = std::uint64_t{pages} * rounds_;
    const BufferId b = s_.buffer(name("in"), n.group, depth(pages));
    const TensorId x = s_.tensor("x" + std::to_string(b.value), TensorRole::input, all, 61, n.chip);
    const StageId from = s_.load("load" + std::to_string(b.value), x, n.group, b, all);
    s_.join(from, b, {n.stage});
    n.inputs.push_back(input(n, b, pages));
    --left_;
  }

  void store(Node& n, Output& o) {
    o.taken = true;
    const std::uint64_t all = std::uint64_t{o.pages} * rounds_;
    const TensorId y = s_.tensor("y" + std::to_string(o.buffer.value), TensorRole::output, all, 1, n.chip);
    const StageId to = s_.store("store" + std::to_string(o.buffer.value), y, n.group, o.buffer, all);
    s_.join(n.stage, o.buffer, {to});
  }

  void finish(Node& n) {
    if (n.outputs.empty()) store(n, output(n));
    Stage& st = s_.p.stages[n.stage.value];
    Generic g;
    g.iterators = {IteratorKind::reduction, IteratorKind::parallel};
    g.maps.assign(n.inputs.size(), {{1, 0, 0}, {0, 1, 0}});
    g.maps.push_back({{0, 1, 0}});
    g.bodies = {{1, {{ExprOp::operand, 0, 0}}}};
    g.accumulator = g.result = DType::int32;
    st.kind = std::move(g);
    st.ports = n.inputs;
    st.ports.insert(st.ports.end(), n.output_ports.begin(), n.output_ports.end());
    st.firings = std::uint64_t{n.phases} * rounds_;
  }

  std::mt19937_64 random_;
  StreamProgram s_;
  std::uint32_t left_;
  std::uint32_t chips_;
  std::uint32_t rounds_ = 1;
  std::uint32_t on_site_ = 0;
  std::uint32_t sites_[64] = {};
  std::vector<Node> nodes_;
};

}  // namespace

StreamProgram random_streams(std::uint64_t seed, std::uint32_t stages, std::uint32_t chips) {
  return Maker(seed, stages, chips).make();
}

}  // namespace rdusim::test
