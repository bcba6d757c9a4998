#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "collective/host/channel.hpp"
#include "collective/host/memory/local_group.hpp"
#include "collective/host/memory/shared_memory.hpp"

namespace troupe::train {

/// A channel between two ranks of one node: two pipes of bytes in shared memory, one for each
/// direction, each with one writer and one reader and two counters, which only one of them writes.
class SharedChannel final : public Channel {
 public:
  /// A collective of the two ranks. `local` is the other's local rank, `peer` its rank in the gang;
  /// `capacity` of a pipe, a power of two.
  SharedChannel(Patience& patience, LocalGroup& group, const std::string& key, int peer, int local,
                std::size_t capacity, const std::function<void()>& stop);

  bool put(std::span<const std::byte>& out) override;
  bool take(std::span<std::byte>& in) override;
  void wait_to_put(std::chrono::milliseconds slice) override;
  void wait_to_take(std::chrono::milliseconds slice) override;
  bool has_ended() const override { return group_.has_ended(local_); }
  [[noreturn]] void throw_ended() const override { group_.throw_ended(local_); }

 private:
  struct Pipe;
  Pipe& pipe(int index) const;
  std::byte* data_of(const Pipe& pipe) const;

  LocalGroup& group_;
  const int local_;
  const std::size_t capacity_;
  std::unique_ptr<SharedMemory> memory_;
  Pipe* out_;
  Pipe* in_;
};

}  // namespace troupe::train
