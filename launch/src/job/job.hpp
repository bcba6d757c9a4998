#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"

/// What a job is, for the actors that keep and run it and for the programs that ask them.
namespace troupe::launch {

/// A program that runs on the cluster by itself: `troupe job submit`. Crosses.
struct JobOrder {
  std::string name;                    ///< of the job
  std::vector<std::string> arguments;  ///< the program and its arguments, never a shell line
  Variables environment;               ///< of who submitted it
  Variables variables;                 ///< over that
  std::string directory;               ///< where it runs, where no folder is sent
  std::string workdir;                 ///< digest of the folder that is sent; empty: none
  std::string address;                 ///< of the cluster, for TROUPE_ADDRESS
  std::string token_grant;             ///< for the program to be given the cluster's token, as text
  double submitted = 0;                ///< seconds since 1970, by the clock of who submitted it
};

/// How a job is. Crosses.
struct JobInfo {
  std::string command = {};
  bool is_waiting = false;  ///< for its place
  bool is_over = false;
  bool was_stopped = false;
  bool is_name_taken = false;  ///< it was not started, since another job has its name
  int exit_code = 0;
  int signal = 0;
  std::string not_started = {};  ///< why it was not; empty: it was, or was stopped before that
  double submitted = 0;          ///< seconds since 1970, by the clock of who submitted it
  double started = 0;            ///< by its node's clock; 0: it was not
  double ended = 0;
  std::uint64_t lost_bytes = 0;  ///< of what the program printed: the log could not be written
  std::string why_lost = {};     ///< "No space left on device", of the last loss
  /// Processes that the program left running in process groups of their own as it ended by itself,
  /// and that were killed.
  std::uint64_t left_processes = 0;
};

/// For people: "running", "stopped", "failed with exit code 2".
std::string state_of(const JobInfo& info);

/// "2 processes that it left running were killed"; empty: there were none.
std::string what_was_left(const JobInfo& info);

/// A job that is over, as its actor tells the head, which keeps the text when the actor is gone with
/// its node. The command and the reasons are cut to fit there, and are printable.
std::string text_of_end(const JobInfo& info);
/// None: it is no such text.
std::optional<JobInfo> end_in(const std::string& text);

std::string command_of(const JobOrder& order);

/// Empty where `name` can be a job's, whose actors are named after it; else what is wrong with it.
std::string why_no_job_name(std::string_view name);

/// Of the actor that runs a job's program, and of the one that holds the request for its place.
std::string actor_name(const std::string& job);
std::string keeper_name(const std::string& job);
/// The job of which an actor of that name is one of these two; empty: of none.
std::string job_of_actor(const std::string& name);
std::string job_of_keeper(const std::string& name);

}  // namespace troupe::launch
