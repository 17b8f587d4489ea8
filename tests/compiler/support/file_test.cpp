#include "compiler/support/file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace rdusim::file_test {
namespace fs = std::filesystem;

namespace {

// A folder of its own that goes away with the test.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "rdusim-file-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator{}));
  }

 private:
  fs::path path_;
};

void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string get(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a file is read whole, up to its limit and not a byte more") {
  const Folder folder;
  put(folder / "a", std::string("x\0y\n", 4));
  CHECK(*read_file(folder / "a", 4) == std::string("x\0y\n", 4));
  const auto refused = read_file(folder / "a", 3);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.diagnostics().contains(Code::RDU1024));
}

TEST_CASE("what is no regular file is refused, and reading it never waits") {
  const Folder folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  for (const std::string& path :
       {folder / "fifo", folder / ".", folder / "absent", std::string("/dev/zero"), std::string()}) {
    CAPTURE(path);
    const auto refused = read_file(path, 1 << 20);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.diagnostics().contains(Code::RDU1001));
  }
  CHECK(read_file(folder / "fifo", 10).diagnostics().list().front().message.find("FIFO") != std::string::npos);
}

TEST_CASE("a file far larger than the limit is refused before memory is taken") {
  const Folder folder;
  put(folder / "sparse", "");
  fs::resize_file(folder / "sparse", std::uintmax_t{1} << 40);
  CHECK(read_file(folder / "sparse", 1 << 20).diagnostics().contains(Code::RDU1024));
}

TEST_CASE("a file is written whole, its mode is kept, and nothing is left beside it") {
  const Folder folder;
  REQUIRE(write_file(folder / "a", "one").ok());
  CHECK(get(folder / "a") == "one");
  fs::permissions(folder / "a", fs::perms::owner_read | fs::perms::owner_write);
  REQUIRE(write_file(folder / "a", std::string(3'000'000, 'z')).ok());
  CHECK(get(folder / "a") == std::string(3'000'000, 'z'));
  CHECK((fs::status(folder / "a").permissions() & fs::perms::all) == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(folder.entries() == 1);
}

TEST_CASE("a write that fails leaves the old file and nothing beside it") {
  const Folder folder;
  fs::create_directory(folder / "d");
  for (const std::string& path : {folder / "d", folder / "absent/a", std::string("/dev/full"), std::string()}) {
    CAPTURE(path);
    const auto refused = write_file(path, "text");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.diagnostics().contains(Code::RDU5008));
  }
  CHECK(folder.entries() == 1);
}

TEST_CASE("a device is written in place, and a FIFO without a reader is refused without waiting") {
  const Folder folder;
  CHECK(write_file("/dev/null", "text").ok());
  CHECK(fs::is_character_file("/dev/null"));
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK_FALSE(write_file(folder / "fifo", "text").ok());
  CHECK(fs::is_fifo(folder / "fifo"));
}

TEST_CASE("a symbolic link stays one, and what it stands for is replaced") {
  const Folder folder;
  put(folder / "real", "old");
  fs::create_symlink("real", folder / "link");
  REQUIRE(write_file(folder / "link", "new").ok());
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(get(folder / "real") == "new");
}

TEST_CASE("a reader sees the old bytes or the new ones while a file is replaced") {
  const Folder folder;
  put(folder / "a", "old");
  std::ifstream opened(folder / "a");
  REQUIRE(write_file(folder / "a", "new").ok());
  std::string seen;
  opened >> seen;
  CHECK(seen == "old");
}

TEST_CASE("SHA-256 is that of FIPS 180") {
  CHECK(sha256(std::string_view("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256(std::string_view("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::array<std::byte, 3> abc = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  CHECK(sha256(std::span<const std::byte>(abc)) == sha256(std::string_view("abc")));
}

TEST_CASE("UTF-8 is strict") {
  for (const char* text :
       {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"}) {
    CAPTURE(text);
    CHECK(is_utf8(text));
  }
  for (const char* text : {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x98", "\xff", "a\xc3(", "\xf0\x80\x80\xaf"}) {
    CAPTURE(text);
    CHECK_FALSE(is_utf8(text));
  }
}

TEST_CASE(
    "the nearest name is found where it is near, of equals the one that begins most alike, and none where all are "
    "far") {
  constexpr std::array<std::string_view, 4> names = {"shape", "dtype", "role", "fill"};
  CHECK(nearest("shpae", names) == "shape");
  CHECK(nearest("Shape", names) == "shape");
  CHECK(nearest("dtypes", names) == "dtype");
  CHECK(nearest("rile", names) == "role");
  CHECK(nearest("weights", names).empty());
  constexpr std::array<std::string_view, 3> machines = {"sn10", "sn30", "sn40l"};
  CHECK(nearest("sn40", machines) == "sn40l");
  CHECK(nearest("sn20", machines) == "sn10");
  CHECK(nearest("", names).empty());
  CHECK(nearest(std::string(100000, 's'), names).empty());
}

}  // namespace rdusim::file_test
