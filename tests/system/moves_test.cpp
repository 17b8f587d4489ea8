// Operators that move data, and those that work on parts of rows, from workload to checked values.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::moves_test {
namespace {

// Elements say where they lie: the modulus divides no extent, and its values are exact in every dtype.
std::string tensor(std::string_view name, std::string_view role, std::string_view shape, std::string_view dtype,
                   int modulus = 251) {
  return fmt::format(
      "[tensors.{}]\nrole = \"{}\"\nshape = {}\ndtype = \"{}\"\nfill = {{ pattern = {{ modulus = {}, shift = {} }} "
      "}}\n",
      name, role, shape, dtype, modulus, modulus / 2);
}

class Workload {
 public:
  explicit Workload(std::string_view dtype) : dtype_(dtype) {}

  void in(std::string_view name, std::string_view shape, std::string_view role = "input", int modulus = 251) {
    tensors_ += tensor(name, role, shape, dtype_, modulus);
  }
  // An operator whose result is an output, or not; `shape` where it does not follow.
  void op(std::string_view kind, std::string_view in, std::string_view more = "", std::string_view out = "",
          std::string_view shape = "") {
    const std::string result = out.empty() ? fmt::format("out{}", outputs_++) : std::string(out);
    tensors_ +=
        fmt::format("[tensors.{}]\n{}dtype = \"{}\"\n", result, out.empty() ? "role = \"output\"\n" : "", dtype_);
    if (!shape.empty()) tensors_ += fmt::format("shape = {}\n", shape);
    ops_ += fmt::format("[[ops]]\nkind = \"{}\"\nin = [{}]\nout = \"{}\"\n{}\n", kind, in, result, more);
  }
  std::string toml() const { return "name = \"moves\"\n" + tensors_ + ops_; }

