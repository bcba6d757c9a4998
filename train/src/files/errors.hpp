#pragma once

#include <filesystem>
#include <string>

namespace troupe::train {

/// Throws troupe::Error: "<what>: <why>", as in "cannot write /a/b: No space left on device".
[[noreturn]] void not_done(const std::string& what, const std::string& why);

/// A file's name, to stand in an error.
std::string in_words(const std::filesystem::path& path);

}  // namespace troupe::train
