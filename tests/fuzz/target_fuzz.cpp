// Any text as a target: refused with diagnostics of the target's section, or a machine whose routes can be worked out.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/target/describe.h"
#include "compiler/target/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rdusim;
  const auto target = read_target(std::string(reinterpret_cast<const char*>(data), size), "fuzz.toml");
  if (!target.ok()) {
    for (const Diagnostic& d : target.diagnostics().list()) {
      const int code = static_cast<int>(d.code);
      if (code != 1002 && (code < 2000 || code > 2999)) std::abort();
    }
    return 0;
  }
  if (describe(*target).empty()) std::abort();
  const ChipId last(target->chips - 1);
  if (target->chips > 1 && route(*target, ChipId(0), last).empty()) std::abort();
  return 0;
}
