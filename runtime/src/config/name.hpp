#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// What can be a name: of a node, a job, an actor, a resource, a label, or a label's value. Names
/// are printed in lines of `troupe status` and of logs, and sent as JSON. Any thread; pure
/// functions.
namespace troupe::config {

inline constexpr std::size_t kMostNameBytes = 256;

/// Empty where `text` can be a name: 1 to 256 bytes of UTF-8 without control characters. Else what
/// is wrong with it, and what to give, to stand behind the name of an option.
std::string why_no_name(std::string_view text);
/// Likewise, with where it was given and its beginning before it: "FIELD 'TEXT': WHY".
std::string why_no_name(std::string_view field, std::string_view text);
/// Throws that as std::invalid_argument: of a program's code, and of what arrives.
void check_name(std::string_view field, std::string_view text);
/// Throws that as Refused: of options that people give.
void require_name(std::string_view field, std::string_view text);

/// Empty where `name`, which can be a name, can be an actor's: NAME, its program's own, or
/// NAMESPACE/NAME, the cluster's. Else what is wrong with it, and what to give.
std::string why_no_actor_name(std::string_view name);
/// Throws what check_name does, and that as std::invalid_argument.
void check_actor_name(std::string_view field, std::string_view name);

/// The label whose value is the number of the node that carries it.
inline constexpr std::string_view kNodeLabel = "troupe.node";
/// Empty where a node may be given a label `key`. Else why not: those whose names begin with
/// "troupe." are the head's.
std::string why_not_given(std::string_view key);

/// `text` as a name, for what no rule can choose, as a file's name: U+FFFD for each control
/// character and for bytes that are not UTF-8, and cut, with an ellipsis, to `most` bytes (at least
/// 8). Empty only if `text` is.
std::string printable(std::string_view text, std::size_t most = kMostNameBytes);

}  // namespace troupe::config
