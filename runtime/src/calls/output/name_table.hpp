#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::runtime {

/// Texts by number, in zeroed memory that two processes share: the writer gives each text that it
/// meets a number, the reader finds the text of a number, also after the writer was killed in the
/// middle.
///
///   1. A number is found as the text that it was given for, or as none.
///   2. It holds as many texts as it has slots, those that were named last; numbers go up to kMostId
///      and then begin anew.
class NameTable {
 public:
  static constexpr std::size_t kMostBytes = 63;  ///< of a text; what is behind is cut
  static constexpr std::uint64_t kMostId = (1U << 16) - 1;

  struct Slot {
    std::atomic<std::uint64_t> id;  ///< of the text, which changes while this is zero
    char text[kMostBytes + 1];      ///< ends with a zero
  };

  /// The first number has one of the last slots, and so on down: a table with few texts touches only
  /// the page on which what lies behind it begins.
  NameTable(Slot* slots, std::size_t count) : slots_(slots), count_(count) {}

  /// The writer. A text that is not there takes the slot of the one that was named first. Costs a
  /// comparison with each text that is there. Never 0.
  std::uint64_t id_of(std::string_view text);
  /// The writer: the text of that number is still there.
  bool has(std::uint64_t id) const { return slot_of(id).id.load(std::memory_order_relaxed) == id; }
  /// The reader. Empty: it is not there (any more).
  std::string text_of(std::uint64_t id) const;

 private:
  Slot& slot_of(std::uint64_t id) const { return slots_[count_ - 1 - id % count_]; }

  Slot* slots_;
  std::size_t count_;
  std::vector<std::string> known_;  // the writer's: what its slots hold
  std::uint64_t last_id_ = 0;       // the writer's: given
};

}  // namespace troupe::runtime
