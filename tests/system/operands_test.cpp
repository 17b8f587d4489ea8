// Operands from files: .npy (https://numpy.org/neps/nep-0001-npy-format.html) and safetensors
// (https://github.com/huggingface/safetensors), written here byte by byte, against a sum worked out here.
//
// Every element depends on its row and on its column, so that no two rows, columns or shards are equal.
#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <functional>

#include "compiler/support/file.h"
#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::operands_test {
namespace {

constexpr std::int64_t m = 33, k = 192, n = 64;

std::int64_t x_at(std::int64_t i, std::int64_t l) {
  return (i * i * 7 + l * 13 + i * l) % 23 - 11;
}
std::int64_t w_at(std::int64_t l, std::int64_t j) {
  return (l * l * 5 + j * 11 + l * j * 3) % 19 - 9;
}

struct Type {
  const char* dtype;
  const char* npy;
  const char* safetensors;
  std::size_t bytes;
  std::function<std::uint64_t(std::int64_t)> bits;
};

std::uint64_t as_integer(std::int64_t v) {
  return static_cast<std::uint64_t>(v);
}
std::uint64_t as_float(std::int64_t v) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(v));
}
std::uint64_t as_bf16(std::int64_t v) {
  return as_float(v) >> 16;  // exact: whole numbers below 2^8
}

const std::vector<Type>& types() {
  static const std::vector<Type> all = {{"int8", "|i1", "I8", 1, as_integer},
                                        {"int32", "<i4", "I32", 4, as_integer},
                                        {"int64", "<i8", "I64", 8, as_integer},
                                        {"bf16", "<u2", "BF16", 2, as_bf16},
                                        {"fp32", "<f4", "F32", 4, as_float}};
  return all;
}

std::string little_endian(std::uint64_t v, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(v >> (8 * i) & 0xff));
  return out;
}

std::string elements(const Type& t, std::int64_t rows, std::int64_t cols,
                     const std::function<std::int64_t(std::int64_t, std::int64_t)>& at) {
  std::string out;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j) out += little_endian(t.bits(at(i, j)), t.bytes);
  return out;
}

std::string npy(const std::string& descr, std::int64_t rows, std::int64_t cols, const std::string& data) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                       std::to_string(cols) + "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  return "\x93NUMPY" + std::string{1, 0} + little_endian(header.size(), 2) + header + data;
}

std::string safetensors(const Type& t, const std::string& x, const std::string& w) {
  const auto entry = [&](const char* name, std::int64_t rows, std::int64_t cols, std::size_t begin, std::size_t size) {
    return std::string("\"") + name + "\":{\"dtype\":\"" + t.safetensors + "\",\"shape\":[" + std::to_string(rows) +
           "," + std::to_string(cols) + "],\"data_offsets\":[" + std::to_string(begin) + "," +
           std::to_string(begin + size) + "]}";
  };
  std::string header = "{" + entry("mlp.w", k, n, 0, w.size()) + "," + entry("x", m, k, w.size(), x.size()) + "}";
  while (header.size() % 8 != 0) header += ' ';
  return little_endian(header.size(), 8) + header + w + x;
}

std::string workload(const Type& t, const std::string& x_fill, const std::string& w_fill) {
  const std::string dtype = std::string("\ndtype = \"") + t.dtype + "\"\n";
  return "name = \"from-files\"\n[tensors.x]\nrole = \"input\"\nshape = [33, 192]" + dtype + "fill = " + x_fill +
         "\n[tensors.w]\nrole = \"weight\"\nshape = [192, 64]" + dtype + "fill = " + w_fill +
         "\n[tensors.y]\nrole = \"output\"\n[[ops]]\nkind = \"matmul\"\nin = [\"x\", \"w\"]\nout = \"y\"\n";
}

// The result's bytes: sums below 2^24, which fp32 holds exactly.
std::string result(const Type& t) {
  const bool is_float = t.bits(1) != 1;
  std::string out;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      std::int64_t sum = 0;
      for (std::int64_t l = 0; l < k; ++l) sum += x_at(i, l) * w_at(l, j);
      out += little_endian(is_float ? as_float(sum) : as_integer(sum), t.bytes == 8 ? 8 : 4);
    }
  }
  return out;
}

TEST_CASE("operands from .npy files give the sums of their elements, sharded or not, and --save gives them back") {
  const Folder folder;
  for (const Type& t : types()) {
    folder.write("x.npy", npy(t.npy, m, k, elements(t, m, k, x_at)));
    folder.write("w.npy", npy(t.npy, k, n, elements(t, k, n, w_at)));
    folder.write("workload.toml", workload(t, "{ file = \"x.npy\" }", "{ file = \"w.npy\" }"));
    const std::string expected = result(t);
    for (const auto& [chips, shard] :
         {std::pair{"1", "row"}, std::pair{"3", "row"}, std::pair{"2", "row"}, std::pair{"2", "column"}}) {
      CAPTURE(t.dtype);
      CAPTURE(chips);
      CAPTURE(shard);
      rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--chips", chips, "--shard", shard}, folder);
      const Json report = run(folder, {"--save", "y=y.npy"});
      check_exact_pass(report);
      CHECK(text(report, "outputs", 0, "sha256") == sha256(expected));
      const std::string saved = folder.read("y.npy");
      REQUIRE(saved.size() > expected.size());
      CHECK(saved.substr(0, 6) == "\x93NUMPY");
      CHECK(saved.substr(saved.size() - expected.size()) == expected);
    }
  }
}

