#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include <troupe/train/communicator.hpp>

namespace troupe::train {

/// A collective over main memory: rank 0's text, on every rank. Where there is one rank, nothing is
/// called.
std::string broadcast_text(Communicator& communicator, std::string text);

/// The same over any memory. `broadcast` gives `count` bytes in main memory rank 0's values.
std::string broadcast_text(std::string text,
                           const std::function<void(void* bytes, std::size_t count)>& broadcast);

}  // namespace troupe::train
