#pragma once

#include <cstddef>
#include <string_view>

#include <troupe/train/communicator.hpp>

namespace troupe::train {

/// A communicator whose averages are computed while its caller goes on: over the GPUs, in the order
/// in which they were begun. What must hold:
/// 1. All ranks begin the same averages in the same order, as with any collective.
/// 2. Every other call of the communicator waits for all that was begun before it.
/// 3. An error, or a deadline that passes, ends the communicator, in begin_average() or complete(),
///    and names the average that is to blame. The deadline of one that has begun counts from when
///    complete() comes to it.
class BackgroundReductions {
 public:
  virtual ~BackgroundReductions() = default;

  /// Begins to average `count` elements at `data`, which is device memory, and returns at once.
  /// `filled`: a cudaEvent_t, after which the elements are there; it may be recorded anew as soon
  /// as this has returned. Throws as Communicator::all_reduce where the communicator has ended.
  virtual void begin_average(void* data, std::size_t count, DataType type, void* filled) = 0;
  /// Waits until all averages that were begun are in their buffers. Throws as
  /// Communicator::all_reduce.
  virtual void complete() = 0;
  /// Ends the communicator, with all averages that were begun, where there are any: nothing writes
  /// to their buffers any more. Throws nothing.
  virtual void give_up(std::string_view why) noexcept = 0;

 protected:
  BackgroundReductions() = default;
  BackgroundReductions(const BackgroundReductions&) = default;
  BackgroundReductions& operator=(const BackgroundReductions&) = default;
};

}  // namespace troupe::train
