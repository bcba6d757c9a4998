#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/token.hpp"
#include "node/node.hpp"
#include "transport/handshake/handshake.hpp"

/// What several commands share. Exit codes of every command: 0 done; 1 it could not be done (the
/// reason is on stderr); 2 the arguments are wrong.
namespace troupe::cli {

inline constexpr const char* kVersion = "0.1.0";
inline constexpr std::uint16_t kDefaultPort = 7420;

/// Of a resource: amounts are counted in ten-thousandths, and less than a half of one would be
/// none. Empty where `amount`, given as `text`, is zero or more than that.
std::string why_nothing(const std::string& text, double amount);

/// How a node describes itself: the options of `troupe worker`, and of `troupe head` for its own
/// node.
struct NodeArguments {
  double cpus = 0;  // 0: those this process may use, and at least one
  std::optional<int> gpus;
  std::vector<std::string> resources;  // NAME=AMOUNT
  std::vector<std::string> labels;     // KEY=VALUE
  std::string name;
  std::string host;
  std::string log_directory;
  std::size_t kept_logs = node::NodeOptions{}.kept_logs;
  std::string object_store_memory;  // bytes, or with a unit; empty: the default
  std::string spill_directory;
};

/// Throws Refused where a resource, a label or a size is malformed, or a name is given twice.
node::NodeOptions node_options(const NodeArguments& arguments, const transport::Endpoint& head,
                               const config::FoundToken& token);

/// Where --gpus offers more GPUs than this machine has, says so on stderr, once for a start.
void note_missing_gpus(const NodeArguments& arguments);

/// KEY=VALUE each, as --label takes them. Throws Refused where one is malformed, or a key is given
/// twice.
std::vector<std::pair<std::string, std::string>> labels_of(const std::vector<std::string>& given);

/// As --env takes them: "NAME=VALUE" sets a variable, "NAME" is what this process has. Throws Refused
/// for one that is neither.
std::vector<std::pair<std::string, std::string>> variables_of(
    const std::vector<std::string>& given);

/// Of this process. Throws Refused where it was removed.
std::string working_directory();

/// A head's address, and where it came from.
struct FoundHead {
  transport::Endpoint at;
  std::string file;  // that it was read from; empty: it was given, or TROUPE_ADDRESS

  /// Empty, or "; the address is from FILE".
  std::string origin() const;
  /// For a message that nobody was found there: a killed head leaves its file behind. Empty, or
  /// origin() and what to do.
  std::string advice() const;
};
/// Whether a driver that is given this has a private cluster: neither that nor TROUPE_ADDRESS names
/// a head.
bool is_private(const std::string& given);

/// For a command that a message names: " --address X --token-file Y", as far as they were given.
std::string asked_of(const std::string& address, const std::string& token_file);
/// The address given, else TROUPE_ADDRESS, else what config::address_file() holds. Throws Refused, naming
/// all three.
FoundHead find_head(const std::string& given);
/// As transport::find_token, with FoundHead::advice() where nobody listens.
config::FoundToken find_token(const FoundHead& head, const std::string& file);

}  // namespace troupe::cli
