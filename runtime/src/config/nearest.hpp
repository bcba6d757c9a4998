#pragma once

#include <string>
#include <vector>

namespace troupe::config {

/// The name that is so near to `wrong` that it may be what was meant; empty: none is.
std::string nearest(const std::string& wrong, const std::vector<std::string>& names);

/// "; did you mean 'max_t'?", where a name is near; empty: none is.
std::string nearest_in_words(const std::string& wrong, const std::vector<std::string>& names);

/// Where a name is near: "; did you mean 'max_t'?". Else what there is: "; there is a, b, c".
std::string did_you_mean(const std::string& wrong, const std::vector<std::string>& names);

}  // namespace troupe::config
