// The README's session is real: its commands are run, and what they print is compared. With RDUSIM_UPDATE_README=1 the
// outputs are written into it instead.
#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace rdusim::readme_test {

namespace {

// What a shell prints for `command`, both streams, in the project's folder, with this build's rdusim first on the path.
std::string printed(const std::string& command, const std::filesystem::path& folder) {
  const auto binary = std::filesystem::path(RDUSIM_BINARY).parent_path().string();
  const std::string shell =
      "cd '" + folder.string() + "' && PATH='" + binary + "':\"$PATH\" NO_COLOR=1 sh -c '" + command + "' 2>&1";
  FILE* pipe = popen(shell.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string out;
  std::array<char, 4096> part{};
  while (const std::size_t n = fread(part.data(), 1, part.size(), pipe)) out.append(part.data(), n);
  pclose(pipe);
  return out;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the README's session prints what the README says") {
  const std::filesystem::path source = RDUSIM_SOURCE_DIR;
  // The session runs in a folder of its own that sees the examples, so that nothing is written into the sources.
  const auto folder = std::filesystem::temp_directory_path() / ("rdusim-readme-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::filesystem::create_directory_symlink(source / "examples", folder / "examples");

  std::istringstream lines(read(source / "README.md"));
  std::string told, real, line;
  std::size_t commands = 0;
  bool inside = false;
  while (std::getline(lines, line)) {
    const bool fence = line.rfind("```", 0) == 0;
    if (fence) inside = line == "```console";
    told += line + "\n";
    if (inside && !fence && line.rfind("$ ", 0) != 0) continue;  // told output: the real one stands below its command
    real += line + "\n";
    if (inside && !fence) {
      real += printed(line.substr(2), folder);
      ++commands;
    }
  }
  std::filesystem::remove_all(folder);
  CHECK(commands >= 4);
  if (std::getenv("RDUSIM_UPDATE_README") != nullptr) {
    std::ofstream(source / "README.md") << real;
    return;
  }
  CHECK(told == real);
}

}  // namespace rdusim::readme_test
