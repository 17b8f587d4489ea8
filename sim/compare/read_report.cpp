#include "sim/compare/read_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "compiler/support/file.h"
#include "compiler/support/units.h"
#include "compiler/support/utf8.h"
#include "sim/compare/chip_names.h"

namespace rdusim {

double to_double(const Quantity& q) {
  return std::visit([](auto v) { return static_cast<double>(v); }, q);
}

std::string to_string(const Quantity& q) {
  return std::visit([](auto v) { return fmt::format("{}", v); }, q);
}

namespace {

constexpr std::array verdicts = {"pass",       "check-failed",        "circular-wait", "starvation",
                                 "lost-token", "missing-participant", "limit"};
// Names are joined to those of metrics; beyond this a report is not one of ours.
constexpr std::size_t name_limit = 1024;
constexpr std::size_t decisions_limit = 1'000'000;

// A column of a list of rows: which key makes which metric.
struct Column {
  const char* key;
  const char* unit;
  Better better;
};

class Reader {
 public:
  Reader(const Json& root, const std::string& path) : root_(root) { file_.path = path; }

  Result<ReportFile> read() {
    if (root_.as_object() == nullptr) {
      problem(root_, "a report is an object, not {}", root_.type_name());
      return problems_;
    }
    head();
    cycles();
    if (const Json* macs = object(root_, "macs")) {
      add("macs.", *macs, {"useful", "", Better::neither});
      add("macs.", *macs, {"padding", "", Better::lower});
    }
    add("", root_, {"tokens_per_s", "1/s", Better::higher});
    rows("collectives", {{"cycles", "cycles", Better::lower},
                         {"bytes", "bytes", Better::neither},
                         {"sent_bytes", "bytes", Better::lower},
                         {"contributions", "", Better::neither}});
    rows("stages", {{"cycles", "cycles", Better::lower},
                    {"firings", "", Better::neither},
                    {"busy", "cycles", Better::neither},
                    {"idle", "cycles", Better::neither}});
    rows("buffers", {{"depth_pages", "pages", Better::neither},
                     {"peak_pages", "pages", Better::lower},
                     {"bytes", "bytes", Better::neither}});
    rows("links",
         {{"bytes", "bytes", Better::lower}, {"busy_cycles", "cycles", Better::lower}, {"retries", "", Better::lower}});
    rows("memories", {{"read_bytes", "bytes", Better::lower},
                      {"write_bytes", "bytes", Better::lower},
                      {"peak_bytes", "bytes", Better::lower}});
    host();
    page_rate();
    if (const Json* decisions = object(root_, "decisions")) flatten(*decisions, "", 0);
    unique();
    if (problems_.has_errors()) return problems_;
    return std::move(file_);
  }

 private:
  template <class... Args>
  void problem(const Json& at, fmt::format_string<Args...> format, Args&&... args) {
    problems_.error(Code::RDU8001, fmt::format("{}:{}:{}", file_.path, at.line, at.column), "{}",
                    fmt::format(format, std::forward<Args>(args)...));
  }

  const Json* required(const Json& in, const char* key) {
    const Json* v = in.find(key);
    if (v == nullptr) problem(in, "a report has a key '{}' here", key);
    return v;
  }

  // The object or array behind a key; null where there is none or it is null, which is allowed.
  const Json* object(const Json& in, const char* key) {
    const Json* v = in.find(key);
    if (v == nullptr || v->is_null()) return nullptr;
    if (v->as_object() != nullptr) return v;
    problem(*v, "'{}' is an object, not {}", key, v->type_name());
    return nullptr;
  }

  std::optional<std::string> text(const Json& in, const char* key, bool needed = true) {
    const Json* v = needed ? required(in, key) : in.find(key);
    if (v == nullptr || (!needed && v->is_null())) return std::nullopt;
    const std::string* s = v->as_string();
    if (s == nullptr) {
      problem(*v, "'{}' is a string, not {}", key, v->type_name());
    } else if (s->size() > name_limit || !is_plain(*s)) {
      problem(*v, "'{}' is printable and at most {} bytes long", key, name_limit);
    } else {
      return *s;
    }
    return std::nullopt;
  }

  void head() {
    const auto schema = text(root_, "schema");
    if (schema && *schema != "rdusim.report/1") {
      problem(*root_.find("schema"), "the schema is '{}', and this version reads 'rdusim.report/1'", *schema);
    }
    if (const Json* rdusim = object(root_, "rdusim")) file_.version = text(*rdusim, "version", false).value_or("");
    if (const Json* program = required(root_, "program")) {
      file_.program = text(*program, "name").value_or("");
      file_.program_sha256 = text(*program, "sha256", false).value_or("");
      file_.target = text(*program, "target").value_or("");
      file_.target_sha256 = text(*program, "target_sha256", false).value_or("");
      if (const Json* chips = required(*program, "chips")) {
        const auto n = chips->as_uint64();
        if (n && *n >= 1 && *n <= std::numeric_limits<std::uint32_t>::max())
          file_.chips = static_cast<std::uint32_t>(*n);
        else
          problem(*chips, "'chips' is a whole number of chips");
      }
    }
    if (const Json* options = root_.find("options")) file_.options = to_text(*options, true);
    if (const auto verdict = text(root_, "verdict")) {
      if (std::find(verdicts.begin(), verdicts.end(), *verdict) == verdicts.end())
        problem(*root_.find("verdict"), "'{}' is no verdict", *verdict);
      file_.verdict = *verdict;
    }
  }