TEST_CASE("operands from one safetensors file give the sums of their elements, sharded or not") {
  const Folder folder;
  for (const Type& t : types()) {
    folder.write("model.safetensors", safetensors(t, elements(t, m, k, x_at), elements(t, k, n, w_at)));
    folder.write("workload.toml", workload(t, "{ file = \"model.safetensors\", tensor = \"x\" }",
                                           "{ file = \"model.safetensors\", tensor = \"mlp.w\" }"));
    const std::string expected = sha256(result(t));
    for (const auto& [chips, shard] : {std::pair{"1", "row"}, std::pair{"3", "row"}, std::pair{"2", "column"}}) {
      CAPTURE(t.dtype);
      CAPTURE(chips);
      CAPTURE(shard);
      rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--chips", chips, "--shard", shard}, folder);
      const Json report = run(folder);
      check_exact_pass(report);
      CHECK(text(report, "outputs", 0, "sha256") == expected);
    }
  }
}

TEST_CASE("an external operand is given with --set, and its absence is refused") {
  const Folder folder;
  const Type& t = types().front();
  folder.write("x.npy", npy(t.npy, m, k, elements(t, m, k, x_at)));
  folder.write("w.npy", npy(t.npy, k, n, elements(t, k, n, w_at)));
  folder.write("workload.toml", workload(t, "\"external\"", "{ file = \"w.npy\" }"));
  rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--chips", "3", "--shard", "row"}, folder);
  const Outcome without = rdusim({"run", "prog.bin"}, folder);
  CHECK(without.status == 2);
  CHECK(errors_of(without) == "RDU6002");
  const Json report = run(folder, {"--set", "x=x.npy"});
  check_exact_pass(report);
  CHECK(text(report, "outputs", 0, "sha256") == sha256(result(t)));
}

TEST_CASE("a data file that changed after compilation is refused") {
  const Folder folder;
  const Type& t = types().front();
  std::string x = elements(t, m, k, x_at);
  folder.write("x.npy", npy(t.npy, m, k, x));
  folder.write("w.npy", npy(t.npy, k, n, elements(t, k, n, w_at)));
  folder.write("workload.toml", workload(t, "{ file = \"x.npy\" }", "{ file = \"w.npy\" }"));
  rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--chips", "3", "--shard", "row"}, folder);
  x[100] = static_cast<char>(x[100] + 1);
  folder.write("x.npy", npy(t.npy, m, k, x));
  const Outcome outcome = rdusim({"run", "prog.bin", "--report", "report.json"}, folder);
  CHECK(outcome.status == 2);
  CHECK(errors_of(outcome) == "RDU1025");
  CHECK_FALSE(folder.has("report.json"));
}

// Every element equal to its shard's rank, as a collective's own test had it, hides that two shards were exchanged
// (https://github.com/microsoft/mscclpp/issues/198): with all-ones weights the sum is the same. Data that depends on
// the position shows it.
TEST_CASE("rank-valued operands hide that two shards were exchanged, and position-dependent ones show it") {
  const Folder folder;
  const Type& t = types().front();
  constexpr std::int64_t chips = 3, shard = k / chips;
  const auto rank = [](std::int64_t, std::int64_t l) { return l / shard; };
  const auto exchanged = [](std::int64_t l) { return l < 2 * shard ? (l + shard) % (2 * shard) : l; };
  const auto ones = [](std::int64_t, std::int64_t) { return std::int64_t{1}; };
  folder.write("workload.toml", workload(t, "\"external\"", "\"external\""));
  rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--chips", "3", "--shard", "row"}, folder);
  const auto sum = [&](const auto& x, const auto& w) {
    folder.write("x.npy", npy(t.npy, m, k, elements(t, m, k, x)));
    folder.write("w.npy", npy(t.npy, k, n, elements(t, k, n, w)));
    const Json report = run(folder, {"--set", "x=x.npy", "--set", "w=w.npy"});
    check_exact_pass(report);
    return text(report, "outputs", 0, "sha256");
  };
  CHECK(sum(rank, ones) == sum([&](std::int64_t i, std::int64_t l) { return rank(i, exchanged(l)); }, ones));
  CHECK(sum(x_at, w_at) != sum([&](std::int64_t i, std::int64_t l) { return x_at(i, exchanged(l)); }, w_at));
}

