#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <troupe/detail/break_listeners.hpp>
#include <troupe/gang_context.hpp>

#include "gangs/rendezvous_table.hpp"
#include "ids/address.hpp"

namespace troupe::runtime {

/// What the end of a rank is to the others of its gang.
Failure rank_gone(std::uint32_t rank, Failure how);

/// One rank's view of its gang, in the rank's process. Made on the loop when the constructor call
/// arrives; lives as long as the process. Its facts never change; what breaks it is published
/// through broken().
class RankContext final : public GangContext, public Rendezvous {
 public:
  struct Place {
    AddressPtr process;
    int local_rank = 0;
    int node_rank = 0;
  };
  /// Posts a request to rank 0's process; any thread. `done` runs on the loop.
  using Ask = std::function<void(RendezvousRequest request, std::function<void(Outcome)> done)>;

  RankContext(GangId gang, int rank, std::vector<Place> members, Ask ask);

  GangId gang() const { return gang_; }
  std::uint64_t id() const override { return gang_.value(); }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  int local_rank() const override { return members_[rank_].local_rank; }
  int local_size() const override;
  int node_rank() const override { return members_[rank_].node_rank; }
  int node_count() const override;
  std::vector<int> node_ranks() const override;
  std::uint32_t node() const override { return members_[rank_].process->node.value(); }
  std::string host() const override { return members_[rank_].process->host; }
  Rendezvous& rendezvous() override { return *this; }
  const std::atomic<std::uint32_t>& broken() const override { return broken_; }
  Failure why_broken() const override;
  std::shared_ptr<void> on_broken(std::function<void()> then) override;

  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, std::chrono::milliseconds timeout) override;
  void advance(std::string_view counter, std::uint64_t count, std::string_view note) override;
  std::string await(std::string_view counter, std::uint64_t count,
                    std::chrono::milliseconds timeout) override;
  void forget(std::string_view prefix) override;

  /// On the loop. The first reason stands.
  void break_with(Failure why);

 private:
  std::string exchange(RendezvousRequest request, const char* what_is_missing);

  const GangId gang_;
  const int rank_;
  const std::vector<Place> members_;
  const Ask ask_;
  Failure why_;  // written before broken_ is set
  std::atomic<std::uint32_t> broken_{0};
  detail::BreakListeners listeners_;
};

}  // namespace troupe::runtime
