#pragma once

#include <bit>
#include <cstdint>

/// The two 16-bit floating-point formats of machine learning, as storage. Arithmetic happens in
/// float.
namespace troupe::train {

struct BFloat16 {
  std::uint16_t bits;
};
struct Float16 {
  std::uint16_t bits;
};

inline float widen(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// To the nearest, ties to even; a NaN stays one.
inline void narrow(float value, BFloat16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) {
    out.bits = static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  } else {
    out.bits = static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
}

inline float widen(Float16 value) {
  const std::uint32_t sign = (value.bits & 0x8000u) << 16;
  const std::uint32_t rest = (value.bits & 0x7fffu) << 13;
  constexpr std::uint32_t kExponent = 0x7c00u << 13;
  constexpr std::uint32_t kRebias = (127u - 15u) << 23;
  // Infinity, NaN.
  if ((rest & kExponent) == kExponent) return std::bit_cast<float>(sign | rest | (0xffu << 23));
  if ((rest & kExponent) != 0) return std::bit_cast<float>(sign | (rest + kRebias));
  // Zero or subnormal: the bits count units of 2^-24.
  const float magnitude = static_cast<float>(value.bits & 0x3ffu) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

/// To the nearest, ties to even; too large becomes infinity; a NaN stays one.
inline void narrow(float value, Float16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // 65520 and more round to infinity
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // normal: from 2^-14
    const std::uint32_t rebased = magnitude - ((127u - 15u) << 23);
    half = (rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13;
  } else {  // subnormal
    // The sum with 0.5 has the units of 2^-24 in its low bits, rounded by the hardware.
    const float units = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<std::uint32_t>(units) - std::bit_cast<std::uint32_t>(0.5f);
  }
  out.bits = static_cast<std::uint16_t>(sign | half);
}

}  // namespace troupe::train
