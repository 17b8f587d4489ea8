// What a shell sees: exit statuses, one message a fault, and never half a file.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"

namespace rdusim::test::statuses_test {
namespace {

// One error with `code`, status `status`, nothing on standard output, and no file but those that were there.
void check_refused(const Folder& folder, const std::vector<std::string>& arguments, int status,
                   const std::string& code) {
  std::string line = "rdusim";
  for (const std::string& a : arguments) line += " " + a;
  const auto before = folder.names();
  const Outcome outcome = rdusim(arguments, folder);
  INFO(line, "\n", outcome.out, outcome.err);
  CHECK(outcome.status == status);
  CHECK(errors_of(outcome) == code);
  CHECK(outcome.out.empty());
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') <= 3);  // one line, and what to do
  CHECK(folder.names() == before);
}

TEST_CASE("a program that is cut off anywhere is refused") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "1"});
  const std::string bytes = folder.read("prog.bin");
  REQUIRE(bytes.size() > 64 * 100);
  for (std::size_t size = 0; size < bytes.size(); size += size < 4096 ? 64 : 448) {
    CAPTURE(size);
    folder.write("cut.bin", std::string_view(bytes).substr(0, size));
    const Outcome outcome = rdusim({"check", "cut.bin"}, folder);
    CHECK(outcome.status == 2);
    CHECK(errors_of(outcome) == "RDU5003");
    CHECK(outcome.out.empty());
  }
  folder.write("cut.bin", std::string_view(bytes).substr(0, bytes.size() - 1));
  check_refused(folder, {"run", "cut.bin", "--report", "report.json"}, 2, "RDU5003");
}

TEST_CASE("a program with a flipped bit or a byte too many is refused") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "2", "--shard", "row"});
  const std::string bytes = folder.read("prog.bin");
  for (std::size_t bit = 3; bit < bytes.size() * 8; bit += 8191) {  // a prime: every bit of a byte is tried
    CAPTURE(bit);
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    folder.write("damaged.bin", damaged);
    const Outcome outcome = rdusim({"run", "damaged.bin", "--report", "report.json"}, folder);
    INFO(outcome.err);
    CHECK(outcome.status == 2);
    CHECK(errors_of(outcome).size() == 7);  // one
    CHECK(errors_of(outcome).substr(0, 4) == "RDU5");
    CHECK(outcome.out.empty());
    CHECK_FALSE(folder.has("report.json"));
  }
  for (std::size_t byte = 0; byte < 64; ++byte) {  // the head, where magic number and version are
    CAPTURE(byte);
    std::string damaged = bytes;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 0x10);
    folder.write("damaged.bin", damaged);
    const Outcome outcome = rdusim({"check", "damaged.bin"}, folder);
    CHECK(outcome.status == 2);
    CHECK(errors_of(outcome).size() == 7);
  }
  folder.write("longer.bin", bytes + std::string(1, '\0'));
  const Outcome longer = rdusim({"check", "longer.bin"}, folder);
  CHECK(longer.status == 2);
}

TEST_CASE("a foreign, empty or missing file, and a folder, are refused") {
  const Folder folder;
  folder.write("text.bin", "name = \"not a program\"\n" + std::string(1000, ' '));
  folder.write("empty.bin", "");
  for (const std::string command : {"run", "check", "show"}) {
    CAPTURE(command);
    check_refused(folder, {command, "text.bin"}, 2, "RDU5001");
    check_refused(folder, {command, "missing.bin"}, 2, "RDU1001");
    check_refused(folder, {command, "."}, 2, "RDU1001");
    check_refused(folder, {command, "/dev/null"}, 2, "RDU1001");
    const Outcome empty = rdusim({command, "empty.bin"}, folder);
    CHECK(empty.status == 2);
    CHECK(errors_of(empty).size() == 7);
  }
  check_refused(folder, {"assemble", "text.bin", "-o", "out.bin"}, 2, "RDU5006");
  check_refused(folder, {"compile", "missing.toml", "-o", "out.bin"}, 2, "RDU1001");
  check_refused(folder, {"compile", "empty.bin/x.toml", "-o", "out.bin"}, 2, "RDU1001");
}

TEST_CASE("a program for one target is refused on another, with both meshes") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "1", "--target", "sn40l"});
  const Outcome outcome = rdusim({"run", "prog.bin", "--target", "wormhole"}, folder);
  CHECK(outcome.status == 2);
  CHECK(errors_of(outcome) == "RDU5009");
  CHECK(outcome.err.find("40 x 26") != std::string::npos);
  CHECK(outcome.err.find("8 x 10") != std::string::npos);
  CHECK(outcome.out.empty());
}

