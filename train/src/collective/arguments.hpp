#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

#include <troupe/train/communicator.hpp>

/// The checks refuse what no collective can be called with, before anything is sent. All of them
/// throw std::invalid_argument. `call` is the name of the collective.
namespace troupe::train {

inline void check_buffer(const void* data, std::size_t count, DataType type, int ranks,
                         const char* call) {
  if (data == nullptr && count > 0) {
    throw std::invalid_argument(
        fmt::format("{}: a null buffer for {} elements of {}", call, count, name_of(type)));
  }
  const auto most =
      static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()) / size_of(type);
  if (count > most / static_cast<std::size_t>(ranks)) {
    throw std::invalid_argument(fmt::format("{}: {} elements of {} are more than can be addressed",
                                            call, count, name_of(type)));
  }
}

inline void check_op(DataType type, ReduceOp op, const char* call) {
  if (op == ReduceOp::Average && !is_floating(type)) {
    throw std::invalid_argument(
        fmt::format("{}: an average of {} would be rounded; sum, and divide as you need it", call,
                    name_of(type)));
  }
}

inline void check_peer(int peer, const Communicator& comm, const char* call) {
  if (peer < 0 || peer >= comm.size()) {
    throw std::invalid_argument(
        fmt::format("{}: rank {} is none of the ranks 0 to {}", call, peer, comm.size() - 1));
  }
  if (peer == comm.rank())
    throw std::invalid_argument(fmt::format("{}: rank {} is this rank itself", call, peer));
}

inline void check_root(int root, const Communicator& comm, const char* call) {
  if (root < 0 || root >= comm.size()) {
    throw std::invalid_argument(
        fmt::format("{}: root {} is none of the ranks 0 to {}", call, root, comm.size() - 1));
  }
}

// Communicator and WorkQueue both call the checks that follow, one for each collective.

inline void check_all_reduce(const void* data, std::size_t count, DataType type, ReduceOp op) {
  check_buffer(data, count, type, 1, "all_reduce");
  check_op(type, op, "all_reduce");
}

inline void check_broadcast(const Communicator& comm, const void* data, std::size_t count,
                            DataType type, int root) {
  check_buffer(data, count, type, 1, "broadcast");
  check_root(root, comm, "broadcast");
}

inline void check_all_gather(const Communicator& comm, const void* in, const void* out,
                             std::size_t count, DataType type) {
  check_buffer(in, count, type, comm.size(), "all_gather");
  check_buffer(out, count, type, comm.size(), "all_gather");
}

/// `counts` has the number of elements of each rank.
inline void check_all_gather(const Communicator& comm, const void* in, const void* out,
                             std::span<const std::size_t> counts, DataType type) {
  constexpr const char* kCall = "all_gather";
  if (counts.size() != static_cast<std::size_t>(comm.size())) {
    throw std::invalid_argument(fmt::format("{}: {} counts for {} ranks; give one for each rank",
                                            kCall, counts.size(), comm.size()));
  }
  for (const auto count : counts) check_buffer(&count, count, type, comm.size(), kCall);
  check_buffer(in, counts[static_cast<std::size_t>(comm.rank())], type, 1, kCall);
  check_buffer(out, std::accumulate(counts.begin(), counts.end(), std::size_t{0}), type, 1, kCall);
}

inline void check_reduce(const Communicator& comm, const void* in, const void* out,
                         std::size_t count, DataType type, ReduceOp op, int root) {
  check_root(root, comm, "reduce");
  check_buffer(in, count, type, 1, "reduce");
  if (comm.rank() == root) check_buffer(out, count, type, 1, "reduce");
  check_op(type, op, "reduce");
}

inline void check_gather(const Communicator& comm, const void* in, const void* out,
                         std::size_t count, DataType type, int root) {
  check_root(root, comm, "gather");
  check_buffer(in, count, type, comm.size(), "gather");
  if (comm.rank() == root) check_buffer(out, count, type, comm.size(), "gather");
}

inline void check_scatter(const Communicator& comm, const void* in, const void* out,
                          std::size_t count, DataType type, int root) {
  check_root(root, comm, "scatter");
  if (comm.rank() == root) check_buffer(in, count, type, comm.size(), "scatter");
  check_buffer(out, count, type, comm.size(), "scatter");
}

inline void check_reduce_scatter(const Communicator& comm, const void* in, const void* out,
                                 std::size_t count, DataType type, ReduceOp op) {
  check_buffer(in, count, type, comm.size(), "reduce_scatter");
  check_buffer(out, count, type, comm.size(), "reduce_scatter");
  check_op(type, op, "reduce_scatter");
}

inline void check_all_to_all(const Communicator& comm, const void* in, const void* out,
                             std::size_t count, DataType type) {
  check_buffer(in, count, type, comm.size(), "all_to_all");
  check_buffer(out, count, type, comm.size(), "all_to_all");
}

}  // namespace troupe::train
