#include "compiler/compile.h"
#include "compiler/ir/verify.h"
#include "compiler/program/prog_bin.h"
#include "compiler/program/program_json.h"
#include "compiler/support/file.h"
#include "sim/cli/commands.h"
#include "sim/cli/terminal.h"
#include "sim/load.h"

namespace rdusim::cli {

ExitStatus assemble(const AssembleRequest& request) {
  const std::string where = request.file == "-" ? "standard input" : request.file;
  const auto text = read_file(request.file, program_bytes_limit);
  if (!text) return fail(text.diagnostics());
  const auto json = parse_json(*text, where, Code::RDU5006);
  if (!json) return fail(json.diagnostics());
  auto program = program_from_json(*json, where);
  if (!program) return fail(program.diagnostics());
  if (sha256(std::string_view(program->header.target_text)) != program->header.target_sha256) {
    Diagnostics d;
    d.error(Code::RDU5009, where, "the machine '{}' that the program carries does not have the hash that it records",
            program->header.target_name);
    return fail(d);
  }
  const auto target = read_target(program->header.target_text, where + ": target");
  if (!target) return fail(target.diagnostics());

  // A program from elsewhere is held to the rules before a pass trusts it.
  const Diagnostics found = verify(*program, *target);
  Diagnostics broken, warnings;
  for (Diagnostic d : found.list()) {
    if (d.severity == Severity::error && !(request.allow_refuted && obligation_of(d.code))) {
      broken.add(std::move(d));
      continue;
    }
    d.severity = Severity::warning;
    warnings.add(std::move(d));
  }
  if (broken.has_errors()) return fail(broken);
  report(warnings);
  if (!program->certificate || !program->schedule || !program->memory) {
    auto completed = complete(std::move(program).value(), *target, request.allow_refuted);
    if (!completed) return fail(completed.diagnostics());
    program = std::move(completed);
  }
  const auto written = write_file(request.output, encode(*program));
  return written ? ExitStatus::done : fail(written.diagnostics());
}

}  // namespace rdusim::cli
