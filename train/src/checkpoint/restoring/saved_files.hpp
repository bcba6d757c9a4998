#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "checkpoint/manifest.hpp"

namespace troupe::train {

namespace safetensors {
class File;
}

/// A checkpoint that is read. What is read is compared with its checksum, and an error about a
/// checkpoint that was truncated or altered names the one before it that is whole.
///
/// Throws troupe::Error, with the file's name. Used by one thread.
class SavedFiles {
 public:
  /// Reads the manifest, and looks whether each file is there in its size. `offers`: errors name
  /// the checkpoint before this one.
  explicit SavedFiles(const std::filesystem::path& checkpoint, bool offers = true);
  ~SavedFiles();
  SavedFiles(const SavedFiles&) = delete;
  SavedFiles& operator=(const SavedFiles&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }

  /// The values of a piece: piece.count of the type.
  void read(const SavedPiece& piece, safetensors::DType type, void* into);
  /// The content of a file that is not of safetensors.
  std::string read(const std::string& file);
  /// Reads all that there is. To be called for a checkpoint of which nothing is wanted.
  void verify();

 private:
  safetensors::File& open(const std::string& file);
  [[noreturn]] void fail(const std::string& file, const std::string& why) const;

  std::filesystem::path folder_;
  bool offers_;
  Manifest manifest_;
  std::map<std::string, std::unique_ptr<safetensors::File>> open_;
};

}  // namespace troupe::train
