#include "compiler/program/program_json.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>

#include "compiler/program/prog_bin.h"
#include "compiler/support/file.h"
#include "tests/compiler/program/made_programs.h"

namespace rdusim::program_json_test {
using made::small_program;

namespace {

Result<SpatialProgram> read(std::string_view text) {
  auto json = parse_json(text, "p.json", Code::RDU5006);
  if (!json) return json.diagnostics();
  return program_from_json(*json, "p.json");
}

// The small program's JSON with one key of it set; `path` is of keys and indices, as in "stages.0.firings".
std::string text_with(std::string_view path, const Json& value, bool remove = false) {
  Json document = to_json(small_program());
  Json* at = &document;
  std::string key;
  while (true) {
    const std::size_t dot = path.find('.');
    key = path.substr(0, dot);
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
    if (JsonArray* items = at->as_array()) {
      at = &(*items)[std::stoul(key)];
    } else {
      JsonObject& members = *at->as_object();
      at = &std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.first == key; })->second;
    }
  }
  if (JsonArray* items = at->as_array()) {
    (*items)[std::stoul(key)] = value;
    return to_text(document);
  }
  JsonObject& members = *at->as_object();
  const auto found = std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.first == key; });
  if (remove) {
    REQUIRE(found != members.end());
    members.erase(found);
  } else if (found != members.end()) {
    found->second = value;
  } else {
    members.emplace_back(key, value);
  }
  return to_text(document);
}

// What is said, where there is one fault, of code 5007 and at a line and column.
std::string refusal(std::string_view text) {
  const auto result = read(text);
  REQUIRE(!result.ok());
  const auto& list = result.diagnostics().list();
  CHECK(list.size() == 1);
  CHECK(list.front().code == Code::RDU5007);
  CHECK(list.front().where.starts_with("p.json:"));
  return to_text(list.front());
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

SpatialProgram with_body(Expr body) {
  SpatialProgram program = small_program();
  Generic generic;
  generic.bodies = {{1, std::move(body)}};
  program.stages[0].kind = generic;
  return program;
}

// The first body of the first stage.
const Json& body_of(const Json& document) {
  const Json& generic = *document.find("stages")->as_array()->front().find("kind")->find("generic");
  return (*generic.find("bodies")->as_array()->front().as_array())[1];
}

}  // namespace

TEST_CASE("a program in which every field is set comes back equal from its JSON, and gives the same bytes") {
  const SpatialProgram program = made::every_field();
  const std::string text = to_text(to_json(program));
  const auto back = read(text);
  INFO(back.diagnostics().to_text());
  REQUIRE(back.ok());
  CHECK(*back == program);
  CHECK(encode(*back) == encode(program));
  CHECK(to_text(to_json(*back)) == text);
}

TEST_CASE("whatever is changed in a program changes its JSON, and the change comes back") {
  const SpatialProgram program = made::every_field();
  const std::string text = to_text(to_json(program), true);
  made::each_change(program, [&](const SpatialProgram& other) {
    const std::string other_text = to_text(to_json(other), true);
    CHECK(other_text != text);
    const auto back = read(other_text);
    INFO(back.diagnostics().to_text());
    REQUIRE(back.ok());
    CHECK(*back == other);
  });
}

TEST_CASE("any program comes back equal from its JSON, and gives the same bytes") {
  CHECK(made::of_any_program([](const SpatialProgram& program) {
    const bool compact = *rc::gen::arbitrary<bool>();
    const std::string text = to_text(to_json(program), compact);
    const auto back = read(text);
    RC_ASSERT(back.ok());
    RC_ASSERT(*back == program);
    RC_ASSERT(to_text(to_json(*back), compact) == text);
    RC_ASSERT(encode(*back) == encode(program));
  }));
}

