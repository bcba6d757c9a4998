#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "text/json.hpp"

/// The lines of a journal: JSON objects, the last two values of each a number and a checksum.
///
///   1. The first line is about the search. Its number says how many events of the run came before
///      the journal's first one, which a snapshot holds.
///   2. Every other line is an event, and its number is the event's in the run, from 1.
///   3. A line that is altered, missing, doubled or in another's place is found, and said. A journal that
///      lacks its last lines is as a crash leaves it: what they told is decided once more.
///   4. A last line without its end, which a crash in the middle of a write leaves, is left out.
namespace troupe::tune {

/// Of what this Troupe writes and reads.
inline constexpr int kJournalVersion = 6;

/// A line of a journal that is not what was written there, as after an error of a disk or an edit.
class DamagedLine final : public std::invalid_argument {
 public:
  /// `why`: what is wrong with it.
  DamagedLine(std::size_t number, std::string_view line, const std::string& why);
  std::size_t number() const { return number_; }     ///< of the line in the file, from 1
  const std::string& text() const { return text_; }  ///< its first characters, and what is wrong

 private:
  std::size_t number_;
  std::string text_;
};

/// A journal that another version of Troupe has written.
class OtherVersion final : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// `object`, the text of a JSON object, as a line with this number, without the line's end.
std::string numbered_line(std::string object, std::uint64_t number);

/// Calls `take`, where there is one, with each whole line, without its end, and with its number in the
/// file, from 1. -> the number of bytes of whole lines. Throws DamagedLine, and OtherVersion.
std::size_t for_lines(std::string_view journal,
                      const std::function<void(std::string_view line, std::size_t number)>& take);

/// The first line without what numbered_line() has added. Throws std::invalid_argument where there is
/// none, DamagedLine, and OtherVersion.
Json first_line_of(std::string_view journal);
/// How many events of its run came before a journal's first one.
std::uint64_t events_before(std::string_view journal);

}  // namespace troupe::tune
