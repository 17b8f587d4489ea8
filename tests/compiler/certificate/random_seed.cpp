// RapidCheck takes its seed from the environment when the first property is checked: the same cases in every run.
#include <stdlib.h>

namespace {
[[maybe_unused]] const bool pinned = ::setenv("RC_PARAMS", "seed=20261129 max_success=200", 0) == 0;
}  // namespace
