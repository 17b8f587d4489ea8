#include "compiler/workload/read_workload.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "compiler/support/file.h"
#include "tests/compiler/workload/data_files.h"
#include "tests/compiler/workload/temporary_folder.h"

namespace rdusim::read_workload_test {

namespace {

constexpr const char* small = R"(name = "small"

[tensors.x]
role  = "input"
shape = [4, 6]
dtype = "int8"
fill  = { pattern = { modulus = 19, shift = 9 } }

[tensors.w]
role  = "weight"
shape = [6, 8]
dtype = "int8"
fill  = { pattern = { modulus = 23, shift = 11 } }

[tensors.y]
role  = "output"

[[ops]]
kind = "matmul"
in   = ["x", "w"]
out  = "y"
)";

Result<OperatorGraph> parse(const std::string& text, const std::string& folder = ".") {
  return parse_workload(text, "w.toml", folder);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// small with another fill of x.
std::string with_fill(const std::string& fill, const std::string& dtype = "int8", const std::string& shape = "[4, 6]") {
  std::string text = replaced(small, "{ pattern = { modulus = 19, shift = 9 } }", fill);
  for (int i = 0; i < 2; ++i) text = replaced(text, "\"int8\"", "\"" + dtype + "\"");
  text = replaced(text, "[4, 6]", shape);
  return text;
}

const Fill& fill_of_x(const Result<OperatorGraph>& graph) {
  INFO(graph.diagnostics().to_text());
  REQUIRE(graph.ok());
  return graph->operands[0].fill;
}

std::vector<std::string> places(const Diagnostics& d) {
  std::vector<std::string> out;
  for (const Diagnostic& each : d.list()) out.push_back(each.where);
  return out;
}

}  // namespace

TEST_CASE("a workload becomes a graph whose result has the shape and the accumulator's type") {
  const auto graph = parse(small);
  INFO(graph.diagnostics().to_text());
  REQUIRE(graph.ok());
  CHECK(graph.diagnostics().empty());
  CHECK(graph->name == "small");
  REQUIRE(graph->operands.size() == 3);
  CHECK(graph->operands[0].role == TensorRole::input);
  CHECK(graph->operands[0].fill == Fill{PatternFill{19, 9}});
  CHECK(graph->operands[1].role == TensorRole::weight);
  const Operand& y = graph->operands[2];
  CHECK(y.shape == std::vector<std::int64_t>{4, 8});
  CHECK(y.dtype == DType::int32);
  CHECK(y.fill == Fill{ZeroFill{}});
  CHECK(y.where == "w.toml:15:10");
  REQUIRE(graph->operators.size() == 1);
  CHECK(graph->operators[0].name == "matmul0");
  CHECK(graph->operators[0].in == std::vector<OperandId>{OperandId{0}, OperandId{1}});
  CHECK(graph->operators[0].out == OperandId{2});
  CHECK(graph->operators[0].where == "w.toml:18:1");
  CHECK(check_graph(*graph).empty());
}

TEST_CASE("tensors have ids by position in the file, not by name") {
  const auto graph = parse(R"(name = "order"
tensors.z = { role = "input", shape = [17, 19], dtype = "int32", fill = "external" }
tensors.b = { role = "weight", shape = [19, 23], dtype = "int32", fill = "external" }
tensors.a = { role = "output" }
[[ops]]
kind = "matmul"
in = ["z", "b"]
out = "a"
)");
  INFO(graph.diagnostics().to_text());
  REQUIRE(graph.ok());
  CHECK(graph->operands[0].name == "z");
  CHECK(graph->operands[1].name == "b");
  CHECK(graph->operands[2].name == "a");
  for (std::size_t i = 0; i < 3; ++i) CHECK(graph->operands[i].id == OperandId{i});
}

TEST_CASE("operators are put in writing order, and keep the file's order where that leaves a choice") {
  const auto graph = parse(R"(name = "order"
[tensors.x]
role = "input"
shape = [17, 17]
dtype = "int64"
fill = "external"
[tensors.a]
[tensors.b]
[tensors.c]
role = "output"
[tensors.d]
role = "output"
[[ops]]
name = "late"
kind = "matmul"
in = ["b", "a"]
out = "c"
[[ops]]
kind = "matmul"
in = ["x", "x"]
out = "b"
[[ops]]
name = "other"
kind = "matmul"
in = ["x", "x"]
out = "d"
[[ops]]
kind = "matmul"
in = ["b", "x"]
out = "a"
)");
  INFO(graph.diagnostics().to_text());
  REQUIRE(graph.ok());
  std::vector<std::string> names;
  for (const Operator& op : graph->operators) {
    CHECK(op.id == OperatorId{names.size()});
    names.push_back(op.name);
  }
  CHECK(names == std::vector<std::string>{"matmul1", "other", "matmul3", "late"});
  CHECK(check_graph(*graph).empty());
}

TEST_CASE("a result may be narrower than its accumulator, of the same kind") {
  const auto result = [](const std::string& operands, const std::string& dtype) {
    return parse(replaced(with_fill("\"zero\"", operands), "role  = \"output\"",
                          "role  = \"output\"\ndtype = \"" + dtype + "\""));
  };
  struct Results {
    std::string operands;
    std::vector<std::string> allowed;
  };
  for (const Results& row : std::vector<Results>{{"int8", {"int32", "int8"}},
                                                 {"int32", {"int32"}},
                                                 {"int64", {"int64"}},
                                                 {"fp32", {"fp32", "bf16", "fp8_e4m3", "fp8_e5m2"}},
                                                 {"bf16", {"fp32", "bf16", "fp8_e4m3", "fp8_e5m2"}},
                                                 {"fp8_e4m3", {"fp32", "bf16", "fp8_e4m3", "fp8_e5m2"}}}) {
    for (const DType t : all_dtypes) {
      const std::string dtype(name_of(t));
      const auto graph = result(row.operands, dtype);
      CAPTURE(row.operands);
      CAPTURE(dtype);
      const bool expected = std::find(row.allowed.begin(), row.allowed.end(), dtype) != row.allowed.end();
      CHECK(graph.ok() == expected);
      if (!expected) CHECK(graph.diagnostics().contains(Code::RDU1012));
      if (graph.ok()) CHECK(graph->operands[2].dtype == t);
    }
  }
}

TEST_CASE("a chain's intermediate gets its shape before it is read") {
  const auto graph = parse(R"(name = "chain"
[tensors.x]
role = "input"
shape = [17, 19]
dtype = "bf16"
fill = "external"
[tensors.y]
role = "output"
[tensors.h]
dtype = "bf16"
[tensors.w]
role = "weight"
shape = [19, 19]
dtype = "bf16"
fill = "external"
[[ops]]
kind = "matmul"
in = ["h", "w"]
out = "y"
[[ops]]
kind = "matmul"
in = ["x", "w"]
out = "h"
)");
  INFO(graph.diagnostics().to_text());
  REQUIRE(graph.ok());
  CHECK(graph->operands[2].shape == std::vector<std::int64_t>{17, 19});
  CHECK(graph->operands[1].dtype == DType::fp32);
  // Without the intermediate's dtype it is fp32, which does not multiply with bf16.
  CHECK(parse(replaced(small, "role  = \"output\"", "role  = \"output\"\n[tensors.z]\nrole = \"output\"") +
              "[[ops]]\nkind = \"matmul\"\nin = [\"y\", \"w\"]\nout = \"z\"\n")
            .diagnostics()
            .contains(Code::RDU1012));
}

TEST_CASE("each way to write a fill gives that fill") {
  CHECK(fill_of_x(parse(with_fill("\"zero\""))) == Fill{ZeroFill{}});
  CHECK(fill_of_x(parse(with_fill("\"external\""))) == Fill{ExternalFill{}});
  CHECK(fill_of_x(parse(with_fill("{ constant = -128 }"))) == Fill{ConstantFill{0, -128}});
  CHECK(fill_of_x(parse(with_fill("{ constant = 9223372036854775807 }", "int64"))) ==
        Fill{ConstantFill{0, 9223372036854775807}});
  CHECK(fill_of_x(parse(with_fill("{ constant = 3 }", "fp32"))) == Fill{ConstantFill{3.0, 0}});
  CHECK(fill_of_x(parse(with_fill("{ pattern = { modulus = 29 } }"))) == Fill{PatternFill{29, 0}});
  CHECK(fill_of_x(parse(replaced(with_fill("{ values = [1, -2, 3, 4] }", "int8", "[2, 2]"), "[6, 8]", "[2, 8]"))) ==
        Fill{ValuesFill{{1, -2, 3, 4}, {}}});
  CHECK(fill_of_x(parse(replaced(with_fill("{ values = [1, -2.5] }", "bf16", "[2, 1]"), "[6, 8]", "[1, 8]"))) ==
        Fill{ValuesFill{{}, {1, -2.5}}});
  CHECK(fill_of_x(parse(with_fill("{ random = { seed = 7 } }"))) == Fill{RandomFill{7, -128, 127}});
  CHECK(fill_of_x(parse(with_fill("{ random = { seed = 7 } }", "bf16"))) == Fill{RandomFill{7, -1, 1}});
  CHECK(fill_of_x(parse(with_fill("{ random = { seed = 7, low = -3, high = 3 } }"))) == Fill{RandomFill{7, -3, 3}});
}

TEST_CASE("floats of a fill are rounded to the tensor's dtype when they are read") {
  CHECK(fill_of_x(parse(with_fill("{ constant = 0.85 }", "fp32"))) == Fill{ConstantFill{double{0.85F}, 0}});
  CHECK(fill_of_x(parse(with_fill("{ constant = 0.85 }", "bf16"))) == Fill{ConstantFill{0.8515625, 0}});
  CHECK(fill_of_x(parse(with_fill("{ constant = 449 }", "fp8_e4m3"))) == Fill{ConstantFill{448, 0}});
  CHECK(parse(with_fill("{ constant = 465 }", "fp8_e4m3")).diagnostics().contains(Code::RDU1022));
  CHECK(parse(with_fill("{ constant = inf }", "fp32")).diagnostics().contains(Code::RDU1022));
  CHECK(parse(with_fill("{ constant = nan }", "bf16")).diagnostics().contains(Code::RDU1022));
}

TEST_CASE("a value must fit the dtype, at the edge and one beyond") {
  CHECK(parse(with_fill("{ constant = 127 }")).ok());
  CHECK_FALSE(parse(with_fill("{ constant = 128 }")).ok());
  CHECK_FALSE(parse(with_fill("{ constant = -129 }")).ok());
  CHECK(parse(with_fill("{ constant = 2147483647 }", "int32")).ok());
  CHECK_FALSE(parse(with_fill("{ constant = 2147483648 }", "int32")).ok());
  CHECK(parse(with_fill("{ pattern = { modulus = 29, shift = 128 } }")).ok());
  CHECK_FALSE(parse(with_fill("{ pattern = { modulus = 29, shift = 129 } }")).ok());
  // The tensor's 24 elements never come to the modulus's end.
  CHECK(parse(with_fill("{ pattern = { modulus = 100003, shift = -104 } }")).ok());
  CHECK_FALSE(parse(with_fill("{ pattern = { modulus = 100003, shift = -105 } }")).ok());
  CHECK_FALSE(parse(with_fill("{ pattern = { modulus = 29, shift = -9223372036854775808 } }", "int64")).ok());
  CHECK(parse(with_fill("{ random = { seed = 1, high = 127 } }")).ok());
  CHECK_FALSE(parse(with_fill("{ random = { seed = 1, high = 128 } }")).ok());
  CHECK_FALSE(parse(with_fill("{ random = { seed = 1, low = 3, high = 2 } }")).ok());
  CHECK_FALSE(parse(with_fill("{ random = { seed = 1, low = 0.5 } }")).ok());
  CHECK_FALSE(parse(with_fill("{ random = { seed = 1, high = 9007199254740993 } }", "int64")).ok());
}

TEST_CASE("everything wrong is reported, in the order of the file") {
  const auto graph = parse(R"(nam = "x"
[tensors.x]
role = "inptu"
[tensors.w]
role = "weight"
shape = [3, 0]
dtype = "int8"
fill = { constant = true }
[tensors.y]
role = "output"
dtype = "int9"
[[ops]]
kind = "conv"
in = ["x", "v"]
out = "y"
[schedule.matmul0]
depth = -1
)");
  REQUIRE_FALSE(graph.ok());
  INFO(graph.diagnostics().to_text());
  CHECK(places(graph.diagnostics()) == std::vector<std::string>{"w.toml:1:1", "w.toml:3:8", "w.toml:6:9", "w.toml:8:21",
                                                                "w.toml:11:9", "w.toml:13:8", "w.toml:14:12",
                                                                "w.toml:17:9"});
}

TEST_CASE("an unknown key names the nearest known one") {
  const auto graph = parse(replaced(small, "shape = [4, 6]", "shpae = [4, 6]"));
  REQUIRE(graph.diagnostics().list().size() == 1);
  CHECK(graph.diagnostics().list()[0].code == Code::RDU1004);
  CHECK(graph.diagnostics().list()[0].help == std::vector<std::string>{"did you mean 'shape'?"});
}

TEST_CASE("huge shapes are refused where they overflow, and cost nothing where they do not") {
  CHECK(parse(with_fill("\"zero\"", "int8", "[1_000_000_000_000, 1_000_000_000_000]"))
            .diagnostics()
            .contains(Code::RDU1008));
  const auto graph = parse(
      replaced(with_fill("{ random = { seed = 1 } }", "int8", "[1_000_000_000, 1_000]"), "[6, 8]", "[1_000, 1_000]"));
  REQUIRE(graph.ok());
  CHECK(graph->operands[2].shape == std::vector<std::int64_t>{1'000'000'000, 1'000});
  // 10^18 multiply-accumulates are counted; 10^21 are not.
  CHECK_FALSE(
      parse(replaced(with_fill("\"zero\"", "int8", "[1_000_000_000, 1_000]"), "[6, 8]", "[1_000, 1_000_000_000]"))
          .ok());
}

TEST_CASE("a schedule's pins are taken as they stand") {
  const auto graph = parse(std::string(small) +
                           "[schedule.matmul0]\nsites = 8\nunroll_m = 1\nunroll_n = 4\nunroll_k = 2\nblock_m = 3\n"
                           "block_n = 5\npage_k = 7\ndepth = 2\n");
  INFO(graph.diagnostics().to_text());
  REQUIRE(graph.ok());
  REQUIRE(graph->pins.size() == 1);
  SchedulePin pin;
  pin.op = OperatorId{0};
  pin.sites = 8;
  pin.unroll_m = 1;
  pin.unroll_n = 4;
  pin.unroll_k = 2;
  pin.block_m = 3;
  pin.block_n = 5;
  pin.page_k = 7;
  pin.depth = 2;
  CHECK(graph->pins[0] == pin);
}

TEST_CASE("a pin follows its operator when operators are put in order") {
  const auto graph = parse(replaced(small, "[[ops]]",
                                    "[tensors.z]\nrole = \"output\"\ndtype = \"int32\"\n"
                                    "[tensors.v]\nrole = \"weight\"\nshape = [8, 8]\n"
                                    "dtype = \"int32\"\nfill = \"external\"\n"
                                    "[[ops]]\nname = \"second\"\nkind = \"matmul\"\n"
                                    "in = [\"y\", \"v\"]\nout = \"z\"\n[[ops]]") +
                           "[schedule.second]\ndepth = 3\n");
  INFO(graph.diagnostics().to_text());
  REQUIRE(graph.ok());
  CHECK(graph->operators[1].name == "second");
  REQUIRE(graph->pins.size() == 1);
  CHECK(graph->pins[0].op == OperatorId{1});
}

TEST_CASE("names that cannot be printed or are empty are refused") {
  CHECK(parse(replaced(small, "\"small\"", "\"\"")).diagnostics().contains(Code::RDU1007));
  CHECK(parse(replaced(small, "\"small\"", "\"a\\nb\"")).diagnostics().contains(Code::RDU1007));
  CHECK(parse(replaced(small, "\"small\"", "\"a\\u009Bb\"")).diagnostics().contains(Code::RDU1007));
  CHECK(parse(replaced(small, "\"small\"", "\"\\u03B1\"")).ok());
  CHECK(parse(replaced(small, "\"small\"", "\"" + std::string(256, 'a') + "\"")).diagnostics().contains(Code::RDU1007));
}

TEST_CASE("a fill from a file records its place, size and hash relative to the workload") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "data");
  const std::string bytes = npy("|i1", "(4, 6)", std::string(24, '\x05'));
  folder.write("data/x.npy", bytes);
  const std::string path = folder.write("w.toml", with_fill("{ file = \"data/x.npy\" }"));
  const auto graph = read_workload(path);
  CHECK(fill_of_x(graph) == Fill{FileFill{"data/x.npy", "", bytes.size(), sha256(bytes), bytes.size() - 24}});

  const std::string header = R"({"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},)"
                             R"("m.x":{"dtype":"I8","shape":[4,6],"data_offsets":[2,26]}})";
  const std::string tensors = safetensors(header, std::string(26, '\x07'));
  folder.write("m.safetensors", tensors);
  const auto other = parse(with_fill("{ file = \"m.safetensors\", tensor = \"m.x\" }"), folder.path());
  CHECK(fill_of_x(other) ==
        Fill{FileFill{"m.safetensors", "m.x", tensors.size(), sha256(tensors), 8 + header.size() + 2}});
}

