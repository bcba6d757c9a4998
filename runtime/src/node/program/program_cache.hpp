#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "node/program/digest.hpp"
#include "os/unique_fd.hpp"

namespace troupe::node {

/// A program that lies in the cache, open: what is executed is what was hashed.
struct CachedProgram {
  os::UniqueFd file;
  std::string path;
};

/// Programs that were shipped to this machine, by digest: DIRECTORY/<64 hex digits>, mode 0500, in
/// a directory that only this user may enter. Never holds more than `limit` bytes, but for the one
/// added last: the least recently used go first. May be used by several nodes at once. Belongs to
/// one thread.
class ProgramCache {
 public:
  /// Makes the directory. Throws Error (Program) where it cannot, or where it belongs to somebody
  /// else.
  ProgramCache(std::string directory, std::uint64_t limit);

  /// Reads the file, since a disk or a hand may have changed it; one that does not match is
  /// removed.
  std::optional<CachedProgram> find(const Digest& digest);

  /// A file that is written front to back, and becomes an entry only if its digest is the expected
  /// one.
  class Entry {
   public:
    Entry(Entry&&) noexcept = default;
    ~Entry();  ///< removes what was not committed
    /// "" or what went wrong ("No space left on device").
    std::string append(const void* data, std::size_t size);

   private:
    friend class ProgramCache;
    Entry(std::string path, os::UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
    std::string path_;
    os::UniqueFd file_;
    Sha256 hash_;
  };
  Entry begin();  ///< throws Error
  /// Throws Error where the digest differs: then the file was damaged on its way.
  CachedProgram commit(Entry entry, const Digest& expected);

 private:
  std::string path_of(const Digest& digest) const { return directory_ + "/" + to_hex(digest); }
  void trim(const std::string& keep);

  std::string directory_;
  std::uint64_t limit_;
};

/// Where programs go if nobody says: straight in /var/tmp, where nobody else can exchange the
/// directory; one for each user.
std::string default_cache_directory();

}  // namespace troupe::node
