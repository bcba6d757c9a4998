#pragma once

#include <cstddef>
#include <filesystem>
#include <list>
#include <map>
#include <string>

#include "safetensors/file.hpp"

namespace troupe::train::safetensors {

/// The names that stand in an error where there are many.
inline constexpr std::size_t kMostNamed = 5;

/// What a path stands for: a file, the files of an index, or a folder with one of the two. Throws
/// troupe::Error, with the name of what cannot be read.
class Source {
 public:
  struct Place {
    const File* file;  // one of the Source's
    const Entry* entry;
  };

  explicit Source(const std::filesystem::path& path);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  /// The file, or the index.
  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, Place>& tensors() const { return tensors_; }
  /// Of several files: of all of them; of a key that several have, the first one's.
  std::map<std::string, std::string> metadata() const;

 private:
  void open_index();

  std::filesystem::path path_;
  std::list<File> files_;
  std::map<std::string, Place> tensors_;
};

}  // namespace troupe::train::safetensors
