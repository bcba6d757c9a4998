#pragma once

#include <memory>
#include <string>
#include <utility>

#include "workdir/incoming_archive.hpp"

namespace troupe::launch {

/// Archives that this node has, each once: below `state`, at most 8, those used last.
class FolderCache {
 public:
  explicit FolderCache(std::string folder) : folder_(std::move(folder)) {}

  bool has(const std::string& digest) const;
  /// For an archive that comes in pieces. Throws Refused where it cannot be written.
  std::unique_ptr<IncomingArchive> receive(const std::string& digest) const;
  /// Throws Refused where it cannot be written.
  void add(const std::string& digest, const std::string& archive) const;
  /// Unpacks it into `target`, which is made. Throws Refused.
  void unpack(const std::string& digest, const std::string& target) const;

 private:
  std::string file(const std::string& digest) const { return folder_ + "/" + digest + ".tar"; }
  void forget_oldest() const;

  std::string folder_;
};

}  // namespace troupe::launch
