// Attention, from workload to checked values: heads, masks, stacks, chips.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::attention_test {
namespace {

struct Attention {
  std::int64_t queries = 33, keys = 70, heads = 2, kv_heads = 2, width = 32;
  std::string dtype = "fp32";
  std::string stack;  // leading extents, "3, "
  std::string more;   // attributes

  std::string operand(std::string_view name, std::int64_t rows, std::int64_t columns, std::uint64_t seed) const {
    return fmt::format(
        "[tensors.{}]\nrole = \"input\"\nshape = [{}{}, {}]\ndtype = \"{}\"\nfill = {{ random = {{ seed = {}, low = "
        "-2.0, high = 2.0 }} }}\n",
        name, stack, rows, columns, dtype, seed);
  }
  std::string toml() const {
    return "name = \"attention\"\n" + operand("q", queries, heads * width, 1) +
           operand("k", keys, kv_heads * width, 2) + operand("v", keys, kv_heads * width, 3) +
           fmt::format(
               "[tensors.y]\nrole = \"output\"\ndtype = \"{}\"\n[[ops]]\nkind = \"attention\"\nin = [\"q\", "
               "\"k\", \"v\"]\nout = \"y\"\nheads = {}\nkv_heads = {}\nscale = 0.125\n{}",
               dtype, heads, kv_heads, more);
  }
};

Json ran(const Folder& folder, const Attention& a, std::vector<std::string> options = {}) {
  folder.write("workload.toml", a.toml());
  std::vector<std::string> request = {"compile", "workload.toml", "-o", "prog.bin"};
  request.insert(request.end(), options.begin(), options.end());
  rdusim_ok(request, folder);
  Json report = run(folder, {"--check", "exact"});
  check_exact_pass(report);
  return report;
}

}  // namespace

TEST_CASE("attention is exact in every float type, ragged, with heads of their own and shared keys and values") {
  const Folder folder;
  for (const std::string dtype : {"fp32", "bf16", "fp8_e4m3"}) {
    CAPTURE(dtype);
    Attention a;
    a.dtype = dtype;
    const Json report = ran(folder, a);
    CHECK(number(report, "macs", "useful") == 2 * 33 * 70 * 64);
    a.heads = 6;
    ran(folder, a);
    a.heads = 1;
    a.kv_heads = 1;
    a.width = 96;
    ran(folder, a);
  }
}

TEST_CASE("attention is exact where it is causal, has a window, or both, and where masks hide whole pages") {
  const Folder folder;
  for (const auto& [queries, keys] : {std::pair(33, 70), std::pair(100, 100), std::pair(1, 200), std::pair(40, 300)})
    for (const std::string more :
         {"causal = true", "window = 17", "causal = true\nwindow = 20", "causal = true\nwindow = 1"}) {
      if (more == "window = 17" && queries == 100) continue;
      CAPTURE(queries);
      CAPTURE(more);
      Attention a;
      a.queries = queries;
      a.keys = keys;
      a.heads = 4;
      a.dtype = "bf16";
      a.more = more;
      ran(folder, a);
    }
}

TEST_CASE("attention is exact for one query on a long context, and on stacks of sequences") {
  const Folder folder;
  Attention decode;
  decode.queries = 1;
  decode.keys = 1000;
  decode.heads = 8;
  decode.more = "causal = true";
  decode.dtype = "bf16";
  ran(folder, decode);
  Attention batch;
  batch.stack = "3, ";
  batch.heads = 4;
  batch.more = "causal = true";
  ran(folder, batch);
}

TEST_CASE("sums over values are split over slices of the keys, and follow the program's tree, masked leaves too") {
  const Folder folder;
  Attention a;
  a.queries = 40;
  a.keys = 500;
  a.dtype = "bf16";
  for (const std::string mask : {"", "causal = true\n", "causal = true\nwindow = 30\n"}) {
    CAPTURE(mask);
    a.more = mask + "[schedule.attention0]\npage_k = 2\nunroll_k = 4\n";
    ran(folder, a);
    CHECK(rdusim_ok({"show", "prog.bin"}, folder).out.find("attention0.fold") != std::string::npos);
  }
  CHECK(text(run(folder, {"--check", "bound"}), "verdict") == "pass");
}

TEST_CASE("an attention's sites can be pinned, down to one of each group that works on all blocks in turn") {
  const Folder folder;
  for (const std::string pins : {"sites = 3", "unroll_m = 1\nunroll_n = 2\npage_k = 1", "sites = 9", "page_k = 3"}) {
    CAPTURE(pins);
    Attention a;
    a.queries = 70;
    a.heads = 4;
    a.more = "causal = true\n[schedule.attention0]\n" + pins + "\n";
    ran(folder, a);
  }
}

TEST_CASE("an attention's schedule, pinned as it is shown, is the one that was chosen") {
  const Folder folder;
  Attention a;
  a.queries = 1;
  a.keys = 4096;
  a.heads = 8;
  a.width = 64;
  a.dtype = "bf16";
  const auto shown = [&] {
    folder.write("workload.toml", a.toml());
    rdusim_ok({"compile", "workload.toml", "-o", "prog.bin"}, folder);
    const std::string text = rdusim_ok({"show", "prog.bin"}, folder).out;
    const std::size_t begin = text.find("  [schedule.attention0]"), end = text.find("\ncertificate", begin);
    REQUIRE(end != std::string::npos);
    return text.substr(begin, end - begin);
  };
  const std::string chosen = shown();
  CHECK(chosen.find("unroll_k = 1\n") == std::string::npos);
  a.more = chosen.substr(0, chosen.find("\n  [0]")) + "\n";
  CHECK(shown() == chosen);
}

