#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <troupe/detail/break_listeners.hpp>
#include <troupe/detail/trainable/local_member.hpp>
#include <troupe/gang_context.hpp>

namespace fake {

/// What the ranks of a fake gang share.
struct GangTable {
  troupe::detail::LocalRendezvous rendezvous;
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
