#include "job/jobs.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <troupe/errors.hpp>
#include <troupe/with.hpp>

#include "config/name.hpp"
#include "config/token.hpp"
#include "job/job_host.hpp"
#include "job/job_keeper.hpp"
#include "plan/clock.hpp"
#include "plan/environment.hpp"
#include "transport/handshake/proof.hpp"
#include "words/refuse.hpp"
#include "workdir/packed_folder.hpp"

namespace troupe::launch {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kJobAnswer{10};
constexpr std::chrono::milliseconds kBetweenLooks{200};
constexpr std::chrono::milliseconds kBetweenFirstLooks{10};
constexpr std::chrono::seconds kPlaceAtOnce{1};
constexpr std::chrono::milliseconds kForTheLoss{500};
constexpr std::chrono::seconds kForTheEnd{5};  // of a program that is killed
constexpr std::size_t kMostQuoted = 64;        // of a name, in a message
// Between two looks a job may have got its place.
constexpr int kMostLooks = 3;

std::string made_name() {
  std::random_device random;
  return fmt::format("job-{:06x}", random() & 0xffffffu);
}

[[noreturn]] void refuse_taken(const std::string& name) {
  refuse(
      fmt::format("there is a job '{}' already: give another --name, or `troupe job "
                  "forget {}` once it is over",
                  name, name));
}

/// None: there is no such actor that can be called.
template <class T>
std::optional<Actor<T>> look_for(const std::string& actor) {
  try {
    return find<T>(actor, std::chrono::milliseconds(0));
  } catch (const TimedOut&) {
    return std::nullopt;
  }
}

/// None: it has ended meanwhile, or there is none. Throws TimedOut.
template <class T>
std::optional<JobInfo> ask(const std::optional<Actor<T>>& actor) {
  if (!actor) return std::nullopt;
  try {
    return actor->template call<&T::info>().get(kJobAnswer);
  } catch (const ActorDied&) {
    return std::nullopt;
  }
}

JobOrder order_of(const std::string& name, const SubmitOptions& options, const Cluster& cluster,
                  std::string& archive) {
  const auto grant = transport::token_grant(options.token, actor_name(name));
  JobOrder order{.name = name,
                 .arguments = options.arguments,
                 .environment = options.own_environment ? environment_to_hand_on() : Variables(),
                 .variables = options.variables,
                 .directory = options.directory,
                 .workdir = {},
                 .address = cluster.address(),
                 .token_grant = config::format_token(grant),
                 .submitted = now_in_seconds()};
  if (options.workdir.empty()) return order;
  auto packed = pack_folder(options.workdir);
  order.workdir = std::move(packed.digest);
  archive = std::move(packed.archive);
  return order;
}

/// What the cluster's status says of the actors of jobs.
struct JobActors {
  struct Place {
    std::string node;
    std::string state;
    std::string reason;
  };
  std::map<std::string, Place> hosts;  // by job
  std::map<std::string, Place> keepers;
};

std::string name_of_node(const json& status, int number) {
  for (const auto& node : status.at("nodes")) {
    if (node.at("node").get<int>() == number) return node.at("name").get<std::string>();
  }
  return number == 0 ? std::string() : std::to_string(number);
}

std::string reason_of(const json& status, const json& actor) {
  for (const auto& pending : status.at("pending")) {
    if (pending.value("actor", json()) == actor.at("actor"))
      return pending.at("reason").get<std::string>();
  }
  return {};
}

JobActors actors_of_jobs(const json& status) {
  JobActors found;
  for (const auto& actor : status.at("actors")) {
    const auto name = actor.at("name").get<std::string>();
    const auto job = job_of_actor(name);
    const auto kept = job_of_keeper(name);
    if (job.empty() && kept.empty()) continue;
    auto& place = job.empty() ? found.keepers[kept] : found.hosts[job];
    place = {.node = name_of_node(status, actor.at("node").get<int>()),
             .state = actor.at("state").get<std::string>(),
             .reason = reason_of(status, actor)};
  }
  return found;
}

bool has_node(const json& status, const std::string& name) {
  return std::ranges::any_of(status.at("nodes"),
                             [&](const json& node) { return node.at("name") == name; });
}

/// Those of whose actors none is there.
std::map<std::string, ListedJob> lost_jobs(const json& status, const JobActors& there) {
  std::map<std::string, ListedJob> lost;
  for (const auto& actor : status.at("lost_actors")) {
    const auto name = actor.at("name").get<std::string>();
    const auto job = job_of_actor(name).empty() ? job_of_keeper(name) : job_of_actor(name);
    if (job.empty() || there.hosts.contains(job) || there.keepers.contains(job)) continue;
    const auto node = actor.at("node").get<std::string>();
    auto end = end_in(actor.at("end").get<std::string>());
    // The log of an ended job goes with the node, whenever that leaves.
    const bool with_node = actor.at("with_node").get<bool>() || (end && !has_node(status, node));
    lost[job] = {.name = job,
                 .node = node,
                 .info = std::move(end),
                 .lost = LostJob{.with_node = with_node,
                                 .how = actor.at("how").get<std::string>(),
                                 .at = actor.at("time").get<double>()}};
  }
  return lost;
}

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
      try {
        if (infos_[i].wait_for(std::chrono::milliseconds(0))) jobs[jobs_[i]].info = infos_[i].get();
      } catch (const Error&) {  // it has ended meanwhile
      }
    }
  }

 private:
  std::vector<std::string> jobs_;
  std::vector<Ref<JobInfo>> infos_;
};