TEST_CASE("a fill's path may not leave the workload's folder, by any way") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "inside");
  const std::string bytes = npy("|i1", "(4, 6)", std::string(24, '\x05'));
  folder.write("outside.npy", bytes);
  folder.write("inside/x.npy", bytes);
  const std::string root = folder / "inside";
  std::filesystem::create_symlink(folder / "outside.npy", root + "/leaves.npy");
  std::filesystem::create_symlink("x.npy", root + "/stays.npy");
  std::filesystem::create_directory_symlink(folder.path(), root + "/up");
  const auto code = [&](const std::string& path) {
    const auto graph = parse(with_fill("{ file = \"" + path + "\" }"), root);
    return graph.ok() ? std::string("ok") : std::string(info(graph.diagnostics().list()[0].code).name);
  };
  CHECK(code("x.npy") == "ok");
  CHECK(code("./x.npy") == "ok");
  CHECK(code("stays.npy") == "ok");
  CHECK(code("../outside.npy") == "path-escapes");
  CHECK(code("up/../x.npy") == "path-escapes");
  CHECK(code(root + "/x.npy") == "path-escapes");
  CHECK(code("leaves.npy") == "path-escapes");
  CHECK(code("up/outside.npy") == "path-escapes");
  CHECK(code("up/inside/x.npy") == "ok");  // a detour that comes back
  CHECK(code("none.npy") == "file-unreadable");
  CHECK(code("x.npy\\u0000.npy") == "bad-value");
  CHECK(code("") == "bad-value");
}

