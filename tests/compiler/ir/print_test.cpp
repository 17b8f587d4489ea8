// Golden text of print() and print_dot(). To accept a change: RDUSIM_ACCEPT_GOLDEN=1 test_compiler_ir, and read the
// diff.
#include "compiler/ir/print.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "compiler/support/file.h"
#include "tests/compiler/ir/sample_program.h"

namespace rdusim::print_test {
namespace {

void check_golden(const std::string& name, const std::string& first_line, const std::string& printed) {
  const std::string text = "# " + first_line + "\n" + printed;
  const std::string path = std::string(RDUSIM_SOURCE_DIR) + "/tests/golden/" + name + ".txt";
  if (std::getenv("RDUSIM_ACCEPT_GOLDEN") != nullptr) REQUIRE(write_file(path, text).ok());
  const auto golden = read_file(path, 1 << 22);
  REQUIRE(golden.ok());
  CHECK(text == *golden);
}

SpatialProgram four_chips() {
  sample::Shape shape;
  shape.chips = 4;
  return sample::program(shape);
}

bool says(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

TEST_CASE("golden: a program on one chip") {
  check_golden("print_one_chip", "print: the sample program on one chip", print(sample::program()));
}

TEST_CASE("golden: a program over four chips, what they have in common once") {
  check_golden("print_four_chips", "print: the sample program over four chips", print(four_chips()));
}

TEST_CASE("golden: a program as a graph") {
  check_golden("print_dot", "print_dot: the sample program on one chip", print_dot(sample::program()));
}

TEST_CASE("chips that differ in more than their number are not folded") {
  SpatialProgram p = four_chips();
  CHECK(says(print(p), "[0..9 by 3] c0..3 'down.a_c*'"));
  sample::buffer(p, "down.a_c2").depth_pages = 5;
  const std::string text = print(p);
  CHECK(says(text, "[0, 3, 9] c0, 1, 3 'down.a_c*' Fifo int8, depth 2"));
  CHECK(says(text, "[6] c2 'down.a_c2' Fifo int8, depth 5"));
}

TEST_CASE("one part is found by its name, with its own chip's number") {
  const SpatialProgram p = four_chips();
  CHECK(says(print_one(p, "down.matmul_c2"), "stage [8] on chip 2: 'down.matmul_c2' MatmulTiles"));
  CHECK(says(print_one(p, "down.landing_c3"), "buffer [14] on chip 0: 'down.landing_c3' Interm int32"));
  CHECK(says(print_one(p, "w_c1"),
             "tensor [3] on chip 1: 'w_c1' weight int8[128x64] in hbm, tiles 4x2, at (128,0) of 512x64"));
  CHECK(says(print_one(p, "down.reduce"), "reduce by through_one, members 0, 1, 2, 3"));
  CHECK(says(print_one(p, "edge 9"), "Token 'down.matmul_c1' through 'down.partial_c1' to 'down.recv_c1'"));
  CHECK(says(print_one(p, "edge 9"), "links to receiver 0: 3"));
}

TEST_CASE("a name that no part has gives nothing") {
  for (const char* name :
       {"", "nothing", "edge", "edge ", "edge 99", "edge -1", "edge 1x", "edge 99999999999999999999"})
    CHECK(print_one(four_chips(), name) == "");
}

TEST_CASE("a section of the text can be left out") {
  PrintOptions o;
  o.stages = o.memory = false;
  const std::string text = print(sample::program(), o);
  CHECK_FALSE(says(text, "\nstages\n"));
  CHECK_FALSE(says(text, "at 0x"));
  CHECK(says(text, "\nbuffers\n"));
}

TEST_CASE("depths that differ between the operands are no pin, but told") {
  SpatialProgram p = sample::program();
  sample::buffer(p, "down.a").depth_pages = 4;
  CHECK(says(print(p), "# depth = 4 for the left operand, 2 for the right"));
  CHECK_FALSE(says(print(p), "\n  depth ="));
}

TEST_CASE("an operator whose name is no bare key is quoted in its pin table") {
  SpatialProgram p = sample::program();
  p.operators->operators[0].name = "a \"b\".c";
  CHECK(says(print(p), "[schedule.\"a \\\"b\\\".c\"]"));
}

TEST_CASE("a program that does not hold together is printed all the same") {
  SpatialProgram p = four_chips();
  p.stages[0].ports[0].buffer = BufferId{99u};
  p.stages[1].group = GroupId{99u};
  p.edges[0].to = {StageId{99u}};
  p.edges[1].buffer = BufferId{99u};
  std::get<Load>(p.stages[0].kind).tensor = TensorId{99u};
  std::get<Recv>(sample::stage(p, "down.recv_c1").kind).edge = EdgeId{99u};
  p.tensors[0].offset.clear();
  p.trees[0].nodes.clear();
  p.stages[2].name = "a\nb";
  const std::string text = print(p);
  CHECK(says(text, "'a\\x0ab'"));
  CHECK(says(text, "?99"));
  CHECK_FALSE(print_dot(p).empty());
}

TEST_CASE("every obligation, hand-off and kind has a name") {
  for (std::size_t k = 0; k < obligation_kinds; ++k) CHECK(name_of(static_cast<ObligationKind>(k)) != "?");
  for (std::uint8_t h = 0; h < 6; ++h) CHECK(name_of(static_cast<Handshake>(h)) != "?");
  for (std::uint8_t k = 0; k < 6; ++k) CHECK(name_of(static_cast<CollectiveKind>(k)) != "?");
  CHECK(to_string(Site{ChipId{3u}, {4, 7}}) == "chip3.site(4,7)");
}

}  // namespace
}  // namespace rdusim::print_test
