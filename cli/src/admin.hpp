#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "config/token.hpp"
#include "options.hpp"

namespace troupe::cli {

/// Asks the head one thing and waits for its answer. Throws Disconnected with a text for people,
/// which names the file that the address came from where nobody was found.
nlohmann::json ask_head(const FoundHead& head, const config::FoundToken& token,
                        const nlohmann::json& request);

/// Asks the head to stop and waits until its process is gone (it holds this connection to its end).
/// -> its answer. Throws Disconnected; TimedOut where it answered and is still there after 10 s.
nlohmann::json stop_head(const FoundHead& head, const config::FoundToken& token);

}  // namespace troupe::cli
