// Questions to an event log, answered while it is read: none keeps the events. Each answer is JSON; table.h makes text
// of it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "compiler/support/json.h"
#include "traces/event_log.h"

namespace rdusim {

struct Inspected {
  Json answer;
  Diagnostics notes;  // RDU8014 where the log was cut
};

// Whose log it is, how the run ended, how many events of which kinds, what each chip did. Errors of all: RDU8012,
// RDU8013.
Result<Inspected> inspect_summary(EventLogReader& log);

// Events by kind, and the `most` units with most of them.
Result<Inspected> inspect_counts(EventLogReader& log, std::size_t most);

// Where everything stood at the end of a cycle: stages that are busy or wait, buffers with pages, crossings under way,
// semaphores and barriers that are not 0, links and memory channels that are taken;
// of all units, or of those that `name` stands for (named_units.h). Errors: RDU8017, also of a cycle after the last.
Result<Inspected> inspect_at(EventLogReader& log, Cycle cycle, const std::string& name = {});

// The life of one page across chips: "BUFFER[#INSTANCE]:PAGE" made, sent, landed and taken, with the firings that did
// so. Errors: RDU8017.
Result<Inspected> inspect_page(EventLogReader& log, const std::string& page);

// Where two logs first differ, then what differs stage by stage. "equal" says whether they tell the same.
Result<Inspected> inspect_difference(EventLogReader& a, EventLogReader& b, EventLogReader& a_again,
                                     EventLogReader& b_again);

// Every event of the units that `name` stands for (named_units.h), a line or a JSON object each. Errors: RDU8017.
Result<LogEnd> inspect_timeline(EventLogReader& log, const std::string& name, const LogWindow& window, bool json,
                                const std::function<void(std::string_view)>& out);

struct Drawing {
  std::string svg;
  Diagnostics notes;
};
// Pages held in a buffer instance over time. Errors: RDU8017.
Result<Drawing> inspect_occupancy(EventLogReader& log, const std::string& buffer);

}  // namespace rdusim
