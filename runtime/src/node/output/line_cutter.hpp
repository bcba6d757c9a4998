#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::node {

/// Cuts what a process writes into whole lines. A value; pure.
///
///   1. The lines and what was left out are, together, every byte that was appended or skipped, once
///      (but for the line end that cut() adds to a line that has none).
///   2. Each line ends with a line end, and has at most `longest_line` bytes before it.
///   3. Each line is given with its place among all bytes that were appended or skipped.
class LineCutter {
 public:
  static constexpr std::size_t kLongestLine = 8192;

  /// `position`: of the first byte.
  explicit LineCutter(std::uint64_t position = 0, std::size_t longest_line = kLongestLine)
      : longest_line_(longest_line), position_(position) {}

  void append(std::string_view bytes);
  /// So many bytes behind those so far are not read: the lines that they cut through are left out
  /// with them.
  void skip(std::uint64_t bytes);
  /// What stands behind the last line end is a line too: the process has ended.
  void cut();
  /// A line of ours, which is not among the bytes: "[troupe: ...]".
  void say(std::string_view line);

  struct Lines {
    std::string text;
    std::vector<std::uint64_t> begins;  ///< of each line, its first byte
    std::uint64_t left_out = 0;         ///< bytes, before the text or within it
    bool empty() const { return text.empty() && left_out == 0; }
  };
  /// How many whole lines take() would give.
  std::size_t waiting() const { return lines_.begins.size(); }
  /// The whole lines so far; each once.
  Lines take();

 private:
  void add(std::string_view piece);
  void end_line();

  std::size_t longest_line_;
  std::uint64_t position_;
  std::uint64_t begin_ = 0;  // of the unfinished line
  std::string unfinished_;
  bool within_line_ = false;  // that was begun in what was skipped: left out up to its end
  Lines lines_;
};

}  // namespace troupe::node
