// Bodies over the rows and columns of a page: a softmax put together by hand, its values held against the formula
// worked out here, and every way to get it wrong caught by name.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "compiler/support/elementary.h"
#include "tests/system/json_path.h"
#include "tests/system/scenario.h"
#include "tests/system/stream_program.h"

namespace rdusim::test::rows_test {
namespace {

const AffineMap whole = {{1, 0, 0}, {0, 1, 0}}, one_row = {{0, 0, 0}, {0, 1, 0}}, one_column = {{1, 0, 0}, {0, 0, 0}};

Expr expr(std::initializer_list<ExprNode> nodes) {
  return nodes;
}
ExprNode operand(std::uint32_t port) {
  return {ExprOp::operand, port, 0};
}
ExprNode node(ExprOp op) {
  return {op, 0, 0};
}

// Pages of any shape (the native tile is one element) of fp32, and the operators that they come from.
struct RowProgram {
  StreamProgram s;
  OperatorGraph graph;
  std::uint32_t row_pages = 1;  // of rows that are joined

  // A site has to hold six compute stages.
  explicit RowProgram(const std::string& name)
      : s(name, with_value(single_element_target(), "[site]", "pcu_contexts", "8")) {
    graph.name = name;
  }

  OperandId operand_of(const std::string& name, TensorRole role, std::vector<std::int64_t> shape, Fill fill = {}) {
    Operand o;
    o.id = OperandId{graph.operands.size()};
    o.name = name;
    o.role = role;
    o.shape = std::move(shape);
    o.fill = std::move(fill);
    graph.operands.push_back(o);
    return o.id;
  }
  TensorId tensor(OperandId id) {
    const Operand& o = graph.operand(id);
    Tensor t;
    t.id = TensorId{s.p.tensors.size()};
    t.name = o.name;
    t.operand = id;
    t.role = o.role;
    t.shape = t.whole = o.shape;
    t.offset.assign(o.shape.size(), 0);
    for (const std::int64_t n : o.shape) t.tiles.push_back(static_cast<std::uint64_t>(n));
    t.dtype = DType::fp32;
    t.fill = o.fill;
    s.p.tensors.push_back(t);
    return t.id;
  }
  OperatorId op(OperatorKind kind, std::vector<OperandId> in, OperandId out, bool transposed = false) {
    Operator o;
    o.id = OperatorId{graph.operators.size()};
    o.name = "op" + std::to_string(o.id.value);
    o.kind = kind;
    o.in = std::move(in);
    o.out = out;
    o.attributes.transposed = transposed;
    graph.operators.push_back(o);
    return o.id;
  }
  BufferId buffer(const std::string& name, GroupId g, std::uint64_t depth, std::uint64_t elements) {
    const BufferId id = s.buffer(name, g, depth);
    Buffer& b = s.p.buffers[id.value];
    b.dtype = DType::fp32;
    b.page_tiles = elements;
    b.page_bytes = 4 * elements;
    return id;
  }
  StageId stage(const std::string& name, StageKind kind, GroupId g, std::vector<Port> ports, std::uint64_t firings,
                std::optional<OperatorId> origin) {
    const StageId id = s.stage(name, std::move(kind), g, std::move(ports), firings);
    s.p.stages[id.value].origin = origin;
    return id;
  }
  static Port take(BufferId b) { return StreamProgram::input(b, always(1u), always(1u)); }
  Port keep(BufferId b) const { return StreamProgram::input(b, always(1u), last()); }
  static Port give(BufferId b) { return StreamProgram::output(b, always(1u)); }
  Cyclic<std::uint32_t> last() const {
    if (row_pages == 1) return always(1u);
    return {{row_pages - 1, 0}, {1, 1}};
  }
  Generic body(std::vector<AffineMap> maps, Expr e, std::optional<ExprOp> join = {}) const {
    Generic g;
    g.iterators = {IteratorKind::parallel, join ? IteratorKind::reduction : IteratorKind::parallel};
    g.maps = std::move(maps);
    g.maps.push_back(join ? one_column : whole);
    g.bodies = {{join ? row_pages : 1, std::move(e)}};
    g.accumulator = g.result = DType::fp32;
    g.join = join;
    return g;
  }
  // From pages of `in`, which comes from `from`, to pages of `out`, of page_rows x page_cols each.
  StageId softmax(GroupId g, StageId from, BufferId in, BufferId out, std::uint64_t page_rows, std::uint64_t page_cols,
                  std::uint64_t pages, OperatorId origin) {
    const BufferId most = buffer("most", g, 2, page_rows), total = buffer("total", g, 2, page_rows),
                   powers = buffer("powers", g, row_pages + 1, page_rows * page_cols);
    const StageId greatest = stage("greatest", body({whole}, expr({operand(0)}), ExprOp::maximum), g,
                                   {take(in), StreamProgram::output(most, last())}, pages, origin);
    const StageId power = stage(
        "power",
        body({whole, one_column}, expr({operand(0), operand(1), node(ExprOp::subtract), node(ExprOp::exponential)})), g,
        {take(in), keep(most), give(powers)}, pages, origin);
    const StageId sum = stage("sum", body({whole}, expr({operand(0)}), ExprOp::add), g,
                              {take(powers), StreamProgram::output(total, last())}, pages, origin);
    const StageId divide =
        stage("divide", body({whole, one_column}, expr({operand(0), operand(1), node(ExprOp::divide)})), g,
              {take(powers), keep(total), give(out)}, pages, origin);
    s.join(from, in, {greatest, power});
    s.join(greatest, most, {power});
    s.join(power, powers, {sum, divide});
    s.join(sum, total, {divide});
    return divide;
  }
  Stage& named(std::string_view name) {
    for (Stage& st : s.p.stages)
      if (st.name == name) return st;
    FAIL("no such stage");
    return s.p.stages[0];
  }
  Generic& generic(std::string_view name) { return std::get<Generic>(named(name).kind); }
};

// e^(x - m) / sum of a row of n, as operators mean it.
void softmax_row(float* x, std::int64_t n) {
  float m = x[0];
  for (std::int64_t c = 1; c < n; ++c) m = std::max(m, x[c]);
  for (std::int64_t c = 0; c < n; ++c) x[c] = exp_fp32(x[c] - m);
  float total = x[0];
  for (std::int64_t c = 1; c < n; ++c) total += x[c];
  for (std::int64_t c = 0; c < n; ++c) x[c] /= total;
}

// y = softmax(x) by rows; x is rows x cols, pages are page_rows x page_cols.
struct Softmax : RowProgram {
  std::int64_t rows = 5, cols = 12;
  std::uint64_t page_rows = 2, page_cols = 4;
  bool with_operators = true;

