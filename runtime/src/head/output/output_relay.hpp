#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "head/routes.hpp"

namespace troupe::head {

/// What worker processes print, on its way from their nodes to the driver of their job. Belongs to
/// the head's loop. A driver that does not take it, as one that stands in a debugger, holds up
/// nobody: what is too much for it is dropped and counted, and stays in the log files.
class OutputRelay {
 public:
  explicit OutputRelay(Routes& routes) : routes_(routes) {}

  void on_output(NodeId node, wire::WorkerOutput::Reader output);
  /// The driver of that job wants all that there is by now; it is told once that is on its way.
  void flush(JobId job);
  void on_flushed(NodeId node, JobId job);
  void node_gone(NodeId node);
  void job_gone(JobId job);
  /// To be called now and then: nodes and drivers that the head itself has given up are gone too.
  void tick();

 private:
  struct Job {
    std::uint64_t left_out = 0;  // bytes that its driver has not been told of
    std::set<NodeId> flushing;
  };
  void flushed(JobId job);

  Routes& routes_;
  std::map<JobId, Job> jobs_;
};

}  // namespace troupe::head
