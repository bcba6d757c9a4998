#pragma once

#include <string>
#include <string_view>

#include "os/unique_fd.hpp"

namespace troupe::launch {

/// A file that comes in pieces, and has its name only once it is whole. Until then it is gone with
/// the process, however that ends, where the file system can have files without names.
class IncomingArchive {
 public:
  /// `file`: in a folder that is there. Throws Refused.
  explicit IncomingArchive(std::string file);
  ~IncomingArchive();
  IncomingArchive(const IncomingArchive&) = delete;
  IncomingArchive& operator=(const IncomingArchive&) = delete;

  /// Throws Refused, as where the disk is full.
  void add(std::string_view piece);
  /// Gives it its name, unless another has given it to the same content meanwhile. Throws Refused.
  void finish();

 private:
  [[noreturn]] void fail(int error) const;

  std::string file_;
  std::string partial_;  // its name until it is whole; empty: it has none
  os::UniqueFd out_;
};

}  // namespace troupe::launch
