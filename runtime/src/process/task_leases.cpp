// The leases that tasks are sent under: how they come, which rest or are stuck, and how they go.
#include <algorithm>
#include <utility>

#include "process/codec.hpp"
#include "process/tasks.hpp"

namespace troupe::process {

// ---- how they come ---------------------------------------------------------------------------------------------------

void Tasks::ask(Shape& shape) {
  auto id = std::make_shared<std::uint64_t>(0);
  bool refused_at_once = false;
  *id = head_.ask([&shape](wire::Ask::Builder ask) { write_request(ask.initLease(), shape.need); },
                  [this, &shape, id](wire::Tell::Reader tell) {
                    std::erase(shape.asks, *id);
                    granted(shape, tell.getLease().getLease(), read_address(tell.getLease().getProcess()));
                  },
                  [this, &shape, id, &refused_at_once](const Failure& why) {
                    if (*id == 0) refused_at_once = true;
                    std::erase(shape.asks, *id);
                    refused(shape, why);
                  });
  if (!refused_at_once) shape.asks.push_back(*id);
}

void Tasks::granted(Shape& shape, std::uint64_t lease, AddressPtr process) {
  {
    const std::lock_guard lock(mutex_);
    auto channel = calls_.channel(process->process);
    shape.leases.push_back(Lease{.id = lease,
                                 .process = std::move(process),
                                 .channel = std::move(channel),
                                 .line = {},
                                 .idle_since = Clock::now()});
    channels_version_.fetch_add(1, std::memory_order_release);
  }
  pump(shape);
  watch();
}

/// The shape cannot be had at all: that holds for every task that waits for it.
void Tasks::refused(Shape& shape, const Failure& why) {
  std::vector<TaskPtr> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting = shape.queue.take_all();
  }
  for (auto& task : waiting) task->result->complete(why);
}

void Tasks::channel_opened(const OutChannelPtr& channel) {
  for (auto& [key, shape] : shapes_) {
    {
      const std::lock_guard lock(mutex_);
      for (auto& lease : shape.leases) {
        if (lease.process->process == channel->callee()) lease.channel = channel;
      }
      channels_version_.fetch_add(1, std::memory_order_release);
    }
    pump(shape);
  }
}

// ---- leases that rest, that are stuck, that go -----------------------------------------------------------------------

/// Runs as long as there are leases.
void Tasks::watch() {
  if (std::exchange(ticking_, true)) return;
  tick_.expires_after(kTick);
  tick_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    ticking_ = false;
    for (auto& [key, shape] : shapes_) {
      look_for_stuck(shape);
      give_back_idle(shape, Clock::now());
      pump(shape);
    }
    const std::lock_guard lock(mutex_);
    if (has_leases()) watch();
  });
}

/// The first in line was there at the last tick: it takes long, or waits for what may stand behind it, or in the queue.
void Tasks::look_for_stuck(Shape& shape) {
  const std::lock_guard lock(mutex_);
  for (auto& lease : shape.leases) {
    const auto* first = lease.line.empty() ? nullptr : lease.line.front().get();
    lease.stuck = first && lease.seen_first == first;
    lease.seen_first = first;
    if (!lease.stuck || (lease.line.size() == 1 && shape.queue.empty())) continue;
    shape.run_time = std::max<std::chrono::nanoseconds>(shape.run_time, kTick);
    take_back(shape, lease);
  }
}

void Tasks::give_back_idle(Shape& shape, Clock::time_point now) {
  std::vector<std::uint64_t> given_back;
  {
    const std::lock_guard lock(mutex_);
    for (auto lease = shape.leases.begin(); lease != shape.leases.end();) {
      const auto current = lease++;
      if (!current->line.empty() || (!current->recalled && now - current->idle_since < kLinger)) continue;
      given_back.push_back(current->id);
      drop(shape, current);
    }
  }
  for (const auto lease : given_back) head_.post([lease](wire::Ask::Builder ask) { ask.setLeaseReturn(lease); });
}

void Tasks::recalled(std::uint64_t lease) {
  for (auto& [key, shape] : shapes_) {
    {
      const std::lock_guard lock(mutex_);
      auto* entry = find(shape, lease);
      if (!entry) continue;
      entry->recalled = true;
      if (entry->channel) take_back(shape, *entry);
    }
    give_back_idle(shape, Clock::now());
    pump(shape);
  }
}

/// What runs there hears of it from its call.
AddressPtr Tasks::lost(std::uint64_t lease) {
  for (auto& [key, shape] : shapes_) {
    const std::lock_guard lock(mutex_);
    auto entry = std::ranges::find(shape.leases, lease, &Lease::id);
    if (entry == shape.leases.end()) continue;
    auto process = entry->process;
    note_end(*entry);
    drop(shape, entry);
    return process;
  }
  return nullptr;
}

}  // namespace troupe::process
