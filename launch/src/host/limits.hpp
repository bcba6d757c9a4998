#pragma once

#include <string>

#include <sys/types.h>

namespace troupe::launch {

/// Whether a limit of the process's own has sent the signal that ended it, and which: "it reached
/// its limit of ...". Empty where it has no such limit: then somebody sent the signal. For a
/// process that has ended and is not reaped yet.
std::string limit_that_ended(pid_t pid, int signal);

/// Has a file that would exceed this process's limit of file sizes fail with EFBIG, as a full disk
/// does, and not end the process. Program::start() gives its programs the default back.
void take_file_limit_as_error();

}  // namespace troupe::launch
