// What a user's files, disk and pipes can do to rdusim: one clear line, the right status, and nothing half-written.
// Holds for root as well, whom permissions do not stop.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "tests/system/json_path.h"
#include "tests/system/scenario.h"
#include "traces/fst.h"

namespace rdusim::test::bad_input_test {
namespace {

std::vector<std::string> with_files(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

void check_one_line(const Outcome& outcome, int status, const std::string& code) {
  INFO(outcome.err);
  CHECK(outcome.status == status);
  CHECK(errors_of(outcome) == code);
  CHECK(outcome.out.empty());
}

// A file system that is full, as a limit on the size of files makes it.
TEST_CASE("a disk that is full is told, the old output stays, and nothing half-written is left") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "2", "--shard", "row"});
  const std::string before = folder.read("prog.bin");
  const auto files = with_files({"prog.bin", "workload.toml"});
  check_one_line(shell("ulimit -f 4; $rdusim compile workload.toml -o prog.bin --chips 2 --shard row", folder), 2,
                 "RDU5008");
  CHECK(folder.read("prog.bin") == before);
  CHECK(folder.names() == files);
  // What the run found is not lost with its report.
  const Outcome run = shell("ulimit -f 4; $rdusim run prog.bin --report report.json", folder);
  CHECK(run.status == 2);
  CHECK(errors_of(run) == "RDU5008");
  CHECK(run.out.find("verdict     pass") != std::string::npos);
  CHECK(folder.names() == files);
  // Nor with its trace, whose writer may be another's.
  std::vector<std::string> traces = {"a.rdulog", "a.vcd", "a.pftrace", "a.json"};
  if (fst_available()) traces.push_back("a.fst");
  for (const std::string& trace : traces) {
    CAPTURE(trace);
    const Outcome traced = shell("ulimit -f 4; $rdusim run prog.bin --trace " + trace, folder);
    INFO(traced.err);
    CHECK(traced.status == 2);
    CHECK(errors_of(traced) == "RDU5008");
    CHECK(traced.err.find("File too large") != std::string::npos);
    CHECK(traced.out.find("verdict     pass") != std::string::npos);
    CHECK(folder.names() == files);
  }
}

TEST_CASE("standard output on a full device is told") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "2", "--shard", "row"});
  for (const std::string command : {"show prog.bin --json", "run prog.bin", "check prog.bin", "targets sn40l",
                                    "compile workload.toml -o - --chips 2 --shard row"}) {
    CAPTURE(command);
    check_one_line(shell("$rdusim " + command + " > /dev/full", folder), 2, "RDU5008");
  }
}

TEST_CASE("a reader that goes away after one byte ends the output, without a crash or a message") {
  const Folder folder;
  compile(folder, matmul(64, 4096, 4096), {"--chips", "1"});
  for (const std::string command :
       {"show prog.bin --json", "show prog.bin", "targets sn40l", "run prog.bin --timing-only"}) {
    CAPTURE(command);
    const Outcome outcome = shell("$rdusim " + command + " | head -c 1; exit ${PIPESTATUS[0]}", folder);
    INFO(outcome.err);
    CHECK(outcome.out.size() == 1);
    CHECK(outcome.err.empty());
    CHECK((outcome.status == 0 || outcome.status == 128 + SIGPIPE));
  }
}

TEST_CASE("an output folder that takes no file, is none, or is not there is told") {
  const Folder folder;
  folder.write("workload.toml", Matmul{}.toml());
  folder.write("file", "a file");
  compile(folder, Matmul{}, {"--chips", "1"});
  const auto files = folder.names();
  for (const std::string output : {"/proc/prog.bin", "file/prog.bin", "nowhere/prog.bin", ".", "/"}) {
    CAPTURE(output);
    check_one_line(rdusim({"compile", "workload.toml", "-o", output}, folder), 2, "RDU5008");
    const Outcome run = rdusim({"run", "prog.bin", "--report", output}, folder);
    CHECK(run.status == 2);
    CHECK(errors_of(run) == "RDU5008");
    CHECK(folder.names() == files);
  }
}

