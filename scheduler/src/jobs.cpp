#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"

namespace troupe::scheduler {

void Cluster::on(const JobStarted& event) {
  if (event.driver == 0 || jobs_.contains(event.job) || processes_.contains(event.driver)) return;
  last_process_ = std::max(last_process_, event.driver);
  jobs_.emplace(event.job, Job{event.job, event.driver, false, {event.driver}});
  Process driver;
  driver.id = event.driver;
  driver.job = event.job;
  driver.state = ProcessState::Driver;
  processes_.emplace(event.driver, std::move(driver));
}

void Cluster::on(const JobEnded& event) {
  if (const auto job = jobs_.find(event.job); job != jobs_.end()) end_job(job->second, event.reason);
}

void Cluster::end_job(Job& job, const std::string& why) {
  if (job.ended) return;
  job.ended = true;
  const auto text = why.empty() ? fmt::format("job {} ended", job.id) : fmt::format("job {} ended: {}", job.id, why);
  const auto everyone = in_order(job.processes);
  for (auto id : everyone) {
    for (auto request : in_order(processes_.at(id).requests)) drop(request);
  }
  for (auto id : everyone) {
    auto& process = processes_.at(id);
    for (auto lease : in_order(process.leases)) erase_lease(lease);
    for (auto actor : in_order(process.actors)) erase_actor(actor);
    for (auto gang : in_order(process.gangs)) erase_gang(gang);
  }
  for (auto id : everyone) stop(processes_.at(id), text);
  processes_.erase(job.driver);
  job.processes.erase(job.driver);
  forget_job_if_over(job.id);
}

void Cluster::forget_job_if_over(JobId id) {
  const auto job = jobs_.find(id);
  if (job != jobs_.end() && job->second.ended && job->second.processes.empty()) jobs_.erase(job);
}

}  // namespace troupe::scheduler
