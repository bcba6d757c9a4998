#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <troupe/actor.hpp>

#include "job/job.hpp"
#include "job/job_host.hpp"

namespace troupe::launch {

/// The detached actor that holds the request for the place of a job, so that the command which
/// submitted the job may end: a detached actor needs its creator until it is constructed, and this
/// one, which asks for no resources, is constructed at once.
///
///   [waits] --the JobHost is constructed--> this actor ends itself
///      |--there is no such place, the JobHost cannot be constructed, stop()--> [over], until it is killed
///
/// The request is withdrawn where this actor is killed.
class JobKeeper {
 public:
  static constexpr std::string_view troupe_label = "troupe job that waits";

  /// `cpus`, `gpus`: of the JobHost. `archive`: as the JobHost has it.
  JobKeeper(std::string job, double cpus, double gpus, JobOrder order, std::string archive);
  ~JobKeeper();
  JobKeeper(const JobKeeper&) = delete;
  JobKeeper& operator=(const JobKeeper&) = delete;

  JobInfo info() const;
  /// Gives the request up. Does nothing once the JobHost is there, which is to be told instead.
  void stop();

 private:
  void keep(double cpus, double gpus, JobOrder order, std::string archive);
  void place(double cpus, double gpus, JobOrder order, std::string archive);
  void note_end(const std::string& why, bool is_name_taken);
  void end_this_actor() const;

  const std::string job_;
  mutable std::mutex mutex_;
  JobInfo info_;                        // guarded, as all below but the thread
  std::optional<Actor<JobHost>> host_;  // none: it was not asked for yet
  bool is_stopping_ = false;
  bool is_placed_ = false;
  std::atomic<bool> is_leaving_{false};  // nobody has stopped the job
  std::thread thread_;                   // waits for the place
};

}  // namespace troupe::launch
