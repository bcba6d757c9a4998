#pragma once

#include <algorithm>

namespace troupe::test {

/// How many random rounds a test makes: all of them in other builds, a quarter where a sanitizer
/// makes each one several times as long. It looks for what any round shows; what only many of them
/// can show, the other builds look for.
constexpr unsigned rounds(unsigned all) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return std::max(1U, all / 4);
#else
  return all;
#endif
}

}  // namespace troupe::test
