#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>

#include "os/unique_fd.hpp"
#include "ring/byte_ring.hpp"

namespace troupe::ring {

using os::UniqueFd;

/// The memory of one channel: a ring of calls from the process that made it, and a ring of replies
/// to it. A memfd without a name, sealed to its size, so that no process can cut it off under
/// another's feet. Pages cost memory once touched.
class Segment {
 public:
  static constexpr std::size_t kRingBytes = std::size_t{256} << 10;  ///< of each of the two rings
  /// The largest record that always fits into an empty ring: more than any value that is not in the
  /// object store.
  static constexpr std::size_t kRecordBytes = kRingBytes / 2 - 16;

  /// New memory; nullopt and errno where the system has none.
  static std::optional<Segment> create();
  /// Memory that another process made; a text where it is not what create() makes.
  static std::variant<Segment, std::string> adopt(const UniqueFd& descriptor);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  Control& calls() const;
  std::span<std::byte> call_memory() const;
  Control& replies() const;
  std::span<std::byte> reply_memory() const;
  /// To be sent to the other process; the maker's may be closed once it has been.
  UniqueFd& descriptor() { return descriptor_; }

 private:
  Segment(std::byte* base, UniqueFd descriptor);

  std::byte* base_ = nullptr;
  UniqueFd descriptor_;
};

/// A memfd of this size, sealed to it. -1 and errno where there is none to be had.
UniqueFd sealed_memory(const char* name, std::size_t bytes);
/// Empty if the descriptor is memory that sealed_memory made with this size; else what is wrong
/// with it.
std::string check_sealed(int descriptor, std::size_t bytes);

}  // namespace troupe::ring
