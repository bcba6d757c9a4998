#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/detail/break_listeners.hpp>
#include <troupe/detail/trainable/local_member.hpp>
#include <troupe/errors.hpp>
#include <troupe/gang_context.hpp>

namespace fake {

/// Of the threads of this process. As that of a cluster it keeps one name for a counter, and counts
/// what it keeps.
class CountingRendezvous final : public troupe::Rendezvous {
 public:
  void set(std::string_view key, std::string_view value) override {
    keys_.set(key, value);
    const std::lock_guard lock(mutex_);
    names_.emplace(key);
  }
  std::string get(std::string_view key, std::chrono::milliseconds timeout) override {
    return keys_.get(key, timeout);
  }
  void advance(std::string_view counter, std::uint64_t count, std::string_view note) override {
    const std::lock_guard lock(mutex_);
    names_.emplace(counter);
    counters_[std::string(counter)] = {count, std::string(note)};
    changed_.notify_all();
  }
  std::string await(std::string_view counter, std::uint64_t count,
                    std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    const auto& [reached, note] = counters_[std::string(counter)];
    if (!changed_.wait_for(lock, timeout, [&, &at = reached] { return at >= count; }))
      troupe::raise({.kind = troupe::Failure::Kind::TimedOut});
    return reached == count ? note : std::string();
  }

  std::size_t names() const {
    const std::lock_guard lock(mutex_);
    return names_.size();
  }

 private:
  troupe::detail::LocalRendezvous keys_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::set<std::string, std::less<>> names_;
  std::map<std::string, std::pair<std::uint64_t, std::string>> counters_;
};

/// What the ranks of a fake gang share.
struct GangTable {
  CountingRendezvous rendezvous;
  std::atomic<std::uint32_t> broken = 0;
  std::string why = "rank 1 was killed by signal 9";
  troupe::detail::BreakListeners listeners;

  void break_up() {
    broken = 1;
    listeners.notify();
  }
};

/// One rank of a gang whose ranks are threads of this process.
class GangOfThreads final : public troupe::GangContext {
 public:
  GangOfThreads(std::shared_ptr<GangTable> table, int rank, int size)
      : table_(std::move(table)), rank_(rank), size_(size) {}

  std::uint64_t id() const override { return 1; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return rank_; }
  int local_size() const override { return size_; }
  int node_rank() const override { return 0; }
  int node_count() const override { return 1; }
  std::vector<int> node_ranks() const override {
    return std::vector<int>(static_cast<std::size_t>(size_), 0);
  }
  std::uint32_t node() const override { return 3; }
  std::string host() const override { return "127.0.0.1"; }
  troupe::Rendezvous& rendezvous() override { return table_->rendezvous; }
  const std::atomic<std::uint32_t>& broken() const override { return table_->broken; }
  troupe::Failure why_broken() const override {
    return {.kind = troupe::Failure::Kind::GangBroken, .message = table_->why};
  }
  std::shared_ptr<void> on_broken(std::function<void()> then) override {
    return table_->listeners.add(std::move(then));
  }

 private:
  std::shared_ptr<GangTable> table_;
  int rank_;
  int size_;
};

}  // namespace fake
