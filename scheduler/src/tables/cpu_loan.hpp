#pragma once

#include <vector>

#include <troupe/scheduler/ids.hpp>
#include <troupe/scheduler/resources.hpp>

namespace troupe::scheduler {

struct Process;

/// Whether the user's code in a process waits, and for what.
enum class Wait : unsigned char {
  Runs,
  Blocked,   ///< for a result; its CPU is with the node
  Resuming,  ///< for its CPU
  Owing,     ///< runs without its CPU, and gets the next one
};

/// What one process has lent to its node. A value that lies with its process; CpuLoans alone
/// changes it.
class CpuLoan {
 public:
  Wait wait() const { return wait_; }
  Amount lent() const { return lent_; }  ///< the CPU to get back, which the process does not hold

 private:
  friend class CpuLoans;
  Amount lent_;
  Wait wait_ = Wait::Runs;
};

/// The processes of one node that get the next of its CPUs, each line by who came first. A value
/// that lies with its node; CpuLoans alone changes it.
class CpuLines {
 public:
  struct Resuming {
    Process* process = nullptr;
    TimePoint since{};
  };

  bool empty() const { return resuming_.empty() && owing_.empty(); }
  const std::vector<Resuming>& resuming() const { return resuming_; }
  const std::vector<Process*>& owing() const { return owing_; }
  /// Who gets the next CPU: the first that resumes, or else the first that owes; nullptr if nobody
  /// waits for one.
  Process* next() const {
    if (!resuming_.empty()) return resuming_.front().process;
    return owing_.empty() ? nullptr : owing_.front();
  }

 private:
  friend class CpuLoans;
  std::vector<Resuming> resuming_;
  std::vector<Process*> owing_;
};

}  // namespace troupe::scheduler