TEST_CASE("numbers that JSON lacks, and zero's sign, come back") {
  SpatialProgram program = small_program();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (double number : {nan, inf, -inf, -0.0}) {
    program.tensors[0].fill = ConstantFill{number, 0};
    const auto constant = read(to_text(to_json(program)));
    REQUIRE(constant.ok());
    CHECK(encode(*constant) == encode(program));
    program.tensors[0].fill = ValuesFill{{}, {number, 1.0}};
    const auto values = read(to_text(to_json(program)));
    REQUIRE(values.ok());
    CHECK(encode(*values) == encode(program));
    const SpatialProgram body = with_body({{ExprOp::constant, 0, number}});
    const auto nested = read(to_text(to_json(body)));
    REQUIRE(nested.ok());
    CHECK(encode(*nested) == encode(body));
    const SpatialProgram flat = with_body({{ExprOp::operand, 0, number}});
    const auto nodes = read(to_text(to_json(flat)));
    REQUIRE(nodes.ok());
    CHECK(encode(*nodes) == encode(flat));
  }
}

TEST_CASE("integers beyond 2^53 stay what they are") {
  SpatialProgram program = small_program();
  program.tensors[0].fill =
      ValuesFill{{9007199254740993, std::numeric_limits<std::int64_t>::min(), -9007199254740993}, {}};
  program.stages[0].firings = std::numeric_limits<std::uint64_t>::max();
  const std::string text = to_text(to_json(program));
  CHECK(contains(text, "9007199254740993"));
  CHECK(contains(text, "18446744073709551615"));
  const auto back = read(text);
  REQUIRE(back.ok());
  CHECK(*back == program);
  program.tensors[0].fill = ConstantFill{9007199254740992.0, 9007199254740993};
  const auto constant = read(to_text(to_json(program)));
  REQUIRE(constant.ok());
  CHECK(*constant == program);
}

TEST_CASE("fills stand as in a workload file") {
  SpatialProgram program = small_program();
  const auto fill_text = [&](Fill fill) {
    program.tensors[0].fill = std::move(fill);
    return to_text(*to_json(program).find("tensors")->as_array()->front().find("fill"), true);
  };
  CHECK(fill_text(ZeroFill{}) == R"("zero")");
  CHECK(fill_text(ExternalFill{}) == R"("external")");
  CHECK(fill_text(ConstantFill{3, 3}) == R"({"constant":3})");
  CHECK(fill_text(ConstantFill{0.5, 0}) == R"({"constant":0.5})");
  CHECK(fill_text(ConstantFill{3, 0}) == R"({"constant":3.0})");
  CHECK(fill_text(PatternFill{61, 30}) == R"({"pattern":{"modulus":61,"shift":30}})");
  CHECK(fill_text(ValuesFill{{1, 2}, {}}) == R"({"values":[1,2]})");
  CHECK(fill_text(ValuesFill{{}, {1.0, 2.5}}) == R"({"values":[1.0,2.5]})");
  CHECK(fill_text(RandomFill{7, -1, 1}) == R"({"random":{"seed":7,"low":-1.0,"high":1.0}})");
  CHECK(fill_text(WholeTensorRandomFill{7}) == R"({"whole_tensor_random":{"seed":7}})");
  CHECK(fill_text(FileFill{"w.npy", "", 100, "ab", 80}) ==
        R"({"file":"w.npy","size_bytes":100,"sha256":"ab","data_offset":80})");
  CHECK(fill_text(FileFill{"w.safetensors", "w", 100, "ab", 80}) ==
        R"({"file":"w.safetensors","tensor":"w","size_bytes":100,"sha256":"ab","data_offset":80})");
  CHECK(fill_text(FileFill{"w.npy", "", 100, "ab", 80, {3, 2}, {8, 1}}) ==
        R"({"file":"w.npy","size_bytes":100,"sha256":"ab","data_offset":80,"extents":[3,2],"strides":[8,1]})");
}

