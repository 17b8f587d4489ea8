// Collectives that are wrong on purpose must be refused, as https://github.com/microsoft/msccl/issues/50 asks of a
// checker: a contribution dropped, duplicated, exchanged, from the wrong chip, or of the wrong step.
//
// Each mutation is an edit of what `show --json` writes, assembled again.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::collective_mutations_test {
namespace {

Json& stage(Json& p, std::string_view name) {
  return named(at(p, "stages"), "matmul0." + std::string(name));
}
// The only edge from one stage to another.
Json& edge(Json& p, std::string_view from, std::string_view to) {
  const auto begin = number(stage(p, from), "id");
  const auto end = number(stage(p, to), "id");
  for (Json& e : *at(p, "edges").as_array())
    if (number(e, "from") == begin && number(e, "to", 0) == end) return e;
  FAIL("there is no such edge");
  return p;
}
Json chunk(int index, int of) {
  return Json().set("index", index).set("of", of);
}
Json phases(std::initializer_list<int> values) {
  JsonArray all;
  for (const int v : values) all.push_back(Json(JsonArray{1, v}));
  return all;
}
Json bodies(const std::string& second) {
  return parsed("[[1, \"port 0\"], [1, " + second + "]]");
}

std::string once_each(const std::string& codes) {
  std::string once;
  for (std::size_t at = 0; at < codes.size(); at += 8)
    if (const std::string code = codes.substr(at, 7); once.find(code) == std::string::npos)
      once += (once.empty() ? "" : " ") + code;
  return once;
}

struct Mutation {
  std::string what;
  std::function<void(Json&)> edit;
  std::string codes;  // each once
};

// 32 x 512 by 512 x 32 over two chips, by the direct all-reduce: chunk 0 is summed on chip 0 and sent to chip 1, chunk
// 1 the other way round.
class Mutated {
 public:
  Mutated() {
    compile(folder_, Matmul{}, {"--chips", "2", "--shard", "row", "--collective", "direct"});
    program_ = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder_).out);
  }

  Outcome assemble(const std::function<void(Json&)>& edit) const {
    Json edited = program_;
    edit(edited);
    remove(edited, "certificate");
    folder_.write("edited.json", to_text(edited));
    return rdusim({"assemble", "edited.json", "-o", "edited.bin"}, folder_);
  }

  void check(const std::vector<Mutation>& mutations) const {
    for (const Mutation& m : mutations) {
      CAPTURE(m.what);
      const Outcome outcome = assemble(m.edit);
      INFO(outcome.err);
      CHECK(outcome.status == 1);
      CHECK(once_each(errors_of(outcome)) == m.codes);
      CHECK_FALSE(folder_.has("edited.bin"));
    }
  }

  const Folder& folder() const { return folder_; }

 private:
  Folder folder_;
  Json program_;
};

void exchange_receivers(Json& p) {
  Json& partial = edge(p, "matmul_c1", "all_reduce.recv_c1_c0");
  Json& result = edge(p, "all_reduce.fold_c1", "all_reduce.result_c1_c0");
  std::swap(at(partial, "to"), at(result, "to"));
  std::swap(at(stage(p, "all_reduce.recv_c1_c0"), "kind", "recv", "edge"),
            at(stage(p, "all_reduce.result_c1_c0"), "kind", "recv", "edge"));
}

TEST_CASE("the program that is mutated below assembles and runs to a pass as it is") {
  const Mutated mutated;
  const Outcome outcome = mutated.assemble([](Json&) {});
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
  check_exact_pass(run(mutated.folder(), {}, "edited.bin"));
}

TEST_CASE("a collective that drops a contribution is refused") {
  Mutated().check({
      {"the sum leaves out what was received",
       [](Json& p) { at(stage(p, "all_reduce.fold_c0"), "kind", "generic", "bodies") = bodies("\"accumulator\""); },
       "RDU3024 RDU3032"},
      {"the sum leaves out the chip's own partial",
       [](Json& p) { at(stage(p, "all_reduce.fold_c0"), "kind", "generic", "bodies") = bodies("\"port 1\""); },
       "RDU3024 RDU3032"},
      {"a member is not in the list",
       [](Json& p) {
         at(p, "collectives", 0, "members") = Json(JsonArray{0});
         at(p, "collectives", 0, "bytes") = Json(JsonArray{4096});
       },
       "RDU3018"},
      {"nothing is received", [](Json& p) { at(stage(p, "all_reduce.recv_c1_c0"), "firings") = 0; }, "RDU3008"},
      {"the summation tree leaves out a leaf", [](Json& p) { at(p, "trees", 0, "nodes").as_array()->resize(1); },
       "RDU3032"},
  });
}

