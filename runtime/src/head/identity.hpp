#pragma once

#include <cstdint>
#include <string>

namespace troupe::head {

/// Who a head is: its cluster, and how many heads that cluster has had. Read and written once, by
/// the constructor, in an SQLite database that is closed again before the head serves: nothing that
/// happens in the cluster waits for a disk. While this lives, the directory is locked against a
/// second head. Schema version 2: meta(key, value).
class Identity {
 public:
  /// `directory` empty: a new cluster that nobody asks for again, and no file. Else
  /// <directory>/cluster.db, made if it is not there. Throws Refused where the directory is locked
  /// or cannot be written, or the database has a later version. Cost: waits for the disk.
  explicit Identity(const std::string& directory);

  /// Random, made with the database: the same cluster after a restart.
  const std::string& cluster() const { return cluster_; }
  /// How often a head has opened this database, this time included: an older head's numbers are
  /// told apart.
  std::uint64_t epoch() const { return epoch_; }

 private:
  class Lock {
   public:
    Lock() = default;
    Lock(const Lock&) = delete;
    ~Lock();
    void take(const std::string& directory);

   private:
    int fd_ = -1;
  };

  Lock lock_;  // first: it is given back where the constructor throws
  std::string cluster_;
  std::uint64_t epoch_ = 1;
};

}  // namespace troupe::head
