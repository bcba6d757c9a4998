#include <algorithm>

#include "cluster.hpp"
#include "policies/labels.hpp"

/// Tasks that wait for tasks: what a process holds, and what its node has free, as it lends its CPU
/// and gets it back (see CpuLoans) or, an actor, gives all back for good; and how many processes a
/// node may have because of them (see LeaseBounds).
namespace troupe::scheduler {

void Cluster::on(const ProcessBlocked& event) {
  auto* process = find_process(event.process);
  if (process == nullptr || process->state != ProcessState::InUse) return;
  auto& node = *process->node;
  if (process->loan.wait() == Wait::Owing) {
    loans_.block_in_debt(*process);
    nodes_.touch(node);
  } else if (process->loan.wait() == Wait::Runs) {
    const auto lent = loans_.lend(*process);
    set_cpu(*process, {});
    nodes_.give_cpu(node, lent);
  }
}

void Cluster::on(const ProcessUnblocked& event) {
  auto* process = find_process(event.process);
  if (process == nullptr || process->state == ProcessState::Stopping ||
      process->loan.wait() == Wait::Resuming)
    return;
  if (loans_.unblock(*process, now_)) {
    emit(ProcessResumed{process->id});
    return;
  }
  serve_waiting_for_cpu(*process->node);
  recall_for_cpu(*process->node);
}

/// What it has lent is with its node already, and is not asked back.
void Cluster::on(const ResourcesReturned& event) {
  auto* process = find_process(event.process);
  if (process == nullptr || process->state != ProcessState::InUse || process->role != Role::Actor ||
      process->light)
    return;
  const bool resumes = process->loan.wait() == Wait::Resuming;
  end_wait(*process);
  if (resumes) emit(ProcessResumed{process->id});
  count_use(*process, false);
  nodes_.give(*process->node, process->held);
  process->held.clear();
  light_.add(*process);
}

void Cluster::serve_waiting_for_cpu(Node& node) {
  while (auto* process = node.cpu_lines.next()) {
    const auto lent = process->loan.lent();
    if (node.free.amounts().of(kCpu) < lent) return;
    nodes_.take_cpu(node, lent);
    set_cpu(*process, lent);
    const bool resumes = process->loan.wait() == Wait::Resuming;
    end_wait(*process);
    if (resumes) emit(ProcessResumed{process->id});
  }
}

void Cluster::end_wait(Process& process) {
  if (loans_.end(process)) nodes_.touch(*process.node);
}

void Cluster::recall_for_cpu(Node& node) {
  const auto& resuming = node.cpu_lines.resuming();
  if (resuming.empty()) return;
  Amount short_of;
  for (const auto& [process, since] : resuming) short_of = short_of + process->loan.lent();
  Amount coming = node.free.amounts().of(kCpu);
  std::vector<Lease*> young;
  for (const auto& process : node.processes) {
    const auto cpu = process.held.resources.of(kCpu);
    if (cpu.is_zero()) continue;
    if (process.state == ProcessState::Stopping) coming = coming + cpu;
    if (process.role != Role::Lease) continue;
    auto& lease = leases_.at(process.subject.lease());
    if (lease.recalled) coming = coming + cpu;
    if (lease.granted() && !lease.recalled) young.push_back(&lease);
  }
  std::ranges::sort(young, {}, [](const Lease* lease) {
    return std::pair{lease->granted_at, lease->id};
  });
  for (auto* lease : young) {
    if (coming >= short_of) return;
    coming = coming + lease->process->held.resources.of(kCpu);
    recall(*lease);
  }
}

void Cluster::run_in_debt() {
  for (auto* process : loans_.run_in_debt(now_ - options_.resume_patience)) {
    nodes_.touch(*process->node);
    emit(ProcessResumed{process->id});
  }
}

void Cluster::refuse_bounded() {
  for (auto* shape : queue_.shapes()) {
    if (!only_bounded(*shape->key)) {
      shape->bounded_since.reset();
      continue;
    }
    if (!shape->bounded_since) shape->bounded_since = now_;
    if (*shape->bounded_since + options_.limit_patience > now_) continue;
    for (auto* request : shape->everyone())
      refuse(*request, Refused::Kind::Limit, reason(*request));
  }
}

bool Cluster::only_bounded(const ShapeKey& shape) const {
  if (shape.kind != Kind::Lease || !bounds_.any_at_bound()) return false;
  bool found = false;
  nodes_.by_free().descending(shape.need.resources, [&](NodeId id) {
    const auto& node = *nodes_.find(id);
    found = bounds_.is_at_bound(node) && node.free.fits(shape.need.resources) &&
            matches(node.labels, shape.need.labels);
    return !found;
  });
  return found;
}

}  // namespace troupe::scheduler
