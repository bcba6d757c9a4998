#include "collective/host/host_communicator.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include <troupe/detail/failed_calls.hpp>
#include "collective/host/average.hpp"
#include "collective/host/reduce.hpp"

namespace troupe::train {
namespace {

HostOptions checked(HostOptions options, GangContext& gang) {
  if (options.chunk_bytes < (4u << 10) || options.chunk_bytes > (64u << 20)) {
    throw std::invalid_argument(fmt::format(
        "HostOptions::chunk_bytes is {}; it must be from 4096 to 67108864", options.chunk_bytes));
  }
  if (options.timeout.count() <= 0)
    throw std::invalid_argument("HostOptions::timeout must be positive");
  if (options.warn_after.count() < 0)
    throw std::invalid_argument("HostOptions::warn_after must not be negative; 0 means never");
  // A chunk holds at least 64 bytes for every rank.
  options.chunk_bytes = std::max(options.chunk_bytes, static_cast<std::size_t>(gang.size()) * 64);
  options.name = "collective/" + options.name;
  return options;
}

}  // namespace

template <class OnRing>
void HostCommunicator::leader_phase(OnRing on_ring) {
  if (!has_ring_) return;
  if (is_leader()) on_ring();
  const auto step = group_->arrive();
  if (!is_leader()) group_->wait_for(0, step);
}

HostCommunicator::HostCommunicator(GangContext& gang, HostOptions options)
    : gang_(gang),
      options_(checked(std::move(options), gang)),
      patience_(gang, {options_.timeout, options_.warn_after}, options_.name,
                gang.node_count() == 1),
      has_ring_(gang.node_count() > 1),
      exceptions_(std::uncaught_exceptions()) {
  start();
}

HostCommunicator::HostCommunicator(std::unique_ptr<GangContext> own_gang, HostOptions options)
    : own_gang_(std::move(own_gang)),
      gang_(*own_gang_),
      options_(std::move(options)),
      patience_(gang_, {options_.timeout, options_.warn_after}, options_.name,
                gang_.node_count() == 1),
      has_ring_(gang_.node_count() > 1),
      exceptions_(std::uncaught_exceptions()) {
  start();
}

void HostCommunicator::start() {
  patience_.begin({});
  group_ = std::make_unique<LocalGroup>(patience_, options_.name, options_.chunk_bytes);
  patience_.hang_watch().claim_on_node_by(
      [this](std::uint64_t call) { return group_->claim_notice(call); });
  ranks_of_node_.resize(static_cast<std::size_t>(gang_.node_count()));
  const auto nodes = gang_.node_ranks();
  for (int r = 0; r < size(); ++r)
    ranks_of_node_[static_cast<std::size_t>(nodes[static_cast<std::size_t>(r)])].push_back(r);
  const auto stop = [this] { check_aborted(); };
  pairs_ = std::make_unique<Pairs>(patience_, *group_, options_.name, options_.address, stop);
  try {
    leader_phase(
        [&] { ring_ = std::make_unique<Ring>(patience_, options_.name, options_.address, stop); });
  } catch (...) {
    fail();
    throw;
  }
  patience_.end();
  listening_ =
      troupe::detail::on_failed_call([this](const Failure& call) { leave(left_by(rank(), call)); });
}

// What the exception says is not known while it is on its way.
HostCommunicator::~HostCommunicator() {
  listening_.reset();
  if (const auto reason = group_->aborted()) {
    // Ranks of other nodes do not see it, unless a call here has failed for it.
    if (!failure_) end_connections(*reason);
    return;
  }
  if (std::uncaught_exceptions() <= exceptions_) return;
  leave({.kind = Failure::Kind::GangBroken,
         .message = fmt::format("rank {} has closed its communicator, as an exception left the "
                                "function that held it",
                                rank())});
}

void HostCommunicator::check_aborted() {
  if (auto reason = group_->aborted()) patience_.throw_gone(*reason);
}

// Other nodes see only that connections end, and look for the reason then.
void HostCommunicator::fail() {
  failure_ = std::current_exception();
  const auto why = text_of(failure_);
  group_->abort(why);
  end_connections(why);
}

void HostCommunicator::end_connections(const std::string& why) {
  patience_.tell_end(why);
  ring_.reset();
  pairs_.reset();
}

void HostCommunicator::leave(Failure why) {
  const auto inside = entrance_.enter_to_leave();
  if (!inside) return group_->abort(why.message);  // another thread's call ends by it
  if (failure_) return;
  group_->leave(why.message);
  end_connections(why.message);
  failure_ = std::make_exception_ptr(GangBroken(std::move(why)));
}

void HostCommunicator::abort(std::string_view reason) {
  group_->abort(fmt::format("rank {} ended the communicator: {}", rank(), reason));
}

bool HostCommunicator::meet(LocalGroup::Place place) {
  const auto& what = patience_.what();
  group_->announce(what, place);
  group_->wait_all(group_->arrive());
  const bool together = group_->check_announcements(what, place);
  if (ring_) ring_->check_announcement(what);
  return together;
}

void HostCommunicator::barrier() {
  run({.kind = CallKind::Barrier}, [&] {
    meet();
    leader_phase([&] {
      std::byte token{};
      ring_->all_reduce(&token, 1, DataType::UInt8, ReduceOp::Sum, 1);
    });
  });
}

std::shared_ptr<void> HostCommunicator::allocate(std::size_t bytes) {
  if (has_ring_ || size() == 1) return nullptr;
  std::shared_ptr<void> part;
  run({.count = bytes, .kind = CallKind::Allocate}, [&] {
    meet();
    part = regions_.allocate(patience_, *group_, options_.name, bytes);
  });
  return part;
}

// ---- all-reduce ---------------------------------------------------------------------------------

void HostCommunicator::do_all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) {
  run({.count = count, .kind = CallKind::AllReduce, .type = type, .op = op}, [&] {
    const auto bytes = count * size_of(type);
    if (!has_ring_ && bytes <= LocalGroup::kPostBytes) return reduce_posts(data, count, type, op);
    if (!has_ring_) {
      const auto place = regions_.find(data, bytes);
      // The place is part of what everybody tells, so that all ranks take the same way.
      if (meet(place)) return reduce_in_place(place, count, type, op);
    } else {
      meet();
    }
    auto* const in_place = static_cast<std::byte*>(data);
    reduce_staged(in_place, in_place, count, type, op);
  });
}

