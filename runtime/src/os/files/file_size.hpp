#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/stat.h>

namespace troupe::os {

/// In bytes; none where there is no such file.
inline std::optional<std::uint64_t> file_size(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace troupe::os
