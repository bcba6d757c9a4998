#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <troupe/actor.hpp>
#include <troupe/errors.hpp>

#include "job/jobs.hpp"

/// The actors of jobs, as the cluster's status has them and as they are called.
namespace troupe::launch {

/// In which a job's actor is to answer.
inline constexpr std::chrono::seconds kJobAnswer{10};
/// Within which the head hears of the end of an actor that a caller has heard of.
inline constexpr std::chrono::milliseconds kForTheLoss{500};
/// At a job that changes its actor, or has lost it: between two looks it may have got its place.
inline constexpr int kMostLooks = 3;

/// What the cluster's status says of the actors of jobs.
struct JobActors {
  struct Place {
    std::string node;
    std::string state;
    std::string reason;
  };
  std::map<std::string, Place> hosts;    ///< by job
  std::map<std::string, Place> keepers;  ///< by job
  bool has(const std::string& job) const { return hosts.contains(job) || keepers.contains(job); }
};

JobActors actors_of_jobs(const nlohmann::json& status);

/// Of the jobs that the head knows to be lost, those of whose actors none is there; by name.
std::map<std::string, ListedJob> lost_jobs(const nlohmann::json& status, const JobActors& there);

/// None: there is no such actor that can be called.
template <class T>
std::optional<Actor<T>> look_for(const std::string& actor) {
  try {
    return find<T>(actor, std::chrono::milliseconds(0));
  } catch (const TimedOut&) {
    return std::nullopt;
  }
}

}  // namespace troupe::launch