void HostCommunicator::reduce_posts(void* data, std::size_t count, DataType type, ReduceOp op) {
  const auto call = patience_.what().sequence;
  if (count > 0) std::memcpy(group_->post(group_->rank(), call).data, data, count * size_of(type));
  meet();
  inputs_.clear();
  for (int r = 0; r < size(); ++r) inputs_.push_back(group_->post(r, call).data);
  void* const outs[] = {data};
  train::reduce(outs, inputs_, count, type, op, size());
}

void HostCommunicator::reduce_in_place(LocalGroup::Place place, std::size_t count, DataType type,
                                       ReduceOp op) {
  const auto element = size_of(type);
  const auto ranks = static_cast<std::size_t>(size());
  const auto me = static_cast<std::size_t>(group_->rank());
  const auto from = count * me / ranks;
  const auto to = count * (me + 1) / ranks;
  std::vector<void*> slices(ranks);
  for (std::size_t r = 0; r < ranks; ++r)
    slices[r] = regions_.at(place, static_cast<int>(r)) + from * element;
  std::vector<const void*> in(slices.begin(), slices.end());
  train::reduce(slices, in, to - from, type, op, size());
  group_->wait_all(group_->arrive());
}

// Chunk k + 1 is copied in before chunk k is reduced, so that a rank that is early has something to
// do. Its stage was last read for chunk k - 1, whose reduction everybody had finished when this
// rank copied it out.
void HostCommunicator::reduce_staged(const std::byte* in, std::byte* out, std::size_t count,
                                     DataType type, ReduceOp op) {
  const auto element = size_of(type);
  const auto per_chunk = group_->chunk_bytes() / element;
  const auto chunks = (count + per_chunk - 1) / per_chunk;
  const auto first = chunks_;
  chunks_ += chunks;
  auto elements = [&](std::size_t k) { return std::min(per_chunk, count - k * per_chunk); };
  auto offset = [&](std::size_t k) { return k * per_chunk * element; };
  auto copy_in = [&](std::size_t k) {
    std::memcpy(group_->stage(group_->rank(), first + k), in + offset(k), elements(k) * element);
    return group_->arrive();
  };

  std::uint32_t copied = chunks > 0 ? copy_in(0) : 0;
  for (std::size_t k = 0; k < chunks; ++k) {
    group_->wait_all(copied);
    if (k + 1 < chunks && !has_ring_) copied = copy_in(k + 1);
    reduce_slice(first + k, elements(k), type, op);
    group_->wait_all(group_->arrive());
    leader_phase([&] { reduce_over_ring(first + k, elements(k), type, op); });
    if (out != nullptr)
      std::memcpy(out + offset(k), group_->result(first + k), elements(k) * element);
    if (k + 1 < chunks && has_ring_) copied = copy_in(k + 1);
  }
}

void HostCommunicator::reduce_slice(std::uint64_t chunk, std::size_t count, DataType type,
                                    ReduceOp op) {
  const auto element = size_of(type);
  const auto ranks = static_cast<std::size_t>(group_->size());
  const auto me = static_cast<std::size_t>(group_->rank());
  const auto from = count * me / ranks;
  const auto to = count * (me + 1) / ranks;
  void* const outs[] = {group_->result(chunk) + from * element};
  // Across nodes the sum is divided on the ring, once it is whole.
  const auto here = has_ring_ && op == ReduceOp::Average ? ReduceOp::Sum : op;
  train::reduce(outs, staged(chunk, from * element), to - from, type, here, size());
}

