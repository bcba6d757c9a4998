#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

namespace troupe::scheduler {

/// Names one thing of one kind by a number; `Tag` is the kind. The number 0 names none. A value of
/// one register. Nothing converts to or from it unasked: a number becomes an id, and an id a
/// number, only where somebody writes so, which is where messages, files and texts are read and
/// written. What counts or is an index is no id.
template <class Tag, std::unsigned_integral Number = std::uint64_t>
class StrongId {
 public:
  constexpr StrongId() = default;
  /// Of the number's own type, or of a narrower one: a wider one would be cut off.
  template <std::integral Given>
  requires(sizeof(Given) <= sizeof(Number) &&
           !std::same_as<Given, bool>) constexpr explicit StrongId(Given number)
      : value_{static_cast<Number>(number)} {}

  constexpr Number value() const { return value_; }
  constexpr explicit operator bool() const { return value_ != 0; }

  /// The next one, for who numbers things in turn.
  constexpr StrongId& operator++() {
    ++value_;
    return *this;
  }

  /// In the order of the numbers, which is of no meaning unless the ids are given out in turn.
  friend constexpr auto operator<=>(StrongId, StrongId) = default;

  /// For boost's containers; for those of the standard library see std::hash below.
  friend constexpr std::size_t hash_value(StrongId id) noexcept {
    return static_cast<std::size_t>(id.value_);
  }
  friend std::string to_string(StrongId id) { return std::to_string(id.value_); }
  template <class Traits>
  friend std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                                      StrongId id) {
    return out << id.value_;
  }

 private:
  Number value_ = 0;
};

/// How an id is formatted: as its number. What specializes a library's formatter derives from it;
/// `OfNumber` is that library's formatter of numbers.
template <class Id, class OfNumber>
struct IdFormatter : OfNumber {
  template <class Context>
  auto format(Id id, Context& context) const {
    return OfNumber::format(id.value(), context);
  }
};

}  // namespace troupe::scheduler

template <class Tag, class Number>
struct std::hash<troupe::scheduler::StrongId<Tag, Number>> {
  std::size_t operator()(troupe::scheduler::StrongId<Tag, Number> id) const noexcept {
    return hash_value(id);
  }
};
