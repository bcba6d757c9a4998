#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <troupe/train/communicator.hpp>

#include "checkpoint/saving/shard_file.hpp"

/// How the ranks tell rank 0 what they have written of a checkpoint, and send it what they cannot
/// write themselves.
namespace troupe::train {

/// Sends files to rank 0, which receives() them.
std::unique_ptr<FileSink> sink_to_first(Communicator& communicator);

/// The end of what a rank sends: the manifest of its part, or why it has none.
struct RankOutcome {
  std::string manifest;
  std::string error;
};
void send_outcome(Communicator& communicator, const RankOutcome& outcome);

/// On rank 0: what rank `from` sends, up to its outcome. Files that it sends go to the sink; once
/// that has failed, nowhere, and the outcome has the sink's error. Throws what the communicator
/// throws.
RankOutcome receive(Communicator& communicator, int from, FileSink& sink);

}  // namespace troupe::train
