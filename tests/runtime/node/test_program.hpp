#pragma once

#include <string>
#include <vector>

/// The test executable is also the program that its nodes and launchers start: with a boot variable
/// in its environment its main is the main of such a program, which does what its first argument
/// says:
///
///   raw           serves commands as lines on the link to its node
///   worker        serves commands as a worker process: tells with a message, answered by asks with a name
///   exit-early    ends with exit code 3 before it becomes a zygote, with a complaint on stderr
///   abort         aborts in each worker process before that is ready, with a complaint on stderr
///   gives-up      says in each worker process why it cannot start, and waits to be ended
///   hang-early    never becomes a zygote
///   never-ready   never says in a worker process that it is ready; prints that it is there
///   threads       starts a thread, then becomes a zygote
///   node PORT     is a whole node under a guardian, for the head on that port of loopback
namespace troupe::node::test {

/// -> the exit code.
int program_main(const std::vector<std::string>& arguments);

/// Does one thing in this process and says how it went: "pid", "parent", "group", "env NAME",
/// "cwd", "exit CODE", "signal NUMBER", "sleeper" (starts another program in a session of its own;
/// -> its pid), "orphan" (the same by fork alone), "daemon" (a program with an empty environment,
/// in a session of its own, whose parent has ended; -> its pid)
std::string perform(const std::string& command);

inline constexpr const char* kNodeArgument = "node";
std::string self_path();

}  // namespace troupe::node::test