TEST_CASE("an expression nests as it is computed") {
  const auto text = [](const Expr& expr) { return to_text(body_of(to_json(with_body(expr))), true); };
  const ExprNode port0{ExprOp::operand, 0, 0};
  const ExprNode port1{ExprOp::operand, 1, 0};
  const ExprNode half{ExprOp::constant, 0, 0.5};
  const ExprNode add{ExprOp::add, 0, 0};
  const ExprNode multiply{ExprOp::multiply, 0, 0};
  CHECK(text({port0}) == R"("port 0")");
  CHECK(text({port0, port1, add}) == R"(["add","port 0","port 1"])");
  CHECK(text({port0, port1, half, multiply, add}) == R"(["add","port 0",["multiply","port 1",0.5]])");
  CHECK(text({port0, {ExprOp::accumulator, 0, 0}, {ExprOp::subtract, 0, 0}}) ==
        R"(["subtract","port 0","accumulator"])");
  CHECK(text({port1, {ExprOp::negate, 0, 0}}) == R"(["negate","port 1"])");
  // What is no expression is kept as it is: saying so is the verifier's part.
  CHECK(text({port0, add}) == R"([{"op":"operand","index":0,"number":0.0},{"op":"add","index":0,"number":0.0}])");
  CHECK(text({}) == "[]");
  for (const Expr& expr : {Expr{port0, add}, Expr{}, Expr{port0, port1}, Expr{{ExprOp::add, 3, 0}},
                           Expr{port0, port1, {ExprOp::add, 0, 2.0}}, Expr{{ExprOp::operand, 0xFFFFFFFF, 0}}}) {
    const SpatialProgram program = with_body(expr);
    const auto back = read(to_text(to_json(program)));
    REQUIRE(back.ok());
    CHECK(*back == program);
  }
}

TEST_CASE("a long sum comes back, whichever way it leans") {
  for (const bool left : {false, true}) {
    Expr expr;
    for (std::uint32_t i = 0; i < 300; ++i) {
      expr.push_back({ExprOp::operand, i, 0});
      if (left && i > 0) expr.push_back({ExprOp::add, 0, 0});
    }
    if (!left)
      for (int i = 1; i < 300; ++i) expr.push_back({ExprOp::add, 0, 0});
    const SpatialProgram program = with_body(expr);
    const auto back = read(to_text(to_json(program)));
    INFO(back.diagnostics().to_text());
    REQUIRE(back.ok());
    CHECK(*back == program);
  }
}

TEST_CASE("an expression that is none is refused") {
  const std::string path = "stages.0.kind";
  const auto refused = [&](Json body) {
    Json generic = to_json(with_body({}));
    Json kind = *generic.find("stages")->as_array()->front().find("kind");
    (*(*(*kind.as_object())[0].second.as_object())[2].second.as_array())[0] = Json(JsonArray{Json(1), std::move(body)});
    return refusal(text_with(path, kind));
  };
  CHECK(contains(refused("port"), "expected"));
  CHECK(contains(refused("port -1"), "expected"));
  CHECK(contains(refused("port 4294967296"), "expected"));
  CHECK(contains(refused("port 1 "), "expected"));
  CHECK(contains(refused(JsonArray{Json("plus"), Json(1), Json(2)}), "one of add"));
  CHECK(contains(refused(JsonArray{Json("operand")}), "one of add"));
  CHECK(contains(refused(JsonArray{Json("add"), Json(1)}), "takes 2"));
  CHECK(contains(refused(JsonArray{Json("negate"), Json(1), Json(2)}), "takes 1"));
  CHECK(contains(refused(JsonArray{Json("add"), Json(1), Json(JsonArray{})}), "expected"));
  CHECK(contains(refused(Json()), "null"));
  CHECK(contains(refused(true), "true"));
}

