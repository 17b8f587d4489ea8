// Both: the precompiled header has read doctest's declarations by now, and only they derive the first from the second.
#define DOCTEST_CONFIG_IMPLEMENT
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

// libsystemc carries a main() of its own that asks for sc_main; ours wins, and this satisfies its reference.
extern "C" int sc_main(int, char*[]) {
  return 0;
}
