#pragma once

#include <chrono>
#include <string>

#include "config/secret.hpp"

namespace troupe::runtime {

/// The cluster's token, which the node of this worker process gives to who has been granted it: see
/// node/token_request.hpp. Blocks; any thread but the loop's. Throws Refused where this process is
/// no worker process or the grant is not that of `holder`, TimedOut where the node does not answer.
config::Secret ask_node_for_token(const std::string& holder, const config::Secret& grant,
                                  std::chrono::milliseconds timeout);

}  // namespace troupe::runtime
