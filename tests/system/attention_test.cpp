// Attention, from workload to checked values: heads, masks, stacks, chips.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::attention_test {
namespace {

struct Attention {
  std::int64_t queries = 33, keys = 70, heads = 2, kv_heads = 2, width = 32, further = 0;
  bool sinks = false;
  std::string dtype = "fp32";
  std::string stack;  // leading extents, "3, "
  std::string more;   // attributes

  std::string operand(std::string_view name, std::int64_t rows, std::int64_t columns, std::uint64_t seed) const {
    return fmt::format(
        "[tensors.{}]\nrole = \"input\"\nshape = [{}{}, {}]\ndtype = \"{}\"\nfill = {{ random = {{ seed = {}, low = "
        "-2.0, high = 2.0 }} }}\n",
        name, stack, rows, columns, dtype, seed);
  }
  std::string others() const {
    std::string text;
    if (sinks)
      text += fmt::format(
          "[tensors.s]\nrole = \"weight\"\nshape = [{}1, 1]\ndtype = \"{}\"\nfill = {{ random = {{ seed = 4, low = "
          "-1.0, high = 3.0 }} }}\n",
          heads == 1 ? "" : fmt::format("{}, ", heads), dtype);
    if (further != 0) text += operand("q2", queries, heads * further, 5) + operand("k2", keys, kv_heads * further, 6);
    return text;
  }
  std::string toml() const {
    return "name = \"attention\"\n" + operand("q", queries, heads * width, 1) +
           operand("k", keys, kv_heads * width, 2) + operand("v", keys, kv_heads * width, 3) + others() +
           fmt::format(
               "[tensors.y]\nrole = \"output\"\ndtype = \"{}\"\n[[ops]]\nkind = \"attention\"\nin = [\"q\", "
               "\"k\", \"v\"{}{}]\nout = \"y\"\nheads = {}\nkv_heads = {}\nscale = 0.125\n{}",
               dtype, sinks ? ", \"s\"" : "", further != 0 ? ", \"q2\", \"k2\"" : "", heads, kv_heads, more);
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

TEST_CASE("attention is exact with a sink for each head, with further columns of queries and keys, and with both") {
  const Folder folder;
  for (const auto& [sinks, further] : {std::pair(true, 0), std::pair(false, 64), std::pair(true, 96)})
    for (const std::string more : {"", "causal = true\nwindow = 20"}) {
      CAPTURE(sinks);
      CAPTURE(further);
      CAPTURE(more);
      Attention a;
      a.heads = 6;
      a.dtype = "bf16";
      a.sinks = sinks;
      a.further = further;
      a.more = more;
      const Json report = ran(folder, a);
      CHECK(number(report, "macs", "useful") == 33 * 70 * 6 * (32 + 32 + further));
      a.stack = "3, ";
      a.kv_heads = 1;
      ran(folder, a);
      a.stack = "";
      a.queries = 1;
      a.keys = 1000;
      a.heads = 1;
      ran(folder, a);
    }
}

TEST_CASE(
    "sinks and further columns are dealt by heads, evenly and not, and to more chips than there are heads of keys") {
  const Folder folder;
  Attention a;
  a.dtype = "bf16";
  a.sinks = true;
  a.further = 64;
  a.heads = 12;
  a.kv_heads = 6;
  a.queries = 5;
  for (const std::string chips : {"2", "3", "6", "12"}) {
    CAPTURE(chips);
    ran(folder, a, {"--chips", chips, "--shard", "tensor"});
  }
  ran(folder, a, {"--chips", "4", "--shard", "tensor", "--uneven"});
  a.kv_heads = 1;
  ran(folder, a, {"--chips", "4", "--shard", "tensor"});
}

TEST_CASE("a sink and further columns count in scores that are worked out three times") {
  const Folder folder;
  Attention a;
  a.queries = 40;
  a.keys = 4500;
  a.more = "causal = true";
  a.dtype = "bf16";
  a.sinks = true;
  a.further = 32;
  ran(folder, a);
  CHECK(rdusim_ok({"show", "prog.bin"}, folder).out.find("attention0.further_scores2") != std::string::npos);
}

TEST_CASE("sinks that are not one a head, and further columns of no whole heads, are refused by what they should be") {
  const Folder folder;
  Attention a;
  a.sinks = true;
  a.further = 64;
  const auto refused = [&](std::string_view right, std::string_view wrong, std::string_view code,
                           std::string_view said) {
    std::string workload = a.toml();
    const std::size_t at = workload.find(right);
    REQUIRE(at != std::string::npos);
    folder.write("workload.toml", workload.replace(at, right.size(), wrong));
    const Outcome out = rdusim({"compile", "workload.toml", "-o", "prog.bin"}, folder);
    CHECK(out.status == 2);
    CHECK(errors_of(out) == code);
    CHECK_MESSAGE(out.err.find(said) != std::string::npos, out.err);
  };
  refused("[2, 1, 1]", "[1, 2, 1]", "RDU1009", "a sink for each of its 2 heads");
  refused("[tensors.k2]\nrole = \"input\"\nshape = [70, 128]", "[tensors.k2]\nrole = \"input\"\nshape = [70, 64]",
          "RDU1009", "further columns of its queries and keys");
  refused("[tensors.q2]\nrole = \"input\"\nshape = [33, 128]", "[tensors.q2]\nrole = \"input\"\nshape = [33, 127]",
          "RDU1034", "on the 127 columns of 'q2'");
  a.further = 40;
  refused("\"q2\"", "\"q2\"", "RDU4145", "40 wide");
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
