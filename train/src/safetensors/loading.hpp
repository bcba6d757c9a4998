#pragma once

#include <cstdint>
#include <filesystem>
#include <new>
#include <string>

#include "os/unique_fd.hpp"
#include "safetensors/header.hpp"

/// How files are opened to be loaded, with errors that name them.
namespace troupe::train::safetensors {

/// Throws troupe::Error: "cannot load <path>: <why>".
[[noreturn]] void not_loaded(const std::filesystem::path& path, const std::string& why);

struct OpenFile {
  os::UniqueFd fd;
  std::uint64_t bytes = 0;
};

/// Opens a regular file, and throws troupe::Error for what is none.
OpenFile open_to_load(const std::filesystem::path& path);

/// Runs `read`. A FormatError, and a lack of memory, become errors that name the file.
template <class Read>
void loaded(const std::filesystem::path& path, Read read) {
  try {
    read();
  } catch (const FormatError& error) {
    not_loaded(path, error.what());
  } catch (const std::bad_alloc&) {
    not_loaded(path, "there is not enough memory for its header");
  }
}

}  // namespace troupe::train::safetensors
