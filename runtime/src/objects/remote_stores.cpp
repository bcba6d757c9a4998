#include "objects/remote_stores.hpp"

#include <algorithm>
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
  if (const auto node = node_of(wanted); links_.has_ended(node.node))
    return done(transfer::origin_gone(wanted.object, wanted.bytes, node));
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
  options.watch = watch_;
  const auto pull = std::make_shared<transfer::Pull>(
      loop_,
      transfer::Pull::Wanted{.object = wanted.object, .job = as_.self.job, .at = node_of(wanted)},
      bytes, std::move(options), [](std::uint64_t) {}, std::move(ended));
  note(pull);
  pull->start();
}

void RemoteStores::note(const std::shared_ptr<transfer::Pull>& pull) {
  if (pulls_.size() >= sweep_at_) {
    std::erase_if(pulls_, [](const auto& one) { return one.expired(); });
    sweep_at_ = std::max<std::size_t>(64, 2 * pulls_.size());
  }
  pulls_.push_back(pull);
}

void RemoteStores::node_ended(NodeId node) {
  links_.node_ended(node);
  for (const auto& weak : std::vector(pulls_)) {  // what ends may begin others
    if (const auto pull = weak.lock(); pull && pull->origin() == node) pull->ended();
  }
}

void RemoteStores::leave() {
  for (const auto& weak : std::exchange(pulls_, {})) {
    if (const auto pull = weak.lock())
      pull->give_up({store::Refusal::Kind::Stopped, "this process is leaving its cluster"});
  }
}

void RemoteStores::free(const store::Wanted& place) {
  links_.free(node_of(place), as_.self.job, place.object);
}

}  // namespace troupe::runtime
