#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "collective/call.hpp"

namespace troupe::train {

/// Memory that ranks of one node share. A memfd of one of them, which the others open through
/// /proc/<pid>/fd/<number>: it has no name, so nothing is left behind however the ranks end, and it
/// does not count against /dev/shm. Zeroed. Unmapped by the destructor.
///
/// A rank that is late may find another file at that number, since the maker closes its descriptor.
/// So the size is sealed, and the file begins with a page that holds a nonce, which the rendezvous
/// gives to the ranks. A rank opens the file for reading, compares type, seals, size and nonce, and
/// only then opens it for writing.
class SharedMemory {
 public:
  /// Rank `maker` makes it and publishes it in the rendezvous under `key`; the others wait for it
  /// there. Throws troupe::Error naming the cause and what to do; TimedOut naming the maker;
  /// GangBroken.
  SharedMemory(Patience& patience, const std::string& key, std::size_t bytes, int maker);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// To be called once every rank that shares it has constructed its own: the descriptor is needed
  /// no longer.
  void close_descriptor();

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  void create(GangContext& gang, const std::string& key);
  void open(Patience& patience, const std::string& key, int maker);
  void map();

  int fd_ = -1;
  std::byte* file_ = nullptr;  // mapped: the page of the nonce, then what the ranks use
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace troupe::train
