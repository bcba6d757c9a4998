#pragma once

#include <filesystem>
#include <string>

namespace troupe::train {

/// Throws troupe::Error: "<what>: <why>", as in "cannot write /a/b: No space left on device".
[[noreturn]] void not_done(const std::string& what, const std::string& why);

/// A file's name, to stand in an error.
std::string in_words(const std::filesystem::path& path);

/// Has the disk keep what was written to a file, or the names in a folder, by fsync. Throws
/// troupe::Error with the system's reason.
void make_durable(const std::filesystem::path& path);

}  // namespace troupe::train