TEST_CASE("a collective that adds a contribution twice is refused") {
  Mutated().check({
      {"what was received is added twice",
       [](Json& p) {
         at(stage(p, "all_reduce.fold_c0"), "kind", "generic", "bodies") =
             bodies("[\"add\", [\"add\", \"accumulator\", \"port 1\"], \"port 1\"]");
       },
       "RDU3024 RDU3032"},
      {"what was received is doubled",
       [](Json& p) {
         at(stage(p, "all_reduce.fold_c0"), "kind", "generic", "bodies") =
             bodies("[\"add\", \"accumulator\", [\"multiply\", \"port 1\", 2]]");
       },
       "RDU3025 RDU3032"},
      {"a member is listed twice",
       [](Json& p) {
         at(p, "collectives", 0, "members") = Json(JsonArray{0, 0});
       },
       "RDU3018 RDU3019"},
      {"it is received twice", [](Json& p) { at(stage(p, "all_reduce.recv_c1_c0"), "firings") = 2; }, "RDU3008"},
      {"both shards are the first",
       [](Json& p) {
         at(named(at(p, "tensors"), "x_c1"), "offset") = Json(JsonArray{0, 0});
       },
       "RDU3013 RDU3012 RDU3024"},
      {"the summation tree has a leaf twice",
       [](Json& p) { at(p, "trees", 0, "nodes", 1) = at(p, "trees", 0, "nodes", 0); }, "RDU3032"},
  });
}

TEST_CASE("a collective that exchanges shards, chunks or operands is refused") {
  Mutated().check({
      {"the shards of x are exchanged",
       [](Json& p) {
         std::swap(at(named(at(p, "tensors"), "x_c0"), "offset"), at(named(at(p, "tensors"), "x_c1"), "offset"));
       },
       "RDU3024"},
      {"the shards of w are exchanged",
       [](Json& p) {
         std::swap(at(named(at(p, "tensors"), "w_c0"), "offset"), at(named(at(p, "tensors"), "w_c1"), "offset"));
       },
       "RDU3024"},
      {"a partial and a result arrive in each other's place", exchange_receivers, "RDU3024 RDU3032"},
      {"the chunks are stored in each other's place",
       [](Json& p) {
         JsonArray& chunks = *at(stage(p, "store_c0"), "kind", "store", "chunks").as_array();
         std::swap(chunks[0], chunks[1]);
       },
       "RDU3024"},
      {"the operands of the sum are exchanged against the tree",
       [](Json& p) {
         JsonArray& nodes = *at(p, "trees", 0, "nodes").as_array();
         std::swap(nodes[0], nodes[1]);
       },
       "RDU3032"},
      {"it subtracts",
       [](Json& p) {
         at(stage(p, "all_reduce.fold_c0"), "kind", "generic", "bodies") =
             bodies("[\"subtract\", \"accumulator\", \"port 1\"]");
       },
       "RDU3025 RDU3032"},
  });
}

