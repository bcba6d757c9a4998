#include "job/jobs.hpp"

#include <random>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <troupe/errors.hpp>
#include <troupe/with.hpp>

#include "config/name.hpp"
#include "config/token.hpp"
#include "job/job_actors.hpp"
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

constexpr std::chrono::milliseconds kBetweenLooks{200};
constexpr std::chrono::milliseconds kBetweenFirstLooks{10};
constexpr std::chrono::seconds kPlaceAtOnce{1};
constexpr std::chrono::seconds kForTheEnd{5};  // of a program that is killed
constexpr std::size_t kMostQuoted = 64;        // of a name, in a message

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
bool is_there(const std::string& job, const json& status) {
  const auto there = actors_of_jobs(status);
  const auto lost = lost_jobs(status, there);
  if (const auto found = lost.find(job); found != lost.end()) {
    if (found->second.info) refuse_log(found->second);
    refuse(fmt::format("the job '{}' was lost: {}; `troupe job forget {}` lists it no more", job,
                       found->second.lost->how, job));
  }
  return there.has(job);
}

/// Throws Refused where what has no job of that name is the number of a program, or an actor's name,
/// which have logs too.
void refuse_other_kind(const std::string& name, const json& status) {
  const auto refuse_as = [&name](const std::string& what, const std::string& kind) {
    const auto shown = config::printable(name);
    refuse(
        fmt::format("'{}' is {}, and no job of `troupe job`: `troupe logs {} {}` has what it "
                    "printed",
                    shown, what, kind, shown));
  };
  for (const auto& job : status.at("jobs")) {
    if (std::to_string(job.at("job").get<std::uint64_t>()) == name)
      refuse_as("the number of the program " + job.at("name").get<std::string>(), "job");
  }
  for (const auto& actor : status.at("actors"))
    if (!name.empty() && actor.at("name") == name) refuse_as("the name of an actor", "actor");
}

}  // namespace

void refuse_if_lost(const std::string& job, const Cluster& cluster) {
  for (int look = 0; look < kMostLooks && !look_at_job(job); ++look) {
    std::this_thread::sleep_for(kForTheLoss);
    if (!is_there(job, json::parse(cluster.status_json()))) return;  // it was forgotten
  }
}

void refuse_missing(const std::string& job, const Cluster& cluster) {
  const auto status = json::parse(cluster.status_json());
  is_there(job, status);
  refuse_other_kind(job, status);
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
  if (there.has(name) || lost_jobs(status, there).contains(name)) refuse_taken(name);
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
