// What takes room in a chip's memories.
#include "compiler/ir/memory_use.h"

#include <doctest/doctest.h>

namespace rdusim::memory_use_test {

namespace {

void add(SpatialProgram& p, const std::string& name, TensorRole role, std::vector<std::int64_t> shape,
         std::uint32_t chip, std::uint32_t replicas = 1) {
  Tensor t;
  t.id = TensorId(p.tensors.size());
  t.name = name;
  t.role = role;
  t.shape = std::move(shape);
  t.dtype = DType::bf16;
  t.space = MemorySpace::hbm;
  t.chip = ChipId(chip);
  t.replicas = replicas;
  p.tensors.push_back(std::move(t));
}

SpatialProgram model() {
  SpatialProgram p;
  p.header.plan.chips = 2;
  for (std::uint32_t chip = 0; chip < 2; ++chip) {
    add(p, "model.layers.0.up.weight", TensorRole::weight, {64, 32}, chip);
    add(p, "model.layers.11.up.weight", TensorRole::weight, {64, 32}, chip);
    add(p, "head.weight", TensorRole::weight, {1000, 64}, chip);
    add(p, "cache.0.key", TensorRole::state, {16, 32}, chip, 2);
    add(p, "x", TensorRole::input, {1, 64}, chip, 2);
  }
  return p;
}

}  // namespace

TEST_CASE("layers are one row, largest first, weights before state before the rest") {
  const std::vector<MemoryUse> rows = memory_use(model(), ChipId(1));
  REQUIRE(rows.size() == 4);
  CHECK(rows[0] == MemoryUse{MemorySpace::hbm, TensorRole::weight, "head.weight", 1, 1, 128000});
  CHECK(rows[1] == MemoryUse{MemorySpace::hbm, TensorRole::weight, "model.layers.*.up.weight", 2, 1, 8192});
  CHECK(rows[2] == MemoryUse{MemorySpace::hbm, TensorRole::state, "cache.*.key", 1, 2, 1024});
  CHECK(rows[3] == MemoryUse{MemorySpace::hbm, TensorRole::input, "x", 1, 2, 128});
}

TEST_CASE("chips that hold alike are one table, with bytes and shares of what the target has") {
  Target t;
  t.hbm.capacity_bytes = 274688;
  const std::string text = print_memory_use(model(), t);
  CHECK(
      text.starts_with("memory of each of chips 0, 1\n"
                       "  hbm: 137,344 B, 137.34 kB (134.12 KiB) of 274.69 kB (268.25 KiB), 50.0 %\n"
                       "    weights              136,192 B, 136.19 kB (133.00 KiB) in 3 tensors\n"));
  CHECK(text.find(" 1,024 B, 1.02 kB (1.00 KiB), on 2 chips alike") != std::string::npos);
  SpatialProgram p = model();
  p.tensors.back().shape = {2, 64};
  CHECK(print_memory_use(p, t).find("memory of chip 1\n") != std::string::npos);
}

TEST_CASE("a refusal names what takes most of a space, and how much is left out") {
  Diagnostics out;
  Diagnostic& d = out.error(Code::RDU3017, "model", "too much");
  note_memory_use(d, model(), ChipId(0), MemorySpace::hbm, 2);
  REQUIRE(d.notes.size() == 3);
  CHECK(d.notes[0].where == "head.weight");
  CHECK(d.notes[1].message == "8,192 B, 8.19 kB (8.00 KiB), weight, 2 tensors");
  CHECK(d.notes[2].message == "2 kinds of tensors that take less");
}

}  // namespace rdusim::memory_use_test
