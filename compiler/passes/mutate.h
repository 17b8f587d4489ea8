// Where a test breaks the compiler on purpose, one place a time, to see that somebody notices.
//
//   mutated("size.depth", right, wrong)   is `right`. Only where the passes are built once more for tests/mutants (with
//                                         RDUSIM_MUTANTS), and only while the test has chosen the mutant of that name,
//                                         it is `wrong`.
//
// Both are values, worked out in either case: `wrong` must be safe to work out, and cheap. Names are PASS.WHAT, each
// used once or for one and the same mistake. A row of the table in tests/mutants says who catches it.
#pragma once

#ifdef RDUSIM_MUTANTS
#include <string_view>
#endif
#include <type_traits>

namespace rdusim {

#ifdef RDUSIM_MUTANTS
// The test's: whether the mutant is the chosen one.
bool is_chosen(std::string_view mutant);

template <class T>
T mutated(std::string_view mutant, T right, std::type_identity_t<T> wrong) {
  return is_chosen(mutant) ? wrong : right;
}
#else
template <class T>
constexpr T mutated(const char*, T right, const std::type_identity_t<T>&) {
  return right;
}
#endif

}  // namespace rdusim
