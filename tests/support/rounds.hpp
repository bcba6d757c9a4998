#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>

namespace troupe::test {

/// How many random rounds a test makes: all of them in other builds, a tenth where a sanitizer
/// makes each one several times as long. It looks for what any round shows; what only many of them
/// can show, the other builds look for.
constexpr unsigned rounds(unsigned all) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return std::max(1U, all / 10);
#else
  return all;
#endif
}

/// What a test of random events begins with. It is the same in each run, so that a change is not
/// judged by luck; TROUPE_TEST_SEED has other events tried.
inline unsigned first_seed() {
  const char* given = std::getenv("TROUPE_TEST_SEED");
  return given ? static_cast<unsigned>(std::stoul(given)) : 1;
}

}  // namespace troupe::test
