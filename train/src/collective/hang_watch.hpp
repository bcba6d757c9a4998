#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <troupe/gang_context.hpp>

#include "collective/roll_call.hpp"

namespace troupe::train {

/// A call that has not come to its end, as the rank that waits in it sees it.
struct HangingCall {
  std::string name;          ///< "all_reduce of 5 float32 (sum), call 3"
  std::uint64_t number = 0;  ///< of the call; unused where two ranks only take part in it
  std::chrono::milliseconds waited{0};
  std::chrono::milliseconds timeout{0};
  std::vector<int> missing;  ///< ranks that this one waits for, as far as it sees
  /// A message: no other rank than these two waits.
  bool between_two = false;
  /// `missing` may themselves only wait for others, so that the roll is to be called.
  bool sees_a_part = false;
};

/// Says in the log that a call hangs and for which ranks, long before its deadline, and that it
/// went on: one line each for a call, from one of the ranks that wait in it, which is the first to
/// ask for it. Where rank 0, which keeps the rendezvous, does not answer, one rank of each node may
/// say so (with `nccl`, each rank).
///
/// One per communicator, used by its calling thread, which asks is_due() only where a wait is slow:
/// a quick call pays for begin() and has_told(), which are a flag each.
class HangWatch {
 public:
  /// What is told once on a node: true for the first rank of the node that asks for this call.
  using Claim = std::function<bool(std::uint64_t call)>;

  /// `communicator`: its name, for people. `after`: of waiting; 0: never.
  HangWatch(GangContext& gang, RollCall& roll_call, std::string communicator,
            std::chrono::milliseconds after);
  void claim_on_node_by(Claim claim) { claim_on_node_ = std::move(claim); }

  std::chrono::milliseconds after() const { return after_; }
  void begin() { looked_ = told_ = false; }
  /// Not looked at yet in this call, which has waited for so long.
  bool is_due(std::chrono::steady_clock::duration waited) const {
    return !looked_ && after_.count() > 0 && waited >= after_;
  }
  bool has_looked() const { return looked_; }
  /// Says it, unless another rank does. Takes up to some seconds where the roll is called and many
  /// ranks are missing. Throws GangBroken if the gang is.
  void look(const HangingCall& call);
  /// Whether this rank has said that the call hangs; end() says that it went on.
  bool has_told() const { return told_; }
  void end(const std::string& call, std::chrono::milliseconds waited);

 private:
  bool may_tell(const HangingCall& call);
  std::string whom_it_waits_for(const HangingCall& call);

  GangContext& gang_;
  RollCall& roll_call_;
  const std::string communicator_;
  const std::chrono::milliseconds after_;
  Claim claim_on_node_;
  bool looked_ = false;
  bool told_ = false;
};

}  // namespace troupe::train