TEST_CASE("a FIFO is refused at once, as input of any kind") {
  const Folder folder;
  folder.write("workload.toml", Matmul{}.toml());
  for (const std::string name : {"fifo", "fifo.toml", "fifo.npy", "fifo.safetensors"})
    REQUIRE(mkfifo(folder.file(name).c_str(), 0600) == 0);
  check_one_line(rdusim({"compile", "fifo", "-o", "prog.bin"}, folder), 2, "RDU1001");
  check_one_line(rdusim({"compile", "workload.toml", "-o", "prog.bin", "--target", "./fifo.toml"}, folder), 2,
                 "RDU1001");
  check_one_line(rdusim({"run", "fifo"}, folder), 2, "RDU1001");
  check_one_line(rdusim({"show", "fifo"}, folder), 2, "RDU1001");
  check_one_line(rdusim({"assemble", "fifo", "-o", "prog.bin"}, folder), 2, "RDU1001");
  const std::string fill = "fill = { pattern = { modulus = 61, shift = 30 } }";
  for (const std::string file : {"{ file = \"fifo.npy\" }", "{ file = \"fifo.safetensors\", tensor = \"x\" }"}) {
    std::string toml = Matmul{}.toml();
    folder.write("operand.toml", toml.replace(toml.find(fill), fill.size(), "fill = " + file));
    check_one_line(rdusim({"compile", "operand.toml", "-o", "prog.bin"}, folder), 2, "RDU1001");
  }
  CHECK_FALSE(folder.has("prog.bin"));
}

TEST_CASE("an operand behind a symbolic link that leaves the folder is refused, and one that stays is read") {
  const Folder outside;
  const Folder folder;
  // A tensor of 1 x 64 int8 and what numpy writes before it.
  std::string header = "{'descr': '|i1', 'fortran_order': False, 'shape': (1, 64), }";
  header += std::string(118 - header.size() - 1, ' ') + "\n";
  const std::string npy =
      std::string("\x93NUMPY\x01\x00", 8) + std::string("\x76\x00", 2) + header + std::string(64, '\1');
  outside.write("x.npy", npy);
  folder.write("here.npy", npy);
  REQUIRE(symlink(outside.file("x.npy").c_str(), folder.file("away.npy").c_str()) == 0);
  REQUIRE(symlink(outside.path().c_str(), folder.file("gate").c_str()) == 0);
  REQUIRE(symlink("here.npy", folder.file("near.npy").c_str()) == 0);
  const std::string fill = "fill = { pattern = { modulus = 61, shift = 30 } }";
  const auto compile_with = [&](const std::string& file) {
    std::string toml = matmul(1, 64, 32).toml();
    folder.write("operand.toml", toml.replace(toml.find(fill), fill.size(), "fill = { file = \"" + file + "\" }"));
    return rdusim({"compile", "operand.toml", "-o", "prog.bin"}, folder);
  };
  for (const std::string file : {"away.npy", "gate/x.npy", "../x.npy", "/etc/hostname.npy"}) {
    CAPTURE(file);
    const Outcome outcome = compile_with(file);
    INFO(outcome.err);
    CHECK(outcome.status == 2);
    CHECK(errors_of(outcome).size() == 7);
    CHECK_FALSE(folder.has("prog.bin"));
  }
  CHECK(compile_with("here.npy").status == 0);
  CHECK(compile_with("near.npy").status == 0);
}

TEST_CASE("a program of a million stages that are none is refused, in seconds and in bounded memory") {
  const Folder folder;
  compile(folder, Matmul{}, {"--chips", "1"});
  const std::string schema = text(parsed(rdusim_ok({"show", "prog.bin", "--json"}, folder).out), "schema");
  std::string json = "{\"schema\":\"" + schema + "\",\"stages\":[{}";
  for (int i = 1; i < 1'000'000; ++i) json += ",{}";
  folder.write("many.json", json + "]}");
  const Outcome outcome = rdusim({"assemble", "many.json", "-o", "many.bin"}, folder);
  CHECK(outcome.status == 2);
  CHECK(outcome.err.find("RDU5007") != std::string::npos);
  CHECK(outcome.err.size() < 20'000);
  CHECK(outcome.cpu_s < 20);
  CHECK(outcome.peak_bytes < std::uint64_t{2} << 30);
  CHECK_FALSE(folder.has("many.bin"));
}

}  // namespace
}  // namespace rdusim::test::bad_input_test
