#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tables/model.hpp"

namespace troupe::scheduler {

/// CPUs that processes lend to their nodes while their user code waits for a result. A process gets
/// its CPU back before anybody else gets one on its node; one that has waited for that for long
/// runs on without, in debt.
///
///   [runs] --lend--> [blocked] --unblock, nothing lent--> [runs]
///                        |
///                        +--unblock--> [resuming] --end: it has its CPU--> [runs]
///                                          | run_in_debt
///                                          v
///         [blocked] <--block_in_debt-- [owing: runs] --end: it has its CPU--> [runs]
///
///   end, also from each other state: the process is used no more.
///
/// 1. A process stands in the resuming line of its node, once, exactly while it resumes, and in the
///    owing line exactly while it owes. It is in no line of another node.
/// 2. A process that runs has lent nothing; one in a line is to get something back.
/// 3. All that resume are known by since when, whichever node they are on.
///
/// What a process holds and what is free on its node is changed by the Cluster, with each step.
/// Cost: O(processes in the lines of the node, log of all that resume).
class CpuLoans {
 public:
  /// -> what the process holds of "cpu", which its node has from now on. Asserts that it runs.
  Amount lend(Process& process);
  /// It waits once more, before it has got its CPU back. Asserts that it owes.
  void block_in_debt(Process& process);
  /// The process has what it waited for. -> whether it may run on at once; else it resumes. Asserts
  /// that it does not resume yet.
  bool unblock(Process& process, TimePoint now);
  /// All that have resumed since that time or for longer run on, and owe from now on; by since when
  /// they resumed, and then by their ids.
  std::vector<Process*> run_in_debt(TimePoint resuming_since);
  /// The process has its CPU back, or is used no more. -> false: it has lent nothing, and does not
  /// wait.
  bool end(Process& process) { return process.loan.wait() != Wait::Runs && end_loan(process); }

  /// `nodes`: all of them. Cost: O(processes * those in the lines of a node).
  std::optional<std::string> broken_invariant(const std::vector<const Node*>& nodes) const;

 private:
  bool end_loan(Process& process);
  /// Takes the process out of those that resume, if it does.
  void leave_resuming(Process& process);
  static std::optional<std::string> broken(const Process& process, const Node& node);

  std::map<std::pair<TimePoint, ProcessId>, Process*> resuming_;
};

}  // namespace troupe::scheduler