  Softmax() : RowProgram("softmax") {}

  void build() {
    const auto m = static_cast<std::uint64_t>(rows), n = static_cast<std::uint64_t>(cols);
    row_pages = static_cast<std::uint32_t>(ceil_div(n, page_cols));
    const std::uint64_t blocks = ceil_div(m, page_rows), pages = blocks * row_pages;
    const AccessPattern walk{
        {blocks, row_pages}, {{page_rows, 0}, {0, page_cols}}, {{0, 0}}, {page_rows, page_cols}, {m, n}};
    const GroupId g = s.group();
    const OperandId x = operand_of("x", TensorRole::input, {rows, cols}, PatternFill{61, 30});
    const OperandId y = operand_of("y", TensorRole::output, {rows, cols});
    const OperatorId softmax_op = op(OperatorKind::softmax, {x}, y);
    const BufferId in = buffer("in", g, row_pages + 1, page_rows * page_cols),
                   out = buffer("out", g, 2, page_rows * page_cols);
    const StageId load = stage("load", Load{tensor(x), walk, {}}, g, {give(in)}, pages, softmax_op);
    const StageId divide = softmax(g, load, in, out, page_rows, page_cols, pages, softmax_op);
    const StageId store = stage("store", Store{tensor(y), walk, {}}, g, {take(out)}, pages, softmax_op);
    s.join(divide, out, {store});
    if (with_operators) s.p.operators = graph;
  }

  std::vector<float> expected() const {
    std::vector<float> y;
    for (std::int64_t p = 0; p < rows * cols; ++p) y.push_back(static_cast<float>(p % 61 - 30));
    for (std::int64_t r = 0; r < rows; ++r) softmax_row(y.data() + r * cols, cols);
    return y;
  }
};

// o = softmax(q k^T) v for two heads of queries that share one head of keys and values, all on one site: what is
// multiplied second never leaves it.
struct Attention : RowProgram {
  static constexpr std::int64_t heads = 2, m = 4, c = 6, d = 8;

  Attention() : RowProgram("attention") {}

