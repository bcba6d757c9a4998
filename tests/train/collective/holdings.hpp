#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace troupe::testing {

/// What a communicator would leave behind in this process.
struct Holdings {
  std::ptrdiff_t descriptors;
  std::ptrdiff_t threads;
  int mappings;
  friend bool operator==(const Holdings&, const Holdings&) = default;
};

inline std::ptrdiff_t entries_of(const char* directory) {
  return std::distance(std::filesystem::directory_iterator(directory), {});
}

inline Holdings holdings() {
  int mappings = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    mappings += line.find("troupe-collective") != std::string::npos ? 1 : 0;
  return {entries_of("/proc/self/fd"), entries_of("/proc/self/task"), mappings};
}

}  // namespace troupe::testing
