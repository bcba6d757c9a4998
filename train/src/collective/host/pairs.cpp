#include "collective/host/pairs.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "collective/host/memory/shared_channel.hpp"
#include "collective/host/network/introducer.hpp"
#include "collective/host/network/socket_channel.hpp"

namespace troupe::train {
namespace {

constexpr std::size_t kPipeBytes = 256 << 10;

}  // namespace

Pairs::Pairs(Patience& patience, LocalGroup& group, std::string name, std::string address,
             std::function<void()> stop)
    : patience_(patience),
      group_(group),
      name_(std::move(name)),
      address_(std::move(address)),
      stop_(std::move(stop)),
      node_ranks_(patience.gang().node_ranks()),
      channels_(node_ranks_.size()) {}

Channel& Pairs::with(int rank) {
  auto& channel = channels_[static_cast<std::size_t>(rank)];
  if (!channel) channel = connect(rank);
  return *channel;
}

std::unique_ptr<Channel> Pairs::connect(int rank) {
  auto& gang = patience_.gang();
  const int me = gang.rank();
  const auto key = fmt::format("{}/pair/{}-{}", name_, std::min(me, rank), std::max(me, rank));
  const auto node = node_ranks_[static_cast<std::size_t>(rank)];
  if (node == gang.node_rank()) {
    const auto local = std::count(node_ranks_.begin(), node_ranks_.begin() + rank, node);
    return std::make_unique<SharedChannel>(patience_, group_, key, rank, static_cast<int>(local),
                                           kPipeBytes, stop_);
  }
  Introducer introducer(patience_, patience_.await(name_ + "/secret", 0), stop_);
  if (me > rank)
    return std::make_unique<SocketChannel>(patience_, introducer.reach(key, rank), rank);
  const auto listener = listen_on(address_.empty() ? gang.host() : address_);
  gang.rendezvous().set(key, place_of(listener));
  return std::make_unique<SocketChannel>(patience_, introducer.receive(listener, key, rank), rank);
}

// In the order of pairs (lower rank, higher rank): of the pairs that are still to be made, the two
// ranks of the first one have made all before it, and are at it.
void Pairs::connect_all() {
  for (int r = 0; r < patience_.gang().size(); ++r) {
    if (r != patience_.gang().rank()) with(r);
  }
}

void Pairs::all_to_all(const std::byte* in, std::byte* out, std::size_t part_bytes) {
  connect_all();
  const int ranks = patience_.gang().size();
  const int me = patience_.gang().rank();
  const auto offset = [&](int rank) { return static_cast<std::size_t>(rank) * part_bytes; };
  if (part_bytes > 0) std::memcpy(out + offset(me), in + offset(me), part_bytes);
  for (int distance = 1; distance < ranks; ++distance) {
    const int to = (me + distance) % ranks;
    const int from = (me + ranks - distance) % ranks;
    exchange(patience_, stop_, with(to), {in + offset(to), part_bytes}, with(from),
             {out + offset(from), part_bytes});
  }
}

void Pairs::agree(Channel& channel, const Announcement& what) {
  Announcement theirs;
  exchange(patience_, stop_, channel, std::as_bytes(std::span(&what, 1)), channel,
           std::as_writable_bytes(std::span(&theirs, 1)));
  check_match(patience_.gang().rank(), what, channel.peer(), theirs);
}

void Pairs::send(const Announcement& what, std::span<const std::byte> data) {
  auto& channel = with(what.root);
  agree(channel, what);
  exchange(patience_, stop_, channel, data, channel, {});
}

void Pairs::recv(const Announcement& what, std::span<std::byte> data) {
  auto& channel = with(what.root);
  agree(channel, what);
  exchange(patience_, stop_, channel, {}, channel, data);
}

}  // namespace troupe::train
