// Where a traced run lost its time: stages by what they waited for, links by how long they were taken, buffers by how
// often they were full. The numbers are those of the report, made by the same fold (replay_run()).
#pragma once

#include "traces/inspect.h"

namespace rdusim {

// The `most` of each. Errors: as replay_run().
Result<Inspected> hottest(EventLogReader& log, std::size_t most);

}  // namespace rdusim
