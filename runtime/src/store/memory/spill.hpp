#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>

#include "os/unique_fd.hpp"
#include "store/types.hpp"

namespace troupe::store {

/// Sealed objects on disk, a file each, in a directory of this node's life:
/// PARENT/troupe-spill-UID-XXXXXX, mode 0700, held by a lock that ends with the process. Lives in
/// the node, on one thread; every call may block on the disk.
///
/// A file is written under another name, brought to the disk (fdatasync: a later error could not be
/// told to anybody, since the memory is gone by then) and renamed. Its checksum (XXH3, 64 bits)
/// stays in memory: nobody but this node reads its files, and a next life cannot know whose they
/// were.
class SpillDirectory {
 public:
  /// Makes the parent where it is missing, and removes there what nodes of this user left that did
  /// not end by themselves. `cap_bytes`: of all files together.
  static std::variant<SpillDirectory, Refusal> open(const std::string& parent,
                                                    std::uint64_t cap_bytes);
  SpillDirectory(SpillDirectory&&) noexcept = default;
  SpillDirectory& operator=(SpillDirectory&&) = delete;
  ~SpillDirectory();  ///< removes the directory with all that is in it

  /// DiskFull where it does not fit, or cannot be written for another reason; then nothing of it is
  /// left.
  std::optional<Refusal> write(ObjectId object, std::span<const std::byte> bytes);
  /// Damaged where the file is not what was written. `into` has as many bytes as were written.
  std::optional<Refusal> read(ObjectId object, std::span<std::byte> into) const;
  void remove(ObjectId object);

  const std::string& path() const { return path_; }
  std::uint64_t used_bytes() const { return used_bytes_; }

 private:
  struct Entry {
    std::uint64_t bytes;
    std::uint64_t checksum;
  };
  SpillDirectory(std::string path, os::UniqueFd lock, std::uint64_t cap_bytes)
      : path_(std::move(path)), lock_(std::move(lock)), cap_bytes_(cap_bytes) {}
  std::string file_of(ObjectId object) const { return path_ + "/" + to_string(object); }
  Refusal refuse_write(ObjectId object, std::uint64_t bytes, const std::string& why) const;

  std::string path_;
  os::UniqueFd lock_;  // of the directory; none: this object was moved from
  std::uint64_t cap_bytes_;
  std::uint64_t used_bytes_ = 0;
  std::unordered_map<ObjectId, Entry> entries_;
};

/// Where objects go if nobody says: straight in /var/tmp, which is on a disk where /tmp may be
/// memory.
inline constexpr const char* kDefaultSpillParent = "/var/tmp";

/// Why nothing can be spilled to this folder, in words for who named it; nullopt: it can. Makes the
/// folder where only it is missing: a missing parent is a slip of the pen, or a disk that is not
/// mounted. Tries it, and blocks meanwhile.
std::optional<std::string> why_no_spilling_to(const std::string& parent);

}  // namespace troupe::store
