#pragma once

#include <string>

#include <sys/types.h>

namespace troupe::node {

/// What a fresh child does with itself before anything else. Every function, but where it says
/// otherwise, is async-signal-safe, so that it may run between fork and exec, and ends the child (exit code 127) where going on
/// would leave it unowned.

/// Dies with the parent, and at once if `parent` is not the parent any more. Then leads a process
/// group of its own.
void belong_to(pid_t parent);
/// Default dispositions and an empty mask, but for the signals of a fault, which sanitizers and
/// crash reporters own.
void default_signals();
/// stdin from /dev/null: a background process that reads a terminal would be stopped by it.
void detach_stdin();
/// Why a log was not opened.
struct LogError {
  int number = 0;  // of errno
  bool is_no_file = false;

  explicit operator bool() const { return number != 0 || is_no_file; }
};
/// stdout and stderr to the end of this file, made if need be. Never waits: whatever is no regular
/// file, as a pipe without a reader, is refused.
LogError redirect_output(const char* file);
/// Not between fork and exec.
std::string describe(const LogError& error);

/// From now on each line that this process prints with stdio or iostreams is written as it ends:
/// what a process has printed before it is killed is there. Not between fork and exec.
void line_buffer_output();

/// "was killed by signal 9 (Killed)", "ended with exit code 3"; of a status as waitpid gives it.
std::string describe_status(int status);

}  // namespace troupe::node
