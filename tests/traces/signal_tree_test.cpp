// Scopes within scopes, as a waveform's head has them.
#include "traces/signal_tree.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace rdusim::signal_tree_test {
namespace {

std::string text_of(const SignalTree& tree) {
  std::string text;
  tree.visit([&](std::string_view scope) { text += fmt::format("{}(", scope); }, [&] { text += ")"; },
             [&](std::uint32_t i) { text += fmt::format("{}:{} ", i, tree.signals()[i].name); });
  return text;
}

TEST_CASE("scopes are visited depth first, each once, whatever the order in which signals came") {
  SignalTree tree;
  CHECK(text_of(tree).empty());
  const auto chip0 = tree.add_scope(SignalTree::top, "chip0");
  const auto chip1 = tree.add_scope(SignalTree::top, "chip1");
  CHECK(tree.add(tree.scope_in(chip1, "pmu"), {"valid"}) == 0);
  CHECK(tree.add(tree.scope_in(chip0, "pmu"), {"valid"}) == 1);
  CHECK(tree.add(tree.scope_in(chip0, "pcu"), {"state", 2, 1}) == 2);
  CHECK(tree.add(tree.add_scope(tree.scope_in(chip0, "pmu"), "x"), {"ready"}) == 3);
  CHECK(text_of(tree) == "chip0(pmu(1:valid x(3:ready ))pcu(2:state ))chip1(pmu(0:valid ))");
  CHECK(tree.scopes() == 6);
  CHECK(tree.signals()[2].bits == 2);
  CHECK(tree.signals()[2].initial == 1);
}

TEST_CASE("a scope's name is what a viewer takes for one, and found by what it was added as") {
  SignalTree tree;
  const auto fold = tree.scope_in(SignalTree::top, "down.fold c0");
  tree.add(fold, {"state"});
  CHECK(tree.scope_in(SignalTree::top, "down.fold c0") == fold);
  CHECK(tree.scope_in(SignalTree::top, "down.fold c") != fold);
  tree.add_scope(fold, "");
  CHECK(text_of(tree) == "down_fold_c0(0:state _())down_fold_c()");
}

}  // namespace
}  // namespace rdusim::signal_tree_test
