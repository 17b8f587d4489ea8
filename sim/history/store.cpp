#include "sim/history/store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <unordered_map>

#include "compiler/support/file.h"
#include "compiler/support/json.h"
#include "compiler/support/utf8.h"

namespace rdusim {

std::string to_string(const Series& s) {
  return fmt::format("{} on {}, {} chip{}", s.name, s.target, s.chips, s.chips == 1 ? "" : "s");
}

namespace {

constexpr std::int32_t application_id = 0x72647573;  // "rdus", in the header of the file

constexpr const char* schema_1 = R"(
CREATE TABLE series(id INTEGER PRIMARY KEY, name TEXT NOT NULL, target TEXT NOT NULL, chips INTEGER NOT NULL,
  UNIQUE(name, target, chips));
CREATE TABLE metrics(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit TEXT NOT NULL, timed INTEGER NOT NULL,
  better INTEGER NOT NULL);
CREATE TABLE runs(id INTEGER PRIMARY KEY, series INTEGER NOT NULL REFERENCES series(id), time INTEGER NOT NULL,
  commit_id TEXT NOT NULL, parent TEXT NOT NULL, branch TEXT NOT NULL, host TEXT NOT NULL, version TEXT NOT NULL,
  program TEXT NOT NULL, program_sha256 TEXT NOT NULL, target_sha256 TEXT NOT NULL, options TEXT NOT NULL,
  verdict TEXT NOT NULL, report_sha256 TEXT NOT NULL, UNIQUE(series, commit_id, report_sha256));
CREATE TABLE samples(run INTEGER NOT NULL REFERENCES runs(id), metric INTEGER NOT NULL REFERENCES metrics(id), value,
  PRIMARY KEY(run, metric)) WITHOUT ROWID;
CREATE TABLE acceptances(id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs(id), metric TEXT NOT NULL,
  reason TEXT NOT NULL, author TEXT NOT NULL, time INTEGER NOT NULL);
)";

// What the gate found of a run, and what the compiler decided; runs of one program share their decisions.
constexpr const char* schema_2 = R"(
CREATE TABLE decisions(sha256 TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;
ALTER TABLE runs ADD COLUMN decisions TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN gate INTEGER NOT NULL DEFAULT 0;
CREATE INDEX samples_by_metric ON samples(metric, run);
)";

constexpr const char* migrations[] = {schema_1, schema_2};  // [n] leads from version n to n + 1
static_assert(std::size(migrations) == history_schema_version);

}  // namespace

struct History::Database {
  std::string path;
  sqlite3* handle = nullptr;
  int wait_ms = 0;

  ~Database() { sqlite3_close_v2(handle); }

  Diagnostics failure(int code) const {
    Diagnostics d;
    const char* message = handle == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle);
    switch (code & 0xFF) {
      case SQLITE_BUSY:
      case SQLITE_LOCKED:
        d.error(Code::RDU8037, path, "another writer has held it for {} ms", wait_ms);
        break;
      case SQLITE_CORRUPT:
      case SQLITE_NOTADB:
      case SQLITE_ERROR:  // a table or column that is not there
      case SQLITE_MISMATCH:
      case SQLITE_CONSTRAINT:
      case SQLITE_FORMAT:
        d.error(Code::RDU8035, path, "it is damaged, or no history of rdusim: {}", message);
        break;
      default:
        d.error(Code::RDU8038, path, "{}", message);
    }
    return d;
  }

  Diagnostics foreign(const std::string& why) const {
    Diagnostics d;
    d.error(Code::RDU8035, path, "{}", why);
    return d;
  }

  Diagnostics execute(const char* sql) {
    const int code = sqlite3_exec(handle, sql, nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? Diagnostics() : failure(code);
  }
};

