#pragma once

#include <string>
#include <vector>

namespace troupe::cli {

/// "head, worker and run".
std::string in_words(const std::vector<std::string>& names);
std::string joined(const std::vector<std::string>& parts, const std::string& between);
/// "cpu 2", "memory 1.5 GB".
std::string amount_text(const std::string& resource, double units);

}  // namespace troupe::cli