 private:
  std::string dtype_, tensors_, ops_;
  int outputs_ = 0;
};

Json check_exact(const Folder& folder, const Workload& w, std::vector<std::string> options = {}) {
  folder.write("workload.toml", w.toml());
  options.insert(options.begin(), {"compile", "workload.toml", "-o", "prog.bin"});
  rdusim_ok(options, folder);
  Json report = run(folder, {"--check", "exact"});
  check_exact_pass(report);
  return report;
}

Workload all_moves(std::string_view dtype) {
  Workload w(dtype);
  w.in("x", "[70, 300]");
  w.in("y", "[5, 300]", "input", 241);
  w.in("z", "[70, 33]", "weight", 239);
  w.in("s", "[3, 37, 50]");
  w.in("t", "[3, 4, 50]", "input", 241);
  w.in("q", "[2, 3, 5, 36]");
  w.in("v", "[100]");
  w.op("slice", "'x'", "begin = [3, 17]\nend = [68, 291]");
  w.op("slice", "'x'", "begin = [69, 0]\nend = [70, 300]");
  w.op("slice", "'x'", "begin = [32, 64]\nend = [64, 128]");
  w.op("slice", "'v'", "begin = [7]\nend = [90]");
  w.op("slice", "'s'", "begin = [1, 2, 5]\nend = [3, 30, 47]");
  w.op("slice", "'q'", "begin = [0, 1, 4, 0]\nend = [2, 3, 5, 36]");
  w.op("concat", "'x', 'y'", "axes = [0]");
  w.op("concat", "'z', 'x', 'z'", "axes = [1]");
  w.op("concat", "'v', 'v'", "axes = [0]");
  w.op("concat", "'t', 's'", "axes = [1]");
  w.op("concat", "'s', 't', 's'", "axes = [1]");
  w.op("reshape", "'x'", "", "", "[300, 70]");
  w.op("reshape", "'x'", "", "", "[7, 10, 300]");
  w.op("reshape", "'x'", "", "", "[21000]");
  w.op("reshape", "'s'", "", "", "[111, 50]");
  w.op("reshape", "'q'", "", "", "[30, 6, 6]");
  w.op("transpose", "'x'", "axes = [1, 0]");
  w.op("transpose", "'s'", "axes = [1, 0, 2]");
  w.op("transpose", "'s'", "axes = [0, 2, 1]");
  w.op("transpose", "'s'", "axes = [2, 1, 0]");
  w.op("transpose", "'q'", "axes = [0, 2, 1, 3]");
  w.op("transpose", "'q'", "axes = [2, 0, 1, 3]");
  w.op("transpose", "'q'", "axes = [3, 1, 0, 2]");
  return w;
}

Workload rotary(std::int64_t rows, std::int64_t heads, std::int64_t width, std::string_view dtype) {
  Workload w(dtype);
  w.in("x", fmt::format("[{}, {}]", rows, heads * width));
  w.in("cos", fmt::format("[{}, {}]", rows, width / 2), "input", 13);
  w.in("sin", fmt::format("[{}, {}]", rows, width / 2), "input", 11);
  w.op("rotary", "'x', 'cos', 'sin'", fmt::format("heads = {}", heads));
  return w;
}

// A cache whose last rows are replaced one after the other; what is read is what it then is.
Workload appends(std::string_view dtype) {
  Workload w(dtype);
  w.in("cache", "[70, 48]", "state");
  w.in("one", "[1, 48]", "input", 241);
  w.in("three", "[3, 48]", "input", 239);
  w.in("stack", "[2, 40, 20]", "state");
  w.in("rows", "[2, 1, 20]", "input", 241);
  w.op("append", "'cache', 'one'", "begin = [69]", "after");
  w.op("append", "'after', 'three'", "begin = [31]", "then");
  w.op("append", "'stack', 'rows'", "begin = [39]", "stacked");
  w.op("slice", "'then'", "begin = [30, 0]\nend = [70, 48]");
  w.op("reshape", "'stacked'", "", "", "[80, 20]");
  return w;
}

// The compiled program, changed by `edit`: the certificate's checker refutes it, and a run that goes on all the same
// finds the wrong page.
template <class Edit>
void check_caught(const Workload& w, Edit edit) {
  const Folder folder;
  folder.write("workload.toml", w.toml());
  rdusim_ok({"compile", "workload.toml", "-o", "prog.bin"}, folder);
  Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  edit(program);
  folder.write("edited.json", to_text(program));
  rdusim_ok({"assemble", "edited.json", "-o", "edited.bin"}, folder);
  const Outcome checked = rdusim({"check", "edited.bin"}, folder);
  CHECK(checked.status == 1);
  CHECK(checked.out.find("reduction completeness     refuted") != std::string::npos);
  const Outcome run = rdusim({"run", "edited.bin", "--allow-refuted"}, folder);
  CHECK(run.status == 1);
  CHECK((run.out + run.err).find("RDU7029") != std::string::npos);
}

Json& stage(Json& program, std::string_view name) {
  JsonArray& stages = *at(program, "stages").as_array();
  for (Json& s : stages)
    if (text(s, "name") == name) return s;
  FAIL("there is no such stage");
  return stages.front();
}

void move_first(Json& stage, const char* kind, std::size_t axis, std::int64_t steps) {
  Json& pattern = at(stage, "kind", kind, "pattern");
  for (Json& first : *at(pattern, "first").as_array()) {
    Json& place = (*first.as_array())[axis];
    place = Json(place.as_int64().value() + steps);
  }
  Json& extent = (*at(pattern, "extent_tiles").as_array())[axis];
  extent = Json(extent.as_int64().value() + steps);
}

std::string integers(std::string_view name, std::string_view shape, std::string_view fill, std::string_view dtype) {
  return fmt::format("[tensors.{}]\nrole = \"input\"\nshape = {}\ndtype = \"{}\"\nfill = {}\n", name, shape, dtype,
                     fill);
}

// Rows of tables that are long and short, fewer and more of them than the table has; the last gather's indices are
// worked out in the run.
std::string gathers(std::string_view dtype, std::string_view indices, int step = 3) {
  Workload w(dtype);
  w.in("table", "[50, 70]", "weight");
  w.in("wide", "[9, 20000]", "weight", 241);
  w.op("gather", "'table', 'few'");
  w.op("gather", "'table', 'many'");
  w.op("gather", "'wide', 'seven'");
  w.op("gather", "'table', 'twice'");
  return w.toml() + integers("few", "[7]", "{ pattern = { modulus = 47, shift = 0 } }", indices) +
         integers("many", "[122]", "{ pattern = { modulus = 43, shift = 0 } }", indices) +
         integers("seven", "[7]", "{ values = [8, 0, 3, 3, 7, 1, 8] }", indices) +
         integers("steps", "[5]", fmt::format("{{ values = [0, 20, 1, {}, 7] }}", step), indices) +
         fmt::format("[tensors.twice]\ndtype = \"{}\"\n", indices) +
         "[[ops]]\nkind = \"add\"\nin = [\"steps\", \"steps\"]\nout = \"twice\"\n";
}

}  // namespace

