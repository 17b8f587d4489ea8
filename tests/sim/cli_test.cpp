// The command as scripts see it: what it says where, and the status that it ends with.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "compiler/support/json.h"

namespace rdusim::cli_test {
namespace {

struct Outcome {
  int status = -1;
  std::string out, err;
};

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A folder of its own, gone at the end.
struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "rdusim-cli-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const char* name) const { return path + "/" + name; }
  std::string path;
};

// `out`: where standard output goes instead of a file ("/dev/full"), or empty.
Outcome rdusim(const std::vector<std::string>& arguments, const std::string& input = "/dev/null",
               const std::string& out = "") {
  const Folder folder;
  const std::string out_path = out.empty() ? folder / "out" : out;
  const std::string err_path = folder / "err";
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto attach = [](const std::string& path, int flags, int to) {
      const int fd = open(path.c_str(), flags, 0600);
      if (fd < 0 || dup2(fd, to) < 0) _exit(99);
    };
    attach(input, O_RDONLY, 0);
    attach(out_path, O_WRONLY | O_CREAT | (out.empty() ? O_TRUNC : 0), 1);
    attach(err_path, O_WRONLY | O_CREAT | O_TRUNC, 2);
    std::vector<char*> words{const_cast<char*>(RDUSIM_BINARY)};
    for (const std::string& a : arguments) words.push_back(const_cast<char*>(a.c_str()));
    words.push_back(nullptr);
    execv(RDUSIM_BINARY, words.data());
    _exit(99);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), out.empty() ? slurp(out_path) : std::string(), slurp(err_path)};
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr std::array commands = {"compile", "run", "assemble", "check", "show", "targets", "explain", "model"};

TEST_CASE("help of every command is on standard output, with an example, status 0") {
  for (const char* command : commands) {
    CAPTURE(command);
    const Outcome o = rdusim({command, "--help"});
    CHECK(o.status == 0);
    CHECK(holds(o.out, "Example:\n  rdusim "));
    CHECK(holds(o.out, "rdusim " + std::string(command) + " "));
    CHECK(o.err.empty());
  }
  const Outcome o = rdusim({"--help"});
  CHECK(o.status == 0);
  for (const char* command : commands) CHECK(holds(o.out, command));
  CHECK(holds(rdusim({"--version"}).out, "rdusim "));
}

TEST_CASE("usage errors are RDU6005 on standard error, status 2") {
  for (const auto& words :
       std::vector<std::vector<std::string>>{{},
                                             {"comple"},
                                             {"compile"},
                                             {"compile", "w.toml"},
                                             {"compile", "w.toml", "-o", "p", "--chips", "-1"},
                                             {"compile", "w.toml", "-o", "p", "--chips", "two"},
                                             {"compile", "w.toml", "-o", "p", "--shard", "diagonal"},
                                             {"compile", "w.toml", "-o", "p", "--collective", "star"},
                                             {"compile", "w.toml", "-o", "p", "--uneven", "--pad"},
                                             {"run", "p", "--check", "twice"},
                                             {"run", "p", "--network", "slow"},
                                             {"run", "p", "--set", "w"},
                                             {"run", "p", "--max-memory", "8 elephants"},
                                             {"run", "p", "--max-seconds", "-3"},
                                             {"run", "p", "--max-cycles", "99999999999999999999999"},
                                             {"run", "p", "--processes", "0"},
                                             {"run", "p", "--timing-only", "--save", "y=y.npy"},
                                             {"show", "p", "--json", "--dot"},
                                             {"explain"},
                                             {"run", "p", "--no-such-option"}}) {
    CAPTURE(words);
    const Outcome o = rdusim(words);
    CHECK(o.status == 2);
    CHECK(o.out.empty());
    CHECK(holds(o.err, "error RDU6005 usage"));
  }
  CHECK(holds(rdusim({"run", "p", "--colect-violations"}).err, "did you mean '--collect-violations'?"));
  CHECK(holds(rdusim({"comple"}).err, "did you mean 'compile'?"));
}

