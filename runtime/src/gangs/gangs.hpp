#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "calls/peers/peers.hpp"
#include "gangs/rank_context.hpp"
#include "gangs/rendezvous_table.hpp"

namespace troupe::runtime {

/// The gangs that this process has to do with: those that it made, whose deaths it is told of, and
/// the one in which it is a rank. Serves the rendezvous of the gang whose rank 0 it is. Belongs to
/// the loop, but for context().
class Gangs {
 public:
  Gangs(boost::asio::io_context& loop, Peers& peers, ProcessId self)
      : loop_(loop), peers_(peers), self_(self) {}

  /// Of a gang that this process made: whose ranks are where.
  void watch(GangId gang, std::vector<AddressPtr> members) { made_[gang] = std::move(members); }
  void forget(GangId gang) { made_.erase(gang); }
  /// Sets `key` in the rendezvous of a gang that this process made, for ranks that no call reaches
  /// while their actors are in one. Nobody is told whether it was set. No effect on any other gang.
  void tell(GangId gang, std::string key, std::string value);

  /// The constructor of a rank has come: this process is in that gang from now on. No effect on one
  /// that is in a gang.
  void enter(wire::GangInfo::Reader info);
  /// A rank has ended, as the head tells.
  void on_broken(GangId gang, std::uint32_t rank, const Death& death);
  /// A rank asks the rendezvous here.
  void on_rendezvous(ProcessId caller, wire::RendezvousRequest::Reader request);

  /// Any thread. nullptr: this process is no rank.
  GangContext* context() const { return entered_.load(std::memory_order_acquire); }

 private:
  /// To the rendezvous of a gang whose rank 0 is that process. Any thread; `done` on the loop.
  void ask(GangId gang, const AddressPtr& rank0, const RendezvousRequest& request,
           std::function<void(Outcome)> done);

  boost::asio::io_context& loop_;
  Peers& peers_;
  const ProcessId self_;
  RendezvousTable rendezvous_;
  std::unordered_map<GangId, std::vector<AddressPtr>> made_;
  // Told before this rank knew of its gang.
  std::unordered_map<GangId, Failure> broken_early_;
  std::unique_ptr<RankContext> rank_;
  std::atomic<RankContext*> entered_{nullptr};  // rank_, for other threads
};

}  // namespace troupe::runtime
