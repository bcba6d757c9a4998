#include "job/job_keeper.hpp"

#include <chrono>
#include <exception>
#include <utility>

#include <troupe/errors.hpp>
#include <troupe/with.hpp>

#include "plan/clock.hpp"
#include "session/process.hpp"

namespace troupe::launch {

JobKeeper::JobKeeper(std::string job, double cpus, double gpus, JobOrder order, std::string archive)
    : job_(std::move(job)) {
  info_.command = command_of(order);
  info_.is_waiting = true;
  info_.submitted = order.submitted;
  thread_ = std::thread(
      [this, cpus, gpus, order = std::move(order), archive = std::move(archive)]() mutable {
        keep(cpus, gpus, std::move(order), std::move(archive));
      });
}

JobKeeper::~JobKeeper() {
  is_leaving_ = true;
  stop();
  thread_.join();
}

void JobKeeper::keep(double cpus, double gpus, JobOrder order, std::string archive) {
  try {
    place(cpus, gpus, std::move(order), std::move(archive));
  } catch (const NameTaken& error) {
    return note_end(error.what(), true);
  } catch (const std::exception& error) {
    return note_end(error.what(), false);
  }
  {
    const std::lock_guard lock(mutex_);
    is_placed_ = !is_stopping_;
  }
  if (is_placed_) return end_this_actor();
  note_end({}, false);  // stop() has killed the JobHost
}

void JobKeeper::place(double cpus, double gpus, JobOrder order, std::string archive) {
  const auto name = actor_name(job_);
  const auto host = with({.cpus = cpus, .gpus = gpus, .name = name, .detached = true})
                        .spawn<JobHost>(std::move(order), std::move(archive));
  {
    const std::lock_guard lock(mutex_);
    host_ = host;
    if (is_stopping_) host.kill();
  }
  host.ready().get();
}

void JobKeeper::note_end(const std::string& why, bool is_name_taken) {
  const std::lock_guard lock(mutex_);
  info_.is_waiting = false;
  info_.is_over = true;
  info_.was_stopped = is_stopping_;
  info_.is_name_taken = is_name_taken && !is_stopping_;
  if (!is_stopping_) info_.not_started = why;
  info_.ended = now_in_seconds();
  if (!is_leaving_) runtime::Process::current().tell_end(text_of_end(info_));
}

/// Its own handle is found once who submitted the job has said that this actor is constructed.
void JobKeeper::end_this_actor() const {
  for (;;) {
    try {
      return find<JobKeeper>(keeper_name(job_)).kill();
    } catch (const TimedOut&) {
    } catch (const Error&) {
      return;  // the cluster ends, and this process with it
    }
  }
}

JobInfo JobKeeper::info() const {
  const std::lock_guard lock(mutex_);
  return info_;
}

void JobKeeper::stop() {
  const std::lock_guard lock(mutex_);
  if (is_placed_ || info_.is_over) return;
  is_stopping_ = true;
  if (host_) host_->kill();
}

}  // namespace troupe::launch