TEST_CASE("a repeatable option takes one value at a time, so that the program may follow it") {
  const Outcome o = rdusim({"run", "--set", "w=w.npy", "--inject", "page_drop@x", "missing.bin"});
  CHECK(o.status == 2);
  CHECK(holds(o.err, "missing.bin: error RDU1001"));
}

TEST_CASE("explain knows every code by number and by name, and says so of those it does not know") {
  const Outcome by_code = rdusim({"explain", "RDU4102"});
  CHECK(by_code.status == 0);
  CHECK(holds(by_code.out, "axis-not-divisible"));
  CHECK(holds(by_code.out, "rule: "));
  CHECK(holds(by_code.out, "cure: "));
  CHECK(rdusim({"explain", "4102"}).out == by_code.out);
  CHECK(rdusim({"explain", "axis-not-divisible"}).out == by_code.out);
  const Outcome unknown = rdusim({"explain", "axis-not-divisble"});
  CHECK(unknown.status == 2);
  CHECK(holds(unknown.err, "RDU9002"));
  CHECK(holds(unknown.err, "did you mean 'axis-not-divisible'?"));
  const Outcome list = rdusim({"explain", "--list", "--json"});
  const auto json = parse_json(list.out, "explain", Code::RDU8001);
  REQUIRE(json);
  CHECK(json->as_array()->size() > 100);
}

TEST_CASE("targets lists the shipped machines, and one with its numbers and their sources") {
  const Outcome list = rdusim({"targets"});
  CHECK(list.status == 0);
  CHECK(holds(list.out, "sn40l"));
  CHECK(holds(list.out, "wormhole"));
  const Outcome one = rdusim({"targets", "sn40l"});
  CHECK(one.status == 0);
  CHECK(holds(one.out, "assumed"));
  CHECK(holds(one.out, "published"));
  CHECK(parse_json(rdusim({"targets", "sn40l", "--json"}).out, "targets", Code::RDU8001));
  CHECK(rdusim({"targets", "sn41l"}).status == 2);
}

TEST_CASE("a file that is missing, a directory, empty or no program is refused with one line and status 2") {
  const Folder folder;
  std::ofstream(folder / "empty").close();
  std::ofstream(folder / "text") << "name = \"not a program\"\n";
  std::ofstream(folder / "short") << std::string("RDUS", 4);
  for (const char* command : {"run", "check", "show"}) {
    for (const std::string& file :
         {folder / "missing", folder.path, folder / "empty", folder / "text", folder / "short"}) {
      CAPTURE(command);
      CAPTURE(file);
      const Outcome o = rdusim({command, file});
      CHECK(o.status == 2);
      CHECK(o.out.empty());
      CHECK(holds(o.err, ": error RDU"));
    }
  }
  CHECK(rdusim({"compile", folder / "missing", "-o", folder / "p"}).status == 2);
  CHECK(rdusim({"assemble", folder / "text", "-o", folder / "p"}).status == 2);
  CHECK_FALSE(std::filesystem::exists(folder / "p"));
  // From standard input just the same.
  CHECK(rdusim({"check", "-"}, folder / "text").status == 2);
}

TEST_CASE("results that cannot be written are told, and a reader that went away is none of our concern") {
  const Outcome full = rdusim({"explain", "--list"}, "/dev/null", "/dev/full");
  CHECK(full.status == 2);
  CHECK(holds(full.err, "RDU5008"));

  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    execl(RDUSIM_BINARY, RDUSIM_BINARY, "explain", "--list", nullptr);
    _exit(99);
  }
  close(ends[0]);
  close(ends[1]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("there is no colour where there is no terminal") {
  CHECK_FALSE(holds(rdusim({"run", "missing"}).err, "\x1b"));
  CHECK_FALSE(holds(rdusim({"targets"}).out, "\x1b"));
}

}  // namespace
}  // namespace rdusim::cli_test
