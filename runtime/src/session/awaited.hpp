#pragma once

#include <span>
#include <string>

#include "objects/object.hpp"

namespace troupe::runtime {

class Process;

/// What is known here of a call that somebody waits for, for people: "Rank::step of rank 1 (it runs
/// in process 7)". Empty where this process has not made it. Any thread but
/// the loop's, of which it may ask where an actor is: a fifth of a second at most.
std::string describe_awaited(Process& process, const detail::Object& object);

/// Of those that are not ready, the first three: "; not there: Rank::step of rank 1 (it runs in
/// process 7), 12 more". Empty where nothing is known of them.
std::string describe_missing(Process& process, std::span<const detail::ObjectPtr> objects);

}  // namespace troupe::runtime
