#pragma once

#include <optional>
#include <string>

#include "config/secret.hpp"

/// The one secret of a cluster: 32 random bytes, 64 hexadecimal digits in a file of mode 0600.
/// Whoever has it may join, connect and stop. It is read from files and the environment only, never
/// from an argument, and never printed.
namespace troupe::config {

/// Where Troupe keeps what must outlive a process: $XDG_STATE_HOME/troupe, else
/// ~/.local/state/troupe.
std::string state_directory();
std::string default_token_file();
/// Where the head of this machine's last `troupe head` wrote its address.
std::string address_file();
/// What stands there: the address of a head of this machine, which lives or was killed. Empty: none.
/// Throws Refused if neither $XDG_STATE_HOME nor a home directory is known, as state_directory() does.
std::string known_head();

/// Reads the file, or makes it with a fresh token. Throws Refused where it is readable by others,
/// malformed, or cannot be made; the message says how to mend it.
Secret load_or_create_token(const std::string& file);

/// A token, and where it was read: "token file /home/me/..." or "TROUPE_TOKEN".
struct FoundToken {
  Secret secret{};
  std::string from;
};
/// The token to connect with: `file`'s if one is named, else TROUPE_TOKEN, else that of
/// the file that TROUPE_TOKEN_FILE names, else the default file's. Throws Refused, naming all four
/// places, where none has one.
FoundToken find_token(const std::string& file);

/// nullopt unless it is 64 hexadecimal digits (white space around them is ignored).
std::optional<Secret> parse_token(std::string_view text);
std::string format_token(const Secret& token);
Secret random_token();

}  // namespace troupe::config
