#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "checkpoint/manifest.hpp"
#include "safetensors/header.hpp"

/// The files of a checkpoint that one rank writes.
namespace troupe::train {

/// Values of an entry of a file of safetensors, row by row.
struct ShardValues {
  safetensors::Entry entry;     ///< without its place
  const void* values;           ///< which the rank has until the shard is written
  std::shared_ptr<void> owner;  ///< of the values
};

/// What a rank has for a checkpoint: by the name of a file beside the manifest, what is to be in
/// it.
struct ShardFiles {
  std::map<std::string, std::map<std::string, ShardValues>> values;  ///< files of safetensors
  std::map<std::string, std::string> bytes;                          ///< other files
};

/// Where the bytes of files go: into a folder, or to a rank that has the folder.
class FileSink {
 public:
  virtual ~FileSink() = default;
  /// One file at a time.
  virtual void begin(const std::string& name) = 0;
  virtual void write(const void* bytes, std::size_t count) = 0;
  virtual void end() = 0;
};

/// -> what the manifest says of the files. Throws what the sink throws, and std::invalid_argument
/// for names that are not UTF-8.
std::map<std::string, SavedFile> write_files(const ShardFiles& files, FileSink& sink);

/// Writes files that are durable once their end() has returned. Throws troupe::Error, with the
/// system's reason.
std::unique_ptr<FileSink> sink_in(const std::filesystem::path& folder);

}  // namespace troupe::train
