#pragma once

#include <troupe/tune/trial.hpp>

#include "text/json.hpp"

namespace troupe::tune {

/// A trial for people and other programs, without its curve.
Json to_json(const Trial& trial);

/// All of it, in few words.
Json state_of(const Trial& trial);
/// What state_of wrote. Throws std::invalid_argument or Json::exception where the text is something
/// else.
Trial trial_from(const Json& state);

}  // namespace troupe::tune
