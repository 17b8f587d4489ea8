#include "traces/perfetto.h"

#include <fmt/format.h>

#include <algorithm>

namespace rdusim {

namespace {

constexpr std::uint64_t sequence = 1;

// Field numbers of the published schema.
namespace trace {
constexpr std::uint32_t packet = 1;
}
namespace trace_packet {
constexpr std::uint32_t timestamp = 8, sequence_id = 10, track_event = 11, interned_data = 12, sequence_flags = 13,
                        track_descriptor = 60;
constexpr std::uint64_t incremental_state_cleared = 1, needs_incremental_state = 2;
}  // namespace trace_packet
namespace track_descriptor {
constexpr std::uint32_t uuid = 1, name = 2, process = 3, parent_uuid = 5, counter = 8;
}
namespace process_descriptor {
constexpr std::uint32_t pid = 1, process_name = 6;
}
namespace counter_descriptor {
constexpr std::uint32_t unit_name = 6;
}
namespace track_event {
constexpr std::uint32_t debug_annotations = 4, type = 9, name_iid = 10, track_uuid = 11, counter_value = 30,
                        flow_ids = 47, terminating_flow_ids = 48;
constexpr std::uint64_t slice_begin = 1, slice_end = 2, instant = 3, counter = 4;
}  // namespace track_event
namespace debug_annotation {
constexpr std::uint32_t name_iid = 1, uint_value = 3, string_value = 6;
}
namespace interned_data {
constexpr std::uint32_t event_names = 2, debug_annotation_names = 3;
constexpr std::uint32_t iid = 1, name = 2;  // of each
}  // namespace interned_data

enum class Annotation : std::uint64_t {
  firing = 1,
  page,
  stall,
  cause,
  completed,
  by_filter,
  by_window,
  by_limit,
  end
};
constexpr const char* annotation_names[] = {"firing",    "page",      "stall_cycles", "waited_for", "completed_at",
                                            "by_filter", "by_window", "by_limit",     "end"};

}  // namespace

PerfettoWriter::PerfettoWriter(FileWriter file, const Roster& roster, TraceScope scope)
    : file_(std::move(file)), roster_(roster), scope_(std::move(scope)), slices_(roster, scope_, *this) {}

Result<std::unique_ptr<PerfettoWriter>> PerfettoWriter::create(const std::string& path, const Roster& roster,
                                                               TraceScope scope, const std::string& rdusim) {
  auto file = FileWriter::create(path);
  if (!file) return file.diagnostics();
  std::unique_ptr<PerfettoWriter> w(new PerfettoWriter(std::move(file).value(), roster, std::move(scope)));
  w->describe(rdusim);
  w->head_ = w->file_.size() + w->bytes_.size() + left_out_bytes;
  return w;
}

void PerfettoWriter::packet(Message& p) {
  p.number(trace_packet::sequence_id, sequence);
  put_varint(bytes_, std::uint64_t{trace::packet} << 3U | 2U);
  put_text(bytes_, p.bytes());
  if (bytes_.size() < flush_bytes) return;
  file_.write(bytes_);
  bytes_.clear();
}

void PerfettoWriter::describe(const std::string& rdusim) {
  Message names;
  const auto intern = [&](std::uint32_t list, std::uint64_t iid, std::string_view text) {
    part_.clear();
    part_.number(interned_data::iid, iid);
    part_.text(interned_data::name, text);
    names.message(list, part_);
  };
  for (std::size_t i = 0; i < slices_.names().size(); ++i)
    intern(interned_data::event_names, i + 1, slices_.names()[i]);
  intern(interned_data::event_names, slices_.names().size() + 1, "left out");
  for (std::size_t i = 0; i < std::size(annotation_names); ++i)
    intern(interned_data::debug_annotation_names, i + 1, annotation_names[i]);
  packet_.clear();
  packet_.number(trace_packet::timestamp, 0);
  packet_.message(trace_packet::interned_data, names);
  packet_.number(trace_packet::sequence_flags,
                 trace_packet::incremental_state_cleared | trace_packet::needs_incremental_state);
  packet(packet_);

  std::vector<bool> used(roster_.chips);
  for (const Track& t : slices_.tracks()) used[t.chip] = true;
  for (const Track& t : slices_.counters()) used[t.chip] = true;
  const auto descriptor = [&](std::uint64_t uuid, const auto& fill) {
    part_.clear();
    part_.number(track_descriptor::uuid, uuid);
    fill();
    packet_.clear();
    packet_.message(trace_packet::track_descriptor, part_);
    packet(packet_);
  };
  for (std::uint32_t chip = 0; chip < roster_.chips; ++chip) {
    if (!used[chip]) continue;
    Message p;
    p.number(process_descriptor::pid, std::uint64_t{chip} + 1);
    p.text(process_descriptor::process_name,
           fmt::format("chip{} of {} on {} (1 ns here is 1 cycle at {} GHz; rdusim {})", chip, roster_.program,
                       roster_.target, to_double(roster_.clock_ghz), rdusim));
    descriptor(process(chip), [&] { part_.message(track_descriptor::process, p); });
  }
  for (std::uint32_t n = 0; n < slices_.tracks().size(); ++n) {
    const Track& t = slices_.tracks()[n];
    descriptor(track(n), [&] {
      part_.text(track_descriptor::name, t.name);
      part_.number(track_descriptor::parent_uuid, process(t.chip));
    });
  }
  Message counts;
  counts.text(counter_descriptor::unit_name, "count");
  for (std::uint32_t n = 0; n < slices_.counters().size(); ++n) {
    const Track& t = slices_.counters()[n];
    descriptor(counter_track(n), [&] {
      part_.text(track_descriptor::name, t.name);
      part_.number(track_descriptor::parent_uuid, process(t.chip));
      part_.message(track_descriptor::counter, counts);
    });
  }
}

void PerfettoWriter::slice(const Slice& s) {
  full_ = full_ || (scope_.limit && file_.size() + bytes_.size() + 256 + 20 * (s.flows_in.size() + s.flows_out.size()) +
                                            left_out_bytes >
                                        *scope_.limit);
  if (full_) {
    ++left_out_;
    return;
  }
  const auto annotate = [&](Annotation name, std::uint64_t value) {
    annotation(static_cast<std::uint64_t>(name), value);
  };
  event_.clear();
  event_.number(track_event::type, track_event::slice_begin);
  event_.number(track_event::track_uuid, track(s.track));
  event_.number(track_event::name_iid, std::uint64_t{s.name} + 1);
  annotate(s.firing ? Annotation::firing : Annotation::page, s.number);
  if (s.firing && s.stall != 0) {
    annotate(Annotation::stall, s.stall);
    part_.clear();
    part_.number(debug_annotation::name_iid, static_cast<std::uint64_t>(Annotation::cause));
    part_.text(debug_annotation::string_value, cause_name(s.cause));
    event_.message(track_event::debug_annotations, part_);
  }
  if (s.firing && s.completed != 0) annotate(Annotation::completed, s.completed);
  for (const std::uint64_t f : s.flows_out) event_.fixed64(track_event::flow_ids, f);
  for (const std::uint64_t f : s.flows_in) event_.fixed64(track_event::terminating_flow_ids, f);
  packet_.clear();
  packet_.number(trace_packet::timestamp, s.begin);
  packet_.message(trace_packet::track_event, event_);
  packet_.number(trace_packet::sequence_flags, trace_packet::needs_incremental_state);
  packet(packet_);

  event_.clear();
  event_.number(track_event::type, track_event::slice_end);
  event_.number(track_event::track_uuid, track(s.track));
  packet_.clear();
  packet_.number(trace_packet::timestamp, s.end);
  packet_.message(trace_packet::track_event, event_);
  packet(packet_);
}

void PerfettoWriter::counter(std::uint32_t counter, Cycle at, std::uint64_t value) {
  full_ = full_ || (scope_.limit && file_.size() + bytes_.size() + 128 + left_out_bytes > *scope_.limit);
  if (full_) {
    ++left_out_;
    return;
  }
  event_.clear();
  event_.number(track_event::type, track_event::counter);
  event_.number(track_event::track_uuid, counter_track(counter));
  event_.number(track_event::counter_value, value);
  packet_.clear();
  packet_.number(trace_packet::timestamp, at);
  packet_.message(trace_packet::track_event, event_);
  packet(packet_);
}

void PerfettoWriter::annotation(std::uint64_t name, std::uint64_t value) {
  part_.clear();
  part_.number(debug_annotation::name_iid, name);
  part_.number(debug_annotation::uint_value, value);
  event_.message(track_event::debug_annotations, part_);
}

// An instant on a track of its own, where the trace ends.
void PerfettoWriter::tell_dropped(const LeftOut& dropped, const TraceEnd& end) {
  part_.clear();
  part_.number(track_descriptor::uuid, left_out_track);
  part_.text(track_descriptor::name, "left out of this trace");
  packet_.clear();
  packet_.message(trace_packet::track_descriptor, part_);
  packet(packet_);
  event_.clear();
  event_.number(track_event::type, track_event::instant);
  event_.number(track_event::track_uuid, left_out_track);
  event_.number(track_event::name_iid, slices_.names().size() + 1);
  annotation(static_cast<std::uint64_t>(Annotation::by_filter), dropped.filter);
  annotation(static_cast<std::uint64_t>(Annotation::by_window), dropped.window);
  annotation(static_cast<std::uint64_t>(Annotation::by_limit), dropped.limit);
  part_.clear();
  part_.number(debug_annotation::name_iid, static_cast<std::uint64_t>(Annotation::end));
  part_.text(debug_annotation::string_value, end.reason);
  event_.message(track_event::debug_annotations, part_);
  packet_.clear();
  packet_.number(trace_packet::timestamp, std::min(end.cycles, scope_.to));
  packet_.message(trace_packet::track_event, event_);
  packet_.number(trace_packet::sequence_flags, trace_packet::needs_incremental_state);
  packet(packet_);
}

Result<TraceSize> PerfettoWriter::finish(const TraceEnd& end) {
  slices_.finish();
  TraceSize size;
  size.events = slices_.events();
  size.dropped = slices_.dropped();
  size.dropped += end.lost;
  size.dropped.limit = left_out_;
  if (size.dropped.total() != 0 || end.cut()) tell_dropped(size.dropped, end);
  file_.write(bytes_);
  size.bytes = file_.size();
  const auto written = file_.commit();
  if (!written) return written.diagnostics();
  return size;
}

}  // namespace rdusim
