#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calls/output/name_table.hpp"

namespace troupe::runtime {

/// Which label (a function, an actor's type, a rank) ran in a process from which byte of its output
/// file on. Lives in zeroed memory that two processes share: the process that prints is the only
/// writer, its node reads at any time, also after the writer was killed in the middle.
///
///   1. A byte that was printed while a label ran is found under that label, or under none.
///   2. It grows with what is printed: labels during which nothing was printed leave nothing behind.
///   3. It knows the last kChanges changes, of kLabels labels that differ. What was printed before
///      those is found under no label.
class LabelHistory {
 public:
  /// More than the lines of one process that its node sends in a second.
  static constexpr std::size_t kChanges = 4096;
  static constexpr std::size_t kLabels = 64;
  static constexpr std::size_t kMostLabelBytes = NameTable::kMostBytes;
  static std::size_t bytes();

  explicit LabelHistory(void* memory);

  /// The writer: what it prints from that position of its file on belongs to `label`, which is cut
  /// to kMostLabelBytes.
  void change(std::string_view label, std::uint64_t position);

  struct Span {
    std::uint64_t begin = 0;  ///< up to the next one's
    std::string label;        ///< empty: not known any more
    bool operator==(const Span&) const = default;
  };
  /// The reader, once it has read the file: the spans of what stands there from `position` on, in
  /// order. What is before the first one has no label.
  std::vector<Span> since(std::uint64_t position) const;

 private:
  struct Memory;

  Memory* memory_;
  NameTable names_;
};

}  // namespace troupe::runtime
