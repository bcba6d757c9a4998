#include <algorithm>

#include "cluster.hpp"

/// A process whose user code waits gives its CPU to its node and gets it back before anybody else
/// gets one there.
///
///   [runs] --blocked--> [blocked] --unblocked, CPU free--> [runs]
///                           |
///                           +--unblocked, none free--> [resuming] --CPU free--> [runs]
///                                                          | resume_patience
///                                                          v
///                       [blocked] <--blocked-- [owing: runs] --CPU free--> [runs]
namespace troupe::scheduler {

void Cluster::on(const ProcessBlocked& event) {
  auto* process = find_process(event.process);
  if (process == nullptr || process->state != ProcessState::InUse) return;
  auto& node = *process->node;
  if (process->wait == Wait::Owing) {
    std::erase(node.owing, process->id);
    nodes_.touch(node);
  } else if (process->wait == Wait::Runs) {
    process->lent = process->held.resources.of(kCpu);
    set_cpu(*process, {});
    nodes_.give_cpu(node, process->lent);
  } else {
    return;
  }
  process->wait = Wait::Blocked;
}

void Cluster::on(const ProcessUnblocked& event) {
  auto* process = find_process(event.process);
  if (process == nullptr || process->state == ProcessState::Stopping ||
      process->wait == Wait::Resuming)
    return;
  if (process->wait != Wait::Blocked || process->lent.is_zero()) {
    if (process->wait == Wait::Blocked) process->wait = Wait::Runs;
    emit(ProcessResumed{process->id});
    return;
  }
  auto& node = *process->node;
  process->wait = Wait::Resuming;
  process->since = now_;
  resuming_.emplace(now_, process->id);
  node.resuming.push_back(process->id);
  serve_waiting_for_cpu(node);
  recall_for_cpu(node);
}

void Cluster::serve_waiting_for_cpu(Node& node) {
  for (auto* line : {&node.resuming, &node.owing}) {
    while (!line->empty()) {
      auto& process = processes_.at(line->front());
      if (node.free.amounts().of(kCpu) < process.lent) return;
      nodes_.take_cpu(node, process.lent);
      set_cpu(process, process.lent);
      const bool resumes = process.wait == Wait::Resuming;
      end_wait(process);
      if (resumes) emit(ProcessResumed{process.id});
    }
  }
}

void Cluster::end_wait(Process& process) {
  if (process.wait == Wait::Runs) return;
  auto& node = *process.node;
  std::erase(node.resuming, process.id);
  std::erase(node.owing, process.id);
  resuming_.erase({process.since, process.id});
  process.wait = Wait::Runs;
  process.lent = {};
  nodes_.touch(node);
}

void Cluster::recall_for_cpu(Node& node) {
  if (node.resuming.empty()) return;
  Amount short_of;
  for (auto id : node.resuming) short_of = short_of + processes_.at(id).lent;
  Amount coming = node.free.amounts().of(kCpu);
  std::vector<Lease*> young;
  for (const auto& process : node.processes) {
    const auto cpu = process.held.resources.of(kCpu);
    if (cpu.is_zero()) continue;
    if (process.state == ProcessState::Stopping) coming = coming + cpu;
    if (process.role != Role::Lease) continue;
    auto& lease = leases_.at(process.subject);
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
  while (!resuming_.empty() && resuming_.begin()->first + options_.resume_patience <= now_) {
    auto& process = processes_.at(resuming_.begin()->second);
    auto& node = *process.node;
    resuming_.erase(resuming_.begin());
    std::erase(node.resuming, process.id);
    node.owing.push_back(process.id);
    process.wait = Wait::Owing;
    nodes_.touch(node);
    emit(ProcessResumed{process.id});
  }
}

}  // namespace troupe::scheduler
