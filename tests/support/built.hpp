#pragma once

#include <filesystem>
#include <string>

namespace troupe::test {

/// The absolute path of `path`, which is relative to the folder that this tree was built in: the one
/// above this program that has CMake's cache. So a test says where a program is without naming that
/// folder, and is compiled alike, once for all clones.
inline std::string built(const std::string& path) {
  if (path.empty()) return path;
  auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  while (folder.has_relative_path() && !std::filesystem::exists(folder / "CMakeCache.txt"))
    folder = folder.parent_path();
  return (folder / path).lexically_normal().string();
}

}  // namespace troupe::test