  void build() {
    const GroupId g = s.group();
    const OperandId q = operand_of("q", TensorRole::input, {heads, m, d}, PatternFill{7, 3}),
                    k = operand_of("k", TensorRole::input, {1, c, d}, PatternFill{5, 2}),
                    v = operand_of("v", TensorRole::input, {1, c, d}, PatternFill{11, 5}),
                    t = operand_of("t", TensorRole::intermediate, {heads, m, c}),
                    p = operand_of("p", TensorRole::intermediate, {heads, m, c}),
                    o = operand_of("y", TensorRole::output, {heads, m, d});
    const OperatorId scores_op = op(OperatorKind::matmul, {q, k}, t, true),
                     softmax_op = op(OperatorKind::softmax, {t}, p), out_op = op(OperatorKind::matmul, {p, v}, o);
    const auto each_head = [](std::uint64_t step, std::uint64_t rows, std::uint64_t stack) {
      return AccessPattern{{2}, {{step, 0, 0}}, {{0, 0, 0}}, {1, rows, 8}, {stack, rows, 8}};
    };
    const BufferId bq = buffer("bq", g, 2, 32), bk = buffer("bk", g, 2, 48), bv = buffer("bv", g, 2, 48),
                   bt = buffer("bt", g, 2, 24), bp = buffer("bp", g, 2, 24), bo = buffer("bo", g, 2, 32);
    const StageId load_q = stage("load_q", Load{tensor(q), each_head(1, 4, 2), {}}, g, {give(bq)}, 2, scores_op);
    const StageId load_k = stage("load_k", Load{tensor(k), each_head(0, 6, 1), {}}, g, {give(bk)}, 2, scores_op);
    const StageId load_v = stage("load_v", Load{tensor(v), each_head(0, 6, 1), {}}, g, {give(bv)}, 2, out_op);
    MatmulTiles scores{scores_op, 4, 6, 8, 8, 1, DType::fp32, DType::fp32, DType::fp32, true};
    MatmulTiles mix{out_op, 4, 8, 6, 6, 1, DType::fp32, DType::fp32, DType::fp32, false};
    const StageId multiply = stage("scores", scores, g, {take(bq), take(bk), give(bt)}, 2, scores_op);
    const StageId divide = softmax(g, multiply, bt, bp, 4, 6, 2, softmax_op);
    const StageId mixed = stage("mix", mix, g, {take(bp), take(bv), give(bo)}, 2, out_op);
    const StageId store = stage("store", Store{tensor(o), each_head(1, 4, 2), {}}, g, {take(bo)}, 2, out_op);
    s.join(load_q, bq, {multiply});
    s.join(load_k, bk, {multiply});
    s.join(load_v, bv, {mixed});
    s.join(divide, bp, {mixed});
    s.join(mixed, bo, {store});
    s.p.operators = graph;
  }

