// What HostCommunicator does between single ranks: messages, all-to-all, and parts of the gang.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "collective/host/host_communicator.hpp"
#include "collective/sub_gang.hpp"

namespace troupe::train {

template <class Call>
void HostCommunicator::run_message(Announcement what, Call call) {
  const auto inside = entrance_.enter(rank(), what);
  if (failure_) std::rethrow_exception(failure_);
  attempt(what, [&] {
    what.sequence = pairs_->with(what.root).next_message();
    patience_.number(what);
    call(what);
  });
}

void HostCommunicator::do_send(const void* data, std::size_t count, DataType type, int to) {
  run_message({.count = count, .kind = CallKind::Send, .type = type, .root = to},
              [&](const Announcement& what) {
                pairs_->send(what, {static_cast<const std::byte*>(data), count * size_of(type)});
              });
}

void HostCommunicator::do_recv(void* data, std::size_t count, DataType type, int from) {
  run_message({.count = count, .kind = CallKind::Recv, .type = type, .root = from},
              [&](const Announcement& what) {
                pairs_->recv(what, {static_cast<std::byte*>(data), count * size_of(type)});
              });
}

void HostCommunicator::do_all_to_all(const void* in, void* out, std::size_t count, DataType type) {
  run({.count = count, .kind = CallKind::AllToAll, .type = type}, [&] {
    const auto bytes = count * size_of(type);
    const auto* from = static_cast<const std::byte*>(in);
    auto* to = static_cast<std::byte*>(out);
    meet();
    if (has_ring_) return pairs_->all_to_all(from, to, bytes);
    const auto step = group_->chunk_bytes() / static_cast<std::size_t>(size());
    for (std::size_t at = 0; at < bytes; at += step)
      deal_chunk(from + at, to + at, bytes, std::min(step, bytes - at));
  });
}

// A chunk holds a piece of this rank's part for every rank, each of which takes its own out of
// everybody's.
void HostCommunicator::deal_chunk(const std::byte* in, std::byte* out, std::size_t stride,
                                  std::size_t bytes) {
  const auto chunk = chunks_++;
  const auto ranks = static_cast<std::size_t>(size());
  const auto me = static_cast<std::size_t>(rank());
  auto* stage = group_->stage(group_->rank(), chunk);
  for (std::size_t r = 0; r < ranks; ++r) std::memcpy(stage + r * bytes, in + r * stride, bytes);
  group_->wait_all(group_->arrive());
  for (std::size_t r = 0; r < ranks; ++r) {
    std::memcpy(out + r * stride, group_->stage(static_cast<int>(r), chunk) + me * bytes, bytes);
  }
}

std::unique_ptr<Communicator> HostCommunicator::do_split(int color, int key) {
  auto options = options_;
  std::unique_ptr<Communicator> part;
  run({.kind = CallKind::Split}, [&] {
    meet();
    const auto name = fmt::format("{}/split{}", options_.name, splits_++);
    auto gang = split_gang(patience_, name, color, key);
    if (!gang) return;
    options.name = fmt::format("{}/{}", name, color);
    part = std::make_unique<HostCommunicator>(std::move(gang), std::move(options));
  });
  return part;
}

}  // namespace troupe::train
