// What HostCommunicator gathers, reduces to one rank, and scatters.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "collective/host/host_communicator.hpp"

namespace troupe::train {
namespace {

/// Differs, nearly always, where one of the counts does (FNV-1a).
std::int32_t number_of(std::span<const std::size_t> counts) {
  std::uint32_t number = 2166136261u;
  for (const auto count : counts) {
    for (int shift = 0; shift < 64; shift += 8)
      number = (number ^ static_cast<std::uint8_t>(count >> shift)) * 16777619u;
  }
  return static_cast<std::int32_t>(number);
}

}  // namespace

void HostCommunicator::do_all_gather(const void* in, void* out, std::size_t count, DataType type) {
  run({.count = count, .kind = CallKind::AllGather, .type = type}, [&] {
    gather_parts(static_cast<const std::byte*>(in), static_cast<std::byte*>(out),
                 equal_parts(count * size_of(type)));
  });
}

void HostCommunicator::do_all_gather_parts(const void* in, void* out,
                                           std::span<const std::size_t> counts, DataType type) {
  Parts parts;
  std::size_t all = 0;
  for (const auto count : counts) {
    parts.bytes.push_back(count * size_of(type));
    parts.offsets.push_back(all);
    parts.largest = std::max(parts.largest, parts.bytes.back());
    all += parts.bytes.back();
  }
  run({.count = all / size_of(type),
       .kind = CallKind::AllGatherParts,
       .type = type,
       .root = number_of(counts)},
      [&] {
        gather_parts(static_cast<const std::byte*>(in), static_cast<std::byte*>(out), parts);
      });
}

void HostCommunicator::do_gather(const void* in, void* out, std::size_t count, DataType type,
                                 int root) {
  run({.count = count, .kind = CallKind::Gather, .type = type, .root = root}, [&] {
    gather_parts(static_cast<const std::byte*>(in),
                 rank() == root ? static_cast<std::byte*>(out) : nullptr,
                 equal_parts(count * size_of(type)));
  });
}

void HostCommunicator::do_reduce(const void* in, void* out, std::size_t count, DataType type,
                                 ReduceOp op, int root) {
  run({.count = count, .kind = CallKind::Reduce, .type = type, .op = op, .root = root}, [&] {
    meet();
    reduce_staged(static_cast<const std::byte*>(in),
                  rank() == root ? static_cast<std::byte*>(out) : nullptr, count, type, op);
  });
}

// A chunk holds a piece of every rank's part, of which each rank takes its own.
void HostCommunicator::do_scatter(const void* in, void* out, std::size_t count, DataType type,
                                  int root) {
  run({.count = count, .kind = CallKind::Scatter, .type = type, .root = root}, [&] {
    const auto bytes = count * size_of(type);
    const auto ranks = static_cast<std::size_t>(size());
    const auto step = group_->chunk_bytes() / ranks;
    const int source = source_of(root);
    meet();
    for (std::size_t at = 0; at < bytes; at += step) {
      const auto chunk = chunks_++;
      const auto length = std::min(step, bytes - at);
      auto* stage = group_->stage(source, chunk);
      for (std::size_t r = 0; rank() == root && r < ranks; ++r) {
        const auto* part = static_cast<const std::byte*>(in) + r * bytes;
        std::memcpy(stage + r * length, part + at, length);
      }
      group_->wait_all(group_->arrive());
      broadcast_over_ring(chunk, ranks * length, root);
      std::memcpy(static_cast<std::byte*>(out) + at,
                  stage + static_cast<std::size_t>(rank()) * length, length);
    }
  });
}

HostCommunicator::Parts HostCommunicator::equal_parts(std::size_t bytes) const {
  Parts parts;
  parts.bytes.assign(static_cast<std::size_t>(size()), bytes);
  for (std::size_t r = 0; r < parts.bytes.size(); ++r) parts.offsets.push_back(r * bytes);
  parts.largest = bytes;
  return parts;
}

void HostCommunicator::gather_parts(const std::byte* in, std::byte* out, const Parts& parts) {
  // With a ring, the parts of all ranks lie in one result.
  const auto step =
      has_ring_ ? group_->chunk_bytes() / static_cast<std::size_t>(size()) : group_->chunk_bytes();
  meet();
  for (std::size_t at = 0; at < parts.largest; at += step) gather_chunk(in, out, parts, at, step);
}

void HostCommunicator::gather_chunk(const std::byte* in, std::byte* out, const Parts& parts,
                                    std::size_t at, std::size_t step) {
  const auto chunk = chunks_++;
  std::vector<std::size_t> lengths;
  for (const auto bytes : parts.bytes)
    lengths.push_back(std::min(step, bytes - std::min(at, bytes)));
  const auto own = lengths[static_cast<std::size_t>(rank())];
  if (own > 0) std::memcpy(group_->stage(group_->rank(), chunk), in + at, own);
  group_->wait_all(group_->arrive());
  const auto take = [&](std::size_t r, const std::byte* from) {
    if (out != nullptr && lengths[r] > 0)
      std::memcpy(out + parts.offsets[r] + at, from, lengths[r]);
  };
  if (!has_ring_) {
    for (std::size_t r = 0; r < lengths.size(); ++r)
      take(r, group_->stage(static_cast<int>(r), chunk));
    return;
  }
  leader_phase([&] { gather_over_ring(chunk, lengths); });
  const auto* part = group_->result(chunk);
  for (const auto& ranks : ranks_of_node_) {
    for (const int rank : ranks) {
      const auto r = static_cast<std::size_t>(rank);
      take(r, part);
      part += lengths[r];
    }
  }
}

// The result holds the ranks' parts in the order of nodes, so that each node's are one block.
void HostCommunicator::gather_over_ring(std::uint64_t chunk,
                                        const std::vector<std::size_t>& lengths) {
  std::vector<std::span<std::byte>> blocks;
  auto* at = group_->result(chunk);
  for (const auto& ranks : ranks_of_node_) {
    std::size_t bytes = 0;
    for (const int rank : ranks) bytes += lengths[static_cast<std::size_t>(rank)];
    blocks.emplace_back(at, bytes);
    at += bytes;
  }
  const auto node = static_cast<std::size_t>(gang_.node_rank());
  auto* own = blocks[node].data();
  for (std::size_t local = 0; local < ranks_of_node_[node].size(); ++local) {
    const auto length = lengths[static_cast<std::size_t>(ranks_of_node_[node][local])];
    std::memcpy(own, group_->stage(static_cast<int>(local), chunk), length);
    own += length;
  }
  ring_->all_gather(blocks);
}

}  // namespace troupe::train