  static std::vector<float> expected() {
    const auto at = [](std::int64_t p, std::int64_t modulus, std::int64_t shift) {
      return static_cast<float>(p % modulus - shift);
    };
    std::vector<float> y;
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < m; ++i) {
        std::vector<float> t(c);
        for (std::int64_t j = 0; j < c; ++j)
          for (std::int64_t e = 0; e < d; ++e)
            t[static_cast<std::size_t>(j)] += at((h * m + i) * d + e, 7, 3) * at(j * d + e, 5, 2);
        softmax_row(t.data(), c);
        for (std::int64_t e = 0; e < d; ++e) {
          float sum = 0;
          for (std::int64_t j = 0; j < c; ++j) sum += t[static_cast<std::size_t>(j)] * at(j * d + e, 11, 5);
          y.push_back(sum);
        }
      }
    return y;
  }
};

std::vector<float> saved(const Folder& folder, std::size_t n) {
  const std::string npy = folder.read("y.npy");
  const std::size_t begin = npy.find('\n') + 1;  // after the header
  REQUIRE(npy.size() == begin + 4 * n);
  std::vector<float> values(n);
  std::memcpy(values.data(), npy.data() + begin, 4 * n);
  return values;
}

TEST_CASE("a softmax by rows has the values of its formula, whatever the pages of a row") {
  const Folder folder;
  for (const bool with_operators : {false, true})
    for (const std::uint64_t page_cols : {12u, 4u, 5u}) {
      CAPTURE(with_operators);
      CAPTURE(page_cols);
      Softmax f;
      f.with_operators = with_operators;
      f.page_cols = page_cols;
      f.build();
      const Outcome made = assemble(folder, f.s);
      INFO(made.err);
      REQUIRE(made.status == 0);
      const Json report = run(folder, {"--save", "y=y.npy", "--check", "none"});
      CHECK(text(report, "verdict") == "pass");
      CHECK(saved(folder, 60) == f.expected());
      const Json timing = run(folder, {"--timing-only"});
      CHECK(number(timing, "cycles", "simulated") == number(report, "cycles", "simulated"));
    }
}

struct Mutation {
  const char* what;
  const char* code;
  std::function<void(Softmax&)> change;
};

TEST_CASE("what is wrong with a softmax is found before it runs") {
  const std::vector<Mutation> mutations = {
      {"a map takes one row for one column", "RDU3044", [](Softmax& f) { f.generic("power").maps[1] = one_row; }},
      {"a row is reduced and not joined", "RDU3027", [](Softmax& f) { f.generic("sum").join.reset(); }},
      {"a result that is no row is joined", "RDU3027", [](Softmax& f) { f.generic("divide").join = ExprOp::add; }},
      {"a body by row reads its accumulator", "RDU3027",
       [](Softmax& f) { f.generic("sum").bodies[0].value = expr({node(ExprOp::accumulator)}); }},
      {"nothing says how many rows there are", "RDU3027",
       [](Softmax& f) {
         f.generic("divide").bodies[0].value = expr({{ExprOp::constant, 0, 1}});
       }},
      {"a row is pushed before its last page", "RDU3030",
       [](Softmax& f) {
         for (Port& port : f.named("sum").ports)
           if (port.direction == Direction::output) port.reserve = port.push = {{1, 1}, {2, 0}};
       }},
      {"a row ends before its last page", "RDU3044",
       [](Softmax& f) {
         for (Stage& st : f.s.p.stages) {
           if (auto* load = std::get_if<Load>(&st.kind)) load->pattern.stride[1][1] = 3;
         }
       }},
      {"pages come column by column", "RDU3044",
       [](Softmax& f) {
         auto& a = std::get<Load>(f.named("load").kind).pattern;
         std::swap(a.loops[0], a.loops[1]);
         std::swap(a.stride[0], a.stride[1]);
       }},
      {"the least of a row for the greatest", "RDU5011",
       [](Softmax& f) { f.generic("greatest").join = ExprOp::minimum; }},
      {"the exponential left out", "RDU5011", [](Softmax& f) { f.generic("power").bodies[0].value.pop_back(); }},
      {"the subtraction the other way round", "RDU5011",
       [](Softmax& f) { std::swap(f.generic("power").bodies[0].value[0], f.generic("power").bodies[0].value[1]); }},
      {"stored before it is divided", "RDU5011",
       [](Softmax& f) { f.generic("divide").bodies[0].value = expr({operand(0)}); }},
      {"a step rounded to bf16 on the way", "RDU5011",
       [](Softmax& f) {
         f.generic("greatest").result = DType::bf16;
         for (Buffer& b : f.s.p.buffers)
           if (b.name == "most") b.dtype = DType::bf16, b.page_bytes /= 2;
       }},
  };
  const Folder folder;
  for (const Mutation& m : mutations) {
    CAPTURE(m.what);
    Softmax f;
    f.build();
    m.change(f);
    Outcome made = assemble(folder, f.s);
    if (made.status == 0) made = rdusim({"check", "prog.bin"}, folder);
    INFO(made.err);
    CHECK(made.status == 1);
    CHECK(errors_of(made).substr(0, 7) == m.code);
  }
}

TEST_CASE("what is multiplied may have been made on the chip, in a stack of matrices, transposed") {
  const Folder folder;
  Attention f;
  f.build();
  const Outcome made = assemble(folder, f.s);
  INFO(made.err);
  REQUIRE(made.status == 0);
  const Json report = run(folder, {"--save", "y=y.npy", "--check", "none"});
  CHECK(text(report, "verdict") == "pass");
  CHECK(saved(folder, 64) == Attention::expected());
}

TEST_CASE("what does not belong together in a stack of products is refused") {
  const std::vector<std::pair<const char*, std::function<void(Attention&)>>> mutations = {
      {"RDU3024", [](Attention& f) { std::get<MatmulTiles>(f.named("scores").kind).transposed = false; }},
      {"RDU3024",
       [](Attention& f) {
         // The second head's rows come first.
         auto& a = std::get<Store>(f.named("store").kind).pattern;
         a.first[0][0] = 1;
         a.stride[0][0] = 0;
       }},
  };
  const Folder folder;
  for (const auto& [code, change] : mutations) {
    CAPTURE(code);
    Attention f;
    f.build();
    change(f);
    const Outcome made = assemble(folder, f.s);
    INFO(made.err);
    CHECK(made.status == 1);
    CHECK(errors_of(made).find(code) != std::string::npos);
  }
}

}  // namespace
}  // namespace rdusim::test::rows_test