TEST_CASE("attention passes every check without values, and takes as many cycles") {
  const Folder folder;
  const Attention a;
  const Json valued = ran(folder, a), timed = run(folder, {"--timing-only"});
  CHECK(text(timed, "verdict") == "pass");
  CHECK(number(timed, "cycles", "simulated") == number(valued, "cycles", "simulated"));
}

TEST_CASE("attention is exact where the scores of a block do not fit a site, and are worked out three times") {
  const Folder folder;
  Attention a;
  a.queries = 40;
  a.keys = 4500;
  a.more = "causal = true";
  a.dtype = "bf16";
  ran(folder, a);
  CHECK(rdusim_ok({"show", "prog.bin"}, folder).out.find("attention0.scores2") != std::string::npos);
}

TEST_CASE("heads that are no whole tiles are refused") {
  const Folder folder;
  Attention a;
  a.width = 40;
  folder.write("workload.toml", a.toml());
  const Outcome narrow = rdusim({"compile", "workload.toml", "-o", "prog.bin"}, folder);
  CHECK(narrow.status == 2);
  CHECK(errors_of(narrow) == "RDU4145");
  CHECK(narrow.err.find("40 wide") != std::string::npos);
}

TEST_CASE("heads and masks that are not the operator's are found before anything runs") {
  const Folder folder;
  Attention a;
  a.heads = 4;
  a.dtype = "bf16";
  a.more = "causal = true";
  ran(folder, a);
  const std::string program = rdusim_ok({"show", "prog.bin", "--json"}, folder).out;
  struct Mistake {
    std::string_view stage, right, wrong, code;
  };
  for (const Mistake& m :
       {Mistake{"load_q", "\"heads\": 4", "\"heads\": 3", "RDU3003"},
        Mistake{"load_q", "\"heads\": 4", "\"heads\": 2", "RDU3024"},
        Mistake{"load_k", "\"heads\": 2", "\"heads\": 1", "RDU3024"},
        Mistake{"store", "\"heads\": 4", "\"heads\": 2", "RDU3024"},
        Mistake{"scaled", "\"mask\"", "\"maximum\"", "RDU5011"}, Mistake{"scaled", "\"row\"", "\"column\"", "RDU5011"},
        Mistake{"scaled", "37", "36", "RDU5011"}}) {
    CAPTURE(m.stage);
    CAPTURE(m.wrong);
    std::string text = program;
    const std::size_t at = text.find(m.right, text.find(fmt::format("\"name\": \"attention0.{}\"", m.stage)));
    REQUIRE(at != std::string::npos);
    folder.write("program.json", text.replace(at, m.right.size(), m.wrong));
    Outcome made = rdusim({"assemble", "program.json", "-o", "wrong.bin"}, folder);
    if (made.status == 0) made = rdusim({"check", "wrong.bin"}, folder);
    INFO(made.err);
    CHECK(made.status == 1);
    CHECK(errors_of(made).substr(0, 7) == m.code);
  }
}

TEST_CASE("a block's attention is cut by heads over chips, for one all-reduce") {
  const auto weight = [](std::string_view name, std::int64_t rows, std::int64_t columns, int seed) {
    return fmt::format(
        "[tensors.{}]\nrole = \"weight\"\nshape = [{}, {}]\ndtype = \"bf16\"\nfill = {{ random = {{ seed = {}, low = "
        "-0.25, high = 0.25 }} }}\n",
        name, rows, columns, seed);
  };
  const auto linear = [](std::string_view in, std::string_view w, std::string_view out) {
    return fmt::format("[[ops]]\nkind = \"matmul\"\nin = [\"{}\", \"{}\"]\nout = \"{}\"\ntransposed = true\n", in, w,
                       out);
  };
  const Folder folder;
  for (const auto& [kv_heads, chips] : {std::pair(4, 2), std::pair(4, 4), std::pair(2, 4), std::pair(1, 2)}) {
    CAPTURE(kv_heads);
    CAPTURE(chips);
    std::string text = "name = \"block\"\n";
    text +=
        "[tensors.x]\nrole = \"input\"\nshape = [40, 64]\ndtype = \"bf16\"\nfill = { random = { seed = 1, low = "
        "-1.0, high = 1.0 } }\n";
    text += weight("wq", 512, 64, 2) + weight("wk", kv_heads * 64, 64, 3) + weight("wv", kv_heads * 64, 64, 4) +
            weight("wo", 64, 512, 5);
    for (const std::string_view name : {"q", "k", "v", "a"})
      text += fmt::format("[tensors.{}]\ndtype = \"bf16\"\n", name);
    text += "[tensors.y]\nrole = \"output\"\ndtype = \"bf16\"\n";
    text += linear("x", "wq", "q") + linear("x", "wk", "k") + linear("x", "wv", "v");
    text += fmt::format(
        "[[ops]]\nkind = \"attention\"\nin = [\"q\", \"k\", \"v\"]\nout = \"a\"\nheads = 8\nkv_heads = {}\nscale = "
        "0.25\ncausal = true\nname = \"attend\"\n",
        kv_heads);
    text += linear("a", "wo", "y") + "[schedule.attend]\npage_k = 1\nunroll_k = 2\n";
    folder.write("workload.toml", text);
    rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--chips", std::to_string(chips), "--shard", "tensor"},
              folder);
    const Json report = run(folder);
    check_exact_pass(report);
    // Where chips are more than heads of keys, several hold each: nothing is gathered.
    CHECK(at(report, "collectives").as_array()->size() == 1);
  }
}

}  // namespace rdusim::test::attention_test
