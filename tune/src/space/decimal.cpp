#include "space/decimal.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace troupe::tune {
namespace {

__extension__ using Digits = __int128;

constexpr std::size_t kMostDigits = 15;  // that a double keeps of any decimal

/// digits * 10^exponent
struct Decimal {
  Digits digits = 0;
  int exponent = 0;
};

std::optional<Decimal> written(double x) {
  std::array<char, 32> text{};
  const auto* end =
      std::to_chars(text.data(), text.data() + text.size(), x, std::chars_format::scientific).ptr;
  const auto* exponent = std::find<const char*>(text.data(), end, 'e');
  Decimal decimal;
  std::size_t digits = 0, behind_point = 0;
  for (const auto* at = text.data(); at != exponent; ++at) {
    if (*at == '.') behind_point = digits;
    if (*at < '0' || *at > '9') continue;
    decimal.digits = decimal.digits * 10 + (*at - '0');
    ++digits;
  }
  if (digits > kMostDigits) return std::nullopt;
  if (behind_point > 0) behind_point = digits - behind_point;
  if (text[0] == '-') decimal.digits = -decimal.digits;
  const bool has_plus = exponent[1] == '+';
  std::from_chars(exponent + (has_plus ? 2 : 1), end, decimal.exponent);
  decimal.exponent -= static_cast<int>(behind_point);
  return decimal;
}

/// Its digits at a lower exponent. -> whether there is room for them.
bool lower(Decimal& decimal, int exponent) {
  if (decimal.digits == 0) decimal.exponent = exponent;
  for (; decimal.exponent > exponent; --decimal.exponent) {
    if (__builtin_mul_overflow(decimal.digits, Digits{10}, &decimal.digits)) return false;
  }
  return true;
}

/// Gives all of them the same exponent. -> whether there is room for their digits.
bool align(std::initializer_list<Decimal*> decimals) {
  int exponent = std::numeric_limits<int>::max();
  for (const auto* each : decimals) {
    if (each->digits != 0) exponent = std::min(exponent, each->exponent);
  }
  return std::ranges::all_of(decimals, [&](Decimal* each) { return lower(*each, exponent); });
}

}  // namespace

std::optional<double> written_sum(double first, std::int64_t count, double step) {
  auto sum = written(first), each = written(step);
  if (!sum || !each || !align({&*sum, &*each})) return std::nullopt;
  Digits product = 0;
  if (__builtin_mul_overflow(each->digits, Digits{count}, &product) ||
      __builtin_add_overflow(sum->digits, product, &sum->digits))
    return std::nullopt;
  const auto text = fmt::format("{}e{}", sum->digits, sum->exponent);
  double nearest = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), nearest);
  return read.ec == std::errc() ? std::optional(nearest) : std::nullopt;
}

std::optional<std::uint64_t> written_steps(double low, double high, double step) {
  assert(low <= high && step > 0);
  auto from = written(low), to = written(high), each = written(step);
  if (!from || !to || !each || !align({&*from, &*to, &*each})) return std::nullopt;
  Digits span = 0;
  if (__builtin_sub_overflow(to->digits, from->digits, &span)) return std::nullopt;
  return static_cast<std::uint64_t>(span / each->digits);
}

}  // namespace troupe::tune
