#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "compiler/support/file.h"
#include "sim/cli/commands.h"
#include "sim/cli/terminal.h"
#include "sim/run.h"
#include "sim/trace_estimate.h"
#include "sim/understudy.h"

namespace rdusim::cli {

namespace {

JsonObject reported_options(const RunRequest& r) {
  // What affects results; not where they are written.
  Json j;
  j.set("chips", r.chips ? Json(*r.chips) : Json());
  j.set("target", r.target.empty() ? Json() : Json(r.target));
  j.set("check", name_of(r.check));
  j.set("timing_only", r.timing_only);
  j.set("network", r.flit_network ? "flit" : "fast");
  j.set("collect_violations", r.collect_violations);
  j.set("allow_refuted", r.allow_refuted);
  JsonArray faults;
  for (const std::string& f : r.faults) faults.emplace_back(f);
  j.set("inject", std::move(faults));
  j.set("jitter", r.jitter ? Json(*r.jitter) : Json());
  JsonArray set;
  for (const auto& [tensor, file] : r.set) set.emplace_back(tensor);
  j.set("set", std::move(set));
  j.set("max_cycles", r.max_cycles ? Json(*r.max_cycles) : Json());
  return *j.as_object();
}

// What --save names: a whole output, or one chip's slice of any tensor.
struct Saved {
  std::string file;
  DType dtype = DType::fp32;
  std::vector<std::int64_t> shape;
  std::optional<OperandId> operand;
  std::optional<TensorId> tensor;
};

Result<std::vector<Saved>> what_to_save(const SpatialProgram& p, const std::vector<Assignment>& save) {
  std::vector<Saved> out;
  Diagnostics d;
  for (const auto& [name, file] : save) {
    Saved s;
    s.file = file;
    if (p.operators) {
      for (const Operand& o : p.operators->operands) {
        const bool held =
            std::any_of(p.tensors.begin(), p.tensors.end(), [&](const Tensor& t) { return t.operand == o.id; });
        if (o.name == name && held) s.operand = o.id, s.dtype = o.dtype, s.shape = o.shape;
      }
    }
    if (!s.operand) {
      for (const Tensor& t : p.tensors) {
        if (t.name == name) s.tensor = t.id, s.dtype = t.dtype, s.shape = t.shape;
      }
    }
    if (!s.operand && !s.tensor) {
      std::vector<std::string_view> names;
      for (const Tensor& t : p.tensors) names.push_back(t.name);
      Diagnostic& e = d.error(Code::RDU6003, "--save " + name, "the program has no tensor '{}'", name);
      if (const auto near = nearest(name, names); !near.empty()) e.suggest("did you mean '{}'?", near);
      continue;
    }
    out.push_back(std::move(s));
  }
  if (d.has_errors()) return d;
  return out;
}

Diagnostics save_tensors(const SpatialProgram& p, const TensorImages& images, const std::vector<Saved>& list) {
  Diagnostics d;
  for (const Saved& s : list) {
    ElementBytes bytes;
    if (s.operand) {
      auto gathered = gather(p, *s.operand, images);
      if (!gathered) {
        d.error(Code::RDU5008, s.file, "the tensor's slices do not cover it, so it cannot be saved whole");
        continue;
      }
      bytes = *std::move(gathered);
    } else {
      bytes = slice_of(p.tensor(*s.tensor), images[s.tensor->value]);
    }
    const auto written = write_file(s.file, to_npy(s.dtype, s.shape, bytes));
    if (!written) d.append(written.diagnostics());
  }
  return d;
}

// What was written of a run, where it is not all of it.
void tell_traces(const Json& traces) {
  const JsonArray* rows = traces.as_array();
  for (std::size_t i = 0; rows != nullptr && i < rows->size(); ++i) {
    const Json& row = (*rows)[i];
    const auto count = [](const Json& of, const char* key) { return of.find(key)->as_uint64().value_or(0); };
    const Json& dropped = *row.find("dropped");
    const std::uint64_t filter = count(dropped, "filter"), window = count(dropped, "window"),
                        over = count(dropped, "limit"), bytes = count(row, "bytes");
    if (filter + window + over == 0) continue;
    std::string text =
        fmt::format("trace       {}: {}; left out {} events by the filter, {} by the window, {} {} by the limit",
                    *row.find("file")->as_string(), format_bytes(bytes), with_commas(filter), with_commas(window),
                    with_commas(over), entries_of(*row.find("format")->as_string()));
    write_err(text + "\n");
  }
}

bool may_wait_in_a_circle(const SpatialProgram& p) {
  if (!p.certificate) return true;
  return std::any_of(p.certificate->obligations.begin(), p.certificate->obligations.end(), [](const Obligation& o) {
    return o.kind == ObligationKind::deadlock_freedom && o.status != ProofStatus::proved;
  });
}

// Of the processes that mpirun starts all but the first say and write nothing: what is wrong, the first one says.
void follow(RunRequest& request) {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) {
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
  }
  request.report.clear();
  request.dot.clear();
  request.save.clear();
}

}  // namespace