  void cycles() {
    const Json* all = required(root_, "cycles");
    if (all == nullptr) return;
    if (required(*all, "simulated") != nullptr) add("cycles.", *all, {"simulated", "cycles", Better::lower}, true);
    add("cycles.", *all, {"predicted", "cycles", Better::neither});
    add("cycles.", *all, {"lower_bound", "cycles", Better::neither});
    const Json* split = object(*all, "causes");
    const Json* causes = split == nullptr ? nullptr : object(*split, "simulated");
    if (causes == nullptr) return;
    for (const auto& [name, value] : *causes->as_object())
      number("causes." + name, value, "cycles", Better::lower, Exactness::exact);
  }

  void host() {
    const Json* host = object(root_, "host");
    if (host == nullptr) return;
    for (const Column& c :
         {Column{"wall_s", "s", Better::lower}, Column{"machine_s", "s", Better::lower},
          Column{"events", "", Better::lower}, Column{"events_per_s", "1/s", Better::higher},
          Column{"simulated_cycles_per_s", "1/s", Better::higher}, Column{"peak_rss_bytes", "bytes", Better::lower}}) {
      const Json* v = host->find(c.key);
      if (v != nullptr && !v->is_null()) number(std::string("host.") + c.key, *v, c.unit, c.better, Exactness::timed);
    }
  }

  // Pages handed on a second of the machine's time: the speed that scripts/bench watches.
  void page_rate() {
    const Json* host = root_.find("host");
    const Json* seconds = host == nullptr ? nullptr : host->find("machine_s");
    const Json* buffers = root_.find("buffers");
    const auto time = seconds == nullptr ? std::nullopt : seconds->as_number();
    if (!time || !(*time > 0) || buffers == nullptr || buffers->as_array() == nullptr) return;
    double pages = 0;
    for (const Json& row : *buffers->as_array()) {
      const Json* pushed = row.find("pushed");
      if (pushed != nullptr) pages += pushed->as_number().value_or(0);
    }
    const double rate = pages / *time;
    if (rate > 0 && std::isfinite(rate))
      file_.metrics.push_back({"host.page_handoffs_per_s", "1/s", Exactness::timed, Better::higher, rate});
  }

  void rows(const char* list, const std::vector<Column>& columns) {
    const Json* all = root_.find(list);
    if (all == nullptr || all->is_null()) return;
    if (all->as_array() == nullptr) {
      problem(*all, "'{}' is an array, not {}", list, all->type_name());
      return;
    }
    for (const Json& row : *all->as_array()) {
      if (row.as_object() == nullptr) {
        problem(row, "a row of '{}' is an object, not {}", list, row.type_name());
        continue;
      }
      const auto name = text(row, "name");
      if (!name) continue;
      const std::string prefix = fmt::format("{}.{}.", list, *name);
      for (const Column& c : columns) add(prefix, row, c);
      if (const Json* stall = object(row, "stall")) {
        for (const auto& [cause, value] : *stall->as_object())
          number(prefix + "stall." + cause, value, "cycles", Better::lower, Exactness::exact);
      }
    }
  }

  void add(const std::string& prefix, const Json& in, const Column& c, bool needed = false) {
    const Json* v = in.find(c.key);
    if (v == nullptr || (v->is_null() && !needed)) return;
    number(prefix + c.key, *v, c.unit, c.better, Exactness::exact);
  }

  void number(std::string name, const Json& v, const char* unit, Better better, Exactness exactness) {
    if (name.size() > 2 * name_limit || !is_plain(name)) {
      problem(v, "a name is not printable, or too long");
      return;
    }
    Metric m{std::move(name), unit, exactness, better, {}};
    if (const auto whole = v.as_int64()) {
      m.value = *whole;
    } else if (const auto real = v.as_number(); real && std::isfinite(*real) && !v.as_uint64()) {
      m.value = *real;
    } else {
      problem(v, "'{}' is a number that 64 bits hold, not {}", m.name, v.type_name());
      return;
    }
    if (to_double(m.value) < 0) {
      problem(v, "'{}' is negative", m.name);
      return;
    }
    file_.metrics.push_back(std::move(m));
  }