/// The keeper is there, and the JobHost has no place or is starting, or cannot be had.
Submitted await_place(const std::string& name, const Actor<JobKeeper>& keeper,
                      const Cluster& cluster) {
  const auto patience = std::chrono::steady_clock::now() + kPlaceAtOnce;
  while (const auto info = ask(std::optional(keeper))) {
    if (info->is_over) {
      if (info->was_stopped) refuse(fmt::format("the job '{}' was stopped before it began", name));
      keeper.kill();
      if (info->is_name_taken) refuse_taken(name);
      refuse(info->not_started);
    }
    const bool is_late = std::chrono::steady_clock::now() > patience;
    if (is_late) {
      const auto hosts = actors_of_jobs(json::parse(cluster.status_json())).hosts;
      const auto host = hosts.find(name);
      if (host != hosts.end() && host->second.state == "pending")
        return {.name = name, .is_waiting = true, .reason = host->second.reason};
    }
    std::this_thread::sleep_for(is_late ? kBetweenLooks : kBetweenFirstLooks);
  }
  if (!look_for<JobHost>(actor_name(name))) refuse_missing(name, cluster);
  return {.name = name};
}

}  // namespace

namespace {

[[noreturn]] void refuse_log(const ListedJob& job) {
  refuse(fmt::format("the job '{}' has ended, as `troupe job list` shows, and {}: {}{}", job.name,
                     where_log_is(job), job.lost->how,
                     job.lost->with_node ? "" : "; `troupe logs` lists it"));
}

/// The end of a job that was over before its actor was gone; none: there is no such job.
std::optional<JobInfo> end_without_actor(const std::string& job, const Cluster& cluster) {
  const auto status = json::parse(cluster.status_json());
  const auto lost = lost_jobs(status, actors_of_jobs(status));
  const auto found = lost.find(job);
  return found == lost.end() ? std::nullopt : found->second.info;
}

/// -> an actor of it is there. Throws Refused where it was lost.
bool is_there(const std::string& job, const Cluster& cluster) {
  const auto status = json::parse(cluster.status_json());
  const auto there = actors_of_jobs(status);
  const auto lost = lost_jobs(status, there);
  if (const auto found = lost.find(job); found != lost.end()) {
    if (found->second.info) refuse_log(found->second);
    refuse(fmt::format("the job '{}' was lost: {}; `troupe job forget {}` lists it no more", job,
                       found->second.lost->how, job));
  }
  return there.hosts.contains(job) || there.keepers.contains(job);
}

}  // namespace

void refuse_if_lost(const std::string& job, const Cluster& cluster) {
  for (int look = 0; look < kMostLooks && !look_at_job(job); ++look) {
    std::this_thread::sleep_for(kForTheLoss);
    if (!is_there(job, cluster)) return;  // it was forgotten
  }
}

void refuse_missing(const std::string& job, const Cluster& cluster) {
  is_there(job, cluster);
  refuse(fmt::format("there is no job '{}' in this cluster: `troupe job list` has all",
                     config::printable(job)));
}

Submitted submit(const SubmitOptions& options, const Cluster& cluster) {
  const auto name = options.name.empty() ? made_name() : options.name;
  if (const auto why = why_no_job_name(name); !why.empty())
    refuse(fmt::format("--name '{}': {}", config::printable(name, kMostQuoted), why));
  std::string archive;
  auto order = order_of(name, options, cluster, archive);
  const auto status = json::parse(cluster.status_json());
  const auto there = actors_of_jobs(status);
  if (there.hosts.contains(name) || there.keepers.contains(name) ||
      lost_jobs(status, there).contains(name))
    refuse_taken(name);
  const auto actor = keeper_name(name);
  // Written out by value: a detached actor outlives what this program holds.
  const auto keeper =
      with({.cpus = 0, .name = actor, .detached = true})
          .spawn<JobKeeper>(name, options.cpus, options.gpus, std::move(order), std::move(archive));
  try {
    keeper.ready().get();
  } catch (const NameTaken&) {
    refuse_taken(name);
  }
  return await_place(name, keeper, cluster);
}

std::string where_log_is(const ListedJob& job) {
  if (job.info->started <= 0) return "it has printed nothing";
  return job.lost->with_node
             ? "its log went with node " + job.node
             : fmt::format("its log is on node {}, though the job's own process has ended",
                           job.node);
}

