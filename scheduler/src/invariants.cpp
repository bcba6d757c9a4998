#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"
#include "policies/place.hpp"

/// What holds after every event. Each check answers with the first thing that is wrong.
namespace troupe::scheduler {
namespace {

using Wrong = std::optional<std::string>;

Wrong check_amounts(const Node& node) {
  Capacity taken = node.free;
  for (const auto& gpu : node.free.gpus()) {
    if (gpu.ticks() < 0 || gpu > Amount::whole(1))
      return fmt::format("node {}: a GPU is {} free", node.id, gpu.units());
  }
  for (const auto& [name, amount] : node.free.amounts().entries()) {
    if (amount.ticks() < 0)
      return fmt::format("node {}: {} {} is free", node.id, name, amount.units());
  }
  for (const auto& process : node.processes) taken.give(process.held);
  if (taken.amounts() != node.idle.amounts() || taken.gpus() != node.idle.gpus()) {
    return fmt::format("node {}: free and taken add up to {}, and it has {}", node.id,
                       to_string(taken.amounts()), to_string(node.idle.amounts()));
  }
  Amount gpus;
  for (const auto& gpu : node.free.gpus()) gpus = gpus + gpu;
  if (gpus != node.free.amounts().of(kGpu))
    return fmt::format("node {}: the GPUs do not add up to what is free", node.id);
  return std::nullopt;
}

Wrong check_processes(const Node& node) {
  for (const auto& process : node.processes) {
    if (process.node != &node)
      return fmt::format("node {}: process {} is on another", node.id, process.id);
    const bool spare = process.role == Role::None && process.state != ProcessState::Stopping;
    if (spare != Spares::is_spare(process))
      return fmt::format("process {}: it is unused and no spare, or the other way round",
                         process.id);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Cluster::broken_invariant() const {
  for (const auto* node : nodes_.all()) {
    if (auto wrong = check_amounts(*node)) return wrong;
    if (auto wrong = check_processes(*node)) return wrong;
    for (const auto& [request, claim] : node->claims) {
      if (requests_.find(request) != claim.request)
        return fmt::format("node {}: kept for request {}, which is gone", node->id, request);
    }
  }
  if (auto wrong = broken_value()) return wrong;
  for (const auto* process : processes_.all()) {
    if (auto wrong = broken(*process)) return wrong;
  }
  for (const auto& [id, gang] : gangs_) {
    if (auto wrong = broken(gang)) return wrong;
  }
  if (auto wrong = broken_leases()) return wrong;
  for (const auto& [id, actor] : actors_) {
    const auto* process = find_process(actor.process);
    const bool placed = actor.stage == Stage::Placed;
    if (placed == requests_.contains(actor.request))
      return fmt::format("actor {}: its request is lost, or left", id);
    if (actor.stage != Stage::Pending &&
        (process == nullptr || process->role != Role::Actor || process->subject != SubjectId{id})) {
      return fmt::format("actor {}: no process", id);
    }
    if (actor.name.empty()) continue;
    const auto holder = names_.find({actor.job, actor.name});
    if (holder == names_.end() || holder->second != id)
      return fmt::format("actor {}: its name is not its own", id);
  }
  return broken_requests();
}

/// One that keeps what must hold of one matter.
std::optional<std::string> Cluster::broken_value() const {
  const auto nodes = nodes_.all();
  if (auto wrong = spares_.broken_invariant(nodes)) return wrong;
  if (auto wrong = bounds_.broken_invariant(nodes)) return wrong;
  if (auto wrong = light_.broken_invariant(nodes)) return wrong;
  if (auto wrong = loans_.broken_invariant(nodes)) return wrong;
  std::vector<const Job*> jobs;
  for (const auto& [id, job] : jobs_) {
    jobs.push_back(&job);
    if (auto wrong = shares_.broken_invariant(job.share))
      return fmt::format("job {}: {}", id, *wrong);
  }
  if (auto wrong = ages_.broken_invariant(leases_.all(), jobs)) return wrong;
  return reservations_.broken_invariant(nodes);
}

std::optional<std::string> Cluster::broken_leases() const {
  for (const auto* lease : leases_.all()) {
    const auto id = lease->id;
    if (leases_.find(id) != lease) return fmt::format("lease {}: it is not found", id);
    if (lease->process->role != Role::Lease || lease->process->subject != SubjectId{id} ||
        lease->node != lease->process->node) {
      return fmt::format("lease {}: no process", id);
    }
    if (!lease->granted() &&
        (lease->request->subject != SubjectId{id} || lease->request->waiting())) {
      return fmt::format("lease {}: no request", id);
    }
  }
  return broken_holders();
}

/// What is asked for and held is what those who asked have.
std::optional<std::string> Cluster::broken_holders() const {
  std::size_t requests = 0;
  std::size_t leases = 0;
  std::size_t processes = 0;
  for (const auto& [id, job] : jobs_) {
    Resources used;
    Resources returning;
    Amount of_actors, of_gangs;
    for (const auto& process : job.processes) {
      if (process.job != &job)
        return fmt::format("process {}: it is listed by job {}", process.id, id);
      if (process.node != nullptr && job.threads != Job::kMixed && process.threads != job.threads)
        return fmt::format("process {}: its threads are not those that job {} says", process.id,
                           id);
      if (process.role != Role::None) used += process.held.resources;
      if (process.role == Role::Actor) of_actors = of_actors + process.held.resources.cpu();
      if (process.role == Role::Rank) of_gangs = of_gangs + process.held.resources.cpu();
      if (process.role == Role::Lease) {
        const auto& lease = leases_.at(process.subject.lease());
        if (lease.recalled) returning += process.held.resources;
      }
      ++processes;
    }
    if (of_actors != job.cpus_of_actors || of_gangs != job.cpus_of_gangs)
      return fmt::format("job {}: what its actors and gangs hold is miscounted", id);
    if (used != job.share.used() || returning != job.share.returning())
      return fmt::format("job {}: what it uses is miscounted", id);
  }
  if (processes != processes_.size()) return "processes are miscounted";
  for (const auto* process : processes_.all()) {
    if (process->dependents == nullptr) continue;
    for (const auto& line : process->dependents->lines) {
      if (line.requester != process)
        return fmt::format("request {}: another asked for it", line.first().id);
      requests += line.waiting.size();
    }
    for (const auto& request : process->dependents->starting) {
      if (request.requester != process || request.waiting()) {
        return fmt::format("request {}: another asked for it, or it waits", request.id);
      }
      ++requests;
    }
    for (const auto& lease : process->dependents->leases) {
      if (lease.requester != process) return fmt::format("lease {}: another holds it", lease.id);
      ++leases;
    }
  }
  if (requests != requests_.size() || leases != leases_.size())
    return "somebody asks or holds who is not there";
  return std::nullopt;
}

std::optional<std::string> Cluster::broken(const Process& process) const {
  const auto job = jobs_.find(process.job->id);
  if (job == jobs_.end() || &job->second != process.job || !process.of_job.is_linked()) {
    return fmt::format("process {}: no job", process.id);
  }
  if (process.state == ProcessState::Driver) return std::nullopt;
  const auto* node = process.node;
  if (nodes_.find(node->id) != node || !process.on_node.is_linked())
    return fmt::format("process {}: no node", process.id);
  const bool has_user =
      (process.role == Role::Lease && leases_.contains(process.subject.lease())) ||
      (process.role == Role::Actor && actors_.contains(process.subject.actor())) ||
      (process.role == Role::Rank && gangs_.contains(process.subject.gang()));
  const bool may_be_unused = process.state != ProcessState::InUse && process.role == Role::None;
  if (!has_user && !may_be_unused) return fmt::format("process {}: in use by nobody", process.id);
  if (process.state == ProcessState::Idle && (has_user || !process.held.resources.empty())) {
    return fmt::format("process {}: it is idle and holds something", process.id);
  }
  if (process.state == ProcessState::Stopping && process.keeps_others()) {
    return fmt::format("process {}: it is stopping, and what it asked for is not", process.id);
  }
  if (process.loan.wait() != Wait::Runs && process.state != ProcessState::InUse)
    return fmt::format("process {}: it is not in use and waits", process.id);
  return std::nullopt;
}

std::optional<std::string> Cluster::broken(const Gang& gang) const {
  const bool pending = gang.stage == Stage::Pending || gang.stage == Stage::Starting;
  if (pending != requests_.contains(gang.request))
    return fmt::format("gang {}: its request is lost, or left", gang.id);
  if (gang.members.size() != (gang.stage == Stage::Pending ? 0 : gang.size)) {
    return fmt::format("gang {}: half placed", gang.id);
  }
  std::size_t dead = 0;
  for (const auto& member : gang.members) {
    const auto* process = find_process(member.process);
    const bool there =
        process != nullptr && process->role == Role::Rank && process->subject == SubjectId{gang.id};
    if (!there) ++dead;
  }
  if (dead > 0 && gang.stage != Stage::Broken)
    return fmt::format("gang {}: {} ranks are missing", gang.id, dead);
  if (gang.stage == Stage::Broken &&
      (dead == 0 || gang.alive != gang.size - dead || gang.alive == 0)) {
    return fmt::format("gang {}: its dead are miscounted", gang.id);
  }
  return std::nullopt;
}

std::optional<std::string> Cluster::broken_requests() const {
  std::size_t waiting = 0;
  for (const auto& [key, shape] : queue_.by_key()) {
    if (auto wrong = broken(shape)) return wrong;
    waiting += shape.size;
  }
  for (const auto* request : requests_.all()) {
    const auto id = request->id;
    if (requests_.find(id) != request) return fmt::format("request {}: it is not found", id);
    if (request->waiting() && waiting-- == 0)
      return fmt::format("request {}: waiting, and not queued", id);
    if ((request->reservation != nullptr) != reservations_.contains(*request)) {
      return fmt::format("request {}: its reservation is lost, or left", id);
    }
  }
  for (const auto& view : pending()) {
    if (view.reason.empty()) return fmt::format("request {}: no reason", view.request);
  }
  return forgotten_request();
}

std::optional<std::string> Cluster::broken(const Shape& shape) const {
  std::size_t size = 0;
  for (const auto& [requester, line] : shape.lines) {
    if (line.shape != &shape || line.requester->id != requester || !line.turn.is_linked() ||
        line.requester->job->id != line.of_job->job || line.earliest != line.first().sequence) {
      return fmt::format("the line of process {} is lost", requester);
    }
    std::uint64_t last = 0;
    for (const auto& request : line.waiting) {
      if (request.line != &line || request.requester != line.requester) {
        return fmt::format("request {}: queued, and not waiting", request.id);
      }
      if (request.sequence <= last)
        return fmt::format("request {}: queued out of its order", request.id);
      last = request.sequence;
      ++size;
    }
  }
  if (size == 0 || size != shape.size) return "a queue is miscounted";
  return broken_order(shape);
}

std::optional<std::string> Cluster::broken_order(const Shape& shape) const {
  std::size_t lines = 0;
  for (const auto& job : shape.order) {
    if (!shape.jobs.contains(job.job) || !std::ranges::is_sorted(job.lines, ByFirst{})) {
      return fmt::format("lines of job {} are not in the order of their first requests", job.job);
    }
    if (job.earliest != job.place_of(job.first().sequence))
      return fmt::format("job {}: its turn is another's", job.job);
    lines += job.lines.size();
    std::size_t waiting = 0;
    for (const auto& line : job.lines) waiting += line.waiting.size();
    if (waiting != job.size) return fmt::format("requests of job {} are miscounted", job.job);
  }
  if (lines != shape.lines.size() || shape.order.size() != shape.jobs.size())
    return "a line is in no order";
  if (shape.earliest != shape.order.begin()->earliest) return "the turn of a shape is another's";
  if (!std::ranges::is_sorted(shape.order, ByFirst{}))
    return "jobs are not in the order of their first requests";
  return std::nullopt;
}

/// One that waits although it could be placed: what became free did not wake it.
std::optional<std::string> Cluster::forgotten_request() const {
  Shortlist shortlist{nodes_, bounds_, light_};
  for (const auto& [key, shape] : queue_.by_key()) {
    const auto candidates = shortlist.of_all(shape);
    if (!shape.possible || candidates.empty()) continue;
    if (std::holds_alternative<Chosen>(scheduler::place(key.ask(), candidates))) {
      return fmt::format("request {}: it waits although it fits", shape.first().id);
    }
  }
  return std::nullopt;
}

}  // namespace troupe::scheduler
