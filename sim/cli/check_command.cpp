#include <fmt/format.h>

#include <algorithm>

#include "compiler/certificate/check.h"
#include "compiler/ir/circle_text.h"
#include "compiler/ir/print.h"
#include "compiler/ir/verify.h"
#include "compiler/support/json.h"
#include "sim/cli/commands.h"
#include "sim/cli/depths.h"
#include "sim/cli/terminal.h"
#include "sim/load.h"
#include "sim/proved.h"

namespace rdusim::cli {

namespace {

std::string table(const SpatialProgram& p, const Certificate& c) {
  std::string text =
      fmt::format("{} on {}, {} chip{}: every rule holds; its obligations, proved again:\n", p.header.name,
                  p.header.target_name, p.header.plan.chips, p.header.plan.chips == 1 ? "" : "s");
  for (const Obligation& o : c.obligations) {
    text += fmt::format("{:<26} {:<10} {}{}{}\n", name_of(o.kind), name_of(o.status),
                        o.status == ProofStatus::proved ? name_of(o.scope) : "",
                        o.status != ProofStatus::proved && !o.reason.empty() ? ": " : "", o.reason);
  }
  text += scope_line(p, c) + "\n";
  for (const CircleClaim& circle : c.circles) text += circle_text(p, circle) + "\n";
  text += fmt::format("{} buffers, {} local and {} crossing hand-offs; at least {} cycles{}\n", c.buffers.size(),
                      c.local_edges, c.crossing_edges, with_commas(c.lower_bound_cycles),
                      p.certificate ? ", " + with_commas(p.certificate->predicted_cycles) + " predicted" : "");
  return text;
}

// Depths that are too small leave a program whose depths can be worked out all the same.
bool only_depths(const Diagnostics& broken) {
  return std::all_of(broken.list().begin(), broken.list().end(), [](const Diagnostic& d) {
    return d.severity != Severity::error || d.code == Code::RDU3029 || d.code == Code::RDU3039;
  });
}

Json as_json(const SpatialProgram& p, const Certificate& c, const Diagnostics& diagnostics) {
  Json j;
  j.set("program",
        Json().set("name", p.header.name).set("chips", p.header.plan.chips).set("target", p.header.target_name));
  JsonArray obligations;
  for (const Obligation& o : c.obligations) {
    obligations.push_back(Json()
                              .set("kind", name_of(o.kind))
                              .set("status", name_of(o.status))
                              .set("scope", name_of(o.scope))
                              .set("reason", o.reason.empty() ? Json() : Json(o.reason)));
  }
  j.set("obligations", std::move(obligations));
  j.set("scope", scope_line(p, c));
  j.set("circles", circle_rows(p, c));
  j.set("lower_bound_cycles", c.lower_bound_cycles)
      .set("predicted_cycles", p.certificate ? Json(p.certificate->predicted_cycles) : Json());
  JsonArray errors;
  for (const Diagnostic& d : diagnostics.list()) {
    errors.push_back(Json()
                         .set("code", fmt::format("RDU{}", static_cast<int>(d.code)))
                         .set("where", d.where)
                         .set("message", d.message));
  }
  j.set("errors", std::move(errors));
  return j;
}

}  // namespace

ExitStatus check(const CheckRequest& request) {
  auto loaded = open_program(request.program);
  if (!loaded) return fail(loaded.diagnostics());
  const SpatialProgram& p = loaded->program;
  const Diagnostics broken = verify(p, loaded->target);
  if (broken.has_errors()) {
    const ExitStatus status = fail(broken);
    if (!request.minimum_depths || !only_depths(broken)) return status;
    const Certificate again = prove_again(p, loaded->target);
    return print_result(request.json ? to_text(Json().set("buffers", depths_json(p, loaded->target, again)))
                                     : depths_table(p, loaded->target, again),
                        status);
  }
  report(broken);
  const Certificate again = prove_again(p, loaded->target);
  const Diagnostics unproved = compare_certificate(p, again);
  report(unproved);
  const ExitStatus status = status_of(unproved);
  if (!request.json)
    return print_result(table(p, again) + (request.minimum_depths ? depths_table(p, loaded->target, again) : ""),
                        status);
  Json j = as_json(p, again, unproved);
  if (request.minimum_depths) j.set("buffers", depths_json(p, loaded->target, again));
  return print_result(to_text(j), status);
}

}  // namespace rdusim::cli
