#include "collective/broadcast_text.hpp"

#include <cstdint>
#include <utility>

namespace troupe::train {

std::string broadcast_text(Communicator& communicator, std::string text) {
  if (communicator.size() == 1) return text;
  return broadcast_text(std::move(text), [&](void* bytes, std::size_t count) {
    communicator.broadcast(bytes, count, DataType::UInt8, 0);
  });
}

std::string broadcast_text(std::string text,
                           const std::function<void(void* bytes, std::size_t count)>& broadcast) {
  std::uint64_t length = text.size();
  broadcast(&length, sizeof length);
  text.resize(length);
  if (!text.empty()) broadcast(text.data(), text.size());
  return text;
}

}  // namespace troupe::train
