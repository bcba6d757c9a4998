#pragma once

#include <string>
#include <system_error>

namespace troupe::launch {

/// Removes a folder with all that is in it; does nothing where there is none. A program may have
/// taken the right to write away from folders of its own within, which is given back first; no
/// symbolic link is followed. -> why something stays.
std::error_code remove_folder(const std::string& folder);

}  // namespace troupe::launch
