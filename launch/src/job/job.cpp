#include "job/job.hpp"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "config/json.hpp"
#include "config/name.hpp"

namespace troupe::launch {
namespace {

constexpr std::string_view kJobs = "troupe-jobs/";
constexpr std::string_view kWaitingJobs = "troupe-jobs-waiting/";

std::string behind(std::string_view name_space, const std::string& name) {
  return name.starts_with(name_space) ? name.substr(name_space.size()) : std::string();
}

}  // namespace

std::string state_of(const JobInfo& info) {
  if (info.is_waiting) return "waits for its place";
  // Its actor knows that from the first, and is over a moment later.
  if (!info.not_started.empty()) return "could not be started: " + info.not_started;
  if (!info.is_over) return "running";
  if (info.was_stopped) return "stopped";
  if (info.signal != 0) return fmt::format("ended by signal {}", info.signal);
  return info.exit_code == 0 ? "succeeded"
                             : fmt::format("failed with exit code {}", info.exit_code);
}

std::string what_was_left(const JobInfo& info) {
  if (info.left_processes == 0) return {};
  return info.left_processes == 1
             ? "1 process that it left running was killed"
             : fmt::format("{} processes that it left running were killed", info.left_processes);
}

std::string text_of_end(const JobInfo& info) {
  constexpr std::size_t kMostCommand = 1000, kMostWhy = 1000;
  return config::to_text({{"command", config::printable(info.command, kMostCommand)},
                          {"was_stopped", info.was_stopped},
                          {"is_name_taken", info.is_name_taken},
                          {"exit_code", info.exit_code},
                          {"signal", info.signal},
                          {"not_started", config::printable(info.not_started, kMostWhy)},
                          {"submitted", info.submitted},
                          {"started", info.started},
                          {"ended", info.ended},
                          {"lost_bytes", info.lost_bytes},
                          {"why_lost", config::printable(info.why_lost, kMostWhy)},
                          {"left_processes", info.left_processes}});
}

std::optional<JobInfo> end_in(const std::string& text) {
  const auto end = nlohmann::json::parse(text, nullptr, false);
  if (!end.is_object()) return std::nullopt;
  try {
    return JobInfo{.command = end.at("command").get<std::string>(),
                   .is_over = true,
                   .was_stopped = end.at("was_stopped").get<bool>(),
                   .is_name_taken = end.at("is_name_taken").get<bool>(),
                   .exit_code = end.at("exit_code").get<int>(),
                   .signal = end.at("signal").get<int>(),
                   .not_started = end.at("not_started").get<std::string>(),
                   .submitted = end.at("submitted").get<double>(),
                   .started = end.at("started").get<double>(),
                   .ended = end.at("ended").get<double>(),
                   .lost_bytes = end.at("lost_bytes").get<std::uint64_t>(),
                   .why_lost = end.at("why_lost").get<std::string>(),
                   .left_processes = end.value("left_processes", std::uint64_t{0})};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string command_of(const JobOrder& order) {
  return fmt::format("{}", fmt::join(order.arguments, " "));
}

std::string why_no_job_name(std::string_view name) {
  constexpr auto kMost = config::kMostNameBytes - kWaitingJobs.size();
  if (auto why = config::why_no_name(name); !why.empty()) return why;
  if (name.find('/') != std::string_view::npos) return "the name of a job has no '/'";
  return name.size() <= kMost ? ""
                              : fmt::format("it has {} bytes; give at most {}", name.size(), kMost);
}

std::string actor_name(const std::string& job) { return std::string(kJobs) + job; }
std::string keeper_name(const std::string& job) { return std::string(kWaitingJobs) + job; }
std::string job_of_actor(const std::string& name) { return behind(kJobs, name); }
std::string job_of_keeper(const std::string& name) { return behind(kWaitingJobs, name); }

}  // namespace troupe::launch
