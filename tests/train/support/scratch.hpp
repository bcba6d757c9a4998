#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace troupe::testing {

/// A folder of a test, removed with all that is in it.
class Scratch {
 public:
  Scratch() {
    auto name = (std::filesystem::temp_directory_path() / "troupe-train-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace troupe::testing
