#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/nccl_double/stop.hpp"

namespace nccl_double {

/// Bytes between this rank and another. Those of two ranks in one direction come in their order.
struct Transfer {
  int peer = 0;
  bool sends = false;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::uint64_t tag = 0;  ///< both ranks must have the same
};

enum class End {
  Complete,
  Stopped,
  Lost,    ///< a rank has closed its connection, and this is to be noticed
  Differ,  ///< the other rank has another tag or size
};

/// A connection to every other rank. One thread uses it at a time.
class Mesh {
 public:
  Mesh() = default;
  ~Mesh() { close(); }
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  /// Complete when all have come. `name`: of this mesh, in the abstract namespace of the machine.
  End connect(std::uint64_t name, char kind, int rank, int size, const Stop& stop);
  /// All at once. Of two of one rank with itself, the sent is copied to the received.
  End exchange(const std::vector<Transfer>& transfers, const Stop& stop);
  void close();

 private:
  int rank_ = 0;
  std::vector<int> fds_;  // by rank; -1 for this one
};

}  // namespace nccl_double