namespace {

// A prepared statement; what goes wrong is kept until it is asked for.
class Statement {
 public:
  Statement(sqlite3* db, const char* sql) { code_ = sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr); }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int at, std::int64_t v) { return keep(sqlite3_bind_int64(statement_, at, v)); }
  Statement& bind(int at, const std::string& v) {
    return keep(sqlite3_bind_text64(statement_, at, v.data(), v.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  }
  Statement& bind(int at, const Quantity& q) {
    if (const auto* whole = std::get_if<std::int64_t>(&q)) return bind(at, *whole);
    return keep(sqlite3_bind_double(statement_, at, std::get<double>(q)));
  }

  // True: a row is there. False: no more, or a fault.
  bool next() {
    if (code_ != SQLITE_OK && code_ != SQLITE_ROW) return false;
    code_ = sqlite3_step(statement_);
    return code_ == SQLITE_ROW;
  }
  // For a statement without rows.
  bool run() {
    while (next()) {
    }
    const bool ok = code_ == SQLITE_DONE;
    if (ok) {
      sqlite3_reset(statement_);
      code_ = SQLITE_OK;
    }
    return ok;
  }
  void again() {
    sqlite3_reset(statement_);
    if (code_ == SQLITE_DONE || code_ == SQLITE_ROW) code_ = SQLITE_OK;
  }

  std::int64_t whole(int column) { return sqlite3_column_int64(statement_, column); }
  std::string text(int column) {
    const auto* bytes = sqlite3_column_text(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    std::string s(bytes == nullptr ? "" : reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    if (!is_plain(s)) hostile_ = true;
    return s;
  }
  Quantity quantity(int column) {
    switch (sqlite3_column_type(statement_, column)) {
      case SQLITE_INTEGER:
        return whole(column);
      case SQLITE_FLOAT:
        return sqlite3_column_double(statement_, column);
      default:
        return std::numeric_limits<double>::quiet_NaN();
    }
  }

  bool ok() const { return !hostile_ && (code_ == SQLITE_OK || code_ == SQLITE_DONE || code_ == SQLITE_ROW); }
  int code() const { return hostile_ ? SQLITE_CORRUPT : code_; }

 private:
  Statement& keep(int code) {
    if (code != SQLITE_OK && code_ == SQLITE_OK) code_ = code;
    return *this;
  }
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
  bool hostile_ = false;  // a text that a terminal must not see
};

// Ends without a trace unless it is committed.
template <class Database>
class Transaction {
 public:
  explicit Transaction(Database& db) : db_(db), problems_(db.execute("BEGIN IMMEDIATE")) {
    open_ = !problems_.has_errors();
  }
  ~Transaction() {
    if (open_) sqlite3_exec(db_.handle, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  const Diagnostics& problems() const { return problems_; }
  Diagnostics commit() {
    Diagnostics d = db_.execute("COMMIT");
    open_ = d.has_errors();
    return d;
  }

 private:
  Database& db_;
  Diagnostics problems_;
  bool open_ = false;
};

std::optional<std::int64_t> pragma(sqlite3* db, const char* sql, int& code) {
  Statement s(db, sql);
  if (s.next()) return s.whole(0);
  code = s.code();
  return std::nullopt;
}

}  // namespace

History::History(std::unique_ptr<Database> database) : database_(std::move(database)) {}
History::History(History&&) noexcept = default;
History& History::operator=(History&&) noexcept = default;
History::~History() = default;

Result<History> History::open(const std::string& path, Open how, int wait_ms) {
  Diagnostics d;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const bool exists = std::filesystem::exists(status);
  if (!exists && how != Open::create) {
    d.error(Code::RDU1001, path, "there is no such file");
    return d;
  }
  if (exists && !std::filesystem::is_regular_file(status)) {
    d.error(Code::RDU1001, path, "it is not a regular file");
    return d;
  }
  auto db = std::make_unique<Database>();
  db->path = path;
  db->wait_ms = wait_ms;
  const bool empty = !exists || std::filesystem::file_size(path, error) == 0;
  if (empty && how != Open::create) return db->foreign("it is empty");
  const int flags = how == Open::read     ? SQLITE_OPEN_READONLY
                    : how == Open::create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                          : SQLITE_OPEN_READWRITE;
  // An absolute path, so that no name is taken for a URI or for ":memory:".
  const std::string absolute = std::filesystem::absolute(path, error).string();
  if (const int code = sqlite3_open_v2(absolute.c_str(), &db->handle, flags, nullptr); code != SQLITE_OK)
    return db->failure(code);
  sqlite3_extended_result_codes(db->handle, 0);
  sqlite3_busy_timeout(db->handle, wait_ms);
  sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);

  const auto version_of = [&]() -> Result<std::int64_t> {
    int code = SQLITE_OK;
    // In this order: another writer may make the tables and set both numbers, at once, between any two of these.
    const auto tables = pragma(db->handle, "SELECT count(*) FROM sqlite_master", code);
    const auto version = pragma(db->handle, "PRAGMA user_version", code);
    const auto id = pragma(db->handle, "PRAGMA application_id", code);
    if (!id || !version || !tables) return db->failure(code);
    if (*tables == 0 && *version == 0 && how == Open::create) return std::int64_t{0};
    if (*id != application_id || *version < 1) return db->foreign("it is an SQLite file, but no history of rdusim");
    if (*version > history_schema_version) {
      Diagnostics newer;
      newer.error(Code::RDU8036, path, "its schema is version {}, and this rdusim knows versions up to {}", *version,
                  history_schema_version);
      return newer;
    }
    return *version;
  };
  auto version = version_of();
  if (!version) return version.diagnostics();
  if (*version < history_schema_version) {
    if (how == Open::read) {
      // Brought to this version by who may write; a reader who may not leaves it as it is and says so.
      db.reset();
      auto writer = open(path, Open::write, wait_ms);
      if (!writer) return writer.diagnostics();
      return open(path, Open::read, wait_ms);
    }
    Transaction transaction(*db);
    if (transaction.problems().has_errors()) return transaction.problems();
    version = version_of();  // another writer may have been here while this one waited
    if (!version) return version.diagnostics();
    for (std::int64_t v = *version; v < history_schema_version; ++v) {
      const Diagnostics step = db->execute(migrations[v]);
      if (step.has_errors()) return step;
    }
    const Diagnostics stamped = db->execute(
        fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", application_id, history_schema_version)
            .c_str());
    if (stamped.has_errors()) return stamped;
    const Diagnostics done = transaction.commit();
    if (done.has_errors()) return done;
  }
  Statement check(db->handle, "PRAGMA quick_check(1)");
  if (!check.next()) return db->failure(check.code());
  if (check.text(0) != "ok") return db->foreign("it is damaged: " + check.text(0));
  return History(std::move(db));
}

namespace {

// The id behind a unique key, made where it is not there.
std::optional<std::int64_t> id_of(Statement& insert, Statement& select) {
  if (!insert.run()) return std::nullopt;
  const bool there = select.next();
  const std::int64_t id = there ? select.whole(0) : 0;
  select.again();
  if (!there) return std::nullopt;
  return id;
}

}  // namespace

Result<std::vector<History::Added>> History::add(const std::vector<Addition>& additions) {
  sqlite3* db = database_->handle;
  Transaction transaction(*database_);
  if (transaction.problems().has_errors()) return transaction.problems();
  Statement put_series(db, "INSERT OR IGNORE INTO series(name, target, chips) VALUES(?1, ?2, ?3)");
  Statement get_series(db, "SELECT id FROM series WHERE name = ?1 AND target = ?2 AND chips = ?3");
  Statement find_run(db, "SELECT id FROM runs WHERE series = ?1 AND commit_id = ?2 AND report_sha256 = ?3");
  Statement put_run(db,
                    "INSERT INTO runs(series, time, commit_id, parent, branch, host, version, program, program_sha256, "
                    "target_sha256, options, verdict, report_sha256, decisions) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  Statement put_decisions(db, "INSERT OR IGNORE INTO decisions(sha256, json) VALUES(?1, ?2)");
  Statement put_metric(db, "INSERT OR IGNORE INTO metrics(name, unit, timed, better) VALUES(?1, ?2, ?3, ?4)");
  Statement get_metric(db, "SELECT id FROM metrics WHERE name = ?1");
  Statement put_sample(db, "INSERT INTO samples(run, metric, value) VALUES(?1, ?2, ?3)");
  const auto fault = [&]() -> Diagnostics { return database_->failure(sqlite3_errcode(db)); };
  std::vector<Added> added;
  for (const auto& [name, report, origin] : additions) {
    const std::string& called = name.empty() ? report.program : name;
    const std::int64_t chips = report.chips;
    put_series.bind(1, called).bind(2, report.target).bind(3, chips);
    get_series.bind(1, called).bind(2, report.target).bind(3, chips);
    const auto series = id_of(put_series, get_series);
    if (!series) return fault();
    find_run.bind(1, *series).bind(2, origin.commit).bind(3, report.sha256);
    const bool there = find_run.next();
    const std::int64_t known = there ? find_run.whole(0) : 0;
    if (!find_run.ok()) return fault();
    find_run.again();
    if (there) {
      added.push_back({known, false});
      continue;
    }
    JsonObject object;
    for (const auto& [key, value] : report.decisions) object.emplace_back(key, Json(value));
    const std::string decisions = to_text(Json(std::move(object)), true);
    const std::string decisions_sha = sha256(decisions);
    if (!put_decisions.bind(1, decisions_sha).bind(2, decisions).run()) return fault();
    put_run.bind(1, *series).bind(2, origin.time).bind(3, origin.commit).bind(4, origin.parent);
    put_run.bind(5, origin.branch).bind(6, origin.host).bind(7, report.version).bind(8, report.program);
    put_run.bind(9, report.program_sha256).bind(10, report.target_sha256).bind(11, report.options);
    if (!put_run.bind(12, report.verdict).bind(13, report.sha256).bind(14, decisions_sha).run()) return fault();
    const std::int64_t run = sqlite3_last_insert_rowid(db);
    for (const Metric& m : fold_chips(report.metrics)) {
      put_metric.bind(1, m.name).bind(2, m.unit).bind(3, std::int64_t{m.exactness == Exactness::timed});
      put_metric.bind(4, static_cast<std::int64_t>(m.better));
      get_metric.bind(1, m.name);
      const auto metric = id_of(put_metric, get_metric);
      if (!metric || !put_sample.bind(1, run).bind(2, *metric).bind(3, m.value).run()) return fault();
    }
    added.push_back({run, true});
  }
  const Diagnostics done = transaction.commit();
  if (done.has_errors()) return done;
  return added;
}

Result<std::vector<Series>> History::series() {
  Statement s(database_->handle, "SELECT id, name, target, chips FROM series ORDER BY name, target, chips");
  std::vector<Series> all;
  while (s.next()) {
    const std::int64_t chips = s.whole(3);
    if (chips < 1 || chips > std::numeric_limits<std::uint32_t>::max())
      return database_->foreign("it is damaged: a series has no number of chips");
    all.push_back({s.whole(0), s.text(1), s.text(2), static_cast<std::uint32_t>(chips)});
  }
  if (!s.ok()) return database_->failure(s.code());
  return all;
}

Result<std::vector<RecordedRun>> History::runs(std::optional<std::int64_t> series) {
  Statement s(database_->handle,
              "SELECT id, series, time, commit_id, parent, branch, host, version, program, program_sha256, "
              "target_sha256, options, verdict, gate FROM runs WHERE ?1 = 0 OR series = ?1 ORDER BY time, id");
  s.bind(1, series.value_or(0));
  std::vector<RecordedRun> all;
  while (s.next()) {
    RecordedRun r;
    r.id = s.whole(0), r.series = s.whole(1);
    r.origin = {s.text(3), s.text(4), s.text(5), s.text(6), s.whole(2)};
    r.version = s.text(7), r.program = s.text(8), r.program_sha256 = s.text(9), r.target_sha256 = s.text(10);
    r.options = s.text(11), r.verdict = s.text(12);
    const std::int64_t gate = s.whole(13);
    r.gate = gate == 1 ? GateMark::failed : gate == 2 ? GateMark::passed : GateMark::none;
    all.push_back(std::move(r));
  }
  if (!s.ok()) return database_->failure(s.code());
  return all;
}

namespace {

MetricKind kind_of(Statement& s, int from) {
  MetricKind m{s.text(from), s.text(from + 1), s.whole(from + 2) != 0 ? Exactness::timed : Exactness::exact, {}};
  const std::int64_t better = s.whole(from + 3);
  m.better = better == 1 ? Better::higher : better == 2 ? Better::neither : Better::lower;
  return m;
}

}  // namespace

Result<std::vector<Metric>> History::metrics(std::int64_t run) {
  Statement s(database_->handle,
              "SELECT m.name, m.unit, m.timed, m.better, s.value FROM samples s JOIN metrics m ON m.id = s.metric "
              "WHERE s.run = ?1 ORDER BY m.name");
  s.bind(1, run);
  std::vector<Metric> all;
  while (s.next()) {
    const MetricKind k = kind_of(s, 0);
    all.push_back({k.name, k.unit, k.exactness, k.better, s.quantity(4)});
  }
  if (!s.ok()) return database_->failure(s.code());
  return all;
}

Result<std::vector<MetricKind>> History::metric_kinds() {
  Statement s(database_->handle, "SELECT name, unit, timed, better FROM metrics ORDER BY name");
  std::vector<MetricKind> all;
  while (s.next()) all.push_back(kind_of(s, 0));
  if (!s.ok()) return database_->failure(s.code());
  return all;
}

Result<std::vector<Acceptance>> History::acceptances() {
  Statement s(database_->handle, "SELECT id, run, metric, reason, author, time FROM acceptances ORDER BY id");
  std::vector<Acceptance> all;
  while (s.next()) all.push_back({s.whole(0), s.whole(1), s.text(2), s.text(3), s.text(4), s.whole(5)});
  if (!s.ok()) return database_->failure(s.code());
  return all;
}

Result<std::vector<Sample>> History::samples(std::int64_t series, const std::string& metric) {
  Statement s(database_->handle,
              "SELECT r.id, s.value FROM metrics m JOIN samples s ON s.metric = m.id JOIN runs r ON r.id = s.run "
              "WHERE m.name = ?2 AND r.series = ?1 ORDER BY r.time, r.id");
  s.bind(1, series).bind(2, metric);
  std::vector<Sample> all;
  while (s.next()) all.push_back({s.whole(0), s.quantity(1)});
  if (!s.ok()) return database_->failure(s.code());
  return all;
}

Result<std::vector<History::AnySample>> History::all_samples() {
  std::unordered_map<std::int64_t, std::size_t> places;  // of metrics by id
  Statement kinds(database_->handle, "SELECT id FROM metrics ORDER BY name");
  while (kinds.next()) places.emplace(kinds.whole(0), places.size());
  if (!kinds.ok()) return database_->failure(kinds.code());
  Statement s(database_->handle, "SELECT run, metric, value FROM samples ORDER BY run, metric");
  std::vector<AnySample> all;
  while (s.next()) {
    const auto metric = places.find(s.whole(1));
    if (metric == places.end()) return database_->foreign("it is damaged: a sample is of no metric");
    all.push_back({s.whole(0), metric->second, s.quantity(2)});
  }
  if (!s.ok()) return database_->failure(s.code());
  return all;
}

Result<std::vector<std::pair<std::string, std::string>>> History::decisions(std::int64_t run) {
  Statement s(database_->handle,
              "SELECT d.json FROM runs r JOIN decisions d ON d.sha256 = r.decisions WHERE r.id = ?1");
  s.bind(1, run);
  std::vector<std::pair<std::string, std::string>> all;
  if (s.next()) {
    const auto json = parse_json(s.text(0), database_->path, Code::RDU8035);
    if (!json) return json.diagnostics();
    if (json->as_object() != nullptr) {
      for (const auto& [name, value] : *json->as_object()) {
        if (value.as_string() != nullptr) all.emplace_back(name, *value.as_string());
      }
    }
  }
  if (!s.ok()) return database_->failure(s.code());
  return all;
}

Result<bool> History::accept(const std::vector<std::int64_t>& runs, const std::string& metric,
                             const std::string& reason, const std::string& author, std::int64_t time) {
  Transaction transaction(*database_);
  if (transaction.problems().has_errors()) return transaction.problems();
  Statement put(database_->handle, "INSERT INTO acceptances(run, metric, reason, author, time) VALUES(?,?,?,?,?)");
  for (const std::int64_t run : runs) {
    if (!put.bind(1, run).bind(2, metric).bind(3, reason).bind(4, author).bind(5, time).run())
      return database_->failure(put.code());
  }
  const Diagnostics done = transaction.commit();
  if (done.has_errors()) return done;
  return true;
}

Result<bool> History::mark(const std::vector<std::pair<std::int64_t, GateMark>>& marks) {
  Transaction transaction(*database_);
  if (transaction.problems().has_errors()) return transaction.problems();
  Statement put(database_->handle, "UPDATE runs SET gate = ?2 WHERE id = ?1");
  for (const auto& [run, gate] : marks) {
    if (!put.bind(1, run).bind(2, static_cast<std::int64_t>(gate)).run()) return database_->failure(put.code());
  }
  const Diagnostics done = transaction.commit();
  if (done.has_errors()) return done;
  return true;
}

}  // namespace rdusim
