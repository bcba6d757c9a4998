#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collective/call.hpp"

namespace troupe::train {

/// Some of a gang's ranks, numbered anew, as a gang of their own. It breaks with the whole gang.
/// Owned by the communicator of those ranks; the whole gang outlives it.
class SubGang final : public GangContext {
 public:
  /// `members`: their ranks in the whole gang, in the order of their new ranks; this rank is one of
  /// them.
  SubGang(GangContext& whole, const std::vector<int>& members);

  std::uint64_t id() const override { return whole_.id(); }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(nodes_.size()); }
  int local_rank() const override;
  int local_size() const override;
  int node_rank() const override { return nodes_[static_cast<std::size_t>(rank_)]; }
  int node_count() const override;
  std::vector<int> node_ranks() const override { return nodes_; }
  std::uint32_t node() const override { return whole_.node(); }
  std::string host() const override { return whole_.host(); }
  Rendezvous& rendezvous() override { return whole_.rendezvous(); }
  const std::atomic<std::uint32_t>& broken() const override { return whole_.broken(); }
  Failure why_broken() const override { return whole_.why_broken(); }
  std::shared_ptr<void> on_broken(std::function<void()> then) override {
    return whole_.on_broken(std::move(then));
  }

 private:
  GangContext& whole_;
  int rank_ = 0;
  std::vector<int> nodes_;  // by new rank, numbered anew
};

/// A collective over `patience`'s gang: those who give one color become a gang, in the order of
/// (key, rank). `name` is unique in the gang. nullptr for Communicator::kNoColor.
std::unique_ptr<SubGang> split_gang(Patience& patience, const std::string& name, int color,
                                    int key);

}  // namespace troupe::train
