#include "objects/remote_stores.hpp"

#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace troupe::runtime {
namespace {

store::NodeAddress node_of(const store::Wanted& wanted) {
  if (!wanted.at) return {};
  return {.node = wanted.at->node, .host = wanted.at->host, .port = wanted.at->port};
}

}  // namespace

void RemoteStores::view(const store::Wanted& wanted, const OnFetched& done) {
  const std::shared_ptr<std::byte[]> memory(new (std::nothrow) std::byte[wanted.bytes]);
  if (!memory) {
    return done(store::Refusal{store::Refusal::Kind::MemoryFull,
                               fmt::format("this process has no memory for a value of {}",
                                           store::format_bytes(wanted.bytes))});
  }
  const std::span<std::byte> bytes(memory.get(), wanted.bytes);
  transfer::PullOptions options;
  options.self = as_.self;
  options.key = as_.key;
  auto ended = [memory, bytes, done](std::optional<store::Refusal> refusal) {
    if (refusal) return done(std::move(*refusal));
    done(FetchedView{bytes, memory});
  };
  const auto self = std::make_shared<std::weak_ptr<transfer::Pull>>();
  options.watch = [this, self](NodeId node) {
    std::erase_if(out_of_reach_, [](const auto& entry) { return entry.second.expired(); });
    if (!out_of_reach_.contains(node)) watch_(node);
    out_of_reach_.emplace(node, *self);
  };
  const auto pull = std::make_shared<transfer::Pull>(
      loop_,
      transfer::Pull::Wanted{.object = wanted.object, .job = as_.self.job, .at = node_of(wanted)},
      bytes, std::move(options), [](std::uint64_t) {}, std::move(ended));
  *self = pull;
  pull->start();
}

void RemoteStores::node_ended(NodeId node) {
  links_.node_ended(node);
  const auto [first, last] = out_of_reach_.equal_range(node);
  std::vector<std::weak_ptr<transfer::Pull>> waiting;
  for (auto next = first; next != last; ++next) waiting.push_back(next->second);
  out_of_reach_.erase(first, last);
  for (const auto& weak : waiting) {
    if (const auto pull = weak.lock()) pull->ended();
  }
}

void RemoteStores::free(const store::Wanted& place) {
  links_.free(node_of(place), as_.self.job, place.object);
}

}  // namespace troupe::runtime
