#pragma once

#include <span>
#include <vector>

#include "calls/channel/out_channel.hpp"
#include "tasks/tasks.hpp"

namespace troupe::runtime {

/// For the time of one wait on a user's thread: the channels through which the objects may be
/// answered, so that the thread takes the answers itself.
class WaitSet {
 public:
  WaitSet(Tasks& tasks, std::span<const detail::ObjectPtr> objects);
  ~WaitSet();
  WaitSet(const WaitSet&) = delete;
  WaitSet& operator=(const WaitSet&) = delete;

  /// Hands over what has been answered.
  void drain();
  void before_sleep();

 private:
  bool add(const OutChannelPtr& channel);  // false: it is watched already
  void look_for_leases();

  Tasks* tasks_ = nullptr;  // where an object is a task's
  std::uint64_t leases_version_ = 0;
  std::vector<OutChannelPtr> channels_;
};

}  // namespace troupe::runtime
