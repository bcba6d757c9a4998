#pragma once

#include <string>
#include <vector>

#include "job/jobs.hpp"

/// How jobs are shown, as lines for people and as JSON.
namespace troupe::cli {

/// Of its program, or that it was lost or is silent: "failed with exit code 3".
std::string state_of(const launch::ListedJob& job);

/// Prints a line, or an object.
void print_job(const launch::ListedJob& job, bool as_json);
/// Prints a line for each, or an array of objects.
void print_jobs(const std::vector<launch::ListedJob>& jobs, bool as_json);

}  // namespace troupe::cli
