#pragma once

#include <string>
#include <string_view>

#include "config/secret.hpp"

namespace troupe::node {

/// What a node answers a worker process that asks for the cluster's token, in JSON. User code is
/// not given it, but for what somebody who has the token has granted it to
/// (transport::token_grant), as `troupe job submit` does for the program of a job:
///   {"do": "token", "holder": "troupe-jobs/night", "grant": "<64 digits>"}
///   -> {"token": "<64 digits>"}
///   or {"error": "..."}. Any text may come.
std::string answer_token_request(std::string_view request, const config::Secret& token);

/// The request.
std::string token_request(const std::string& holder, const config::Secret& grant);

}  // namespace troupe::node
