// The house's direction: who may include whom. The includes of the whole tree are read, and a breach is named.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace rdusim::layers_test {

namespace fs = std::filesystem;

namespace {

struct Include {
  std::string file;  // relative to the root
  std::size_t line = 0;
  std::string what;  // as written, without quotes or brackets
  bool angled = false;
};

// Which room a path of the tree belongs to: the longest of these that it lies under.
const std::vector<std::string> rooms = {
    "compiler/support",
    "compiler/target",
    "compiler/workload",
    "compiler/ir",
    "compiler/cost",
    "compiler/passes",
    "compiler/program",
    "compiler/certificate",
    "compiler",
    "models/events",
    "models/values",
    "models/network",
    "models/units",
    "models/processes",
    "models/systemc",
    "traces",
    "sim/reference",
    "sim/compare",
    "sim/history",
    "sim/page",
    "sim/dashboard",
    "sim/view",
    "sim/sweep",
    "sim/cli",
    "sim",
};

// What a room may include, besides itself. The order of house.md: support <- target, workload <- ir <- cost <- passes
// <- compile; then models, traces, sim.
const std::map<std::string, std::set<std::string>> allowed = [] {
  std::map<std::string, std::set<std::string>> may;
  may["compiler/support"] = {};
  may["compiler/target"] = {"compiler/support"};
  may["compiler/workload"] = {"compiler/support"};
  may["compiler/ir"] = {"compiler/support", "compiler/target", "compiler/workload"};
  may["compiler/cost"] = {"compiler/support", "compiler/target", "compiler/workload", "compiler/ir"};
  may["compiler/passes"] = {"compiler/support", "compiler/target", "compiler/workload", "compiler/ir", "compiler/cost"};
  may["compiler"] = {"compiler/support", "compiler/target", "compiler/workload",
                     "compiler/ir",      "compiler/cost",   "compiler/passes"};
  // Of the ir these two use the types alone (ir_types below).
  may["compiler/program"] = {"compiler/support", "compiler/target", "compiler/workload", "compiler/ir"};
  may["compiler/certificate"] = {"compiler/support", "compiler/target", "compiler/workload", "compiler/ir"};
  const std::set<std::string> description = {"compiler/support", "compiler/target", "compiler/workload", "compiler/ir"};
  const auto with = [&](std::set<std::string> more) {
    more.insert(description.begin(), description.end());
    return more;
  };
  may["models/events"] = with({});
  may["models/values"] = with({"models/events"});
  may["models/network"] = {"compiler/support"};
  may["models/units"] = with({"models/events", "models/values", "models/network"});
  may["models/processes"] = {"compiler/support"};
  may["models/systemc"] = with({"models/events", "models/values", "models/units", "models/processes"});
  may["traces"] = {"compiler/support", "compiler/target", "compiler/ir", "compiler/workload", "models/events"};
  may["sim/reference"] = {"compiler/support", "compiler/workload"};
  may["sim/compare"] = {"compiler/support"};
  may["sim/history"] = {"compiler/support", "sim/compare"};
  may["sim/page"] = {"compiler/support"};
  may["sim/dashboard"] = {"compiler/support", "sim/compare", "sim/history", "sim/page"};
  may["sim/view"] = {rooms.begin(), rooms.end()};
  may["sim/view"].erase("sim/cli");
  may["sim/sweep"] = {"compiler/support", "compiler/target", "sim/compare"};
  may["sim"] = {rooms.begin(), rooms.end()};
  may["sim"].erase("sim/cli");
  may["sim/cli"] = {rooms.begin(), rooms.end()};
  return may;
}();

// The parts of the ir that hold types and no code: what an independent checker and the file format may know, and the
// names of the enumerators, which the file format shares with the printer. The checker has names of its own.
const std::map<std::string, std::set<std::string>> ir_types = {
    {"compiler/certificate", {"compiler/ir/program.h", "compiler/ir/certificate.h"}},
    {"compiler/program", {"compiler/ir/program.h", "compiler/ir/certificate.h", "compiler/ir/enum_names.h"}},
};

// Headers that cost seconds to compile, or that would leak a library into every user of a header.
const std::vector<std::string> heavy = {
    "nlohmann/", "toml++/",  "CLI/",    "CLI11", "flatbuffers/",        "boost/", "onnx", "systemc",
    "tlm",       "openssl/", "sqlite3", "mpi.h", "gtkwave/", "prog_bin_generated.h"};

std::string room_of(std::string_view path) {
  std::string best;
  for (const std::string& room : rooms) {
    if (path.starts_with(room + "/") && room.size() > best.size()) best = room;
  }
  return best;
}

std::vector<Include> includes_in(const std::string& file, std::istream& text) {
  std::vector<Include> found;
  std::string line;
  for (std::size_t number = 1; std::getline(text, line); ++number) {
    std::size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#') continue;
    at = line.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos || line.compare(at, 7, "include") != 0) continue;
    const std::size_t open = line.find_first_of("\"<", at);
    if (open == std::string::npos) continue;
    const std::size_t close = line.find(line[open] == '<' ? '>' : '"', open + 1);
    if (close == std::string::npos) continue;
    found.push_back({file, number, line.substr(open + 1, close - open - 1), line[open] == '<'});
  }
  return found;
}

