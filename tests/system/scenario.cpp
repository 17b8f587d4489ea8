#include "tests/system/scenario.h"

#include <doctest/doctest.h>

#include <bit>
#include <fstream>
#include <iterator>

#include "compiler/support/file.h"
#include "tests/system/json_path.h"

namespace rdusim::test {

std::string source(std::string_view path) {
  return std::string(RDUSIM_SOURCE_DIR) + "/" + std::string(path);
}

std::string source_text(std::string_view path) {
  std::ifstream in(source(path), std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string barrier_target() {
  return source("tests/support/barrier.toml");
}

std::string Matmul::toml() const {
  const auto operand = [&](const char* name, const char* role, std::int64_t rows, std::int64_t cols, Pattern p) {
    return std::string("[tensors.") + name + "]\nrole = \"" + role + "\"\nshape = [" + std::to_string(rows) + ", " +
           std::to_string(cols) + "]\ndtype = \"" + dtype +
           "\"\nfill = { pattern = { modulus = " + std::to_string(p.modulus) + ", shift = " + std::to_string(p.shift) +
           " } }\n";
  };
  std::string out = "name = \"matmul\"\n" + operand("x", "input", m, k, x) + operand("w", "weight", k, n, w) +
                    "[tensors.y]\nrole = \"output\"\n[[ops]]\nkind = \"matmul\"\nin = [\"x\", \"w\"]\nout = \"y\"\n";
  if (scattered) out += "scattered = true\n";
  if (!alone.empty()) out += "alone = [" + alone + "]\n";
  if (!schedule.empty()) out += "[schedule.matmul0]\n" + schedule + "\n";
  return out;
}

std::string Matmul::sha256() const {
  std::vector<std::uint64_t> row(static_cast<std::size_t>(n));  // wraps
  std::string bytes;
  const std::size_t width = dtype == "int64" ? 8 : 4;
  bytes.reserve(static_cast<std::size_t>(m * n) * width);
  for (std::int64_t i = 0; i < m; ++i) {
    std::fill(row.begin(), row.end(), 0);
    for (std::int64_t l = 0; l < k; ++l) {
      const std::uint64_t a = static_cast<std::uint64_t>(x.at(i * k + l));
      std::int64_t b = (l * n) % w.modulus;  // stepped, not divided: the loop is long
      for (std::uint64_t& sum : row) {
        sum += a * static_cast<std::uint64_t>(b - w.shift);
        if (++b == w.modulus) b = 0;
      }
    }
    for (std::uint64_t v : row) {
      if (dtype == "bf16" || dtype == "fp32" || dtype.rfind("fp8", 0) == 0) {
        const auto sum = static_cast<std::int64_t>(v);
        REQUIRE(std::abs(sum) < (std::int64_t{1} << 24));
        v = std::bit_cast<std::uint32_t>(static_cast<float>(sum));
      }
      for (std::size_t byte = 0; byte < width; ++byte) bytes.push_back(static_cast<char>(v >> (8 * byte) & 0xff));
    }
  }
  return rdusim::sha256(bytes);
}

Matmul matmul(std::int64_t m, std::int64_t k, std::int64_t n, const std::string& dtype) {
  Matmul made;
  made.m = m;
  made.k = k;
  made.n = n;
  made.dtype = dtype;
  if (dtype == "int32") {
    made.x = {999'983, 500'000};
    made.w = {1'000'003, 400'000};
  } else if (dtype == "int64") {
    made.x = {(std::int64_t{1} << 61) - 1, std::int64_t{1} << 59};  // the product of two shifts wraps
    made.w = {1'000'000'007, 900'000'000};
  } else if (dtype == "fp8_e4m3") {  // whole numbers to 16 are exact in its four significant bits
    made.x = {31, 15};
    made.w = {29, 14};
  }
  return made;
}

Outcome compile(const Folder& folder, const Matmul& workload, std::vector<std::string> options,
                const std::string& program) {
  folder.write("workload.toml", workload.toml());
  options.insert(options.begin(), {"compile", "workload.toml", "-o", program});
  return rdusim_ok(options, folder);
}

Outcome refused(const Folder& folder, const Matmul& workload, std::vector<std::string> options,
                const std::string& code) {
  folder.write("workload.toml", workload.toml());
  options.insert(options.begin(), {"compile", "workload.toml", "-o", "refused.bin"});
  const Outcome outcome = rdusim(options, folder);
  INFO(outcome.err);
  CHECK(outcome.status == 2);
  CHECK(errors_of(outcome) == code);
  CHECK(outcome.out.empty());
  CHECK_FALSE(folder.has("refused.bin"));
  return outcome;
}

Json run(const Folder& folder, std::vector<std::string> options, const std::string& program) {
  options.insert(options.begin(), {"run", program, "--report", "report.json"});
  rdusim_ok(options, folder);
  return parsed(folder.read("report.json"));
}

Json compile_and_run(const Folder& folder, const Matmul& workload, std::vector<std::string> options,
                     std::vector<std::string> run_options) {
  compile(folder, workload, std::move(options));
  return run(folder, std::move(run_options));
}

Json run_exactly(const Folder& folder, const Matmul& workload, std::vector<std::string> options) {
  Json report = compile_and_run(folder, workload, std::move(options));
  check_exact_pass(report);
  CHECK(text(report, "outputs", 0, "sha256") == workload.sha256());
  return report;
}

std::string without_host(Json report) {
  remove(report, "host");
  return to_text(report);
}

void check_exact_pass(const Json& report) {
  CHECK(text(report, "verdict") == "pass");
  for (const Json& c : list(report, "checks")) {
    CAPTURE(text(c, "code"));
    CHECK(text(c, "status") != "fail");
  }
  REQUIRE_FALSE(list(report, "outputs").empty());
  for (const Json& output : list(report, "outputs")) CHECK(text(output, "checked") == "exact");
}

Json matrix_of(const Folder& folder, std::vector<std::string> options) {
  options.insert(options.begin(), {"faults", "prog.bin", "--json"});
  return parsed(rdusim_ok(options, folder).out);
}

void check_none_missed(const Json& matrix) {
  for (const Json& f : list(matrix, "faults")) {
    INFO(text(f, "inject"));
    CHECK(text(f, "fate") != "missed");
    CHECK(text(f, "fate") != "elsewhere");
  }
}

std::string with_value(std::string toml, std::string_view table, std::string_view key, std::string_view value) {
  std::size_t at = 0;
  if (!table.empty()) {
    at = toml.find("\n" + std::string(table) + "\n");
    REQUIRE(at != std::string::npos);
    ++at;
  }
  const std::size_t end = table.empty() ? toml.size() : std::min(toml.find("\n[", at), toml.size());
  std::size_t line = toml.find("\n" + std::string(key) + " ", at);
  CAPTURE(std::string(key));
  REQUIRE(line < end);
  line = toml.find('=', line) + 1;
  const std::size_t number = toml.find_first_not_of(' ', line);
  if (toml.compare(number, 1, "{") == 0) {
    const std::size_t begin = toml.find("value = ", number) + 8;
    return toml.replace(begin, toml.find(',', begin) - begin, value);
  }
  return toml.replace(number, toml.find_first_of("\n#", number) - number, value);
}

}  // namespace rdusim::test
