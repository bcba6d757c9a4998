#pragma once

#include <string>
#include <vector>

namespace troupe::cli {

/// "head, worker and run".
std::string in_words(const std::vector<std::string>& names);
std::string joined(const std::vector<std::string>& parts, const std::string& between);

}  // namespace troupe::cli
