#include <doctest/doctest.h>

#include "sim/fault_text.h"
#include "tests/sim/small_program.h"

namespace rdusim::fault_text_test {
namespace {

using namespace test;

TEST_CASE("a fault names its kind, place, instance and count") {
  const SpatialProgram p = small_program();
  auto f = parse_fault("page_drop@x_c0.pages:3", p);
  REQUIRE(f);
  CHECK(f->kind == FaultKind::page_drop);
  CHECK(f->buffer == BufferAt{BufferId{x0}, 0});
  CHECK(f->nth == 3);
  f = parse_fault("credit-drop@edge 5", p);
  REQUIRE(f);
  CHECK(f->kind == FaultKind::credit_drop);
  CHECK(f->edge == EdgeId{crossing_edge});
  CHECK(f->nth == 0);
  f = parse_fault("page_swap@edge5#0:1", p);
  REQUIRE(f);
  CHECK(f->edge == EdgeId{crossing_edge});
  f = parse_fault("partial_double@matmul_c0", p);
  REQUIRE(f);
  CHECK(f->stage == StageAt{StageId{matmul0}, 0});
  SpatialProgram linked = p;
  linked.links = {LinkId{0u}};
  f = parse_fault("link-down@link 0:7", linked);
  REQUIRE(f);
  CHECK(f->link == LinkId{0u});
  CHECK(f->nth == 7);
  CHECK(to_text(*f, linked) == "link_down@link0:7");
  f = parse_fault("arrive_early@edge5:1", small_program(Handshake::barrier));
  REQUIRE(f);
  CHECK(f->edge == EdgeId{crossing_edge});
  f = parse_fault("partial_double@fold_c0", p);
  REQUIRE(f);
  CHECK(f->stage == StageAt{StageId{fold}, 0});
}

TEST_CASE("what breaks flits is a fault of an edge") {
  const auto f = parse_fault("flit-interleave@edge5:2", small_program());
  REQUIRE(f);
  CHECK(f->kind == FaultKind::flit_interleave);
  CHECK(needs_flits(f->kind));
  CHECK(f->edge == EdgeId{crossing_edge});
  CHECK(f->nth == 2);
  CHECK_FALSE(parse_fault("flit_misroute@link0", small_program()));
}

TEST_CASE("a fault that the program does not have is refused with what it has") {
  const SpatialProgram p = small_program();
  for (const char* text : {"page_drop",
                           "page_lost@x_c0.pages",
                           "page_drop@nowhere",
                           "page_drop@x_c0.pages#1",
                           "credit_drop@edge 0",
                           "credit_drop@edge 99",
                           "ready_drop@edge5",
                           "partial_double@load_x_c0",
                           "mask_wrong@store_y",
                           "address_page@fold_c0",
                           "start_early@recv_c0",
                           "reserve_skip@landing_c0",
                           "link_down@link9",
                           "link_down@edge5",
                           "arrive_drop@edge5",
                           "credit_drop@x_c0.pages",
                           "page_drop@edge 0",
                           "",
                           "@",
                           "page_drop@"}) {
    CAPTURE(text);
    const auto f = parse_fault(text, p);
    REQUIRE_FALSE(f);
    CHECK(f.diagnostics().contains(Code::RDU6007));
  }
  CHECK(parse_fault("page_lost@x", p).diagnostics().to_text().find("page_duplicate") != std::string::npos);
}

}  // namespace
}  // namespace rdusim::fault_text_test
