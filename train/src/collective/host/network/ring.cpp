#include "collective/host/network/ring.hpp"

#include <algorithm>
#include <cstring>

#include "collective/host/network/ring_connect.hpp"
#include "collective/host/reduce.hpp"

namespace troupe::train {
namespace {

int first_rank_of(const std::vector<int>& node_ranks, int node) {
  return static_cast<int>(std::find(node_ranks.begin(), node_ranks.end(), node) -
                          node_ranks.begin());
}

}  // namespace

Ring::Ring(Patience& patience, const std::string& name, const std::string& address,
           std::function<void()> stop)
    : patience_(patience),
      stop_(std::move(stop)),
      position_(patience.gang().node_rank()),
      nodes_(patience.gang().node_count()) {
  const auto node_ranks = patience.gang().node_ranks();
  next_rank_ = first_rank_of(node_ranks, (position_ + 1) % nodes_);
  previous_rank_ = first_rank_of(node_ranks, (position_ + nodes_ - 1) % nodes_);
  auto ends = connect_ring(patience_, name, address, {next_rank_, previous_rank_}, stop_);
  next_ = std::move(ends.next);
  previous_ = std::move(ends.previous);
}

void Ring::exchange(std::span<const std::byte> out, std::span<std::byte> in) {
  transfer({next_, next_rank_, previous_, previous_rank_}, out, in, patience_, stop_);
}

void Ring::check_announcement(const Announcement& what) {
  Announcement theirs;
  exchange(std::as_bytes(std::span(&what, 1)), std::as_writable_bytes(std::span(&theirs, 1)));
  check_same(patience_.gang().rank(), what, previous_rank_, theirs);
}

void Ring::all_reduce(std::byte* data, std::size_t count, DataType type, ReduceOp op, int ranks) {
  const auto element = size_of(type);
  const auto nodes = static_cast<std::size_t>(nodes_);
  auto begin = [&](int block) { return count * static_cast<std::size_t>(block) / nodes; };
  auto block = [&](int index) {
    const int k = ((index % nodes_) + nodes_) % nodes_;
    return std::span(data + begin(k) * element, (begin(k + 1) - begin(k)) * element);
  };
  received_.resize((count / nodes + 1) * element);

  const auto partial = op == ReduceOp::Average ? ReduceOp::Sum : op;
  for (int step = 0; step < nodes_ - 1; ++step) {
    auto target = block(position_ - step - 1);
    auto in = std::span(received_).first(target.size());
    exchange(block(position_ - step), in);
    void* const outs[] = {target.data()};
    const void* const both[] = {in.data(), target.data()};
    reduce(outs, both, target.size() / element, type, partial, 1);
  }
  auto own = block(position_ + 1);
  if (op == ReduceOp::Average) divide(own.data(), own.size() / element, type, ranks);
  for (int step = 0; step < nodes_ - 1; ++step)
    exchange(block(position_ + 1 - step), block(position_ - step));
}

void Ring::broadcast(std::span<std::byte> data, int root) {
  const int distance = (position_ - root + nodes_) % nodes_;
  if (distance > 0) exchange({}, data);
  if (distance < nodes_ - 1) exchange(data, {});
}

void Ring::all_gather(const std::vector<std::span<std::byte>>& blocks) {
  for (int step = 0; step < nodes_ - 1; ++step) {
    const auto out = static_cast<std::size_t>((position_ - step + nodes_) % nodes_);
    const auto in = static_cast<std::size_t>((position_ - step - 1 + 2 * nodes_) % nodes_);
    exchange(blocks[out], blocks[in]);
  }
}

}  // namespace troupe::train