TEST_CASE("slices, concats, reshapes and transposes of up to four axes leave every element in its place") {
  for (const std::string dtype : {"fp32", "bf16", "int8"}) {
    CAPTURE(dtype);
    check_exact(Folder(), all_moves(dtype));
  }
}

TEST_CASE("moves take the same cycles without values, on few sites too") {
  const Folder folder;
  Workload w("bf16");
  w.in("x", "[70, 300]");
  w.op("slice", "'x'", "begin = [3, 17]\nend = [68, 291]\nname = \"cut\"");
  folder.write("workload.toml", w.toml() + "[schedule.cut]\nsites = 2\ndepth = 3\n");
  rdusim_ok({"compile", "workload.toml", "-o", "prog.bin"}, folder);
  const Json valued = run(folder), timed = run(folder, {"--timing-only"});
  check_exact_pass(valued);
  CHECK(text(timed, "verdict") == "pass");
  CHECK(number(timed, "cycles", "simulated") == number(valued, "cycles", "simulated"));
}

TEST_CASE("a rotary turns the halves of every head, whole tiles or not") {
  for (const std::string dtype : {"fp32", "bf16"}) {
    CAPTURE(dtype);
    check_exact(Folder(), rotary(33, 3, 64, dtype));
    check_exact(Folder(), rotary(5, 4, 36, dtype));
    check_exact(Folder(), rotary(1, 32, 128, dtype));
  }
  check_exact(Folder(), rotary(300, 2, 1030, "bf16"));
}

TEST_CASE("a gather takes the rows that its indices name, also where they are worked out in the run") {
  for (const auto& [dtype, indices] : {std::pair{"fp32", "int32"}, {"bf16", "int64"}, {"int8", "int32"}}) {
    CAPTURE(dtype);
    const Folder folder;
    folder.write("workload.toml", gathers(dtype, indices));
    rdusim_ok({"compile", "workload.toml", "-o", "prog.bin"}, folder);
    const Json valued = run(folder, {"--check", "exact"}), timed = run(folder, {"--timing-only"});
    check_exact_pass(valued);
    CHECK(text(timed, "verdict") == "pass");
    CHECK(number(timed, "cycles", "simulated") == number(valued, "cycles", "simulated"));
  }
}

TEST_CASE("an index that names no row is told of a run") {
  for (const int step : {25, -1}) {
    CAPTURE(step);
    const Folder folder;
    folder.write("workload.toml", gathers("bf16", "int32", step));
    rdusim_ok({"compile", "workload.toml", "-o", "prog.bin"}, folder);
    for (const std::string check : {"exact", "none"}) {
      const Outcome run = rdusim({"run", "prog.bin", "--check", check}, folder);
      CHECK(run.status == 1);
      CHECK((run.out + run.err).find("RDU7060") != std::string::npos);
      CHECK((run.out + run.err).find("index 3 of 'twice'") != std::string::npos);
    }
  }
}

