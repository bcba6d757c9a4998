#include "head/routes.hpp"

#include <algorithm>

namespace troupe::head {

Routes::Node* Routes::node(NodeId id) {
  auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : &found->second;
}

Routes::Process* Routes::process(ProcessId id) {
  auto found = processes_.find(id);
  return found == processes_.end() ? nullptr : &found->second;
}

std::vector<ProcessId> Routes::processes_of_node(NodeId node) const {
  std::vector<ProcessId> found;
  for (const auto& [id, process] : processes_) {
    if (process.node == node) found.push_back(id);
  }
  return found;
}

void Routes::remove_job(JobId id) {
  jobs_.erase(id);
  for (auto& [number, node] : nodes_) {
    if (node.jobs.erase(id) == 0) continue;
    transport::Outgoing message;
    message.root().setJobEnded(id.value());
    node.line->send(message);
  }
}

void Routes::tell(ProcessId to, HeadRequestId ask, const FillTell& fill) {
  const auto* target = process(to);
  if (!target) return;
  transport::Outgoing message;
  if (!target->node) {
    auto job = jobs_.find(target->job);
    if (job == jobs_.end()) return;
    auto tell = message.root().initHeadNotice();
    tell.setId(ask.value());
    fill(tell);
    if (job->second.connection) job->second.connection->send(message);
  } else if (auto* node = this->node(target->node)) {
    auto relay = message.root().initRelay();
    relay.setProcess(to.value());
    auto tell = relay.initNotice();
    tell.setId(ask.value());
    fill(tell);
    node->line->send(message);
  }
}

void Routes::start_process(const scheduler::StartProcess& effect) {
  auto* target = this->node(effect.node);
  auto announced = jobs_.find(effect.job);
  if (!target || announced == jobs_.end()) return;
  if (target->jobs.insert(effect.job).second) {
    transport::Outgoing message;
    auto started = message.root().initJobStarted();
    started.setJob(effect.job.value());
    announced->second.announcement(started);
    started.setWorkerOutput(announced->second.shows_output);
    target->line->send(message);
  }
  transport::Outgoing message;
  auto start = message.root().initStartProcess();
  start.setProcess(effect.process.value());
  start.setJob(effect.job.value());
  start.setThreads(effect.threads);
  auto list = start.initGpus(static_cast<unsigned>(effect.gpus.size()));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, effect.gpus[i]);
  target->line->send(message);
}

bool Routes::has_process_of(JobId job) const {
  return std::ranges::any_of(processes_, [&](const auto& entry) {
    return entry.second.node.value() != 0 && entry.second.job == job;
  });
}

void Routes::stop_process(NodeId node, ProcessId process, const std::string& why) {
  auto* target = this->node(node);
  if (!target) return;
  transport::Outgoing message;
  auto stop = message.root().initStopProcess();
  stop.setProcess(process.value());
  stop.setWhy(why);
  target->line->send(message);
}

void Routes::node_lost(NodeId lost, const std::vector<ProcessId>& processes,
                       const std::string& what) {
  auto send = [&](const auto& way) {
    transport::Outgoing message;
    auto out = message.root().initNodeLost();
    out.setNode(lost.value());
    out.setWhat(what);
    auto list = out.initProcesses(static_cast<unsigned>(processes.size()));
    for (unsigned i = 0; i < list.size(); ++i) list.set(i, processes[i].value());
    way->send(message);
  };
  for (auto& [id, node] : nodes_) send(node.line);
  for (auto& [id, job] : jobs_) {
    if (job.connection) send(job.connection);
  }
}

void Routes::shutdown(const std::string& why) {
  auto send = [&](const auto& way) {
    transport::Outgoing message;
    message.root().setShutdown(why);
    way->send(message);
  };
  for (auto& [id, node] : nodes_) send(node.line);
  for (auto& [id, job] : jobs_) {
    if (job.connection) send(job.connection);
  }
}

}  // namespace troupe::head
