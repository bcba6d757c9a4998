#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace troupe::head {

/// The head's memory on disk: who it is, and what has happened, in an SQLite database (WAL, synchronous=FULL). One
/// transaction covers everything appended between two commits; what was committed survives a power cut.
/// Belongs to the head's loop. Schema version 1: meta(key, value), event(seq, at_ns, kind, subject, detail).
class Journal {
 public:
  /// `directory` empty: nothing is kept, since nobody could read it. Else <directory>/cluster.db, made if it is not there;
  /// the directory is locked against a second head. Throws Refused where it is locked, cannot be written, or has a later version.
  /// `warn` is told, once, when it can no longer be written (a full disk), and once when it can again: a cluster goes on
  /// without a record of what happens meanwhile.
  static std::unique_ptr<Journal> open(const std::string& directory, std::function<void(const std::string&)> warn);
  ~Journal();

  /// Random, made with the database: the same cluster after a restart.
  const std::string& cluster() const { return cluster_; }
  /// How often a head has opened this database, this time included: an older head's numbers are told apart.
  std::uint64_t epoch() const { return epoch_; }

  void append(std::int64_t at_ns, std::string_view kind, std::uint64_t subject, std::string_view detail);
  /// What was appended is on disk when this returns, or was warned of.
  void commit();

 private:
  struct Impl;
  Journal();
  explicit Journal(std::unique_ptr<Impl> impl);
  /// Runs what writes, and notes whether it could.
  void attempt(const std::function<void()>& write);

  std::unique_ptr<Impl> impl_;  // nullptr: nothing is kept
  std::string cluster_;
  std::uint64_t epoch_ = 0;
  std::function<void(const std::string&)> warn_;
  bool failing_ = false;
};

}  // namespace troupe::head