TEST_CASE("a request that cannot be met has status 2, its code, and leaves no file") {
  const Folder folder;
  folder.write("workload.toml", Matmul{}.toml());
  folder.write("typo.toml", Matmul{}.toml() + "[tensors.z]\nrolle = \"input\"\n");
  compile(folder, Matmul{}, {"--chips", "2", "--shard", "row"});
  const auto compile_with = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"compile", "workload.toml", "-o", "out.bin"});
    return options;
  };
  check_refused(folder, compile_with({"--chips", "3", "--shard", "row"}), 2, "RDU4102");
  check_refused(folder, compile_with({"--chips", "2", "--shard", "column"}), 2, "RDU4103");
  check_refused(folder, compile_with({"--chips", "0"}), 2, "RDU4108");
  check_refused(folder, compile_with({"--chips", "17"}), 2, "RDU2009");
  check_refused(folder, compile_with({"--target", "sn41"}), 2, "RDU2001");
  check_refused(folder, compile_with({"--stop-after", "lunch"}), 2, "RDU4115");
  check_refused(folder, compile_with({"--chips", "many"}), 2, "RDU6005");
  check_refused(folder, {"compile", "workload.toml", "-o", "nowhere/out.bin"}, 2, "RDU5008");
  check_refused(folder, {"run", "prog.bin", "--chips", "4"}, 2, "RDU6001");
  check_refused(folder, {"run", "prog.bin", "--set", "q=x.npy"}, 2, "RDU6003");
  check_refused(folder, {"run", "prog.bin", "--frobnicate"}, 2, "RDU6005");
  check_refused(folder, {"frobnicate"}, 2, "RDU6005");
  check_refused(folder, {}, 2, "RDU6005");
  check_refused(folder, {"run"}, 2, "RDU6005");
  check_refused(folder, {"explain", "RDU0000"}, 2, "RDU9002");
  const Outcome typo = rdusim({"compile", "typo.toml", "-o", "out.bin"}, folder);
  CHECK(typo.status == 2);
  const std::string sound = Matmul{}.toml();
  const auto line = std::count(sound.begin(), sound.end(), '\n') + 2;
  CHECK(typo.err.find("typo.toml:" + std::to_string(line) + ":1: error RDU1004") != std::string::npos);
  CHECK(typo.err.find("'role'") != std::string::npos);
  CHECK_FALSE(folder.has("out.bin"));
}

TEST_CASE("an error says where, even if that is only the command line") {
  const Folder folder;
  folder.write("workload.toml", Matmul{}.toml());
  const std::vector<std::vector<std::string>> requests = {
      {"compile", "workload.toml", "-o", "out.bin", "--target", "sn41"},
      {"compile", "workload.toml", "-o", "out.bin", "--chips", "0"},
      {"targets", "sn41"},
      {"explain", "RDU0000"},
      {"compile", "workload.toml"},
  };
  for (const auto& request : requests) {
    const Outcome outcome = rdusim(request, folder);
    INFO(outcome.err);
    CHECK(outcome.status == 2);
    CHECK(outcome.err.find(": error RDU") != std::string::npos);
  }
}

TEST_CASE("a report that cannot be written is told, and what was found is not lost") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "2", "--shard", "row"});
  const Outcome outcome = rdusim({"run", "prog.bin", "--report", "nowhere/report.json"}, folder);
  CHECK(outcome.status == 2);
  CHECK(errors_of(outcome) == "RDU5008");
  CHECK(outcome.out.find("verdict     pass") != std::string::npos);
}

TEST_CASE("an old output survives a compile that fails, and is replaced whole by one that works") {
  const Folder folder;
  folder.write("workload.toml", Matmul{}.toml());
  folder.write("prog.bin", "old");
  check_refused(folder, {"compile", "workload.toml", "-o", "prog.bin", "--chips", "3", "--shard", "row"}, 2, "RDU4102");
  CHECK(folder.read("prog.bin") == "old");
  rdusim_ok({"compile", "workload.toml", "-o", "prog.bin", "--chips", "2", "--shard", "row"}, folder);
  rdusim_ok({"check", "prog.bin"}, folder);
  CHECK(folder.names() == std::vector<std::string>{"prog.bin", "workload.toml"});
}

