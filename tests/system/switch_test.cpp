// Chips that are joined through switches, and links that break some of what they carry.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::switch_test {
namespace {

// sn40l with other links: `chips` in nodes of `node`.
std::string machine(int chips, int node, const std::string& links) {
  std::string text = source_text("models/targets/sn40l.toml");
  text.resize(text.find("# Inside a node every socket"));
  text = with_value(text, "[machine]", "chips", std::to_string(chips));
  return with_value(text, "[machine]", "node_chips", std::to_string(node)) + links;
}

// A [[links]] table of 38.4 GB/s: 32 bytes a cycle. `more`: further keys, with values alone.
std::string links(const std::string& joins, const std::string& shape, int latency_ns,
                  const std::vector<std::pair<std::string, std::string>>& more = {}) {
  std::string out = "\n[[links]]\njoins = \"" + joins + "\"\nshape = \"" + shape + "\"\n";
  const auto add = [&](const std::string& key, const std::string& value) {
    out += key + " = { value = " + value + ", published = \"for a test\" }\n";
  };
  add("gb_per_s", "38.4");
  add("latency_ns", std::to_string(latency_ns));
  add("signal_bytes", "32");
  for (const auto& [key, value] : more) add(key, value);
  return out;
}
std::string star(const std::string& joins, int latency_ns, int switch_ns, const std::string& buffer = "1000000") {
  return links(joins, "switch", latency_ns,
               {{"switch_latency_ns", std::to_string(switch_ns)}, {"buffer_bytes", buffer}});
}
std::string breaking(const std::string& rate, const std::string& seed = "1", const std::string& retries = "50") {
  return links("node", "full_mesh", 1000, {{"error_rate", rate}, {"error_seed", seed}, {"most_retries", retries}});
}

Json reduced(const Folder& folder, const std::string& text, int chips, const std::string& collective,
             std::vector<std::string> run_options = {}) {
  folder.write("machine.toml", text);
  compile(folder, matmul(64, 1024, 128),
          {"--target", "machine.toml", "--chips", std::to_string(chips), "--shard", "row", "--collective", collective});
  return run(folder, std::move(run_options));
}
std::int64_t cycles(const Json& report) {
  return number(report, "cycles", "simulated");
}

std::int64_t of_link(const Json& report, const std::string& part, const char* key) {
  std::int64_t sum = 0;
  for (const Json& l : *at(report, "links").as_array())
    if (text(l, "name").find(part) != std::string::npos) sum += number(l, key);
  return sum;
}

TEST_CASE("two chips over a switch are two chips over one link of the same latency in all, to the cycle") {
  const Folder folder;
  const Json direct = reduced(folder, machine(2, 2, links("node", "full_mesh", 1000)), 2, "direct");
  const Json through = reduced(folder, machine(2, 2, star("node", 400, 200)), 2, "direct");
  check_exact_pass(direct);
  check_exact_pass(through);
  CHECK(cycles(through) == cycles(direct));
  CHECK(of_link(through, "chip0->switch0", "bytes") == of_link(direct, "chip0->chip1", "bytes"));
  CHECK(of_link(through, "switch0->chip1", "bytes") == of_link(direct, "chip0->chip1", "bytes"));
  // A nanosecond on any part of the way is paid for.
  const Json slower = reduced(folder, machine(2, 2, star("node", 400, 300)), 2, "direct");
  CHECK(cycles(slower) > cycles(through));
}

TEST_CASE("a direction that is slower by itself costs what crosses it, and no other") {
  const Folder folder;
  const auto with = [&](const std::string& back) {
    return reduced(folder, machine(2, 2, links("node", "full_mesh", 1000, {{"back_gb_per_s", back}})), 2, "reduce");
  };
  // Chip 1 sends its sum to chip 0: to a lower number. Credits go the other way.
  const Json same = with("38.4"), slower = with("9.6");
  check_exact_pass(same);
  check_exact_pass(slower);
  CHECK(cycles(same) == cycles(reduced(folder, machine(2, 2, links("node", "full_mesh", 1000)), 2, "reduce")));
  CHECK(of_link(slower, "chip1->chip0", "busy_cycles") == 4 * of_link(same, "chip1->chip0", "busy_cycles"));
  CHECK(of_link(slower, "chip0->chip1", "busy_cycles") == of_link(same, "chip0->chip1", "busy_cycles"));
  CHECK(cycles(slower) > cycles(same));
}

TEST_CASE("many to one share the port of that one, which full-meshed chips do not") {
  const Folder folder;
  const std::string all = machine(8, 8, star("node", 500, 0));
  const Json through = reduced(folder, all, 8, "reduce");
  const Json direct = reduced(folder, machine(8, 8, links("node", "full_mesh", 1000)), 8, "reduce");
  check_exact_pass(through);
  check_exact_pass(direct);
  CHECK(cycles(through) > cycles(direct));
  const std::int64_t into = of_link(through, "switch0->chip0", "bytes");
  CHECK(into == of_link(direct, "->chip0", "bytes"));
  CHECK(of_link(through, "switch0->chip0", "busy_cycles") >= into / 32);
  CHECK(cycles(through) >= into / 32);
  for (const char* collective : {"ring", "direct", "halving-doubling", "tree", "through-one"}) {
    CAPTURE(collective);
    check_exact_pass(reduced(folder, all, 8, collective));
  }
}

TEST_CASE("a switch whose ports hold little is never faster, and gives the same values") {
  const Folder folder;
  std::int64_t before = 0;
  std::string outputs;
  for (const char* buffer : {"1000000", "16384", "2048", "32"}) {
    CAPTURE(buffer);
    const Json report = reduced(folder, machine(8, 8, star("node", 500, 100, buffer)), 8, "direct");
    check_exact_pass(report);
    CHECK(cycles(report) >= before);
    if (!outputs.empty()) CHECK(to_text(at(report, "outputs")) == outputs);
    outputs = to_text(at(report, "outputs"));
    if (std::string(buffer) == "32") CHECK(cycles(report) > before);
    before = cycles(report);
  }
}

TEST_CASE("nodes of full meshes whose counterparts, or all chips, meet in switches") {
  const Folder folder;
  for (const std::string& between : {star("counterparts", 700, 100), star("machine", 700, 100)}) {
    const std::string text = machine(16, 4, links("node", "full_mesh", 500) + between);
    for (const char* collective : {"hierarchical", "ring", "direct"}) {
      CAPTURE(collective);
      const Json report = reduced(folder, text, 16, collective);
      check_exact_pass(report);
      CHECK(of_link(report, "->switch", "bytes") > 0);
      // What goes in comes out.
      CHECK(of_link(report, "->switch", "bytes") ==
            of_link(report, "switch", "bytes") - of_link(report, "->switch", "bytes"));
    }
  }
  const std::string shown = rdusim_ok({"targets", "machine.toml"}, folder).out;
  CHECK(shown.find("1 between the chips") != std::string::npos);
}

TEST_CASE(
    "with links that break, a run has the same values, its retries are counted, and it depends on the seed alone") {
  const Folder folder;
  const Json sound = reduced(folder, machine(4, 4, links("node", "full_mesh", 1000)), 4, "ring");
  const Json broken = reduced(folder, machine(4, 4, breaking("0.1")), 4, "ring");
  check_exact_pass(broken);
  CHECK(of_link(sound, "link", "retries") == 0);
  CHECK(of_link(broken, "link", "retries") > 3);
  CHECK(cycles(broken) > cycles(sound));
  CHECK(to_text(at(broken, "outputs")) == to_text(at(sound, "outputs")));
  for (std::size_t l = 0; l < at(broken, "links").as_array()->size(); ++l) {
    const Json& link = at(broken, "links", static_cast<int>(l));
    // What was sent again is paid for; nothing else is.
    const std::int64_t bytes = number(sound, "links", static_cast<int>(l), "bytes");
    CHECK((number(link, "bytes") > bytes) == (number(link, "retries") > 0));
  }
  CHECK(rdusim_ok({"run", "prog.bin"}, folder).out.find(" transfers sent again") != std::string::npos);
  const std::string text = without_host(broken);
  CHECK(without_host(run(folder)) == text);
  CHECK(without_host(run(folder, {"--processes", "2"})) == text);
  CHECK(to_text(at(run(folder, {"--jitter", "7"}), "outputs")) == to_text(at(sound, "outputs")));
  const Json other = reduced(folder, machine(4, 4, breaking("0.1", "2")), 4, "ring");
  check_exact_pass(other);
  CHECK(cycles(other) != cycles(broken));
}

TEST_CASE("links of a switch that break, with little room, deliver everything once") {
  const Folder folder;
  const std::string both = links("node", "switch", 500,
                                 {{"switch_latency_ns", "50"},
                                  {"buffer_bytes", "4096"},
                                  {"error_rate", "0.2"},
                                  {"error_seed", "3"},
                                  {"most_retries", "100"}});
  const Json report = reduced(folder, machine(8, 8, both), 8, "direct");
  check_exact_pass(report);
  CHECK(of_link(report, "->switch0", "retries") > 0);
  CHECK(of_link(report, "switch0->", "retries") > 0);
  CHECK(without_host(run(folder, {"--processes", "2"})) == without_host(report));
}

TEST_CASE("a link that breaks everything is given up after its retries, and the run says which and when") {
  const Folder folder;
  folder.write("machine.toml", machine(2, 2, breaking("1", "1", "3")));
  compile(folder, matmul(32, 512, 32), {"--target", "machine.toml", "--chips", "2", "--shard", "row"});
  const Outcome o = rdusim({"run", "prog.bin", "--report", "report.json"}, folder);
  INFO(o.err);
  CHECK(o.status == 1);
  CHECK(errors_of(o) == "RDU7065");
  CHECK(o.err.find("came broken 4 times, and the link is given up") != std::string::npos);
  CHECK(text(parsed(folder.read("report.json")), "verdict") == "check-failed");
}

TEST_CASE("traces name switches, and a log keeps what came broken") {
  const Folder folder;
  reduced(folder, machine(4, 4, star("node", 500, 0)), 4, "direct", {"--trace", "run.rdulog", "--vcd", "run.vcd"});
  CHECK(rdusim_ok({"trace", "hot", "run.rdulog"}, folder).out.find("switch0->chip") != std::string::npos);
  const std::string vcd = folder.read("run.vcd");
  CHECK(vcd.find("_to_switch0 ") != std::string::npos);
  CHECK(vcd.find("_from_switch0 ") != std::string::npos);
  const Json first = reduced(folder, machine(4, 4, breaking("0.1")), 4, "ring", {"--trace", "run.rdulog"});
  const Json replayed = parsed(rdusim_ok({"trace", "replay", "run.rdulog", "--json"}, folder).out);
  CHECK(of_link(replayed, "link", "retries") == of_link(first, "link", "retries"));
}

TEST_CASE("what a switch needs is asked for, and what it has no use of is unknown") {
  const Folder folder;
  const auto refused = [&](const std::string& text, const std::string& code, const std::string& words) {
    folder.write("machine.toml", machine(4, 4, text));
    const Outcome o = rdusim({"targets", "machine.toml"}, folder);
    INFO(o.err);
    CHECK(o.status == 2);
    CHECK(errors_of(o) == code);
    CHECK(o.err.find(words) != std::string::npos);
  };
  refused(links("node", "switch", 500), "RDU2004 RDU2004", "'links[0].buffer_bytes' is missing");
  refused(links("node", "ring", 500, {{"buffer_bytes", "100"}}), "RDU2003", "'links[0].buffer_bytes'");
  refused(star("node", 500, 0, "16"), "RDU2006", "too little for a signal");
  refused(links("node", "ring", 500, {{"error_rate", "0.5"}}), "RDU2004 RDU2004", "most_retries");
  refused(breaking("1.5"), "RDU2006", "outside 0 to 1");
}

}  // namespace
}  // namespace rdusim::test::switch_test
