#include "sim/sweep/plan.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "compiler/support/file.h"
#include "sim/sweep/change_toml.h"

namespace rdusim::plan_test {
namespace {

SweepPlan plan_of(const std::string& text) {
  auto plan = parse_plan("workload = \"w.toml\"\n" + text, "plans/plan.toml");
  INFO(plan.diagnostics().to_text());
  REQUIRE(plan);
  return *std::move(plan);
}

std::vector<std::string> texts(const SweepPlan& plan) {
  std::vector<std::string> all;
  for (const SweepPoint& p : plan.points) {
    std::string line;
    for (const Cell& c : p.values) line += (line.empty() ? "" : " ") + (c.index() == 0 ? "-" : to_string(c));
    all.push_back(line);
  }
  return all;
}

using Lines = std::vector<std::string>;

TEST_CASE("a grid is every combination, the last axis the fastest") {
  const SweepPlan plan = plan_of("[grid]\nchips = [1, 2]\ncollective = ['ring', 'direct']\npad = true\n");
  CHECK(plan.axes == Lines{"chips", "collective", "pad"});
  CHECK(texts(plan) == Lines{"1 ring true", "1 direct true", "2 ring true", "2 direct true"});
  CHECK(plan.workload == "plans/w.toml");
  CHECK(plan.name == "plan");
}

TEST_CASE("constraints take points out, and a point that stands twice is run once") {
  const SweepPlan plan = plan_of(
      "constraints = ['chips <= 2 or collective == \"ring\"']\n"
      "[grid]\nchips = [1, 4, 1]\ncollective = ['ring', 'direct']\n[[list]]\nchips = 4\ncollective = 'ring'\n[[list]]\n"
      "chips = 3\n");
  CHECK(texts(plan) == Lines{"1 ring", "1 direct", "4 ring"});
  CHECK(plan.excluded == 2);
}

TEST_CASE("a list's points may set different axes") {
  const SweepPlan plan = plan_of("[[list]]\nchips = 4\n[[list]]\n\"target.hbm.gb_per_s\" = 900\n");
  CHECK(plan.axes == Lines{"chips", "target.hbm.gb_per_s"});
  CHECK(texts(plan) == Lines{"4 -", "- 900"});
}

TEST_CASE("random points are those of the seed, different, and within what was given") {
  const std::string text =
      "[random]\npoints = 50\nseed = SEED\n[random.axes]\nchips = [1, 2, 4]\n"
      "\"target.hbm.gb_per_s\" = { from = 900, to = 1800 }\n\"target.machine.clock_ghz\" = { from = 1.0, to = 1.5 }\n";
  const auto with_seed = [&](const char* seed) {
    std::string t = text;
    t.replace(t.find("SEED"), 4, seed);
    return texts(plan_of(t));
  };
  const Lines a = with_seed("7");
  CHECK(a == with_seed("7"));
  CHECK(a != with_seed("8"));
  CHECK(a.size() == 50);
  CHECK(std::set<std::string>(a.begin(), a.end()).size() == 50);
  const SweepPlan plan =
      plan_of("[random]\npoints = 40\nseed = 1\n[random.axes]\nx = { from = -3, to = 3 }\ny = [0,1,2,3,4,5,6,7]\n");
  for (const SweepPoint& p : plan.points) {
    CHECK(std::get<std::int64_t>(p.values[0]) >= -3);
    CHECK(std::get<std::int64_t>(p.values[0]) <= 3);
  }
}

TEST_CASE("what is wrong with a plan is said with its place, each file its own fault") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RDUSIM_SOURCE_DIR "/tests/errors/plans")) {
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    const auto plan = read_plan(entry.path().string());
    REQUIRE_FALSE(plan);
    INFO(plan.diagnostics().to_text());
    CHECK(plan.diagnostics().error_count() == 1);
    CHECK(static_cast<int>(plan.diagnostics().list()[0].code) == std::stoi(name.substr(3, 4)));
    ++files;
  }
  CHECK(files >= 14);
}

TEST_CASE("a path is keys and places") {
  const auto path = parse_path("links[1].gb_per_s");
  REQUIRE(path);
  REQUIRE(path->size() == 3);
  CHECK((*path)[0].key == "links");
  CHECK((*path)[1].index == 1);
  CHECK((*path)[2].key == "gb_per_s");
  CHECK(parse_path("a[0][12]")->size() == 3);
  for (const char* text :
       {"", ".", "a.", ".a", "a..b", "a[", "a[]", "a[x]", "a[1", "a[1]b", "[1]", "a[99999999999999999999]"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_path(text));
  }
}

TEST_CASE("a changed document differs in that value alone, and a sourced number keeps a source") {
  const std::string text =
      "name = \"two\"\n[hbm]\ngb_per_s = { value = 1800, published = \"x\" }\nempty = []\n"
      "[[links]]\ngb_per_s = { value = 31.25, assumed = \"y\", range = [12.5, 62.5] }\n[tensors.\"a b\"]\nshape = [32, "
      "64]\n"
      "fill = { file = \"data/w.npy\" }\nbig = 1e300\nquote = 'a\"b\\c'\n";
  auto document = parse_toml(text, "t", Code::RDU8060).value();
  CHECK_FALSE(change(document, *parse_path("links[0].gb_per_s"), Cell(62.5), "t").has_errors());
  CHECK_FALSE(change(document, *parse_path("tensors.a b.shape[1]"), Cell(std::int64_t{128}), "t").has_errors());
  make_files_absolute(document, "/models");
  const std::string written = to_toml(document);
  INFO(written);
  const auto again = parse_toml(written, "t", Code::RDU8060).value();
  CHECK(*again.find("links")->as_array()->at(0).find("gb_per_s")->find("value")->as_float() == 62.5);
  CHECK(again.find("links")->as_array()->at(0).find("gb_per_s")->find("range") == nullptr);
  CHECK(*again.find("hbm")->find("gb_per_s")->find("value")->as_integer() == 1800);
  CHECK(*again.find("tensors")->find("a b")->find("shape")->as_array()->at(1).as_integer() == 128);
  CHECK(*again.find("tensors")->find("a b")->find("fill")->find("file")->as_string() == "/models/data/w.npy");
  CHECK(*again.find("tensors")->find("a b")->find("big")->as_float() == 1e300);
  CHECK(*again.find("tensors")->find("a b")->find("quote")->as_string() == "a\"b\\c");
  CHECK(to_toml(again) == written);
}

TEST_CASE("a key that is not there is refused, with the nearest") {
  auto document = parse_toml("[hbm]\ngb_per_s = 1\nlist = [1, 2]\n", "t", Code::RDU8060).value();
  const auto d = change(document, *parse_path("hbm.gb_per_S"), Cell(true), "t");
  CHECK(d.contains(Code::RDU8063));
  CHECK(d.to_text().find("did you mean 'gb_per_s'?") != std::string::npos);
  CHECK(change(document, *parse_path("hbm.list[2]"), Cell(true), "t").contains(Code::RDU8063));
  CHECK(change(document, *parse_path("hbm.list"), Cell(true), "t").contains(Code::RDU8063));
  CHECK(change(document, *parse_path("hbm.gb_per_s.value"), Cell(true), "t").contains(Code::RDU8063));
}

}  // namespace
}  // namespace rdusim::plan_test
