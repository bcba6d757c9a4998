#include "programs/job_rows.hpp"

#include <cstdio>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/json.hpp"
#include "config/name.hpp"
#include "store/types.hpp"

namespace troupe::cli {
namespace {

constexpr std::size_t kMostCommand = 120;  // in the table; `--json` has all of it
constexpr std::size_t kMostShown = 2000;   // of a state and its cause

nlohmann::json json_of(const launch::ListedJob& job) {
  nlohmann::json row{{"job", job.name}, {"node", job.node}, {"state", state_of(job)}};
  const bool is_lost = job.lost && !job.info;
  row["reason"] = is_lost ? job.lost->how : job.lost ? launch::where_log_is(job) : job.reason;
  if (is_lost) row.update({{"is_over", true}, {"ended", job.lost->at}});
  if (!job.info) return row;
  row["command"] = job.info->command;
  row["submitted"] = job.info->submitted;
  if (job.info->started > 0) row["started"] = job.info->started;
  row["is_over"] = job.info->is_over;
  row["lost_output_bytes"] = job.info->lost_bytes;
  row["why_output_lost"] = job.info->why_lost;
  if (job.info->is_over) {
    row["ended"] = job.info->ended;
    row["exit_code"] = job.info->exit_code;
    row["signal"] = job.info->signal;
    row["left_processes"] = job.info->left_processes;
  }
  return row;
}

std::string to_text(double time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(static_cast<std::time_t>(time)));
}

/// At which its program was started.
std::string start_of(const launch::ListedJob& job) {
  return job.info && job.info->started > 0 ? to_text(job.info->started) : "-";
}

/// Behind the state of a job, for people.
std::string about(const launch::ListedJob& job) {
  if (job.lost && !job.info) return fmt::format(" at {}: {}", to_text(job.lost->at), job.lost->how);
  auto text = job.lost             ? "; " + launch::where_log_is(job)
              : job.reason.empty() ? std::string()
                                   : ": " + job.reason;
  if (job.info && job.info->lost_bytes > 0) {
    text += fmt::format("; {} of its output are lost, as its log could not be written: {}",
                        store::format_bytes(job.info->lost_bytes), job.info->why_lost);
  }
  if (job.info && job.info->left_processes > 0) text += "; " + what_was_left(*job.info);
  return text;
}

void print_row(const launch::ListedJob& job) {
  const auto command =
      job.info ? config::printable(job.info->command, kMostCommand) + ": " : std::string();
  fmt::print("{:<16} {:<12} {:<19}  {}{}\n", config::printable(job.name),
             job.node.empty() ? "-" : job.node, start_of(job), command,
             config::printable(state_of(job) + about(job), kMostShown));
}

}  // namespace

std::string state_of(const launch::ListedJob& job) {
  if (job.lost && !job.info) return job.lost->with_node ? "lost with node " + job.node : "lost";
  if (!job.info) return launch::is_starting(job) ? "is starting" : "does not answer";
  return launch::state_of(*job.info);
}

void print_job(const launch::ListedJob& job, bool as_json) {
  if (as_json) return fmt::print("{}\n", config::to_text(json_of(job), 2));
  print_row(job);
}

void print_jobs(const std::vector<launch::ListedJob>& jobs, bool as_json) {
  if (as_json) {
    auto rows = nlohmann::json::array();
    for (const auto& job : jobs) rows.push_back(json_of(job));
    fmt::print("{}\n", config::to_text(rows, 2));
    return;
  }
  if (jobs.empty()) fmt::print("no jobs: `troupe job submit -- PROGRAM` starts one\n");
  for (const auto& job : jobs) print_row(job);
}

}  // namespace troupe::cli
