#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

#include <troupe/train/communicator.hpp>

/// Refuse what no collective can be called with, before anything is sent. `call`: its name. All throw
/// std::invalid_argument.
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

/// For each rank how many elements it has.
inline void check_counts(std::span<const std::size_t> counts, const Communicator& comm,
                         const void* in, const void* out, DataType type, const char* call) {
  if (counts.size() != static_cast<std::size_t>(comm.size())) {
    throw std::invalid_argument(fmt::format("{}: {} counts for {} ranks; give one for each rank",
                                            call, counts.size(), comm.size()));
  }
  for (const auto count : counts) check_buffer(&count, count, type, comm.size(), call);
  check_buffer(in, counts[static_cast<std::size_t>(comm.rank())], type, 1, call);
  check_buffer(out, std::accumulate(counts.begin(), counts.end(), std::size_t{0}), type, 1, call);
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

}  // namespace troupe::train
