#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

namespace troupe::test {

#if defined(__has_feature)
#define TROUPE_TEST_HAS_FEATURE(name) __has_feature(name)
#else
#define TROUPE_TEST_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    TROUPE_TEST_HAS_FEATURE(address_sanitizer) || TROUPE_TEST_HAS_FEATURE(thread_sanitizer)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif
#undef TROUPE_TEST_HAS_FEATURE

/// How many random rounds a test makes: all of them, or where a sanitizer makes each one several
/// times as long, one of `part`. A sanitized test looks for what any round shows; what only many of
/// them can show, the other builds look for.
constexpr unsigned rounds(unsigned all, unsigned part = 10) {
  return kIsSanitized ? std::max(1U, all / part) : all;
}

/// Settings that a test tries one after the other: all of them, or under sanitizers the last one.
template <class T>
std::vector<T> settings(std::vector<T> all) {
  if (kIsSanitized) all.erase(all.begin(), all.end() - 1);
  return all;
}

/// How far apart are the places that a test looks at in a row of `size`: `nearest`. Under sanitizers
/// they are ten times as far apart, or as far as leaves six of them.
constexpr std::size_t stride(std::size_t nearest, std::size_t size) {
  return kIsSanitized ? std::clamp(size / 6, nearest, 10 * nearest) : nearest;
}

/// What a test of random events begins with. It is the same in each run, so that a change is not
/// judged by luck; TROUPE_TEST_SEED has other events tried.
inline unsigned first_seed() {
  const char* given = std::getenv("TROUPE_TEST_SEED");
  return given ? static_cast<unsigned>(std::stoul(given)) : 1;
}

}  // namespace troupe::test
