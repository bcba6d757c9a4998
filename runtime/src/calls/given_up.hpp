#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <troupe/errors.hpp>

#include "transport/connection.hpp"

namespace troupe::runtime {

/// What takes the place of a message in the stream to another process, once its sender has given
/// the message up: a call that does not run and only drops the refs in its arguments, a reply that
/// says `why`, or a skip. nullopt: this message has to arrive, since refs or the order of calls
/// depend on it. `body`: of a frame that this process has made.
std::optional<transport::Outgoing> given_up(std::span<const char> body, const Failure& why);
/// The call whose content this is and whose place in the order stands in a channel; 0: the message
/// is something else.
std::uint64_t channel_call(std::span<const char> body);

}  // namespace troupe::runtime
