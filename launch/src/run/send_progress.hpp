#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::launch {

/// How far a folder has come on its way to the nodes of a run, piece by piece. Pure.
///
/// 1. However long all of it takes, it goes on as long as some node takes a piece within
///    kMostPause.
/// 2. line() tells how far it is after kFirstLine, and then every kNextLine.
class SendProgress {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kMostPause{60}, kFirstLine{5}, kNextLine{10};

  SendProgress(std::size_t nodes, std::size_t pieces, std::uint64_t bytes, Clock::time_point now)
      : taken_(nodes, 0), pieces_(pieces), bytes_(bytes), begun_(now), last_(now) {}

  /// `node` counts from 0.
  void on_piece(std::size_t node, Clock::time_point now);
  bool is_over() const { return nodes_that_have_it() == taken_.size(); }
  bool is_stalled(Clock::time_point now) const { return now - last_ > kMostPause; }
  /// "1 of 3 nodes has the working directory (300.0 MiB), the slowest 40 % of it". Never ends.
  std::string in_words() const;
  /// in_words(), where it is time to tell; else empty.
  std::string line(Clock::time_point now);

 private:
  std::size_t nodes_that_have_it() const;

  std::vector<std::size_t> taken_;  // pieces, by node
  std::size_t pieces_;
  std::uint64_t bytes_;
  Clock::time_point begun_;
  Clock::time_point last_;  // when a node took a piece
  std::chrono::seconds next_line_ = kFirstLine;
};

}  // namespace troupe::launch
