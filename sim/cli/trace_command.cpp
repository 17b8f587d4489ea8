#include "sim/cli/trace_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include "compiler/support/file.h"
#include "sim/cli/commands.h"
#include "sim/cli/option_values.h"
#include "sim/cli/terminal.h"
#include "sim/run.h"
#include "sim/trace_hot.h"
#include "traces/critical_path.h"
#include "traces/event_log.h"
#include "traces/inspect.h"
#include "traces/table.h"

namespace rdusim::cli {

CommandWords words(TraceRequest& r) {
  const OptionWords log{"log", "what `rdusim run --trace FILE.rdulog` wrote, or - for standard input", &r.log, true};
  constexpr const char* units = "a name, NAME#INSTANCE, chip3, chip3.site(4,7).pcu, edge7, link5 or chip3.hbm";
  const OptionWords json{"--json", "as JSON", &r.json};
  const OptionWords top{"--top", "how many of them (default 20)", &r.top};
  const OptionWords from{"--from", "first cycle", &r.from}, to{"--to", "last cycle", &r.to};
  return {
      "trace",
      "inspects a trace",
      "rdusim run prog.bin --trace run.rdulog && rdusim trace summary run.rdulog",
      {},
      {
          {"summary",
           "what is in it: the program, how the run ended, events, chips",
           "rdusim trace summary run.rdulog",
           {log, json}},
          {"stat", "events by kind, and the units with most of them", "rdusim trace stat run.rdulog", {log, top, json}},
          {"timeline",
           "every event of a unit, stage, buffer, edge, link, memory or chip",
           "rdusim trace timeline run.rdulog 'chip3.site(1,0).pcu' --from 1000 --to 2000",
           {log, {"name", units, &r.name, true}, from, to, json}},
          {"hot", "stages, links and buffers by what they waited for", "rdusim trace hot run.rdulog", {log, top, json}},
          {"critical-path",
           "the chain of events that set the total",
           "rdusim trace critical-path run.rdulog",
           {log, top, json}},
          {"page",
           "the life of one page across chips",
           "rdusim trace page run.rdulog down.partial_c5:0",
           {log, {"page", "BUFFER:PAGE or BUFFER#INSTANCE:PAGE", &r.name, true}, json}},
          {"at",
           "where everything stood at a cycle",
           "rdusim trace at run.rdulog 12000 --of chip3",
           {log, {"cycle", "the cycle", &r.cycle, true}, {"--of", units, &r.name}, json}},
          {"occupancy",
           "pages held in a buffer over time, as an SVG",
           "rdusim trace occupancy run.rdulog down.a_c0 -o a.svg",
           {log,
            {"buffer", "BUFFER or BUFFER#INSTANCE", &r.name, true},
            {"-o,--output", "the SVG, or - for standard output", &r.output, true}}},
          {"diff",
           "where two traces first differ, then stage by stage",
           "rdusim trace diff old.rdulog new.rdulog",
           {{"log", "what `rdusim run --trace FILE.rdulog` wrote", &r.log, true},
            {"other", "the other one", &r.other, true},
            json}},
          {"convert",
           "writes it in another form",
           "rdusim trace convert run.rdulog -o run.pftrace --filter chip=0..3",
           {log,
            {"-o,--output", ".pftrace, .json, .vcd, .fst or .rdulog", &r.output, true},
            {"--filter", "KEY=VALUE[,VALUE...] as of run's --trace-filter (repeatable)", &r.filters},
            from,
            to,
            {"--limit", "bytes: 100MB", &r.limit}}},
          {"replay",
           "every checker and the report again, without the machine",
           "rdusim trace replay run.rdulog -o report.json",
           {log, {"-o,--output", "writes the report (JSON)", &r.output}, json}},
      },
      &r.command};
}

namespace {

Result<LogWindow> window_of(const TraceRequest& r) {
  LogWindow w;
  for (const auto& [text, to, name] : {std::tuple{&r.from, &w.from, "--from"}, std::tuple{&r.to, &w.to, "--to"}}) {
    if (text->empty()) continue;
    const auto n = parse_count(*text);
    if (!n) return usage(fmt::format("{}: '{}' is not a cycle", name, *text));
    *to = *n;
  }
  if (w.from > w.to) return usage(fmt::format("--from {} comes after --to {}", w.from, w.to));
  return w;
}

// A log that was cut has an answer, and a note beside it.
ExitStatus answer(const TraceRequest& r, const Result<Inspected>& inspected) {
  if (!inspected) return refuse(inspected.diagnostics());
  report(inspected->notes);
  return print_result(r.json ? to_text(inspected->answer) : to_table(inspected->answer), ExitStatus::done);
}

ExitStatus timeline(const TraceRequest& r, EventLogReader& log) {
  const auto window = window_of(r);
  if (!window) return fail(window.diagnostics());
  std::string waiting;
  bool written = true;
  const auto flush = [&] {
    written = written && write_out(waiting);
    waiting.clear();
  };
  const auto end = inspect_timeline(log, r.name, *window, r.json, [&](std::string_view text) {
    waiting += text;
    if (waiting.size() > std::size_t{1} << 16) flush();
  });
  flush();
  if (!end) return refuse(end.diagnostics());
  report(end->notes);
  return print_result("", written ? ExitStatus::done : ExitStatus::request_fault);
}

ExitStatus convert(const TraceRequest& r, EventLogReader& log) {
  TraceOptions options;
  const auto window = window_of(r);
  if (!window) return fail(window.diagnostics());
  options.files = {r.output};
  options.filters = r.filters;
  options.from = window->from;
  options.to = window->to;
  if (!r.limit.empty()) {
    options.limit = parse_size(r.limit);
    if (!options.limit) return fail(usage(fmt::format("--limit: '{}' is not a size such as 100MB", r.limit)));
  }
  const auto converted = convert_log(log, options);
  if (!converted) return fail(converted.diagnostics());
  report(converted->notes);
  const TraceSize& size = converted->size;
  std::string text = fmt::format("{} events, {}", with_commas(size.events), format_bytes(size.bytes));
  if (size.dropped.total() != 0)
    text +=
        fmt::format("; left out: {} by the filter, {} by the window, {} by the limit", with_commas(size.dropped.filter),
                    with_commas(size.dropped.window), with_commas(size.dropped.limit));
  return print_result(text + "\n", ExitStatus::done);
}

ExitStatus replay(const TraceRequest& r, EventLogReader& log) {
  auto result = replay_run(log, {});
  if (!result) return refuse(result.diagnostics());
  report(result->diagnostics);
  if (result->report.values) {
    Diagnostics notes;
    notes.warning(Code::RDU8020, r.log, "outputs were compared by the run alone: a trace carries no values");
    report(notes);
  }
  const std::string json = to_text(to_json(result->report));
  if (!r.output.empty()) {
    const auto written = write_file(r.output, json);
    if (!written) return fail(written.diagnostics());
    if (r.output == "-") return result->status;
  }
  return print_result(r.json ? json : summary(result->report, colour_on(STDOUT_FILENO)), result->status);
}

ExitStatus difference(const TraceRequest& r, EventLogReader& log) {
  // Each is read twice where they differ.
  if (r.log == "-" || r.other == "-") return fail(usage("a log is read more than once: give a file, not -"));
  auto other = EventLogReader::open(r.other), again = EventLogReader::open(r.log),
       other_again = EventLogReader::open(r.other);
  for (const auto* opened : {&other, &again, &other_again})
    if (!*opened) return fail(opened->diagnostics());
  const auto inspected = inspect_difference(log, *other, *again, *other_again);
  const ExitStatus status = answer(r, inspected);
  const Json* equal = inspected ? inspected->answer.find("equal") : nullptr;
  const bool differ = equal != nullptr && equal->as_bool() != nullptr && !*equal->as_bool();
  return status == ExitStatus::done && differ ? ExitStatus::program_fault : status;
}

}  // namespace

ExitStatus trace(const TraceRequest& r) {
  auto opened = EventLogReader::open(r.log);
  if (!opened) return fail(opened.diagnostics());
  EventLogReader& log = *opened;
  const auto top = r.top.empty() ? std::optional<std::uint64_t>(20) : parse_count(r.top);
  if (!top) return fail(usage(fmt::format("--top: '{}' is not a number", r.top)));
  if (r.command == "timeline") return timeline(r, log);
  if (r.command == "convert") return convert(r, log);
  if (r.command == "replay") return replay(r, log);
  if (r.command == "diff") return difference(r, log);
  if (r.command == "stat") return answer(r, inspect_counts(log, *top));
  if (r.command == "hot") return answer(r, hottest(log, *top));
  if (r.command == "critical-path") return answer(r, critical_path(log, *top));
  if (r.command == "page") return answer(r, inspect_page(log, r.name));
  if (r.command == "at") {
    const auto cycle = parse_count(r.cycle);
    if (!cycle) return fail(usage(fmt::format("'{}' is not a cycle", r.cycle)));
    return answer(r, inspect_at(log, *cycle, r.name));
  }
  if (r.command == "occupancy") {
    const auto svg = inspect_occupancy(log, r.name);
    if (!svg) return refuse(svg.diagnostics());
    report(svg->notes);
    const auto written = write_file(r.output, svg->svg);
    return written ? ExitStatus::done : fail(written.diagnostics());
  }
  return answer(r, inspect_summary(log));
}

}  // namespace rdusim::cli
