// Property tests draw the same programs on every run.
#include <cstdlib>

namespace {
[[maybe_unused]] const bool pinned = ::setenv("RC_PARAMS", "seed=20240607 max_success=300", 0) == 0;
}  // namespace