// Why an include breaks the direction; nothing where it does not.
std::optional<std::string> breach(const Include& i) {
  const std::string from = room_of(i.file);
  const bool header = i.file.ends_with(".h");
  if (i.what == "systemc" || i.what == "systemc.h" || i.what.starts_with("sysc/") || i.what.starts_with("tlm")) {
    if (from != "models/systemc") return "SystemC stays in models/systemc";
    return std::nullopt;
  }
  if (header) {
    for (const std::string& h : heavy) {
      if (i.what.starts_with(h)) return "a heavy header in a public header";
    }
  }
  if (i.angled || from.empty()) return std::nullopt;
  const std::string to = room_of(i.what);
  if (to.empty()) {
    // A quoted include names its file from the root, or something generated, which has no folder.
    if (i.what.find('/') != std::string::npos) return "an include of nothing in the house";
    return std::nullopt;
  }
  if (to == from) return std::nullopt;
  if (to == "compiler/ir" && ir_types.contains(from) && !ir_types.at(from).contains(i.what)) {
    return from + " may use the ir's types only";
  }
  if (!allowed.at(from).contains(to)) return from + " may not include " + to;
  return std::nullopt;
}

std::vector<Include> includes_of_tree(const fs::path& root) {
  std::vector<Include> all;
  for (const char* top : {"compiler", "models", "sim", "traces"}) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp") continue;
      std::ifstream text(entry.path());
      const auto found = includes_in(fs::relative(entry.path(), root).generic_string(), text);
      all.insert(all.end(), found.begin(), found.end());
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Include& a, const Include& b) { return std::tie(a.file, a.line) < std::tie(b.file, b.line); });
  return all;
}

// Libraries whose header costs seconds, or that hostile input meets: one source of the tree includes them, with what
// guards them, and the others ask that source.
const std::vector<std::string> once = {"nlohmann/", "toml++/", "CLI/", "sqlite3"};

// The sources that include such a library although an earlier one does.
std::vector<std::string> repeated_heavy(const std::vector<Include>& all) {
  std::map<std::string, std::string> first;
  std::vector<std::string> repeated;
  for (const Include& i : all) {
    for (const std::string& library : once) {
      if (!i.what.starts_with(library)) continue;
      const auto [entry, fresh] = first.try_emplace(library, i.file);
      if (!fresh && entry->second != i.file)
        repeated.push_back(i.file + " includes " + library + " as does " + entry->second);
    }
  }
  return repeated;
}

bool breaks(const std::string& file, const std::string& what, bool angled = false) {
  return breach({file, 1, what, angled}).has_value();
}

}  // namespace

TEST_CASE("no file of the tree includes against the direction of the house") {
  const auto all = includes_of_tree(RDUSIM_SOURCE_DIR);
  CHECK(all.size() > 100);
  for (const Include& i : all) {
    const auto why = breach(i);
    if (why) {
      FAIL_CHECK(i.file << ":" << i.line << ": includes " << i.what << ": " << *why);
    }
  }
}

