#pragma once

#include <troupe/tune/searcher.hpp>

#include "text/json.hpp"

namespace troupe::tune {

/// For the state of a searcher that keeps how trials ended.
Json to_json(const TrialEnd& end);
/// Throws std::invalid_argument, or what Json does, for what to_json() has not written.
TrialEnd trial_end_from(const Json& json);

}  // namespace troupe::tune
