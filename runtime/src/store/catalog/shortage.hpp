#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "store/types.hpp"

namespace troupe::store {

/// What has been done against a shortage of memory, so that nothing is done twice in it. A shortage
/// lasts from the first object that cannot be placed until no object waits for memory. A value;
/// Catalog decides when it ends.
///
///   [nothing asked] --open_round--> [recall: processes answer] --all answered, or on_recall_over--> [disk]
///          ^                                                                                          |
///          '---------------------------------------- end ---------------------------------------------'
///
/// 1. A shortage has one round of recalls at most; the numbers of rounds ascend, also over
///    shortages.
/// 2. Only processes of the present round are waited for, each until it has answered that round or
///    has ended.
/// 3. There is a disk failure exactly where objects are set aside. At most kMostDiskFailures
///    objects are tried in vain, besides those that were under way; then the disk is given up until
///    the shortage ends.
/// 4. The bytes that are on their way to the disk are those of the writes that have begun and not
///    ended, whichever shortage they began in.
class Shortage {
 public:
  static constexpr std::size_t kMostDiskFailures = 8;

  /// The number of the round that begins; nullopt: this shortage has had its round.
  std::optional<std::uint64_t> open_round();
  /// The process was asked in the present round, and is waited for.
  void on_recall(ProcessId process) { awaited_.insert(process); }
  void on_answer(ProcessId process, std::uint64_t round);
  void on_process_ended(ProcessId process) { awaited_.erase(process); }
  void on_recall_over() { awaited_.clear(); }
  bool awaits_answers() const { return !awaited_.empty(); }

  void on_write_began(std::uint64_t bytes) { leaving_bytes_ += bytes; }
  void on_write_ended(std::uint64_t bytes);
  std::uint64_t leaving_bytes() const { return leaving_bytes_; }  ///< on their way to the disk

  /// The object could not be written: it is not tried again in this shortage.
  void on_disk_failed(ObjectId object, const Refusal& why);
  bool is_disk_given_up() const { return set_aside_.size() >= kMostDiskFailures; }
  const std::optional<Refusal>& disk_failure() const { return disk_failure_; }  ///< the last one

  /// -> the objects that were set aside, which may be tried again.
  std::vector<ObjectId> end();
  void check() const;  ///< throws std::logic_error where an invariant does not hold; for tests

 private:
  bool had_round_ = false;
  std::uint64_t round_ = 0;  // the last one
  std::unordered_set<ProcessId> awaited_;
  std::uint64_t leaving_bytes_ = 0;
  std::vector<ObjectId> set_aside_;
  std::optional<Refusal> disk_failure_;
};

}  // namespace troupe::store