std::vector<ListedJob> list_jobs(const Cluster& cluster, const std::optional<std::string>& only) {
  const auto status = json::parse(cluster.status_json());
  auto actors = actors_of_jobs(status);
  auto jobs = lost_jobs(status, actors);
  if (only) {  // no other is waited for
    const auto is_other = [&only](const auto& job) { return job.first != *only; };
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
  std::vector<ListedJob> listed;
  for (auto& [job, about] : jobs) listed.push_back(std::move(about));
  std::ranges::stable_sort(listed, {}, [](const ListedJob& job) {
    return job.info ? job.info->submitted : job.lost ? job.lost->at : 0;
  });
  return listed;
}

namespace {

/// Throws TimedOut.
std::optional<JobInfo> look_again(const std::string& job) {
  for (int look = 0; look < kMostLooks; ++look) {
    if (const auto info = ask(look_for<JobHost>(actor_name(job)))) return info;
    if (const auto info = ask(look_for<JobKeeper>(keeper_name(job)))) return info;
  }
  return std::nullopt;
}

[[noreturn]] void refuse_silent(const std::string& job) {
  refuse(fmt::format("the job '{}' does not answer (for {} s): `troupe job forget {}` kills it",
                     job, kJobAnswer.count(), job));
}

/// Throws TimedOut where it does not answer.
JobInfo await_until(const std::string& job, const Cluster& cluster,
                    const std::function<bool(const JobInfo&)>& is_it) {
  for (bool was_there = false;;) {
    auto info = look_again(job);
    // The head remembers how it was lost a moment after this program has heard of the loss.
    if (!info && was_there) {
      std::this_thread::sleep_for(kForTheLoss);
      info = look_again(job);
    }
    if (!info) info = end_without_actor(job, cluster);
    if (!info) refuse_missing(job, cluster);
    was_there = true;
    if (is_it(*info)) return *info;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

/// However long it does not answer: the link to it may be broken for a while.
JobInfo await_patiently(const std::string& job, const Cluster& cluster,
                        const std::function<bool(const JobInfo&)>& is_it) {
  for (;;) {
    try {
      return await_until(job, cluster, is_it);
    } catch (const TimedOut&) {
    }
  }
}

}  // namespace

std::optional<JobInfo> look_at_job(const std::string& job) {
  try {
    return look_again(job);
  } catch (const TimedOut&) {
    refuse_silent(job);
  }
}

JobInfo await_job(const std::string& job, const Cluster& cluster) {
  return await_patiently(job, cluster, [](const JobInfo& info) { return info.is_over; });
}

JobInfo await_start(const std::string& job, const Cluster& cluster) {
  return await_patiently(job, cluster, [](const JobInfo& info) { return !info.is_waiting; });
}

JobInfo stop_job(const std::string& job, double grace_s, const Cluster& cluster) {
  const auto grace_ms = static_cast<std::uint32_t>(grace_s * 1e3);
  bool is_told = false;
  const auto tell = [&](const JobInfo& info) {
    if (info.is_over || is_told) return info.is_over;
    try {
      if (const auto host = look_for<JobHost>(actor_name(job))) {
        host->call<&JobHost::stop>(grace_ms).get(kJobAnswer);
        is_told = true;
      } else if (const auto keeper = look_for<JobKeeper>(keeper_name(job))) {
        keeper->call<&JobKeeper::stop>().get(
            kJobAnswer);  // in vain where it has got its place just now
      }
    } catch (const ActorDied&) {  // the next look says what there is instead
    }
    return false;
  };
  try {
    return await_until(job, cluster, tell);
  } catch (const TimedOut&) {
    refuse_silent(job);
  }
}

namespace {

/// Ends the program before its host, which removes the file of the token as it ends by itself. What
/// does not end in time is ended with the host's process.
void end_host(const Actor<JobHost>& host) {
  try {
    host.call<&JobHost::stop>(0).get(kForTheEnd);
    const auto until = std::chrono::steady_clock::now() + kForTheEnd;
    while (!host.call<&JobHost::info>().get(kForTheEnd).is_over &&
           std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(kBetweenFirstLooks);
  } catch (const Error&) {  // it has gone, or its node does not answer
  }
  host.kill();
}

}  // namespace

bool forget_job(const std::string& job) {
  // A JobHost that its keeper was just constructing is seen a moment after the keeper is gone.
  const auto keeper = look_for<JobKeeper>(keeper_name(job));
  if (keeper) keeper->kill();
  auto host = look_for<JobHost>(actor_name(job));
  if (keeper && !host) {
    std::this_thread::sleep_for(kForTheLoss);
    host = look_for<JobHost>(actor_name(job));
  }
  if (host) end_host(*host);
  return keeper || host;
}

}  // namespace troupe::launch