std::span<const void* const> HostCommunicator::staged(std::uint64_t chunk, std::size_t offset) {
  inputs_.clear();
  for (int r = 0; r < group_->size(); ++r) inputs_.push_back(group_->stage(r, chunk) + offset);
  return inputs_;
}

// The partial sums of an average may be too large for the type, on a node or on the ring. Then the
// chunk goes around again, scaled, out of the stages, which hold it until the leader arrives. Every
// leader has the same result, so all leaders go around again or none does.
void HostCommunicator::reduce_over_ring(std::uint64_t chunk, std::size_t count, DataType type,
                                        ReduceOp op) {
  auto* result = group_->result(chunk);
  ring_->all_reduce(result, count, type, op, size());
  if (op != ReduceOp::Average || are_finite(result, count, type)) return;
  std::vector<std::byte> sums(count * size_of(type));
  sum_scaled(sums.data(), staged(chunk, 0), count, type, size());
  ring_->all_reduce(sums.data(), count, type, ReduceOp::Sum, size());
  replace_by_scaled(result, sums.data(), count, type, size());
}

// ---- the others ---------------------------------------------------------------------------------

int HostCommunicator::source_of(int root) const {
  const auto& locals = ranks_of_node_[static_cast<std::size_t>(gang_.node_rank())];
  const auto found = std::find(locals.begin(), locals.end(), root);
  return found == locals.end() ? 0 : static_cast<int>(found - locals.begin());
}

void HostCommunicator::broadcast_over_ring(std::uint64_t chunk, std::size_t bytes, int root) {
  const int node = gang_.node_ranks()[static_cast<std::size_t>(root)];
  leader_phase([&] { ring_->broadcast({group_->stage(source_of(root), chunk), bytes}, node); });
}

void HostCommunicator::do_broadcast(void* data, std::size_t count, DataType type, int root) {
  run({.count = count, .kind = CallKind::Broadcast, .type = type, .root = root}, [&] {
    const auto bytes = count * size_of(type);
    const int source = source_of(root);
    meet();
    for (std::size_t at = 0; at < bytes; at += group_->chunk_bytes()) {
      const auto chunk = chunks_++;
      const auto length = std::min(group_->chunk_bytes(), bytes - at);
      auto* mine = static_cast<std::byte*>(data) + at;
      if (rank() == root) std::memcpy(group_->stage(source, chunk), mine, length);
      group_->wait_all(group_->arrive());
      broadcast_over_ring(chunk, length, root);
      if (rank() != root) std::memcpy(mine, group_->stage(source, chunk), length);
    }
  });
}

void HostCommunicator::do_reduce_scatter(const void* in, void* out, std::size_t count,
                                         DataType type, ReduceOp op) {
  run({.count = count, .kind = CallKind::ReduceScatter, .type = type, .op = op}, [&] {
    const auto element = size_of(type);
    const auto step = group_->chunk_bytes() / element / static_cast<std::size_t>(size());
    meet();
    for (std::size_t at = 0; at < count; at += step) {
      scatter_chunk(static_cast<const std::byte*>(in) + at * element,
                    static_cast<std::byte*>(out) + at * element, count * element,
                    std::min(step, count - at), type, op);
    }
  });
}

// A chunk holds a piece of every rank's part. Without a ring each rank reduces its own piece; with
// one, the whole chunk is reduced as an all-reduce would, and each rank takes its piece.
void HostCommunicator::scatter_chunk(const std::byte* in, std::byte* out, std::size_t stride,
                                     std::size_t count, DataType type, ReduceOp op) {
  const auto chunk = chunks_++;
  const auto bytes = count * size_of(type);
  const auto ranks = static_cast<std::size_t>(size());
  const auto me = static_cast<std::size_t>(rank());
  auto* stage = group_->stage(group_->rank(), chunk);
  for (std::size_t r = 0; r < ranks; ++r) std::memcpy(stage + r * bytes, in + r * stride, bytes);
  group_->wait_all(group_->arrive());
  if (has_ring_) {
    reduce_slice(chunk, ranks * count, type, op);
    group_->wait_all(group_->arrive());
    leader_phase([&] { reduce_over_ring(chunk, ranks * count, type, op); });
    std::memcpy(out, group_->result(chunk) + me * bytes, bytes);
    return;
  }
  void* const outs[] = {out};
  train::reduce(outs, staged(chunk, me * bytes), count, type, op, size());
}

std::unique_ptr<Communicator> make_host_communicator(GangContext& gang, HostOptions options) {
  return std::make_unique<HostCommunicator>(gang, std::move(options));
}

}  // namespace troupe::train
