#include "sim/cli/tornado.h"

#include <fmt/format.h>

#include <filesystem>

#include "compiler/support/file.h"
#include "sim/load.h"

namespace rdusim::cli {

Result<std::string> machine_of_program(const std::string& program, const std::string& folder) {
  const auto loaded = open_program(program);
  if (!loaded) return loaded.diagnostics();
  const Header& header = loaded->program.header;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  // By its hash: the folder may be of another program's sweep, which is found out later.
  std::string file = fmt::format("{}/machine-{}.toml", folder, header.target_sha256.substr(0, 12));
  const auto written = write_file(file, header.target_text);
  if (!written) return written.diagnostics();
  return file;
}

TornadoChart tornado_of(const Sensitivity& table, const std::string& plan) {
  constexpr std::size_t most_bars = 30;
  TornadoChart chart;
  chart.title = fmt::format("{} of {}, each assumed number over its range", table.metric, plan);
  chart.x_label = table.metric;
  chart.middle = table.base.metric.value_or(0);
  const auto words = [](const EndOutcome& e) {
    return e.metric ? to_string(e.value)
                    : fmt::format("{}: {}", to_string(e.value), e.error.empty() ? e.verdict : e.error);
  };
  for (const SensitivityRow& r : table.rows) {
    if (chart.bars.size() == most_bars) break;
    if (r.effect == 0.0 && r.least.metric && r.most.metric) continue;
    chart.bars.push_back({r.key, r.least.metric, r.most.metric, words(r.least), words(r.most)});
  }
  return chart;
}

}  // namespace rdusim::cli
