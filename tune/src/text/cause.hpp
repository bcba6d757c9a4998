#pragma once

#include <string>

/// Which errors of trials are one and the same. Pure; any thread.
namespace troupe::tune {

/// Of a trial's error what does not depend on where it happened: "no memory" of "no memory (in fit,
/// rank 0 of 1, pid 7 on node 1)", and of a program what it printed without the path of its log.
std::string cause_of(const std::string& error);

/// How the program of a trial, or the worker process of a function, ended: "the program ended with
/// exit code 3" or "was killed by signal 11 (Segmentation fault)", without what it printed. Empty:
/// the error is none of such an end.
std::string end_of_process(const std::string& error);

/// What trials that never reported have to have in common to have failed alike: end_of_process(),
/// as programs may print their own arguments; of any other error cause_of().
std::string cause_without_report(const std::string& error);

}  // namespace troupe::tune