  // Every leaf is a decision; a row of a list goes by its name.
  void flatten(const Json& v, const std::string& path, int depth) {
    if (depth > 8 || file_.decisions.size() >= decisions_limit) {
      problem(v, "'decisions' is deeper or longer than any that rdusim writes");
      return;
    }
    const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
    if (const JsonObject* members = v.as_object()) {
      for (const auto& [key, value] : *members) {
        if (depth > 0 && key == "name") continue;
        flatten(value, below(key), depth + 1);
      }
    } else if (const JsonArray* elements = v.as_array()) {
      for (std::size_t i = 0; i < elements->size(); ++i) {
        const Json* name = (*elements)[i].find("name");
        const std::string* s = name == nullptr ? nullptr : name->as_string();
        flatten((*elements)[i], below(s != nullptr ? *s : std::to_string(i)), depth + 1);
      }
    } else {
      const std::string* s = v.as_string();
      std::string value = s != nullptr ? *s : to_text(v, true);
      if (!is_plain(path) || !is_plain(value) || path.size() > 4 * name_limit)
        problem(v, "a decision is not printable, or its name too long");
      else
        file_.decisions.emplace_back(path, std::move(value));
    }
  }

  void unique() {
    std::set<std::string_view> seen;
    for (const Metric& m : file_.metrics) {
      if (!seen.insert(m.name).second) problem(root_, "there are two of '{}'", m.name);
    }
    std::set<std::string_view> decided;
    for (const auto& [name, value] : file_.decisions) {
      if (!decided.insert(name).second) problem(root_, "there are two decisions '{}'", name);
    }
  }

  const Json& root_;
  ReportFile file_;
  Diagnostics problems_;
};

}  // namespace

Result<ReportFile> parse_report(std::string_view text, const std::string& path) {
  auto json = parse_json(text, path, Code::RDU8001, {64, report_bytes_limit});
  if (!json) return json.diagnostics();
  auto file = Reader(*json, path).read();
  if (file) file->sha256 = sha256(text);
  return file;
}

Result<ReportFile> read_report(const std::string& path) {
  auto text = read_file(path, report_bytes_limit);
  if (!text) return text.diagnostics();
  return parse_report(*text, path);
}

Result<std::vector<std::string>> report_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  auto at = std::filesystem::recursive_directory_iterator(folder, error);
  for (; !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    if (at->path().extension() == ".json" && at->is_regular_file(error))
      names.push_back(std::filesystem::relative(at->path(), folder, error).generic_string());
  }
  if (error) {
    Diagnostics d;
    d.error(Code::RDU1001, folder, "it cannot be read: {}", error.message());
    return d;
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

// The last dot before the metric's own key: names hold dots, keys do not (but for "stall.link").
std::size_t key_of(std::string_view metric) {
  std::size_t dot = metric.rfind('.');
  if (dot == std::string_view::npos) return metric.size();
  constexpr std::string_view stall = ".stall";
  if (dot >= stall.size() && metric.substr(dot - stall.size(), stall.size()) == stall) dot -= stall.size();
  return dot;
}

// What lasts until an end, or is the fullest, is not added up.
bool takes_greatest(std::string_view key) {
  return key == ".cycles" || key == ".peak_pages" || key == ".depth_pages" || key == ".contributions" ||
         key == ".busy_cycles" || key == ".peak_bytes";
}

}  // namespace

std::string folded_name(std::string_view metric) {
  const std::size_t dot = key_of(metric);
  const std::string_view key = metric.substr(dot);
  if (metric.starts_with("links.")) return "links" + std::string(key);
  if (metric.starts_with("memories.chip")) {
    const std::size_t memory = metric.find('.', std::string_view("memories.").size());
    return memory >= dot ? std::string(metric) : "memories" + std::string(metric.substr(memory));
  }
  if (!metric.starts_with("stages.") && !metric.starts_with("buffers.")) return std::string(metric);
  return std::string(without_chips(metric.substr(0, dot))) + std::string(key);
}

std::vector<Metric> fold_chips(const std::vector<Metric>& metrics) {
  std::map<std::string, Metric> folded;
  for (const Metric& m : metrics) {
    std::string name = folded_name(m.name);
    const auto [at, fresh] = folded.try_emplace(name, m);
    Metric& sum = at->second;
    if (fresh) {
      sum.name = std::move(name);
      continue;
    }
    const std::int64_t* a = std::get_if<std::int64_t>(&sum.value);
    const std::int64_t* b = std::get_if<std::int64_t>(&m.value);
    if (takes_greatest(std::string_view(sum.name).substr(key_of(sum.name)))) {
      if (to_double(m.value) > to_double(sum.value)) sum.value = m.value;
    } else if (const auto whole = a != nullptr && b != nullptr ? checked_add(*a, *b) : std::nullopt) {
      sum.value = *whole;
    } else {
      sum.value = to_double(sum.value) + to_double(m.value);
    }
  }
  std::vector<Metric> out;
  for (auto& [name, metric] : folded) out.push_back(std::move(metric));
  return out;
}

}  // namespace rdusim