TEST_CASE("a collective with the wrong chip, step, size or hand-off is refused") {
  Mutated().check({
      {"the wrong chunk is sent",
       [](Json& p) { at(edge(p, "matmul_c1", "all_reduce.recv_c1_c0"), "chunk") = chunk(1, 2); }, "RDU3024 RDU3032"},
      {"both sides take the wrong chunk",
       [](Json& p) {
         at(edge(p, "matmul_c1", "all_reduce.recv_c1_c0"), "chunk") = chunk(1, 2);
         at(stage(p, "all_reduce.fold_c0"), "ports", 0, "chunk") = Json(JsonArray{Json(JsonArray{1, chunk(1, 2)})});
       },
       "RDU3024 RDU3032"},
      {"a partial is sent where its sum should be",
       [](Json& p) {
         Json& result = edge(p, "all_reduce.fold_c0", "all_reduce.result_c0_c1");
         at(result, "from") = number(stage(p, "matmul_c0"), "id");
         at(result, "buffer") = number(named(at(p, "buffers"), "matmul0.partial_c0"), "id");
         result.set("chunk", chunk(0, 2));
       },
       "RDU3024"},
      {"it reads before it has received",
       [](Json& p) {
         Json& own = at(stage(p, "all_reduce.fold_c0"), "ports", 0);
         Json& received = at(stage(p, "all_reduce.fold_c0"), "ports", 1);
         for (Json* port : {&own, &received})
           for (const std::string key : {"need", "pop"})
             at(*port, key) = phases({port == &own ? 0 : 1, port == &own ? 1 : 0});
       },
       "RDU3030"},
      {"the link starts at another chip",
       [](Json& p) {
         at(edge(p, "matmul_c1", "all_reduce.recv_c1_c0"), "routes") = Json(JsonArray{Json(JsonArray{0})});
       },
       "RDU3034"},
      {"a member contributes another number of bytes", [](Json& p) { at(p, "collectives", 0, "bytes", 1) = 2048; },
       "RDU3020"},
      {"a local hand-off joins two chips",
       [](Json& p) {
         Json& e = edge(p, "matmul_c1", "all_reduce.recv_c1_c0");
         at(e, "handshake") = "valid_ready";
         for (const std::string key : {"chunk", "routes", "counter_bits"}) remove(e, key);
       },
       "RDU3004 RDU3005 RDU3031 RDU3006"},
      {"the hand-off is one that the target has not",
       [](Json& p) { at(edge(p, "matmul_c1", "all_reduce.recv_c1_c0"), "handshake") = "barrier"; }, "RDU3009"},
  });
}

// A 32 x 512 by 512 x 32 matmul has 16 contraction blocks of 32; over two chips each chip's stages carry 8. Stages left
// at 16 wait for pages that are never pushed.
TEST_CASE("sliced tensors under stages that were not lowered again are refused with the counts") {
  const Mutated mutated;
  const Outcome outcome = mutated.assemble([](Json& p) {
    for (const std::string chip : {"0", "1"}) {
      for (const auto& [load, axis] : {std::pair{"load_a_c", 1}, std::pair{"load_b_c", 0}}) {
        Json& s = stage(p, load + chip);
        Json& pattern = at(s, "kind", "load", "pattern");
        CHECK(number(pattern, "extent_tiles", axis) == 8);
        at(pattern, "extent_tiles", axis) = 16;
        const int inner = static_cast<int>(list(pattern, "loops").size()) - 1;
        at(pattern, "loops", inner) = 2 * number(pattern, "loops", inner);
        at(s, "firings") = 2 * number(s, "firings");
      }
      Json& s = stage(p, "matmul_c" + chip);
      Json& kind = at(s, "kind", "matmul_tiles");
      CHECK(number(kind, "k_tiles") == 8);
      at(kind, "k_tiles") = 16;
      at(kind, "k_pages") = 2 * number(kind, "k_pages");
      at(s, "firings") = 2 * number(s, "firings");
      for (const std::string key : {"reserve", "push"})
        at(s, "ports", 2, key, 0, 0) = 2 * number(s, "ports", 2, key, 0, 0) + 1;
    }
  });
  CHECK(outcome.status == 1);
  CHECK(errors_of(outcome) == "RDU3008 RDU3008 RDU3008 RDU3008");
  CHECK(outcome.err.find("'matmul0.a_c0': reserved 8, pushed 8, popped 16 by 'matmul0.matmul_c0'") !=
        std::string::npos);
}

TEST_CASE("a slice that says another fill, role or range than its operand is refused") {
  const auto slice = [](Json& p) -> Json& { return named(at(p, "tensors"), "x_c0"); };
  Mutated().check({
      {"another fill", [&](Json& p) { at(slice(p), "fill", "pattern", "shift") = 29; }, "RDU3040"},
      {"another role", [&](Json& p) { at(slice(p), "role") = "weight"; }, "RDU3040"},
      {"another range", [&](Json& p) { at(slice(p), "range", 0) = -1; }, "RDU3040"},
  });
}

TEST_CASE("tensors that lie on each other, or in a place of another size, are refused") {
  Mutated().check({
      {"a place of another size", [](Json& p) { at(p, "memory", "tensors", 0, "bytes") = 1; }, "RDU3041"},
      {"two tensors in one place",
       [](Json& p) {
         const auto other = number(named(at(p, "tensors"), "w_c0"), "id");
         at(p, "memory", "tensors", other, "address") = number(p, "memory", "tensors", 0, "address");
       },
       "RDU3042"},
  });
}

}  // namespace
}  // namespace rdusim::test::collective_mutations_test
