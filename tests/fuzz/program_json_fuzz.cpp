// Any text: refused with diagnostics of 5006 or 5007, or a program that gives the same JSON and the same file again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/program/prog_bin.h"
#include "compiler/program/program_json.h"

using namespace rdusim;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = parse_json(text, "fuzz", Code::RDU5006);
  if (!json.ok()) return 0;
  const auto program = program_from_json(*json, "fuzz");
  if (!program.ok()) {
    for (const auto& d : program.diagnostics().list()) require(d.code == Code::RDU5007);
    return 0;
  }
  const std::string bytes = encode(*program);
  const auto decoded = decode(bytes, "fuzz");
  require(decoded.ok());
  require(encode(*decoded) == bytes);
  const std::string written = to_text(to_json(*program));
  require(to_text(to_json(*decoded)) == written);
  return 0;
}
