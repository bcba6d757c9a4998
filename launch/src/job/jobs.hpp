#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <troupe/cluster.hpp>

#include "config/secret.hpp"
#include "job/job.hpp"

/// The jobs of a cluster, as a program that is in it sees them.
namespace troupe::launch {

struct SubmitOptions {
  std::string name;  ///< empty: one is made
  std::vector<std::string> arguments;
  double cpus = 0;  ///< of the job's own process: what it starts asks for itself
  double gpus = 0;
  std::string workdir;  ///< folder that is sent; empty: none
  std::string directory;
  Variables variables;
  bool own_environment = true;
  config::Secret token{};  ///< of the cluster, which does not travel: its grant does
};

struct Submitted {
  std::string name;
  bool is_waiting = false;  ///< for its place; else its program has been started
  std::string reason = {};  ///< why it waits
};
/// Starts a job, which needs this program no more once this has returned. Waits up to a second for
/// its place, longer only where it has one and is starting there. Throws Refused where a job has
/// that name, the folder cannot be sent, or the job cannot be started.
Submitted submit(const SubmitOptions& options, const Cluster& cluster);

/// How the actor of a job ended, before the job's program or after it: the head remembers it until it
/// is forgotten.
struct LostJob {
  bool with_node = false;  ///< else the actor's process died alone
  std::string how;         ///< for people
  double at = 0;           ///< seconds since 1970, by the head's clock
};

struct ListedJob {
  std::string name;
  std::string node = {};             ///< its name; empty: it has none
  std::optional<JobInfo> info = {};  ///< none: it was lost, or did not answer in time
  std::optional<LostJob> lost = {};  ///< with an info: it was over by then
  std::string reason = {};           ///< why it waits
  bool is_silent = false;            ///< its actor is there, and did not answer for 10 s
  bool has_ended = false;  ///< its actor, or that which waits for its place, ended as it was asked
};
/// It has no place yet, and nobody knows of a reason.
bool is_starting(const ListedJob& job);
/// Of a job that was over before its actor was gone, for people: "its log went with node w1".
std::string where_log_is(const ListedJob& job);
/// In the order in which they were submitted. `only`: of that name, which none or one has. Waits for
/// the answers of all at once, 10 s at most. Where actors have just ended, it waits half a second for
/// the head to hear of that, and asks those jobs again, twice at most.
std::vector<ListedJob> list_jobs(const Cluster& cluster,
                                 const std::optional<std::string>& only = {});

/// How the job is; none: there is no such job. Throws Refused where it does not answer for 10 s.
std::optional<JobInfo> look_at_job(const std::string& job);
/// Ends its program, or gives up its request for a place; waits until that is done. -> how it
/// ended. Throws Refused where there is no such job, or it does not answer for 10 s.
JobInfo stop_job(const std::string& job, double grace_s, const Cluster& cluster);
/// Ends the job, if it runs or waits, and forgets it. False: there is no such job, or it was lost,
/// which the head is to forget.
bool forget_job(const std::string& job);
/// Waits for its end. Throws Refused where there is no such job any more, or it was lost.
JobInfo await_job(const std::string& job, const Cluster& cluster);
/// Waits until it has a place, or is over without one. Throws Refused, as above.
JobInfo await_start(const std::string& job, const Cluster& cluster);

/// Throws Refused where the job was lost. Waits a moment where it is not there any more, as the head
/// may not know yet.
void refuse_if_lost(const std::string& job, const Cluster& cluster);
/// Throws Refused: there is no such job, or it was lost. The message says where the name is that of an
/// actor, or the number of a program.
[[noreturn]] void refuse_missing(const std::string& job, const Cluster& cluster);

}  // namespace troupe::launch
