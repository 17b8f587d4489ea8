#include "sim/cli/commands.h"
#include "sim/cli/terminal.h"

namespace rdusim::cli {

ExitStatus print_result(std::string_view text, ExitStatus status) {
  if (write_out(text)) return status;
  Diagnostics d;
  d.error(Code::RDU5008, "standard output", "it cannot be written");
  return fail(d);
}

ExitStatus fail(const Diagnostics& diagnostics) {
  report(diagnostics);
  return status_of(diagnostics);
}

ExitStatus refuse(const Diagnostics& diagnostics) {
  const ExitStatus status = fail(diagnostics);
  return status == ExitStatus::program_fault ? ExitStatus::request_fault : status;
}

}  // namespace rdusim::cli
