#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include <troupe/cluster.hpp>
#include <troupe/errors.hpp>

#include "admin.hpp"
#include "commands.hpp"
#include "config/name.hpp"
#include "job/jobs.hpp"
#include "options.hpp"
#include "output.hpp"
#include "programs/job_rows.hpp"
#include "store/types.hpp"
#include "transport/socket/socket.hpp"

namespace troupe::cli {
namespace {

constexpr std::size_t kMostQuoted = 64;   // of a name, in a message
constexpr std::size_t kMostWords = 2000;  // of a state

/// Of the program, as a shell has it.
int status_of(const launch::JobInfo& info) {
  if (info.started <= 0) return 1;  // it was stopped or refused as it waited
  return info.signal != 0 ? 128 + info.signal : info.exit_code;
}

/// Jobs are a cluster's: the one that is named, or that this machine's head made.
std::string address_of_cluster(const std::string& given) {
  const auto head = find_head(given);
  return transport::format_endpoint(head.at.host, head.at.port);
}

launch::SubmitOptions submit_options(const JobArguments& arguments) {
  return {.name = arguments.job,
          .arguments = arguments.program,
          .cpus = arguments.cpus,
          .gpus = arguments.gpus,
          .workdir = arguments.workdir,
          .directory = working_directory(),
          .variables = variables_of(arguments.environment),
          .own_environment = !arguments.no_environment,
          .token = find_token(find_head(arguments.address), arguments.token_file).secret};
}

void say_how(const std::string& job, const launch::JobInfo& info) {
  const auto state = state_of({.name = job, .info = info});
  say(stderr, fmt::format("troupe: {} {}\n", job, config::printable(state, kMostWords)));
}

/// Where the log of a job does not have all that the job printed.
void say_what_is_lost(const std::string& job, const launch::JobInfo& info) {
  if (info.lost_bytes == 0) return;
  say(stderr,
      fmt::format("troupe: {} of what {} printed are lost, as its log could not be written: {}; "
                  "make room in the log folder of its node (`troupe logs` names it)\n",
                  store::format_bytes(info.lost_bytes), job, info.why_lost));
}

/// A job that succeeded may have meant them to go on.
void say_what_was_left(const std::string& job, const launch::JobInfo& info) {
  if (info.left_processes == 0) return;
  say(stderr, fmt::format("troupe: {} has ended; {}\n", job, what_was_left(info)));
}

/// None where it does not answer: it was submitted all the same.
std::optional<launch::JobInfo> look_once(const std::string& job) {
  try {
    return launch::look_at_job(job);
  } catch (const Error&) {
    return std::nullopt;
  }
}

int submit(const JobArguments& arguments, const Cluster& cluster) {
  const auto asked = asked_of(arguments.address, arguments.token_file);
  const auto submitted = launch::submit(submit_options(arguments), cluster);
  const auto& job = submitted.name;
  fmt::print("{}\n", job);
  flush_output();
  if (submitted.is_waiting) {
    say(stderr,
        fmt::format("troupe: it waits for its place, and needs this terminal no more: `troupe "
                    "job list{}` shows why it waits{}\n",
                    asked, submitted.reason.empty() ? "" : ": " + submitted.reason));
  } else if (!arguments.wait) {
    if (const auto begun = look_once(job); begun && !begun->not_started.empty()) {
      say_how(job, *begun);
      return status_of(*begun);
    }
    say(stderr,
        fmt::format("troupe: it runs on the cluster: `troupe job logs -f {}{}` shows what it "
                    "prints, `troupe job list{}` how it is\n",
                    job, asked, asked));
  }
  if (!arguments.wait) return 0;
  const auto info = launch::await_job(job, cluster);
  say_what_is_lost(job, info);
  say_what_was_left(job, info);
  if (status_of(info) == 0 && !info.was_stopped && info.not_started.empty()) return 0;
  say_how(job, info);
  if (info.not_started.empty())
    say(stderr, fmt::format("troupe: `troupe job logs {}{}` has what it printed\n", job, asked));
  return status_of(info);
}

LogsArguments logs_of(const JobArguments& arguments) {
  return {.head = arguments.address,
          .token_file = arguments.token_file,
          .what = "actor",
          .which = launch::actor_name(arguments.job),
          .follow = arguments.follow,
          .job = arguments.job};
}

/// -> the job has printed something, or may.
bool has_begun(const JobArguments& arguments, std::optional<launch::JobInfo> info,
               const Cluster& cluster) {
  if (info->is_waiting) {
    say(stderr, fmt::format("troupe: {} waits for its place, and has printed nothing: `troupe job "
                            "list{}` shows why it waits\n",
                            arguments.job, asked_of(arguments.address, arguments.token_file)));
    if (!arguments.follow) return false;
    info = launch::await_start(arguments.job, cluster);
  }
  if (info->started > 0) return true;
  say_how(arguments.job, *info);
  return false;
}

/// Where they are followed, until the job's program has ended: the actor that runs it stays.
int logs(const JobArguments& arguments, const Cluster& cluster) {
  const auto info = launch::look_at_job(arguments.job);
  if (!info) launch::refuse_missing(arguments.job, cluster);
  if (!has_begun(arguments, info, cluster)) return 0;
  auto logs = logs_of(arguments);
  auto last = *info;
  logs.job_is_over = [job = arguments.job, &last] {
    const auto now = launch::look_at_job(job);
    if (now) last = *now;
    return !now || now->is_over;
  };
  const auto status = run_logs(logs);
  say_what_is_lost(arguments.job, last);
  if (status != 0 || !arguments.follow) return status;
  launch::refuse_if_lost(arguments.job, cluster);
  say(stderr, fmt::format("troupe: job {} has ended\n", arguments.job));
  return 0;
}

/// Of a job that was lost the head alone knows.
bool forget_lost(const JobArguments& arguments) {
  const auto head = find_head(arguments.address);
  const auto token = find_token(head, arguments.token_file);
  bool was_there = false;
  for (const auto& actor :
       {launch::actor_name(arguments.job), launch::keeper_name(arguments.job)}) {
    const auto answer = ask_head(head, token, {{"do", "forget"}, {"actor", actor}});
    was_there = answer.value("forgotten", false) || was_there;
  }
  return was_there;
}

/// -> as the job's program has ended; 0: it has not.
int status(const JobArguments& arguments, const Cluster& cluster) {
  const auto found = launch::list_jobs(cluster, arguments.job);
  if (found.empty()) launch::refuse_missing(arguments.job, cluster);
  const auto& job = found.front();
  print_job(job, arguments.as_json);
  flush_output();
  if (job.info) return job.info->is_over ? status_of(*job.info) : 0;
  return launch::is_starting(job) ? 0 : 1;
}

void forget(const JobArguments& arguments, const Cluster& cluster) {
  const bool was_there = launch::forget_job(arguments.job);
  if (!forget_lost(arguments) && !was_there) launch::refuse_missing(arguments.job, cluster);
  say(stderr, fmt::format("troupe: {} is listed no more, and what still runs of it is ended\n",
                          arguments.job));
}

}  // namespace

int run_job(const JobArguments& arguments) {
  if (arguments.what == "submit" && !arguments.job.empty()) {
    if (const auto why = launch::why_no_job_name(arguments.job); !why.empty()) {
      say(stderr, fmt::format("troupe: --name '{}': {}\n",
                              config::printable(arguments.job, kMostQuoted), why));
      return 2;
    }
  }
  const auto cluster = troupe::init({.address = address_of_cluster(arguments.address),
                                     .token_file = arguments.token_file,
                                     .name = "troupe job",
                                     .hash_program = arguments.what == "submit"});
  if (arguments.what == "submit") return submit(arguments, cluster);
  if (arguments.what == "logs") return logs(arguments, cluster);
  if (arguments.what == "status") return status(arguments, cluster);
  if (arguments.what == "list") {
    print_jobs(launch::list_jobs(cluster), arguments.as_json);
    flush_output();
  } else if (arguments.what == "stop") {
    say_how(arguments.job, launch::stop_job(arguments.job, arguments.grace, cluster));
  } else {
    forget(arguments, cluster);
  }
  return 0;
}

}  // namespace troupe::cli
