#include "tasks/wait_set.hpp"

#include <algorithm>

namespace troupe::runtime {

WaitSet::WaitSet(Tasks& tasks, std::span<const detail::ObjectPtr> objects) {
  const detail::Object* before = nullptr;
  for (const auto& object : objects) {
    if (object->ready()) continue;
    if (object->source.is_task) tasks_ = &tasks;
    if (!object->source.channel || (before && before->source.channel == object->source.channel))
      continue;
    before = object.get();
    add(object->source.channel);
  }
  look_for_leases();
}

WaitSet::~WaitSet() {
  for (auto& channel : channels_) channel->stop_waiting();
}

bool WaitSet::add(const OutChannelPtr& channel) {
  if (std::ranges::find(channels_, channel) != channels_.end()) return false;
  channels_.push_back(channel);
  channel->start_waiting();
  return true;
}

/// Tasks move between leases, and leases come and go.
void WaitSet::look_for_leases() {
  if (!tasks_ || tasks_->channels_version() == leases_version_) return;
  leases_version_ = tasks_->channels_version();
  for (const auto& channel : tasks_->channels()) {
    // This may be the last look before this thread sleeps.
    if (add(channel)) channel->before_sleep();
  }
}

void WaitSet::drain() {
  look_for_leases();
  for (std::size_t i = 0; i < channels_.size(); ++i) channels_[i]->drain();
}

void WaitSet::before_sleep() {
  for (auto& channel : channels_) channel->before_sleep();
}

}  // namespace troupe::runtime
