#include "head/identity.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <troupe/errors.hpp>

#include "config/token.hpp"

namespace troupe::head {
namespace {

constexpr std::int64_t kVersion = 2;  // 1 had a table of events beside meta, which nothing read

[[noreturn]] void refuse(std::string message) {
  raise({.kind = Failure::Kind::Refused, .message = std::move(message)});
}

std::string random_cluster() { return config::format_token(config::random_token()).substr(0, 16); }

/// The database while it is open: one transaction, which is undone where it does not reach
/// commit().
class Database {
 public:
  explicit Database(std::string file) : file_(std::move(file)) {
    const int result = sqlite3_open(file_.c_str(), &database_);
    if (result != SQLITE_OK) {
      const std::string why = sqlite3_errmsg(database_);
      sqlite3_close(database_);
      refuse(fmt::format("the head's database {}: opening: {}", file_, why));
    }
  }
  Database(const Database&) = delete;
  ~Database() { sqlite3_close(database_); }

  void begin() const {
    // Without a write-ahead log, so that no other file is left beside the database once it is
    // closed.
    run("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; BEGIN IMMEDIATE;CREATE TABLE IF "
        "NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);",
        "it cannot be set up");
    const auto version = meta("version");
    if (!version.empty() && std::stoll(version) > kVersion) {
      refuse(fmt::format(
          "the head's database {} has version {}, this program knows {}: use the newer troupe",
          file_, version, kVersion));
    }
    run("DROP TABLE IF EXISTS event", "it cannot be set up");
    set_meta("version", std::to_string(kVersion));
  }
  void commit() const { run("COMMIT", "writing"); }

  std::string meta(const char* key) const {
    auto* select = prepare("SELECT value FROM meta WHERE key = ?");
    sqlite3_bind_text(select, 1, key, -1, SQLITE_STATIC);
    std::string value;
    if (sqlite3_step(select) == SQLITE_ROW)
      value = reinterpret_cast<const char*>(sqlite3_column_text(select, 0));
    sqlite3_finalize(select);
    return value;
  }

  void set_meta(const char* key, const std::string& value) const {
    auto* upsert = prepare(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value");
    sqlite3_bind_text(upsert, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_text(upsert, 2, value.c_str(), -1, SQLITE_STATIC);
    const int result = sqlite3_step(upsert);
    sqlite3_finalize(upsert);
    check(result, "writing meta");
  }

 private:
  void check(int result, const char* doing) const {
    if (result == SQLITE_OK || result == SQLITE_DONE || result == SQLITE_ROW) return;
    refuse(fmt::format("the head's database {}: {}: {}", file_, doing, sqlite3_errmsg(database_)));
  }
  void run(const char* sql, const char* doing) const {
    check(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr), doing);
  }
  sqlite3_stmt* prepare(const char* sql) const {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr), "reading");
    return statement;
  }

  std::string file_;
  sqlite3* database_ = nullptr;
};

}  // namespace

Identity::Lock::~Lock() {
  if (fd_ >= 0) close(fd_);
}

void Identity::Lock::take(const std::string& directory) {
  const auto file = directory + "/lock";
  fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0)
    refuse(
        fmt::format("{}: {}; name another directory with --state-dir", file, std::strerror(errno)));
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    refuse(
        fmt::format("another head uses {}: stop it with `troupe stop`, or name another directory "
                    "with --state-dir",
                    directory));
  }
}

Identity::Identity(const std::string& directory) : cluster_(random_cluster()) {
  if (directory.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    refuse(
        fmt::format("{}: {}; name another directory with --state-dir", directory, error.message()));
  lock_.take(directory);
  const Database database{directory + "/cluster.db"};
  database.begin();
  if (const auto known = database.meta("cluster"); !known.empty()) cluster_ = known;
  if (const auto last = database.meta("epoch"); !last.empty()) epoch_ = std::stoull(last) + 1;
  database.set_meta("cluster", cluster_);
  database.set_meta("epoch", std::to_string(epoch_));
  database.commit();
}

}  // namespace troupe::head
