#pragma once

#include <string>
#include <vector>

namespace troupe::tune::detail {

/// What the search says of its options, for who wrote a sweep's file: names of options in C++, as
/// ".stop_grace" or ".each.workers", become the keys of that file, "grace" and "gang.ranks". A name
/// begins a word there. What stands in single quotes is somebody's own text, and so are all `given`,
/// wherever they begin a word: these stay as they are.
std::string with_sweep_keys(const std::string& text, const std::vector<std::string>& given = {});

}  // namespace troupe::tune::detail
