#pragma once

#include <cstdint>
#include <filesystem>

#include "safetensors/header.hpp"
#include "safetensors/loading.hpp"

namespace troupe::train::safetensors {

/// An open file of safetensors, whose head was read. Throws troupe::Error, with the file's name.
/// Several threads may read.
class File {
 public:
  explicit File(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const Header& header() const { return header_; }
  /// The values of an entry of header(): entry.bytes() bytes.
  void read(const Entry& entry, void* values) const;

 private:
  void read_at(std::uint64_t at, void* into, std::uint64_t count) const;

  std::filesystem::path path_;
  OpenFile in_;
  std::uint64_t values_at_ = 0;
  Header header_;
};

}  // namespace troupe::train::safetensors
