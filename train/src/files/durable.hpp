#pragma once

#include <filesystem>

#include "files/errors.hpp"

namespace troupe::train {

/// Has the disk keep what was written to a file, or the names in a folder, by fsync. Throws
/// troupe::Error with the system's reason.
void make_durable(const std::filesystem::path& path);

}  // namespace troupe::train