TEST_CASE("a folder whose name starts with the workload's folder's name is outside of it") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory(folder / "ab");
  folder.write("ab/x.npy", npy("|i1", "(4, 6)", std::string(24, '\x05')));
  std::filesystem::create_symlink(folder / "ab/x.npy", folder / "a/x.npy");
  CHECK(parse(with_fill("{ file = \"x.npy\" }"), folder / "a").diagnostics().contains(Code::RDU1021));
}

TEST_CASE("a workload that is no file, or too large a one, is refused") {
  const TemporaryFolder folder;
  CHECK(read_workload(folder / "none.toml").diagnostics().contains(Code::RDU1001));
  CHECK(read_workload(folder.path()).diagnostics().contains(Code::RDU1001));
  std::string large = small;
  large += "# ";
  large.append(std::size_t{4} << 20, 'x');
  CHECK(read_workload(folder.write("large.toml", large)).diagnostics().contains(Code::RDU1024));
}

TEST_CASE("an empty file, and files of another kind, say what is missing") {
  CHECK(parse("").diagnostics().contains(Code::RDU1005));
  CHECK(parse("tensors = 3\nname = 4\nops = 5\nschedule = 6\n").diagnostics().error_count() == 4);
  CHECK(parse("{\"json\": true}").diagnostics().contains(Code::RDU1003));
  CHECK(parse("name = \"a\"\nops = [1]\n[tensors]\n").diagnostics().contains(Code::RDU1006));
}

}  // namespace rdusim::read_workload_test
