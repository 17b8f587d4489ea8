// Where a traced run lost its time: stages by what they waited for, links by the cycles that what they carried waited for them,
// buffers by the cycles in which they had no room. The numbers are those of the report, made by the same folds; of a log that was cut, up to there.
#pragma once

#include "traces/inspect.h"

namespace rdusim {

// The `most` of each. Errors: those of traced_program(), RDU8015 where events were left out, RDU8012, RDU8013.
Result<Inspected> hottest(EventLogReader& log, std::size_t most);

}  // namespace rdusim
