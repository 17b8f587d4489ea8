#include "sim/trace_outcome.h"

#include <algorithm>
#include <array>

#include "compiler/support/json.h"
#include "sim/instances.h"

namespace rdusim {

namespace {

using End = MachineOutcome::End;
constexpr std::array<std::string_view, 4> end_names = {"finished", "quiescent", "stopped", "max-cycles"};
constexpr std::array<std::string_view, 8> wait_names = {"page",  "room",    "credit", "ready",
                                                        "valid", "barrier", "firing", "written"};

template <std::size_t N>
std::optional<std::size_t> find(const std::array<std::string_view, N>& names, const Json* j) {
  if (j == nullptr || j->as_string() == nullptr) return std::nullopt;
  const auto it = std::find(names.begin(), names.end(), *j->as_string());
  if (it == names.end()) return std::nullopt;
  return static_cast<std::size_t>(it - names.begin());
}

std::optional<std::uint64_t> number(const Json& j, std::string_view key) {
  const Json* v = j.find(key);
  return v == nullptr ? std::nullopt : v->as_uint64();
}

std::optional<bool> flag(const Json& j, std::string_view key) {
  const Json* v = j.find(key);
  if (v == nullptr || v->as_bool() == nullptr) return std::nullopt;
  return *v->as_bool();
}

// Numbers of an array, each below its limit.
template <std::size_t N>
std::optional<std::array<std::uint32_t, N>> ids(const Json* j) {
  const JsonArray* a = j == nullptr ? nullptr : j->as_array();
  if (a == nullptr || a->size() != N) return std::nullopt;
  std::array<std::uint32_t, N> out{};
  for (std::size_t i = 0; i < N; ++i) {
    const auto n = (*a)[i].as_uint64();
    if (!n || *n >> 32U != 0) return std::nullopt;
    out[i] = static_cast<std::uint32_t>(*n);
  }
  return out;
}

Json waiting_to_json(const Waiting& w) {
  Json j;
  j.set("for", wait_names[static_cast<std::size_t>(w.what)]);
  if (w.stage) j.set("stage", JsonArray{Json(w.stage->stage.value), Json(w.stage->instance)});
  if (w.channel)
    j.set("channel", JsonArray{Json(w.channel->edge.value), Json(w.channel->from), Json(w.channel->to),
                               Json(w.channel->receiver)});
  if (w.buffer) j.set("buffer", JsonArray{Json(w.buffer->buffer.value), Json(w.buffer->instance)});
  return j.set("have", w.have).set("want", w.want).set("firing", w.firing).set("since", w.since);
}

std::optional<Waiting> waiting_from_json(const Json& j, const Instances& instances) {
  const SpatialProgram& p = instances.program();
  Waiting w;
  const auto what = find(wait_names, j.find("for"));
  if (!what) return std::nullopt;
  w.what = static_cast<Waiting::For>(*what);
  if (j.find("stage") != nullptr) {
    const auto s = ids<2>(j.find("stage"));
    if (!s || (*s)[0] >= p.stages.size() || (*s)[1] >= instances.instances(StageId{(*s)[0]})) return std::nullopt;
    w.stage = StageAt{StageId{(*s)[0]}, (*s)[1]};
  }
  if (j.find("channel") != nullptr) {
    const auto c = ids<4>(j.find("channel"));
    if (!c || (*c)[0] >= p.edges.size()) return std::nullopt;
    const Edge& e = p.edges[(*c)[0]];
    const ChannelAt at{e.id, (*c)[1], (*c)[2], (*c)[3]};
    if (is_local(e.handshake) || at.from >= instances.instances(e.from) || at.to >= e.to.size()) return std::nullopt;
    const auto targets = instances.receivers_of(e.id, at.from);
    if (!std::binary_search(targets.begin(), targets.end(), at.receiver)) return std::nullopt;
    w.channel = at;
  }
  if (j.find("buffer") != nullptr) {
    const auto b = ids<2>(j.find("buffer"));
    if (!b || (*b)[0] >= p.buffers.size() || (*b)[1] >= instances.instances(BufferId{(*b)[0]})) return std::nullopt;
    w.buffer = BufferAt{BufferId{(*b)[0]}, (*b)[1]};
  }
  if (!w.stage && !w.channel) return std::nullopt;
  const auto have = number(j, "have"), want = number(j, "want"), firing = number(j, "firing"),
             since = number(j, "since");
  if (!have || !want || !firing || !since) return std::nullopt;
  w.have = *have;
  w.want = *want;
  w.firing = *firing;
  w.since = *since;
  return w;
}

}  // namespace

std::string_view name_of(End end) {
  return end_names[static_cast<std::size_t>(end)];
}

std::string run_to_text(const RunOptions& o, const std::string& program_sha256) {
  JsonArray faults;
  for (const std::string& f : o.faults) faults.emplace_back(f);
  Json j;
  j.set("program_sha256", program_sha256)
      .set("faults", std::move(faults))
      .set("options", Json(o.reported))
      .set("values", o.values)
      .set("collect_violations", o.collect_violations)
      .set("max_cycles", o.max_cycles ? Json(*o.max_cycles) : Json())
      .set("max_seconds", o.max_seconds ? Json(*o.max_seconds) : Json())
      .set("max_memory", o.max_memory ? Json(*o.max_memory) : Json());
  return to_text(j, true);
}

std::optional<TracedRun> run_from_text(std::string_view text) {
  const auto j = parse_json(text, "event log", Code::RDU8013);
  if (!j) return std::nullopt;
  TracedRun r;
  const Json* sha = j->find("program_sha256");
  const Json* options = j->find("options");
  const auto values = flag(*j, "values"), collect = flag(*j, "collect_violations");
  if (sha == nullptr || sha->as_string() == nullptr || options == nullptr || !values || !collect) return std::nullopt;
  r.program_sha256 = *sha->as_string();
  if (options->as_object() != nullptr) r.options.reported = *options->as_object();
  const Json* faults = j->find("faults");
  if (faults == nullptr || faults->as_array() == nullptr) return std::nullopt;
  for (const Json& f : *faults->as_array()) {
    if (f.as_string() == nullptr) return std::nullopt;
    r.options.faults.push_back(*f.as_string());
  }
  r.options.values = *values;
  r.options.collect_violations = *collect;
  r.options.max_cycles = number(*j, "max_cycles");
  if (const Json* seconds = j->find("max_seconds")) r.options.max_seconds = seconds->as_number();
  r.options.max_memory = number(*j, "max_memory");
  return r;
}

std::string outcome_to_text(const RunEnd& end) {
  Json j;
  const MachineOutcome& o = end.outcome;
  j.set("end", name_of(o.end)).set("cycles", o.cycles).set("limit", name_of(end.limit));
  j.set("activations", o.activations);
  JsonArray waiting;
  for (const Waiting& w : o.waiting) waiting.push_back(waiting_to_json(w));
  j.set("waiting", std::move(waiting));
  JsonArray struck;
  for (const std::uint64_t n : o.struck) struck.emplace_back(n);
  j.set("struck", std::move(struck));
  return to_text(j, true);
}

std::optional<RunEnd> outcome_from_text(std::string_view text, const SpatialProgram& program) {
  const auto j = parse_json(text, "event log", Code::RDU8013);
  if (!j) return std::nullopt;
  RunEnd end;
  const auto how = find(end_names, j->find("end"));
  const auto cycles = number(*j, "cycles"), activations = number(*j, "activations");
  // Logs of before there was more than one limit say whether it was that of time.
  const Json* by = j->find("limit");
  const auto limit = by == nullptr || by->as_string() == nullptr
                         ? (flag(*j, "out_of_time").value_or(false) ? Limit::seconds : Limit::none)
                         : limit_of(*by->as_string());
  const Json* waiting = j->find("waiting");
  const Json* struck = j->find("struck");
  if (!how || !cycles || !activations || !limit || waiting == nullptr || waiting->as_array() == nullptr ||
      struck == nullptr || struck->as_array() == nullptr)
    return std::nullopt;
  for (const Json& n : *struck->as_array()) end.outcome.struck.push_back(n.as_uint64().value_or(0));
  end.outcome.end = static_cast<End>(*how);
  end.outcome.cycles = *cycles;
  end.outcome.activations = *activations;
  end.limit = *limit;
  const Instances instances(program);
  for (const Json& w : *waiting->as_array()) {
    auto one = waiting_from_json(w, instances);
    if (!one) return std::nullopt;
    end.outcome.waiting.push_back(std::move(*one));
  }
  if (end.outcome.end == End::quiescent && end.outcome.waiting.empty()) return std::nullopt;
  return end;
}

Result<TracedProgram> traced_program(EventLogReader& log) {
  auto carried = log.program();
  if (!carried) return carried.diagnostics();
  auto loaded = carried_program(*carried, log.name());
  if (!loaded) return loaded.diagnostics();
  auto run = run_from_text(log.head().run);
  Roster roster = roster_of(loaded->program, loaded->target, log.roster().program_sha256);
  if (!run || !roster.same_as(log.roster())) {
    Diagnostics d;
    d.error(Code::RDU8015, log.name(), "its program is not the one that it lists the units of");
    return d;
  }
  loaded->sha256 = run->program_sha256;
  return TracedProgram{std::move(loaded).value(), *std::move(run)};
}

Diagnostics refuse_partial(const EventLogReader& log, const LogEnd& end) {
  Diagnostics d;
  if (end.dropped.total() != 0)
    d.error(Code::RDU8015, log.name(), "{} events were left out of it", with_commas(end.dropped.total()));
  return d;
}

}  // namespace rdusim
