#include "head/output/output_relay.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace troupe::head {
namespace {

/// That wait for one driver: with what the driver itself asks for behind it.
constexpr std::size_t kMostQueued = 4 << 20;

}  // namespace

/// A node speaks for the processes of jobs that it knows, and no others.
void OutputRelay::on_output(NodeId id, wire::WorkerOutput::Reader output) {
  const auto* node = routes_.node(id);
  const JobId job_id{output.getJob()};
  const auto job = routes_.jobs().find(job_id);
  if (!node || job == routes_.jobs().end() || !node->jobs.contains(job_id)) return;
  const auto& connection = job->second.connection;
  if (!connection) return;
  if (connection->queued_bytes() > kMostQueued) {
    auto& left_out = jobs_[job_id].left_out;
    for (const auto process : output.getProcesses())
      left_out += process.getLines().size() + process.getLeftOut();
    return;
  }
  transport::Outgoing message;
  message.root().setWorkerOutput(output);
  auto out = message.root().getWorkerOutput();
  out.setNode(id.value());
  out.setNodeName(node->name);
  const auto known = jobs_.find(job_id);
  out.setLeftOut(known == jobs_.end() ? 0 : std::exchange(known->second.left_out, 0));
  connection->send(message);
}

void OutputRelay::flush(JobId job) {
  auto& flushing = jobs_[job].flushing;
  for (auto& [id, node] : routes_.nodes()) {
    if (!node.jobs.contains(job)) continue;
    flushing.insert(id);
    transport::Outgoing message;
    message.root().setOutputFlush(job.value());
    node.line->send(message);
  }
  if (flushing.empty()) flushed(job);
}

void OutputRelay::on_flushed(NodeId node, JobId job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || found->second.flushing.erase(node) == 0) return;
  if (found->second.flushing.empty()) flushed(job);
}

void OutputRelay::flushed(JobId job) {
  const auto found = routes_.jobs().find(job);
  if (found == routes_.jobs().end() || !found->second.connection) return;
  transport::Outgoing message;
  message.root().setOutputFlushed(job.value());
  found->second.connection->send(message);
}

void OutputRelay::node_gone(NodeId node) {
  std::vector<JobId> jobs;
  for (const auto& [id, job] : jobs_) jobs.push_back(id);
  for (const auto job : jobs) on_flushed(node, job);
}

void OutputRelay::job_gone(JobId job) { jobs_.erase(job); }

void OutputRelay::tick() {
  std::erase_if(jobs_, [this](const auto& entry) { return !routes_.jobs().contains(entry.first); });
  std::vector<std::pair<NodeId, JobId>> gone;
  for (const auto& [job, output] : jobs_) {
    for (const auto node : output.flushing) {
      if (!routes_.node(node)) gone.emplace_back(node, job);
    }
  }
  for (const auto& [node, job] : gone) on_flushed(node, job);
}

}  // namespace troupe::head
