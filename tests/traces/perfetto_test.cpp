// Timelines: Perfetto's, decoded by protoc with Perfetto's schema, and Chrome's JSON; both held against the events.
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "compiler/support/json.h"
#include "tests/traces/traced_run.h"
#include "traces/event_log.h"
#include "traces/slices.h"

namespace rdusim::perfetto_test {
namespace {

using namespace test;

// A message as protoc prints it.
struct Node {
  std::multimap<std::string, std::string> values;
  std::vector<std::pair<std::string, Node>> parts;
  std::string value(const std::string& key) const {
    const auto it = values.find(key);
    return it == values.end() ? "" : it->second;
  }
  std::uint64_t number(const std::string& key) const {
    const std::string v = value(key);
    return v.empty() ? 0 : std::stoull(v, nullptr, 0);
  }
  const Node* part(const std::string& name) const {
    for (const auto& [n, p] : parts)
      if (n == name) return &p;
    return nullptr;
  }
};

Node parse(std::istream& in) {
  Node node;
  std::string line;
  while (std::getline(in, line)) {
    const std::size_t at = line.find_first_not_of(' ');
    if (at == std::string::npos) continue;
    if (line[at] == '}') return node;
    // A field that the schema does not have is printed by number.
    REQUIRE_FALSE(std::isdigit(static_cast<unsigned char>(line[at])));
    if (line.ends_with(" {")) {
      node.parts.emplace_back(line.substr(at, line.size() - at - 2), parse(in));
      continue;
    }
    const std::size_t colon = line.find(": ");
    REQUIRE(colon != std::string::npos);
    std::string value = line.substr(colon + 2);
    if (value.front() == '"') value = value.substr(1, value.size() - 2);
    node.values.emplace(line.substr(at, colon - at), value);
  }
  return node;
}

struct Shown {
  std::string chip, track, name;
  std::uint64_t begin = 0, end = 0;
  std::map<std::string, std::string> args;
  std::vector<std::uint64_t> out, in;
};

struct Timeline {
  std::vector<Shown> slices;
  std::map<std::string, std::vector<std::pair<std::uint64_t, std::uint64_t>>> counters;  // by name
};

Timeline read_perfetto(const Scratch& folder, const std::string& path) {
  const std::string text = folder / "text";
  REQUIRE(std::system(("protoc --proto_path=" RDUSIM_SOURCE_DIR
                       "/tests/traces --decode=perfetto.protos.Trace perfetto_subset.proto < " +
                       path + " > " + text)
                          .c_str()) == 0);
  std::istringstream in(file_bytes(text));
  const Node trace = parse(in);
  std::map<std::uint64_t, std::string> names, annotations, processes;
  struct Track {
    std::string name;
    std::uint64_t parent = 0;
    bool counter = false;
  };
  std::map<std::uint64_t, Track> tracks;
  std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, const Node*>>> events;  // by track
  for (const auto& [kind, packet] : trace.parts) {
    REQUIRE(kind == "packet");
    CHECK(packet.number("trusted_packet_sequence_id") == 1);
    if (const Node* interned = packet.part("interned_data")) {
      for (const auto& [list, entry] : interned->parts)
        (list == "event_names" ? names : annotations)[entry.number("iid")] = entry.value("name");
    }
    if (const Node* d = packet.part("track_descriptor")) {
      if (const Node* process = d->part("process"))
        processes[d->number("uuid")] = process->value("process_name");
      else
        tracks[d->number("uuid")] = {d->value("name"), d->number("parent_uuid"), d->part("counter") != nullptr};
    }
    if (const Node* e = packet.part("track_event"))
      events[e->number("track_uuid")].emplace_back(packet.number("timestamp"), e);
  }
  Timeline t;
  for (auto& [uuid, list] : events) {
    REQUIRE(tracks.count(uuid) == 1);
    const Track& track = tracks[uuid];
    if (track.name == "left out of this trace") continue;  // left_out_test.cpp
    REQUIRE(processes.count(track.parent) == 1);
    const std::string process = processes[track.parent];
    // As the viewer does: by time, and in the order of the file within one.
    std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    bool open = false;
    for (const auto& [at, e] : list) {
      const std::string type = e->value("type");
      if (track.counter) {
        CHECK(type == "TYPE_COUNTER");
        t.counters[track.name].emplace_back(at, e->number("counter_value"));
      } else if (type == "TYPE_SLICE_BEGIN") {
        REQUIRE_FALSE(open);
        open = true;
        Shown s;
        s.chip = process.substr(0, process.find(' '));
        s.track = track.name;
        REQUIRE(names.count(e->number("name_iid")) == 1);
        s.name = names[e->number("name_iid")];
        s.begin = at;
        for (const auto& [part, a] : e->parts) {
          const std::string word = a.value("string_value");
          s.args[annotations[a.number("name_iid")]] = word.empty() ? a.value("uint_value") : word;
        }
        for (const auto& [key, v] : e->values) {
          if (key == "flow_ids") s.out.push_back(std::stoull(v, nullptr, 0));
          if (key == "terminating_flow_ids") s.in.push_back(std::stoull(v, nullptr, 0));
        }
        t.slices.push_back(std::move(s));
      } else {
        REQUIRE(type == "TYPE_SLICE_END");
        REQUIRE(open);
        open = false;
        t.slices.back().end = at;
        CHECK(at > t.slices.back().begin);
      }
    }
    CHECK_FALSE(open);
  }
  return t;
}

// What must be shown, of an unfiltered log.
struct Firings final : EventSink {
  explicit Firings(const Roster& r) : roster(r) {}
  using EventSink::on;
  void on(const FiringStarted& e) override {
    seen.insert({roster.stages[e.stage.stage.value].name, e.at, e.at + e.busy, e.firing});
  }
  void on(const PageSent&) override { ++sent; }
  void on(const PageLanded&) override { ++landed; }
  const Roster& roster;
  std::set<std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t>> seen;
  std::size_t sent = 0, landed = 0;
};

// From a slice that makes a page, along arrows: names and chips of the slices on the way.
std::vector<std::string> follow(const Timeline& t, const Shown& from, const std::string& last) {
  std::map<std::uint64_t, const Shown*> sink;
  for (const Shown& s : t.slices)
    for (const std::uint64_t f : s.in) sink[f] = &s;
  std::vector<std::string> path = {from.chip + " " + from.name};
  const Shown* at = &from;
  while (at != nullptr && at->name.find(last) == std::string::npos) {
    const Shown* next = nullptr;
    for (const std::uint64_t f : at->out)
      if (sink.count(f) != 0 && (next == nullptr || sink[f]->name.find(last) != std::string::npos)) next = sink[f];
    if (next == nullptr) break;
    CHECK(next->begin >= at->begin);
    path.push_back(next->chip + " " + next->name);
    at = next;
  }
  return path;
}

TEST_CASE("Perfetto's schema decodes every slice, count and arrow of a run, nested and paired") {
  const Scratch folder;
  RunOptions options;
  options.values = false;
  traced(small_matmul(), {folder / "a.pftrace", folder / "a.rdulog"}, options);
  const Timeline t = read_perfetto(folder, folder / "a.pftrace");
  auto log = EventLogReader::open(folder / "a.rdulog");
  REQUIRE(log.ok());
  Firings firings(log->roster());
  REQUIRE(log->read(firings).ok());

  decltype(firings.seen) shown;
  std::map<std::uint64_t, int> out, in;
  std::size_t sends = 0, stalls = 0;
  for (const Shown& s : t.slices) {
    for (const std::uint64_t f : s.out) ++out[f];
    for (const std::uint64_t f : s.in) ++in[f];
    if (s.name.starts_with("send ")) {
      ++sends;
      continue;
    }
    shown.insert({s.name, s.begin, s.end, std::stoull(s.args.at("firing"))});
    CHECK(s.args.count("completed_at") == 1);
    stalls += s.args.count("waited_for");
  }
  CHECK(shown == firings.seen);
  CHECK(stalls > 10);
  CHECK(sends > 0);
  for (const auto& [id, n] : out) CHECK(n == 1);
  for (const auto& [id, n] : in) {
    CHECK(n == 1);
    CHECK(out.count(id) == 1);
  }
  std::size_t hops = 0;
  for (const auto& [id, n] : out) hops += id >> 62U == 2 ? 1 : 0;
  CHECK(hops == firings.sent);
  CHECK(firings.sent == firings.landed);
  std::size_t counts = 0;
  for (const auto& [name, values] : t.counters) {
    CHECK(std::is_sorted(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.first < b.first; }));
    if (name.ends_with(" pages")) CHECK(values.back().second == 0);
    counts += values.size();
  }
  CHECK(counts > 100);
}

TEST_CASE("a partial sum of chip 5 is followed along arrows to its fold, in the 16-chip example") {
  const Scratch folder;
  const LoadedProgram loaded = compiled("llama-3.1-8b-down-proj.toml", 16);
  RunOptions options;
  options.values = false;
  options.trace.filters = {"stage=down.matmul_c5,down.all_reduce.recv_c5_*,down.all_reduce.fold_c*",
                           "kind=firing,page"};
  traced(loaded, {folder / "a.pftrace"}, options);
  const Timeline t = read_perfetto(folder, folder / "a.pftrace");
  std::size_t followed = 0;
  for (const Shown& s : t.slices) {
    if (s.name != "down.matmul_c5" || s.out.empty()) continue;
    const auto path = follow(t, s, "fold");
    INFO(s.track << " firing " << s.args.at("firing"));
    if (path.size() < 4) continue;
    CHECK(path[0] == "chip5 down.matmul_c5");
    CHECK(path[1].find("chip5 send edge") == 0);
    CHECK(path[2].find("recv_c5_") != std::string::npos);
    CHECK(path[3].find("fold") != std::string::npos);
    ++followed;
  }
  CHECK(followed >= 64);
}

TEST_CASE("Chrome's JSON has whole numbers, nested slices and the same firings") {
  const Scratch folder;
  RunOptions options;
  options.values = false;
  traced(small_matmul(), {folder / "a.json", folder / "a.rdulog"}, options);
  const auto json = parse_json(file_bytes(folder / "a.json"), "a.json", Code::RDU8001);
  INFO(json.diagnostics().to_text());
  REQUIRE(json.ok());
  auto log = EventLogReader::open(folder / "a.rdulog");
  REQUIRE(log.ok());
  Firings firings(log->roster());
  REQUIRE(log->read(firings).ok());
  decltype(firings.seen) shown;
  std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::uint64_t>>> tracks;
  std::map<std::string, int> begun, ended;
  for (const Json& e : *json->find("traceEvents")->as_array()) {
    const std::string ph = *e.find("ph")->as_string();
    if (ph == "M") continue;
    REQUIRE(e.find("ts")->as_uint64());
    if (ph == "s") ++begun[*e.find("id")->as_string()];
    if (ph == "f") ++ended[*e.find("id")->as_string()];
    if (ph != "X") continue;
    const std::uint64_t ts = *e.find("ts")->as_uint64(), dur = *e.find("dur")->as_uint64();
    tracks[*e.find("tid")->as_uint64()].emplace_back(ts, ts + dur);
    if (*e.find("cat")->as_string() == "firing")
      shown.insert({*e.find("name")->as_string(), ts, ts + dur, *e.find("args")->find("firing")->as_uint64()});
  }
  CHECK(shown == firings.seen);
  CHECK_FALSE(ended.empty());
  for (const auto& [id, n] : ended) CHECK(begun.count(id) == 1);
  for (auto& [tid, list] : tracks) {
    std::sort(list.begin(), list.end());
    for (std::size_t i = 1; i < list.size(); ++i) CHECK(list[i].first >= list[i - 1].second);
  }
}

// Writes nothing.
struct Uncounted final : SliceSink {
  void slice(const Slice&) override { ++slices; }
  void counter(std::uint32_t, Cycle, std::uint64_t) override {}
  std::size_t slices = 0;
};

// Memory by the allocator's own count, which sanitizers replace by one that says nothing.
TEST_CASE("a timeline of one chip keeps nothing of the pages that other chips send") {
  const Scratch folder;
  RunOptions options;
  options.values = false;
  traced(small_matmul(), {folder / "a.rdulog"}, options);
  const auto opened = EventLogReader::open(folder / "a.rdulog");
  REQUIRE(opened.ok());
  TraceScope scope;
  auto selection = TraceSelection::parse({"chip=3"}, opened->roster());
  REQUIRE(selection.ok());
  scope.selection = std::move(selection).value();
  Uncounted sink;
  Slices slices(opened->roster(), scope, sink);
  const auto held_after = [&](int repeats) {
    for (int i = 0; i < repeats; ++i) {
      auto log = EventLogReader::open(folder / "a.rdulog");
      REQUIRE(log.ok());
      REQUIRE(log->read(slices).ok());
    }
    return static_cast<std::int64_t>(mallinfo2().uordblks);
  };
  // Tables and the allocator's own lists take their sizes in the first hundred; a page kept each time would be seen in the next.
  const std::int64_t before = held_after(100);
  const std::size_t told = sink.slices;
  const std::int64_t after = held_after(200);
  CHECK(sink.slices == 3 * told);
  CHECK(after - before < 2048);
}

}  // namespace
}  // namespace rdusim::perfetto_test
