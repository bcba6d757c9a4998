#pragma once

#include <cstdint>
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
  static std::unique_ptr<Journal> open(const std::string& directory);
  ~Journal();

  /// Random, made with the database: the same cluster after a restart.
  const std::string& cluster() const { return cluster_; }
  /// How often a head has opened this database, this time included: an older head's numbers are told apart.
  std::uint64_t epoch() const { return epoch_; }

  void append(std::int64_t at_ns, std::string_view kind, std::uint64_t subject, std::string_view detail);
  /// What was appended is on disk when this returns. Throws Refused where the disk is full.
  void commit();

 private:
  struct Impl;
  Journal();
  explicit Journal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;  // nullptr: nothing is kept
  std::string cluster_;
  std::uint64_t epoch_ = 0;
};

}  // namespace troupe::head
