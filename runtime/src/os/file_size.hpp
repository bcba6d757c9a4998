#pragma once

#include <cstdint>
#include <string>

#include <sys/stat.h>

namespace troupe::os {

/// In bytes; 0 where there is no such file.
inline std::uint64_t file_size(const std::string& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

}  // namespace troupe::os