TEST_CASE("absent keys take the defaults that the program states") {
  const auto back = read(R"({
    "schema": "rdusim.program/1",
    "header": {"name": "n", "target_name": "t", "target_text": "", "target_sha256": ""},
    "tensors": [{"id": 0, "name": "x", "operand": 0, "shape": [1], "tiles": [1], "chip": 0, "whole": [1], "offset": [0]}],
    "stages": [{"id": 0, "name": "s", "kind": {"recv": {"edge": 0}}, "ports": [{"direction": "input", "buffer": 0}],
                "group": 0, "firings": 0, "section": 0}],
    "buffers": [{"id": 0, "name": "b", "group": 0}],
    "edges": [{"id": 0, "from": 0, "buffer": 0, "to": [0]}],
    "sections": [{"id": 0, "name": "main"}]
  })");
  INFO(back.diagnostics().to_text());
  REQUIRE(back.ok());
  SpatialProgram program;
  program.header.name = "n";
  program.header.target_name = "t";
  Tensor x;
  x.name = "x";
  x.shape = {1};
  x.tiles = {1};
  x.whole = {1};
  x.offset = {0};
  program.tensors = {x};
  Stage s;
  s.name = "s";
  s.kind = Recv{};
  s.ports = {Port{}};
  program.stages = {s};
  Buffer b;
  b.name = "b";
  program.buffers = {b};
  Edge e;
  e.to = {StageId{}};
  program.edges = {e};
  Section section;
  section.name = "main";
  program.sections = {section};
  CHECK(*back == program);
}

TEST_CASE("a port's rates are left out where they are the usual ones, and may be empty") {
  SpatialProgram program = small_program();
  CHECK_FALSE(contains(to_text(to_json(program)), "\"need\""));
  program.stages[0].ports[0].need = {};
  program.stages[0].ports[0].chunk = {};
  CHECK(contains(to_text(to_json(program), true), R"("need":[])"));
  const auto back = read(to_text(to_json(program)));
  REQUIRE(back.ok());
  CHECK(*back == program);
}

TEST_CASE("an unknown key is refused with the nearest known one") {
  const std::string said = refusal(text_with("stages.0.firing", Json(3)));
  CHECK(contains(said, "unknown key 'firing'"));
  CHECK(contains(said, "stages[0]"));
  CHECK(contains(said, "did you mean 'firings'?"));
  CHECK(contains(refusal(text_with("colectives", Json(JsonArray{}))), "did you mean 'collectives'?"));
  CHECK_FALSE(contains(refusal(text_with("unlike_any", Json(1))), "did you mean"));
}

TEST_CASE("a value of the wrong type is refused at its line and column, with its path") {
  const std::string text = text_with("stages.0.firings", Json("two"));
  const std::size_t at = text.find("\"two\"");
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const std::size_t column = at - text.rfind('\n', at);
  const std::string said = refusal(text);
  CHECK(said.starts_with("p.json:" + std::to_string(line) + ":" + std::to_string(column) +
                         ": error RDU5007 json-schema: "));
  CHECK(
      contains(said, "stages[0].firings: expected an integer from 0 to 18446744073709551615, found the string 'two'"));
}

TEST_CASE("an integer out of range, or written as a fraction, is refused") {
  CHECK(contains(refusal(text_with("stages.0.id", Json(-1))), "from 0 to 4294967295, found -1"));
  CHECK(contains(refusal(text_with("stages.0.id", Json(std::int64_t{4294967296}))), "found 4294967296"));
  CHECK(contains(refusal(text_with("stages.0.firings", Json(-1))), "found -1"));
  CHECK(contains(refusal(text_with("stages.0.firings", Json(2.0))), "found 2.0"));
  CHECK(contains(refusal(text_with("tensors.0.shape.0", Json(std::uint64_t{1} << 63U))), "found 9223372036854775808"));
  CHECK(contains(refusal(text_with("tensors.0.fill", Json(JsonObject{{"constant", Json(std::uint64_t{1} << 63U)}}))),
                 "expected a number"));
}

TEST_CASE("an unknown enumerator is refused with those that there are") {
  CHECK(contains(
      refusal(text_with("edges.0.handshake", Json("Fifo"))),
      "expected one of fifo, valid_ready, circular_buffer, token, semaphore, barrier, found the string 'Fifo'"));
}

