#include "checkpoint/broadcast_text.hpp"

#include <array>
#include <cstdint>
#include <span>

namespace troupe::train {

std::string broadcast_text(Communicator& communicator, std::string text) {
  if (communicator.size() == 1) return text;
  std::array length{static_cast<std::int64_t>(text.size())};
  communicator.broadcast(std::span<std::int64_t>(length), 0);
  text.resize(static_cast<std::size_t>(length[0]));
  if (!text.empty()) communicator.broadcast(text.data(), text.size(), DataType::UInt8, 0);
  return text;
}

}  // namespace troupe::train
