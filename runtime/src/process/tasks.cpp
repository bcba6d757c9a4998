#include "process/tasks.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "process/codec.hpp"

namespace troupe::process {
namespace {

std::string key_of(const detail::RequestOptions& options) {
  std::string key = options.spread ? "spread" : "pack";
  for (const auto& [name, units] : options.resources) key += fmt::format("\n{}={}", name, units);
  for (const auto& [name, value] : options.labels) key += fmt::format("\n{}:{}", name, value);
  return key;
}

bool is_system_failure(const Failure& failure) {
  return failure.kind == Failure::Kind::ProcessDied || failure.kind == Failure::Kind::Disconnected;
}

}  // namespace

Tasks::Shape& Tasks::shape_of(const detail::RequestOptions& options) {
  auto [found, fresh] = shapes_.try_emplace(key_of(options));
  if (fresh) found->second.need = options;
  return found->second;
}

void Tasks::submit(detail::CallSpec spec, const detail::RequestOptions& options, detail::ObjectPtr result) {
  auto task = std::make_shared<Task>();
  task->call.function = spec.function;
  task->result = std::move(result);
  task->tries_left = options.retries < 0 ? kDefaultRetries : options.retries;
  auto& shape = shape_of(options);
  resolver_.resolve(std::move(spec.arguments), [this, &shape, task](Resolver::Resolved resolved) {
    if (auto* failure = std::get_if<Failure>(&resolved)) return task->result->complete(*failure);
    task->call.arguments = std::move(std::get<0>(resolved));
    enqueue(shape, task);
  });
}

void Tasks::enqueue(Shape& shape, const TaskPtr& task) {
  if (task->result->ready()) return;  // cancelled while it waited for its arguments
  shape.queue.push_back(task);
  task->result->on_cancel = [this, &shape, task] {
    if (std::erase(shape.queue, task) == 0) return;
    task->result->complete(
        Failure{.kind = Failure::Kind::Cancelled,
                .message = fmt::format("{} was cancelled before it started", task->call.function.label)});
    pump(shape);
  };
  pump(shape);
}

void Tasks::pump(Shape& shape) {
  while (!shape.queue.empty() && !shape.idle.empty()) {
    const auto lease = shape.idle.back();
    shape.idle.pop_back();
    auto task = std::move(shape.queue.front());
    shape.queue.pop_front();
    start(shape, lease, task);
  }
  const auto wanted = std::min(shape.queue.size(), kMaxAsks);
  while (shape.asks.size() > wanted) {
    const auto id = shape.asks.back();
    shape.asks.pop_back();
    head_.withdraw(id);
  }
  while (shape.asks.size() < std::min(shape.queue.size(), kMaxAsks)) ask(shape);
}

void Tasks::ask(Shape& shape) {
  auto id = std::make_shared<std::uint64_t>(0);
  *id = head_.ask([&shape](wire::Ask::Builder ask) { write_request(ask.initLease(), shape.need); },
                  [this, &shape, id](wire::Tell::Reader tell) {
                    std::erase(shape.asks, *id);
                    granted(shape, tell.getLease().getLease(), read_address(tell.getLease().getProcess()));
                  },
                  [this, &shape, id](const Failure& why) {
                    std::erase(shape.asks, *id);
                    refused(shape, why);
                  });
  // A link that is already gone refuses within the call, and the queue with it.
  if (!shape.queue.empty()) shape.asks.push_back(*id);
}

void Tasks::granted(Shape& shape, std::uint64_t lease, AddressPtr process) {
  shape.leases.emplace(lease,
                       Lease{.process = std::move(process), .running = nullptr, .recalled = false, .idle_since = {}});
  rest(shape, lease);
}

/// The shape cannot be had at all: that holds for every task that waits for it.
void Tasks::refused(Shape& shape, const Failure& why) {
  for (auto& task : std::exchange(shape.queue, {})) task->result->complete(why);
  pump(shape);
}

void Tasks::start(Shape& shape, std::uint64_t lease, const TaskPtr& task) {
  auto& entry = shape.leases.at(lease);
  entry.running = task;
  task->call.lease = lease;
  task->call.attempt = task->deaths;
  const auto process = entry.process;
  const auto id = calls_.send(process, task->call, [this, &shape, lease, task](Outcome outcome) {
    finished(shape, lease, task, std::move(outcome));
  });
  if (!task->result->ready()) task->result->on_cancel = [this, process, id] { calls_.cancel(process, id); };
}

void Tasks::finished(Shape& shape, std::uint64_t lease, const TaskPtr& task, Outcome outcome) {
  const auto* failure = std::get_if<Failure>(&outcome);
  if (failure && is_system_failure(*failure)) {
    shape.leases.erase(lease);
    retry_or_fail(shape, task, *failure);
  } else {
    task->result->complete(std::move(outcome));
    if (auto entry = shape.leases.find(lease); entry != shape.leases.end()) {
      entry->second.running = nullptr;
      rest(shape, lease);
    }
  }
}

void Tasks::retry_or_fail(Shape& shape, const TaskPtr& task, Failure how) {
  ++task->deaths;
  if (task->tries_left-- > 0) {
    shape.queue.push_front(task);
    task->result->on_cancel = nullptr;
    return pump(shape);
  }
  if (task->deaths > 1) {
    how.message = fmt::format("{} ended {} processes, so it is not tried again; the last: {}",
                              task->call.function.label, task->deaths, how.message);
  }
  task->result->complete(std::move(how));
}

/// The lease has no task: another one, or back with it, or a while of patience.
void Tasks::rest(Shape& shape, std::uint64_t lease) {
  auto& entry = shape.leases.at(lease);
  if (entry.recalled) {
    give_back(shape, lease);
    return pump(shape);
  }
  entry.idle_since = Clock::now();
  shape.idle.push_back(lease);
  pump(shape);
  if (!shape.idle.empty()) watch_idle(shape);
}

void Tasks::give_back(Shape& shape, std::uint64_t lease) {
  shape.leases.erase(lease);
  std::erase(shape.idle, lease);
  head_.post([lease](wire::Ask::Builder ask) { ask.setLeaseReturn(lease); });
}

void Tasks::watch_idle(Shape& shape) {
  if (shape.timer) return;
  shape.timer = std::make_unique<boost::asio::steady_timer>(loop_, kLinger);
  shape.timer->async_wait([this, &shape](const boost::system::error_code& error) {
    if (error) return;
    shape.timer.reset();
    const auto before = Clock::now() - kLinger;
    for (auto lease : std::vector(shape.idle)) {
      if (shape.leases.at(lease).idle_since <= before) give_back(shape, lease);
    }
    if (!shape.idle.empty()) watch_idle(shape);
  });
}

void Tasks::recalled(std::uint64_t lease) {
  for (auto& [key, shape] : shapes_) {
    auto entry = shape.leases.find(lease);
    if (entry == shape.leases.end()) continue;
    entry->second.recalled = true;
    if (!entry->second.running) give_back(shape, lease);
  }
}

AddressPtr Tasks::lost(std::uint64_t lease) {
  for (auto& [key, shape] : shapes_) {
    auto entry = shape.leases.find(lease);
    if (entry == shape.leases.end()) continue;
    auto process = entry->second.process;
    // A running task hears of it from its call, and the lease ends with that.
    if (!entry->second.running) {
      shape.leases.erase(entry);
      std::erase(shape.idle, lease);
    }
    return process;
  }
  return nullptr;
}

}  // namespace troupe::process
