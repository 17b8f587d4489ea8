// Where this run comes from, as far as the computer and git say.
#pragma once

#include "sim/history/store.h"

namespace rdusim {

// Host name, time of now; commit, its parent and branch where git is there and the working folder is in a repository.
Origin origin_of_here();

}  // namespace rdusim
