#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "config/token.hpp"
#include "options.hpp"

namespace troupe::cli {

/// In which a head answers what it knows itself, and what it must ask its nodes, which it gives
/// 10 s: in time that this process runs (transport/silence_timer.hpp).
inline constexpr std::chrono::seconds kAnswerOfHead{5}, kAnswerOfNodes{60};

/// Asks the head one thing and waits for its answer. Throws Refused where one of the two will not have
/// the other (another token, another version), else Disconnected, with a text for people: it names
/// the file that the address came from where nobody was found.
nlohmann::json ask_head(const FoundHead& head, const config::FoundToken& token,
                        const nlohmann::json& request,
                        std::chrono::seconds timeout = kAnswerOfHead);

/// Asks the head one thing that its nodes know ("logs", "timeline", "running" or "objects"), and waits
/// until they have answered, or are "silent" by the answer (head/output/log_requests.hpp). Throws
/// Disconnected as ask_head, and Refused where the head says why it does not ask.
nlohmann::json ask_nodes(const FoundHead& head, const config::FoundToken& token,
                         const nlohmann::json& request,
                         std::chrono::seconds timeout = kAnswerOfNodes);

/// Names the silent nodes of such an answer on standard error, and what is lacking for each ("its
/// lines are missing"). -> whether all nodes have answered: else the command ends with exit code 1.
bool say_who_is_silent(const nlohmann::json& answer, const std::string& lacking);

/// Asks the head to stop and waits until its process is gone (it holds this connection to its end).
/// -> its answer. Throws as ask_head does; TimedOut where it answered and is still there after 10 s.
nlohmann::json stop_head(const FoundHead& head, const config::FoundToken& token);

struct Neighbour {
  std::string what;            ///< for people: "the head of cluster 3f2a, up 12 s"
  bool has_our_token = false;  ///< so that commands here can use it
};
/// What of Troupe listens there. Nothing: nobody does, or another program, or one that says nothing.
/// `token`: null where there is none. Blocks for a second or two, and for five more where a head
/// accepts and does not answer.
std::optional<Neighbour> troupe_at(const transport::Endpoint& at, const config::FoundToken* token);

}  // namespace troupe::cli
