#include <algorithm>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <troupe/errors.hpp>

#include "job/job_actors.hpp"
#include "job/job_host.hpp"
#include "job/job_keeper.hpp"
#include "job/jobs.hpp"

/// The list of jobs.
namespace troupe::launch {
namespace {

using nlohmann::json;

/// Asks all at once, as one that is busy or behind a broken connection may not answer.
class Questions {
 public:
  template <class T>
  void ask(const std::string& job, const std::string& actor) {
    try {
      if (const auto found = look_for<T>(actor)) {
        infos_.push_back(found->template call<&T::info>());
        jobs_.push_back(job);
      }
    } catch (const Refused&) {  // it has no place yet, or was forgotten meanwhile
    }
  }
  /// A later answer on a job goes before an earlier one.
  void answer(std::map<std::string, ListedJob>& jobs) {
    wait(infos_, infos_.size(), kJobAnswer);
    for (std::size_t i = 0; i < infos_.size(); ++i) {
      auto& job = jobs[jobs_[i]];
      try {
        if (infos_[i].wait_for(std::chrono::milliseconds(0))) {
          job.info = infos_[i].get();
        } else {
          job.is_silent = true;
        }
      } catch (const Error&) {
        job.has_ended = true;
      }
    }
  }

 private:
  std::vector<std::string> jobs_;
  std::vector<Ref<JobInfo>> infos_;
};

using ListedJobs = std::map<std::string, ListedJob>;

/// `only`: no other is looked at, nor waited for; none: all are.
ListedJobs look_at(const json& status, const std::optional<std::set<std::string>>& only) {
  auto actors = actors_of_jobs(status);
  auto jobs = lost_jobs(status, actors);
  if (only) {
    const auto is_other = [&only](const auto& job) { return !only->contains(job.first); };
    std::erase_if(jobs, is_other);
    std::erase_if(actors.keepers, is_other);
    std::erase_if(actors.hosts, is_other);
  }
  Questions questions;
  for (const auto& [job, place] : actors.keepers) {
    jobs[job] = {.name = job};
    questions.ask<JobKeeper>(job, keeper_name(job));
  }
  for (const auto& [job, place] : actors.hosts) {
    jobs[job] = {.name = job, .node = place.node, .reason = place.reason};
    questions.ask<JobHost>(job, actor_name(job));
  }
  questions.answer(jobs);
  return jobs;
}

/// Which have not said how they are: they are starting, silent, or their actors have just ended.
std::set<std::string> unanswered(const ListedJobs& jobs) {
  std::set<std::string> names;
  for (const auto& [name, job] : jobs)
    if (!job.info && !job.lost) names.insert(name);
  return names;
}

/// What the head has meanwhile heard of jobs that did not answer. -> those of whose ended actors one
/// still stands in its status: the head has yet to hear that it ended.
std::set<std::string> settle_unanswered(const json& status, ListedJobs& jobs) {
  const auto there = actors_of_jobs(status);
  const auto lost = lost_jobs(status, there);
  std::set<std::string> unsettled;
  for (const auto& name : unanswered(jobs)) {
    if (const auto found = lost.find(name); found != lost.end()) {
      jobs[name] = found->second;
    } else if (!there.has(name)) {
      jobs.erase(name);  // it was forgotten
    } else if (jobs[name].has_ended && !jobs[name].is_silent) {
      unsettled.insert(name);
    }
  }
  return unsettled;
}

}  // namespace

bool is_starting(const ListedJob& job) {
  return !job.info && !job.lost && !job.is_silent && !job.has_ended && job.node.empty();
}

std::string where_log_is(const ListedJob& job) {
  if (job.info->started <= 0) return "it has printed nothing";
  return job.lost->with_node
             ? "its log went with node " + job.node
             : fmt::format("its log is on node {}, though the job's own process has ended",
                           job.node);
}

std::vector<ListedJob> list_jobs(const Cluster& cluster, const std::optional<std::string>& only) {
  const auto status = [&cluster] { return json::parse(cluster.status_json()); };
  auto jobs = look_at(status(), only ? std::optional(std::set{*only}) : std::nullopt);
  for (int look = 1; !unanswered(jobs).empty(); ++look) {
    auto unsettled = settle_unanswered(status(), jobs);
    if (unsettled.empty() || look == kMostLooks) break;
    std::this_thread::sleep_for(kForTheLoss);
    for (auto& [name, job] : look_at(status(), unsettled)) {
      unsettled.erase(name);
      jobs[name] = std::move(job);
    }
    for (const auto& forgotten : unsettled) jobs.erase(forgotten);
  }
  std::vector<ListedJob> listed;
  for (auto& [job, about] : jobs) listed.push_back(std::move(about));
  std::ranges::stable_sort(listed, {}, [](const ListedJob& job) {
    return job.info ? job.info->submitted : job.lost ? job.lost->at : 0;
  });
  return listed;
}

}  // namespace troupe::launch