TEST_CASE("a run that reaches --max-cycles stops there, without a verdict on the program, with status 3") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "2", "--shard", "row"});
  const std::int64_t whole = number(run(folder), "cycles", "simulated");
  const Outcome stopped =
      rdusim({"run", "prog.bin", "--max-cycles", std::to_string(whole / 2), "--report", "report.json"}, folder);
  CHECK(stopped.status == 3);
  CHECK(errors_of(stopped) == "RDU7027");
  const Json report = parsed(folder.read("report.json"));
  CHECK(text(report, "verdict") == "limit");
  CHECK(number(report, "cycles", "simulated") == whole / 2);
  CHECK(at(report, "cycles", "residual").is_null());
  for (const Json& c : list(report, "checks")) CHECK(text(c, "status") != "fail");
  // A limit that is not reached changes nothing.
  const Json enough = run(folder, {"--max-cycles", std::to_string(whole + 1)});
  check_exact_pass(enough);
  CHECK(number(enough, "cycles", "simulated") == whole);
}

TEST_CASE("a run that reaches --max-seconds stops then, and what was learnt so far is reported, with status 3") {
  const Folder folder;
  compile(folder, matmul(4096, 4096, 4096), {"--chips", "1"});  // tens of seconds with values
  const Outcome outcome = rdusim({"run", "prog.bin", "--max-seconds", "0.7", "--report", "report.json", "--check",
                                  "none", "--trace", "run.rdulog"},
                                 folder);
  CHECK(outcome.status == 3);
  CHECK(errors_of(outcome) == "RDU7028");
  CHECK(outcome.out.find("verdict     limit") != std::string::npos);
  const Json report = parsed(folder.read("report.json"));
  CHECK(text(report, "verdict") == "limit");
  CHECK(number(report, "cycles", "simulated") > 0);
  CHECK_FALSE(list(report, "flight").empty());
  // Its trace is whole up to there, and says the same.
  const Outcome replay = rdusim({"trace", "replay", "run.rdulog", "-o", "again.json"}, folder);
  CHECK(replay.status == 3);
  CHECK(errors_of(replay) == "RDU7028");
  CHECK(number(parsed(folder.read("again.json")), "cycles", "simulated") == number(report, "cycles", "simulated"));
}

TEST_CASE("a run that needs more than --max-memory is not begun, has a report, and status 3") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "2", "--shard", "row"});
  const Outcome outcome = rdusim({"run", "prog.bin", "--max-memory", "1KB", "--report", "report.json"}, folder);
  CHECK(outcome.status == 3);
  CHECK(errors_of(outcome) == "RDU6004");
  const Json report = parsed(folder.read("report.json"));
  CHECK(text(report, "verdict") == "limit");
  CHECK(number(report, "cycles", "simulated") == 0);
  CHECK(text(report, "program", "sha256").size() == 64);
  // What is enough changes nothing.
  check_exact_pass(run(folder, {"--max-memory", "4GiB"}));
}

TEST_CASE("Ctrl-C ends a run with status 130, and what was learnt so far is printed") {
  const Folder folder;
  compile(folder, matmul(4096, 4096, 4096), {"--chips", "1"});  // tens of seconds with values
  Running running({"run", "prog.bin", "--report", "report.json", "--check", "none"}, folder);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  running.send(SIGINT);
  const Outcome outcome = running.finish();
  CHECK(outcome.status == 130);
  CHECK(outcome.err.find("interrupted") != std::string::npos);
  CHECK(errors_of(outcome).empty());
  CHECK(outcome.out.find("verdict     limit") != std::string::npos);
  const Json report = parsed(folder.read("report.json"));
  CHECK(text(report, "verdict") == "limit");
  // And what went on last.
  CHECK_FALSE(list(report, "flight").empty());
}

TEST_CASE("Ctrl-C ends a compile with status 130 and leaves no file") {
  const Folder folder;
  folder.write("workload.toml", matmul(32, 32 * 256, 32).toml());
  Running running({"compile", "workload.toml", "-o", "prog.bin", "--target", "sn50", "--chips", "256"}, folder);
  running.send(SIGINT);
  CHECK(running.finish().status == 130);
  CHECK(folder.names() == std::vector<std::string>{"workload.toml"});
}

TEST_CASE("every command has --help with an example, on standard output") {
  const Folder folder;
  for (const std::string command : {"compile", "run", "assemble", "check", "show", "targets", "explain", "compare",
                                    "history", "dashboard", "sweep", "trace", "view"}) {
    CAPTURE(command);
    const Outcome outcome = rdusim_ok({command, "--help"}, folder);
    CHECK(outcome.out.find("Example:") != std::string::npos);
    CHECK(outcome.out.find(std::string("rdusim ") + command) != std::string::npos);
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("no colour and no progress line in a pipe") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "2", "--shard", "row"});
  const Outcome outcome = rdusim_ok({"run", "prog.bin"}, folder);
  CHECK(outcome.out.find('\x1b') == std::string::npos);
  CHECK(outcome.err.empty());
}

}  // namespace
}  // namespace rdusim::test::statuses_test
