// Property tests of this folder draw the same cases everywhere; RC_PARAMS in the environment overrides it.
#include <cstdlib>

namespace {
[[maybe_unused]] const bool pinned = ::setenv("RC_PARAMS", "seed=20240607 max_success=100", 0) == 0;
}
