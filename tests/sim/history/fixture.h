// A history in a temporary folder, and runs to put into it.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "sim/history/store.h"
#include "tests/sim/compare/reports.h"

namespace rdusim::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rdusim-history-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline History opened(const std::string& path, History::Open how = History::Open::create) {
  auto h = History::open(path, how);
  INFO(h.diagnostics().to_text());
  REQUIRE(h);
  return std::move(h).value();
}

// Commit n, one hour after the one before it.
inline Origin commit(int n, const std::string& host = "host1") {
  return {"c" + std::to_string(n), n == 0 ? "" : "c" + std::to_string(n - 1), "main", host, 1'700'000'000 + 3600 * n};
}

inline std::int64_t add(History& h, const ReportText& report, const Origin& origin, const std::string& name = "") {
  auto added = h.add({{name, report.read(), origin}});
  INFO(added.diagnostics().to_text());
  REQUIRE(added);
  return added->at(0).run;
}

inline void accept(History& h, std::int64_t run, const std::string& metric = "") {
  REQUIRE(h.accept({run}, metric, "because", "someone", 1'700'000'000));
}

}  // namespace rdusim::test
