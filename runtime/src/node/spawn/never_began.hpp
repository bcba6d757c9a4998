#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "node/program/program.hpp"

/// What is said of a program that a node has executed for worker processes, and that did not get as
/// far as troupe::init: in the words of whoever runs it (config/audience.hpp). Pure functions.
namespace troupe::node {

/// It still ran after `limit`, and was ended.
std::string took_too_long(const Program& program, std::chrono::milliseconds limit);
/// `who`: the program, or one process of it. `status`: of its end, from waitpid. The last lines of
/// its log may follow what this returns.
std::string ended_before_init(const Program& program, std::string_view who, int status);
/// The zygote cannot fork, for what it has, as why_not_to_fork() says it.
std::string executed_anew(const Program& program, std::string_view what_it_has);

}  // namespace troupe::node