ExitStatus run(RunRequest request, std::atomic<bool>& stop) {
  const auto mpi = place_in_mpirun();
  const bool first = !mpi || mpi->rank == 0;
  if (!first) follow(request);
  if (mpi && !mpi_module()) {
    // Each would take itself for the only one, and write over what the others write.
    Diagnostics d;
    d.error(Code::RDU6032, "mpirun", "it started {} processes, and this rdusim is built without MPI", mpi->size)
        .suggest("rdusim run --processes {} divides a run over processes of one computer", mpi->size);
    return fail(d);
  }
  auto loaded = load_program(request.program, {request.chips, request.target, request.allow_refuted});
  if (!loaded) return fail(loaded.diagnostics());
  report(loaded->warnings);
  const auto to_save = what_to_save(loaded->program, request.save);
  if (!to_save) return fail(to_save.diagnostics());

  RunOptions options;
  options.check = request.check;
  options.values = !request.timing_only;
  options.reuse = !request.no_reuse;
  options.collect_violations = request.collect_violations;
  options.faults = request.faults;
  options.jitter = request.jitter;
  options.network = request.flit_network ? NetworkLevel::flit : NetworkLevel::fast;
  options.set = request.set;
  options.mpi = mpi;
  options.processes = request.processes;
  options.max_cycles = request.max_cycles;
  options.max_seconds = request.max_seconds;
  options.max_memory = request.max_memory;
  options.reported = reported_options(request);
  options.trace = request.trace;
  options.stop = &stop;
  std::atomic<Cycle> reached{0};
  options.reached = &reached;
  std::atomic<std::uint64_t> pages{0};
  options.pages = &pages;
  options.forecast = [](const Forecast& f) {
    constexpr double is_long = 30;
    if (f.seconds().value_or(0) >= is_long) write_err(to_text(f) + "\n");
  };

  // It stands by only for a program that may wait in a circle.
  std::optional<Understudy> understudy;
  if (first && request.faults.empty() && may_wait_in_a_circle(loaded->program)) {
    understudy.emplace(*loaded, options);
    options.understudy = &*understudy;
  }

  if (!request.trace.files.empty()) {
    const EventEstimate estimate = estimate_events(loaded->program, loaded->target);
    for (const std::string& file : request.trace.files) {
      const std::string_view format = format_of(file).value_or("");
      if (format.empty()) continue;  // is refused below
      std::error_code none;
      const auto carried = format == "event-log" ? std::filesystem::file_size(request.program, none) : 0;
      const Bytes bytes = estimate_bytes(estimate, format) + (none ? 0 : carried);
      const bool part = !request.trace.filters.empty() || request.trace.from || request.trace.to;
      write_err(fmt::format("trace       {}: {}about {} events, {}{}\n", file, part ? "a part of " : "",
                            with_commas(estimate.events()), format_bytes(bytes),
                            request.trace.limit && *request.trace.limit < bytes
                                ? fmt::format(", of which it keeps {}", format_bytes(*request.trace.limit))
                                : ""));
    }
  }
  auto result = [&] {
    const Progress progress(reached, pages, expected_pages(loaded->program, !why_no_reuse(options)));
    return run_program(*loaded, options);
  }();
  if (!result) return fail(result.diagnostics());
  RunResult& r = *result;
  report(r.diagnostics);
  ExitStatus status = r.status;
  if (status == ExitStatus::interrupted) write_err("interrupted: what was learnt so far follows\n");

  tell_traces(r.report.traces);

  Diagnostics unwritten;
  if (!request.report.empty() && request.report != "-") {
    const auto written = write_file(request.report, to_text(to_json(r.report)));
    if (!written) unwritten.append(written.diagnostics());
  }
  if (!request.dot.empty() && !r.dot.empty()) {
    const auto written = write_file(request.dot, r.dot);
    if (!written) unwritten.append(written.diagnostics());
  }
  if (r.images.empty() && !to_save->empty()) {
    write_err("nothing saved: the run was not begun\n");
  } else if (!r.images_whole && !to_save->empty()) {
    write_err("nothing saved: the run was stopped, and what its processes had stored ended with them\n");
  } else if (status != ExitStatus::interrupted) {
    unwritten.append(save_tensors(loaded->program, r.images, *to_save));
  }
  if (unwritten.has_errors()) {
    report(unwritten);
    if (status == ExitStatus::done) status = ExitStatus::request_fault;
  }

  const bool json = request.json || request.report == "-";
  std::string text = summary(r.report, !json && colour_on(STDOUT_FILENO));
  if (request.explain) text += "\n" + explanation(r.report);
  if (!json) return print_result(text, status);
  if (request.report == "-") write_err(text);
  return print_result(to_text(to_json(r.report)), status);
}

}  // namespace rdusim::cli
