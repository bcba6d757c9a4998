#pragma once

#include <string>
#include <string_view>

#include <troupe/train/communicator.hpp>

#include "parallel/communicators.hpp"
#include "prepared/context_rank.hpp"

namespace troupe::train {

/// A pair of communicators that a context makes when the context first needs one of them.
///
/// 1. The pair is made once. The call that makes the pair is therefore a collective.
/// 2. A rank that ends without the pair declines it, so that no other rank waits for that rank.
///
/// Lives in one rank's process; used by the context's thread.
class CommunicatorsOnDemand {
 public:
  /// `name`: in the gang, of this pair alone.
  CommunicatorsOnDemand(const ContextRank& here, std::string name);

  /// Over memory of the rank's device. Throws what make_host_communicator and
  /// make_nccl_communicator throw.
  Communicator& device();
  /// Over main memory. Throws what device() throws.
  Communicator& control();
  /// Ends the calls of all ranks, where the pair was made.
  void abort(std::string_view reason) const { made_.abort(reason); }
  /// Tells the ranks that make the pair, now or later, that this rank does not; nothing where the
  /// pair was made.
  void decline(const std::string& why) const;

 private:
  Communicators& made();

  const ContextRank& here_;
  const std::string name_;
  Communicators made_;
};

}  // namespace troupe::train
