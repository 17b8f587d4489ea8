// Any bytes, under checksums made right so that the tables are reached: refused in one line, or a program that can be
// written and read again, as a file and as JSON.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/program/prog_bin.h"
#include "compiler/program/program_json.h"
#include "tests/compiler/program/repaired.h"

using namespace rdusim;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string raw(reinterpret_cast<const char*>(data), size);
  const auto program = decode(made::repaired(raw), "fuzz");
  if (!program.ok()) {
    require(program.diagnostics().list().size() == 1);
    return 0;
  }
  const std::string bytes = encode(*program);
  const auto again = decode(bytes, "fuzz");
  require(again.ok());
  require(encode(*again) == bytes);
  const auto json = parse_json(to_text(to_json(*program), true), "fuzz", Code::RDU5006);
  require(json.ok());
  const auto back = program_from_json(*json, "fuzz");
  require(back.ok());
  require(encode(*back) == bytes);
  return 0;
}