TEST_CASE("another schema is refused with one line") {
  CHECK(contains(refusal(text_with("schema", Json("rdusim.report/1"))), "expected 'rdusim.program/1'"));
  CHECK(contains(refusal(text_with("schema", Json(), true)), "the key 'schema' is missing"));
  CHECK(contains(refusal("[]"), "expected an object, found an array"));
  CHECK(contains(refusal("null"), "found null"));
}

TEST_CASE("all faults are reported, in the order of the program") {
  std::string text = text_with("stages.0.id", Json("x"));
  text.replace(text.find("\"page_bytes\": 4096"), 18, "\"page_bytes\": null");
  const auto result = read(text);
  REQUIRE(!result.ok());
  REQUIRE(result.diagnostics().list().size() == 2);
  CHECK(contains(result.diagnostics().list()[0].message, "stages[0].id"));
  CHECK(contains(result.diagnostics().list()[1].message, "buffers[0].page_bytes"));
}

TEST_CASE("a hundred thousand faults are counted, and the first of them told") {
  std::string tensors = "[";
  for (int i = 0; i < 20000; ++i) tensors += i == 0 ? "{}" : ",{}";
  const std::string text =
      R"({"schema": "rdusim.program/1", "header": {"name": "", "target_name": "", "target_text": "",
    "target_sha256": ""}, "stages": [], "buffers": [], "edges": [], "sections": [], "tensors": )" +
      tensors + "]}";
  const auto result = read(text);
  REQUIRE(!result.ok());
  CHECK(result.diagnostics().error_count() == 20000 * 8);
  CHECK(result.diagnostics().list().size() == Diagnostics::limit);
  CHECK(contains(result.diagnostics().list().back().message, "tensors[6]: the key 'name' is missing"));
}

TEST_CASE("a key given as null is refused: absent is absent") {
  CHECK(contains(refusal(text_with("stages.0.origin", Json())), "found null"));
}

TEST_CASE("no value of a document may be of another type, and no object may have another key") {
  // Goes through all of the document in which every field is set.
  const std::string good = to_text(to_json(made::every_field()));
  Json document = to_json(made::every_field());
  std::size_t spoilt = 0;
  const std::function<void(Json&)> spoil = [&](Json& at) {
    const auto check = [&] {
      ++spoilt;
      const auto result = read(to_text(document, true));
      REQUIRE(!result.ok());
      for (const auto& d : result.diagnostics().list()) CHECK(d.code == Code::RDU5007);
    };
    if (JsonObject* members = at.as_object()) {
      members->emplace_back("no_such_key", Json(1));
      check();
      members->pop_back();
      for (std::size_t i = 0; i < members->size(); ++i) spoil((*members)[i].second);
    } else if (JsonArray* items = at.as_array()) {
      for (Json& item : *items) spoil(item);
    }
    const Json kept = at;
    at = Json();
    check();
    at = kept.as_object() ? Json(true) : Json(JsonObject{});
    check();
    at = kept;
  };
  spoil(document);
  CHECK(spoilt > 3000);
  CHECK(to_text(document) == good);
}

TEST_CASE("each input of the errors folder is refused with the code that its name starts with, and just that") {
  const std::size_t inputs = made::each_refused_file(".json", [](const std::string& text, Code code) {
    const auto result = read(text);
    REQUIRE(!result.ok());
    REQUIRE(result.diagnostics().list().size() == 1);
    CHECK(result.diagnostics().list().front().code == code);
  });
  CHECK(inputs >= 10);
}

TEST_CASE("the example of the page that describes the format is a program") {
  const auto page = read_file(std::string(RDUSIM_SOURCE_DIR) + "/compiler/program/program-json.md", 1U << 20U);
  REQUIRE(page.ok());
  const std::size_t begin = page->find("```json\n");
  REQUIRE(begin != std::string::npos);
  const std::size_t end = page->find("\n```", begin);
  const auto program = read(std::string_view(*page).substr(begin + 8, end - begin - 8));
  INFO(program.diagnostics().to_text());
  REQUIRE(program.ok());
  CHECK(program->stages.size() == 4);
}

}  // namespace rdusim::program_json_test