TEST_CASE("a breach of the direction is seen") {
  CHECK(breaks("compiler/support/file.cpp", "compiler/target/target.h"));
  CHECK(breaks("compiler/target/read_target.cpp", "compiler/workload/fill.h"));
  CHECK(breaks("compiler/workload/fill.cpp", "compiler/ir/program.h"));
  CHECK(breaks("compiler/ir/verify.cpp", "compiler/cost/cost.h"));
  CHECK(breaks("compiler/cost/cost.cpp", "compiler/passes/passes.h"));
  CHECK(breaks("compiler/passes/place.cpp", "compiler/compile.h"));
  CHECK(breaks("compiler/passes/place.cpp", "models/units/pcu.h"));
  CHECK(breaks("compiler/passes/certify.cpp", "compiler/certificate/check.h"));
  CHECK(breaks("compiler/compile.cpp", "sim/load.h"));
  CHECK(breaks("compiler/compile.cpp", "traces/vcd.h"));
  CHECK(breaks("compiler/certificate/check.cpp", "compiler/ir/graph.h"));
  CHECK(breaks("compiler/certificate/check.cpp", "compiler/ir/enum_names.h"));
  CHECK(breaks("compiler/certificate/check.cpp", "compiler/passes/passes.h"));
  CHECK(breaks("compiler/program/encode.cpp", "compiler/ir/verify.h"));
  CHECK(breaks("models/units/pcu.cpp", "compiler/cost/cost.h"));
  CHECK(breaks("models/events/events.h", "models/units/pcu.h"));
  CHECK(breaks("models/units/pcu.h", "models/systemc/machine.h"));
  CHECK(breaks("traces/vcd.cpp", "models/units/pcu.h"));
  CHECK(breaks("traces/vcd.cpp", "sim/report.h"));
  CHECK(breaks("sim/reference/matmul.cpp", "models/values/kernels.h"));
  CHECK(breaks("sim/reference/matmul.cpp", "compiler/ir/program.h"));
  CHECK(breaks("sim/run.cpp", "sim/cli/main.h"));
  CHECK(breaks("sim/compare/compare.cpp", "sim/report.h"));
  CHECK(breaks("sim/run.cpp", "systemc", true));
  CHECK(breaks("models/units/pcu.cpp", "systemc", true));
  CHECK(breaks("models/systemc/machine.h", "boost/graph/adjacency_list.hpp", true));
  CHECK(breaks("compiler/support/json.h", "nlohmann/json.hpp", true));
  CHECK(breaks("sim/run.cpp", "helpers/run.h"));
}

TEST_CASE("what the house allows is no breach") {
  CHECK_FALSE(breaks("compiler/target/target.h", "compiler/support/units.h"));
  CHECK_FALSE(breaks("compiler/certificate/check.cpp", "compiler/ir/program.h"));
  CHECK_FALSE(breaks("compiler/program/encode.cpp", "compiler/ir/certificate.h"));
  CHECK_FALSE(breaks("compiler/compile.cpp", "compiler/passes/passes.h"));
  CHECK_FALSE(breaks("models/systemc/machine.cpp", "systemc", true));
  CHECK_FALSE(breaks("sim/run.cpp", "models/systemc/machine.h"));
  CHECK_FALSE(breaks("compiler/target/shipped.cpp", "shipped_targets.inc"));
  CHECK_FALSE(breaks("compiler/support/json.cpp", "nlohmann/json.hpp", true));
}

TEST_CASE("a heavy header is included by one source of the tree") {
  for (const std::string& fault : repeated_heavy(includes_of_tree(RDUSIM_SOURCE_DIR))) FAIL_CHECK(fault);
}

TEST_CASE("a second user of a heavy header is seen") {
  const Include first{"compiler/target/a.cpp", 1, "toml++/toml.h", true};
  const Include same{"compiler/target/a.cpp", 2, "toml++/impl/x.h", true};
  const Include second{"compiler/target/b.cpp", 1, "toml++/toml.h", true};
  const Include elsewhere{"compiler/workload/b.cpp", 1, "toml++/toml.h", true};
  const Include other{"compiler/workload/b.cpp", 2, "nlohmann/json.hpp", true};
  CHECK(repeated_heavy({first, same, other}).empty());
  CHECK(repeated_heavy({first, second}).size() == 1);
  CHECK(repeated_heavy({first, elsewhere}).size() == 1);
}

TEST_CASE("an include is read as the compiler reads it") {
  std::istringstream text(
      "#include \"a/b.h\"\n  #  include <systemc>\n// #include \"c.h\"\n#define X\n#include BROKEN\n");
  const auto found = includes_in("f.cpp", text);
  REQUIRE(found.size() == 2);
  CHECK(found[0].what == "a/b.h");
  CHECK_FALSE(found[0].angled);
  CHECK(found[1].what == "systemc");
  CHECK(found[1].angled);
  CHECK(found[1].line == 2);
}

}  // namespace rdusim::layers_test
