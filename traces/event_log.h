// The event log: every event of a run, compact, streamed to a file while the run goes on, and read back in the same
// order. The page event-log.md beside this describes the format. One writer, one reader.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/file_stream.h"
#include "models/events/event_record.h"
#include "traces/event_model.h"
#include "traces/trace_scope.h"
#include "traces/trace_writer.h"
#include "traces/wire.h"

namespace rdusim {

inline constexpr std::uint32_t event_log_version = 3;

// What stands in front of the events.
struct LogHead {
  std::string rdusim;  // version that wrote it
  std::string run;     // JSON: what was asked of the run, for a replay
  std::string filter;  // what was asked to be kept, as text; empty: everything
};

class EventLogWriter final : public TraceWriter {
 public:
  // `roster` is indexed and outlives this. `program`: prog.bin of what runs. Errors: RDU5008.
  static Result<std::unique_ptr<EventLogWriter>> create(const std::string& path, const Roster& roster,
                                                        const LogHead& head, std::string_view program,
                                                        TraceScope scope);

  void use(const ProvenanceTable& table) override { table_ = &table; }
#define RDU_DECLARE(Event) void on(const Event& e) override;
  RDU_EVENTS(RDU_DECLARE)
#undef RDU_DECLARE
  Bytes head() const override {
    return head_;
  }
  Result<TraceSize> finish(const TraceEnd& end) override;
  // Of the file so far, without the last few hundred events and what finish() adds.
  Bytes bytes() const {
    return file_.size() + static_cast<Bytes>(at_ - block_.data());
  }

 private:
  EventLogWriter(FileWriter file, const Roster& roster, TraceScope scope);
  template <class E>
  void take(const E& e);
  template <class E>
  void put(const E& e);
  void put_batch();
  void begin_block(Cycle at);
  std::uint64_t local(ProvenanceId id);
  std::uint64_t define(ProvenanceId id);
  void write_block(std::uint32_t type, std::uint32_t records, std::string_view payload);
  void flush();

  FileWriter file_;
  const Roster& roster_;
  const ProvenanceTable* table_ = nullptr;
  EventRecord batch_;
  EventModel model_;
  std::vector<std::uint8_t> block_;
  std::uint8_t* at_ = nullptr;  // end of what the block holds
  std::uint32_t records_ = 0;   // events in it
  Cycle last_ = 0;              // of the event before
  std::uint64_t since_restart_ = 0;
  bool restart_ = true;  // the next block begins anew
  struct Local {
    std::uint32_t restart = 0, number = 0;
  };
  std::vector<Local> local_;  // by provenance id: the restart since which it has a number, and that
  std::uint32_t restarts_ = 0, locals_ = 0;
  struct Entry {
    std::uint64_t offset = 0;
    Cycle cycle = 0;
    std::uint64_t before = 0;  // events
  };
  std::vector<Entry> index_;
  std::array<std::uint64_t, event_kinds> counts_{};
  std::uint64_t events_ = 0;
  LeftOut dropped_;
  TraceScope scope_;
  Bytes head_ = 0;
};

// What stands behind the events, and what was met on the way.
struct LogEnd {
  std::optional<TraceEnd> end;                      // absent: the log was cut
  std::array<std::uint64_t, event_kinds> counts{};  // as the log says it has them
  LeftOut dropped;
  std::uint64_t events = 0;  // handed on
  Cycle last = 0;            // of them
  bool beyond = false;       // there are events after the window: it was not read to its end
  Diagnostics notes;         // RDU8014 where it was cut
};

struct LogWindow {
  Cycle from = 0;
  Cycle to = ~Cycle{0};  // included
};

class EventLogReader {
 public:
  // Reads up to the first event. Errors: RDU1001, RDU8010-RDU8013.
  static Result<EventLogReader> open(const std::string& path);

  const std::string& name() const { return name_; }  // of the file
  const Roster& roster() const { return *roster_; }
  const LogHead& head() const { return head_; }
  std::uint32_t version() const { return event_log_version; }
  // Of the ids in events that were handed on; grows as they are.
  const ProvenanceTable& provenance() const { return *provenance_; }

  // The program that ran (prog.bin). Before read(). Errors: RDU8012, RDU8013, RDU8014 where it was cut there.
  Result<std::string> program();

  // Hands every event of the window to `sink`, in order. Once. Errors: RDU8012, RDU8013 (what came before was handed
  // on); a log that was cut is read up to the cut and no error.
  Result<LogEnd> read(EventSink& sink, const LogWindow& window = {});

 private:
  struct Block {
    std::uint64_t offset = 0;
    std::uint32_t type = 0;
    std::uint32_t records = 0;
    bool cut = false;
    std::string payload;
  };
  EventLogReader(FileReader file, std::string name);
  Result<std::optional<Block>> next();
  bool take_events(const Block& b, EventSink& sink, const LogWindow& window, LogEnd& end);
  template <class E>
  bool take(WireReader& in, std::uint8_t head, EventSink& sink, const LogWindow& window, LogEnd& end);
  bool define(WireReader& in);
  std::uint64_t restart_before(Cycle cycle, std::uint64_t first);
  Diagnostics malformed(const std::string& why) const;

  FileReader file_;
  std::string name_;
  LogHead head_;
  std::unique_ptr<Roster> roster_;
  std::unique_ptr<ProvenanceTable> provenance_;
  std::unique_ptr<EventModel> model_;
  std::vector<ProvenanceId> locals_;  // by number in the file since the last restart
  std::uint64_t contributions_ = 0;   // defined so far
  Cycle last_ = 0;
  bool started_ = false;          // a block of events was read
  std::optional<Block> pending_;  // read ahead
};

}  // namespace rdusim
