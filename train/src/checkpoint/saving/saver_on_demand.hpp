#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <troupe/gang_context.hpp>

#include "checkpoint/saving/saver.hpp"

namespace troupe::train {

/// A context's Saver, which the context makes at its first checkpoint.
///
/// 1. The Saver is made once, with a communicator of its own. The call that makes the Saver is
///    therefore a collective.
/// 2. A rank that ends without the Saver declines that communicator, so that no other rank waits
///    for that rank.
///
/// Lives in one rank's process; used by the context's thread.
class SaverOnDemand {
 public:
  /// `storage`: empty: the run writes no checkpoints, and get() is not called. `timeout`: of
  /// CheckpointSave::wait().
  SaverOnDemand(GangContext& gang, std::filesystem::path storage,
                std::chrono::milliseconds timeout);

  bool has_storage() const { return !storage_.empty(); }
  /// Throws what make_host_communicator throws.
  Saver& get();
  /// Ends the save in flight on all ranks, if there is one.
  void abort(std::string_view reason);
  /// Returns once no save is in flight. Throws what Saver::finish() throws.
  void finish();
  /// Tells the ranks that make the Saver, now or later, that this rank does not; nothing where the
  /// Saver was made, or where the run has no storage.
  void decline(const std::string& why) const;

 private:
  GangContext& gang_;
  const std::filesystem::path storage_;
  const std::chrono::milliseconds timeout_;
  std::unique_ptr<Saver> made_;
};

}  // namespace troupe::train
