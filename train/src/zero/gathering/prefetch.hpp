#pragma once

#include <memory>
#include <optional>

#include <troupe/train/communicator.hpp>
#include <troupe/train/work.hpp>

#include "zero/flat.hpp"

namespace troupe::train {

/// A bucket of parameters that comes in the background, before an operator uses it. Of one rank's
/// Gathering.
///
///   prepare --> [prepared] --begin--> [coming] --wait--> [come] --deliver--> here
///
/// One bucket may be prepared while another one has come; drop_prepared() and drop() give their
/// memory back.
///
/// 1. While a bucket is coming, nobody else calls the communicator, nor writes to the rank's part.
/// 2. Nobody sees the bucket's memory before deliver().
///
/// Used by one thread at a time.
class Prefetch {
 public:
  /// `communicator`: over memory of the parameters' device; it outlives what is coming.
  explicit Prefetch(Communicator& communicator) : communicator_(communicator) {}
  ~Prefetch() { stop(); }
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// Takes the memory for a bucket that is not here, in the place of what was prepared before. One
  /// that has come needs none. false: there is no memory.
  bool prepare(std::shared_ptr<Flat> flat);
  /// A collective, which returns before the bucket that was prepared is there. One that has come
  /// stays.
  void begin();
  void drop_prepared();
  /// Throws what the collective threw; then nothing is coming.
  void wait();
  /// The bucket that has come, or is coming; nullptr: there is none.
  const Flat* come() const { return come_.get(); }
  /// The bucket that has come is here.
  void deliver();
  /// Gives back the memory of what has come, if anything has.
  void drop();
  /// Waits for what is coming, and drops all. The caller begins nothing afterwards.
  void stop() noexcept;

 private:
  Communicator& communicator_;
  std::unique_ptr<WorkQueue> queue_;  // from the first bucket on, as it has a thread
  std::shared_ptr<Flat> prepared_;
  Flat::AllGather call_ = {};   // that brings what is prepared
  std::shared_ptr<Flat> come_;  // or is coming
  std::optional<Work> work_;    // while it is coming
};

}  // namespace troupe::train
