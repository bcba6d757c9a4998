#include "head/journal.hpp"

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

constexpr std::int64_t kVersion = 1;

[[noreturn]] void refuse(std::string message) {
  raise({.kind = Failure::Kind::Refused, .message = std::move(message)});
}

std::string random_cluster() { return config::format_token(config::random_token()).substr(0, 16); }

}  // namespace

struct Journal::Impl {
  std::string file;
  sqlite3* database = nullptr;
  sqlite3_stmt* insert = nullptr;
  int lock = -1;
  bool open_transaction = false;

  ~Impl() {
    sqlite3_finalize(insert);
    sqlite3_close(database);
    if (lock >= 0) close(lock);
  }

  void check(int result, const char* doing) const {
    if (result == SQLITE_OK || result == SQLITE_DONE || result == SQLITE_ROW) return;
    refuse(fmt::format("the head's database {}: {}: {}", file, doing, sqlite3_errmsg(database)));
  }

  void run(const char* sql, const char* doing) const {
    check(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), doing);
  }

  sqlite3_stmt* prepare(const char* sql) const {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v2(database, sql, -1, &statement, nullptr), "reading");
    return statement;
  }

  std::string meta(const char* key) const {
    auto* select = prepare("SELECT value FROM meta WHERE key = ?");
    sqlite3_bind_text(select, 1, key, -1, SQLITE_STATIC);
    std::string value;
    if (sqlite3_step(select) == SQLITE_ROW) value = reinterpret_cast<const char*>(sqlite3_column_text(select, 0));
    sqlite3_finalize(select);
    return value;
  }

  void set_meta(const char* key, const std::string& value) const {
    auto* upsert = prepare("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value");
    sqlite3_bind_text(upsert, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_text(upsert, 2, value.c_str(), -1, SQLITE_STATIC);
    const int result = sqlite3_step(upsert);
    sqlite3_finalize(upsert);
    check(result, "writing meta");
  }

  void take_lock(const std::string& directory) {
    const auto file = directory + "/lock";
    lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) refuse(fmt::format("{}: {}; name another directory with --state-dir", file, std::strerror(errno)));
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
      refuse(fmt::format("another head uses {}: stop it with `troupe stop`, or name another directory with --state-dir",
                         directory));
    }
  }

  /// Begins the transaction of all that is written when a head starts: each one waits for the disk.
  void prepare_schema() {
    run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN IMMEDIATE;"
        "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);"
        "CREATE TABLE IF NOT EXISTS event (seq INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, kind TEXT NOT NULL,"
        "                                  subject INTEGER NOT NULL, detail TEXT NOT NULL);",
        "it cannot be set up");
    const auto version = meta("version");
    if (!version.empty() && std::stoll(version) > kVersion) {
      refuse(fmt::format("the head's database has version {}, this program knows {}: use the newer troupe", version,
                         kVersion));
    }
    set_meta("version", std::to_string(kVersion));
    insert = prepare("INSERT INTO event (at_ns, kind, subject, detail) VALUES (?, ?, ?, ?)");
  }

  void append(std::int64_t at_ns, std::string_view kind, std::uint64_t subject, std::string_view detail) {
    if (!std::exchange(open_transaction, true)) run("BEGIN", "writing");
    sqlite3_bind_int64(insert, 1, at_ns);
    sqlite3_bind_text(insert, 2, kind.data(), static_cast<int>(kind.size()), SQLITE_TRANSIENT);
    sqlite3_bind_int64(insert, 3, static_cast<sqlite3_int64>(subject));
    sqlite3_bind_text(insert, 4, detail.data(), static_cast<int>(detail.size()), SQLITE_TRANSIENT);
    const int result = sqlite3_step(insert);
    sqlite3_reset(insert);
    check(result, "writing");
  }
};

Journal::Journal() : cluster_(random_cluster()), epoch_(1) {}

Journal::Journal(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  cluster_ = impl_->meta("cluster");
  if (cluster_.empty()) {
    cluster_ = random_cluster();
    impl_->set_meta("cluster", cluster_);
  }
  const auto last = impl_->meta("epoch");
  epoch_ = (last.empty() ? 0 : std::stoull(last)) + 1;
  impl_->set_meta("epoch", std::to_string(epoch_));
  impl_->run("COMMIT", "writing");
}

Journal::~Journal() = default;

std::unique_ptr<Journal> Journal::open(const std::string& directory, std::function<void(const std::string&)> warn) {
  if (directory.empty()) return std::unique_ptr<Journal>(new Journal);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) refuse(fmt::format("{}: {}; name another directory with --state-dir", directory, error.message()));
  auto impl = std::make_unique<Impl>();
  impl->take_lock(directory);
  impl->file = directory + "/cluster.db";
  impl->check(sqlite3_open(impl->file.c_str(), &impl->database), "opening");
  impl->prepare_schema();
  auto journal = std::unique_ptr<Journal>(new Journal(std::move(impl)));
  journal->warn_ = std::move(warn);
  return journal;
}

void Journal::attempt(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    sqlite3_exec(impl_->database, "ROLLBACK", nullptr, nullptr, nullptr);  // fails where SQLite has done so itself
    impl_->open_transaction = false;
    if (!std::exchange(failing_, true)) {
      warn_(fmt::format("{}: what happens is not recorded until there is room there; the cluster goes on",
                        error.failure().message));
    }
  }
}

void Journal::append(std::int64_t at_ns, std::string_view kind, std::uint64_t subject, std::string_view detail) {
  if (impl_) attempt([&] { impl_->append(at_ns, kind, subject, detail); });
}

void Journal::commit() {
  if (!impl_ || !impl_->open_transaction) return;
  attempt([this] {
    impl_->run("COMMIT", "writing");
    impl_->open_transaction = false;
    if (std::exchange(failing_, false)) warn_(fmt::format("the head's database {} is written again", impl_->file));
  });
}

}  // namespace troupe::head
