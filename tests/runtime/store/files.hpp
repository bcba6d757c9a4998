#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <stdlib.h>

namespace troupe::store::test {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// A directory that is gone with this object.
struct TemporaryDirectory {
  TemporaryDirectory() {
    std::string name = std::filesystem::temp_directory_path() / "troupe-store-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

/// Names of what is in a directory, sorted.
inline std::vector<std::string> entries_of(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace troupe::store::test
