#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"

/// Who waits for long is told so, and why.
namespace troupe::scheduler {
namespace {

bool holds_something(const Process& process) {
  return !process.held.resources.empty() || !process.loan.lent().is_zero();
}

std::string counted(Amount cpus) {
  return fmt::format("{} CPU{}", cpus.units(), cpus == Amount::whole(1) ? "" : "s");
}

/// Whoever assigns a new gang to the variable of a former one makes the new one first, which then
/// waits for what goes only after it is there.
constexpr auto kReplacesGang =
    "; if it is to replace a gang of this program, it waits for the former ranks to end: kill() "
    "the former gang, or let its last handle go, before this one is made";

}  // namespace

void Cluster::tell_who_waits() {
  for (auto* shape : queue_.shapes()) {
    for (const auto& lines : shape->order) {
      const auto& first = lines.first();
      auto& job = jobs_.at(lines.job);
      if (first.since + options_.notice_after > now_) continue;
      auto& noticed = job.noticed[static_cast<std::size_t>(first.shape->kind)];
      if (job.ended || (noticed && *noticed + options_.notice_pause > now_)) continue;
      // In this order: with each tick, most jobs have nothing to be looked up for.
      const bool is_halved = halves_itself(job) && lacks_cpu(first);
      if (!is_halved && !is_news(first)) continue;
      noticed = now_;
      auto why = reason(first) + kept_by_actors(job) + kept_until_ended(job);
      if (is_halved || (first.awaited && halves_itself(job))) why += hint(job);
      if (first.awaited && !job.cpus_of_gangs.is_zero() && !job.at_command_line)
        why += kReplacesGang;
      emit(StillWaits{job.id, job.driver, what(first), now_ - first.since, std::move(why)});
    }
  }
}

/// What a newcomer may not know: an actor that has nothing to do keeps its CPU or its GPU all the
/// same, where it was given one.
std::string Cluster::kept_by_actors(const Job& job) {
  const auto actors = std::ranges::count_if(job.processes, [](const Process& process) {
    return process.role == Role::Actor && holds_something(process);
  });
  if (actors == 0 || job.at_command_line) return {};
  if (actors == 1)
    return "; an actor of this job keeps what it was given until its last handle goes";
  return fmt::format(
      "; {} actors of this job keep what they were given until their last handles go", actors);
}

/// Ranks and actors that were let go hold their place until their processes have ended.
std::string Cluster::kept_until_ended(const Job& job) {
  const auto ending = std::ranges::count_if(job.processes, [](const Process& process) {
    return process.state == ProcessState::Stopping && holds_something(process);
  });
  if (ending == 0) return {};
  return fmt::format(
      "; it waits for {} former worker process{} of this job, which {} told to end "
      "and still hold{} a place",
      ending, ending == 1 ? "" : "es", ending == 1 ? "was" : "were", ending == 1 ? "s" : "");
}

/// Whether it is a task that some node would have room for if there were more CPUs.
bool Cluster::lacks_cpu(const Request& request) const {
  const auto cpu = request.shape->need.resources.cpu();
  if (request.shape->kind != Kind::Lease || cpu.is_zero()) return false;
  bool found = false;
  Resources least;
  least.set(kCpu, cpu);
  nodes_.by_free().descending(least, [&](NodeId) {
    found = true;
    return false;
  });
  return !found;
}

/// Whether what the job itself holds for long leaves its tasks half of the cluster at most.
bool Cluster::halves_itself(const Job& job) const {
  const auto held = job.cpus_of_actors + job.cpus_of_gangs;
  return !held.is_zero() && held * 2 >= nodes_.total().cpu();
}

std::string Cluster::hint(const Job& job) const {
  const auto actors = job.cpus_of_actors, gangs = job.cpus_of_gangs;
  const auto total = counted(nodes_.total().cpu());
  if (actors.is_zero())
    return fmt::format("; this program's own gangs hold {} of the cluster's {} meanwhile",
                       gangs.units(), total);
  const auto and_gangs =
      gangs.is_zero() ? std::string{} : fmt::format(", and its gangs {}", gangs.units());
  return fmt::format("; this program's own actors hold {} of the cluster's {}{}{}", actors.units(),
                     total, and_gangs,
                     job.at_command_line ? "" : ": with({.cpus = 0}) gives an actor none");
}

bool Cluster::is_news(const Request& request) const {
  if (!request.line->shape->possible) return true;
  if (request.shape->kind == Kind::Actor || request.awaited) return true;
  const auto same = request.shape->kind == Kind::Lease ? Role::Lease : Role::Rank;
  return std::ranges::none_of(request.requester->job->processes,
                              [same](const Process& process) { return process.role == same; });
}

}  // namespace troupe::scheduler
