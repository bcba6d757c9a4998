#include <algorithm>

#include <fmt/format.h>

#include "cluster.hpp"
#include "policies/labels.hpp"
#include "policies/place.hpp"

/// Why a request waits, worked out when somebody asks: nothing is written down while the cluster is
/// busy.
namespace troupe::scheduler {

std::string Cluster::node_text(NodeId id) const {
  const auto* node = nodes_.find(id);
  return node == nullptr ? fmt::format("node {}", id)
                         : fmt::format("'{}' (node {})", node->name, id);
}

std::string Cluster::reason(const Request& request) const {
  if (!request.waiting()) return reason_of_starting(request);
  const auto* shape = queue_.find(*request.shape);
  if (nodes_.empty() || (shape != nullptr && !shape->possible))
    return reason_of_missing(*request.shape);
  if (only_bounded(*request.shape)) {  // room that is kept for it would not help
    return fmt::format(
        "worker processes whose tasks wait for tasks have reached lease_processes_per_cpu, {} per "
        "CPU: nest fewer tasks in one another, or add CPUs",
        options_.lease_processes_per_cpu);
  }
  if (Reservations::is_held(request)) return reason_of_reservation(request);
  return reason_of_waiting(request);
}

std::string Cluster::reason_of_starting(const Request& request) const {
  const auto starts = [&](ProcessId id) {
    return fmt::format("worker process {} is starting on {}", id,
                       node_text(processes_.at(id).node->id));
  };
  if (request.shape->kind == Kind::Lease)
    return starts(leases_.at(request.subject.lease()).process->id);
  if (request.shape->kind == Kind::Actor)
    return starts(actors_.at(request.subject.actor()).process);
  const auto& gang = gangs_.at(request.subject.gang());
  const auto slow = std::ranges::find_if(gang.members, [&](const Member& member) {
    return processes_.at(member.process).state == ProcessState::Starting;
  });
  return fmt::format("{} of its {} worker processes are ready; {}", gang.ready, gang.size,
                     slow == gang.members.end() ? "none is missing" : starts(slow->process));
}

std::string Cluster::reason_of_reservation(const Request& request) const {
  std::string lacking;
  for (const auto& [id, part] : request.reservation->parts()) {
    const auto slots = part.node->free.slots(request.shape->need.resources, part.ranks);
    if (slots >= part.ranks) continue;
    lacking += fmt::format("{}{} has room for {} of {}", lacking.empty() ? "" : ", ", node_text(id),
                           slots, part.ranks);
  }
  return fmt::format("room is kept free for it, as its turn is next: {}",
                     lacking.empty() ? "there is enough, and it is about to be placed" : lacking);
}

std::string Cluster::reason_of_waiting(const Request& request) const {
  const auto& shape = *request.shape;
  const auto& need = shape.need.resources;
  const auto judged = scheduler::place(shape.ask(), nodes_.candidates());
  if (const auto* waits = std::get_if<Waits>(&judged)) return waits->because;
  if (const auto* impossible = std::get_if<Impossible>(&judged)) return impossible->because;

  // There is room, so it is kept for somebody.
  for (const auto* node : nodes_.all()) {
    if (!matches(node->labels, shape.need.labels) || !node->free.fits(need)) continue;
    for (const auto& [other, claim] : node->claims) {
      if (*claim.request->shape == shape || !claim.resources.overlaps(need)) continue;
      return fmt::format("what is free on {} is kept for request {}, whose turn is next",
                         node_text(node->id), other);
    }
    if (node->cpu_is_promised()) {
      return fmt::format("the next CPU of {} goes to a process there that has what it waited for",
                         node_text(node->id));
    }
  }
  const bool light = shape.size == 1 && need.empty();
  if (light && std::ranges::none_of(nodes_.all(), [&](const Node* node) {
        return matches(node->labels, shape.need.labels) && light_.has_room(*node);
      })) {
    return fmt::format(
        "worker processes that were given nothing, as actors are by default, have reached "
        "light_processes_per_cpu, {} per CPU, on every node that it may go to: end some of them, "
        "or add nodes",
        options_.light_processes_per_cpu);
  }
  return "it is about to be placed";
}

}  // namespace troupe::scheduler