// The same bits for an element whatever the size of the message (https://github.com/ROCm/rocm-systems/issues/11661,
// https://github.com/NVIDIA/nccl/issues/855): sizes around the number of chips, where chunks are empty, and around
// 2^16. Element j of the result is the same sum at every size; the columns beyond are cut off.
TEST_CASE("an element has the same bits whatever the size of the reduced message, down to empty chunks") {
  const Folder folder;
  constexpr std::int64_t chips = 5, depth = 32 * chips;
  const Type& t = types().front();
  folder.write("x.npy", npy(t.npy, 1, depth, elements(t, 1, depth, x_at)));
  const auto sum_of = [](std::int64_t j) {
    std::int64_t sum = 0;
    for (std::int64_t l = 0; l < depth; ++l) sum += x_at(0, l) * w_at(l, j);
    return little_endian(static_cast<std::uint64_t>(sum), 4);
  };
  std::string expected;
  for (std::int64_t size : {1, 2, 3, 4, 5, 6, 65535, 65536, 65537}) {
    for (std::int64_t j = static_cast<std::int64_t>(expected.size() / 4); j < size; ++j) expected += sum_of(j);
    folder.write("w.npy", npy(t.npy, depth, size, elements(t, depth, size, w_at)));
    folder.write(
        "workload.toml",
        "name = \"sizes\"\n[tensors.x]\nrole = \"input\"\nshape = [1, 160]\ndtype = \"int8\"\nfill = { file = "
        "\"x.npy\" }\n[tensors.w]\nrole = \"weight\"\nshape = [160, " +
            std::to_string(size) +
            "]\ndtype = \"int8\"\nfill = { file = \"w.npy\" }\n[tensors.y]\nrole = \"output\"\n[[ops]]\nkind = "
            "\"matmul\"\nin = [\"x\", \"w\"]\nout = \"y\"\n");
    for (const std::string algorithm : {"through-one", "direct", "ring", "halving-doubling", "tree"}) {
      CAPTURE(size);
      CAPTURE(algorithm);
      rdusim_ok(
          {"compile", "workload.toml", "-o", "prog.bin", "--chips", "5", "--shard", "row", "--collective", algorithm},
          folder);
      const Json report = run(folder);
      check_exact_pass(report);
      CHECK(text(report, "outputs", 0, "sha256") == sha256(std::string_view(expected)));
      CHECK(number(report, "collectives", 0, "contributions") == chips);
    }
  }
}

// Rows of the weights: those of a period that divides no page and no shard, so that a row read for another one shows.
TEST_CASE("weights in a file take no memory of their own, whatever their size") {
  constexpr std::int64_t size = 8192, period = 133;
  const auto w = [](std::int64_t l, std::int64_t j) {
    const std::int64_t r = l % period;
    return (r * 5 + j * 11 + r % 7 * (j % 13)) % 19 - 9;
  };
  const auto row = [&](const std::function<std::int64_t(std::int64_t)>& at) {
    std::string bytes;
    for (std::int64_t j = 0; j < size; ++j) bytes.push_back(static_cast<char>(at(j)));
    return bytes;
  };
  std::vector<std::string> rows;
  for (std::int64_t r = 0; r < period; ++r) rows.push_back(row([&](std::int64_t j) { return w(r, j); }));
  std::string elements_of_w;
  for (std::int64_t l = 0; l < size; ++l) elements_of_w += rows[static_cast<std::size_t>(l % period)];
  const Folder folder;
  folder.write("w.npy", npy("|i1", size, size, elements_of_w));
  folder.write("x.npy", npy("|i1", 1, size, row([](std::int64_t l) { return l * 13 % 23 - 11; })));
  const auto compiled = [&](const std::string& fill) {
    folder.write("mm.toml", R"(name = "mm"
[tensors.x]
role = "input"
shape = [1, 8192]
dtype = "int8"
fill = { file = "x.npy" }
[tensors.w]
role = "weight"
shape = [8192, 8192]
dtype = "int8"
fill = )" + fill + R"(
[tensors.y]
role = "output"
dtype = "int32"
[[ops]]
kind = "matmul"
in = ["x", "w"]
out = "y"
[schedule.matmul0]
sites = 16
)");
    REQUIRE(rdusim({"compile", "mm.toml", "--chips", "2", "--shard", "row", "-o", "prog.bin"}, folder).status == 0);
    return rdusim({"run", "prog.bin", "--chips", "2", "--max-memory", "48MB", "--save", "y=y.npy"}, folder);
  };
  const Outcome mapped = compiled("{ file = \"w.npy\" }");
  INFO(mapped.err);
  REQUIRE(mapped.status == 0);
  const std::string y = folder.read("y.npy");
  for (const std::int64_t j : {0, 1, 4095, 8191}) {
    std::int64_t sum = 0;
    for (std::int64_t l = 0; l < size; ++l) sum += (l * 13 % 23 - 11) * w(l, j);
    std::int32_t got = 0;
    std::memcpy(&got, y.data() + y.size() - static_cast<std::size_t>((size - j) * 4), 4);
    CHECK(got == sum);
  }
  // The same weights that are made up do not fit.
  const Outcome made_up = compiled("{ pattern = { modulus = 61, shift = 30 } }");
  CHECK(made_up.status == 3);
  CHECK(made_up.err.find("nothing saved: the run was not begun") != std::string::npos);
}

}  // namespace
}  // namespace rdusim::test::operands_test
