// What the system tests have in common: workloads as text, a compile and a run in one call, targets with one number
// changed, and a reference of the tests' own for what a pattern's matmul must give.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/json.h"
#include "tests/system/command.h"

namespace rdusim::test {

std::string source(std::string_view path);       // a path in the source tree
std::string source_text(std::string_view path);  // what is there
std::string barrier_target();                    // the test machine whose only crossing hand-off is the barrier

struct Pattern {
  std::int64_t modulus = 1;
  std::int64_t shift = 0;
  std::int64_t at(std::int64_t p) const { return p % modulus - shift; }
};

// y(m x n) = x(m x k) w(k x n), position-dependent operands: no modulus divides an extent.
struct Matmul {
  std::int64_t m = 32, k = 512, n = 32;
  std::string dtype = "int8";
  Pattern x = {61, 30};
  Pattern w = {89, 44};
  std::string schedule;  // keys of [schedule.matmul0], if any
  bool scattered = false;
  std::string alone;  // which chip carries it out alone, "1, 2" for the second half's first; empty: all do

  std::string toml() const;
  // SHA-256 of the result's little-endian bytes, from the definition: int32 wraps, and so does int64; floats where
  // every product and sum is exact in fp32.
  std::string sha256() const;
};

// `m` x `k` x `n` in `dtype`, with patterns that suit it: int32 and int64 wrap around, floats stay exact.
Matmul matmul(std::int64_t m, std::int64_t k, std::int64_t n, const std::string& dtype = "int8");

// `workload` as a file, compiled to `program` with the options; fails the test unless that works.
Outcome compile(const Folder& folder, const Matmul& workload, std::vector<std::string> options,
                const std::string& program = "prog.bin");

// `workload` as a file, which compile refuses for just that reason: status 2, the code, and no file left.
Outcome refused(const Folder& folder, const Matmul& workload, std::vector<std::string> options,
                const std::string& code);

// Runs `program` with --report and the options, expects status 0, and gives the report.
Json run(const Folder& folder, std::vector<std::string> options = {}, const std::string& program = "prog.bin");

// compile() and run().
Json compile_and_run(const Folder& folder, const Matmul& workload, std::vector<std::string> options,
                     std::vector<std::string> run_options = {});

// compile_and_run() that passes, whose output has the bits of the definition.
Json run_exactly(const Folder& folder, const Matmul& workload, std::vector<std::string> options);

// Without `host`, which alone may differ between two runs; as text.
std::string without_host(Json report);

// verdict pass, no check failed, and every output checked to the bit.
void check_exact_pass(const Json& report);

// What `rdusim faults prog.bin` finds, of every fault and kind.
Json matrix_of(const Folder& folder, std::vector<std::string> options);
// None of its faults is missed, or caught by a check that is not meant for it.
void check_none_missed(const Json& matrix);

// `toml` with the value of `key` (within `table`, a line "[table]" or "[[table]]") replaced.
std::string with_value(std::string toml, std::string_view table, std::string_view key, std::string_view value);

}  // namespace rdusim::test
