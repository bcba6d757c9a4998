#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace examples {

/// A folder among the system's temporary files. The destructor removes the folder and all files in
/// it.
class TemporaryFolder {
 public:
  /// Throws std::runtime_error, naming the place, where no folder can be made.
  TemporaryFolder() {
    const auto place = std::filesystem::temp_directory_path();
    auto name = (place / "troupe-example-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("no folder can be made in " + place.string());
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace examples
