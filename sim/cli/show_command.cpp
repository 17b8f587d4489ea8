#include "compiler/ir/memory_use.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/program/program_json.h"
#include "compiler/support/file.h"
#include "sim/cli/commands.h"
#include "sim/load.h"

namespace rdusim::cli {

ExitStatus show(const ShowRequest& request) {
  auto loaded = open_program(request.program);
  if (!loaded) return fail(loaded.diagnostics());
  const SpatialProgram& p = loaded->program;
  // JSON says what is there, right or wrong; text follows references.
  if (request.json) return print_result(to_text(to_json(p)), ExitStatus::done);
  Diagnostics dangling;
  const Diagnostics found = verify(p, loaded->target);
  for (const Diagnostic& d : found.list()) {
    if (d.code == Code::RDU3001 || d.code == Code::RDU3002) dangling.add(d);
  }
  if (dangling.has_errors()) return fail(dangling);
  if (request.dot) return print_result(print_dot(p), ExitStatus::done);
  if (request.name.empty()) return print_result(print(p) + print_memory_use(p, loaded->target), ExitStatus::done);
  const std::string text = print_one(p, request.name);
  if (!text.empty()) return print_result(text, ExitStatus::done);
  std::vector<std::string_view> names;
  for (const Stage& s : p.stages) names.push_back(s.name);
  for (const Buffer& b : p.buffers) names.push_back(b.name);
  for (const Tensor& t : p.tensors) names.push_back(t.name);
  for (const Collective& c : p.collectives) names.push_back(c.name);
  Diagnostics d;
  Diagnostic& e = d.error(Code::RDU6005, "rdusim show",
                          "the program has no stage, buffer, tensor, edge or collective '{}'", request.name);
  if (const auto near = nearest(request.name, names); !near.empty()) e.suggest("did you mean '{}'?", near);
  return fail(d);
}

}  // namespace rdusim::cli
