#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"

namespace troupe::scheduler {

void Cluster::on(const JobStarted& event) {
  if (!event.driver || jobs_.contains(event.job) || processes_.contains(event.driver)) return;
  last_process_ = std::max(last_process_, event.driver);
  auto& job = jobs_[event.job];
  job.id = event.job;
  job.driver = event.driver;
  job.started = now_;
  job.at_command_line = event.at_command_line;
  shares_.start(job.share, event.weight, now_);
  auto& driver = processes_.make(event.driver);
  driver.job = &job;
  driver.state = ProcessState::Driver;
  job.processes.push_back(driver);
}

void Cluster::on(const JobEnded& event) {
  if (const auto job = jobs_.find(event.job); job != jobs_.end())
    end_job(job->second, event.reason);
}

void Cluster::end_job(Job& job, const std::string& why) {
  if (job.ended) return;
  job.ended = true;
  const auto text = why.empty() ? fmt::format("job {} ended", job.id)
                                : fmt::format("job {} ended: {}", job.id, why);
  for (auto& process : job.processes) {
    auto& asked = process.asked();
    while (auto* request = asked.any_request()) drop(*request);
  }
  for (auto& process : job.processes) {
    auto& asked = process.asked();
    while (!asked.leases.empty()) erase_lease(asked.leases.front());
    for (auto actor : std::set{asked.actors}) erase_actor(actor);
    for (auto gang : std::set{asked.gangs}) erase_gang(gang);
  }
  for (auto& process : job.processes) stop(process, text);
  processes_.erase(processes_.at(job.driver));
  forget_job_if_over(job.id);
}

void Cluster::forget_job_if_over(JobId id) {
  const auto job = jobs_.find(id);
  if (job != jobs_.end() && job->second.ended && job->second.processes.empty()) jobs_.erase(job);
}

}  // namespace troupe::scheduler
