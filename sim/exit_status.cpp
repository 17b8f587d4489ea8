#include "sim/exit_status.h"

namespace rdusim {

ExitStatus status_of(const Diagnostics& diagnostics) {
  bool request = false;
  bool program = false;
  bool limit = false;
  for (const Diagnostic& d : diagnostics.list()) {
    if (d.severity != Severity::error) continue;
    const int code = static_cast<int>(d.code);
    if (d.code == Code::RDU9001 || d.code == Code::RDU9003) return ExitStatus::internal;
    if (d.code == Code::RDU7027 || d.code == Code::RDU7028 || d.code == Code::RDU7075 || d.code == Code::RDU7076) {
      limit = true;
    } else if (code / 1000 == 3 || code / 1000 == 7 || (code >= 5010 && code <= 5012)) {
      program = true;
    } else {
      request = true;
    }
  }
  if (request) return ExitStatus::request_fault;
  if (program) return ExitStatus::program_fault;
  return limit ? ExitStatus::limit : ExitStatus::done;
}

}  // namespace rdusim
