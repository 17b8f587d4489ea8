// Any bytes as a sweep plan, and as an expression: read or refused, never a crash or a hang; a plan that reads has
// points.
//
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/sweep_plan_fuzz.cpp
//     sim/sweep/{plan,expression,change_toml}.cpp compiler/support/*.cpp -lfmt -lcrypto -o sweep_plan_fuzz
//     && ./sweep_plan_fuzz CORPUS tests/errors/plans
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sim/sweep/expression.h"
#include "sim/sweep/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto plan = rdusim::parse_plan(text, "fuzz.toml");
  if (plan.ok() ? plan->points.empty() : !plan.diagnostics().has_errors()) std::abort();
  const auto expression = rdusim::Expression::parse(text, "fuzz");
  if (expression.ok())
    (void)expression->holds(std::vector<rdusim::Cell>(expression->columns().size(), rdusim::Cell(std::int64_t{1})));
  return 0;
}