TEST_CASE("an append updates its state in place, one after the other, and in stacks") {
  for (const std::string dtype : {"fp32", "bf16", "int8"}) {
    CAPTURE(dtype);
    const Json report = check_exact(Folder(), appends(dtype));
    // Two outputs, and two states as they are then.
    CHECK(list(report, "outputs").size() == 4);
    CHECK(text(report, "outputs", 0, "checked") == "exact");
  }
}

TEST_CASE("a page that comes from, or goes, one element beside is refuted, and caught by a run") {
  Workload slice("bf16");
  slice.in("x", "[70, 300]");
  slice.op("slice", "'x'", "begin = [3, 17]\nend = [68, 291]\nname = \"cut\"");
  check_caught(slice, [](Json& p) { move_first(stage(p, "cut.load_0"), "load", 1, -1); });
  Workload append("int8");
  append.in("cache", "[70, 48]", "state");
  append.in("row", "[1, 48]", "input", 241);
  append.op("append", "'cache', 'row'", "begin = [69]\nname = \"store\"", "after");
  append.op("slice", "'after'", "begin = [0, 0]\nend = [70, 48]");
  check_caught(append, [](Json& p) { move_first(stage(p, "store.store_0"), "store", 0, -1); });
}

TEST_CASE("an angle in another's place is refuted, and caught by a run") {
  check_caught(rotary(64, 3, 64, "fp32"), [](Json& p) {
    at(stage(p, "rotary0.load_sin"), "kind", "load", "tensor") =
        at(stage(p, "rotary0.load_cos"), "kind", "load", "tensor");
  });
}

TEST_CASE("an index in another's place is refuted, and caught by a run") {
  const Folder folder;
  folder.write("workload.toml", gathers("bf16", "int32"));
  rdusim_ok({"compile", "workload.toml", "-o", "prog.bin"}, folder);
  Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  // The table of another operator.
  at(stage(program, "gather0.load_rows"), "kind", "load", "pattern", "extent_tiles", 0) = Json(std::int64_t{8});
  at(stage(program, "gather0.load_rows"), "kind", "load", "pattern", "first", 0, 0) = Json(std::int64_t{1});
  folder.write("edited.json", to_text(program));
  rdusim_ok({"assemble", "edited.json", "-o", "edited.bin"}, folder);
  // Where memory is read as far as time goes does not matter to what is read.
  CHECK(rdusim({"check", "edited.bin"}, folder).status == 0);
  at(stage(program, "gather0.load_indices"), "kind", "load", "tensor") =
      at(stage(program, "gather2.load_indices"), "kind", "load", "tensor");
  folder.write("edited.json", to_text(program));
  rdusim_ok({"assemble", "edited.json", "-o", "edited.bin"}, folder);
  const Outcome checked = rdusim({"check", "edited.bin"}, folder);
  CHECK(checked.status == 1);
  CHECK(checked.out.find("reduction completeness     refuted") != std::string::npos);
  CHECK(rdusim({"run", "edited.bin", "--allow-refuted"}, folder).status == 1);
}

TEST_CASE("a state that is read before it has been updated is refuted") {
  const Folder folder;
  folder.write("workload.toml", appends("fp32").toml());
  rdusim_ok({"compile", "workload.toml", "-o", "prog.bin"}, folder);
  Json program = parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out);
  // The slice of what the second append gives comes first, the rest in a section of its own.
  Json late = at(program, "sections", 0);
  at(late, "id") = Json(std::int64_t{1});
  at(late, "name") = Json("late");
  at(program, "sections").as_array()->push_back(late);
  for (Json& s : *at(program, "stages").as_array())
    if (!text(s, "name").starts_with("slice3.")) at(s, "section") = Json(std::int64_t{1});
  folder.write("edited.json", to_text(program));
  rdusim_ok({"assemble", "edited.json", "-o", "edited.bin"}, folder);
  const Outcome checked = rdusim({"check", "edited.bin"}, folder);
  CHECK(checked.status == 1);
  CHECK(checked.out.find("reduction completeness     refuted") != std::string::npos);
}

}  // namespace rdusim::test::moves_test
