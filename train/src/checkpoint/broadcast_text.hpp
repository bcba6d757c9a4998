#pragma once

#include <string>

#include <troupe/train/communicator.hpp>

namespace troupe::train {

/// A collective over main memory: rank 0's text, on every rank. Where there is one rank, nothing is
/// called.
std::string broadcast_text(Communicator& communicator, std::string text);

}  // namespace troupe::train
